"""A log directory in which Apache Kafka has left transactions: the coordinator here goes on with them."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from confluent_kafka import Consumer, KafkaError, Producer, TopicPartition
from confluent_kafka.admin import AdminClient

from ottla.client.producing.transactions.core import TransactionIdentity
from ottla.client.sync import Producer as OurProducer
from ottla.javahash import partition_of
from ottla.model import TRANSACTION_TOPIC, ErrorCode
from ottla.model import TopicPartition as Place
from ottla.protocol.generated.describe_transactions import DescribeTransactionsRequest
from ottla.protocol.generated.end_txn import EndTxnRequest
from ottla.protocol.generated.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from ottla.records.reading import open_batch
from tests.conftest import WatchServer
from tests.interop.broker import SMALL_INDEXES, kafka_broker, ottla_broker
from tests.interop.clients import SECONDS_MAX, eventually
from tests.interop.conftest import create_topic
from tests.interop.group_wire import Peer, wait_for_coordinator
from tests.interop.transaction_answers import PROPERTIES

pytestmark = [pytest.mark.java, pytest.mark.xdist_group("kafka-tools")]

TOPIC = "handed-over"


#: Topics of the transaction whose client has an epoch for each, and of the one that Kafka had only decided.
NEWER, HALF = "newer", "half"
GROUP, OFFSET = "group-of-newer", 5


def write(bootstrap: str, name: str, topic: str = TOPIC) -> Producer:
    """A record in an open transaction."""
    producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": name, "linger.ms": 0, "log_level": 0})
    producer.init_transactions(SECONDS_MAX)
    producer.begin_transaction()
    producer.produce(topic, name)
    assert producer.flush(SECONDS_MAX) == 0
    return producer


def write_newer(bootstrap: str) -> TransactionIdentity:
    """The same under `transaction.version` 2, with offsets of a group; left open for whoever ends it."""
    settings = {"transactional_id": NEWER, "transaction_timeout_ms": 600_000}
    with OurProducer(bootstrap_servers=bootstrap, **settings) as producer:
        producer.begin()
        producer.send_and_wait(NEWER, NEWER.encode())
        producer.send_offsets({Place(TOPIC, 0): OFFSET}, GROUP)
        identity = producer.detach()
        assert identity is not None
        return identity


def cut_last_batch(folder: Path) -> bytes:
    """The partition's log as it was before its last batch, which is returned; what knows of later is gone."""
    (log,) = folder.glob("*.log")
    data = log.read_bytes()
    last, pos = 0, 0
    while pos < len(data):
        last, pos = pos, pos + 12 + int.from_bytes(data[pos + 8 : pos + 12])
    assert pos == len(data)
    log.write_bytes(data[:last])
    for derived in (*folder.glob("*.index"), *folder.glob("*.timeindex"), *folder.glob("*.snapshot")):
        derived.unlink()
    return data[last:]


def as_if_it_had_died_behind_the_decision(data: Path, name: str, topic: str) -> None:
    """Takes the record of the completion away, and the marker, which were the last of their partitions."""
    count = int(PROPERTIES["transaction.state.log.num.partitions"])
    completion = cut_last_batch(data / f"{TRANSACTION_TOPIC}-{partition_of(name, count)}")
    assert name.encode() in completion
    marker = cut_last_batch(data / f"{topic}-0")
    assert open_batch(marker, 0)[0].is_control
    for path in (*data.glob("*-checkpoint"), *data.glob(".kafka_cleanshutdown")):
        path.unlink()


def state_of(bootstrap: str, name: str) -> tuple[str, int, int]:
    peer = Peer(bootstrap, "onlooker")
    try:
        (found,) = peer.ask(DescribeTransactionsRequest(transactional_ids=[name]), 0).transaction_states
        return found.transaction_state, found.producer_id, found.producer_epoch
    finally:
        peer.close()


def committed(bootstrap: str, topic: str = TOPIC) -> list[bytes]:
    reader = Consumer(
        {"bootstrap.servers": bootstrap, "group.id": "readers", "isolation.level": "read_committed"}
        | {"enable.partition.eof": True, "log_level": 0}
    )
    found: list[bytes] = []
    try:
        reader.assign([TopicPartition(topic, 0, 0)])
        while True:
            message = reader.poll(SECONDS_MAX)
            assert message is not None
            if message.error() is None:
                found.append(message.value() or b"")
            else:
                assert message.error().code() == KafkaError._PARTITION_EOF
                return found
    finally:
        reader.close()


