"""Apache Kafka as the source and as the target: transactions, compaction, keys and all codecs."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest
from confluent_kafka import Producer as Librdkafka
from tools.kafka_server import QUICK_KAFKA_FLAGS, kafka_server

from ottla.client.admin.admin import Admin
from ottla.client.consuming.consumer import Consumer
from ottla.client.producing.producer import Producer
from ottla.client.records import ConsumerRecord
from ottla.client.wire.listed_offset import LATEST
from ottla.model import TopicPartition
from ottla.records.builder import BatchBuilder
from ottla.records.compression import GZIP, LZ4, SNAPPY
from ottla.testing.in_process import InProcessBroker
from tests.conftest import WatchServer
from tests.mirror.flows import Clusters, contents, create, mirror, mirroring, produce, records_of, until
from tests.records.generated_records import NOW
from tests.records.test_old_messages import RECORDS, written
from tests.searches import some

pytestmark = [pytest.mark.java, pytest.mark.xdist_group("kafka-tools")]

SECONDS_MAX = 60


#: What its brokers wrote before 2017 lies in this topic: messages of magic 0 and 1, and a batch behind them.
OLD = "old"


@pytest.fixture(scope="module")
def kafka(tmp_path_factory: pytest.TempPathFactory, kafka_jars: Path, watch_server: WatchServer) -> Iterator[str]:
    properties = {
        "group.initial.rebalance.delay.ms": "0",
        "log.cleaner.backoff.ms": "100",
        "log.retention.ms": "-1",  # OLD is of years ago, and Kafka looks at it after 30 s
        "offsets.topic.replication.factor": "1",
        "offsets.topic.num.partitions": "1",
        "transaction.state.log.replication.factor": "1",
        "transaction.state.log.min.isr": "1",
        "transaction.state.log.num.partitions": "1",
    }
    data = tmp_path_factory.mktemp("mirror") / "kafka"
    server = kafka_server(data, folder=kafka_jars, properties=properties, flags=QUICK_KAFKA_FLAGS)
    with watch_server(server), server:
        asyncio.run(create(server.bootstrap, OLD))
        server.stop()
        (folder,) = data.rglob(f"{OLD}-0")
        for file in folder.glob("*.*index"):
            file.unlink()
        (folder / f"{0:020}.log").write_bytes(b"".join(old_messages()))
        server.start()
        yield server.bootstrap


def old_messages() -> Iterator[bytes]:
    """As an upgraded cluster has them."""
    for number, (magic, codec) in enumerate([(0, 0), (0, GZIP), (1, SNAPPY), (1, LZ4), (1, 0)]):
        yield written(magic, codec, 4 * number)
    builder = BatchBuilder()
    builder.append(9, b"k", b"newer")
    yield builder.build(base_offset=20)


@pytest.fixture
def from_kafka(kafka: str, target_broker: InProcessBroker) -> Clusters:
    return Clusters(kafka, target_broker.bootstrap)


@pytest.fixture
def to_kafka(kafka: str, source_broker: InProcessBroker) -> Clusters:
    return Clusters(source_broker.bootstrap, kafka)


def write_transactions(bootstrap: str, topic: str) -> None:
    """Of two producers, open at the same time, in between records of none; half are aborted."""
    chance = Random(3)
    writers = [
        Librdkafka(
            {"bootstrap.servers": bootstrap, "transactional.id": name, "compression.type": codec, "linger.ms": 0}
        )
        for name, codec in (("one", "none"), ("other", "lz4"))
    ]
    plain = Librdkafka({"bootstrap.servers": bootstrap, "linger.ms": 0})
    for writer in writers:
        writer.init_transactions(SECONDS_MAX)
        writer.begin_transaction()
    for number in range(12):
        for writer in (*writers, plain):
            for _ in range(chance.randrange(4)):
                writer.produce(topic, b"%d" % number, b"k%d" % number, partition=0)
            assert writer.flush(SECONDS_MAX) == 0
        ended = chance.choice(writers)
        (ended.commit_transaction if chance.randrange(2) else ended.abort_transaction)(SECONDS_MAX)
        ended.begin_transaction()
    for writer in writers:
        writer.abort_transaction(SECONDS_MAX)


async def committed_records(bootstrap: str, topic: str) -> list[ConsumerRecord]:
    tp = TopicPartition(topic, 0)
    found: list[ConsumerRecord] = []
    settings = {"isolation_level": "read_committed", "auto_offset_reset": "earliest"}
    async with Consumer(bootstrap_servers=bootstrap, **settings) as consumer:
        end = (await consumer.end_offsets([tp]))[tp]
        consumer.assign([tp])
        while await consumer.position(tp) < end:
            found += await consumer.poll(timeout_ms=1_000)
    return found


async def ends(bootstrap: str, tp: TopicPartition) -> int:
    async with Admin(bootstrap_servers=bootstrap) as admin:
        return (await admin.list_offsets({tp: LATEST}))[tp].offset


async def check_every_offset(clusters: Clusters, topic: str, wanted: list[ConsumerRecord], **more: str) -> None:
    """The copy has exactly these records of the source, and every offset's place is that of the next one."""
    copy = await records_of(clusters.target, f"A.{topic}")
    assert contents(copy) == contents(wanted)
    assert [one.offset for one in copy] == list(range(len(copy)))
    tp = TopicPartition(topic, 0)
    end = await ends(clusters.source, tp)
    async with mirroring(clusters, topics=topic, **more) as flow:
        await until(lambda: tp in flow.copies and flow.copies[tp].copied == end, "placed at the end")
        one = flow.copies[tp]
        for offset in range(end + 1):
            following = sum(record.offset < offset for record in wanted)
            assert one.pairs.target_of(offset, one.copied, one.end) == following, offset


