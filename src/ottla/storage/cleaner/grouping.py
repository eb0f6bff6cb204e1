"""Which neighbouring segments become one: as many as fit, so that cleaning does not leave a log in crumbs."""

from __future__ import annotations

from typing import Final

from ottla.ports import Disk
from ottla.storage.cleaner.job import Part, PassJob
from ottla.storage.formats.names import INDEX, TIME_INDEX, format_segment_file

_OFFSETS_MAX: Final = 2**31 - 1


def grouped(disk: Disk, job: PassJob, cleaned_to: int) -> list[list[Part]]:
    """All segments that begin below `cleaned_to`, in groups whose sizes, before cleaning, stay within the limits."""
    groups: list[list[Part]] = []
    size = index_size = time_index_size = 0
    for part, end in job.parts_with_ends():
        if part.base_offset >= cleaned_to:
            break
        index, times = _size(disk, job, part, INDEX), _size(disk, job, part, TIME_INDEX)
        fits = (
            groups
            and size + part.size <= job.segment_bytes
            and index_size + index <= job.segment_index_bytes
            and time_index_size + times <= job.segment_index_bytes
            # An empty segment says nothing of offsets.
            and (part.size == 0 or end - 1 - groups[-1][0].base_offset <= _OFFSETS_MAX)
        )
        if fits:
            groups[-1].append(part)
            size, index_size, time_index_size = size + part.size, index_size + index, time_index_size + times
        else:
            groups.append([part])
            size, index_size, time_index_size = part.size, index, times
    return groups


def _size(disk: Disk, job: PassJob, part: Part, kind: str) -> int:
    try:
        return disk.size(f"{job.directory}/{format_segment_file(part.base_offset, kind)}")
    except FileNotFoundError:
        return 0