def test_what_kafka_left_open_is_ended_here(tmp_path: Path, kafka_jars: Path, watch_server: WatchServer) -> None:
    kafka = kafka_broker(tmp_path / "kafka", kafka_jars, {**PROPERTIES, **SMALL_INDEXES})
    with watch_server(kafka.server), kafka.server:
        for topic in (TOPIC, NEWER, HALF):
            create_topic(AdminClient({"bootstrap.servers": kafka.bootstrap, "log_level": 0}), topic)
        write(kafka.bootstrap, "committed").commit_transaction(SECONDS_MAX)
        write(kafka.bootstrap, "aborted").abort_transaction(SECONDS_MAX)
        eventually(lambda: state_of(kafka.bootstrap, "committed")[0] == "CompleteCommit")
        eventually(lambda: state_of(kafka.bootstrap, "aborted")[0] == "CompleteAbort")
        left = [write(kafka.bootstrap, name) for name in ("open", "another")]
        newer = write_newer(kafka.bootstrap)
        before = {name: state_of(kafka.bootstrap, name) for name in ("committed", "aborted", "open", "another", NEWER)}
        write(kafka.bootstrap, HALF, HALF).commit_transaction(SECONDS_MAX)
        eventually(lambda: state_of(kafka.bootstrap, HALF)[0] == "CompleteCommit")
    assert [state for state, _, _ in before.values()] == ["CompleteCommit", "CompleteAbort", *["Ongoing"] * 3]

    ours = ottla_broker(tmp_path / "ours", PROPERTIES)
    shutil.copytree(kafka.partition_folder(TOPIC).parent, ours.data / "log")
    as_if_it_had_died_behind_the_decision(ours.data / "log", HALF, HALF)
    with watch_server(ours.server), ours.server:
        bootstrap = ours.bootstrap
        eventually(lambda: state_of(bootstrap, "open")[0] == "Ongoing")
        assert {name: state_of(bootstrap, name) for name in before} == before
        assert committed(bootstrap) == [b"committed"]
        _, producer_id, epoch = before["open"]
        peer = Peer(bootstrap, "ending")
        ending = EndTxnRequest(transactional_id="open", producer_id=producer_id, producer_epoch=epoch, committed=True)
        assert peer.ask(ending, 4).error_code == ErrorCode.NONE
        peer.close()
        eventually(lambda: state_of(bootstrap, "open")[0] == "CompleteCommit")
        # A producer that comes back under the other id ends what it had left.
        write(bootstrap, "another").commit_transaction(SECONDS_MAX)
        eventually(lambda: state_of(bootstrap, "another")[0] == "CompleteCommit")
        assert committed(bootstrap) == [b"committed", b"open", b"another"]
        end_newer(bootstrap, newer)
        # What Kafka had decided and not marked goes on by itself.
        eventually(lambda: state_of(bootstrap, HALF)[0] == "CompleteCommit")
        assert committed(bootstrap, HALF) == [HALF.encode()]
    assert len(left) == 2


def stable_offset(bootstrap: str) -> tuple[int, int]:
    """The error and the offset that a member is given who waits for what is pending."""
    peer = Peer(bootstrap, "member")
    wait_for_coordinator(peer, GROUP)
    asked = OffsetFetchRequestGroup(
        group_id=GROUP, topics=[OffsetFetchRequestTopics(name=TOPIC, partition_indexes=[0])]
    )
    (group,) = peer.ask(OffsetFetchRequest(groups=[asked], require_stable=True), 8).groups
    peer.close()
    (partition,) = group.topics[0].partitions
    return partition.error_code, partition.committed_offset


def end_newer(bootstrap: str, identity: TransactionIdentity) -> None:
    """The end of the newer form, for the record and for the offsets that have waited with it."""
    with OurProducer(bootstrap_servers=bootstrap, transactional_id="another process") as producer:
        eventually(lambda: stable_offset(bootstrap) == (ErrorCode.UNSTABLE_OFFSET_COMMIT, -1))
        assert committed(bootstrap, NEWER) == []
        producer.finish(identity)
        eventually(lambda: state_of(bootstrap, NEWER)[0] == "CompleteCommit")
        eventually(lambda: stable_offset(bootstrap) == (ErrorCode.NONE, OFFSET))
        assert committed(bootstrap, NEWER) == [NEWER.encode()]
        producer.finish(identity)  # the answer was missed
    assert state_of(bootstrap, NEWER)[2] == identity.epoch + 1
