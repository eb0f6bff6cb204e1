"""A follower's fetch that is like its last one, compared with the way that recognises nothing.

Two topics are written alike, and both followers ask for the same at the same time. One repeats its request, as a
follower does; the other names itself anew each time, so that nothing is alike. Their answers have to be equal.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from random import Random
from typing import Any

import pytest
from tests.handlers.followers import ALL, FIRST, SECOND, US, PlayedFollower, decide, look_at
from tests.handlers.frames import batch, produce
from tests.server.conftest import BrokerThread, Peer

from ottla.handlers.fetch.follower_fetches import FollowerFetches
from ottla.handlers.routes import FETCH
from ottla.model import ErrorCode, TopicPartition
from ottla.protocol.generated.fetch import FetchResponse
from ottla.protocol.header import decode_response_header
from ottla.protocol.hot.follower_fetch import NEWEST, FetchRequests
from ottla.records.batch import iterate
from ottla.storage.log.append import Origin

FULL, NONE = 0, ErrorCode.NONE
LONG_MS = 60_000
_NUMBERS = count()


class Follower:
    """One session; `alike` is whether its requests differ in their numbers only."""

    def __init__(self, peer: Peer, running: BrokerThread, topic: str, *, alike: bool) -> None:
        self.peer, self.topic, self.alike = peer, topic, alike
        self.topic_id = bytes(look_at(running, topic).log.topic_id)
        self.sent = 0
        self.session, self.epoch = 0, FULL
        #: The last answer, without its length.
        self.received = b""
        #: What the session was asked last.
        self.row: tuple[int, ...] = ()
        self.requests = FetchRequests(NEWEST, "follower", FIRST, -1)

    def send(
        self, offset: int, leader_epoch: int, last_epoch: int, wait_ms: int, session_epoch: int, log_start: int = 0
    ) -> None:
        self.sent += 1
        if not self.alike:
            self.requests = FetchRequests(NEWEST, f"follower-{self.sent}", FIRST, -1)
        row = (0, leader_epoch, offset, last_epoch, log_start, 1 << 20)
        limits = (wait_ms, 1, 1 << 20, self.session, session_epoch)
        if row == self.row and session_epoch != FULL:
            frame = self.requests.nothing_new(*limits)
        else:
            frame = self.requests.with_changes(*limits, {self.topic_id: [row]}, {})
            self.row = row
        frame[8:12] = self.sent.to_bytes(4, "big")
        self.peer.send(bytes(frame))

    def answer(self) -> tuple[Any, ...]:
        self.received = self.peer.receive()
        frame = memoryview(self.received)
        assert int.from_bytes(frame[:4], "big") == self.sent
        error, session, rows = self.requests.read(frame)
        if error == NONE:
            self.epoch = 1 if session != self.session else self.epoch + 1
            self.session = session
        else:
            self.epoch = FULL
        found = [(row.partition, row.error, row.high_watermark, row.log_start, row.diverging) for row in rows]
        return error, found, [bytes(row.records) for row in self.requests.read(frame)[2]]


class Both:
    def __init__(self, running: BrokerThread, producer: Peer) -> None:
        self.running, self.producer = running, producer
        number = next(_NUMBERS)
        self.topics = (f"alike-{number}", f"plain-{number}")
        for topic in self.topics:
            running.create_topic(topic)
            assert decide(running, topic, leader_epoch=4, replicas=ALL) == NONE
        self.followers = [Follower(running.connect(), running, n, alike=n == self.topics[0]) for n in self.topics]
        self.others = [PlayedFollower(producer, topic, SECOND) for topic in self.topics]
        self.epoch, self.last_epoch, self.offset, self.end = 4, -1, 0, 0

    def send(
        self, wait_ms: int, offset: int | None = None, epoch_off: int = 0, last_off: int = 0, session_off: int = 0
    ) -> None:
        for each in self.followers:
            session_epoch = each.epoch + session_off
            at = self.offset if offset is None else offset
            each.send(at, self.epoch + epoch_off, self.last_epoch + last_off, wait_ms, session_epoch)

    def answered(self) -> tuple[int, list[Any], list[bytes]]:
        one, other = (each.answer() for each in self.followers)
        assert one == other
        return one  # type: ignore[return-value]

    def fetch(self, wait_ms: int = 1, **options: int) -> tuple[int, list[Any], list[bytes]]:
        """As the follower's log goes on."""
        self.send(wait_ms, **options)
        error, found, records = self.answered()
        if error == NONE and any(records) and not options:
            for _, header in iterate(records[0], 0, len(records[0])):
                self.offset, self.last_epoch = header.next_offset, header.leader_epoch
        return error, found, records

    def produce(self, *values: bytes) -> None:
        for value in values:
            for name in self.topics:
                assert produce(self.producer, batch(value), topic=name, acks=1).error_code == NONE
            self.end += 1

    def rest(self) -> None:
        """Until there is nothing new."""
        while self.fetch()[1]:
            pass

    def close(self) -> None:
        for each in self.followers:
            each.peer.socket.close()


