"""Which file is what, by its name, and what a folder holds."""

from __future__ import annotations

import os.path
from collections.abc import Callable, Iterator

from ottla.ports.disk import Disk
from ottla.storage.dump.entries import Entry, Finding
from ottla.storage.dump.first_log_file import dump_first_log
from ottla.storage.dump.index_files import dump_offset_index, dump_time_index
from ottla.storage.dump.lines import line_of, log_lines
from ottla.storage.dump.log_file import check_log, dump_log
from ottla.storage.dump.state_files import dump_snapshot, dump_txn_index
from ottla.storage.dump.text_files import DECODERS, dump_text
from ottla.storage.formats import names


def kind_of(path: str) -> str | None:
    """`.log`, `.index`, ... or the whole name of a small file; None where a dump does not know the file.

    Offsets in the name and the suffixes of work in progress do not matter, so a copy may have any name.
    """
    name = os.path.basename(path)
    if name in DECODERS:
        return name
    for suffix in (names.DELETED, names.CLEANED, names.SWAP):
        name = name.removesuffix(suffix)
    for kind in (names.LOG, names.TIME_INDEX, names.TXN_INDEX, names.INDEX, names.SNAPSHOT, names.FIRST_LOG):
        if name.endswith(kind):
            return kind
    return None


def dump_file(disk: Disk, path: str, *, records: bool = True) -> Iterator[Entry | Finding]:
    """Entries and findings of one file, in its order. What the system refuses is a finding too."""
    try:
        yield from _dump(disk, path, records=records)
    except OSError as error:
        yield _unread(path, error)


def dump_lines(disk: Disk, path: str, *, records: bool = True) -> Iterator[str | Finding]:
    """The same as text: of a log all lines of a batch at once."""
    try:
        if kind_of(path) == names.LOG:
            yield from log_lines(disk, path, records=records)
            return
        for entry in _dump(disk, path, records=records):
            yield entry if isinstance(entry, Finding) else line_of(entry)
    except OSError as error:
        yield _unread(path, error)


def check_file(
    disk: Disk, path: str, *, records: bool = True, passed: Callable[[int], None] = lambda _: None
) -> Iterator[Finding]:
    """The findings alone; `passed` is called with the bytes of a log that were looked at meanwhile."""
    try:
        if kind_of(path) == names.LOG:
            yield from check_log(disk, path, passed, records=records)
            return
        entries = (
            dump_first_log(disk, path, records=records, passed=passed)
            if kind_of(path) == names.FIRST_LOG
            else _dump(disk, path, records=records)
        )
        for entry in entries:
            if isinstance(entry, Finding):
                yield entry
    except OSError as error:
        yield _unread(path, error)


def _unread(path: str, error: OSError) -> Finding:
    return Finding(path, None, error.strerror or str(error), is_damage=False, is_unread=True)


def _dump(disk: Disk, path: str, *, records: bool) -> Iterator[Entry | Finding]:
    kind = kind_of(path)
    if kind == names.LOG:
        yield from dump_log(disk, path, records=records)
    elif kind == names.INDEX:
        yield from dump_offset_index(disk, path)
    elif kind == names.TIME_INDEX:
        yield from dump_time_index(disk, path)
    elif kind == names.TXN_INDEX:
        yield from dump_txn_index(disk, path)
    elif kind == names.SNAPSHOT:
        yield from dump_snapshot(disk, path)
    elif kind == names.FIRST_LOG:
        yield from dump_first_log(disk, path, records=records)
    elif kind is not None:
        yield from dump_text(disk, path)
    else:
        yield Finding(path, None, "its name tells no kind of file that a log directory has", is_damage=False)


def files_of(disk: Disk, path: str) -> Iterator[str | Finding]:
    """The file itself, or all files below a folder that a dump knows, a partition's together and by offset.

    Below folders names have to be whole: anybody's `debug.log` is no segment. A folder that cannot be read is
    a finding.
    """
    if not disk.is_directory(path):
        yield path
        return
    try:
        listed = disk.names(path)
    except OSError as error:
        yield _unread(path, error)
        return
    for name in listed:
        inner = os.path.join(path, name)
        if disk.is_directory(inner):
            yield from files_of(disk, inner)
        elif name in DECODERS or names.parse_segment_file(name) or names.parse_first_segment_file(name) is not None:
            yield inner
