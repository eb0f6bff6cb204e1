"""Leaders that seem to have died, before the controller has said so.

A leader's process that ends closes its connections in the same moment, to its followers and to its clients. Clients
then ask the other brokers at once who leads, some 250 ms before the tree gives the dead broker up. An answer that
still names it has them wait: librdkafka looks again after up to a second, and backs off from an address that refuses
it. LEADER_NOT_AVAILABLE, which is what Kafka answers for a leader that is not alive, has them ask again in 100 ms.

    lost: the leader closed a connection of ours, or its address refuses one ──▶ doubted ──DOUBT_S──▶ believed again
    reached: a connection to it is open ──▶ believed              the controller speaks of brokers ──▶ believed

A doubt changes what clients are sent to and nothing else: not who leads, not the ISR. It is wrong where a leader closes
its followers' connections and keeps its clients', and costs these one pause of theirs then. A link that stalls raises
no doubt: a network that drops packets says nothing about a process.
"""

from __future__ import annotations

import asyncio
from typing import Final

from ottla.metadata.cache import MetadataCache
from ottla.model import BrokerId

#: How long a broker is doubted that does nothing more to deserve it: longer than the pause between two tries to reach
#: it again, so that one whose address refuses connections is doubted for as long as it does.
DOUBT_S: Final = 1.5


class LeaderDoubts:
    def __init__(self, metadata: MetadataCache) -> None:
        self._metadata = metadata
        self._loop = asyncio.get_running_loop()
        self._ends: dict[BrokerId, asyncio.TimerHandle] = {}

    def lost(self, broker: BrokerId) -> None:
        """It closed a connection, or refused one."""
        if broker not in self._metadata.brokers:
            return
        self._stop(broker)
        self._ends[broker] = self._loop.call_later(DOUBT_S, self.reached, broker)
        self._metadata.doubt(broker)

    def reached(self, broker: BrokerId) -> None:
        """A connection to it is open; or it was doubted for long enough."""
        self._stop(broker)
        self._metadata.believe(broker)

    def close(self) -> None:
        for broker in list(self._ends):
            self._stop(broker)

    def _stop(self, broker: BrokerId) -> None:
        timer = self._ends.pop(broker, None)
        if timer is not None:
            timer.cancel()
