"""A log directory in which Apache Kafka has left transactions: the coordinator here goes on with them."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from confluent_kafka import Consumer, KafkaError, Producer, TopicPartition
from confluent_kafka.admin import AdminClient

from ottla.model import ErrorCode
from ottla.protocol.generated.describe_transactions import DescribeTransactionsRequest
from ottla.protocol.generated.end_txn import EndTxnRequest
from tests.conftest import WatchServer
from tests.interop.broker import SMALL_INDEXES, kafka_broker, ottla_broker
from tests.interop.clients import SECONDS_MAX, eventually
from tests.interop.conftest import create_topic
from tests.interop.group_wire import Peer
from tests.interop.transaction_answers import PROPERTIES

pytestmark = [pytest.mark.java, pytest.mark.xdist_group("kafka-tools")]

TOPIC = "handed-over"


def write(bootstrap: str, name: str) -> Producer:
    """A record in an open transaction."""
    producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": name, "linger.ms": 0, "log_level": 0})
    producer.init_transactions(SECONDS_MAX)
    producer.begin_transaction()
    producer.produce(TOPIC, name)
    assert producer.flush(SECONDS_MAX) == 0
    return producer


def state_of(bootstrap: str, name: str) -> tuple[str, int, int]:
    peer = Peer(bootstrap, "onlooker")
    try:
        (found,) = peer.ask(DescribeTransactionsRequest(transactional_ids=[name]), 0).transaction_states
        return found.transaction_state, found.producer_id, found.producer_epoch
    finally:
        peer.close()


def committed(bootstrap: str) -> list[bytes]:
    reader = Consumer(
        {"bootstrap.servers": bootstrap, "group.id": "readers", "isolation.level": "read_committed"}
        | {"enable.partition.eof": True, "log_level": 0}
    )
    found: list[bytes] = []
    try:
        reader.assign([TopicPartition(TOPIC, 0, 0)])
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
        create_topic(AdminClient({"bootstrap.servers": kafka.bootstrap, "log_level": 0}), TOPIC)
        write(kafka.bootstrap, "committed").commit_transaction(SECONDS_MAX)
        write(kafka.bootstrap, "aborted").abort_transaction(SECONDS_MAX)
        eventually(lambda: state_of(kafka.bootstrap, "committed")[0] == "CompleteCommit")
        eventually(lambda: state_of(kafka.bootstrap, "aborted")[0] == "CompleteAbort")
        left = [write(kafka.bootstrap, name) for name in ("open", "another")]
        before = {name: state_of(kafka.bootstrap, name) for name in ("committed", "aborted", "open", "another")}
    assert [state for state, _, _ in before.values()] == ["CompleteCommit", "CompleteAbort", "Ongoing", "Ongoing"]

    ours = ottla_broker(tmp_path / "ours", PROPERTIES)
    shutil.copytree(kafka.partition_folder(TOPIC).parent, ours.data / "log")
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
    assert len(left) == 2
