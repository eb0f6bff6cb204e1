"""Nothing in the loop waits for a disk: what clients do makes, syncs and writes files beside the logs in workers only.

A broker serves clients that do everything that reaches its logs, and each operation of its disk that is asked for on
the loop's thread is counted with who asked. What may be asked for there stands in ALLOWED, with why.
"""

from __future__ import annotations

import dataclasses
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import pytest
from tests.handlers.frames import fetch, values
from tests.server.conftest import BrokerThread
from tests.server.watched_disk import watched

from ottla.broker.broker import Broker
from ottla.client.sync import Admin, Consumer, Producer
from ottla.config import Config
from ottla.handlers.fetch import reading
from ottla.handlers.fetch.waiting import COLD_READS_MAX
from ottla.model import ErrorCode, TopicPartition
from ottla.ports.real import real_ports
from ottla.protocol.generated.describe_producers import (
    DescribeProducersRequest,
    DescribeProducersResponse,
    TopicRequest,
)
from ottla.protocol.generated.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic

_OPEN_FILE: Final = "a file that is open: the system's memory takes it, or has it"
_ASKS: Final = "asks whether it would wait, so as not to"
#: Operation, who asks, and why that does not wait for the medium.
ALLOWED: Final = {
    ("append", "storage.log.staging.Staging.write"): _OPEN_FILE,
    ("append", "coordination.journal.JournalFile.append"): _OPEN_FILE,
    ("close", "storage.log.indexes.segment_file.SegmentFile.close"): _OPEN_FILE,
    ("size", "storage.log.indexes.indexed_file.IndexedFile.truncate"): _OPEN_FILE,
    # Headers of batches that an index or a reader's place leads to. Of older segments a worker reads the records first.
    ("read", "storage.log.batch_walk.read_header"): _OPEN_FILE,
    ("read", "storage.log.batch_walk.walk"): _OPEN_FILE,
    ("read", "storage.log.reader.Slice.read"): _OPEN_FILE,
    ("read", "storage.log.indexes.time_lookup._arguments"): _OPEN_FILE,
    ("is_cold", "storage.log.cold_reads.is_warm"): _ASKS,
    ("is_cold", "storage.log.indexes.indexed_file.IndexedFile.would_wait_for.<locals>.<genexpr>"): _ASKS,
    ("is_cold", "storage.log.indexes.time_lookup._warm"): _ASKS,
    ("is_cold", "storage.log.indexes.time_lookup._WarmAhead.goes_to"): _ASKS,
    ("open", "storage.log.indexes.segment_file.SegmentFile.found.<locals>.<lambda>"): (
        "the first segment of a log, which was made a moment ago: its name and its inode are in memory"
    ),
    ("free_bytes", "storage.directories.status.describe_directory"): "numbers that the file system has in memory",
    ("total_bytes", "storage.directories.status.describe_directory"): "numbers that the file system has in memory",
}
RECORD: Final = b"v" * 100_000
SMALL: Final = {"segment.bytes": "1048576"}


class WatchedBroker(BrokerThread):
    async def _start(self) -> None:
        ports = real_ports()
        disk, self.asked, self.threads = watched(ports.disk)
        self.ports = dataclasses.replace(ports, disk=disk)
        self.broker = Broker(Config.parse(self.properties), self.ports)
        await self.broker.start()
        self.port = self.broker.endpoints[0].port


def properties(folder: Path) -> dict[str, str]:
    return {
        "log.dirs": f"{folder}/a,{folder}/b",
        "log.initial.task.delay.ms": "100",
        "log.retention.check.interval.ms": "100",
        "log.segment.delete.delay.ms": "0",
        "log.flush.offset.checkpoint.interval.ms": "200",
        "log.cleaner.backoff.ms": "100",
        "offsets.topic.num.partitions": "2",
        "offsets.topic.replication.factor": "1",
        "group.initial.rebalance.delay.ms": "0",
    }


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[WatchedBroker]:
    with serving(tmp_path) as broker:
        yield broker


@contextmanager
def serving(folder: Path) -> Iterator[WatchedBroker]:
    with WatchedBroker(str(folder), **properties(folder)) as broker:
        broker.threads.append(broker.run(thread_id()))
        yield broker
        broker.threads.clear()  # a stop serves nobody


async def thread_id() -> int:
    return threading.get_ident()


def use(address: str) -> None:
    """What clients do: segments are rolled by size and time, flushed, cleaned, deleted; topics grow and go."""
    with Admin(bootstrap_servers=address) as admin, Producer(bootstrap_servers=address) as producer:
        admin.create_topic("short", partitions=2, configs={**SMALL, "retention.bytes": "3000000"})
        admin.create_topic("flushed", configs={**SMALL, "flush.messages": "1"})
        admin.create_topic("timed", configs={"segment.ms": "1", "segment.index.bytes": "24"})
        compacted = {"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0.01", "segment.ms": "1"}
        admin.create_topic("kept", configs={**SMALL, **compacted})
        for name in ("short", "flushed", "timed", "kept"):
            for number in range(25):
                producer.send(name, RECORD, key=b"%d" % (number % 5)).result(60)
        with Consumer(bootstrap_servers=address, group_id="g", auto_offset_reset="earliest") as consumer:
            consumer.subscribe(["short", "kept", "timed"])
            found = 0
            while found < 30:
                found += len(consumer.poll(timeout_ms=1000))
            consumer.commit()
        admin.create_partitions({"short": 4})
        admin.describe_log_dirs()
        admin.list_offsets({TopicPartition("flushed", 0): -3, TopicPartition("timed", 0): 1})
        admin.delete_records({TopicPartition("flushed", 0): 3})
        admin.delete_topic("short")
        admin.delete_topic("kept")


