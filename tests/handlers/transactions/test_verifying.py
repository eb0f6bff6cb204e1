"""Produce in transactions: no batch is appended of a transaction that its coordinator does not know to be ongoing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from tests.handlers.frames import batch, fetch, list_offset, produce
from tests.handlers.transactional import TransactionalClient, mark, until
from tests.handlers.transactions.conftest import transactional_broker
from tests.server.conftest import BrokerThread, Peer

from ottla.model import ErrorCode
from ottla.protocol.generated.produce import PartitionProduceData, ProduceRequest, ProduceResponse, TopicProduceData
from ottla.protocol.hot.produce import PLAIN_PARTS_MAX

Begun = Callable[..., TransactionalClient]
NONE = ErrorCode.NONE


def ended(peer: Peer, topic: str, end: int) -> None:
    """The marker has come."""
    until(lambda: fetch(peer, topic=topic, isolation_level=1).last_stable_offset >= end)


@pytest.mark.parametrize(
    ("version", "error"), [(10, ErrorCode.INVALID_TXN_STATE), (11, ErrorCode.TRANSACTION_ABORTABLE)]
)
def test_a_partition_that_was_not_added(peer: Peer, topic: str, begun: Begun, version: int, error: ErrorCode) -> None:
    client = begun()
    client.add(topic, 1)
    refused = client.produce(b"a", topic, version=version)
    assert (refused.error_code, refused.base_offset, refused.log_start_offset) == (error, -1, -1)
    assert client.produce(b"a", topic, 1, version=version).error_code == NONE
    assert fetch(peer, topic=topic).high_watermark == 0


def test_partitions_are_added_by_newer_clients_batches(peer: Peer, topic: str, begun: Begun) -> None:
    client = begun(2)
    for value in (b"a", b"b"):
        assert client.produce(value, topic).error_code == NONE
        assert client.produce(value, topic, 1).error_code == NONE
    assert client.end(commits=True) == NONE
    ended(peer, topic, 3)


@pytest.mark.parametrize("version", [0, 2])
def test_a_late_batch_of_a_transaction_that_has_ended(peer: Peer, topic: str, begun: Begun, version: int) -> None:
    """It would hold up readers of committed records until somebody found it (KIP-890)."""
    client = begun(version)
    if not version:
        client.add(topic, 0)
    assert client.produce(b"a", topic).error_code == NONE
    epoch = client.epoch
    assert client.end(commits=False) == NONE
    ended(peer, topic, 2)
    late = client.produce(b"late", topic, producer_epoch=epoch, sequence=1)
    expected = ErrorCode.INVALID_PRODUCER_EPOCH if version else ErrorCode.TRANSACTION_ABORTABLE
    assert late.error_code == expected
    assert fetch(peer, topic=topic).high_watermark == 2


@pytest.mark.parametrize("version", [0, 2])
def test_a_producer_that_was_replaced(peer: Peer, topic: str, begun: Begun, version: int) -> None:
    old = begun(version)
    if not version:
        old.add(topic, 0)
    old.produce(b"a", topic)
    begun(version)
    assert old.produce(b"b", topic).error_code == ErrorCode.INVALID_PRODUCER_EPOCH
    assert old.produce(b"b", topic, 1).error_code == ErrorCode.INVALID_PRODUCER_EPOCH
    ended(peer, topic, 2)


def test_a_batch_of_nobodys_transactional_id(peer: Peer, topic: str) -> None:
    stranger = TransactionalClient(peer, "stranger", 2)
    stranger.producer_id, stranger.epoch = 4711, 0
    stranger.find("stranger", 1)
    assert stranger.produce(b"a", topic).error_code == ErrorCode.INVALID_PRODUCER_ID_MAPPING
    plain = batch(b"a", producer_id=4711, producer_epoch=0, base_sequence=0, transactional=True)
    refused = produce(peer, plain, topic=topic)
    assert refused.error_code == ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED


def test_a_transactional_id_says_nothing_about_batches_outside_of_transactions(
    peer: Peer, topic: str, begun: Begun
) -> None:
    client = begun()
    assert client.produce(b"a", topic, transactional=False, producer_id=-1, sequence=-1).error_code == NONE
    client.add(topic, 0)
    assert client.produce(b"b", topic, sequence=0).error_code == NONE
    mixed = client.produce(b"c", topic, transactional=False, sequence=1)
    assert mixed.error_code == ErrorCode.INVALID_TXN_STATE


def test_a_request_that_is_sent_again_and_again_is_refused_once_its_transaction_ended(
    peer: Peer, topic: str, begun: Begun
) -> None:
    """Whether it is recognised by then, or has a lane."""
    client = begun()
    client.add(topic, 0)
    for number in range(20):
        assert client.produce(b"x", topic).base_offset == number
    assert mark(peer, client, (topic, 0), commits=True) == [NONE]
    assert client.produce(b"x", topic).base_offset == 21  # added, and so it begins another one
    client.end(commits=True)
    ended(peer, topic, 23)
    assert client.produce(b"x", topic).error_code == ErrorCode.TRANSACTION_ABORTABLE
    assert fetch(peer, topic=topic).high_watermark == 23


def test_without_verification_a_partition_that_was_not_added_is_taken(tmp_path: Any) -> None:
    with (
        transactional_broker(tmp_path, transaction_partition_verification_enable="false") as running,
        running.connect() as peer,
    ):
        running.create_topic("t")
        client = TransactionalClient(peer)
        client.init()
        assert client.produce(b"a").error_code == NONE
        assert mark(peer, client, ("t", 0)) == [NONE]


@pytest.mark.parametrize(("version", "error"), [(11, ErrorCode.TRANSACTION_ABORTABLE), (12, NONE)])
def test_a_request_of_very_many_partitions(
    running: BrokerThread, peer: Peer, topic: str, begun: Begun, version: int, error: ErrorCode
) -> None:
    """It is served in parts, of which each asks for its own partitions."""
    count = PLAIN_PARTS_MAX + 6
    running.create_topic(f"{topic}-of-many", count)
    client = begun(2)
    records = batch(
        b"v", producer_id=client.producer_id, producer_epoch=client.epoch, base_sequence=0, transactional=True
    )
    data = [PartitionProduceData(index=index, records=records) for index in range(count)]
    request = ProduceRequest(
        transactional_id=client.id,
        acks=-1,
        timeout_ms=60_000,
        topic_data=[TopicProduceData(name=f"{topic}-of-many", partition_data=data)],
    )
    (answered,) = peer.ask(request, version, ProduceResponse).responses
    assert [each.error_code for each in answered.partition_responses] == [error] * count
    if error == NONE:
        assert client.end(commits=True) == NONE
        for index in (0, count - 1):
            until(lambda index=index: list_offset(peer, -1, f"{topic}-of-many", index, isolation_level=1).offset == 2)


def test_one_transaction_behind_the_other(peer: Peer, topic: str, begun: Begun) -> None:
    """The first batch waits until the transaction before has ended, and that one's marker comes in between."""
    client = begun(2)
    client.find("billing")
    for number in range(20):
        assert client.produce(b"%d" % number, topic).error_code == NONE
        assert client.commit_offsets("billing", {(topic, 0): number}) == {(topic, 0): NONE}
        assert client.end(commits=True) == NONE


