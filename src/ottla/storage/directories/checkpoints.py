"""The four checkpoint files of one log directory.

They only say where to begin: the recovery point (below it everything is on the medium), the log start (below it records
were deleted although their segment is still there), the high watermark, and how far the cleaner has come. A damaged
file therefore costs time and is no reason to stop: it counts as empty, and a warning says so.

A file is written only when its contents changed. Writes are prepared on the loop and may run in a worker; one that was
overtaken by a younger one writes nothing, so an old recovery point never comes back after it was lowered. What is to be
forgotten before a log begins anew is kept out of all older writes as well, whenever they run.
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
    #: Writes are numbered as they are prepared; `_latest` is the last that reached the disk.
    _prepared: int = 0
    _latest: int = 0
    #: Partitions that writes with a lower number must not mention.
    _forgotten: dict[TopicPartition, int] = field(default_factory=dict)
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

    def next_number(self) -> int:
        """Of a write whose tables are looked at from now on: what is lowered after this call wins over it."""
        self._prepared += 1
        return self._prepared

    def prepare(self, tables: Tables, number: int | None = None) -> CheckpointWrite:
        """The caller gives the tables away: nothing changes them afterwards."""
        assert tables.keys() == set(FILES)
        return CheckpointWrite(self, self.next_number() if number is None else number, tables)

    def prepare_forgetting(self, partitions: Collection[TopicPartition]) -> Callable[[], None]:
        """What blocks until no file mentions them. No log of theirs is open until it has run."""
        return partial(self._forget, self.next_number(), partitions)

    def _write(self, number: int, tables: Tables) -> None:
        with self._mutex:
            if number < self._latest:
                return
            later = {tp: forgotten for tp, forgotten in self._forgotten.items() if forgotten > number}
            self._replace(_without(tables, later))
            self._forgotten = later
            self._latest = number

    def _forget(self, number: int, partitions: Collection[TopicPartition]) -> None:
        with self._mutex:
            if number < self._latest:
                return  # that one was prepared when they stood in no table any more
            self._forgotten.update(dict.fromkeys(partitions, number))
            if any(map(self.mentions, partitions)):
                self._replace(_without(self.tables, set(partitions)))

    def _replace(self, tables: Tables) -> None:
        changed = [
            (name, data)
            for name, table in tables.items()
            if (data := offset_checkpoint.encode(table)) != self.contents.get(name)
        ]
        for name, data in changed:
            self.contents.pop(name, None)
            replace_file(self.disk, os.path.join(self.directory, name), data)
        if changed:
            self.disk.sync_directory(self.directory)
        self.contents.update(changed)
        self.tables = tables


def _without(tables: Tables, partitions: Container[TopicPartition]) -> Tables:
    return {name: {tp: at for tp, at in table.items() if tp not in partitions} for name, table in tables.items()}


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
