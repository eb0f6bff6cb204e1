"""Which broker is the controller: the one whose session has `/controller`, under an epoch that nobody had before.

The node and the conditional write of `/controller_epoch` are one transaction, so that of two that try at once one gets
neither. From then on each write of the controller is conditional on the epoch's version (`writing.py`): a controller
that was replaced, and has not noticed, changes nothing more. Brokers that did not get it watch the node, and try when
it goes. So does the one that has it: an operator who takes the node away by hand wants another controller.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import NamedTuple

from ottla.coordination.errors import BadVersion, MultiFailed, NodeExists, NoNode
from ottla.coordination.interface import Coordination, Create, SetData, WatchEvent
from ottla.coordination.znodes import (
    CONTROLLER,
    CONTROLLER_EPOCH,
    ControllerRegistration,
    decode_epoch,
    encode_controller,
    encode_epoch,
)
from ottla.model import BrokerId, Epoch


class ControllerClaim(NamedTuple):
    epoch: Epoch
    #: The version of /controller_epoch that goes with it: every write is conditional on it.
    epoch_version: int


async def compete(
    coordination: Coordination, broker_id: BrokerId, now_ms: int, on_change: Callable[[WatchEvent], None]
) -> ControllerClaim | None:
    """Becomes the controller where there is none. None: another one is, or something has just changed.

    `on_change` is called when it is worth another try, and to the one that became the controller when it is that no
    more. It may be called for what this call itself has done. Raises CoordinationError.
    """
    stat = await coordination.exists(CONTROLLER, on_change)
    if stat is not None:
        if stat.ephemeral_owner == coordination.session.id:
            # Our own, from a claim whose answer was lost, or from an epoch that another one has raised since.
            with suppress(NoNode, BadVersion):
                await coordination.delete(CONTROLLER, stat.version)
        return None
    while True:
        try:
            return await _claim(coordination, broker_id, now_ms)
        except MultiFailed as failed:
            if isinstance(failed.error, NodeExists):
                return None
            if not isinstance(failed.error, BadVersion | NoNode):
                raise failed.error from failed


async def holds(coordination: Coordination, on_change: Callable[[WatchEvent], None]) -> bool:
    """Whether this session has the controller's node still; `on_change` is called when it has it no more."""
    stat = await coordination.exists(CONTROLLER, on_change)
    return stat is not None and stat.ephemeral_owner == coordination.session.id


async def _claim(coordination: Coordination, broker_id: BrokerId, now_ms: int) -> ControllerClaim:
    """Raises MultiFailed: of NodeExists where another one has it, of BadVersion where the epoch has risen meanwhile."""
    try:
        data, stat = await coordination.get(CONTROLLER_EPOCH)
    except NoNode:
        with suppress(NodeExists):
            await coordination.create(CONTROLLER_EPOCH, encode_epoch(0))
        data, stat = await coordination.get(CONTROLLER_EPOCH)
    epoch = Epoch(decode_epoch(CONTROLLER_EPOCH, data) + 1)
    claim = Create(CONTROLLER, encode_controller(ControllerRegistration(broker_id, now_ms)), ephemeral=True)
    raised = SetData(CONTROLLER_EPOCH, encode_epoch(epoch), stat.version)
    await coordination.multi([claim, raised])
    return ControllerClaim(epoch, stat.version + 1)
