"""The sink under a real Spark: frames and micro-batches into topics, and what a replayed batch does."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.client.producing.transactions import generations
from tests.client.reading import read_all
from tests.interop.broker import Broker
from tests.spark.sink.conftest import Read

from ottla.spark.sink.entries import LEDGER_TOPIC
from ottla.testing.in_process import InProcessBroker

#: A session takes seconds to start, and minutes where many tests share the machine.
pytestmark = [pytest.mark.xdist_group("spark"), pytest.mark.timeout(1200)]

FILES = 3
ROWS = 40


@pytest.fixture
def files(tmp_path: Path) -> Path:
    """Each is a micro-batch, in their order, and names itself in each of its lines."""
    folder = tmp_path / "files"
    folder.mkdir()
    for number in range(FILES):
        file = folder / f"{number}.txt"
        file.write_text("".join(f"{number} {row}\n" for row in range(ROWS)))
        os.utime(file, (1_700_000_000 + number, 1_700_000_000 + number))
    return folder


LINES = [f"{number} {row}" for number in range(FILES) for row in range(ROWS)]

#: Runs a query over the files to their end; `expression` makes a value of a line.
Stream = Callable[..., None]


@pytest.fixture
def stream(spark: Any, files: Path, ottla_broker: InProcessBroker, topic: str) -> Stream:
    def run(checkpoint: Path, expression: str = "value", on: str = ottla_broker.bootstrap, **options: str) -> None:
        lines = spark.readStream.format("text").option("maxFilesPerTrigger", 1).load(str(files))
        writing = (
            lines.selectExpr(f"{expression} AS value")
            .writeStream.format("ottla")
            .option("kafka.bootstrap.servers", on)
            .option("topic", topic)
            .option("checkpointLocation", str(checkpoint))
            .options(**options)
        )
        writing.trigger(availableNow=True).start().awaitTermination()

    return run


def forget_the_last_batch(checkpoint: Path) -> None:
    for name in (str(FILES - 1), f".{FILES - 1}.crc"):
        (checkpoint / "commits" / name).unlink()


def committed(bootstrap: str, topic: str) -> list[str]:
    return [value.decode() for value in asyncio.run(generations.committed(bootstrap, topic))]


def texts(records: list[Any]) -> list[str]:
    return sorted(one.value.decode() for one in records)


@pytest.mark.ottla_topic(partitions=2)
def test_a_frame(spark: Any, ottla_broker: InProcessBroker, topic: str, read: Read) -> None:
    rows = [
        ("a", bytearray(b"1"), [("h", bytearray(b"x")), ("n", None)], None, topic, 0.5),
        (None, None, [], 1, topic, 0.5),
        ("b", bytearray(b"3"), None, 0, topic, 0.5),
    ]
    headers = "headers array<struct<key:string,value:binary>>"
    schema = f"key string, value binary, {headers}, partition int, topic string, x double"
    spark.createDataFrame(rows, schema).write.format("ottla").option(
        "kafka.bootstrap.servers", ottla_broker.bootstrap
    ).mode("append").save()
    found = {one.key: one for one in read(topic)}
    assert {key: (one.value, one.headers) for key, one in found.items()} == {
        b"a": (b"1", (("h", b"x"), ("n", None))),
        None: (None, ()),
        b"b": (b"3", ()),
    }
    assert (found[None].partition, found[b"b"].partition) == (1, 0)


def test_what_is_wrong_is_said_in_the_driver(spark: Any, ottla_broker: InProcessBroker, topic: str) -> None:
    def complaint(frame: Any, mode: str = "append", **options: str) -> str:
        given = {"kafka.bootstrap.servers": ottla_broker.bootstrap, "topic": topic, **options}
        with pytest.raises(Exception) as caught:  # noqa: PT011 - whichever Spark makes of ours
            frame.write.format("ottla").options(**given).mode(mode).save()
        return str(caught.value)

    frame = spark.range(3).selectExpr("cast(id AS string) AS value")
    assert "Required attribute 'value' not found" in complaint(spark.range(1))
    assert "Save mode Overwrite not allowed" in complaint(frame, "overwrite")
    assert "ottla.exactlyOnce is for streams" in complaint(frame, **{"ottla.exactlyOnce": "true"})
    assert "ssl.truststore.location" in complaint(frame, **{"kafka.ssl.truststore.location": "/t"})
    large = spark.range(3, numPartitions=1).selectExpr("repeat('x', int(id * 1000)) AS value")
    said = complaint(large, **{"kafka.max.request.size": "1900"})
    assert "task 0: row 2: a record of 20" in said
    assert "raise the option kafka.max.request.size" in said


def test_updates_of_an_aggregation(
    spark: Any, files: Path, ottla_broker: InProcessBroker, topic: str, read: Read, tmp_path: Path
) -> None:
    """Spark has the mode for no Python sink, and `foreachBatch` has it for all."""
    from pyspark.errors import StreamingQueryException

    options = {"kafka.bootstrap.servers": ottla_broker.bootstrap, "topic": topic}
    lines = spark.readStream.format("text").option("maxFilesPerTrigger", 1).load(str(files))
    counts = lines.groupBy(lines.value.substr(3, 9).alias("key")).count().selectExpr("key", "string(count) AS value")
    updates = counts.writeStream.outputMode("update").trigger(availableNow=True)
    with pytest.raises(StreamingQueryException, match="ottla does not support Update mode"):
        updates.format("ottla").options(**options, checkpointLocation=str(tmp_path / "a")).start().awaitTermination()

    def write(frame: Any, _: int) -> None:
        frame.write.format("ottla").options(**options).mode("append").save()

    updates.foreachBatch(write).option("checkpointLocation", str(tmp_path / "b")).start().awaitTermination()
    found = sorted((record.key, record.value) for record in read(topic))
    assert found == sorted((b"%d" % row, b"%d" % (number + 1)) for row in range(ROWS) for number in range(FILES))


def test_a_finished_batch_that_is_replayed(spark: Any, stream: Stream, read: Read, tmp_path: Path, topic: str) -> None:
    """As after a driver that died between the sink's end and the checkpoint's note of it."""
    checkpoint = tmp_path / "checkpoint"
    stream(checkpoint, **{"ottla.query": topic})
    assert texts(read(topic)) == sorted(LINES)
    entries = [json.loads(one.value) for one in read(LEDGER_TOPIC) if one.key == topic.encode()]
    assert [(one["batch"], one["state"], one["rows"]) for one in entries] == [(n, "DONE", ROWS) for n in range(FILES)]

    forget_the_last_batch(checkpoint)
    stream(checkpoint, **{"ottla.query": topic})
    assert (checkpoint / "commits" / str(FILES - 1)).exists()
    assert texts(read(topic)) == sorted(LINES)

    with pytest.raises(Exception, match=f"ottla.query={topic} is the name of another query") as caught:
        stream(tmp_path / "another", **{"ottla.query": topic})
    assert json.loads((checkpoint / "metadata").read_text())["id"] in str(caught.value)
    assert len(read(topic)) == len(LINES)


def test_a_batch_that_failed_is_written_again(
    spark: Any, stream: Stream, read: Read, tmp_path: Path, topic: str
) -> None:
    fails = f"if(value = '1 {ROWS - 1}', raise_error('planted'), value)"
    with pytest.raises(Exception, match="planted"):
        stream(tmp_path / "checkpoint", fails, **{"ottla.query": topic})
    assert {one for one in texts(read(topic)) if one.startswith("0")} == {one for one in LINES if one.startswith("0")}
    stream(tmp_path / "checkpoint", **{"ottla.query": topic})
    found = texts(read(topic))
    assert set(found) == set(LINES)
    assert [found.count(one) for one in LINES if not one.startswith("1")] == [1] * (FILES - 1) * ROWS


@pytest.mark.java
@pytest.mark.slow
def test_against_apache_kafka(apache_kafka: Broker, stream: Stream, tmp_path: Path, topic: str) -> None:
    checkpoint, bootstrap = tmp_path / "checkpoint", apache_kafka.bootstrap
    stream(checkpoint, on=bootstrap, **{"ottla.query": topic})
    forget_the_last_batch(checkpoint)
    stream(checkpoint, on=bootstrap, **{"ottla.query": topic})
    assert texts(asyncio.run(read_all(bootstrap, topic))) == sorted(LINES)
    with pytest.raises(Exception, match="is the name of another query"):
        stream(tmp_path / "another", on=bootstrap, **{"ottla.query": topic})
    entries = [one for one in asyncio.run(read_all(bootstrap, LEDGER_TOPIC)) if one.key == topic.encode()]
    assert [json.loads(one.value or b"")["batch"] for one in entries] == list(range(FILES))


EXACTLY_ONCE = {"ottla.exactlyOnce": "true"}


def _exactly_once(stream: Stream, checkpoint: Path, topic: str, seen: Callable[[], list[str]], **on: str) -> None:
    """A task that fails, a batch that is planned again, and a driver that never wrote that a batch was done."""
    options = {"ottla.query": topic, **EXACTLY_ONCE, **on}
    fails = f"if(value = '1 {ROWS - 1}', raise_error('planted'), value)"
    with pytest.raises(Exception, match="planted"):
        stream(checkpoint, fails, **options)
    assert seen() == sorted(one for one in LINES if one.startswith("0"))
    stream(checkpoint, **options)
    assert seen() == sorted(LINES)
    forget_the_last_batch(checkpoint)
    stream(checkpoint, **options)
    assert seen() == sorted(LINES)


@pytest.mark.ottla_topic(partitions=2)
def test_exactly_once(stream: Stream, ottla_broker: InProcessBroker, read: Read, tmp_path: Path, topic: str) -> None:
    _exactly_once(stream, tmp_path / "checkpoint", topic, lambda: committed(ottla_broker.bootstrap, topic))
    entries = [json.loads(one.value) for one in read(LEDGER_TOPIC) if one.key == topic.encode()]
    states = [(one["batch"], one["state"], one["rows"]) for one in entries]
    assert states[:-1] == [(batch, state, ROWS) for batch in range(FILES) for state in ("PREPARED", "DONE")]
    assert states[-1] == states[-2]
    with pytest.raises(Exception, match=f"ottla.query={topic} is the name of another query"):
        stream(tmp_path / "another", **{"ottla.query": topic, **EXACTLY_ONCE})


@pytest.mark.java
@pytest.mark.slow
def test_exactly_once_on_apache_kafka(apache_kafka: Broker, stream: Stream, tmp_path: Path, topic: str) -> None:
    bootstrap = apache_kafka.bootstrap
    _exactly_once(stream, tmp_path / "checkpoint", topic, lambda: committed(bootstrap, topic), on=bootstrap)
