"""A follower's fetch that waits, is woken, and finds that workers have to read for its log first: answered once."""

from __future__ import annotations

from typing import Any

import pytest
from tests.handlers.fetch.test_follower_sessions import EPOCH, FollowerOfMany
from tests.handlers.followers import ALL, SECOND, decide
from tests.handlers.frames import batch, produce, values
from tests.server.conftest import BrokerThread, Peer

from ottla.handlers.fetch import reading
from ottla.model import ErrorCode, TopicPartition
from ottla.storage.errors import StorageFault
from ottla.storage.log.log import Log

LONG_MS = 10 * 60_000


class AlreadyRead:
    """What a log is said to lack, though it does not."""

    fault: StorageFault | None = None

    def __init__(self, log: Log) -> None:
        self.log = log

    def run(self) -> None: ...

    def take(self) -> None: ...


def watermark_moves(broker: Any, topic: str) -> None:
    """By another follower, of whose fetch nothing is read."""
    replicas = broker.services.replicas
    leader = replicas.leaders[TopicPartition(topic, 0)]
    leader.follower_fetched(SECOND, leader.log.end_offset)
    assert leader.high_watermark == leader.log.end_offset
    replicas.waiters.changed(leader.tp)
    broker.services.round.soon()


def test_news_of_a_watermark_that_workers_stand_before_is_answered_once(
    running: BrokerThread, peer: Peer, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic = "woken-for-workers"
    running.create_topic(topic)
    assert decide(running, topic, leader_epoch=EPOCH, replicas=ALL) == ErrorCode.NONE
    follower = FollowerOfMany(peer, topic, 1)
    with running.connect() as other:
        assert produce(other, batch(b"a"), topic=topic, acks=1).error_code == ErrorCode.NONE
        assert values(follower.fetch(0)[0]) == [b"a"]
        # What the session asks for from now on; nothing comes of it.
        follower.fetch(0)
        follower.send(max_wait_ms=LONG_MS)
        lacked = [True]

        def missing(log: Log) -> AlreadyRead | None:
            return AlreadyRead(log) if log.tp.topic == topic and lacked and lacked.pop() else None

        monkeypatch.setattr(reading, "missing_producers", missing)
        running.look(lambda broker: watermark_moves(broker, topic))
    (news,) = follower.answer()
    assert (news.high_watermark, values(news)) == (1, [])
    assert not lacked
    sent = peer.last_correlation
    for each in range(3):
        assert follower.fetch(max_wait_ms=20) == []
        assert peer.last_correlation == sent + 1 + each
    assert running.look(lambda broker: len(broker.services.replicas.waiters)) == 0  # type: ignore[union-attr]
