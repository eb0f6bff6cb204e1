"""The records of a partition's folder, to be produced again: of files that any broker has written, in any format.

Files are gone through twice. The first time looks for damage, and for what readers must not see: transactions that were
aborted, or that nobody ended. The second time gives the records, in the order of the log, without what only brokers
read (control records, and those transactions).
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator
from typing import Final, NamedTuple

from ottla.ports.disk import Disk
from ottla.storage.dump.entries import BatchEntry, Finding, RecordEntry
from ottla.storage.dump.files import dump_file
from ottla.storage.formats.errors import FormatError
from ottla.storage.formats.names import FolderKind, parse_first_segment_file, parse_folder, parse_segment_file

_COMMIT: Final = "COMMIT"
_ABORT: Final = "ABORT"
#: Behind all offsets.
_NEVER_ENDED: Final = 2**63


class PartitionFiles(NamedTuple):
    path: str
    #: By the folder's name; None where it says none.
    topic: str | None
    partition: int | None
    #: Segments, the oldest first.
    files: tuple[str, ...]


def partitions_below(disk: Disk, path: str) -> list[PartitionFiles]:
    """A partition's folder, or all partitions' folders in this one, by topic and partition; raises OSError."""
    own = _partition(disk, path)
    if own is not None:
        return [own]
    found = []
    for name in disk.names(path):
        inner = f"{path.rstrip('/')}/{name}"
        if not disk.is_directory(inner):
            continue
        one = _partition(disk, inner)
        if one is not None and one.topic is not None:
            found.append(one)
    return sorted(found, key=lambda one: (one.topic or "", one.partition or 0))


def _partition(disk: Disk, path: str) -> PartitionFiles | None:
    """None where no segment is in it."""
    segments = []
    for name in disk.names(path):
        segment = parse_segment_file(name)
        first = parse_first_segment_file(name)
        if segment is not None and segment.kind == ".log" and not segment.suffix:
            # What Kafka 0.7 left comes before what a later one wrote into the same folder.
            segments.append((1, segment.offset, name))
        elif first is not None:
            segments.append((0, first, name))
    if not segments:
        return None
    topic, partition = _named(path.rstrip("/").rpartition("/")[2])
    return PartitionFiles(path, topic, partition, tuple(f"{path.rstrip('/')}/{name}" for *_, name in sorted(segments)))


def _named(folder: str) -> tuple[str | None, int | None]:
    try:
        named = parse_folder(folder)
    except FormatError:
        return None, None
    return named.partition if named.kind is FolderKind.CURRENT else (None, None)


class ImportableLog:
    """One partition's."""

    def __init__(self, disk: Disk, files: PartitionFiles) -> None:
        self._disk = disk
        self.files = files
        #: By producer: where the transactions begin that readers must not see, and behind where each ends.
        self._hidden: dict[int, list[tuple[int, int]]] = {}
        #: How many records `check` has met in each file.
        self._met: dict[str, int] = {}

    def check(self, looked_at: Callable[[str], None] = lambda _: None) -> Iterator[Finding]:
        """All that is wrong or worth a note; has to be gone through to its end before `data`."""
        begun: dict[int, int] = {}
        for file in self.files.files:
            self._met[file] = 0
            for entry in self._entries(file):
                if isinstance(entry, Finding):
                    yield entry
                else:
                    self._met[file] += 1
                    self._note(entry, begun)
            looked_at(file)
        for producer, first in begun.items():
            self._hide(producer, first, _NEVER_ENDED)

    def data(self) -> Iterator[RecordEntry]:
        """What was there when `check` went through; raises OSError where a file does not give it again.

        What a broker has added since nobody has looked at: whether its transactions were aborted is not known.
        """
        for file in self.files.files:
            left = self._met[file]
            for entry in self._entries(file) if left else ():
                if isinstance(entry, Finding):
                    if entry.is_unread:
                        raise OSError(f"cannot read {entry.path}: {entry.message}")
                    continue
                left -= 1
                if not self._is_hidden(entry):
                    yield entry
                if not left:
                    break
            if left:
                raise OSError(f"{file} has changed since it was checked: it ends earlier, or is damaged")

    def _entries(self, file: str) -> Iterator[RecordEntry | Finding]:
        """Records of batches whose checksums are right, those of control batches included."""
        is_control = False
        for entry in dump_file(self._disk, file):
            if isinstance(entry, BatchEntry):
                is_control = entry.is_control
            elif isinstance(entry, Finding) or (isinstance(entry, RecordEntry) and not is_control):
                yield entry
            elif isinstance(entry, RecordEntry):
                yield entry._replace(control_type=entry.control_type or "unknown")

    def _note(self, record: RecordEntry, begun: dict[int, int]) -> None:
        producer = record.producer_id
        if record.control_type is None:
            if record.is_transactional:
                begun.setdefault(producer, record.offset)
        elif record.control_type in {_COMMIT, _ABORT}:
            first = begun.pop(producer, None)
            if first is not None and record.control_type == _ABORT:
                self._hide(producer, first, record.offset)

    def _hide(self, producer: int, first: int, end: int) -> None:
        self._hidden.setdefault(producer, []).append((first, end))

    def _is_hidden(self, record: RecordEntry) -> bool:
        if record.control_type is not None:
            return True
        if not record.is_transactional or record.producer_id not in self._hidden:
            return False
        spans = self._hidden[record.producer_id]
        at = bisect_right(spans, (record.offset, _NEVER_ENDED)) - 1
        return at >= 0 and record.offset < spans[at][1]
