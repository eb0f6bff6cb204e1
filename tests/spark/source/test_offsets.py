"""Offsets as Spark keeps them."""

from __future__ import annotations

import json

from ottla.model import TopicPartition
from ottla.spark.source.offsets import TOPIC_IDS, Positions, positions_of, times_of

ID = bytes(range(16))


def test_positions_come_back_as_they_were_and_in_one_order() -> None:
    offsets = {TopicPartition("b", 10): 1, TopicPartition("b", 9): 2, TopicPartition("a", 0): 3}
    positions = Positions(offsets, {"b": ID, "a": bytes(16)})
    text = json.dumps(positions.as_json())
    assert list(positions.as_json()["b"]) == ["9", "10"]
    assert positions.as_json()[TOPIC_IDS] == {"b": "AAECAwQFBgcICQoLDA0ODw"}
    found = positions_of(text, "startingOffsets")
    assert found.offsets == offsets
    assert found.ids == {"b": ID}
    assert json.dumps(found.as_json()) == text


def test_what_the_kafka_source_writes_is_taken() -> None:
    found = positions_of('{"orders":{"0":23,"1":-1,"2":-2}}', "startingOffsets")
    assert found.offsets == {TopicPartition("orders", n): offset for n, offset in enumerate((23, -1, -2))}
    assert found.ids == {}


def test_what_progress_shows_can_be_pasted() -> None:
    text = '{"orders":{"0":23},"#committedTo":{"group.id":"g","bootstrap.servers":"a:1"}}'
    assert positions_of(text, "startingOffsets").offsets == {TopicPartition("orders", 0): 23}


def test_another_topic_of_the_same_name() -> None:
    known = Positions({TopicPartition("orders", 0): 1}, {"orders": ID})
    assert known.same_topic("orders", ID)
    assert known.same_topic("orders", bytes(16))
    assert known.same_topic("clicks", bytes(range(1, 17)))
    assert not known.same_topic("orders", bytes(range(1, 17)))


def test_times() -> None:
    assert times_of('{"orders": {"3": 1000}}', "startingOffsetsByTimestamp") == {TopicPartition("orders", 3): 1000}
