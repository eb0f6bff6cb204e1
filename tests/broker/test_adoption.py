"""A broker without a tree over log directories that are full: what Kafka wrote is served, what is in doubt is told."""

from __future__ import annotations

import asyncio
import errno
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.handlers.frames import batch, fetch, list_offset, produce, values
from tests.server.conftest import BrokerThread
from tests.testing.sim.one_broker import OneBroker

from ottla.broker.broker import Broker
from ottla.config import ConfigError
from ottla.model import ErrorCode, TopicPartition, topic_id_text
from ottla.protocol.generated.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from ottla.storage.directories.errors import DirectoryLocked, WrongIdentity
from ottla.storage.formats.names import PARTITION_METADATA
from ottla.storage.formats.partition_metadata import decode
from ottla.testing.sim.reader import end_offset

#: Written by Apache Kafka, with node.id 1.
KAFKA = Path(__file__).parents[1] / "storage" / "golden" / "kafka" / "data"
NODE = {"node.id": "1"}
Folder = Callable[[], Path]


@pytest.fixture
def kafka_directory(tmp_path: Path) -> Path:
    """A copy, where the broker of these tests has its log directory."""
    shutil.copytree(KAFKA, tmp_path / "logs")
    return tmp_path / "logs"


def over(folder: Path, **properties: str) -> BrokerThread:
    return BrokerThread(str(folder.parent), **{name.replace("_", "."): value for name, value in properties.items()})


def topics_of(broker: Broker) -> dict[str, int]:
    return {name: len(topic.partitions) for name, topic in broker.metadata.topics.items()}


def test_topics_are_taken_over_with_their_ids_and_records(kafka_directory: Path) -> None:
    with over(kafka_directory) as running, running.connect() as peer:
        assert running.look(lambda broker: broker.broker_id) == 1
        assert running.look(topics_of) == {
            "__consumer_offsets": 1,
            "__transaction_state": 1,
            "compacted": 1,
            "golden": 1,
            "golden.with-dots_and-dashes": 2,
        }
        stored = decode((KAFKA / "golden-0" / PARTITION_METADATA).read_bytes())
        assert running.look(lambda broker: broker.metadata.topics["golden"].id) == stored
        start, end = (list_offset(peer, which, topic="golden").offset for which in (-2, -1))
        assert (start, end) == (3, 134)
        assert values(fetch(peer, start, topic="golden"))
        assert produce(peer, batch(b"appended"), topic="golden").base_offset == end
    # It happens once: what is deleted now stays so.
    with over(kafka_directory) as running, running.connect() as peer:
        assert len(running.look(topics_of)) == 5
        assert values(fetch(peer, end, topic="golden")) == [b"appended"]


def test_the_cluster_keeps_its_id_and_topics_keep_everything(kafka_directory: Path) -> None:
    with over(kafka_directory) as running:
        written = dict(line.split("=") for line in (kafka_directory / "meta.properties").read_text().splitlines()[2:])
        assert written["cluster.id"] == "4L6g3nShT-eMCtK--X86sw"
        policies = running.look(lambda broker: {log.tp.topic: log.config.cleanup_policy for log in broker.logs()})
        # Their configurations were in Kafka's own quorum: nobody knows what they are to keep.
        assert set(policies.values()) == {frozenset()}


def test_a_new_producer_is_not_taken_for_one_that_the_log_knows(kafka_directory: Path) -> None:
    with over(kafka_directory) as running, running.connect() as peer:
        known = running.look(
            lambda broker: {each.producer_id for log in broker.logs() for each in log.describe_producers()}
        )
        assert known, "the golden logs have idempotent producers"
        request = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=0)
        answer = peer.ask(request, 4, InitProducerIdResponse)
        assert max(known) < answer.producer_id < 2**53
        first = batch(b"x", producer_id=answer.producer_id, producer_epoch=0, base_sequence=0)
        assert produce(peer, first, topic="golden").error_code == ErrorCode.NONE


def test_a_leaders_epoch_goes_on_above_those_in_the_log(kafka_directory: Path) -> None:
    checkpoint = kafka_directory / "golden-0" / "leader-epoch-checkpoint"
    checkpoint.write_text("0\n2\n0 0\n7 110\n")
    with over(kafka_directory) as running:
        epochs = running.look(lambda broker: {tp.topic: leader.epoch for tp, leader in _leaders(broker).items()})
        assert epochs["golden"] == 8


def _leaders(broker: Broker) -> Any:
    assert broker.services is not None
    return broker.services.replicas.leaders


def left_out(folder: Path, topic: str, log_lines: list[str]) -> str:
    """The line that says why a topic was not taken over; all others are."""
    with over(folder) as running:
        found = running.look(topics_of)
        assert topic not in found
        assert len(found) >= 3
    lines = [line for line in log_lines if "left alone" in line and topic in line]
    assert len(lines) == 1, lines
    assert (folder / f"{topic}-0").is_dir()
    return lines[0]


def test_the_log_of_kafkas_controllers_is_left_alone(kafka_directory: Path, log_lines: list[str]) -> None:
    shutil.copytree(kafka_directory / "golden-0", kafka_directory / "__cluster_metadata-0")
    assert "is not read" in left_out(kafka_directory, "__cluster_metadata", log_lines)


def test_a_topic_of_which_partitions_are_missing(kafka_directory: Path, log_lines: list[str]) -> None:
    shutil.copytree(kafka_directory / "golden-0", kafka_directory / "golden-4")
    assert "partitions 1, 2, 3 of 5 are missing" in left_out(kafka_directory, "golden", log_lines)


