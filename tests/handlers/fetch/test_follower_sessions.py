"""Followers' sessions: what has not changed costs nothing, watermarks are heard of, each request is a sign of life.

With them the walk-throughs of watermarks as they are often told: LEO is a log's end, remote LEO what a leader knows of
its follower's, HW the watermark.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from tests.handlers.followers import FIRST, SECOND, US, PlayedFollower, decide, look_at
from tests.handlers.frames import batch, produce, values
from tests.server.conftest import BrokerThread, Peer

import ottla.handlers.fetch.in_steps as in_steps_module
from ottla.handlers.fetch.reading import FetchReader
from ottla.handlers.fetch.waiting import WATERMARK_NEWS_MS
from ottla.model import ErrorCode
from ottla.protocol.generated.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic
from ottla.replication.waiters import Waiters

EPOCH = 4
WAIT_MS = 500
#: Before the broker wakes for something else, which is after 30 s.
HEARD_S = 20.0


@pytest.fixture
def topic(running: BrokerThread, request: pytest.FixtureRequest) -> Iterator[str]:
    name = "".join(c if c.isalnum() else "-" for c in request.node.name)
    running.create_topic(name)
    assert decide(running, name, leader_epoch=EPOCH, replicas=(US, FIRST)) == ErrorCode.NONE
    return name


class FollowerOfMany:
    """A follower's session with many partitions of one topic."""

    def __init__(self, peer: Peer, topic: str, partitions: int) -> None:
        self.peer, self.topic = peer, topic
        self.offsets = dict.fromkeys(range(partitions), 0)
        self.session, self.epoch = 0, 0

    def fetch(self, *named: int, max_wait_ms: int = 0) -> list[Any]:
        self.send(*named, max_wait_ms=max_wait_ms)
        return self.answer()

    def send(self, *named: int, max_wait_ms: int = 0) -> None:
        partitions = [
            FetchPartition(
                partition=each, fetch_offset=self.offsets[each], current_leader_epoch=EPOCH, partition_max_bytes=1 << 20
            )
            for each in named
        ]
        request = FetchRequest(
            replica_id=FIRST,
            max_wait_ms=max_wait_ms,
            min_bytes=1,
            max_bytes=10 << 20,
            session_id=self.session,
            session_epoch=self.epoch,
            topics=[FetchTopic(topic=self.topic, partitions=partitions)] if partitions else [],
        )
        self.peer.send(self.peer.frame(request, 12))

    def answer(self) -> list[Any]:
        found = self.peer.answer(FetchResponse, 12)
        assert found.error_code == 0
        self.session = found.session_id
        self.epoch += 1
        answers = [each for topic in found.responses for each in topic.partitions]
        for each in answers:
            self.offsets[each.partition_index] += len(values(each))
        return answers


