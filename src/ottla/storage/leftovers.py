"""What a partition's folder holds at start, after finishing or undoing work that a crash interrupted.

- `.deleted`: removed for good, once nothing that it tells of is left (`remnants`).
- `.cleaned`: the cleaner had not finished writing: removed, and with it any `.swap` at or above it, which belongs to
  the same interrupted split.
- `.swap`: the cleaner had finished: the segments that it replaces are removed, and it takes their place.
- an index without its log: removed.

All other names are left alone.
"""

from __future__ import annotations

from collections import defaultdict
from contextlib import suppress
from itertools import pairwise
from typing import Final, NamedTuple

from ottla.ports import Disk
from ottla.storage.batch_walk import walk
from ottla.storage.errors import BadBatch
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


class _Found(NamedTuple):
    #: Names without the work suffix, by suffix ("" for none), by kind, as offsets.
    offsets: dict[tuple[str, str], list[int]]

    def take(self, kind: str, suffix: str = "") -> list[int]:
        return self.offsets.get((kind, suffix), [])


def tidy(disk: Disk, directory: str) -> Contents:
    found = _look(disk, directory)
    if all(not suffix for _, suffix in found.offsets):
        segments = found.take(LOG)
        removed = _remove_orphans(disk, directory, found, segments)
        return Contents(segments, found.take(SNAPSHOT), frozenset(found.take(TXN_INDEX)), [], removed)
    for (kind, suffix), offsets in found.offsets.items():
        if suffix == CLEANED:
            _remove(disk, directory, kind, suffix, offsets)
    cleaned = [offset for (_, suffix), offsets in found.offsets.items() if suffix == CLEANED for offset in offsets]
    whole = _drop_split(disk, directory, found, min(cleaned)) if cleaned else found
    _swap_in(disk, directory, whole)
    found = _look(disk, directory)
    segments = found.take(LOG)
    _remove_orphans(disk, directory, found, segments)
    deleted = sorted(
        {offset for (_, suffix), offsets in found.offsets.items() if suffix == DELETED for offset in offsets}
    )
    return Contents(segments, found.take(SNAPSHOT), frozenset(found.take(TXN_INDEX)), deleted, True)


def remnants(segments: list[int], deleted: list[int], start_offset: int) -> list[int]:
    """Of a log without compaction: the segments that retention had taken out, and whose renaming a crash undid.

    They lie below the log's start, or before one that is `.deleted`: retention takes from the front. Left where they
    are they would stand before a hole.
    """
    gone_below = max([offset for offset in deleted if offset < segments[-1]], default=-1)
    return [base for base, following in pairwise(segments) if base < gone_below or following <= start_offset]


def remove_segment(disk: Disk, directory: str, base: int) -> None:
    for kind in (*_INDEXES, LOG):
        _remove(disk, directory, kind, "", [base])


def sweep(disk: Disk, directory: str) -> None:
    """Removes what is `.deleted`. The names that it tells of are certain: whoever removed them synced the folder."""
    for (kind, suffix), offsets in _look(disk, directory).offsets.items():
        if suffix == DELETED:
            _remove(disk, directory, kind, suffix, offsets)


def _look(disk: Disk, directory: str) -> _Found:
    offsets: dict[tuple[str, str], list[int]] = defaultdict(list)
    for name in disk.names(directory):
        if name[:1].isdigit() and (file := parse_segment_file(name)) is not None:
            offsets[file.kind, file.suffix].append(file.offset)
    return _Found(dict(offsets))


def _remove(disk: Disk, directory: str, kind: str, suffix: str, offsets: list[int]) -> None:
    for offset in offsets:
        with suppress(FileNotFoundError):
            disk.remove(f"{directory}/{format_segment_file(offset, kind, suffix)}")


def _drop_split(disk: Disk, directory: str, found: _Found, lowest: int) -> _Found:
    """A split was interrupted: its parts from `lowest` on do not make a whole."""
    kept: dict[tuple[str, str], list[int]] = {}
    for (kind, suffix), offsets in found.offsets.items():
        if suffix == SWAP:
            _remove(disk, directory, kind, suffix, [offset for offset in offsets if offset >= lowest])
            kept[kind, suffix] = [offset for offset in offsets if offset < lowest]
        else:
            kept[kind, suffix] = offsets
    return _Found(kept)


def _swap_in(disk: Disk, directory: str, found: _Found) -> None:
    logs = found.take(LOG, SWAP)
    if logs:
        first = min(logs)
        end = max(_next_offset(disk, directory, base) for base in logs)
        # What they replace: their own range, with the same names among them.
        for kind in (*_INDEXES, LOG):
            replaced = [offset for offset in found.take(kind) if first <= offset < end]
            _remove(disk, directory, kind, "", replaced)
        # Before `.swap` goes, which tells of them: one that came back after a power cut would pass for part of the log.
        disk.sync_directory(directory)
    for kind in (*_INDEXES, LOG):
        for offset in found.take(kind, SWAP):
            disk.rename(
                f"{directory}/{format_segment_file(offset, kind, SWAP)}",
                f"{directory}/{format_segment_file(offset, kind)}",
            )


def _next_offset(disk: Disk, directory: str, base: int) -> int:
    """Behind the last batch of a finished `.swap` file."""
    file = disk.open_read_only(f"{directory}/{format_segment_file(base, LOG, SWAP)}")
    end = base
    try:
        with suppress(BadBatch):
            for _, header in walk(file, 0, file.size()):
                end = header.next_offset
    finally:
        file.close()
    return end


def _remove_orphans(disk: Disk, directory: str, found: _Found, segments: list[int]) -> bool:
    known = frozenset(segments)
    removed = False
    for kind in _INDEXES:
        orphans = [offset for offset in found.take(kind) if offset not in known]
        if orphans:
            _remove(disk, directory, kind, "", orphans)
            removed = True
    return removed
