"""What a partition's folder holds at start, after finishing or undoing work that a crash interrupted.

- `.deleted`: removed for good, once nothing that it names is left (`remnants`).
- `.cleaned`: the cleaner had not finished writing: removed.
- `.swap`: the cleaner had finished: it takes the place of the segments that it was made from, or is removed while these
  are all there (`swaps.py`).
- an index without its log: removed.
- what bears such a name and is no file: set aside (`foreign.py`).

All other names are left alone.
"""

from __future__ import annotations

from collections import defaultdict
from contextlib import suppress
from itertools import pairwise
from typing import Final, NamedTuple

from ottla.model import TopicPartition
from ottla.ports import Disk
from ottla.storage.formats.names import (
    CLEANED,
    DELETED,
    INDEX,
    LOG,
    SNAPSHOT,
    SWAP,
    TIME_INDEX,
    TXN_INDEX,
    format_segment_file,
    parse_segment_file,
)
from ottla.storage.log.indexes.segment_file import LogContext
from ottla.storage.log.opening.foreign import end_of, floor_of, set_aside
from ottla.storage.log.opening.swaps import Fate, FolderContents, judged

_INDEXES: Final = (INDEX, TIME_INDEX, TXN_INDEX)


class Contents(NamedTuple):
    """The numbered files of a folder, once it is tidy."""

    #: Base offsets of the segments, rising.
    segments: list[int]
    #: Offsets of the producer snapshots, rising.
    snapshots: list[int]
    #: Base offsets of the segments with a file of aborted transactions.
    transactions: frozenset[int]
    #: Base offsets of the segments on their way out.
    deleted: list[int]
    #: Whether anything was renamed or removed.
    changed: bool


class _SuffixedNames(NamedTuple):
    #: Names without the work suffix, by suffix ("" for none), by kind, as offsets.
    offsets: dict[tuple[str, str], list[int]]
    #: Names of that form that no file bears.
    no_files: list[str]

    def take(self, kind: str, suffix: str = "") -> list[int]:
        return self.offsets.get((kind, suffix), [])

    def taken_away(self, kind: str) -> list[int]:
        """Those that are `.deleted`, and nothing bears their name."""
        present = frozenset(self.take(kind))
        return [offset for offset in self.take(kind, DELETED) if offset not in present]

    def without_index(self) -> frozenset[int]:
        return frozenset(offset for kind in _INDEXES for offset in self.taken_away(kind))


def tidy(around: LogContext, tp: TopicPartition, *, gaps_allowed: bool) -> Contents:
    """Raises CorruptLog where what the cleaner has left is damaged, and nothing else has these records."""
    disk, directory = around.disk, around.directory
    found = _look(disk, directory)
    for name in found.no_files:
        around.warn(f"{directory}/{name} is no file, and is now {set_aside(disk, directory, name)}")
    if all(not suffix for _, suffix in found.offsets):
        segments = found.take(LOG)
        removed = _remove_orphans(disk, directory, found, segments)
        changed = removed or bool(found.no_files)
        return Contents(segments, found.take(SNAPSHOT), frozenset(found.take(TXN_INDEX)), [], changed)
    folder = FolderContents(around, found.take(LOG), found.taken_away(LOG), found.without_index(), gaps_allowed)
    _settle_swaps(folder, tp, found)
    for (kind, suffix), offsets in found.offsets.items():
        if suffix == CLEANED:
            _remove(disk, directory, kind, suffix, offsets)
    found = _look(disk, directory)
    _name_indexes(disk, directory, found)
    if not gaps_allowed:
        _name_transactions_again(disk, directory, found)
    found = _look(disk, directory)
    segments = found.take(LOG)
    _remove_orphans(disk, directory, found, segments)
    deleted = sorted(
        {offset for (_, suffix), offsets in found.offsets.items() if suffix == DELETED for offset in offsets}
    )
    return Contents(segments, found.take(SNAPSHOT), frozenset(found.take(TXN_INDEX)), deleted, True)


def remnants(around: LogContext, segments: list[int], deleted: list[int], start_offset: int) -> list[int]:
    """Of a log without compaction: the segments that retention had taken out, and whose renaming a crash undid.

    They lie below the log's start, or before one that is `.deleted`: retention takes from the front. Left where they
    are they would stand before a hole. A `.deleted` that does not begin where one of them ends was never of this log.
    """
    gone_below = -1
    for offset in reversed(deleted):
        if offset >= segments[-1] or offset in segments:
            continue
        before = floor_of(segments, offset)
        if before is not None and end_of(around, before, _size(around, before)) == offset:
            gone_below = offset
            break
    return [base for base, following in pairwise(segments) if base < gone_below or following <= start_offset]