def test_a_topic_with_two_ids(kafka_directory: Path, log_lines: list[str]) -> None:
    shutil.copytree(kafka_directory / "golden-0", kafka_directory / "golden-1")
    shutil.copy(kafka_directory / "compacted-0" / PARTITION_METADATA, kafka_directory / "golden-1")
    said = left_out(kafka_directory, "golden", log_lines)
    assert topic_id_text(decode((kafka_directory / "compacted-0" / PARTITION_METADATA).read_bytes())) in said


def test_a_partition_in_two_directories(kafka_directory: Path, log_lines: list[str]) -> None:
    other = kafka_directory.with_name("more")
    other.mkdir()
    shutil.copytree(kafka_directory / "golden-0", other / "golden-0")
    with over(kafka_directory, log_dirs=f"{kafka_directory},{other}") as running:
        assert "golden" not in running.look(topics_of)
    assert "stands more than once" in "".join(log_lines)


def test_folders_without_ids_get_one(kafka_directory: Path) -> None:
    for folder in kafka_directory.glob("golden.with*"):
        (folder / PARTITION_METADATA).unlink()
    with over(kafka_directory) as running:
        given = running.look(lambda broker: broker.metadata.topics["golden.with-dots_and-dashes"].id)
    for folder in kafka_directory.glob("golden.with*"):
        assert decode((folder / PARTITION_METADATA).read_bytes()) == given


def test_nothing_is_registered_before_the_directory_is_known_to_be_ours(kafka_directory: Path) -> None:
    with pytest.raises(WrongIdentity, match=r"node\.id=1"), over(kafka_directory, node_id="2"):
        pass
    with over(kafka_directory) as running:
        assert len(running.look(topics_of)) == 5
        in_use = Path(shutil.copytree(KAFKA, kafka_directory.parent / "other" / "logs"))
        shared = f"{in_use},{kafka_directory}"
        with pytest.raises(DirectoryLocked), over(in_use, log_dirs=shared):
            pass
    with over(in_use, node_id="1") as running:
        assert len(running.look(topics_of)) == 5


def test_a_start_that_is_cut_short_is_made_up_for(kafka_directory: Path) -> None:
    """The tree as it is when only a part was registered: everything but the last topic and the cluster's id."""
    for operation in range(1, 400, 7):
        with OneBroker(operation, {"node.id": "1"}) as one:
            one.run(_cut_short(one, kafka_directory, operation))
            if one.broker.lives == 1:
                break
    else:
        raise AssertionError("a start takes more operations than are tried")
    assert operation > 30


def put_on(one: OneBroker, source: Path) -> None:
    """Kafka's directory, durably on the disk in memory."""
    disk = one.disk
    for path in sorted(source.rglob("*")):
        target = f"/data/a/{path.relative_to(source)}"
        if path.is_dir():
            disk.make_directory(target)
        else:
            disk.make_directory(target.rpartition("/")[0])
            file = disk.open(target, create=True)
            file.append([path.read_bytes()])
            file.sync()
            file.close()
    for folder in ("/data/a", "/data", "/", *(f"/data/a/{path.name}" for path in source.iterdir() if path.is_dir())):
        disk.sync_directory(folder)


async def _cut_short(one: OneBroker, source: Path, operation: int) -> None:
    put_on(one, source)
    one.disk.crash_at(operation)
    task = one.broker.start()
    await asyncio.wait([task])
    if one.broker.serving.is_set():
        one.disk.crash_at(0)
    else:
        await one.broker.started()
    assert one.broker.broker is not None
    assert len(topics_of(one.broker.broker)) == 5
    assert await end_offset(one.client, TopicPartition("golden", 0)) == 134


@pytest.mark.parametrize("operation", ["names", "open", "read", "size", "exists"])
@pytest.mark.parametrize("pattern", ["/data/a/golden-0/*", "/data/a/golden-0", "/data/a/*", "/data/a"])
def test_folders_that_cannot_be_read_register_nothing_wrong(
    kafka_directory: Path, operation: str, pattern: str
) -> None:
    with OneBroker(1, NODE) as one:
        one.run(_cannot_be_read(one, kafka_directory, operation, pattern))


async def _cannot_be_read(one: OneBroker, source: Path, operation: str, pattern: str) -> None:
    put_on(one, source)
    one.disk.fail(operation, pattern, errno.EIO)
    await one.broker.start()
    one.disk.stop_failing()
    if one.broker.refusal is None:
        one.broker.kill()
    else:
        assert "\n" not in str(one.broker.refusal)
        assert "/data/a" in str(one.broker.refusal)
    await one.broker.started()
    assert one.broker.broker is not None
    assert len(topics_of(one.broker.broker)) == 5
    assert await end_offset(one.client, TopicPartition("golden", 0)) == 134


def test_a_directory_that_cannot_be_read_at_the_first_start_is_not_passed_over(kafka_directory: Path) -> None:
    with OneBroker(1, {**NODE, "log.dirs": "/data/b,/data/a"}) as one:
        one.run(_one_of_two_cannot_be_read(one, kafka_directory))


async def _one_of_two_cannot_be_read(one: OneBroker, source: Path) -> None:
    put_on(one, source)
    one.disk.fail("names", "/data/a", errno.EIO)
    await one.broker.start()
    assert "/data/a cannot be read (Input/output error)" in str(one.broker.refusal)
    one.disk.stop_failing()
    await one.broker.started()
    assert one.broker.broker is not None
    assert len(topics_of(one.broker.broker)) == 5


def test_a_broker_without_a_number_where_none_is_to_be_made(tmp_path: Path) -> None:
    with (
        pytest.raises(ConfigError, match="must be set where"),
        BrokerThread(str(tmp_path), **{"broker.id.generation.enable": "false"}),
    ):
        pass
