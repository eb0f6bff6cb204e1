"""Recognised requests whose answers wait: held in one line a leader, with lanes and without, answered as all others."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from tests.handlers.followers import FIRST, SECOND, US, PlayedFollower, decide, look_at, state_of
from tests.handlers.frames import batch, produce, produce_request
from tests.server.conftest import BrokerThread, Peer

from ottla.handlers.produce.held import HeldProduces
from ottla.model import ErrorCode, TopicPartition
from ottla.native import compiled_run
from ottla.protocol.generated.api_versions import ApiVersionsRequest, ApiVersionsResponse
from ottla.protocol.generated.produce import ProduceRequest, ProduceResponse

VERSION = 9
NONE = ErrorCode.NONE


@pytest.fixture(params=["compiled", "pure"])
def broker(tmp_path: Any, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[BrokerThread]:
    if request.param == "pure":
        monkeypatch.setenv("OTTLA_PURE", "1")
    # Followers that are played have all the time that a busy machine takes: none falls out of the set by itself.
    with BrokerThread(str(tmp_path), **{"broker.id": str(US), "replica.lag.time.max.ms": "3600000"}) as running:
        yield running


def replicated(running: BrokerThread, topic: str, **options: Any) -> str:
    running.create_topic(topic, **options)
    assert decide(running, topic, leader_epoch=4) == NONE
    return topic


def until_end(running: BrokerThread, topic: str, end: int) -> None:
    for _ in range(100_000):
        if look_at(running, topic).log.end_offset >= end:
            return
    raise AssertionError(f"{topic} does not come to {end}")


def waiting(running: BrokerThread) -> list[type]:
    return running.look(lambda b: [type(each) for each in b.services.replicas.waiters._keys])  # type: ignore[union-attr]


def held(running: BrokerThread, topic: str) -> int:
    line = look_at(running, topic).held
    return len(line) if isinstance(line, HeldProduces) else 0


def timed(request: ProduceRequest, timeout_ms: int) -> ProduceRequest:
    request.timeout_ms = timeout_ms
    return request


def send(peer: Peer, topic: str, value: bytes, acks: int = -1, timeout_ms: int = 60_000) -> None:
    request = timed(produce_request(batch(value), topic=topic, acks=acks), timeout_ms)
    peer.send(peer.frame(request, VERSION))


def answer(peer: Peer) -> tuple[int, int]:
    found = peer.answer(ProduceResponse, VERSION).responses[0].partition_responses[0]
    return found.error_code, found.base_offset


def test_what_waits_for_followers_is_held_in_one_line(broker: BrokerThread) -> None:
    topic = replicated(broker, "t")
    peers = [broker.connect() for _ in range(6)]
    with broker.connect() as followers:
        first, second = (PlayedFollower(followers, topic, each) for each in (FIRST, SECOND))
        for turn in range(4):
            for number, peer in enumerate(peers):
                send(peer, topic, b"x")
                until_end(broker, topic, turn * 6 + number + 1)
            if turn:
                # The first request of a connection is parsed, and remembered.
                assert held(broker, topic) == 6
                assert waiting(broker) == [HeldProduces]
            end = turn * 6 + 6
            first.fetch(end)
            # The second is behind: what it has is committed, and no more.
            second.fetch(end - 2)
            assert [answer(peer) for peer in peers[:4]] == [(NONE, turn * 6 + n) for n in range(4)]
            second.fetch(end)
            assert [answer(peer) for peer in peers[4:]] == [(NONE, turn * 6 + n) for n in (4, 5)]
            assert held(broker, topic) == 0
            assert waiting(broker) == []
        compiled = compiled_run() is not None
        assert (look_at(broker, topic).run is not None) == compiled
    for peer in peers:
        peer.socket.close()


def test_a_leader_that_resigns_answers_all_of_it(broker: BrokerThread) -> None:
    topic = replicated(broker, "t")
    peers = [broker.connect() for _ in range(4)]
    with broker.connect() as followers:
        for turn in range(2):
            for number, peer in enumerate(peers):
                send(peer, topic, b"x")
                until_end(broker, topic, turn * 4 + number + 1)
            if turn:
                assert held(broker, topic) == 4
                assert decide(broker, topic, leader_id=FIRST, leader_epoch=5) == NONE
                assert {answer(peer) for peer in peers} == {(ErrorCode.NOT_LEADER_OR_FOLLOWER, -1)}
            else:
                for replica in (FIRST, SECOND):
                    PlayedFollower(followers, topic, replica).fetch(4)
                assert [answer(peer) for peer in peers] == [(NONE, n) for n in range(4)]
    for peer in peers:
        peer.socket.close()


def test_a_leader_that_goes_on_in_its_own_next_leader_epoch_keeps_all_of_it(broker: BrokerThread) -> None:
    topic = replicated(broker, "t")
    with broker.connect() as peer, broker.connect() as followers:
        first, second = (PlayedFollower(followers, topic, each) for each in (FIRST, SECOND))
        for turn in range(3):
            send(peer, topic, b"x")
            until_end(broker, topic, turn + 1)
            if turn == 2:
                assert held(broker, topic) == 1
                assert decide(broker, topic, leader_epoch=5) == NONE
                assert held(broker, topic) == 1
            for follower in (first, second):
                follower.fetch(turn + 1, leader_epoch=-1)
            assert answer(peer) == (NONE, turn)
        memo = broker.look(
            lambda b: next(c.produce_memo for c in b._server._connections if c.produce_memo is not None)  # type: ignore[union-attr]
        )
        assert memo is not None
        assert memo.leader.epoch == 5


def test_its_time_is_its_own(broker: BrokerThread) -> None:
    topic = replicated(broker, "t")
    with broker.connect() as patient, broker.connect() as hasty, broker.connect() as followers:
        for turn, (until, late) in enumerate([(60_000, 60_000), (60_000, 1)]):
            send(patient, topic, b"a", timeout_ms=until)
            until_end(broker, topic, 2 * turn + 1)
            send(hasty, topic, b"b", timeout_ms=late)
            until_end(broker, topic, 2 * turn + 2)
            if turn:
                assert answer(hasty) == (ErrorCode.REQUEST_TIMED_OUT, -1)
            for replica in (FIRST, SECOND):
                PlayedFollower(followers, topic, replica).fetch(2 * turn + 2)
            assert answer(patient) == (NONE, 2 * turn)
            if not turn:
                assert answer(hasty) == (NONE, 1)


def test_acks_of_the_leader_wait_for_no_follower(broker: BrokerThread) -> None:
    topic = replicated(broker, "t")
    with broker.connect() as peer:
        for turn in range(4):
            send(peer, topic, b"x", acks=1)
            assert answer(peer) == (NONE, turn)
        leader = look_at(broker, topic)
        assert leader.high_watermark == 0
        assert (leader.run, leader.run_of_leader is not None) in {(None, True), (None, False)}


def test_a_set_that_falls_below_the_minimum_lets_a_request_time_out_or_go_on(broker: BrokerThread) -> None:
    """As Kafka since 3.7: the watermark stands still, so it is not known to be lost, and comes to be when they do."""
    topic = replicated(broker, "t", min_insync_replicas="2")
    with broker.connect() as peer, broker.connect() as hasty, broker.connect() as followers:
        first = PlayedFollower(followers, topic)
        for turn in range(2):
            for each in (peer, hasty):
                send(each, topic, b"x", timeout_ms=1 if turn and each is hasty else 60_000)
                until_end(broker, topic, look_at(broker, topic).log.end_offset)
            if not turn:
                until_end(broker, topic, 2)
                for replica in (FIRST, SECOND):
                    PlayedFollower(followers, topic, replica).fetch(2)
                assert {answer(peer)[0], answer(hasty)[0]} == {NONE}
        until_end(broker, topic, 4)
        assert decide(broker, topic, isr=(US,)) == NONE
        assert look_at(broker, topic).high_watermark == 2
        assert answer(hasty)[0] == ErrorCode.REQUEST_TIMED_OUT
        # What comes now is refused before it is written.
        assert produce(hasty, batch(b"y"), topic=topic).error_code == ErrorCode.NOT_ENOUGH_REPLICAS
        first.fetch(4)
        assert decide(broker, topic, isr=(US, FIRST)) == NONE
        assert answer(peer)[0] == NONE
        assert look_at(broker, topic).high_watermark == 4


def test_a_set_that_falls_below_the_minimum_as_the_watermark_passes_is_said(broker: BrokerThread) -> None:
    """Between two rounds the followers have all of it, and the controller's smaller set is there as well: what waits is
    looked at behind both. Its records are on enough replicas, and nobody knows for how long: as in Kafka."""
    topic = replicated(broker, "t", min_insync_replicas="2")
    with broker.connect() as parsed, broker.connect() as remembered:
        for turn in range(3):
            for number, peer in enumerate((parsed, remembered)):
                # The second request of a connection is remembered, and held in a line; acks=1 has none of this.
                send(peer, topic, b"x", acks=1 if turn == 2 and peer is parsed else -1)
                until_end(broker, topic, 2 * turn + number + 1)
            if turn == 2:
                assert answer(parsed) == (NONE, 4)
            if turn:
                assert held(broker, topic) == 3 - turn
            pass_and_shrink(broker, topic, 2 * turn + 2)
            expected = (ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND, -1)
            assert answer(remembered) == expected
            if turn < 2:
                assert answer(parsed) == expected
            assert look_at(broker, topic).high_watermark == 2 * turn + 2
            assert decide(broker, topic) == NONE
    assert waiting(broker) == []


def pass_and_shrink(running: BrokerThread, topic: str, end: int) -> None:
    """Both followers ask for `end`, and a state says that this broker alone is in sync, in one round."""

    def both(broker: Any) -> None:
        replicas = broker.services.replicas
        leader = replicas.leaders[TopicPartition(topic, 0)]
        for follower in (FIRST, SECOND):
            leader.follower_fetched(follower, end)
        replicas.apply([state_of(leader, isr=(US,))], lambda _: leader.log.config)
        replicas.waiters.changed(leader.tp)
        broker.services.round.soon()

    running.look(both)


def test_a_client_that_goes_leaves_the_others_their_answers(broker: BrokerThread) -> None:
    topic = replicated(broker, "t")
    with broker.connect() as followers, broker.connect() as stays:
        goes = broker.connect()
        for turn in range(2):
            for number, peer in enumerate((goes, stays)):
                send(peer, topic, b"x")
                until_end(broker, topic, 2 * turn + number + 1)
            if turn:
                goes.socket.close()
            for replica in (FIRST, SECOND):
                PlayedFollower(followers, topic, replica).fetch(2 * turn + 2)
            assert answer(stays) == (NONE, 2 * turn + 1)
            if not turn:
                assert answer(goes) == (NONE, 0)


def test_another_request_waits_behind_what_is_held(broker: BrokerThread) -> None:
    """On one connection: what a lane holds has its place before all that the lane does not know."""
    topic = replicated(broker, "t")
    broker.create_topic("other")
    with broker.connect() as peer, broker.connect() as followers:
        first, second = (PlayedFollower(followers, topic, each) for each in (FIRST, SECOND))
        for turn in range(3):
            send(peer, topic, b"a")
            until_end(broker, topic, 3 * turn + 1)
            if turn:
                assert held(broker, topic) == 1
            send(peer, topic, b"b")
            until_end(broker, topic, 3 * turn + 2)
            # Committed at once, by its own partition.
            send(peer, "other", b"c")
            until_end(broker, "other", turn + 1)
            send(peer, topic, b"d")
            until_end(broker, topic, 3 * turn + 3)
            peer.send(peer.frame(ApiVersionsRequest(), 0))
            for follower in (first, second):
                follower.fetch(3 * turn + 3)
            expected = [(NONE, 3 * turn), (NONE, 3 * turn + 1), (NONE, turn), (NONE, 3 * turn + 2)]
            assert [answer(peer) for _ in expected] == expected
            assert peer.answer(ApiVersionsResponse, 0).error_code == NONE
            assert held(broker, topic) == 0
    assert waiting(broker) == []


def test_a_client_that_goes_leaves_nothing_behind(broker: BrokerThread) -> None:
    topic = replicated(broker, "t")
    with broker.connect() as followers, broker.connect() as stays:
        first, second = (PlayedFollower(followers, topic, each) for each in (FIRST, SECOND))
        goes = broker.connect()
        for turn in range(2):
            for number, peer in enumerate((goes, stays)):
                send(peer, topic, b"x")
                until_end(broker, topic, 2 * turn + number + 1)
            if turn:
                goes.socket.close()
            for follower in (first, second):
                follower.fetch(2 * turn + 2)
            if not turn:
                assert answer(goes) == (NONE, 0)
            assert answer(stays) == (NONE, 2 * turn + 1)
        assert held(broker, topic) == 0
    assert waiting(broker) == []
