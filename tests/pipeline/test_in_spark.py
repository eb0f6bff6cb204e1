"""Pipelines under a real Spark and a real broker: rows once, bad records to the dead letters, aggregates, changes."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

import pytest
from tests.pipeline.conftest import Pipeline, headers

from ottla.client.sync import Admin
from ottla.formats import encoder
from ottla.pipeline.errors import BadDefinition, BadState, ExpectationFailed
from ottla.pipeline.replay import replay

#: A session takes seconds to start, and minutes where many tests share the machine.
pytestmark = [pytest.mark.xdist_group("spark"), pytest.mark.timeout(1200)]

SHOP = """
@table
def raw():
    return read_topic("TOPIC")

@table
@expect("has a customer", "customer IS NOT NULL")
@expect_or_drop("positive", "amount > 0")
def orders():
    return decode_json(read_stream("raw"), "id BIGINT, customer STRING, amount DOUBLE", rescue="more")

@table(keys=["customer"])
def totals():
    return read_stream("orders").groupBy("customer").agg(F.sum("amount").alias("amount"))

@sink(topic="TOPIC-totals")
def out():
    return read_stream("totals").selectExpr("customer AS key", "to_json(struct(*)) AS value")
"""


def test_bronze_silver_gold_and_a_topic(pipeline: Pipeline) -> None:
    pipeline.define(SHOP)
    pipeline.broker.create_topic(f"{pipeline.topic}-totals", partitions=1)
    pipeline.send({"id": 1, "customer": "a", "amount": 2}, {"id": 2, "amount": 3, "x": 1}, b"junk", key="k")
    own_headers = [("h", None), ("t", b"\xff"), ("h", b"twice")]
    pipeline.send({"id": 3, "customer": "a", "amount": 0}, timestamp=1_700_000_000_123, key="k3", headers=own_headers)
    pipeline.send({"id": 4, "customer": "b", "amount": "x"}, None)
    run = pipeline.catch_up()

    raw = pipeline.rows("raw", "topic", "partition", "offset", "value")
    assert len(raw) == 6
    assert {row[0] for row in raw} == {pipeline.topic}
    assert pipeline.rows("orders", "id", "amount", "more") == [(1, 2.0, None), (2, 3.0, '{"x":"1"}')]
    found = {flow.name: flow.status for flow in run.flows}
    orders = found["orders"]
    assert (orders.rows_in, orders.rows_out, orders.dropped, orders.dead) == (6, 2, 4, 4)
    assert orders.failed == {"decodes": 3, "has a customer": 1, "positive": 1}
    assert orders.passed == {"decodes": 3, "has a customer": 2, "positive": 2}
    assert [found[name].lag for name in ("raw", "orders", "totals", "out")] == [0, 0, 0, 0]

    dead = pipeline.records(f"{pipeline.topic}-dlq")
    # Untouched: its key, and its own headers before those that say why.
    (third,) = (one for one in dead if one.key == b"k3")
    assert list(third.headers[:3]) == own_headers
    letters = {one.value: headers(one) for one in dead}
    assert set(letters) == {b"junk", None, b'{"id": 3, "customer": "a", "amount": 0}'} | {
        b'{"id": 4, "customer": "b", "amount": "x"}'
    }
    bad = letters[b'{"id": 3, "customer": "a", "amount": 0}']
    assert bad["ottla.dlq.reason"] == "positive: amount > 0 is not true"
    assert bad["ottla.dlq.time"] == "1700000000123"
    assert (bad["ottla.dlq.rule"], bad["ottla.dlq.topic"], bad["ottla.dlq.table"]) == (
        "positive",
        pipeline.topic,
        "orders",
    )
    places = {(row[1], row[2]): row[3] for row in raw}
    assert places[int(bad["ottla.dlq.partition"]), int(bad["ottla.dlq.offset"])] == bytearray(
        b'{"id": 3, "customer": "a", "amount": 0}'
    )
    assert letters[b"junk"]["ottla.dlq.reason"] == "not JSON of the schema: junk"
    assert letters[None]["ottla.dlq.reason"] == "the value is null"

    with Admin(bootstrap_servers=pipeline.broker.bootstrap) as admin:
        # The group has read other tests' topics of this broker too.
        committed = admin.list_group_offsets("shop.raw").items()
        assert sum(one.offset for tp, one in committed if tp.topic == pipeline.topic) == 6

    # A second run reads what is new, and changes what it touches.
    pipeline.send({"id": 5, "customer": "a", "amount": 5})
    pipeline.catch_up()
    assert pipeline.rows("totals", "customer", "amount") == [("a", 7.0), (None, 3.0)]
    sent = [(one.key, json.loads(one.value or b"")["amount"]) for one in pipeline.records(f"{pipeline.topic}-totals")]
    assert set(sent) == {(b"a", 2.0), (b"a", 7.0), (None, 3.0)}


def test_a_micro_batch_that_is_planned_again_writes_nothing(pipeline: Pipeline) -> None:
    """As after a driver that died between the table's commit and the checkpoint's note of it."""
    pipeline.define(SHOP.partition("@table(keys")[0])
    pipeline.send({"id": 1, "amount": 2}, b"junk")
    pipeline.catch_up()
    for flow in ("raw", "orders"):
        commits = Path(pipeline.places.checkpoint(flow)) / "commits"
        for file in commits.iterdir():
            file.unlink()
    run = pipeline.catch_up()
    assert len(pipeline.rows("raw", "offset")) == 2
    assert pipeline.rows("orders", "id") == [(1,)]
    assert len(pipeline.records(f"{pipeline.topic}-dlq")) == 1
    assert run.flows[1].status.dead == 1
    # Between the dead letters and the table's commit.
    log = Path(pipeline.places.table("orders")) / "_ottla"
    for folder in (log, Path(pipeline.places.checkpoint("orders")) / "commits"):
        for name in os.listdir(folder):
            (folder / name).unlink()
    run = pipeline.catch_up()
    assert pipeline.rows("orders", "id") == [(1,)]
    assert len(pipeline.records(f"{pipeline.topic}-dlq")) == 1
    assert run.flows[1].status.dead == 1


def test_a_micro_batch_with_state_that_is_planned_again(pipeline: Pipeline) -> None:
    """Spark refuses one whose state nobody has computed, though the driver that died had done so."""
    pipeline.define(SHOP.partition("@sink")[0])
    pipeline.send({"id": 1, "customer": "a", "amount": 2}, {"id": 2, "customer": "b", "amount": 3})
    pipeline.catch_up()
    for file in (Path(pipeline.places.checkpoint("totals")) / "commits").iterdir():
        file.unlink()
    assert pipeline.catch_up().flows[2].status.batch == 0
    assert pipeline.rows("totals", "customer", "amount") == [("a", 2.0), ("b", 3.0)]
    pipeline.send({"id": 3, "customer": "a", "amount": 4})
    pipeline.catch_up()
    assert pipeline.rows("totals", "customer", "amount") == [("a", 6.0), ("b", 3.0)]


@pytest.mark.slow
def test_a_replay_sends_each_dead_letter_once(pipeline: Pipeline) -> None:
    pipeline.define(SHOP.partition("@table(keys")[0])
    pipeline.send({"id": 1, "amount": 0}, b"junk", key="k")
    pipeline.catch_up()
    settings = {"bootstrap.servers": pipeline.broker.bootstrap}
    seen = replay(pipeline.topic, settings, pipeline.places, pipeline="shop", dry_run=True)
    assert (seen.found, seen.sent, seen.rules) == (2, 0, {"decodes": 1, "positive": 1})
    assert replay(pipeline.topic, settings, pipeline.places, pipeline="shop").sent == 2
    assert replay(pipeline.topic, settings, pipeline.places, pipeline="shop").found == 0
    again = [one for one in pipeline.records(pipeline.topic) if one.headers]
    assert sorted((one.key, one.value) for one in again) == [(b"k", b"junk"), (b"k", b'{"id": 1, "amount": 0}')]
    places = [(dict(one.headers)["ottla.replayed"] or b"").decode() for one in again]
    assert all(re.fullmatch(rf"{pipeline.topic}-dlq-0@\d", place) for place in places), places
    # The rule is mended; the pipeline takes them.
    pipeline.path.write_text(pipeline.path.read_text().replace("amount > 0", "amount >= 0"))
    pipeline.catch_up()
    assert pipeline.rows("orders", "id") == [(1,)]


@pytest.mark.slow
def test_keys_that_a_table_with_rows_is_given(pipeline: Pipeline) -> None:
    """What it has lies in no bucket: rows that are replaced would not be found, and be there beside the new ones."""
    one = """
    @table
    def one():
        return decode_json(read_topic("TOPIC"), "id BIGINT")
    """
    pipeline.define(one)
    pipeline.send({"id": 1})
    pipeline.catch_up()
    pipeline.define(one.replace("@table", '@table(keys=["id"])'))
    pipeline.send({"id": 1})
    with pytest.raises(BadState, match=r"has the keys id, and .* was written with no keys"):
        pipeline.catch_up()
    assert pipeline.rows("one", "id") == [(1,)]


@pytest.mark.slow
def test_expect_or_fail_writes_nothing(pipeline: Pipeline) -> None:
    pipeline.define(SHOP.partition("@table(keys")[0].replace("expect_or_drop", "expect_or_fail"))
    pipeline.send({"id": 1, "amount": 1}, {"id": 2, "amount": 0})
    with pytest.raises(ExpectationFailed) as caught:
        pipeline.catch_up()
    assert re.search(
        rf"table orders \(line \d+\): 1 of 2 rows break 'positive' \(amount > 0\); the first: offset \d of "
        rf"{pipeline.topic}-\d; nothing of this micro-batch was written",
        str(caught.value),
    )
    assert not os.path.exists(os.path.join(pipeline.places.table("orders"), "_ottla"))


def test_columns_that_are_called_like_marks_of_rows_are_kept(pipeline: Pipeline) -> None:
    """What rows of a table with keys are told apart by is no column of a user's."""
    pipeline.define(
        """
        @table(keys=["id"])
        def last():
            rows = decode_json(read_topic("TOPIC"), "id INT")
            return rows.selectExpr("id", "id + 1 AS _n", "id + 2 AS _at", "id + 3 AS _new")
        """
    )
    pipeline.send({"id": 1})
    pipeline.catch_up()
    assert pipeline.rows("last", "id", "_n", "_at", "_new") == [(1, 2, 3, 4)]


