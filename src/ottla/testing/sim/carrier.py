"""Somebody who moves replicas between the log directories of their brokers while these are under load and fail."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterable, Sequence
from random import Random
from typing import Any, Final

from ottla.model import BrokerId, ErrorCode, TopicPartition
from ottla.protocol.generated.alter_replica_log_dirs import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirTopic,
)
from ottla.testing.sim.history import HistoryFault
from ottla.testing.sim.observation import replicas_of
from ottla.testing.sim.routing import ClusterClient
from ottla.testing.sim.trace import Trace
from ottla.testing.sim.wire import Unreachable
from ottla.testing.sim.world import SimulatedBroker

DIRECTORIES: Final = ("/data/a", "/data/b")
PROPERTIES: Final = {"log.dirs": ",".join(DIRECTORIES)}
#: Between two requests, on the average.
_PAUSE_S: Final = 1.5
#: The replica is elsewhere, or its directory fails, or the other one.
_REFUSED: Final = frozenset(
    {
        ErrorCode.REPLICA_NOT_AVAILABLE,
        ErrorCode.KAFKA_STORAGE_ERROR,
        ErrorCode.LOG_DIR_NOT_FOUND,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    }
)


class Carrier:
    def __init__(self, client: ClusterClient, brokers: Sequence[int], random: Random, trace: Trace) -> None:
        self._client = client
        self._brokers = brokers
        self._random = random
        self._trace = trace
        #: How often what was done.
        self.events: Counter[str] = Counter()

    async def run(self, partitions: Sequence[TopicPartition], seconds: float) -> None:
        loop = asyncio.get_running_loop()
        end = loop.time() + seconds
        while loop.time() < end:
            await asyncio.sleep(min(self._random.expovariate(1 / _PAUSE_S), end - loop.time()))
            broker, tp = self._random.choice(self._brokers), self._random.choice(partitions)
            await self._carry(BrokerId(broker), tp, self._random.choice(DIRECTORIES))

    async def _carry(self, broker: BrokerId, tp: TopicPartition, path: str) -> None:
        """Asks once."""
        topic = AlterReplicaLogDirTopic(name=tp.topic, partitions=[tp.partition])
        request = AlterReplicaLogDirsRequest(dirs=[AlterReplicaLogDir(path=path, topics=[topic])])
        try:
            await self._client.refresh()
            answer: Any = await self._client.broker(broker).ask(request, 2)
        except Unreachable:
            return
        error = ErrorCode(answer.results[0].partitions[0].error_code)
        self._trace.say("carrier", f"{tp} of broker {broker} to {path}: {error.name}")
        if error == ErrorCode.NONE:
            self.events["replicas sent to another directory"] += 1
        elif error not in _REFUSED:
            raise HistoryFault(f"move {tp} of broker {broker} to {path}: {error.name}")

    @staticmethod
    def under_way(brokers: Iterable[SimulatedBroker]) -> str | None:
        """A move that goes on; None where all have ended."""
        for broker in brokers:
            replicas = replicas_of(broker)
            for tp in () if replicas is None else replicas.directories.moves:
                return f"{broker.name} moves {tp} to another directory still"
        return None
