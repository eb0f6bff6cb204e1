"""Writes of the controller: multis that only the current controller gets through, cut to what a request may carry."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from typing import Final

from ottla.coordination.errors import CoordinationError, MultiFailed
from ottla.coordination.interface import MULTI_OPS_MAX, REQUEST_BYTES_MAX, Check, Coordination, Op
from ottla.coordination.sizes import OP_OVERHEAD, op_size, split
from ottla.coordination.znodes import CONTROLLER_EPOCH

#: Multis on their way at once: what a large request is cut into goes out together and shares a sync of the disk.
IN_FLIGHT_MAX: Final = 64
#: Groups that may spoil a shared multi, each of which costs the others two more. With more of them each gets its own.
SPOILED_MAX: Final = 4
#: Beside the check of the controller's epoch. To encode more would take longer than a turn of the loop may.
_OPS_MAX: Final = min(4_000, MULTI_OPS_MAX) - 1
_BYTES_MAX: Final = REQUEST_BYTES_MAX - 2 * OP_OVERHEAD


class ControllerMoved(CoordinationError):
    """Another controller was elected: its epoch is in the tree."""


class ControllerWrites:
    def __init__(self, coordination: Coordination, epoch_version: int) -> None:
        self._coordination = coordination
        self._fence = Check(CONTROLLER_EPOCH, epoch_version)
        #: Whether the tree has taken anything since the turn under way began, which sets it back.
        self.has_written = False

    async def write(self, groups: Sequence[Sequence[Op]]) -> list[CoordinationError | None]:
        """Writes groups of operations, each with its own outcome: None, or why it was not written.

        A group that fits is done whole or not at all, and shares a multi with its neighbours. One that does not fit is
        cut, and its pieces are written one after the other: a reader that finds the first must reckon with the last
        one missing.
        """
        outcomes: list[CoordinationError | None] = [None] * len(groups)
        parcels = await _parcels(groups)
        for start in range(0, len(parcels), IN_FLIGHT_MAX):
            flying: list[asyncio.Future[None]] = []
            for parcel in parcels[start : start + IN_FLIGHT_MAX]:
                if flying:
                    # Each begins in a turn of its own: that takes a millisecond.
                    await asyncio.sleep(0)
                flying.append(asyncio.ensure_future(self._send(parcel, groups, outcomes)))
            await _all(flying)
        return outcomes

    async def confirm(self) -> None:
        """Raises CoordinationError where another controller is active, or where it cannot be known."""
        await self._multi([])

    async def _send(
        self, parcel: Sequence[int], groups: Sequence[Sequence[Op]], outcomes: list[CoordinationError | None]
    ) -> None:
        """Groups that share a multi; what spoils it is taken out, and the others go on without it."""
        left = [list(parcel)]
        spoiled = 0
        while left:
            together = left.pop()
            if len(together) > 1 and spoiled < SPOILED_MAX:
                culprit = await self._write_together(together, groups, outcomes)
                if culprit is not None:
                    spoiled += 1
                    left += [part for part in (together[culprit + 1 :], together[:culprit]) if part]
                continue
            for start in range(0, len(together), IN_FLIGHT_MAX):
                few = together[start : start + IN_FLIGHT_MAX]
                await _all(asyncio.ensure_future(self._write_alone(index, groups, outcomes)) for index in few)

    async def _write_together(
        self, parcel: Sequence[int], groups: Sequence[Sequence[Op]], outcomes: list[CoordinationError | None]
    ) -> int | None:
        """Where in the parcel the group stands that cannot be written; None: all of them are."""
        try:
            await self._multi([op for index in parcel for op in groups[index]])
        except MultiFailed as failed:
            # The fence is the first operation.
            operation = failed.index - 1
            for place, index in enumerate(parcel):
                operation -= len(groups[index])
                if operation < 0:
                    outcomes[index] = failed.error
                    return place
            raise
        return None

    async def _write_alone(
        self, index: int, groups: Sequence[Sequence[Op]], outcomes: list[CoordinationError | None]
    ) -> None:
        try:
            for piece in split(groups[index], ops_max=_OPS_MAX, bytes_max=_BYTES_MAX):
                await self._multi(piece)
        except MultiFailed as failed:
            outcomes[index] = failed.error

    async def _multi(self, ops: Sequence[Op]) -> None:
        try:
            await self._coordination.multi([self._fence, *ops])
        except MultiFailed as failed:
            if failed.index == 0:
                # Not there at all: somebody has emptied the tree.
                raise ControllerMoved(f"another controller is active: {failed.error}") from failed
            raise
        if ops:
            self.has_written = True


async def _all(flying: Iterable[asyncio.Future[None]]) -> None:
    """Waits for all of them, and raises what the first one raised."""
    for answer in await asyncio.gather(*flying, return_exceptions=True):
        if isinstance(answer, BaseException):
            raise answer


async def _parcels(groups: Sequence[Sequence[Op]]) -> list[list[int]]:
    """Indexes of neighbouring groups that fit one multi together; a group that must be cut is alone."""
    parcels: list[list[int]] = []
    ops_left = bytes_left = -1
    for index, group in enumerate(groups):
        size = sum(map(op_size, group))
        if len(group) > ops_left or size > bytes_left:
            if parcels:
                await asyncio.sleep(0)
            parcels.append([])
            ops_left, bytes_left = _OPS_MAX, _BYTES_MAX
        parcels[-1].append(index)
        ops_left -= len(group)
        bytes_left -= size
    return parcels
