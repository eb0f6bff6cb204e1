"""The offsets topic on disk: each broker takes over the groups and offsets that the other one wrote."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import confluent_kafka
import pytest
from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient

from ottla.model import ErrorCode
from ottla.protocol.generated.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from ottla.protocol.generated.offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup
from tests.conftest import WatchServer
from tests.interop.broker import SMALL_INDEXES, Broker, kafka_broker
from tests.interop.clients import confluent_consumer, eventually
from tests.interop.conftest import GROUP_PROPERTIES, create_topic, new_broker
from tests.interop.group_members import ConfluentMember, partitions_of, wait_for
from tests.interop.group_wire import Peer, wait_for_coordinator
from tests.interop.group_writing import produce

pytestmark = [pytest.mark.java, pytest.mark.xdist_group("kafka-groups")]

TOPIC = "handed-over"
PARTITIONS = 3
COUNT = 9
#: Group, and what is committed for each partition: offset and metadata.
Committed = dict[str, dict[int, tuple[int, str]]]


@dataclass
class Filled:
    broker: Broker
    committed: Committed = field(default_factory=dict)
    #: Groups of which a static member stays when the broker stops.
    inhabited: dict[str, str] = field(default_factory=dict)


def fill(broker: Broker, *, transactions: bool) -> Filled:
    """Groups of every kind. The broker has been started, and is stopped in the end."""
    admin = AdminClient({"bootstrap.servers": broker.bootstrap, "log_level": 0})
    create_topic(admin, TOPIC, partitions=PARTITIONS)
    produce(broker.bootstrap, TOPIC, PARTITIONS, [b"%d" % number for number in range(COUNT)])
    filled = Filled(broker)
    for number in range(12):  # enough for each partition of the offsets topic to have some
        commit(broker, filled, f"simple-{number}", {0: (number, f"note {number}"), 2: (2 * number, "")})
    commit(broker, filled, "simple-0", {0: (77, "again")})
    commit(broker, filled, "doomed", {0: (1, "")})
    admin.delete_consumer_groups(["doomed"])["doomed"].result(60)
    filled.committed["doomed"] = {}
    for group, settings in (("classic", {}), ("new", {"group_protocol": "consumer"})):
        read_all(broker, group, **settings).leave()
        filled.committed[group] = dict.fromkeys(range(PARTITIONS), (COUNT // PARTITIONS, ""))
    read_all(broker, "static", group_instance_id="stays").stay()
    filled.committed["static"] = dict(filled.committed["classic"])
    filled.inhabited["static"] = "stays"
    if transactions:
        commit_in_transactions(broker, filled)
    broker.server.stop()
    return filled


def commit(broker: Broker, filled: Filled, group: str, offsets: dict[int, tuple[int, str]]) -> None:
    """From outside of the group."""
    peer = Peer(broker.bootstrap, "committer")
    wait_for_coordinator(peer, group)
    partitions = [
        OffsetCommitRequestPartition(partition_index=number, committed_offset=offset, committed_metadata=metadata)
        for number, (offset, metadata) in offsets.items()
    ]
    named = OffsetCommitRequestTopic(name=TOPIC, partitions=partitions)
    answer = peer.ask(OffsetCommitRequest(group_id=group, topics=[named]), 9)
    peer.close()
    assert not any(partition.error_code for partition in answer.topics[0].partitions), answer
    filled.committed.setdefault(group, {}).update(offsets)


def read_all(broker: Broker, group: str, **settings: str) -> ConfluentMember:
    member = ConfluentMember(f"member-of-{group}", broker.bootstrap, group, [TOPIC], **settings)
    wait_for(lambda: len(member.received) == COUNT, [member])
    return member


def commit_in_transactions(broker: Broker, filled: Filled) -> None:
    """One that is committed, one that is aborted, and one that the broker's stop leaves open."""
    commit(broker, filled, "transactional", {0: (1, "")})
    for offset, ending in ((5, "commit"), (99, "abort"), (111, "open")):
        producer = confluent_kafka.Producer(
            {"bootstrap.servers": broker.bootstrap, "transactional.id": f"id-{ending}", "log_level": 0}
        )
        producer.init_transactions()
        producer.begin_transaction()
        consumer = confluent_consumer(broker.bootstrap, **{"group.id": "transactional"})
        wanted = [TopicPartition(TOPIC, 0, offset), TopicPartition(TOPIC, 1, offset)]
        producer.send_offsets_to_transaction(wanted, consumer.consumer_group_metadata())
        consumer.close()
        if ending == "commit":
            producer.commit_transaction()
        elif ending == "abort":
            producer.abort_transaction()
    filled.committed["transactional"] = {0: (5, ""), 1: (5, "")}


