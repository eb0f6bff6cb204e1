"""What a broker puts into the tree for as long as it lives: itself."""

from __future__ import annotations

from ottla.coordination.errors import CoordinationError, NodeExists
from ottla.coordination.interface import Coordination
from ottla.coordination.znodes import BrokerRegistration, broker_path, encode_broker
from ottla.model import BrokerId


class BrokerIdInUse(CoordinationError):
    """Another live broker is registered under this id."""


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