def memo_of(running: BrokerThread, peer: Peer) -> Any:
    """What the broker remembers of a connection's last Produce."""
    port = peer.socket.getsockname()[1]

    def find(broker: Any) -> Any:
        return next(each.produce_memo for each in broker._server._connections if each.channel.peer_port == port)

    return running.look(find)


def test_transactions_of_one_batch_are_recognised_and_have_no_lane(
    running: BrokerThread, peer: Peer, topic: str, begun: Begun
) -> None:
    """A lane would bring each first batch to be looked at by itself."""
    client, memos = begun(), set[Any]()
    for number in range(4):
        client.add(topic, 0)
        assert client.produce(b"a", topic).base_offset == 2 * number
        assert client.end(commits=number % 2 == 0) == NONE
        memos.add(memo_of(running, peer))
        ended(peer, topic, 2 * (number + 1))
    (memo,) = memos
    assert not memo.is_in_lanes
    client.add(topic, 0)
    for number in range(3):
        assert client.produce(b"a", topic).error_code == NONE
        assert memo.is_in_lanes == (number > 0)
    assert client.end(commits=True) == NONE
    ended(peer, topic, 8 + 4)
    # And with a lane the next ones are what they would be without.
    for number in range(2):
        client.add(topic, 0)
        assert client.produce(b"a", topic).base_offset == 12 + 2 * number
        assert client.end(commits=True) == NONE
        ended(peer, topic, 12 + 2 * (number + 1))


def test_a_recognised_batch_of_a_transaction_that_nobody_began(
    running: BrokerThread, peer: Peer, topic: str, begun: Begun
) -> None:
    client = begun()
    for number in range(2):
        client.add(topic, 0)
        assert client.produce(b"a", topic).error_code == NONE
        assert client.end(commits=True) == NONE
        ended(peer, topic, 2 * (number + 1))
    assert memo_of(running, peer) is not None
    assert client.produce(b"late", topic).error_code == ErrorCode.TRANSACTION_ABORTABLE
    assert fetch(peer, topic=topic).high_watermark == 4
