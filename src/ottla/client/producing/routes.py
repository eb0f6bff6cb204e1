"""The topics that a producer writes to: their partitions as the metadata has them, and where records without a key go.

A topic that no record went to for `metadata.max.idle.ms`, and none waits for, is forgotten, and with it what the
metadata keeps of it.
"""

from __future__ import annotations

from typing import Final

from ottla.client.errors import UnknownTopicOrPartition
from ottla.client.producing.queues import PartitionQueue
from ottla.client.settings import ProducerSettings
from ottla.client.wire.cluster import Cluster
from ottla.client.wire.metadata import Topic
from ottla.client.wire.world import ClientPorts
from ottla.records.batch import HEADER_SIZE

#: A partition that is in no broker's metadata after this long is a mistake of the caller's.
_GROWTH_MS_MAX: Final = 1_000


class TopicRoute:
    """A topic as the producer writes to it."""

    __slots__ = ("last_used_ms", "queues", "room", "sticky", "topic", "used")

    def __init__(self, topic: Topic) -> None:
        self.topic = topic
        self.queues: dict[int, PartitionQueue] = {}
        #: The partition that records without a key go to now, and how many bytes it takes before another's turn.
        self.sticky = -1
        self.room = 0
        self.used = True
        self.last_used_ms = 0


class TopicRoutes:
    def __init__(self, settings: ProducerSettings, cluster: Cluster, world: ClientPorts) -> None:
        self._settings = settings
        self._cluster = cluster
        self._world = world
        #: By the topic's name; for a look at what needs no wait.
        self.known: dict[str, TopicRoute] = {}
        cluster.on_change.append(self._on_metadata)

    async def find(self, topic: str, partition: int | None) -> TopicRoute:
        """The route of a topic that has this partition, waiting for it up to `max.block.ms`."""
        found = await self._cluster.topic(topic, self._settings.max_block_ms)
        route = self._kept(found)  # also where it lacks the partition: what has no route is never forgotten
        if partition is not None and partition >= len(found.partitions):
            route = self._kept(await self._grown(topic, partition))
        return route

    def _kept(self, topic: Topic) -> TopicRoute:
        route = self.known.get(topic.name)
        if route is None:
            route = self.known[topic.name] = TopicRoute(topic)
        route.topic = topic
        route.used = True
        return route

    def taken_up(self, route: TopicRoute) -> TopicRoute:
        """The route for its topic behind a wait, in which it may have been forgotten: then it is kept again."""
        name = route.topic.name
        found = self.known.get(name)
        if found is None:
            found = self.known[name] = route
            route.used = True
            self._cluster.want([name])
            self._cluster.request_update()
        return found

    async def _grown(self, topic: str, partition: int) -> Topic:
        """The topic when it has this partition: it may have grown, and brokers hear of that at different times."""

        async def attempt() -> Topic:
            await self._cluster.updated()
            found = self._cluster.metadata.topics.get(topic)
            count = 0 if found is None else len(found.partitions)
            if found is None or partition >= count:
                raise UnknownTopicOrPartition(f"{topic} has no partition {partition}: it has {count}, numbered from 0")
            return found

        return await self._cluster.retrying(attempt, min(_GROWTH_MS_MAX, self._settings.max_block_ms))

    def sticky(self, route: TopicRoute, cost: int) -> int:
        """The partition whose turn it is: it stays for a batch's worth of bytes, so that batches become full."""
        route.room -= cost
        if route.room < 0 or route.sticky < 0:
            count = len(route.topic.partitions)
            led = route.topic.led or range(count)
            choices = [one for one in led if one != route.sticky] or [route.sticky]
            route.sticky = choices[self._world.entropy.below(len(choices))]
            route.room = self._settings.batch_size - HEADER_SIZE - cost
        return route.sticky

    def _on_metadata(self) -> None:
        now_ms = self._world.clock.monotonic_ms()
        for name, route in list(self.known.items()):
            if route.used or any(queue.waiting or queue.on_wire for queue in route.queues.values()):
                route.used = False
                route.last_used_ms = now_ms
            elif now_ms - route.last_used_ms > self._settings.metadata_max_idle_ms:
                del self.known[name]
                self._cluster.forget([name])
                continue
            known = self._cluster.metadata.topics.get(name)
            if known is not None:
                route.topic = known
                for gone in [place for place in route.queues if place >= len(known.partitions)]:
                    # The topic was deleted and made again with fewer: its records are asked about anew.
                    del route.queues[gone]