CLICKS = """
@table
@expect_on_time("at", "10m")
def clicks():
    return decode_json(read_topic("TOPIC"), "id INT, at TIMESTAMP").drop("_record")
"""


@pytest.mark.slow
def test_times_that_python_has_not(pipeline: Pipeline) -> None:
    """Milliseconds that are read as seconds are 57,000 years from now, and all that follows them is late."""
    pipeline.define(CLICKS)
    pipeline.send({"id": 1, "at": 1_793_534_400_000})
    pipeline.catch_up()
    pipeline.send({"id": 2, "at": 1_793_534_400_000}, {"id": 3, "at": 1_793_534_400})
    (clicks,) = pipeline.catch_up().flows
    assert clicks.status.failed == {"decodes": 0, "on time": 1}
    assert pipeline.rows("clicks", "id") == [(1,), (2,)]

    pipeline.define(CLICKS.replace('on_time("at", "10m")', 'or_fail("in this age", "year(at) < 3000")'))
    pipeline.send({"id": 4, "at": 1_793_534_400_000})
    with pytest.raises(ExpectationFailed, match=r"1 of 1 rows break 'in this age' .* first: \{'id': '4', 'at': '\+5"):
        pipeline.catch_up()


AVRO = """
@table
def orders():
    return decode(read_topic("TOPIC"), "avro:FILE", framing="plain")
"""


def test_records_in_avro_become_columns_and_what_is_none_a_dead_letter(pipeline: Pipeline) -> None:
    file = pipeline.folder / "order.avsc"
    fields = [{"name": "id", "type": "long"}, {"name": "note", "type": ["null", "string"]}]
    file.write_text(json.dumps({"type": "record", "name": "Order", "fields": fields}))
    writing = encoder(f"avro:{file}", framing="plain")
    pipeline.define(AVRO.replace("FILE", str(file)))
    pipeline.send(writing.encode_one({"id": 1, "note": None}), writing.encode_one({"id": 2, "note": "two"}), b"\xff")
    pipeline.catch_up()
    assert pipeline.rows("orders", "id", "note") == [(1, None), (2, "two")]
    (letter,) = pipeline.records(f"{pipeline.topic}-dlq")
    assert letter.value == b"\xff"
    assert headers(letter)["ottla.dlq.rule"] == "decodes"


def test_a_format_that_cannot_be_meant_is_named(pipeline: Pipeline) -> None:
    pipeline.define(AVRO.replace("FILE", "/nowhere/order.avsc"))
    with pytest.raises(BadDefinition, match=r"/nowhere/order\.avsc"):
        pipeline.catch_up()