async def test_transactions_are_copied_as_their_readers_see_them(from_kafka: Clusters) -> None:
    await create(from_kafka.source, "tx")
    await asyncio.to_thread(write_transactions, from_kafka.source, "tx")
    committed = await committed_records(from_kafka.source, "tx")
    everything = await records_of(from_kafka.source, "tx")
    assert 0 < len(committed) < len(everything)
    only = {"A.consumer.isolation.level": "read_committed"}
    flow = await mirror(from_kafka, topics="tx", **only)
    assert flow.stopped == []
    await check_every_offset(from_kafka, "tx", committed, **only)


async def test_all_records_are_copied_where_nobody_asks_for_committed_ones(from_kafka: Clusters) -> None:
    await create(from_kafka.source, "tx-all")
    await asyncio.to_thread(write_transactions, from_kafka.source, "tx-all")
    assert (await mirror(from_kafka, topics="tx-all")).stopped == []
    await check_every_offset(from_kafka, "tx-all", await records_of(from_kafka.source, "tx-all"))


@pytest.mark.parametrize("codec", some(["none", "gzip", "snappy", "lz4", "zstd"], "zstd"))
async def test_kafka_takes_the_copy_of_ours_under_any_codec(to_kafka: Clusters, codec: str) -> None:
    topic = f"ours-{codec}"
    await create(to_kafka.source, topic)
    for run in range(2):
        await produce(to_kafka.source, topic, [b"%d %d" % (run, n) for n in range(100)], 0, codec)
        assert (await mirror(to_kafka, topics=topic)).stopped == []
    await check_every_offset(to_kafka, topic, await records_of(to_kafka.source, topic))


async def test_kafka_takes_a_compacted_topic_without_its_gaps(to_kafka: Clusters) -> None:
    settings = {"cleanup_policy": "compact", "segment_bytes": "20000", "min_cleanable_dirty_ratio": "0.01"}
    await create(to_kafka.source, "gaps", **settings)
    tp = TopicPartition("gaps", 0)
    async with asyncio.timeout(120):
        while len(await records_of(to_kafka.source, "gaps")) == (await ends(to_kafka.source, tp)):
            async with Producer(bootstrap_servers=to_kafka.source, batch_size=3_000, linger_ms=5) as producer:
                for number in range(400):
                    await producer.send("gaps", b"%d" % number + bytes(100), b"%d" % (number % 17), partition=0)
    # Kafka's own cleaner would take from the copy what is compared here.
    excluded = {"config_properties_exclude": "cleanup.policy, segment.bytes"}
    original = await records_of(to_kafka.source, "gaps")
    assert (await mirror(to_kafka, topics="gaps", **excluded)).stopped == []
    copy = await records_of(to_kafka.target, "A.gaps")
    assert contents(copy)[-17:] == contents(original)[-17:]
    assert len(copy) < await ends(to_kafka.source, tp)


async def test_messages_from_before_batches_are_copied(from_kafka: Clusters) -> None:
    assert (await mirror(from_kafka, topics=OLD)).stopped == []
    await check_every_offset(from_kafka, OLD, await records_of(from_kafka.source, OLD))
    copied = await records_of(from_kafka.target, f"A.{OLD}")
    times = [-1] * 8 + [NOW, NOW + 1, NOW + 2, NOW + 3] * 3
    assert [(one.key, one.value) for one in copied] == [*RECORDS * 5, (b"k", b"newer")]
    assert [one.timestamp for one in copied] == [*times, 9]


async def test_a_group_is_moved_to_kafka(to_kafka: Clusters) -> None:
    await create(to_kafka.source, "moved")
    await produce(to_kafka.source, "moved", [b"%d" % n for n in range(30)])
    async with Admin(bootstrap_servers=to_kafka.source) as admin:
        await admin.alter_group_offsets("movers", {TopicPartition("moved", 0): 12})
    await mirror(to_kafka, topics="moved", groups="movers", sync_group_offsets_enabled="true")
    async with Admin(bootstrap_servers=to_kafka.target) as admin:
        found = await admin.list_group_offsets("movers")
    assert {tp: one.offset for tp, one in found.items()} == {TopicPartition("A.moved", 0): 12}