def hand_over(source: Broker, target: Broker) -> None:
    """Starts ``target`` over ``source``'s offsets topic, in place of its own."""
    if not any(target.data.rglob("__consumer_offsets-0")):
        target.server.start()
        create_topic(AdminClient({"bootstrap.servers": target.bootstrap, "log_level": 0}), TOPIC, partitions=PARTITIONS)
        produce(target.bootstrap, TOPIC, PARTITIONS, [b"%d" % number for number in range(COUNT)])
        commit(target, Filled(target), "first", {0: (1, "")})
        target.server.stop()
    for number in range(int(GROUP_PROPERTIES["offsets.topic.num.partitions"])):
        into = target.partition_folder("__consumer_offsets", number)
        for path in into.iterdir():
            if path.name != "partition.metadata":
                path.unlink()
        for path in source.partition_folder("__consumer_offsets", number).iterdir():
            if path.name != "partition.metadata":
                shutil.copy(path, into)
        # The checkpoints of the folder speak of the partition that was there before.
        for checkpoint in into.parent.glob("*-checkpoint"):
            checkpoint.unlink()
    target.server.start()


def verify(broker: Broker, filled: Filled) -> None:
    """Everything is served as it was, and goes on from there."""
    bootstrap = broker.bootstrap
    admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 0})
    eventually(lambda: all(isinstance(found(bootstrap, group), dict) for group in filled.committed))
    assert {group: found(bootstrap, group) for group in filled.committed} == filled.committed
    listed = {group.group_id: group for group in admin.list_consumer_groups().result(60).valid}
    assert "doomed" not in listed
    assert {group for group, offsets in filled.committed.items() if offsets} <= set(listed)
    for group, instance in filled.inhabited.items():
        described = admin.describe_consumer_groups([group])[group].result(60)
        assert [member.group_instance_id for member in described.members] == [instance]
    back = ConfluentMember("back", bootstrap, "static", [TOPIC], group_instance_id="stays")
    others = [
        ConfluentMember("next", bootstrap, group, [TOPIC], **settings)
        for group, settings in (("classic", {}), ("new", {"group_protocol": "consumer"}))
    ]
    everyone = [back, *others]
    wait_for(lambda: all(member.assigned == set(partitions_of(TOPIC, PARTITIONS)) for member in everyone), everyone)
    produce(bootstrap, TOPIC, PARTITIONS, [b"more"] * PARTITIONS)
    wait_for(lambda: all(len(member.received) >= PARTITIONS for member in everyone), everyone)
    for member in everyone:
        assert member.values == [b"more"] * PARTITIONS, "read from where the group had stopped"
        member.leave()
    assert found(bootstrap, "classic") == dict.fromkeys(range(PARTITIONS), (COUNT // PARTITIONS + 1, ""))


def found(bootstrap: str, group: str, *, stable: bool = False) -> dict[int, tuple[int, str]] | ErrorCode:
    peer = Peer(bootstrap, "onlooker")
    request = OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id=group, topics=None)], require_stable=stable)
    answer = peer.ask(request, 9).groups[0]
    peer.close()
    if answer.error_code:
        return ErrorCode(answer.error_code)
    offsets: dict[int, tuple[int, str]] = {}
    for topic in answer.topics:
        assert topic.name == TOPIC
        for partition in topic.partitions:
            if partition.error_code:
                return ErrorCode(partition.error_code)
            offsets[partition.partition_index] = (partition.committed_offset, partition.metadata)
    return offsets


@pytest.fixture(scope="module")
def kafka_filled(
    tmp_path_factory: pytest.TempPathFactory, kafka_jars: Path, watch_server: WatchServer
) -> Iterator[Filled]:
    properties = {**GROUP_PROPERTIES, **SMALL_INDEXES, "transaction.state.log.num.partitions": "3"}
    broker = kafka_broker(tmp_path_factory.mktemp("kafka-groups"), kafka_jars, properties)
    with watch_server(broker.server):
        broker.server.start()
        yield fill(broker, transactions=True)


@pytest.fixture
def ours(tmp_path: Path, watch_server: WatchServer) -> Iterator[Broker]:
    alone = {"transaction.state.log.replication.factor": "1", "transaction.state.log.min.isr": "1"}
    own = new_broker(tmp_path / "ours", {**GROUP_PROPERTIES, **alone, "transaction.state.log.num.partitions": "2"})
    with watch_server(own.server):
        yield own


def test_the_broker_serves_the_groups_that_kafka_wrote(ours: Broker, kafka_filled: Filled) -> None:
    hand_over(kafka_filled.broker, ours)
    verify(ours, kafka_filled)
    # Offsets in a transaction that nobody has ended are neither there nor gone.
    assert found(ours.bootstrap, "transactional", stable=True) == ErrorCode.UNSTABLE_OFFSET_COMMIT
    ours.server.stop()


@pytest.mark.slow
def test_kafka_serves_the_groups_that_the_broker_wrote(ours: Broker, kafka_filled: Filled) -> None:
    ours.server.start()
    filled = fill(ours, transactions=True)
    hand_over(ours, kafka_filled.broker)
    verify(kafka_filled.broker, filled)
    assert found(kafka_filled.broker.bootstrap, "transactional", stable=True) == ErrorCode.UNSTABLE_OFFSET_COMMIT
