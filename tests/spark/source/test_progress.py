"""What is committed of what a query's progress says, without Spark."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import pytest

from ottla.client.errors import NoBrokerReached
from ottla.model import TopicPartition
from ottla.spark.source import groups, progress
from ottla.spark.source.offsets import TOPIC_IDS
from ottla.spark.source.progress import COMMITTED_TO, GroupProgress

ORDERS = TopicPartition("orders", 0)
IDS = ("AAAAAAAAAAAAAAAAAAAAAQ", "AAAAAAAAAAAAAAAAAAAAAg")


class Committed:
    """What groups were given; the first time brokers may be away."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.offsets: list[dict[TopicPartition, int]] = []
        self.away = False
        monkeypatch.setattr(progress, "link", lambda settings: self)
        monkeypatch.setattr(groups, "_commit", lambda cluster, group, offsets: dict(offsets))

    def run(self, work: Any) -> None:
        if self.away:
            raise NoBrokerReached("for now")
        self.offsets.append(work(None))


def said(offset: int, topic_id: str = IDS[0]) -> Any:
    end = {"orders": {"0": offset}, TOPIC_IDS: {"orders": topic_id}}
    latest = {**end, COMMITTED_TO: {"group.id": "counting", "bootstrap.servers": "localhost:9092"}}
    source = SimpleNamespace(endOffset=json.dumps(end), latestOffset=json.dumps(latest))
    return SimpleNamespace(id="q", name="q", sources=[source])


@pytest.fixture
def committed(monkeypatch: pytest.MonkeyPatch) -> Committed:
    return Committed(monkeypatch)


def test_what_is_said_again_is_committed_once(committed: Committed) -> None:
    tracking = GroupProgress(None, {})
    for offset in (3, 3, 5):
        tracking.take(said(offset))
    assert committed.offsets == [{ORDERS: 3}, {ORDERS: 5}]


def test_what_was_not_committed_is_when_it_is_said_again(committed: Committed) -> None:
    """As of a query's last batch, of which nobody says anything new."""
    tracking = GroupProgress(None, {})
    committed.away = True
    tracking.take(said(3))
    committed.away = False
    tracking.take(said(3))
    assert committed.offsets == [{ORDERS: 3}]


def test_a_topic_that_was_made_again_is_committed_where_it_is_read_as_far_as_the_one_before(
    committed: Committed,
) -> None:
    tracking = GroupProgress(None, {})
    tracking.take(said(3))
    tracking.take(said(3, IDS[1]))
    assert committed.offsets == [{ORDERS: 3}, {ORDERS: 3}]
