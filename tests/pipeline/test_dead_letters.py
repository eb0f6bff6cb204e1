"""Dead letters: their topic takes large records, and so does a replay; those of a micro-batch that died are known."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tests.pipeline.conftest import Pipeline

from ottla.client.admin.results import ConfigChange, ConfigResource
from ottla.client.sync import Admin, Producer
from ottla.pipeline import writing
from ottla.pipeline.dead_letters import LIMIT, have_topics
from ottla.pipeline.definitions import Flow, Kind
from ottla.pipeline.expectations import Action, Rule
from ottla.pipeline.places import Places
from ottla.pipeline.planning import PlannedFlow
from ottla.pipeline.reading import RECORD
from ottla.pipeline.replay import replay
from ottla.pipeline.writing import CheckedFrame, TableWriter, check
from ottla.testing import InProcessBroker

MIB = 1 << 20


def limit(broker: InProcessBroker, topic: str) -> int:
    resource = ConfigResource.topic(topic)
    with Admin(bootstrap_servers=broker.bootstrap) as admin:
        return int(admin.describe_configs([resource])[resource][LIMIT].value or 0)


def test_their_topic_takes_as_much_as_they_need(broker: InProcessBroker) -> None:
    kafka = {"kafka.bootstrap.servers": broker.bootstrap}
    have_topics({"small-dlq": 100}, kafka)
    assert limit(broker, "small-dlq") == 2 * MIB
    for needed, wanted in ((2 * MIB, 2 * MIB), (3 * MIB, 4 * MIB), (100, 4 * MIB)):
        have_topics({"small-dlq": needed}, kafka)
        assert limit(broker, "small-dlq") == wanted
    broker.create_topic("own-dlq", configs={LIMIT: "5000"})
    have_topics({"own-dlq": 5000}, kafka)
    assert limit(broker, "own-dlq") == 5000


def test_a_batch_that_died_is_not_taken_for_one_whose_rules_were_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It died between its dead letters and its commit; what other rules drop has not been there."""
    flow = Flow(name="orders", kind=Kind.TABLE, function=lambda: None, line=1)
    made = TableWriter(PlannedFlow(flow=flow), Places(str(tmp_path)), "shop", {})
    sent: list[int] = []

    def send(frame: Any, *_: Any) -> int:
        sent.append(frame.rows)
        return int(frame.rows)

    monkeypatch.setattr(writing, "send", send)

    def dropped(rows: int, rule: str, records: int = 7) -> CheckedFrame:
        counts = {writing.ROWS_IN: 10, writing.DROPPED: rows, f"{writing.FAILED_PREFIX}{rule}": rows}
        frame = SimpleNamespace(columns=[RECORD], rows=rows)
        return CheckedFrame(frame=frame, counts=counts, youngest_us={}, dropped_sum=records)

    assert made._dead_letters(dropped(2, "positive"), "q/4") == 2
    assert made._dead_letters(dropped(2, "positive"), "q/4") == 2
    assert sent == [2]
    assert made._dead_letters(dropped(2, "small"), "q/4") == 2
    assert made._dead_letters(dropped(3, "small"), "q/4") == 3
    assert made._dead_letters(dropped(3, "small"), "q/5") == 3
    assert sent == [2, 2, 3, 3]
    # As many, by a rule of the same name.
    assert made._dead_letters(dropped(3, "small", records=8), "q/5") == 3
    assert made._dead_letters(dropped(3, "small", records=8), "q/5") == 3
    assert sent == [2, 2, 3, 3, 3]


@pytest.mark.slow
@pytest.mark.xdist_group("spark")
@pytest.mark.timeout(1200)
def test_rows_that_are_left_out_are_told_from_others(spark: Any, kept_settings: None) -> None:
    """However they are divided among tasks."""
    rows = [({"topic": "orders", "partition": 0, "offset": number}, number) for number in range(8)]
    frame = spark.createDataFrame(rows, f"{RECORD} STRUCT<topic: STRING, partition: INT, offset: BIGINT>, id INT")

    def found(condition: str, tasks: int) -> tuple[int, int]:
        rule = Rule(name="good", condition=condition, action=Action.DROP)
        checked = check(frame.repartition(tasks), (rule,), {})
        checked.frame.unpersist()
        return checked.counts[writing.DROPPED], checked.dropped_sum

    assert found("id > 3", 1) == found("id > 3", 3) != found("id < 4", 1)
    assert found("id > 3", 1)[0] == found("id < 4", 1)[0] == 4
    assert found("true", 1) == (0, 0)


@pytest.mark.slow
@pytest.mark.xdist_group("spark")
@pytest.mark.timeout(1200)
def test_a_large_record_that_is_bad_stops_nothing(pipeline: Pipeline) -> None:
    pipeline.define("""
        @table
        @expect_or_drop("positive", "amount > 0")
        def orders():
            return decode_json(read_topic("TOPIC"), "id BIGINT, amount DOUBLE")
    """)
    settings = {"bootstrap.servers": pipeline.broker.bootstrap}
    with Admin(settings) as admin:
        resource = ConfigResource.topic(pipeline.topic)
        admin.incremental_alter_configs({resource: [ConfigChange(LIMIT, str(10 * MIB))]})
    large = b"no JSON" + bytes(2 * MIB)
    with Producer({**settings, "max.request.size": 4 * MIB}) as producer:
        producer.send(pipeline.topic, large, key=b"k")
    pipeline.send({"id": 1, "amount": 2})
    pipeline.catch_up()
    assert pipeline.rows("orders", "id") == [(1,)]
    assert [one.value for one in pipeline.records(f"{pipeline.topic}-dlq")] == [large]
    assert replay(pipeline.topic, settings, pipeline.places, pipeline="shop").sent == 1
    assert [one.value for one in pipeline.records(pipeline.topic) if one.headers] == [large]
