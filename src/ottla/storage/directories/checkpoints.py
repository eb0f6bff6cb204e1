"""The four checkpoint files of one log directory.

They only say where to begin: the recovery point (below it everything is on the medium), the log start (below it records
were deleted although their segment is still there), the high watermark, and how far the cleaner has come. A damaged
file therefore costs time and is no reason to stop: it counts as empty, and a warning says so.

A file is written only when its contents changed. Writes are prepared on the loop and may run in a worker; one that was
overtaken by a younger one writes nothing. Two small changes are no writes of everything, and overtake none: what is to
be forgotten before a log begins anew is kept out of all older writes, whenever they run, and an offset that was lowered
before a cut is not raised again by them.
"""

from __future__ import annotations

import os.path
from collections.abc import Callable, Collection, Container, Mapping
from dataclasses import dataclass, field
from functools import partial
from threading import Lock as Mutex
from typing import Final

from ottla.model import TopicPartition
from ottla.ports.disk import Disk
from ottla.ports.whole_files import replace_file
from ottla.storage.formats import offset_checkpoint
from ottla.storage.formats.errors import FormatError
from ottla.storage.formats.offset_checkpoint import CLEANER_OFFSETS, HIGH_WATERMARKS, LOG_STARTS, RECOVERY_POINTS

FILES: Final = (RECOVERY_POINTS, LOG_STARTS, HIGH_WATERMARKS, CLEANER_OFFSETS)
#: What must not lie above the end of a log.
_LOWERED: Final = (RECOVERY_POINTS, LOG_STARTS, CLEANER_OFFSETS)

_CONSEQUENCES: Final = {
    RECOVERY_POINTS: "all logs of the directory are checked from their beginning",
    LOG_STARTS: "deleted records may be seen again until their segment goes",
    HIGH_WATERMARKS: "high watermarks begin at the log start",
    CLEANER_OFFSETS: "compacted logs are cleaned from their beginning",
}

Offsets = dict[TopicPartition, int]
#: One table a file, by the file's name.
Tables = Mapping[str, Offsets]