def test_what_clients_do_asks_the_disk_for_nothing_that_waits(broker: WatchedBroker) -> None:
    use(f"127.0.0.1:{broker.port}")
    services = broker.broker.services
    assert services is not None
    rolled = broker.look(lambda _: [len(log.segments) for log in services.replicas.directories.logs.values()])
    assert max(rolled) > 10
    assert {asked for asked in broker.asked if asked not in ALLOWED} == set()


def producers_of(broker: BrokerThread, topic: str) -> int:
    """How many the partition's leader knows."""
    asked = DescribeProducersRequest(topics=[TopicRequest(name=topic, partition_indexes=[0])])
    with broker.connect() as peer:
        ((found,),) = [each.partitions for each in peer.ask(asked, 0, DescribeProducersResponse).topics]
    assert found.error_code == 0
    return len(found.active_producers)


def use_again(address: str) -> None:
    """What clients do with logs of an earlier life: nothing of them is in memory."""
    with Admin(bootstrap_servers=address) as admin:
        first, last = TopicPartition("flushed", 0), TopicPartition("timed", 0)
        admin.list_offsets({first: -3, last: 1})
        with Consumer(bootstrap_servers=address, auto_offset_reset="earliest", isolation_level="read_committed") as one:
            one.assign([first, last])
            found = 0
            while found < 47:
                found += len(one.poll(timeout_ms=1000))
        with Producer(bootstrap_servers=address) as producer:
            for name in ("flushed", "timed"):
                producer.send(name, RECORD).result(60)
        admin.delete_records({first: 3})


def test_what_was_there_at_a_start_is_opened_and_read_by_workers(tmp_path: Path) -> None:
    with serving(tmp_path) as broker:
        use(f"127.0.0.1:{broker.port}")
    with serving(tmp_path) as broker:
        assert producers_of(broker, "timed") == 1
        use_again(f"127.0.0.1:{broker.port}")
        assert {asked for asked in broker.asked if asked not in ALLOWED or asked[0] == "open"} == set()


def test_a_segment_that_workers_cannot_open_is_said_by_the_fetch(tmp_path: Path) -> None:
    with serving(tmp_path) as broker:
        use(f"127.0.0.1:{broker.port}")
    with serving(tmp_path) as broker:
        (log,) = [log for log in broker.look(lambda broker: broker.logs()) if log.tp.topic == "flushed"]
        Path(log.segments[1].path()).unlink()
        with broker.connect() as peer:
            found = fetch(peer, log.segments[1].base_offset, topic="flushed")
        assert found.error_code == ErrorCode.KAFKA_STORAGE_ERROR
        assert {asked for asked in broker.asked if asked[0] == "open"} == set()


@pytest.mark.parametrize("in_session", [False, True])
@pytest.mark.parametrize("isolation_level", [0, 1])
def test_of_many_cold_partitions_a_fetch_has_some_read_at_a_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, in_session: bool, isolation_level: int
) -> None:
    """What stands for them meanwhile takes memory, and thousands of clients may fetch thousands of them."""
    partitions = 23
    with serving(tmp_path) as broker, Producer(bootstrap_servers=f"127.0.0.1:{broker.port}") as producer:
        broker.create_topic("wide", partitions=partitions)
        for number in range(partitions):
            producer.send("wide", b"%d" % number, partition=number).result(60)
    monkeypatch.setattr(reading, "COLD_A_TRY_MAX", 2)
    asked = [FetchPartition(partition=n, fetch_offset=0, partition_max_bytes=1 << 20) for n in range(partitions)]
    with serving(tmp_path) as broker, broker.connect() as peer:
        found: dict[int, bytes | None] = {}
        session_id, epoch, fetches = 0, 0 if in_session else -1, 0
        while len(found) < partitions:
            topics = [FetchTopic(topic="wide", partitions=asked)] if asked else []
            answer = peer.ask(
                FetchRequest(
                    max_wait_ms=0,
                    min_bytes=1,
                    max_bytes=50 << 20,
                    isolation_level=isolation_level,
                    session_id=session_id,
                    session_epoch=epoch,
                    topics=topics,
                ),
                11,
                FetchResponse,
            )
            assert answer.error_code == 0
            came = [each for topic in answer.responses for each in topic.partitions]
            assert {(each.error_code, each.high_watermark) for each in came} == {(0, 1)}
            new = {each.partition_index: values(each)[0] for each in came if each.records}
            assert len(new) <= 2 * COLD_READS_MAX
            found |= new
            fetches += 1
            if in_session:  # a client asks anew for those that it was sent records of
                session_id, epoch = answer.session_id, epoch + 1
                asked = [FetchPartition(partition=n, fetch_offset=1, partition_max_bytes=1 << 20) for n in new]
            else:
                asked = [each for each in asked if each.partition not in new]
        assert found == {number: b"%d" % number for number in range(partitions)}
        assert fetches >= 3
        assert {each for each in broker.asked if each[0] in {"open", "read_file"}} == set()
