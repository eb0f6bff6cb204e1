"""Reads any file of a log directory for a person to look at and checks it on the way: the data of `ottla log dump`.

`dump_file` yields entries in the order of the file and findings where they are met, `dump_lines` the same as text, and
`check_file` the findings alone. They open files for reading only, need nothing but the files, hold one batch in memory
at a time, and never raise on damage: damage is what they are for.

- `entries.py`   what it yields; `fields(entry)` names every field as Kafka's DumpLogSegments does
- `log_file.py`  batches and records; `old_messages.py` and `first_log_file.py` what Kafka had before them
- `index_files.py`, `state_files.py`, `text_files.py`  the rest
- `rising_order.py`  which of many offsets is wrong; `sound_records.py`  a quick look at records; `lines.py`  text
"""

from __future__ import annotations

from ottla.storage.dump.entries import Entry, Finding, fields
from ottla.storage.dump.files import check_file, dump_file, dump_lines, files_of, kind_of
from ottla.storage.dump.lines import line_of

__all__ = [
    "Entry",
    "Finding",
    "check_file",
    "dump_file",
    "dump_lines",
    "fields",
    "files_of",
    "kind_of",
    "line_of",
]
