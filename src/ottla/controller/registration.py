"""What a broker puts into the tree for as long as it lives: itself, and that it is the controller."""

from __future__ import annotations

from contextlib import suppress
from typing import NamedTuple

from ottla.coordination.errors import CoordinationError, MultiFailed, NodeExists, NoNode
from ottla.coordination.interface import Coordination, Create, SetData
from ottla.coordination.znodes import (
    CONTROLLER,
    CONTROLLER_EPOCH,
    BrokerRegistration,
    ControllerRegistration,
    broker_path,
    decode_controller,
    decode_epoch,
    encode_broker,
    encode_controller,
    encode_epoch,
)
from ottla.model import BrokerId, Epoch


class BrokerIdInUse(CoordinationError):
    """Another live broker is registered under this id."""


class ControllerElsewhere(CoordinationError):
    """Another broker is the controller."""


class ControllerClaim(NamedTuple):
    epoch: Epoch
    #: The version of /controller_epoch that goes with it: every write is conditional on it.
    epoch_version: int


async def register_broker(coordination: Coordination, broker_id: BrokerId, registration: BrokerRegistration) -> int:
    """Returns the broker's epoch."""
    path = broker_path(broker_id)
    data = encode_broker(registration)
    try:
        return (await coordination.create(path, data, ephemeral=True)).stat.czxid
    except NodeExists:
        stat = await coordination.exists(path)
    if stat is not None and stat.ephemeral_owner == coordination.session.id:
        # Our own, from before a connection was lost on the way.
        return (await coordination.set(path, data)).czxid
    raise BrokerIdInUse(
        f"a live broker is registered as {broker_id} already: give this one another broker.id, or stop the other one"
    )


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