def count_recognised(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    found: list[bool] = []
    serve = FollowerFetches.serve

    def counted(*arguments: Any) -> bool:
        found.append(serve(*arguments))
        return found[-1]

    monkeypatch.setattr(FollowerFetches, "serve", counted)
    return found


@pytest.mark.parametrize("seed", range(3))
def test_random_fetches_writes_and_changes(
    running: BrokerThread, peer: Peer, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    recognised = count_recognised(monkeypatch)
    rng = Random(seed)
    both = Both(running, peer)
    for _ in range(60):
        happens = rng.random()
        if happens < 0.25:
            both.produce(*[rng.randbytes(rng.choice((5, 50, 40_000)))] * rng.randint(1, 3))
        elif happens < 0.55:
            both.fetch()
        elif happens < 0.7:
            # One that waits is woken by what is written.
            both.rest()
            both.send(LONG_MS)
            both.produce(b"news")
            assert any(both.answered()[2])
        elif happens < 0.8:
            offset = rng.randint(0, both.end)
            for other in both.others:
                assert other.fetch(offset).error_code == NONE
        elif happens < 0.92:
            both.fetch(
                **rng.choice(
                    (
                        {"offset": rng.randint(0, both.end + 2)},
                        {"epoch_off": rng.choice((-1, 1))},
                        {"last_off": rng.choice((-1, 1, 5))},
                        {"session_off": rng.choice((-1, 1))},
                    )
                )
            )
        else:
            both.epoch += rng.choice((0, 1))
            isr = rng.choice([ALL, (US, FIRST), (US,)])
            for name in both.topics:
                assert decide(running, name, leader_epoch=both.epoch, isr=isr) == NONE
    assert sum(recognised) > 5
    assert len({look_at(running, name).high_watermark for name in both.topics}) == 1
    both.close()


def test_what_waits_hears_of_a_watermark(running: BrokerThread, peer: Peer, monkeypatch: pytest.MonkeyPatch) -> None:
    recognised = count_recognised(monkeypatch)
    both = Both(running, peer)
    both.produce(b"a")
    both.fetch()
    both.rest()
    both.produce(b"b")
    both.fetch()
    both.rest()
    assert any(recognised)
    both.send(LONG_MS)
    for other in both.others:
        other.fetch(both.end)
    (found,) = both.answered()[1]
    assert found[2] == both.end
    both.close()


def test_a_leader_that_resigns_answers_what_waits(
    running: BrokerThread, peer: Peer, monkeypatch: pytest.MonkeyPatch
) -> None:
    recognised = count_recognised(monkeypatch)
    both = Both(running, peer)
    both.produce(b"a")
    both.fetch()
    both.rest()
    both.send(LONG_MS)
    for name in both.topics:
        assert decide(running, name, leader_id=SECOND, leader_epoch=5) == NONE
    (found,) = both.answered()[1]
    assert found[1] == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert any(recognised)
    both.close()


def open_a_transaction(running: BrokerThread, topic: str) -> None:
    """At the end of the log, as a coordinator of this broker would."""

    def begin(broker: Any) -> None:
        services = broker.services
        leader = services.replicas.leaders[TopicPartition(topic, 0)]
        data = batch(b"open", producer_id=7, producer_epoch=0, base_sequence=-1, transactional=True)

        def stage() -> None:
            leader.log.stage(memoryview(bytearray(data)), leader.epoch, services.clock.wall_ms(), Origin.COORDINATOR)
            services.writes.staged(leader)

        services.round.within(stage)

    running.look(begin)


def test_a_log_with_an_open_transaction(running: BrokerThread, peer: Peer, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its last stable offset is not its watermark, and is said."""
    both = Both(running, peer)
    both.produce(b"a", b"b")
    both.fetch()
    both.rest()
    recognised = count_recognised(monkeypatch)
    for name in both.topics:
        open_a_transaction(running, name)
    both.end += 1
    both.produce(b"c")
    seen: set[tuple[int, int]] = set()
    for _ in range(4):
        both.fetch()
        for other in both.others:
            other.fetch(both.end)
        one, other_one = ([*stable_offsets(each.received)] for each in both.followers)
        assert one == other_one
        seen.update(one)
    assert (4, 2) in seen
    assert sum(recognised) > 2
    both.close()


def stable_offsets(raw: bytes) -> Iterator[tuple[int, int]]:
    """High watermark and last stable offset of each partition in an answer."""
    *_, at = decode_response_header(raw, FETCH, NEWEST)
    answer, _ = FetchResponse.decode(raw, NEWEST, at)
    return ((part.high_watermark, part.last_stable_offset) for topic in answer.responses for part in topic.partitions)
