"""A new leader does not know at once what was committed before it led (KIP-207)."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.handlers.followers import FIRST, US, PlayedFollower, decide, look_at
from tests.handlers.frames import batch, list_offset, produce
from tests.server.conftest import BrokerThread, Peer

from ottla.model import ErrorCode

LATEST, EARLIEST = -1, -2
EPOCH = 4


@pytest.fixture
def topic(running: BrokerThread, peer: Peer, request: pytest.FixtureRequest) -> Iterator[str]:
    """Three records, of which this broker knows one to be committed, and leads from there."""
    name = "".join(c if c.isalnum() else "-" for c in request.node.name)
    running.create_topic(name)
    assert produce(peer, batch(b"a", timestamp=1000), topic=name).error_code == 0
    assert decide(running, name, leader_epoch=EPOCH - 2, replicas=(US, FIRST)) == ErrorCode.NONE
    for value, timestamp in ((b"b", 1100), (b"c", 1200)):
        assert produce(peer, batch(value, timestamp=timestamp), topic=name, acks=1).error_code == 0
    assert decide(running, name, leader_epoch=EPOCH, replicas=(US, FIRST)) == ErrorCode.NONE
    return name


def test_latest_is_named_once_the_watermark_has_come_to_where_it_began_to_lead(
    running: BrokerThread, peer: Peer, topic: str
) -> None:
    assert look_at(running, topic).high_watermark == 1
    assert list_offset(peer, LATEST, topic=topic).error_code == ErrorCode.OFFSET_NOT_AVAILABLE
    assert list_offset(peer, LATEST, topic=topic, version=4).error_code == ErrorCode.LEADER_NOT_AVAILABLE
    follower = PlayedFollower(peer, topic)
    assert follower.fetch(2, leader_epoch=EPOCH).error_code == 0
    assert list_offset(peer, LATEST, topic=topic).error_code == ErrorCode.OFFSET_NOT_AVAILABLE
    assert follower.fetch(3, leader_epoch=EPOCH).error_code == 0
    answer = list_offset(peer, LATEST, topic=topic)
    assert (answer.error_code, answer.offset) == (0, 3)


def test_timestamps_are_looked_up_as_far_as_is_known(peer: Peer, topic: str) -> None:
    earliest, known = list_offset(peer, EARLIEST, topic=topic), list_offset(peer, 900, topic=topic)
    assert [(each.error_code, each.offset) for each in (earliest, known)] == [(0, 0), (0, 0)]
    assert list_offset(peer, 1050, topic=topic).error_code == ErrorCode.OFFSET_NOT_AVAILABLE
    assert PlayedFollower(peer, topic).fetch(3, leader_epoch=EPOCH).error_code == 0
    later = list_offset(peer, 1050, topic=topic)
    assert (later.error_code, later.offset) == (0, 1)
    assert list_offset(peer, 1300, topic=topic).offset == -1


def test_in_its_own_next_leader_epoch_a_leader_knows(running: BrokerThread, peer: Peer, topic: str) -> None:
    assert PlayedFollower(peer, topic).fetch(3, leader_epoch=EPOCH).error_code == 0
    assert produce(peer, batch(b"d"), topic=topic, acks=1).error_code == 0
    assert decide(running, topic, leader_epoch=EPOCH + 1, replicas=(US, FIRST)) == ErrorCode.NONE
    answer = list_offset(peer, LATEST, topic=topic)
    assert (answer.error_code, answer.offset) == (0, 3)
