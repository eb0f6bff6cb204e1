"""Writes of the controller: multis that only the current controller gets through, cut to what a request may carry."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Final

from ottla.coordination.errors import BadVersion, CoordinationError, MultiFailed
from ottla.coordination.interface import MULTI_OPS_MAX, REQUEST_BYTES_MAX, Check, Coordination, Op
from ottla.coordination.sizes import OP_OVERHEAD, op_size, split
from ottla.coordination.znodes import CONTROLLER_EPOCH

#: Multis on their way at once: what a large request is cut into goes out together and shares a sync of the disk.
IN_FLIGHT_MAX: Final = 64
#: Beside the check of the controller's epoch.
_OPS_MAX: Final = MULTI_OPS_MAX - 1
_BYTES_MAX: Final = REQUEST_BYTES_MAX - 2 * OP_OVERHEAD


class ControllerMoved(CoordinationError):
    """Another controller was elected: its epoch is in the tree."""


class ControllerWrites:
    def __init__(self, coordination: Coordination, epoch_version: int) -> None:
        self._coordination = coordination
        self._fence = Check(CONTROLLER_EPOCH, epoch_version)

    async def write(self, groups: Sequence[Sequence[Op]]) -> list[CoordinationError | None]:
        """Writes groups of operations, each with its own outcome: None, or why nothing of it was written.

        A group that fits is done whole or not at all, and shares a multi with its neighbours; one that does not is
        cut in order, so that a reader that finds its first operation must reckon with the last ones missing.
        """
        packs = _packed(groups)
        outcomes: list[CoordinationError | None] = [None] * len(groups)
        for start in range(0, len(packs), IN_FLIGHT_MAX):
            flying = packs[start : start + IN_FLIGHT_MAX]
            multis = (self._multi([op for _, ops in pack for op in ops]) for pack in flying)
            answers = await asyncio.gather(*multis, return_exceptions=True)
            for pack, answer in zip(flying, answers, strict=True):
                if isinstance(answer, MultiFailed) and len(pack) > 1:
                    # One group spoils a shared multi: each gets its own.
                    for index, ops in pack:
                        outcomes[index] = await self._outcome(ops)
                elif isinstance(answer, MultiFailed):
                    outcomes[pack[0][0]] = outcomes[pack[0][0]] or answer.error
                elif isinstance(answer, BaseException):
                    raise answer
        return outcomes

    async def _outcome(self, ops: Sequence[Op]) -> CoordinationError | None:
        try:
            await self._multi(ops)
        except MultiFailed as failed:
            return failed.error
        return None

    async def _multi(self, ops: Sequence[Op]) -> None:
        try:
            await self._coordination.multi([self._fence, *ops])
        except MultiFailed as failed:
            if failed.index == 0 and isinstance(failed.error, BadVersion):
                raise ControllerMoved(f"another controller is active: {failed.error}") from failed
            raise


_Pack = list[tuple[int, Sequence[Op]]]


def _packed(groups: Sequence[Sequence[Op]]) -> list[_Pack]:
    """Multis, as lists of (group, operations of it)."""
    packs: list[_Pack] = []
    ops_left = bytes_left = 0
    for index, group in enumerate(groups):
        for piece in split(group, ops_max=_OPS_MAX, bytes_max=_BYTES_MAX):
            size = sum(map(op_size, piece))
            whole = len(piece) == len(group)
            if not packs or len(piece) > ops_left or size > bytes_left or not whole:
                packs.append([])
                ops_left, bytes_left = _OPS_MAX, _BYTES_MAX
            packs[-1].append((index, piece))
            # Nothing joins a piece of a group that was cut.
            ops_left, bytes_left = (ops_left - len(piece), bytes_left - size) if whole else (0, 0)
    return packs
