"""A segment's log file: opened when it is first needed, under one of two names, and how much of it is on the medium."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import NamedTuple, TypeVar

from ottla.ports import Disk, File
from ottla.storage.formats.names import LOG, format_segment_file
from ottla.storage.log.open_files import OpenFiles

Warn = Callable[[str], None]
T = TypeVar("T")


class LogContext(NamedTuple):
    """What all segments of one log share."""

    disk: Disk
    directory: str
    files: OpenFiles
    index_interval_bytes: int
    warn: Warn


class SegmentFile:
    __slots__ = (
        "_file",
        "_noted",
        "around",
        "base_offset",
        "next_suffix",
        "sealed",
        "size",
        "suffix",
        "synced",
        "used",
    )

    def __init__(self, around: LogContext, base_offset: int, size: int, *, sealed: bool, suffix: str = "") -> None:
        self.around = around
        self.base_offset = base_offset
        #: Behind the names of its files while the cleaner is not done with it.
        self.suffix = suffix
        #: What a worker is about to put in its place; None where none is.
        self.next_suffix: str | None = None
        #: Bytes of whole batches. The file may be longer only while an append goes on.
        self.size = size
        #: How many of them are known to be on the medium. synced <= size
        self.synced = size
        #: Never written to again.
        self.sealed = sealed
        self.used = False
        #: Whether the bound on open files knows of this one.
        self._noted = False
        self._file: File | None = None

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.base_offset} of {self.around.directory!r}, {self.size} bytes>"

    def path(self, kind: str = LOG, suffix: str = "") -> str:
        return f"{self.around.directory}/{format_segment_file(self.base_offset, kind, suffix or self.suffix)}"

    # -- the file

    @property
    def file(self) -> File:
        """The log file, opened where it is not; reading it does not move it to another place."""
        self.used = True
        return self._file or self._open_file()

    def _open_file(self) -> File:
        disk = self.around.disk
        opens = disk.open_read_only if self.sealed else disk.open
        self._file = file = self.found(LOG, opens)
        self._note_open()
        return file

    def _note_open(self) -> None:
        if not self._noted:
            self._noted = True
            self.around.files.opened(self)

    @property
    def open_file(self) -> File | None:
        """The log file, if it is open."""
        return self._file

    @property
    def is_clean(self) -> bool:
        return self.synced == self.size

    @property
    def is_open(self) -> bool:
        return self._file is not None

    def release_files(self) -> None:
        """Others are to be opened, and there are as many as may be."""
        self._noted = False
        self.close()

    def close(self) -> None:
        file, self._file = self._file, None
        if file is not None:
            file.close()

    def goes_on_with(self, file: File) -> None:
        """Its log file, opened anew; it takes the place of the one that is open."""
        self.close()
        self.used = True
        self._file = file
        self._note_open()

    def keep_in(self, around: LogContext) -> None:
        """From now on what surrounds it is this."""
        self.around = around

    def is_renamed_to(self, suffix: str) -> None:
        """A worker gives its files this behind their names: until `named`, they have the one name or the other."""
        self.next_suffix = suffix

    def named(self, suffix: str) -> None:
        """Its files have this behind their names by now."""
        self.suffix, self.next_suffix = suffix, None

    def take_names_of(self, other: SegmentFile) -> None:
        """Of a twin, before its worker begins: another may have given the files other names by now."""
        self.suffix, self.next_suffix = other.suffix, other.next_suffix

    def has_names_of(self, other: SegmentFile) -> bool:
        return (self.suffix, self.next_suffix) == (other.suffix, other.next_suffix)

    def found(self, kind: str, opens: Callable[[str], T]) -> T:
        """What opens a file by its path; raises FileNotFoundError where there is none."""
        later = self.next_suffix
        if later is not None:
            with suppress(FileNotFoundError):
                return self.around.files.opening(lambda: opens(self.path(kind)))
            path = f"{self.around.directory}/{format_segment_file(self.base_offset, kind, later)}"
            return self.around.files.opening(lambda: opens(path))
        return self.around.files.opening(lambda: opens(self.path(kind)))

    # -- the medium

    def note_synced(self, size: int) -> None:
        """So many of its bytes are on the medium for certain."""
        self.synced = max(self.synced, min(size, self.size))

    def note_uncertain(self, position: int) -> None:
        """What stands from `position` on may be in the system's memory only."""
        self.synced = min(self.synced, position)

    def end_at(self, position: int) -> None:
        """Cuts the file where a batch begins, at a start, when nothing is known of what lies behind. It may block."""
        self.file.truncate(position)
        self.file.sync()
        self.size = position
        self.synced = 0
