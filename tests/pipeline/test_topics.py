"""A topic that is deleted and made again under its name is another, and what was read of the former one is gone."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace

import pytest

from ottla.pipeline.backfill import Range, _known_part
from ottla.pipeline.definitions import Flow, Kind
from ottla.pipeline.losses import ALL, Losses
from ottla.pipeline.places import Places
from ottla.pipeline.planning import PlannedFlow
from ottla.pipeline.tables.files import now_ms
from ottla.pipeline.topics import TopicsRead
from ottla.spark.source.offsets import TOPIC_IDS
from ottla.testing import InProcessBroker

EVER = Range(0, 4_000_000_000_000)


def planned_batch(checkpoint: str, batch: int, **ids: str) -> None:
    """As Spark writes it before the micro-batch runs."""
    file = Path(checkpoint) / "offsets" / str(batch)
    file.parent.mkdir(parents=True, exist_ok=True)
    offsets = {**{topic: {"0": batch} for topic in ids}, TOPIC_IDS: ids}
    file.write_text(f'v1\n{{"batchWatermarkMs":0}}\n{json.dumps(offsets)}')


def test_an_id_that_changes_is_noted_with_the_time(tmp_path: Path) -> None:
    checkpoint = str(tmp_path)
    for batch in range(2):
        planned_batch(checkpoint, batch, orders="a", clicks="b")
        TopicsRead(checkpoint).note(batch)  # each by a run of its own
    assert [TopicsRead(checkpoint).since_ms(topic) for topic in ("orders", "clicks", "never")] == [None] * 3
    reading, before = TopicsRead(checkpoint), now_ms()
    for batch, topic_id in enumerate("ccc", 2):
        planned_batch(checkpoint, batch, orders=topic_id, clicks="b")
        reading.note(batch)
    since = TopicsRead(checkpoint).since_ms("orders")
    assert since is not None
    assert before <= since <= now_ms()
    assert TopicsRead(checkpoint).since_ms("clicks") is None
    # It goes once more.
    planned_batch(checkpoint, 5, orders="d", clicks="b")
    reading.note(5)
    again = TopicsRead(checkpoint).since_ms("orders")
    assert again is not None
    assert since <= again


@pytest.mark.parametrize("columns", [("id", "timestamp"), ("topic", "partition", "offset", "timestamp")])
def test_rows_of_before_a_topic_was_made_again_stay(
    broker: InProcessBroker, tmp_path: Path, columns: tuple[str, ...]
) -> None:
    """Whether or not they say which records they were: others have these places now."""
    topic = f"made-again-{len(columns)}"
    broker.create_topic(topic)
    places = Places(str(tmp_path))
    flow = Flow(name="raw", kind=Kind.TABLE, function=lambda: None, line=1)
    planned = PlannedFlow(flow=flow, topics={topic}, schema=SimpleNamespace(fieldNames=lambda: list(columns)))
    losses = Losses(places, {"kafka.bootstrap.servers": broker.bootstrap})
    said: list[str] = []
    checkpoint = places.checkpoint("raw")
    planned_batch(checkpoint, 0, **{topic: "a"})
    TopicsRead(checkpoint).note(0)
    assert losses.since(planned).ms == ALL
    assert _known_part(planned, EVER, losses, said.append) == EVER
    planned_batch(checkpoint, 1, **{topic: "b"})
    TopicsRead(checkpoint).note(1)
    since = TopicsRead(checkpoint).since_ms(topic)
    assert losses.since(planned).ms == since
    assert _known_part(planned, EVER, losses, said.append) == EVER._replace(from_ms=since)
    (line,) = said
    assert line.endswith(f" stay as they are: the topic {topic} has lost records that they may be made of")
