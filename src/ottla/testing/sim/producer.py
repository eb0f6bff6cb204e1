"""A producer as real clients are: idempotent, five requests in flight, every batch sent again until it is acknowledged.

A batch keeps its records and its sequence however often it is sent. After a fault everything that is not acknowledged
is sent again in its order. What would be fatal to a real client is a fault of the broker here.

Each partition's batches are a lane, which goes to the broker that leads it and, when all in flight is answered or lost,
to the next one. Lanes of one broker share its connection and their requests.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any, Final, Protocol

from ottla.model import ErrorCode, TopicPartition
from ottla.ports import Clock
from ottla.protocol.generated.init_producer_id import InitProducerIdRequest
from ottla.protocol.generated.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from ottla.records.record import Record, encode_batch
from ottla.testing.sim.history import History, HistoryFault
from ottla.testing.sim.routing import MOVED
from ottla.testing.sim.wire import Client, Unreachable, Wire

IN_FLIGHT_MAX: Final = 5
#: A pause that was drawn before `hurry` is not to outlast the end of a schedule.
PAUSE_S_MAX: Final = 10.0
#: What a client tries again after; a sequence error is one only while an earlier batch is undecided.
RETRIABLE: Final = frozenset(
    {
        ErrorCode.KAFKA_STORAGE_ERROR,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.LEADER_NOT_AVAILABLE,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.REQUEST_TIMED_OUT,
        ErrorCode.NOT_ENOUGH_REPLICAS,
        ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        *MOVED,
    }
)
#: What comes after these failures is not known to be another leader's business, but may be.
_BACK_OFF_S: Final = (0.01, 0.2)


class Routes(Protocol):
    """Who leads what: a `ClusterClient`, or a `Client` where there is one broker."""

    @property
    def name(self) -> str: ...

    async def leader_of(self, tp: TopicPartition) -> int: ...

    def broker(self, broker: int) -> Client: ...

    def forget(self, tp: TopicPartition) -> None: ...

    def epoch_of(self, tp: TopicPartition) -> int: ...

    async def ask(self, message: Any, version: int) -> Any: ...

    async def ask_leader(self, tp: TopicPartition, message: Any, version: int) -> Any: ...


@dataclass(slots=True, eq=False)
class SentBatch:
    tp: TopicPartition
    values: list[bytes]
    sequence: int
    timestamp: int
    #: Counts the batches of its lane.
    number: int


@dataclass(slots=True, eq=False)
class Lane:
    """One partition's batches: those that were sent and not acknowledged, in order, and what is left to make."""

    tp: TopicPartition
    left: int
    unacknowledged: deque[SentBatch] = field(default_factory=deque)
    #: How many of those are in flight; they are the first.
    in_flight: int = 0
    #: Something in flight failed: nothing more is sent before all of it is answered.
    rewinding: bool = False
    #: The broker that it was led by leads it no more.
    moved: bool = False
    #: Something of it was acknowledged. Until then one batch is in flight at a time: a broker that knows nothing of a
    #: producer takes any sequence, and if the first batch failed would take the second (KAFKA-14359).
    begun: bool = False
    sequence: int = 0
    made: int = 0
    batches: int = 0

    @property
    def done(self) -> bool:
        return not (self.left or self.unacknowledged)


InFlight = tuple["asyncio.Future[Any]", list[tuple[Lane, SentBatch]]]


