"""Reads any file of a log directory for a person to look at and checks it on the way: the data of `ottla log dump`.

`dump_file` yields entries in the order of the file and findings where they are met. It opens files for reading only,
needs nothing but the files, holds one batch in memory at a time, and never raises on damage: damage is what it is for.

- `entries.py`   what it yields; `fields(entry)` names every field as Kafka's DumpLogSegments does
- `log_file.py`  batches and records; `index_files.py`, `state_files.py` and `text_files.py` the rest
"""

from __future__ import annotations

from ottla.storage.dump.entries import Entry, Finding, fields
from ottla.storage.dump.files import dump_file, files_of, kind_of

__all__ = ["Entry", "Finding", "dump_file", "fields", "files_of", "kind_of"]