def _size(around: LogContext, base: int) -> int:
    return around.disk.size(f"{around.directory}/{format_segment_file(base, LOG)}")


def remove_segment(disk: Disk, directory: str, base: int) -> None:
    for kind in (*_INDEXES, LOG):
        _remove(disk, directory, kind, "", [base])


def sweep(disk: Disk, directory: str) -> None:
    """Removes what is `.deleted`. The names that it stands for are certain: their removal synced the folder."""
    for (kind, suffix), offsets in _look(disk, directory).offsets.items():
        if suffix == DELETED:
            _remove(disk, directory, kind, suffix, offsets)


def _look(disk: Disk, directory: str) -> _SuffixedNames:
    offsets: dict[tuple[str, str], list[int]] = defaultdict(list)
    no_files: list[str] = []
    for name, is_file in disk.entries(directory):
        if name[:1].isdigit() and (file := parse_segment_file(name)) is not None:
            if is_file:
                offsets[file.kind, file.suffix].append(file.offset)
            else:
                no_files.append(name)
    return _SuffixedNames(dict(offsets), no_files)


def _remove(disk: Disk, directory: str, kind: str, suffix: str, offsets: list[int]) -> None:
    for offset in offsets:
        with suppress(FileNotFoundError):
            disk.remove(f"{directory}/{format_segment_file(offset, kind, suffix)}")


def _settle_swaps(folder: FolderContents, tp: TopicPartition, found: _SuffixedNames) -> None:
    """Each `.swap` takes its place, or goes, or is set aside."""
    around = folder.around
    disk, directory = around.disk, around.directory
    # All of them before the first changes anything: those of a split were made from the same segment.
    verdicts = {base: judged(folder, tp, base) for base in found.take(LOG, SWAP)}
    for base, verdict in verdicts.items():
        if verdict.fate is Fate.COMPLETED:
            _swap_in(disk, directory, found, base, verdict.end)
        elif verdict.fate is Fate.NOT_NEEDED:
            for kind in (*_INDEXES, LOG):
                if base in found.take(kind, SWAP):
                    _remove(disk, directory, kind, SWAP, [base])
            # The log goes on without it: one that came back would be completed by a later start.
            disk.sync_directory(directory)
        else:
            path = f"{directory}/{format_segment_file(base, LOG, SWAP)}"
            around.warn(f"{path} was not made from this log: {verdict.fault}")
            for kind in (*_INDEXES, LOG):
                if base in found.take(kind, SWAP):
                    set_aside(disk, directory, format_segment_file(base, kind, SWAP))


def _swap_in(disk: Disk, directory: str, found: _SuffixedNames, base: int, end: int) -> None:
    # What it replaces: its own range, with the same names among them.
    for kind in (*_INDEXES, LOG):
        _remove(disk, directory, kind, "", [base, *(each for each in found.take(kind) if base < each < end)])
    # Before `.swap` goes, which names them: one that came back after a power cut would pass for part of the log.
    disk.sync_directory(directory)
    for kind in (*_INDEXES, LOG):
        if base in found.take(kind, SWAP):
            _take_name(disk, directory, base, kind)


def _take_name(disk: Disk, directory: str, base: int, kind: str) -> None:
    disk.rename(
        f"{directory}/{format_segment_file(base, kind, SWAP)}", f"{directory}/{format_segment_file(base, kind)}"
    )


def _name_indexes(disk: Disk, directory: str, found: _SuffixedNames) -> None:
    """Those of a segment that has its name already, as a power cut may leave them. None takes another's place."""
    for kind in _INDEXES:
        for base in found.take(kind, SWAP):
            if base in found.take(LOG) and base not in found.take(kind):
                _take_name(disk, directory, base, kind)
            elif base not in found.take(LOG, SWAP):
                _remove(disk, directory, kind, SWAP, [base])


def _name_transactions_again(disk: Disk, directory: str, found: _SuffixedNames) -> None:
    """A power cut may give a segment that retention had taken out its name back, and not its indexes. Nothing else
    would show that it has aborted transactions; the others are made anew. A `.deleted` log that is left has its own."""
    for base in found.taken_away(TXN_INDEX):
        if base in found.take(LOG) and base not in found.take(LOG, DELETED):
            disk.rename(
                f"{directory}/{format_segment_file(base, TXN_INDEX, DELETED)}",
                f"{directory}/{format_segment_file(base, TXN_INDEX)}",
            )


def _remove_orphans(disk: Disk, directory: str, found: _SuffixedNames, segments: list[int]) -> bool:
    known = frozenset(segments)
    removed = False
    for kind in _INDEXES:
        orphans = [offset for offset in found.take(kind) if offset not in known]
        if orphans:
            _remove(disk, directory, kind, "", orphans)
            removed = True
    return removed