class IdempotentProducer:
    """Writes `count` values to each partition, and ends when all are acknowledged."""

    def __init__(
        self,
        client: Routes,
        clock: Clock,
        history: History,
        random: Random,
        partitions: Sequence[TopicPartition],
        count: int,
        *,
        acks: int = -1,
        version: int = 9,
        padding: int = 0,
        gives_up: bool = False,
        certain: bool = True,
        pause_s: float = 0.006,
    ) -> None:
        self.name = client.name
        #: Between two requests, on the average.
        self._pause_s = pause_s
        #: Whether what is acknowledged must be there in the end.
        self._certain = certain
        #: Whether a gap in the sequence ends a partition's load: without a flush the broker may have lost a batch that
        #: it acknowledged, and then has to say so. Nothing of what was acknowledged may be missing all the same.
        self._gives_up = gives_up
        self.acks = acks
        self.version = version
        self.errors: dict[ErrorCode, int] = {}
        self._client = client
        self._clock = clock
        self._history = history
        self._random = random
        self._padding = padding
        self._lanes = [Lane(tp, count) for tp in partitions]
        self._producer_id = -1
        self._epoch = -1

    def hurry(self) -> None:
        """What is left is sent as fast as it is taken."""
        self._pause_s = 0.001

    async def run(self) -> None:
        at_work: dict[int, tuple[asyncio.Task[None], list[Lane]]] = {}
        try:
            while not all(lane.done for lane in self._lanes):
                try:
                    if self._producer_id < 0:
                        await self._introduce()
                    await self._assign(at_work)
                except Unreachable:
                    await self._pause()
                    continue
                if not at_work:
                    await self._pause()
                    continue
                tasks = [task for task, _ in at_work.values()]
                await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
                for broker in [broker for broker, (task, _) in at_work.items() if task.done()]:
                    at_work.pop(broker)[0].result()
        finally:
            for task, _ in at_work.values():
                task.cancel()

    async def _pause(self) -> None:
        await asyncio.sleep(self._random.uniform(*_BACK_OFF_S))

    async def _introduce(self) -> None:
        request = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=0)
        answer = await self._client.ask(request, 4)
        if answer.error_code == ErrorCode.NONE:
            self._producer_id, self._epoch = answer.producer_id, answer.producer_epoch
        else:
            self._count(ErrorCode(answer.error_code))
            raise Unreachable("no producer id")

    async def _assign(self, at_work: dict[int, tuple[asyncio.Task[None], list[Lane]]]) -> None:
        """Gives each lane that nobody works on to the one that works for its leader."""
        busy = {id(lane) for _, lanes in at_work.values() for lane in lanes}
        for lane in self._lanes:
            if lane.done or id(lane) in busy:
                continue
            try:
                broker = await self._client.leader_of(lane.tp)
            except Unreachable:
                if at_work:
                    continue  # tried again when the first of the others has ended
                raise
            lane.moved = False
            if broker in at_work and not at_work[broker][0].done():
                at_work[broker][1].append(lane)
            else:
                lanes = [lane]
                at_work[broker] = asyncio.get_running_loop().create_task(self._serve(broker, lanes)), lanes

    async def _serve(self, broker: int, lanes: list[Lane]) -> None:
        """Ends when its lanes are done or moved, or when the connection is lost."""
        try:
            await self._send_all(await self._client.broker(broker).connected(), lanes)
        except Unreachable:
            for lane in lanes:
                lane.in_flight, lane.rewinding = 0, False
                self._client.forget(lane.tp)
            await self._pause()

    async def _send_all(self, wire: Wire, lanes: list[Lane]) -> None:
        flying: deque[InFlight] = deque()
        while True:
            # Those that have moved go as soon as nothing of them is in flight here.
            lanes[:] = [lane for lane in lanes if not lane.done and (lane.in_flight or not lane.moved)]
            if not (flying or lanes):
                return
            chosen = self._choose(lanes) if len(flying) < IN_FLIGHT_MAX else []
            if chosen:
                flying.append((wire.send(self._request(chosen), self.version), chosen))
                if self._random.random() < 0.3:
                    await asyncio.sleep(min(PAUSE_S_MAX, self._random.expovariate(0.3 / self._pause_s)))
            elif flying:
                future, asked = flying.popleft()
                self._take(await wire.answer(future), asked)
            else:
                await asyncio.sleep(0.05)  # all were refused: a client backs off
            if any(lane.moved and not lane.in_flight for lane in lanes) and not flying:
                await self._pause()
                return

    def _choose(self, lanes: Sequence[Lane]) -> list[tuple[Lane, SentBatch]]:
        """The next batch of some partitions, and of each at most one."""
        ready = [lane for lane in lanes if self._may_send(lane)]
        if not ready:
            return []
        chosen = self._random.sample(ready, self._random.randint(1, len(ready)))
        return [(lane, self._next(lane)) for lane in chosen]

    def _may_send(self, lane: Lane) -> bool:
        if lane.rewinding or lane.moved or (lane.in_flight and not lane.begun):
            return False
        if lane.in_flight < len(lane.unacknowledged):
            return True
        # A broker knows a producer's last five batches: what may have to be sent again has to be among them.
        oldest = lane.unacknowledged[0].number if lane.unacknowledged else lane.batches
        return lane.left > 0 and lane.batches - oldest < IN_FLIGHT_MAX

    def _next(self, lane: Lane) -> SentBatch:
        if lane.in_flight == len(lane.unacknowledged):
            size = min(lane.left, self._random.randint(1, 4))
            padding = b"." * self._random.randint(0, self._padding)
            values = [b"%s:%d" % (self.name.encode(), lane.made + place) + padding for place in range(size)]
            lane.unacknowledged.append(SentBatch(lane.tp, values, lane.sequence, self._clock.wall_ms(), lane.batches))
            lane.batches += 1
            lane.left -= size
            lane.made += size
            lane.sequence += size
            self._history.send(lane.tp, self.name, values)
        lane.in_flight += 1
        return lane.unacknowledged[lane.in_flight - 1]

    def _request(self, chosen: Sequence[tuple[Lane, SentBatch]]) -> ProduceRequest:
        topics: dict[str, list[PartitionProduceData]] = {}
        for lane, batch in chosen:
            data = PartitionProduceData(index=lane.tp.partition, records=self._encoded(batch))
            topics.setdefault(lane.tp.topic, []).append(data)
        return ProduceRequest(
            acks=self.acks,
            timeout_ms=2000,
            topic_data=[TopicProduceData(name=name, partition_data=data) for name, data in topics.items()],
        )

    def _encoded(self, batch: SentBatch) -> bytes:
        return encode_batch(
            [Record(place, batch.timestamp, None, value) for place, value in enumerate(batch.values)],
            producer_id=self._producer_id,
            producer_epoch=self._epoch,
            base_sequence=batch.sequence,
        )

    def _take(self, answer: Any, asked: Sequence[tuple[Lane, SentBatch]]) -> None:
        by_partition = {
            TopicPartition(topic.name, partition.index): partition
            for topic in answer.responses
            for partition in topic.partition_responses
        }
        for lane, batch in asked:
            said = by_partition[lane.tp]
            self._decide(lane, batch, ErrorCode(said.error_code), said.base_offset)

    def _decide(self, lane: Lane, batch: SentBatch, error: ErrorCode, offset: int) -> None:
        if not lane.unacknowledged:
            return  # given up
        lane.in_flight -= 1
        if error in {ErrorCode.NONE, ErrorCode.DUPLICATE_SEQUENCE_NUMBER}:
            self._history.acknowledge(
                lane.tp, batch.values, offset if error == ErrorCode.NONE else None, certain=self._certain
            )
            # Not always the first: one before it may have failed, and is sent again as a repetition.
            lane.unacknowledged.remove(batch)
            lane.begun = True
        else:
            self._count(error)
            first = lane.unacknowledged[0] is batch
            if self._gives_up and first and error == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER:
                lane.left = lane.in_flight = 0
                lane.unacknowledged.clear()
                return
            if error not in RETRIABLE and not (error == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER and not first):
                raise HistoryFault(
                    f"{self.name}: {lane.tp}, sequence {batch.sequence} of {batch.values[0]!r}: {error.name}"
                )
            lane.rewinding = True
            if error in MOVED:
                lane.moved = True
                self._client.forget(lane.tp)
        if lane.in_flight == 0:
            lane.rewinding = False

    def _count(self, error: ErrorCode) -> None:
        self.errors[error] = self.errors.get(error, 0) + 1


