"""Batches with a right checksum in which no records can be read.

A producer has sent them like that, to a topic that does not look at what it stores, and which is compacted by now.
Nothing is wrong with the disk, nobody can say which keys they have, and so they stay as they are. Damage is something
else: there the checksum differs.
"""

from __future__ import annotations

from typing import Final

from ottla.records.errors import RecordError

#: Where a pass meets more of them in its dirty part it ends there, and the next one goes on.
NOTED_MAX: Final = 10_000


class UnreadableBatches:
    __slots__ = ("_faults", "first")

    def __init__(self) -> None:
        self._faults: dict[int, RecordError] = {}
        #: Base offset and fault of the first that was met.
        self.first: tuple[int, str] | None = None

    @property
    def is_full(self) -> bool:
        return len(self._faults) >= NOTED_MAX

    def note(self, base_offset: int, fault: RecordError) -> None:
        if self.first is None:
            self.first = base_offset, str(fault)
        if not self.is_full:
            self._faults[base_offset] = fault.with_traceback(None)

    def fault_of(self, base_offset: int) -> RecordError | None:
        return self._faults.get(base_offset)
