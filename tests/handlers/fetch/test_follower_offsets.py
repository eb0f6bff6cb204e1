"""A follower's offset counts where the read itself was in order, and nowhere else: the high watermark rests on it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from tests.handlers.followers import ALL, FIRST, SECOND, US, PlayedFollower, decide, look_at, register
from tests.handlers.frames import batch, fetch, produce, values
from tests.server.conftest import BrokerThread, Peer

from ottla.model import ErrorCode, TopicPartition

EPOCH = 4


@pytest.fixture
def topic(running: BrokerThread, peer: Peer, request: pytest.FixtureRequest) -> Iterator[str]:
    """Three records: two of leader epoch 0, one of leader epoch 4, in which the partition has a follower."""
    name = "".join(c if c.isalnum() else "-" for c in request.node.name)
    running.create_topic(name)
    assert produce(peer, batch(b"a", b"b"), topic=name).error_code == 0
    # Twice on, so that this broker has not led in between for all that it knows.
    assert decide(running, name, leader_epoch=EPOCH, replicas=(US, FIRST)) == ErrorCode.NONE
    assert produce(peer, batch(b"c"), topic=name, acks=1).error_code == 0
    return name


def known(running: BrokerThread, topic: str, replica: int = FIRST) -> int:
    return look_at(running, topic).isr.followers[replica].end


def test_a_read_in_order_counts(running: BrokerThread, peer: Peer, topic: str) -> None:
    follower = PlayedFollower(peer, topic)
    answer = follower.fetch(2, leader_epoch=EPOCH, last_epoch=0)
    assert (answer.error_code, values(answer), answer.high_watermark) == (0, [b"c"], 2)
    assert known(running, topic) == 2
    assert follower.fetch(3, leader_epoch=EPOCH, last_epoch=EPOCH).high_watermark == 3
    assert known(running, topic) == 3


@pytest.mark.parametrize(
    ("offset", "asked", "error"),
    [
        (3, {"leader_epoch": EPOCH - 1, "last_epoch": EPOCH}, ErrorCode.FENCED_LEADER_EPOCH),
        (3, {"leader_epoch": EPOCH + 1, "last_epoch": EPOCH}, ErrorCode.UNKNOWN_LEADER_EPOCH),
        (4, {"leader_epoch": EPOCH, "last_epoch": EPOCH}, ErrorCode.NONE),
        (4, {"leader_epoch": EPOCH}, ErrorCode.OFFSET_OUT_OF_RANGE),
        (-1, {"leader_epoch": EPOCH}, ErrorCode.OFFSET_OUT_OF_RANGE),
        # It has three records of an earlier leader epoch, of which this log has two.
        (3, {"leader_epoch": EPOCH, "last_epoch": 0}, ErrorCode.NONE),
        # And three of a leader epoch that this log has never seen.
        (3, {"leader_epoch": EPOCH, "last_epoch": 2}, ErrorCode.NONE),
    ],
)
def test_a_read_that_is_not_in_order_shows_nothing(
    running: BrokerThread, peer: Peer, topic: str, offset: int, asked: dict[str, int], error: ErrorCode
) -> None:
    before = look_at(running, topic).high_watermark
    answer = PlayedFollower(peer, topic).fetch(offset, **asked)
    assert answer.error_code == error
    if error == ErrorCode.NONE:
        assert answer.diverging_epoch.end_offset >= 0
    assert known(running, topic) == 0
    assert look_at(running, topic).high_watermark == before


@pytest.mark.parametrize(
    ("offset", "error"),
    [(4, ErrorCode.OFFSET_OUT_OF_RANGE), (-1, ErrorCode.OFFSET_OUT_OF_RANGE), (3, ErrorCode.NONE), (1, ErrorCode.NONE)],
)
def test_a_follower_that_is_held_back_is_believed_within_the_log_and_nowhere_else(
    running: BrokerThread, peer: Peer, topic: str, offset: int, error: ErrorCode
) -> None:
    """It gets no records for now (KIP-73), and what it asks for is looked at all the same. Without the epoch of its
    last record, as fetches before version 12 are, its offset is all there is to look at."""
    decide(running, topic, leader_epoch=EPOCH, replicas=(US, FIRST), isr=(US,))
    throttle(running, topic)
    answer = PlayedFollower(peer, topic).fetch(offset, version=11, leader_epoch=EPOCH)
    assert (answer.error_code, values(answer)) == (error, [])
    assert known(running, topic) == (offset if error == ErrorCode.NONE else 0)


def throttle(running: BrokerThread, topic: str) -> None:
    """No follower of the topic that is not in sync gets anything from now on."""

    def apply(broker: Any) -> None:
        replicas = broker.services.replicas
        log = replicas.leaders[TopicPartition(topic, 0)].log
        log.config = log.config._replace(leader_throttled_replicas=("*",))
        replicas.throttle.quota.bytes_a_second = lambda: 0
        replicas.throttle.quota.record(1)

    running.look(apply)


@pytest.mark.parametrize("in_session", [False, True])
def test_the_same_in_a_session_and_without_one(running: BrokerThread, peer: Peer, topic: str, in_session: bool) -> None:
    follower = PlayedFollower(peer, topic)
    epoch = 0 if in_session else -1
    follower.fetch(3, leader_epoch=EPOCH, last_epoch=0, session_epoch=epoch)
    assert known(running, topic) == 0
    follower.fetch(2, leader_epoch=EPOCH, last_epoch=0, session_epoch=epoch)
    assert known(running, topic) == 2


@pytest.mark.parametrize(
    ("leader_epoch", "error"),
    [
        (-1, ErrorCode.NOT_LEADER_OR_FOLLOWER),
        (EPOCH - 1, ErrorCode.FENCED_LEADER_EPOCH),
        (EPOCH, ErrorCode.UNKNOWN_LEADER_EPOCH),
        (EPOCH + 1, ErrorCode.UNKNOWN_LEADER_EPOCH),
    ],
)
def test_a_stranger_shows_nothing(
    running: BrokerThread, peer: Peer, topic: str, leader_epoch: int, error: ErrorCode
) -> None:
    answer = PlayedFollower(peer, topic, SECOND).fetch(3, leader_epoch=leader_epoch)
    assert answer.error_code == error
    assert look_at(running, topic).high_watermark == 2


@pytest.mark.parametrize(("broker_epoch", "counts"), [(70, False), (77, True), (80, True), (-1, True)])
def test_a_follower_that_has_registered_again_since_shows_nothing(
    running: BrokerThread, peer: Peer, topic: str, broker_epoch: int, counts: bool
) -> None:
    """What it says now is of its former life. Of a registration that this broker has not heard of yet it may speak."""
    register(running, (FIRST, 77))
    follower = PlayedFollower(peer, topic, broker_epoch=broker_epoch)
    topic_id = bytes(look_at(running, topic).log.topic_id)
    answer = follower.fetch(3, version=15, leader_epoch=EPOCH, last_epoch=EPOCH, topic_id=topic_id)
    assert answer.error_code == (ErrorCode.NONE if counts else ErrorCode.NOT_LEADER_OR_FOLLOWER)
    assert known(running, topic) == (3 if counts else 0)


def test_an_offset_counts_once_however_often_a_fetch_that_waits_is_looked_at(
    running: BrokerThread, peer: Peer, topic: str
) -> None:
    """What is asked later is no proof that the follower is there."""
    follower = PlayedFollower(peer, topic)
    follower.send(3, leader_epoch=EPOCH, last_epoch=EPOCH, max_wait_ms=60_000, min_bytes=1 << 20)

    def asked() -> int:
        return look_at(running, topic).isr.followers[FIRST].fetched_ms

    with running.connect() as other:
        for _ in range(2000):
            if known(running, topic) == 3:
                break
        at_ms = asked()
        for value in (b"d", b"e"):
            assert produce(other, batch(value), topic=topic, acks=1).error_code == 0
        assert asked() == at_ms
        assert look_at(running, topic).isr.followers[FIRST].leader_end == 3


def test_where_brokers_have_a_listener_of_their_own_followers_come_by_that(tmp_path: Any) -> None:
    properties = {
        "listeners": "CLIENTS://127.0.0.1:0,BROKERS://127.0.0.1:0",
        "listener.security.protocol.map": "CLIENTS:PLAINTEXT,BROKERS:PLAINTEXT",
        "inter.broker.listener.name": "BROKERS",
    }
    with BrokerThread(str(tmp_path), **properties) as running:
        running.create_topic("t")
        decide(running, "t", leader_epoch=EPOCH, replicas=ALL)
        with running.connect() as peer:
            assert produce(peer, batch(b"a"), topic="t", acks=1).error_code == 0
            answer = PlayedFollower(peer, "t").fetch(1, leader_epoch=EPOCH)
            assert answer.error_code == ErrorCode.TOPIC_AUTHORIZATION_FAILED
            assert known(running, "t") == 0
            # Clients are served there as ever.
            assert fetch(peer, 0, topic="t").error_code == ErrorCode.NONE
        with Peer(running.broker.endpoints[1].port) as brokers:
            assert PlayedFollower(brokers, "t").fetch(1, leader_epoch=EPOCH).error_code == ErrorCode.NONE
            assert known(running, "t") == 1
