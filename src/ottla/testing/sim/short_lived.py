"""Topics that come, are written to, grow and go beside the load; their names come again with other topics under them.

Records are sent to a topic by its id, so that none can end in another topic of the same name. What was acknowledged
under acks=all is there as long as the topic is, and nothing else is that was sent to an earlier topic of its name.
"""

from __future__ import annotations

import asyncio
from collections import Counter, defaultdict
from random import Random
from typing import Any, Final

from ottla.model import ErrorCode, TopicPartition
from ottla.ports import Clock
from ottla.protocol.generated.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from ottla.records.record import Record, encode_batch
from ottla.testing.sim.history import HistoryFault
from ottla.testing.sim.operator import Operator
from ottla.testing.sim.reader import read_all
from ottla.testing.sim.routing import ClusterClient
from ottla.testing.sim.wire import Unreachable

_NAMES: Final = 3
#: Records that a topic gets after each change of it: enough that a log which is gone shows.
_RECORDS: Final = 4
_BY_ID_VERSION: Final = 13


class ShortLivedTopics:
    def __init__(self, operator: Operator, client: ClusterClient, clock: Clock, random: Random) -> None:
        self.operator = operator
        self._client = client
        self._clock = clock
        self._random = random
        self._made = 0
        #: Acknowledged values by topic id and partition.
        self._written: dict[bytes, dict[int, set[bytes]]] = defaultdict(lambda: defaultdict(set))
        #: All that was sent, with or without an answer, by topic id and partition.
        self._sent: dict[bytes, dict[int, set[bytes]]] = defaultdict(lambda: defaultdict(set))
        #: How often what was done.
        self.events: Counter[str] = Counter()

    async def run(self, seconds: float) -> None:
        random, operator, loop = self._random, self.operator, asyncio.get_running_loop()
        end = loop.time() + seconds
        while loop.time() < end:
            name = f"x{random.randrange(_NAMES)}"
            while name in operator.leaving and name not in operator.topics:
                name += "x"
            known = operator.topics.get(name)
            if known is None:
                await operator.create(name, random.randint(1, 3), {"min.insync.replicas": "1"})
                self.events["topics made"] += 1
            elif random.random() < 0.5:
                await operator.delete(name)
                self.events["topics ended"] += 1
                continue  # often the next one has this name while brokers that are away still have its logs
            else:
                await operator.grow(name, known.partitions + 1)
                self.events["topics grown"] += 1
            await self._write(name)
            # Never beyond the end: the time after it is the cluster's, to become well in.
            await asyncio.sleep(min(random.expovariate(1 / 5.0), end - loop.time()))

    async def _write(self, name: str) -> None:
        """Each record once: nobody asks again for one whose answer is missing."""
        topic = self.operator.topics[name]
        if not topic.id:
            return
        for _ in range(_RECORDS):
            tp = TopicPartition(name, self._random.randrange(topic.partitions))
            try:
                await self._append(tp, topic.id)
            except Unreachable:
                await asyncio.sleep(self._random.uniform(0.05, 0.5))

    async def _append(self, tp: TopicPartition, topic_id: bytes) -> None:
        self._made += 1
        value = b"%s:%d" % (str(tp).encode(), self._made)
        self._sent[topic_id][tp.partition].add(value)
        data = encode_batch([Record(0, self._clock.wall_ms(), None, value)])
        topic = TopicProduceData(
            topic_id=topic_id, partition_data=[PartitionProduceData(index=tp.partition, records=data)]
        )
        request = ProduceRequest(acks=-1, timeout_ms=2_000, topic_data=[topic])
        answer: Any = await self._client.ask_leader(tp, request, _BY_ID_VERSION)
        said = answer.responses[0].partition_responses[0]
        if said.error_code == ErrorCode.NONE:
            self._written[topic_id][tp.partition].add(value)
            self.events["records by topic id"] += 1
        else:
            self._client.forget(tp)

    async def check(self, reader: ClusterClient) -> None:
        """Raises HistoryFault, Unreachable and ReadFault."""
        for name, topic in self.operator.topics.items():
            for partition in range(topic.partitions):
                found = {value for _, value in await read_all(reader, TopicPartition(name, partition))}
                if missing := self._written[topic.id][partition] - found:
                    raise HistoryFault(f"{name}-{partition}: acknowledged, and gone: {sorted(missing)[:3]}")
                if strange := found - self._sent[topic.id][partition]:
                    raise HistoryFault(f"{name}-{partition}: of an earlier topic of that name: {sorted(strange)[:3]}")