def test_what_has_not_changed_costs_nothing(
    running: BrokerThread, peer: Peer, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is read, asked for or watched anew, however many partitions rest in the session."""
    count, busy = 200, 77
    running.create_topic("many", count)
    for partition in range(count):
        assert decide(running, "many", partition=partition, leader_epoch=EPOCH, replicas=(US, FIRST)) == ErrorCode.NONE
    follower = FollowerOfMany(peer, "many", count)
    assert len(follower.fetch(*range(count))) == count
    assert follower.fetch() == []
    reads: list[int] = []
    watched: list[object] = []
    read, stand, watch = FetchReader.read, Waiters.stand, Waiters.watch
    monkeypatch.setattr(
        FetchReader, "read", lambda self, asked, *a, **k: (reads.append(asked.partition), read(self, asked, *a, **k))[1]
    )
    for name, method in (("stand", stand), ("watch", watch)):
        monkeypatch.setattr(
            Waiters, name, lambda self, key, w, method=method: (watched.append(key), method(self, key, w))[1]
        )
    with running.connect() as producer:
        for turn in range(5):
            assert produce(producer, batch(b"x"), topic="many", partition=busy, acks=1).error_code == 0
            (answer,) = follower.fetch()
            assert (answer.partition_index, values(answer)) == (busy, [b"x"])
            # It has it now: the watermark moves, and the answer to that says so.
            (answer,) = follower.fetch(busy)
            assert (answer.partition_index, answer.high_watermark) == (busy, turn + 1)
            assert follower.fetch() == []
    assert set(reads) == {busy}
    assert len(reads) <= 5 * 3
    assert watched == []


def test_each_request_of_a_session_is_a_sign_of_life_for_all_its_partitions(
    running: BrokerThread, peer: Peer, topic: str
) -> None:
    follower = FollowerOfMany(peer, topic, 1)
    follower.fetch(0)
    progress = look_at(running, topic).isr.followers[FIRST]
    before = progress.caught_up_ms()
    running.look(lambda broker: setattr(progress._beat, "ms", before + 7))
    assert progress.caught_up_ms() == before + 7
    follower.fetch()
    at_ms = progress.caught_up_ms()
    with running.connect() as producer:
        assert produce(producer, batch(b"x"), topic=topic, acks=1).error_code == 0
    # From then on it has not all that there is, whatever it asks for.
    running.look(lambda broker: setattr(progress._beat, "ms", at_ms + 1_000))
    assert progress.caught_up_ms() == at_ms


@pytest.fixture(params=[False, True], ids=["in a round", "in steps"])
def in_steps(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each fetch is tried within a round, or as one of very many partitions is."""
    if request.param:
        monkeypatch.setattr(in_steps_module, "READ_AT_ONCE_MAX", 0)


@pytest.mark.usefixtures("in_steps")
@pytest.mark.parametrize("in_session", [False, True])
def test_a_parked_fetch_hears_of_a_watermark_that_moved(
    running: BrokerThread, peer: Peer, topic: str, in_session: bool
) -> None:
    """Another replica was the last to have it."""
    peer.socket.settimeout(HEARD_S)
    assert decide(running, topic, replicas=(US, FIRST, SECOND)) == ErrorCode.NONE
    with running.connect() as other:
        assert produce(other, batch(b"a"), topic=topic, acks=1).error_code == 0
        if in_session:
            follower = FollowerOfMany(peer, topic, 1)
            assert [values(each) for each in follower.fetch(0)] == [[b"a"]]
            follower.send(0, max_wait_ms=10 * 60_000)
        else:
            played = PlayedFollower(peer, topic)
            assert values(played.fetch(0)) == [b"a"]
            played.send(1, max_wait_ms=10 * 60_000)
        while look_at(running, topic).isr.followers[FIRST].end < 1:
            pass
        assert look_at(running, topic).high_watermark == 0
        assert PlayedFollower(other, topic, SECOND).fetch(1).error_code == 0
        answer = follower.answer()[0] if in_session else played.answer()
        assert (answer.high_watermark, values(answer)) == (1, [])
    assert WATERMARK_NEWS_MS < WAIT_MS


@pytest.mark.usefixtures("in_steps")
def test_a_follower_that_opens_a_session_hears_of_the_watermark_soon(
    running: BrokerThread, peer: Peer, topic: str
) -> None:
    """It has all records, and comes back without knowing that they are committed."""
    with running.connect() as other:
        assert produce(other, batch(b"a"), topic=topic, acks=1).error_code == 0
    follower = FollowerOfMany(peer, topic, 1)
    follower.offsets[0] = 1
    (answer,) = follower.fetch(0, max_wait_ms=10 * 60_000)
    assert (answer.high_watermark, values(answer)) == (1, [])


# The walk-throughs


def state(running: BrokerThread, topic: str) -> tuple[int, int, int]:
    """LEO, remote LEO and HW of the leader."""
    leader = look_at(running, topic)
    return leader.log.end_offset, leader.isr.followers[FIRST].end, leader.high_watermark


def test_first_case_the_leader_writes_and_then_the_follower_fetches(
    running: BrokerThread, peer: Peer, topic: str
) -> None:
    follower = PlayedFollower(peer, topic)
    assert state(running, topic) == (0, 0, 0)
    with running.connect() as producer:
        # 1. The leader appends: its LEO is 1, remote LEO stays 0, so HW stays 0.
        assert produce(producer, batch(b"m"), topic=topic, acks=1).base_offset == 0
        assert state(running, topic) == (1, 0, 0)
        # 2. The follower's first fetch asks for 0: remote LEO = 0, HW = 0, and it is answered the record and HW 0.
        answer = follower.fetch(0, max_wait_ms=WAIT_MS)
        assert state(running, topic) == (1, 0, 0)
        assert (values(answer), answer.high_watermark) == ([b"m"], 0)
        # The follower's LEO is 1 then, and its HW the smaller of the two, 0.
        assert min(1, answer.high_watermark) == 0
        # 3. Its second fetch asks for 1: remote LEO = 1, HW = 1, and it is answered no record and HW 1.
        answer = follower.fetch(1, max_wait_ms=WAIT_MS)
        assert state(running, topic) == (1, 1, 1)
        assert (values(answer), answer.high_watermark) == ([], 1)


def test_second_case_the_follower_waits_at_the_leader_when_it_writes(
    running: BrokerThread, peer: Peer, topic: str
) -> None:
    follower = PlayedFollower(peer, topic)
    # Without records the fetch is parked up to replica.fetch.wait.max.ms, and then answered nothing.
    answer = follower.fetch(0, max_wait_ms=WAIT_MS)
    assert (values(answer), answer.high_watermark) == ([], 0)
    follower.send(0, max_wait_ms=10 * 60_000)
    with running.connect() as producer:
        # 1. The leader writes; 2. that wakes the fetch; 3. HW follows with the next one.
        assert produce(producer, batch(b"m"), topic=topic, acks=1).base_offset == 0
        answer = follower.answer()
        assert (values(answer), answer.high_watermark) == ([b"m"], 0)
        assert state(running, topic) == (1, 0, 0)
        answer = follower.fetch(1, max_wait_ms=WAIT_MS)
        assert state(running, topic) == (1, 1, 1)
        assert (values(answer), answer.high_watermark) == ([], 1)