class PlainProducer:
    """Sends each value once, one at a time, and does not ask again: what is not answered may be there or not.

    Under acks=1 a leader may lose what it has acknowledged, with itself; under acks=0 nothing is acknowledged.
    """

    def __init__(
        self,
        client: Routes,
        clock: Clock,
        history: History,
        random: Random,
        tp: TopicPartition,
        count: int,
        *,
        acks: int = 1,
        certain: bool = True,
        pause_s: float = 0.05,
    ) -> None:
        self.name = client.name
        #: Between two values, on the average.
        self._pause_s = pause_s
        self._client = client
        self._clock = clock
        self._history = history
        self._random = random
        self._tp = tp
        self._count = count
        self._acks = acks
        #: Whether what is acknowledged must be there in the end.
        self._certain = certain

    async def run(self) -> None:
        for number in range(self._count):
            value = b"%s:%d" % (self.name.encode(), number)
            self._history.send(self._tp, self.name, [value])
            try:
                await self._send(value)
            except Unreachable:
                # On the old connection it may still be on its way: what follows must not overtake it.
                await asyncio.sleep(1.0)
            await asyncio.sleep(self._random.expovariate(1 / self._pause_s))

    def hurry(self) -> None:
        """What is left is sent as fast as it is taken."""
        self._pause_s = 0.001

    async def _send(self, value: bytes) -> None:
        data = encode_batch([Record(0, self._clock.wall_ms(), None, value)])
        partition = PartitionProduceData(index=self._tp.partition, records=data)
        topics = [TopicProduceData(name=self._tp.topic, partition_data=[partition])]
        request = ProduceRequest(acks=self._acks, timeout_ms=2000, topic_data=topics)
        if self._acks == 0:
            leader = await self._client.leader_of(self._tp)
            (await self._client.broker(leader).connected()).send(request, 9)
            return
        said = (await self._client.ask_leader(self._tp, request, 9)).responses[0].partition_responses[0]
        if said.error_code == ErrorCode.NONE:
            self._history.acknowledge(self._tp, [value], said.base_offset, certain=self._certain)
        elif said.error_code in MOVED:
            self._client.forget(self._tp)
