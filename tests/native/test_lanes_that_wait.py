"""What lanes hold back until followers have it, compared with the way that remembers nothing.

Two topics are written alike, and their followers, resignations and leader epochs are the same. To one of them each
client repeats its request, which its lane or its memo knows; to the other it names itself anew each time, so that
nothing is alike. Answers and logs have to be equal.
"""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import Any

import pytest
from tests.handlers.followers import ALL, FIRST, SECOND, US, PlayedFollower, decide, look_at, state_of
from tests.handlers.frames import batch, fetch, produce_request
from tests.handlers.produce.test_held_answers import (
    NONE,
    VERSION,
    answer,
    held,
    replicated,
    send,
    timed,
    until_end,
    waiting,
)
from tests.searches import seeds
from tests.server.conftest import BrokerThread

from ottla.model import ErrorCode, TopicPartition
from ottla.native import compiled_run
from ottla.protocol.header import RequestHeader, encode_request


@pytest.fixture(params=["compiled", "pure"])
def broker(tmp_path: Any, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[BrokerThread]:
    if request.param == "pure":
        monkeypatch.setenv("OTTLA_PURE", "1")
    # Followers that are played have all the time that a busy machine takes: none falls out of the set by itself.
    with BrokerThread(str(tmp_path), **{"broker.id": str(US), "replica.lag.time.max.ms": "3600000"}) as running:
        yield running


class Twin:
    """A connection that repeats its request, and one that names itself anew each time: nothing is alike there."""

    def __init__(self, running: BrokerThread, acks: int) -> None:
        self.alike, self.plain = running.connect(), running.connect()
        self.acks = acks
        self.sent = self.taken = 0
        self.answers_alike: list[tuple[int, int]] = []
        self.answers_plain: list[tuple[int, int]] = []

    def send(self, value: bytes) -> None:
        self.sent += 1
        send(self.alike, "alike", value, self.acks)
        request = timed(produce_request(batch(value), topic="plain", acks=self.acks), 60_000)
        header = RequestHeader(api_key=0, api_version=VERSION, correlation_id=self.sent, client_id=f"c{self.sent}")
        self.plain.send(encode_request(header, request))

    def take(self) -> None:
        """All answers that are owed, of both ways."""
        while self.taken < self.sent:
            self.taken += 1
            for peer, found in ((self.alike, self.answers_alike), (self.plain, self.answers_plain)):
                found.append(answer(peer))
                assert peer.last_correlation == self.taken


@pytest.mark.parametrize("seed", seeds(2, 6))
def test_random_requests_watermarks_and_resignations(broker: BrokerThread, seed: int) -> None:
    rng = Random(seed)
    topics = [replicated(broker, name) for name in ("alike", "plain")]
    twins = [Twin(broker, acks) for acks in (-1, -1, -1, 1)]
    epoch, end = 4, 0
    had_run, most_held = False, 0
    with broker.connect() as followers:

        def all_have_it() -> None:
            for topic in topics:
                for replica in (FIRST, SECOND):
                    assert PlayedFollower(followers, topic, replica).fetch(end).error_code == NONE

        for _ in range(200):
            happens = rng.random()
            if happens < 0.6:
                # Some wait for the answers before, so that their lanes receive; some have several in flight.
                twin = rng.choice(twins)
                if twin.sent - twin.taken >= 20:
                    continue
                twin.send(b"%d" % rng.randrange(1000))
                end += 1
                for topic in topics:
                    until_end(broker, topic, end)
                had_run |= look_at(broker, "alike").run is not None
                most_held = max(most_held, held(broker, "alike"))
            elif happens < 0.8:
                replica, offset = rng.choice((FIRST, SECOND)), rng.randint(0, end)
                for topic in topics:
                    assert PlayedFollower(followers, topic, replica).fetch(offset).error_code == NONE
            elif happens < 0.92:
                all_have_it()
                for twin in twins:
                    twin.take()
            else:
                kind = rng.choice(("isr", "next", "resign"))
                epoch += {"isr": 0, "next": 1, "resign": 2}[kind]
                isr = rng.choice([ALL, (US, FIRST), (US,)])
                for topic in topics:
                    if kind == "resign":
                        lead_again(broker, topic, epoch, isr)
                    else:
                        assert decide(broker, topic, leader_epoch=epoch, isr=isr) == NONE
        # Or nothing was compared: requests were held back here, and by lanes where there are any.
        assert had_run == (compiled_run() is not None)
        assert most_held > 1
        assert held(broker, "plain") == 0
        all_have_it()
        for twin in twins:
            twin.take()
            assert twin.answers_alike == twin.answers_plain, f"seed {seed}"
            twin.alike.socket.close()
            twin.plain.socket.close()
        contents = [fetch(followers, 0, topic=topic, partition_max_bytes=1 << 20) for topic in topics]
        # The same bytes: offsets, leader epochs and all.
        assert bytes(contents[0].records) == bytes(contents[1].records)
        assert contents[0].high_watermark == contents[1].high_watermark == end
    assert waiting(broker) == []


def lead_again(broker: BrokerThread, topic: str, epoch: int, isr: tuple[int, ...]) -> None:
    """Another broker leads for one leader epoch."""
    leader = look_at(broker, topic)
    assert decide(broker, topic, leader_id=FIRST, leader_epoch=epoch - 1) == NONE

    def again(b: Any) -> ErrorCode:
        replicas = b.services.replicas
        follower = replicas.followers[TopicPartition(topic, 0)]
        state = state_of(leader, leader_epoch=epoch, isr=isr, partition_epoch=follower.partition_epoch + 1)
        error: ErrorCode = replicas.apply([state], lambda _: leader.log.config)[follower.tp]
        b.services.round.soon()
        return error

    assert broker.look(again) == NONE
