"""Tables in compacted topics: keys that are written and deleted again and again, while every replica cleans for itself.

One idempotent producer writes each partition, so that the order of what it sends is the order of the log. Somebody
reads the whole table now and then: for each key it finds the last value that was acknowledged when it began, or a later
one, as far as the replica that is asked shows. In the end every replica's files hold the last value of each key,
whatever was cleaned, when, and by whom.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from random import Random
from typing import Any, Final

from ottla.model import ErrorCode, TopicPartition
from ottla.ports import Clock
from ottla.protocol.generated.fetch import FetchPartition, FetchRequest, FetchTopic
from ottla.records.batch import iterate
from ottla.records.record import Record, decode_batch, encode_batch
from ottla.replication.follower import Follower
from ottla.replication.leader import Leader
from ottla.storage.log.log import Log
from ottla.testing.sim.history import History, HistoryFault
from ottla.testing.sim.observation import replicas_of
from ottla.testing.sim.producer import IdempotentProducer, Lane, SentBatch
from ottla.testing.sim.reader import ReadFault, end_offset, start_offset
from ottla.testing.sim.routing import MOVED, ClusterClient
from ottla.testing.sim.wire import Unreachable
from ottla.testing.sim.world import SimulatedBroker

TABLE: Final = "table"
#: Some segments a schedule; what is deleted is seen for long enough by whoever reads.
CONFIGS: Final[Mapping[str, str]] = {
    "cleanup.policy": "compact",
    "segment.bytes": "2500",
    "min.cleanable.dirty.ratio": "0.01",
    "delete.retention.ms": "8000",
}
#: Of a broker whose cleaner looks often, and whose groups' offsets are cleaned too.
PROPERTIES: Final[Mapping[str, str]] = {
    "log.cleaner.enable": "true",
    "log.cleaner.backoff.ms": "300",
    "log.cleaner.min.cleanable.ratio": "0.01",
    "log.cleaner.delete.retention.ms": "8000",
    "offsets.topic.segment.bytes": "2500",
}
#: A reader that took longer may have missed a deletion that was cleaned away meanwhile.
_READ_S_MAX: Final = 4.0
_KEYS: Final = 13
#: Between two readings.
_PAUSE_S: Final = 3.0

#: Key -> number of the value that stands there; of a deletion as well, until it is cleaned away.
Table = dict[bytes, int]


def _number(value: bytes) -> int:
    return int(value.rpartition(b":")[2].rstrip(b"."))


def _key(number: int) -> bytes:
    return b"k%d" % (number * number % _KEYS)


def _deletes(number: int) -> bool:
    return number % 4 == 3


class TableWriter(IdempotentProducer):
    """Its values have keys, and some delete what is there. A deletion says by a header which one it is.

    One batch is in flight at a time: of a producer a cleaner keeps the last one, and an earlier one that is sent again
    behind a restart is out of order, with Kafka as well.
    """

    def _may_send(self, lane: Lane) -> bool:
        return not lane.in_flight and super()._may_send(lane)

    def _encoded(self, batch: SentBatch) -> bytes:
        records = []
        for place, value in enumerate(batch.values):
            number = _number(value)
            kept = None if _deletes(number) else value
            records.append(Record(place, batch.timestamp, _key(number), kept, (("n", b"%d" % number),)))
        return encode_batch(
            records, producer_id=self._producer_id, producer_epoch=self._epoch, base_sequence=batch.sequence
        )


class Tables:
    def __init__(self, history: History, clock: Clock, random: Random, partitions: int) -> None:
        self._history = history
        self._clock = clock
        self._random = random
        self.partitions = [TopicPartition(TABLE, number) for number in range(partitions)]
        self.writers: list[TableWriter] = []
        #: How often what was done.
        self.events: Counter[str] = Counter()

    def load(self, client: ClusterClient, records: int, pause_s: float) -> TableWriter:
        writer = TableWriter(
            client,
            self._clock,
            self._history,
            self._random,
            self.partitions,
            records,
            padding=self._random.choice((0, 100)),
            pause_s=pause_s,
        )
        self.writers.append(writer)
        return writer

    async def read(self, client: ClusterClient) -> None:
        """Whole tables, for ever."""
        while True:
            await asyncio.sleep(self._random.expovariate(1 / _PAUSE_S))
            tp = self._random.choice(self.partitions)
            acknowledged = dict(self._history.acknowledged[tp])
            began = self._clock.monotonic_ms()
            try:
                found, end = await _read(client, tp)
            except (Unreachable, ReadFault):
                continue
            if self._clock.monotonic_ms() - began < _READ_S_MAX * 1000:
                self.events["tables read"] += 1
                # One that was replaced, and does not know it, may show an older end.
                least: Table = {}
                for value, offset in acknowledged.items():
                    if offset is not None and offset < end:
                        number = _number(value)
                        least[_key(number)] = max(number, least.get(_key(number), -1))
                self._check_reading(tp, found, least)

    def _sent(self, tp: TopicPartition) -> list[int]:
        return [_number(value) for values in self._history.sent[tp].values() for value in values]

    def _check_reading(self, tp: TopicPartition, found: Table, least: Table) -> None:
        sent = self._sent(tp)
        for key, number in least.items():
            there = found.get(key, -1)
            was_deleted = any(_deletes(each) for each in sent if each >= number and _key(each) == key)
            if there < number and not (there < 0 and was_deleted):
                raise HistoryFault(f"{tp}: a reader finds {there} of {key!r}, and {number} was acknowledged before")

    # The end

    def check_replicas(self, brokers: Iterable[SimulatedBroker]) -> None:
        """Raises HistoryFault where a replica has not what it should. All is acknowledged, and nothing is written."""
        for broker in brokers:
            if (replicas := replicas_of(broker)) is None:
                continue
            assert broker.broker is not None
            assert broker.broker.cleaning is not None
            self.events["logs cleaned"] += broker.broker.cleaning.passes
            roles: Sequence[Leader | Follower] = [*replicas.leaders.values(), *replicas.followers.values()]
            for role in roles:
                if role.tp.topic == TABLE:
                    self._check_files(f"{broker.name}, {role.tp}", role.tp, _in_files(broker, role.log))

    def _check_files(self, where: str, tp: TopicPartition, found: Table) -> None:
        last: Table = {}
        for number in self._sent(tp):
            last[_key(number)] = number
        for key, number in last.items():
            there = found.get(key)
            if there != number and not (there is None and _deletes(number)):
                raise HistoryFault(f"{where}: {key!r} is {there}, and was last {number}")

    async def check(self, client: ClusterClient) -> None:
        """As a client finds the tables. Raises HistoryFault; Unreachable and ReadFault where it is too early."""
        for tp in self.partitions:
            found, _ = await _read(client, tp)
            self._check_files(f"a reader of {tp}", tp, found)


async def _read(client: ClusterClient, tp: TopicPartition) -> tuple[Table, int]:
    """Everything to the high watermark of the beginning, and that. Raises Unreachable and ReadFault."""
    end, offset = await end_offset(client, tp), await start_offset(client, tp)
    table: Table = {}
    while offset < end:
        asked = FetchPartition(
            partition=tp.partition,
            current_leader_epoch=client.epoch_of(tp),
            fetch_offset=offset,
            partition_max_bytes=3_000,
        )
        request = FetchRequest(
            max_wait_ms=0, min_bytes=1, max_bytes=3_000, topics=[FetchTopic(topic=tp.topic, partitions=[asked])]
        )
        answer: Any = await client.ask_leader(tp, request, 12)
        answered = answer.responses[0].partitions[0]
        if answered.error_code in MOVED:
            client.forget(tp)
        if answered.error_code != ErrorCode.NONE:
            raise ReadFault(tp, ErrorCode(answered.error_code))
        following = _take(table, bytes(answered.records or b""), offset)
        if following == offset:
            raise HistoryFault(f"{tp}: ends at {end}, and there is nothing at {offset}")
        offset = following
    return table, end


def _in_files(broker: SimulatedBroker, log: Log) -> Table:
    table: Table = {}
    offset = 0
    for segment in log.places.segments:
        offset = _take(table, bytes(broker.ports.disk.content(segment.path())[: segment.size]), offset)
    return table


def _take(table: Table, data: bytes, offset: int) -> int:
    """Puts the records of whole batches into a table. Returns the offset behind them."""
    following = offset
    for at, header in iterate(data, 0, len(data)):
        for record in decode_batch(data, at):
            if record.offset >= offset:
                assert record.key is not None
                table[record.key] = int(dict(record.headers)["n"] or b"")
        following = max(following, header.next_offset)
    return following
