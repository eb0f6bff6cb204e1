"""Somebody who changes a setting of topics while they are under load; in the end each replica goes by the last value.

An answer that was lost leaves it open whether, and when, the change was carried out: any such value may be the last.
All replicas have one and the same.
"""

from __future__ import annotations

import asyncio
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from random import Random
from typing import Any, Final

from ottla.model import ErrorCode
from ottla.protocol.generated.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from ottla.replication.follower import Follower
from ottla.replication.leader import Leader
from ottla.testing.sim.history import HistoryFault
from ottla.testing.sim.observation import replicas_of
from ottla.testing.sim.operator import TOPIC_RESOURCE, UNDECIDED
from ottla.testing.sim.routing import ClusterClient
from ottla.testing.sim.trace import Trace
from ottla.testing.sim.wire import Unreachable
from ottla.testing.sim.world import SimulatedBroker

#: No batch of the load is as large as any of the values.
_SETTING: Final = "max.message.bytes"
_FIRST_VALUE: Final = 2_000_000
#: Between two changes, on the average.
_PAUSE_S: Final = 3.0
_SET: Final = 0


class Alterer:
    def __init__(self, client: ClusterClient, random: Random, trace: Trace) -> None:
        self._client = client
        self._random = random
        self._trace = trace
        self._made = 0
        #: By topic: what was acknowledged last, and what nobody answered.
        self._last: dict[str, int] = {}
        self._undecided: dict[str, set[int]] = defaultdict(set)
        #: How often what was done.
        self.events: Counter[str] = Counter()

    async def run(self, topics: Sequence[str], seconds: float) -> None:
        loop = asyncio.get_running_loop()
        end = loop.time() + seconds
        while loop.time() < end:
            await asyncio.sleep(min(self._random.expovariate(1 / _PAUSE_S), end - loop.time()))
            await self._alter(self._random.choice(topics))

    async def _alter(self, topic: str) -> None:
        """Asks once, whichever broker."""
        self._made += 1
        value = _FIRST_VALUE + self._made
        resource = AlterConfigsResource(
            resource_type=TOPIC_RESOURCE,
            resource_name=topic,
            configs=[AlterableConfig(name=_SETTING, config_operation=_SET, value=str(value))],
        )
        try:
            answer: Any = await self._client.ask(IncrementalAlterConfigsRequest(resources=[resource]), 1)
            error = ErrorCode(answer.responses[0].error_code)
        except Unreachable:
            error = ErrorCode.REQUEST_TIMED_OUT
        self._trace.say("alterer", f"{topic} {_SETTING}={value}: {error.name}")
        if error == ErrorCode.NONE:
            self._last[topic] = value
            self.events["settings changed"] += 1
        elif error in UNDECIDED:
            self._undecided[topic].add(value)
        else:
            raise HistoryFault(f"alter {topic}: {error.name}")

    def unheard(self, brokers: Iterable[SimulatedBroker]) -> str | None:
        """Which replica goes by what it may not, or by another value than the others; None where all is well."""
        found: dict[str, dict[str, int]] = defaultdict(dict)
        for broker in brokers:
            if (replicas := replicas_of(broker)) is None:
                continue
            roles: list[Leader | Follower] = [*replicas.leaders.values(), *replicas.followers.values()]
            for role in roles:
                found[role.tp.topic][f"{broker.name}-{role.tp.partition}"] = role.log.config.max_message_bytes
        for topic, last in self._last.items():
            values = {*found[topic].values()}
            if len(values) != 1 or not values <= {last, *self._undecided[topic]}:
                return f"{topic} goes by {_SETTING}={found[topic]}, and {last} was acknowledged last"
        return None
