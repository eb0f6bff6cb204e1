"""Dead letters are sent again each once: over crashes at any point, and beside letters that were written twice."""

from __future__ import annotations

import asyncio
import itertools
import json
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from tests.client.reading import read_all

import ottla.testing
from ottla.cli import faults
from ottla.cli.main import main
from ottla.client.records import ConsumerRecord
from ottla.client.sync import Producer
from ottla.pipeline import replay as module
from ottla.pipeline.errors import BadState, NotFound
from ottla.pipeline.places import Places, read_json, write_json
from ottla.pipeline.replay import replay
from ottla.testing import InProcessBroker

_numbers = itertools.count()


class Letters:
    """A topic, its dead letters, and a pipeline's folder."""

    def __init__(self, broker: InProcessBroker, folder: Path) -> None:
        self.broker = broker
        self.topic = f"orders-{next(_numbers):03}"  # in the order of their texts too
        self.places = Places(str(folder / "data"))
        self.settings = {"bootstrap.servers": broker.bootstrap}
        broker.create_topic(self.topic, partitions=2)
        broker.create_topic(f"{self.topic}-dlq", partitions=1)

    def add(self, *offsets: int, rule: str = "positive", pipeline: str = "shop", value: str = "value") -> None:
        """Of the records at these offsets."""
        with Producer(self.settings) as producer:
            for offset in offsets:
                headers: list[Any] = [("mine", b"1"), ("none", None), ("ottla.dlq.rule", rule.encode())]
                headers += [("ottla.dlq.topic", self.topic.encode()), ("ottla.dlq.offset", b"%d" % offset)]
                headers += [("ottla.dlq.pipeline", pipeline.encode())]
                producer.send(f"{self.topic}-dlq", f"{value} {offset}".encode(), key=b"key", headers=headers)

    def sent(self) -> list[ConsumerRecord]:
        records = asyncio.run(read_all(self.broker.bootstrap, self.topic))
        return sorted(records, key=lambda one: one.value or b"")

    def values(self) -> list[bytes | None]:
        return [one.value for one in self.sent()]


@pytest.fixture(scope="module")
def broker() -> Iterator[InProcessBroker]:
    with ottla.testing.broker() as running:
        yield running


@pytest.fixture
def letters(broker: InProcessBroker, tmp_path: Path) -> Letters:
    return Letters(broker, tmp_path)


def test_a_record_that_was_read_from_dead_letters(letters: Letters) -> None:
    """Its own headers are of the same names: they stand first, and are its own."""
    of_then: list[Any] = [("ottla.dlq.rule", b"old"), ("ottla.dlq.pipeline", b"another"), ("ottla.dlq.offset", b"7")]
    of_now: list[Any] = [("ottla.dlq.rule", b"new"), ("ottla.dlq.pipeline", b"shop")]
    with Producer(letters.settings) as producer:
        for offset in range(2):
            headers = [*of_then, *of_now, ("ottla.dlq.offset", b"%d" % offset)]
            producer.send(f"{letters.topic}-dlq", b"value", headers=headers)
    found = replay(letters.topic, letters.settings, letters.places, pipeline="shop")
    assert (found.sent, found.rules) == (2, {"new": 2})
    assert [list(one.headers[:-1]) for one in letters.sent()] == [of_then, of_then]


def test_each_once_and_untouched(letters: Letters) -> None:
    letters.add(3, 4, 3)  # the first was written twice, by a micro-batch that was repeated
    found = replay(letters.topic, letters.settings, letters.places, pipeline="shop")
    assert (found.found, found.sent, found.rules) == (2, 2, {"positive": 2})
    assert [(one.key, one.value, one.headers) for one in letters.sent()] == [
        (b"key", b"value 3", (("mine", b"1"), ("none", None), ("ottla.replayed", f"{letters.topic}-dlq-0@0".encode()))),
        (b"key", b"value 4", (("mine", b"1"), ("none", None), ("ottla.replayed", f"{letters.topic}-dlq-0@1".encode()))),
    ]
    assert replay(letters.topic, letters.settings, letters.places, pipeline="shop").found == 0
    letters.add(5)
    assert replay(letters.topic, letters.settings, letters.places, pipeline="shop").sent == 1
    assert letters.values() == [b"value 3", b"value 4", b"value 5"]


def test_a_letter_that_was_written_twice_with_a_replay_between(letters: Letters) -> None:
    letters.add(3)
    assert replay(letters.topic, letters.settings, letters.places, pipeline="shop").sent == 1
    letters.add(3)
    assert replay(letters.topic, letters.settings, letters.places, pipeline="shop").found == 0
    letters.add(3, value="of a topic that was made anew:")
    assert replay(letters.topic, letters.settings, letters.places, pipeline="shop").sent == 1
    assert letters.values() == [b"of a topic that was made anew: 3", b"value 3"]


def test_what_another_pipeline_has_dropped_is_its_own(letters: Letters) -> None:
    letters.add(1)
    letters.add(1, 2, pipeline="another")
    assert replay(letters.topic, letters.settings, letters.places, pipeline="shop").rules == {"positive": 1}
    assert letters.values() == [b"value 1"]


@pytest.mark.parametrize("reached", [0, 1, 2])
def test_a_replay_that_died(letters: Letters, reached: int) -> None:
    """Before it sent the first, between two, and before it noted that it had sent all."""
    letters.add(1, 2)
    note = {"done": {}, "until": {"0": 2}, "target": {"0": 0, "1": 0}}
    write_json(letters.places.replay(letters.topic), note)
    with Producer(letters.settings) as producer:
        for number in range(reached):
            marker = f"{letters.topic}-dlq-0@{number}".encode()
            producer.send(letters.topic, b"value %d" % (number + 1), headers=[("ottla.replayed", marker)])
    assert replay(letters.topic, letters.settings, letters.places, pipeline="shop").sent == 2 - reached
    assert letters.values() == [b"value 1", b"value 2"]
    noted = read_json(letters.places.replay(letters.topic))
    assert noted is not None
    assert (noted["done"], noted.keys()) == ({"0": 2}, {"done", "letters", "topic"})


