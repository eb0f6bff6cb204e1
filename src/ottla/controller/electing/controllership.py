"""Which broker is the controller: the one whose session has `/controller`, under an epoch that nobody had before.

The node and the conditional write of `/controller_epoch` are one transaction, so that of two that try at once one gets
neither. From then on each write of the controller is conditional on the epoch's version (`writing.py`): a controller
that was replaced, and has not noticed, changes nothing more. It is lost for good when its session is over, or when a
write finds another epoch.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import NamedTuple

from ottla.coordination.errors import CoordinationError, MultiFailed, NodeExists, NoNode
from ottla.coordination.interface import Coordination, Create, SessionEvent, SetData
from ottla.coordination.znodes import (
    CONTROLLER,
    CONTROLLER_EPOCH,
    ControllerRegistration,
    decode_controller,
    decode_epoch,
    encode_controller,
    encode_epoch,
)
from ottla.model import BrokerId, Epoch


class ControllerElsewhere(CoordinationError):
    """Another broker is the controller."""


class ControllerClaim(NamedTuple):
    epoch: Epoch
    #: The version of /controller_epoch that goes with it: every write is conditional on it.
    epoch_version: int


class Controllership:
    def __init__(self, coordination: Coordination, broker_id: BrokerId, on_lost: Callable[[str], None]) -> None:
        """`on_lost` is called once, with the reason."""
        self._coordination = coordination
        self._broker_id = broker_id
        self._on_lost = on_lost
        #: Why this broker is no controller any more.
        self.lost: str | None = None

    async def claim(self, now_ms: int) -> ControllerClaim:
        """Raises ControllerElsewhere."""
        claim = await claim_controller(self._coordination, self._broker_id, now_ms)
        self._coordination.listen(self._session_event)
        return claim

    def lose(self, why: str) -> None:
        if self.lost is None:
            self.lost = why
            self._on_lost(why)

    def _session_event(self, event: SessionEvent) -> None:
        if event is SessionEvent.EXPIRED:
            self.lose("the session with the coordination tree is over")


async def claim_controller(coordination: Coordination, broker_id: BrokerId, now_ms: int) -> ControllerClaim:
    """Becomes the controller, under an epoch that no controller had before."""
    try:
        data, stat = await coordination.get(CONTROLLER_EPOCH)
    except NoNode:
        with suppress(NodeExists):
            await coordination.create(CONTROLLER_EPOCH, encode_epoch(0))
        data, stat = await coordination.get(CONTROLLER_EPOCH)
    epoch = Epoch(decode_epoch(CONTROLLER_EPOCH, data) + 1)
    claim = Create(CONTROLLER, encode_controller(ControllerRegistration(broker_id, now_ms)), ephemeral=True)
    raised = SetData(CONTROLLER_EPOCH, encode_epoch(epoch), stat.version)
    try:
        await coordination.multi([claim, raised])
    except MultiFailed as failed:
        raise ControllerElsewhere(await _who_is_controller(coordination)) from failed
    return ControllerClaim(epoch, stat.version + 1)


async def _who_is_controller(coordination: Coordination) -> str:
    try:
        data, _ = await coordination.get(CONTROLLER)
    except NoNode:
        return "another broker raised the controller's epoch at the same time"
    return f"broker {decode_controller(CONTROLLER, data).broker_id} is the controller"
