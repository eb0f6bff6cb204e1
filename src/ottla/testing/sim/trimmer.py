"""Somebody who deletes records from the beginnings of partitions (DeleteRecords) while they are under load."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Sequence
from random import Random
from typing import Any, Final

from ottla.model import ErrorCode, TopicPartition
from ottla.protocol.generated.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from ottla.testing.sim.history import History, HistoryFault
from ottla.testing.sim.reader import ReadFault, end_offset
from ottla.testing.sim.routing import MOVED, ClusterClient
from ottla.testing.sim.trace import Trace
from ottla.testing.sim.wire import Unreachable

#: Between two deletions, on the average.
_PAUSE_S: Final = 2.0
#: Nobody knows what became of it; or a new leader's watermark is below what the one before has shown.
_UNDECIDED: Final = frozenset(
    {ErrorCode.REQUEST_TIMED_OUT, ErrorCode.KAFKA_STORAGE_ERROR, ErrorCode.OFFSET_OUT_OF_RANGE}
)


class Trimmer:
    def __init__(self, client: ClusterClient, history: History, random: Random, trace: Trace) -> None:
        self._client = client
        self._history = history
        self._random = random
        self._trace = trace
        #: How often what was done.
        self.events: Counter[str] = Counter()

    async def run(self, partitions: Sequence[TopicPartition], seconds: float) -> None:
        loop = asyncio.get_running_loop()
        end = loop.time() + seconds
        while loop.time() < end:
            await asyncio.sleep(min(self._random.expovariate(1 / _PAUSE_S), end - loop.time()))
            try:
                await self._trim(self._random.choice(partitions))
            except (Unreachable, ReadFault):
                continue

    async def _trim(self, tp: TopicPartition) -> None:
        """Asks once: what was asked for may happen at any time from then on."""
        before = self._random.randint(0, await end_offset(self._client, tp))
        self._history.trim(tp, before)
        asked = DeleteRecordsPartition(partition_index=tp.partition, offset=before)
        topic = DeleteRecordsTopic(name=tp.topic, partitions=[asked])
        answer: Any = await self._client.ask_leader(tp, DeleteRecordsRequest(topics=[topic], timeout_ms=5_000), 2)
        answered = answer.topics[0].partitions[0]
        error = ErrorCode(answered.error_code)
        self._trace.say("trimmer", f"{tp} before {before}: {error.name}, {answered.low_watermark}")
        if error == ErrorCode.NONE:
            self.events["records deleted"] += 1
            if answered.low_watermark < before:
                raise HistoryFault(f"{tp}: begins at {answered.low_watermark}, and what is before {before} is deleted")
        elif error in MOVED:
            self._client.forget(tp)
        elif error not in _UNDECIDED:
            raise HistoryFault(f"delete what is before {before} of {tp}: {error.name}")