@pytest.mark.parametrize("died", [False, True])
def test_dead_letters_whose_topic_was_made_again(letters: Letters, *, died: bool) -> None:
    """They stand at the offsets of those that were sent before, and were not sent."""
    letters.add(1, 2)
    assert replay(letters.topic, letters.settings, letters.places, pipeline="shop").sent == 2
    if died:
        note = read_json(letters.places.replay(letters.topic))
        write_json(letters.places.replay(letters.topic), {**(note or {}), "target": {"0": 0, "1": 0}, "done": {}})
    letters.broker.delete_topic(f"{letters.topic}-dlq")
    letters.broker.create_topic(f"{letters.topic}-dlq", partitions=1)
    letters.add(3, 4, 5)
    assert replay(letters.topic, letters.settings, letters.places, pipeline="shop", dry_run=True).found == 3
    assert replay(letters.topic, letters.settings, letters.places, pipeline="shop").sent == 3
    assert letters.values() == [b"value %d" % number for number in range(1, 6)]
    assert replay(letters.topic, letters.settings, letters.places, pipeline="shop").found == 0


def test_a_replay_that_died_twice_with_its_topic_made_again_between(
    letters: Letters, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first one had noted where the topic ended: the new one is shorter, and what it has is not behind that."""
    parts = module._parts

    def dies(records: Iterator[ConsumerRecord], after: int) -> Iterator[list[ConsumerRecord]]:
        yield next(parts(records))[:after]
        raise KeyboardInterrupt

    with Producer(letters.settings) as producer:
        for partition in range(2):
            for _ in range(20):
                producer.send(letters.topic, b"other", partition=partition)
    letters.add(1, 2)
    for sent in (0, 1):
        with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):  # noqa: PT012
            patch.setattr(module, "_parts", partial(dies, after=sent))
            replay(letters.topic, letters.settings, letters.places, pipeline="shop")
        if not sent:
            letters.broker.delete_topic(letters.topic)
            letters.broker.create_topic(letters.topic, partitions=2)
    assert letters.values() == [b"value 1"]
    assert replay(letters.topic, letters.settings, letters.places, pipeline="shop").sent == 1
    assert letters.values() == [b"value 1", b"value 2"]


def test_without_yes_nothing_is_sent(letters: Letters, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    letters.add(1)
    words = ["pipeline", "replay", "shop.py", "--folder", letters.places.folder, "-b", letters.broker.bootstrap]
    assert main([*words, "--topic", letters.topic]) == faults.NOT_CONFIRMED
    assert capsys.readouterr().out == f"{letters.topic}: 1 dead letter to send (positive: 1)\n"
    assert letters.sent() == []
    assert main([*words, "--topic", letters.topic, "--yes", "-o", "json"]) == faults.OK
    assert json.loads(capsys.readouterr().out) == [
        {"topic": letters.topic, "found": 1, "sent": 1, "rules": {"positive": 1}}
    ]
    assert main([*words, "--topic", f"{letters.topic}-none"]) == faults.NOT_FOUND
    assert "no record of it was ever bad" in capsys.readouterr().err


def test_what_was_sent_before_a_topic_that_fails_is_said(
    broker: InProcessBroker, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """And goes on from there once that is mended."""
    first, second = sorted((Letters(broker, tmp_path) for _ in range(2)), key=lambda one: one.topic)
    first.add(1)
    second.add(1)
    broker.delete_topic(second.topic)
    words = ["pipeline", "replay", "shop.py", "--folder", first.places.folder, "-b", broker.bootstrap, "--yes"]
    assert main(words) == faults.NOT_FOUND
    told = capsys.readouterr()
    assert f"{first.topic}: 1 dead letter sent (positive: 1)\n" in told.out
    assert f"the topic {second.topic} is not there" in told.err
    broker.create_topic(second.topic)
    assert main(words) == faults.OK
    told = capsys.readouterr()
    assert f"{first.topic}: no dead letters sent\n{second.topic}: 1 dead letter sent (positive: 1)\n" in told.out
    assert (first.values(), second.values()) == ([b"value 1"], [b"value 1"])


def test_one_at_a_time(letters: Letters) -> None:
    with (
        letters.places.replaying(),
        pytest.raises(BadState, match="another replay is at work"),
        letters.places.replaying(),
    ):
        pass
    with pytest.raises(NotFound, match=r"away-dlq is not there"):
        replay("away", letters.settings, letters.places, pipeline="shop")


def test_more_than_is_sent_at_once(letters: Letters) -> None:
    """Values of 18 MB together: what has been sent is not kept while the rest is read."""
    values = [b"%d" % number + bytes(900_000) for number in range(20)]
    with Producer(letters.settings) as producer:
        for number, value in enumerate(values):
            producer.send(f"{letters.topic}-dlq", value, key=b"key", headers=[("ottla.dlq.offset", b"%d" % number)])
    found = replay(letters.topic, letters.settings, letters.places, pipeline="shop")
    assert (found.found, found.sent, found.rules) == (20, 20, {"unknown": 20})
    assert sorted(one.value or b"" for one in letters.sent()) == sorted(values)
    assert replay(letters.topic, letters.settings, letters.places, pipeline="shop").found == 0
