"""The writers as Spark calls them, without Spark: rows become records, and what cannot be one is named."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql.types import StructType
from tests.spark.sink.conftest import Read, frame

from ottla.arrow.schema import HEADERS_TYPE
from ottla.spark.options import OptionError
from ottla.spark.sink import batch_writer, stream_writer
from ottla.spark.sink.clients import kept_clients
from ottla.spark.sink.errors import BadSinkColumns, LedgerFault, QueryNameTaken, RowsNotWritten
from ottla.spark.sink.messages import TaskReport
from ottla.testing import broker
from ottla.testing.in_process import InProcessBroker

VALUES = frame("value binary")


def values(*numbers: int) -> pa.RecordBatch:
    return pa.record_batch({"value": [b"%d" % one for one in numbers]})


def written(on: InProcessBroker, schema: StructType, batches: Iterator[Any] | list[Any], **options: str) -> TaskReport:
    given = {"kafka.bootstrap.servers": on.bootstrap, **{name.replace("_", "."): one for name, one in options.items()}}
    writer = pickle.loads(pickle.dumps(batch_writer(schema, False, given)))
    report = writer.write(iter(batches))
    assert isinstance(report, TaskReport)
    return report


def test_every_column(ottla_broker: InProcessBroker, topic: str, read: Read) -> None:
    schema = frame("value string, key string, topic string, partition int, headers headers, more double")
    headers = [{"key": "h", "value": None}, {"key": "h", "value": b"\xff"}]
    rows = pa.record_batch(
        {
            "value": ["1", None, "3"],
            "key": ["a", None, None],
            "topic": [topic] * 3,
            "partition": pa.array([0, None, None], pa.int32()),
            "headers": pa.array([headers, None, []], HEADERS_TYPE),
            "more": [0.5, None, 1.0],
        }
    )
    assert written(ottla_broker, schema, [rows]).rows == 3
    assert [(one.key, one.value, one.headers) for one in read(topic)] == [
        (b"a", b"1", (("h", None), ("h", b"\xff"))),
        (None, None, ()),
        (None, b"3", ()),
    ]


def test_rows_keep_their_order_over_batches(ottla_broker: InProcessBroker, topic: str, read: Read) -> None:
    batches = [values(*range(start, start + 500)) for start in range(0, 5000, 500)] + [values()]
    report = written(ottla_broker, VALUES, batches, topic=topic, kafka_batch_size="3000", kafka_buffer_memory="20000")
    assert (report.rows, report.skipped) == (5000, False)
    assert [int(one.value or b"") for one in read(topic)] == list(range(5000))


def test_a_producer_serves_many_tasks(ottla_broker: InProcessBroker, topic: str) -> None:
    written(ottla_broker, VALUES, [values(1)], topic=topic)
    first = list(kept_clients()._producers.values())
    written(ottla_broker, VALUES, [values(2)], topic=topic)
    assert list(kept_clients()._producers.values()) == first


def test_a_row_that_is_too_large_is_named(ottla_broker: InProcessBroker, topic: str, read: Read) -> None:
    large = pa.record_batch({"value": [b"small", b"x" * 5000]})
    with pytest.raises(RowsNotWritten) as caught:
        written(ottla_broker, VALUES, [values(*range(7)), large], topic=topic, kafka_max_request_size="4000")
    assert "task 0: row 8: a record of 50" in str(caught.value)
    assert "over max.request.size, 4000: raise the option kafka.max.request.size" in str(caught.value)
    assert not kept_clients()._producers
    assert written(ottla_broker, VALUES, [values(1)], topic=topic).rows == 1


@pytest.mark.ottla_topic(configs={"max.message.bytes": "1000"})
def test_a_topic_that_refuses_the_size(ottla_broker: InProcessBroker, topic: str, read: Read) -> None:
    assert written(ottla_broker, VALUES, [values(*range(2000))], topic=topic).rows == 2000
    assert len(read(topic)) == 2000
    with pytest.raises(RowsNotWritten) as caught:
        written(ottla_broker, VALUES, [pa.record_batch({"value": [b"x" * 5000]})], topic=topic)
    for said in (f"{topic}-0", "a batch of 50", "max.message.bytes"):
        assert said in str(caught.value)


def test_a_partition_that_there_is_not(ottla_broker: InProcessBroker, topic: str) -> None:
    rows = pa.record_batch({"value": [b"1", b"2"], "partition": pa.array([0, 9], pa.int32())})
    with pytest.raises(RowsNotWritten, match="row 1: there is no partition 9"):
        written(ottla_broker, frame("value binary, partition int"), [rows], topic=topic)


def test_a_null_topic(ottla_broker: InProcessBroker, topic: str) -> None:
    rows = pa.record_batch({"value": [b"1", b"2"], "topic": [topic, None]})
    with pytest.raises(BadSinkColumns, match="row 1: null topic present in the data"):
        written(ottla_broker, frame("value binary, topic string"), [rows])


def test_a_topic_that_does_not_exist() -> None:
    with broker(properties={"auto.create.topics.enable": "false"}) as alone, pytest.raises(RowsNotWritten) as caught:
        written(alone, VALUES, [values(1)], topic="nowhere", kafka_max_block_ms="300")
    assert "nowhere" in str(caught.value)
    assert "create it, or name another in the option topic" in str(caught.value)


def test_brokers_that_are_not_there(ottla_own_broker: InProcessBroker) -> None:
    ottla_own_broker.stop()
    with pytest.raises(RowsNotWritten, match=r"kafka\.bootstrap\.servers"):
        written(ottla_own_broker, VALUES, [values(1)], topic="orders", kafka_max_block_ms="2000")


def test_an_error_of_the_source_is_not_ours(ottla_broker: InProcessBroker, topic: str) -> None:
    def broken() -> Iterator[Any]:
        yield values(1)
        raise LookupError("from above")

    with pytest.raises(LookupError, match="from above"):
        written(ottla_broker, VALUES, broken(), topic=topic)


def test_what_topics_cannot_do() -> None:
    options = {"kafka.bootstrap.servers": "localhost:9092", "topic": "orders"}
    with pytest.raises(OptionError, match="Save mode Overwrite not allowed"):
        batch_writer(VALUES, True, options)
    with pytest.raises(OptionError, match=r"output mode complete .*: use append; or update with foreachBatch"):
        stream_writer(VALUES, True, options)


def test_a_ledger_needs_a_micro_batch(ottla_broker: InProcessBroker, topic: str) -> None:
    options = {"kafka.bootstrap.servers": ottla_broker.bootstrap, "topic": topic, "ottla.query": topic}
    with pytest.raises(LedgerFault, match="of which query and batch"):
        stream_writer(VALUES, False, options).write(iter([values(1)]))


def test_of_two_queries_under_a_new_name_the_second_to_finish_is_refused(
    ottla_broker: InProcessBroker, topic: str
) -> None:
    """Planned before any batch of the name was finished, neither knows of the other."""
    options = {"kafka.bootstrap.servers": ottla_broker.bootstrap, "topic": topic, "ottla.query": topic}
    one, other = (stream_writer(VALUES, False, options) for _ in range(2))
    for _ in range(2):  # what is finished already is finished
        one.commit([TaskReport(rows=1, query_id="one", skipped=False)], 0)
    with pytest.raises(QueryNameTaken, match=f"ottla.query={topic} is the name of another query.* the id one"):
        other.commit([TaskReport(rows=1, query_id="other", skipped=False)], 0)
    one.commit([TaskReport(rows=1, query_id="one", skipped=False)], 1)