@dataclass(slots=True, eq=False)
class Checkpoints:
    """What the files of one directory hold, as last read or written."""

    disk: Disk
    directory: str
    tables: Tables = field(default_factory=lambda: {name: {} for name in FILES})
    #: The bytes on disk; a name that is missing here is a file that is absent or damaged.
    contents: dict[str, bytes] = field(default_factory=dict)
    #: Whether the recovery points could not be read: then no log of the directory may skip its recovery.
    damaged: bool = False
    #: Whether a write has failed behind its first file, and none has followed: files may say what `tables` do not.
    _is_half_written: bool = False
    #: Writes are numbered as they are begun, and small changes with them. Of those of everything `_begun` is the last,
    #: and `_latest` the last that reached the disk.
    _numbered: int = 0
    _begun: int = 0
    _latest: int = 0
    #: Partitions that writes with a lower number must not mention.
    _forgotten: dict[TopicPartition, int] = field(default_factory=dict)
    #: Partitions of which they must not say more than an offset: the number, and the offset.
    _lowered: dict[TopicPartition, tuple[int, int]] = field(default_factory=dict)
    _mutex: Mutex = field(default_factory=Mutex)

    @staticmethod
    def read(disk: Disk, directory: str, on_warning: Callable[[str], None]) -> Checkpoints:
        """Raises OSError where the directory itself fails."""
        tables: dict[str, Offsets] = {}
        checkpoints = Checkpoints(disk, directory, tables)
        for name in FILES:
            tables[name] = {}
            try:
                data = disk.read_file(os.path.join(directory, name))
                if not data and name == CLEANER_OFFSETS:
                    # As Kafka's cleaner leaves it that has had nothing to do.
                    data = offset_checkpoint.encode({})
                tables[name] = offset_checkpoint.decode(data)
                checkpoints.contents[name] = data
            except FileNotFoundError:
                pass
            except FormatError as error:
                checkpoints.damaged = checkpoints.damaged or name == RECOVERY_POINTS
                on_warning(f"{name} is damaged and counts as empty ({error}): {_CONSEQUENCES[name]}")
        return checkpoints

    def mentions(self, partition: TopicPartition) -> bool:
        return any(partition in table for table in self.tables.values())

    def known_end(self, partition: TopicPartition) -> int:
        """An offset that the partition's log had reached; 0 where nothing is known of any record."""
        return max(self.offset(name, partition) for name in (RECOVERY_POINTS, LOG_STARTS, HIGH_WATERMARKS))

    def with_records(self) -> set[TopicPartition]:
        """The partitions that have, or had, records here."""
        return {
            tp for name in (RECOVERY_POINTS, LOG_STARTS, HIGH_WATERMARKS) for tp, at in self.tables[name].items() if at
        }

    def offset(self, name: str, partition: TopicPartition, default: int = 0) -> int:
        return self.tables[name].get(partition, default)

    def begin(self) -> int:
        """The number of a write whose tables are looked at from now on: small changes after this win over it."""
        self._begun = self._next_number()
        return self._begun

    def _next_number(self) -> int:
        self._numbered += 1
        return self._numbered

    def prepare(self, tables: Tables, number: int) -> CheckpointWrite:
        """The caller gives the tables away: nothing changes them afterwards."""
        assert tables.keys() == set(FILES)
        return CheckpointWrite(self, number, tables)

    def prepare_forgetting(self, partitions: Collection[TopicPartition]) -> Callable[[], None]:
        """What blocks until no file mentions them. No log of theirs is open until it has run."""
        return partial(self._forget, self._next_number(), partitions)

    def prepare_lowering(self, partition: TopicPartition, offset: int) -> Callable[[], None] | None:
        """What blocks until no file says more of a log than `offset`, which the log itself does not by now.

        None where none does, and no write is under way that could.
        """
        if self._begun == self._latest and not self._may_exceed(partition, offset):
            return None
        return partial(self._lower, self._next_number(), partition, offset)

    def _write(self, number: int, tables: Tables) -> None:
        with self._mutex:
            if number < self._latest:
                return
            forgotten = {tp: later for tp, later in self._forgotten.items() if later > number}
            lowered = {tp: (later, offset) for tp, (later, offset) in self._lowered.items() if later > number}
            self._replace(_at_most(_without(tables, forgotten), {tp: offset for tp, (_, offset) in lowered.items()}))
            self._forgotten, self._lowered = forgotten, lowered
            self._latest = number

    def _forget(self, number: int, partitions: Collection[TopicPartition]) -> None:
        with self._mutex:
            if number < self._latest:
                return  # that one was prepared when they stood in no table any more
            self._forgotten.update(dict.fromkeys(partitions, number))
            if self._is_half_written or any(map(self.mentions, partitions)):
                self._replace(_without(self.tables, set(partitions)))

    def _lower(self, number: int, partition: TopicPartition, offset: int) -> None:
        with self._mutex:
            if number < self._latest:
                return  # that one was begun when the log said no more
            self._lowered[partition] = (number, offset)
            if self._may_exceed(partition, offset):
                self._replace(_at_most(self.tables, {partition: offset}))

    def _may_exceed(self, partition: TopicPartition, offset: int) -> bool:
        """Whether a file may say more of the partition's log than this."""
        return self._is_half_written or any(self.offset(name, partition) > offset for name in _LOWERED)

    def _replace(self, tables: Tables) -> None:
        changed = [
            (name, data)
            for name, table in tables.items()
            if (data := offset_checkpoint.encode(table)) != self.contents.get(name)
        ]
        for name, data in changed:
            self.contents.pop(name, None)
            replace_file(self.disk, os.path.join(self.directory, name), data)
            self._is_half_written = True
        if changed:
            self.disk.sync_directory(self.directory)
        self.contents.update(changed)
        self.tables = tables
        self._is_half_written = False


def _without(tables: Tables, partitions: Container[TopicPartition]) -> Tables:
    return {name: {tp: at for tp, at in table.items() if tp not in partitions} for name, table in tables.items()}


def _at_most(tables: Tables, offsets: Offsets) -> Tables:
    """What is lowered says no more than that."""
    if not offsets:
        return tables
    return {
        name: {tp: min(at, offsets.get(tp, at)) for tp, at in table.items()} if name in _LOWERED else table
        for name, table in tables.items()
    }


@dataclass(frozen=True, slots=True)
class CheckpointWrite:
    """One round of checkpoints of one directory, as plain values."""

    checkpoints: Checkpoints
    number: int
    tables: Tables

    @property
    def directory(self) -> str:
        return self.checkpoints.directory

    def run(self) -> None:
        """Blocks. Everything is durable when it returns; on OSError the directory has failed."""
        self.checkpoints._write(self.number, self.tables)  # noqa: SLF001 - one subject in two classes
