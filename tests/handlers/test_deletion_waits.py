"""DeleteRecords is answered when the replicas on all live brokers have given the records up, or when its time is up."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from tests.handlers.fetch.test_recognised_followers import Follower as RecognisedFollower
from tests.handlers.fetch.test_recognised_followers import count_recognised
from tests.handlers.followers import FIRST, US, PlayedFollower, decide, look_at, register
from tests.handlers.frames import batch, produce
from tests.handlers.transactional import until
from tests.server.conftest import BrokerThread, Peer

from ottla.model import OFFSETS_TOPIC, ErrorCode, TopicPartition
from ottla.protocol.generated.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopic,
)
from ottla.replication.leader import Leader
from ottla.steps import PIECE

EPOCH = 4
VERSION = 2


class Follower(PlayedFollower):
    """One that has all of the log, from an offset on."""

    def has(self, log_start: int, end: int) -> None:
        request = self.request(end, leader_epoch=EPOCH)
        request.topics[0].partitions[0].log_start_offset = log_start
        self.peer.send(self.peer.frame(request, 12))
        assert self.answer().error_code == ErrorCode.NONE


@pytest.fixture
def topic(running: BrokerThread, peer: Peer, request: pytest.FixtureRequest) -> Iterator[str]:
    """Three committed records, which a follower has as well."""
    name = request.node.name.replace("_", "-")
    running.create_topic(name)
    assert decide(running, name, leader_epoch=EPOCH, replicas=(US, FIRST)) == ErrorCode.NONE
    register(running, (FIRST, 1))
    assert produce(peer, batch(b"a", b"b", b"c"), topic=name, acks=1).error_code == 0
    with running.connect() as other:
        Follower(other, name).has(0, 3)
    yield name
    register(running)


def ask(peer: Peer, topic: str, offset: int, timeout_ms: int = 60_000) -> None:
    asked = DeleteRecordsTopic(name=topic, partitions=[DeleteRecordsPartition(partition_index=0, offset=offset)])
    peer.send(peer.frame(DeleteRecordsRequest(topics=[asked], timeout_ms=timeout_ms), VERSION))


def answered(peer: Peer) -> tuple[int, int]:
    (topic,) = peer.answer(DeleteRecordsResponse, VERSION).topics
    (partition,) = topic.partitions
    return partition.error_code, partition.low_watermark


def test_nobody_deletes_records_of_coordinators_wherever_they_are_led(running: BrokerThread, peer: Peer) -> None:
    running.create_topic(OFFSETS_TOPIC)
    tp = TopicPartition(OFFSETS_TOPIC, 0)
    running.look(lambda broker: broker.services.replicas.stand_aside(tp))  # type: ignore[union-attr]
    try:
        ask(peer, OFFSETS_TOPIC, 0)
        assert answered(peer) == (ErrorCode.INVALID_TOPIC_EXCEPTION, -1)
    finally:
        running.look(lambda broker: broker.services.replicas.lead_again(tp))  # type: ignore[union-attr]
    partitions = [DeleteRecordsPartition(partition_index=number) for number in (0, 7)]
    asked = DeleteRecordsTopic(name=OFFSETS_TOPIC, partitions=partitions)
    (found,) = peer.ask(DeleteRecordsRequest(topics=[asked]), VERSION, DeleteRecordsResponse).topics
    errors = [ErrorCode.INVALID_TOPIC_EXCEPTION, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]
    assert [partition.error_code for partition in found.partitions] == errors


def until_it_waits(running: BrokerThread) -> None:
    """The first request of its API is served when a worker has imported that."""
    until(lambda: running.look(lambda broker: _waiting(broker) > 0))


def _waiting(broker: Any) -> int:
    return len(broker.services.replicas.waiters)


def test_the_answer_waits_for_the_followers_log_start(running: BrokerThread, peer: Peer, topic: str) -> None:
    ask(peer, topic, 2)
    with running.connect() as other:
        follower = Follower(other, topic)
        follower.has(1, 3)
        until_it_waits(running)
        follower.has(2, 3)
    assert answered(peer) == (ErrorCode.NONE, 2)


def test_a_log_start_in_a_fetch_that_is_like_the_last_one_counts(
    running: BrokerThread, peer: Peer, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    recognised = count_recognised(monkeypatch)
    with running.connect() as other:
        follower = RecognisedFollower(other, running, topic, alike=True)

        def has(log_start: int) -> None:
            # One that names its partition each time, as where records come.
            follower.row = ()
            follower.send(3, EPOCH, EPOCH, 1, follower.epoch, log_start)
            assert follower.answer()[0] == ErrorCode.NONE

        for _ in range(3):
            has(0)
        assert recognised[-1]
        assert look_at(running, topic).isr.followers[FIRST].log_start == 0
        ask(peer, topic, 2)
        until_it_waits(running)
        has(2)
        assert recognised[-1]
        assert answered(peer) == (ErrorCode.NONE, 2)


def test_when_the_time_is_up_the_low_watermark_is_answered(running: BrokerThread, peer: Peer, topic: str) -> None:
    ask(peer, topic, 2, timeout_ms=1)
    assert answered(peer) == (ErrorCode.REQUEST_TIMED_OUT, 0)


def test_a_follower_whose_broker_is_gone_is_not_waited_for(running: BrokerThread, peer: Peer, topic: str) -> None:
    register(running)
    ask(peer, topic, 2)
    assert answered(peer) == (ErrorCode.NONE, 2)


def test_another_leader_ends_the_wait(running: BrokerThread, peer: Peer, topic: str) -> None:
    ask(peer, topic, 2)
    with running.connect() as other:
        Follower(other, topic).has(1, 3)
    until_it_waits(running)
    decide(running, topic, leader_id=FIRST, leader_epoch=EPOCH + 1, replicas=(US, FIRST))
    assert answered(peer) == (ErrorCode.NOT_LEADER_OR_FOLLOWER, -1)


def test_a_partition_that_is_named_again_is_asked_about_once_with_its_last_offset(
    running: BrokerThread, peer: Peer, topic: str
) -> None:
    def asked(*offsets: int) -> DeleteRecordsTopic:
        partitions = [DeleteRecordsPartition(partition_index=0, offset=offset) for offset in offsets]
        return DeleteRecordsTopic(name=topic, partitions=partitions)

    request = DeleteRecordsRequest(topics=[asked(3, 1), asked(), asked(1, 2)], timeout_ms=60_000)
    peer.send(peer.frame(request, VERSION))
    until_it_waits(running)
    with running.connect() as other:
        Follower(other, topic).has(2, 3)
    assert answered(peer) == (ErrorCode.NONE, 2)


def test_what_a_follower_has_done_of_many_is_looked_at_some_at_a_time(
    running: BrokerThread, peer: Peer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A request may name ten thousand partitions, and each fetch of a follower changes some of them."""
    many = 200
    running.create_topic("many", partitions=many)
    register(running, (FIRST, 1))
    try:
        for partition in range(many):
            assert decide(running, "many", partition=partition, leader_epoch=EPOCH, replicas=(US, FIRST)) == 0
        partitions = [DeleteRecordsPartition(partition_index=number, offset=0) for number in range(many)]
        monkeypatch.setattr(Leader, "low_watermark", lambda *_: -1)
        topics = [DeleteRecordsTopic(name="many", partitions=partitions)]
        peer.send(peer.frame(DeleteRecordsRequest(topics=topics, timeout_ms=60_000), VERSION))
        until(lambda: running.look(lambda broker: _waits_for(broker, "many")) == many)
        looked_at: list[int] = []
        monkeypatch.setattr(Leader, "low_watermark", lambda leader, _: looked_at.append(leader.tp.partition) or -1)
        with running.connect() as other:
            Follower(other, "many").has(0, 0)
        until(lambda: 0 in looked_at)
        assert len(looked_at) <= PIECE
        monkeypatch.undo()
        running.look(lambda broker: [_changed(broker, "many", partition) for partition in range(many)])
        register(running)
        running.look(lambda broker: [_changed(broker, "many", partition) for partition in range(many)])
        answer = peer.answer(DeleteRecordsResponse, VERSION)
        assert [each.error_code for each in answer.topics[0].partitions] == [ErrorCode.NONE] * many
    finally:
        register(running)


def _waits_for(broker: Any, topic: str) -> int:
    """Partitions that some request waits for."""
    waiters = broker.services.replicas.waiters
    return sum(tp.topic == topic for _, partitions in waiters._keys.values() for tp in partitions)


def _changed(broker: Any, topic: str, partition: int) -> None:
    broker.services.replicas.waiters.changed_between_rounds(TopicPartition(topic, partition))
