"""What a broker puts into the tree for as long as it lives: itself.

A broker that was killed and starts again finds what its earlier life has left, until that one's session has run out.
It waits for that: as long as a session can last, and as a ZooKeeper ensemble takes to notice. A broker that has the id
then is another broker. How long that very session lasts no client can ask: the earlier life may have been Kafka's,
which asks for three times as much as this one.
"""

from __future__ import annotations

import asyncio
from typing import Final

from ottla import logs
from ottla.coordination.errors import CoordinationError, NodeExists
from ottla.coordination.interface import Coordination, SessionEvent, WatchEvent
from ottla.coordination.znodes import BrokerRegistration, broker_path, encode_broker
from ottla.model import BrokerId

log = logs.logger("controller")

#: The longest session that an ensemble grants: ZooKeeper's default of `maxSessionTimeout`, twenty ticks of two seconds.
#: Where more is configured for brokers, this one has asked for it as well.
_SESSION_MS_MAX: Final = 40_000
#: An ensemble rounds the end of a session up to its next tick, of two seconds by default, and a member that takes over
#: from another one begins each session anew with that tick.
_NOTICED_MS: Final = 4_000


class BrokerIdInUse(CoordinationError):
    """Another live broker is registered under this id."""


async def register_broker(
    coordination: Coordination, broker_id: BrokerId, registration: BrokerRegistration, wait_ms: int | None = None
) -> int:
    """Returns the broker's epoch.

    An id that is registered is waited for, `wait_ms` at most; None: as long as a session can last. Raises
    BrokerIdInUse, and SessionExpired where this session is over meanwhile.
    """
    path = broker_path(broker_id)
    data = encode_broker(registration)
    if wait_ms is None:
        wait_ms = max(coordination.session.timeout_ms, _SESSION_MS_MAX) + _NOTICED_MS
    try:
        async with asyncio.timeout(wait_ms / 1000) as bound:
            while True:
                epoch = await _registered(coordination, path, data, wait_ms)
                if epoch is not None:
                    return epoch
    except TimeoutError:
        if not bound.expired():
            raise
    raise BrokerIdInUse(
        f"a live broker is registered as {broker_id} already: give this one another broker.id, or stop the other one"
    )


async def _registered(coordination: Coordination, path: str, data: bytes, wait_ms: int) -> int | None:
    """The broker's epoch; None: another session has the node, and it has changed meanwhile."""
    try:
        return (await coordination.create(path, data, ephemeral=True)).stat.czxid
    except NodeExists:
        pass
    changed = asyncio.Event()

    def has_changed(_: WatchEvent) -> None:
        changed.set()

    def is_over(event: SessionEvent) -> None:
        if event is SessionEvent.EXPIRED:
            changed.set()

    stat = await coordination.exists(path, has_changed)
    if stat is None:
        return None
    if stat.ephemeral_owner == coordination.session.id:
        # Our own, from before a connection was lost on the way.
        return (await coordination.set(path, data)).czxid
    log.info(
        "the broker's id is registered still: waiting for the end of that session",
        path=path,
        seconds_at_most=wait_ms // 1000,
    )
    coordination.listen(is_over)  # no watch of it is called any more then
    await changed.wait()
    return None
