"""The stream's reader as Spark's driver calls it, against a real broker: where batches begin and end."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxBytes, ReadMaxRows, ReadMinRows
from tests.spark.source.conftest import Fill

from ottla.client.sync import Admin
from ottla.client.wire.cluster import Cluster
from ottla.model import TopicPartition
from ottla.spark import OptionError
from ottla.spark.source import stream
from ottla.spark.source.columns import spark_schema
from ottla.spark.source.errors import DataLost, TopicMissing
from ottla.spark.source.offsets import TOPIC_IDS
from ottla.spark.source.progress import COMMITTED_TO
from ottla.spark.source.settings import Subscription
from ottla.spark.source.stream import StreamReader, stream_reader
from ottla.spark.source.topics import FoundPartitions, find_partitions
from ottla.testing import InProcessBroker

EVERYTHING = ReadAllAvailable()


def reader_for(broker: InProcessBroker, topic: str, **options: Any) -> StreamReader:
    given: dict[str, Any] = {"kafka.bootstrap.servers": broker.bootstrap, "startingOffsets": "earliest"}
    if "subscribePattern" not in options:
        given["subscribe"] = topic
    return stream_reader(spark_schema(("value",)), {**given, **options})


def plain(offset: dict[str, Any]) -> dict[str, Any]:
    return {name: inner for name, inner in offset.items() if name != TOPIC_IDS}


def as_spark_keeps_it(offset: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(json.dumps(offset))
    return found


def values(reader: StreamReader, start: dict[str, Any], end: dict[str, Any]) -> list[int]:
    return sorted(
        int(value)
        for split in reader.partitions(start, end)
        for batch in reader.read(split)
        for value in batch.column("value").to_pylist()
    )


def test_batches_follow_each_other(broker: InProcessBroker, topic: str, fill: Fill) -> None:
    fill(broker.bootstrap, topic, 30)
    reader = reader_for(broker, topic)
    start = reader.initialOffset()
    assert plain(start) == {topic: {"0": 0, "1": 0, "2": 0}}
    end = as_spark_keeps_it(reader.latestOffset(start, EVERYTHING))
    assert plain(end) == {topic: {"0": 10, "1": 10, "2": 10}}
    assert values(reader, start, end) == list(range(30))
    assert reader.latestOffset(end, EVERYTHING) == end
    fill(broker.bootstrap, topic, 3, first=30)
    assert values(reader, end, reader.latestOffset(end, EVERYTHING)) == [30, 31, 32]


def test_limits(broker: InProcessBroker, topic: str, fill: Fill) -> None:
    fill(broker.bootstrap, topic, 30)
    assert reader_for(broker, topic).getDefaultReadLimit() == EVERYTHING
    reader = reader_for(broker, topic, maxOffsetsPerTrigger=6)
    assert reader.getDefaultReadLimit() == ReadMaxRows(6)
    start = reader.initialOffset()
    assert plain(reader.latestOffset(start, ReadMaxRows(6))) == {topic: {"0": 2, "1": 2, "2": 2}}
    assert plain(reader.latestOffset(start, EVERYTHING)) == {topic: {"0": 10, "1": 10, "2": 10}}
    assert reader.reportLatestOffset() == reader.latestOffset(start, EVERYTHING)
    with pytest.raises(OptionError, match="maxBytesPerTrigger"):
        reader_for(broker, topic, maxBytesPerTrigger=0)


class LaggingBroker:
    """Answers so many times as one that has not heard of the topic yet."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.left = 0
        monkeypatch.setattr(stream, "find_partitions", self.find)

    async def find(self, cluster: Cluster, subscription: Subscription) -> FoundPartitions:
        if not self.left:
            return await find_partitions(cluster, subscription)
        self.left -= 1
        return FoundPartitions([], {}, ["it does not exist"])


def test_a_limit_of_bytes(broker: InProcessBroker, topic: str, fill: Fill) -> None:
    fill(broker.bootstrap, topic, 300)
    reader = reader_for(broker, topic, maxBytesPerTrigger=1500)
    assert reader.getDefaultReadLimit() == ReadMaxBytes(1500)
    start = reader.initialOffset()
    end = plain(reader.latestOffset(start, ReadMaxBytes(1500)))[topic]
    assert all(0 < end[partition] < 100 for partition in ("0", "1", "2"))
    seen = 0
    while (end := reader.latestOffset(start, ReadMaxBytes(1500))) != start:
        seen += len(values(reader, start, end))
        start = end
    assert seen == 300


def test_a_minimum_is_waited_for(broker: InProcessBroker, topic: str, fill: Fill) -> None:
    reader = reader_for(broker, topic, minOffsetsPerTrigger=10, maxTriggerDelay="1h")
    assert reader.getDefaultReadLimit() == ReadMinRows(10)
    fill(broker.bootstrap, topic, 3)
    end = reader.latestOffset(reader.initialOffset(), ReadMinRows(10))
    assert plain(end) == {topic: {"0": 1, "1": 1, "2": 1}}  # the first batch does not wait
    fill(broker.bootstrap, topic, 9, first=3)
    assert reader.latestOffset(end, ReadMinRows(10)) == end
    assert reader.latestOffset(end, EVERYTHING) != end
    fill(broker.bootstrap, topic, 3, first=12)
    assert plain(reader.latestOffset(end, ReadMinRows(10))) == {topic: {"0": 5, "1": 5, "2": 5}}


def test_latest_is_where_it_was_when_the_query_first_began(broker: InProcessBroker, topic: str, fill: Fill) -> None:
    fill(broker.bootstrap, topic, 30)
    first = reader_for(broker, topic, startingOffsets="latest")
    begun = first.initialOffset()
    logged = as_spark_keeps_it(first.latestOffset(begun, EVERYTHING))
    assert logged == begun  # an empty batch: its end is in the checkpoint from now on
    fill(broker.bootstrap, topic, 3, first=30)
    again = reader_for(broker, topic, startingOffsets="latest")  # the driver was killed before it ended
    assert values(again, again.initialOffset(), logged) == []
    assert values(again, logged, again.latestOffset(logged, EVERYTHING)) == [30, 31, 32]
    assert values(first, logged, first.latestOffset(logged, EVERYTHING)) == [30, 31, 32]


@pytest.mark.parametrize("starting", [{"startingTimestamp": 0}, {"startingOffsets": "group", "kafka.group.id": "no"}])
def test_available_now_reads_on_behind_a_first_batch_that_was_not_finished(
    broker: InProcessBroker, topic: str, fill: Fill, starting: dict[str, Any]
) -> None:
    fill(broker.bootstrap, topic, 30)
    reader = reader_for(broker, topic, **starting)
    reader.prepareForTriggerAvailableNow()
    logged = as_spark_keeps_it(reader.initialOffset())  # by the driver that died
    assert values(reader, logged, logged) == []
    assert values(reader, logged, reader.latestOffset(logged, EVERYTHING)) == list(range(30))


def test_available_now_ends_where_it_was_when_it_began(broker: InProcessBroker, topic: str, fill: Fill) -> None:
    fill(broker.bootstrap, topic, 30)
    reader = reader_for(broker, topic, maxOffsetsPerTrigger=12, minOffsetsPerTrigger=12)
    reader.prepareForTriggerAvailableNow()
    fill(broker.bootstrap, topic, 30, first=30)
    with Admin(bootstrap_servers=broker.bootstrap) as admin:
        admin.create_partitions({topic: 4})
    start, seen, batches = reader.initialOffset(), [], 0
    while (end := as_spark_keeps_it(reader.latestOffset(start, ReadMaxRows(12)))) != start:
        seen += values(reader, start, end)
        start, batches = end, batches + 1
        assert batches <= 10
    assert sorted(seen) == list(range(30))
    assert batches == 3


def test_partitions_and_topics_that_appear_are_read_from_their_beginning(
    broker: InProcessBroker, topic: str, fill: Fill
) -> None:
    fill(broker.bootstrap, topic, 3)
    reader = reader_for(broker, topic, subscribePattern=f"^{topic}(-later)?$", startingOffsets="latest")
    start = reader.initialOffset()
    assert reader.latestOffset(start, EVERYTHING) == start
    with Admin(bootstrap_servers=broker.bootstrap) as admin:
        admin.create_partitions({topic: 4})
    broker.create_topic(f"{topic}-later")
    fill(broker.bootstrap, topic, 4, partitions=4, first=100)
    fill(broker.bootstrap, f"{topic}-later", 2, partitions=1, first=200)
    end = as_spark_keeps_it(reader.latestOffset(start, EVERYTHING))
    assert values(reader, start, end) == [100, 101, 102, 103, 200, 201]


def test_a_topic_that_vanishes(broker: InProcessBroker, topic: str, fill: Fill, log_lines: list[str]) -> None:
    fill(broker.bootstrap, topic, 30)
    strict, forgiving = reader_for(broker, topic), reader_for(broker, topic, failOnDataLoss="false")
    start = strict.initialOffset()
    end = as_spark_keeps_it(strict.latestOffset(start, EVERYTHING))
    broker.delete_topic(topic)
    with pytest.raises(
        DataLost, match=f"{topic}-0 is no longer there, .*: it was read up to offset 10 .*failOnDataLoss"
    ):
        strict.latestOffset(end, EVERYTHING)
    assert forgiving.latestOffset(end, EVERYTHING) == {}
    assert any(f"{topic}-2 is no longer there" in line for line in log_lines)
    with pytest.raises(TopicMissing, match=f"topic {topic} does not exist"):
        reader_for(broker, topic).initialOffset()


@pytest.mark.parametrize("limit", [EVERYTHING, ReadMaxBytes(1)])
@pytest.mark.parametrize("strict", [True, False])
def test_a_topic_that_vanishes_between_two_questions(
    broker: InProcessBroker, topic: str, fill: Fill, monkeypatch: pytest.MonkeyPatch, *, strict: bool, limit: Any
) -> None:
    """It was found, and its offsets are asked for: at each of these moments it may be deleted."""
    gone, new = f"{topic}-gone", f"{topic}-new"
    for name in (gone, new):
        broker.create_topic(name, 2)
    for name in (topic, gone):
        fill(broker.bootstrap, name, 30, partitions=2)
    reader = reader_for(broker, topic, subscribePattern=f"^{topic}", failOnDataLoss=str(strict).lower())
    known = {topic: {"0": 15, "1": 15}, gone: {"0": 15, "1": 15}}
    found_them = find_partitions

    async def found_before(cluster: Cluster, subscription: Subscription) -> FoundPartitions:
        found = await found_them(cluster, subscription)
        for name in (gone, new):
            await asyncio.to_thread(broker.delete_topic, name)
        return found

    with monkeypatch.context() as patch:
        patch.setattr(stream, "find_partitions", found_before)
        if strict:
            with pytest.raises(DataLost, match=f"{gone}-0 is no longer there, .*: it was read up to offset 15"):
                reader.latestOffset(known, limit)
        else:
            assert plain(reader.latestOffset(known, limit)) == {topic: {"0": 15, "1": 15, "2": 0}}


def test_a_topic_that_vanishes_as_available_now_begins(
    broker: InProcessBroker, topic: str, fill: Fill, monkeypatch: pytest.MonkeyPatch
) -> None:
    gone = f"{topic}-gone"
    broker.create_topic(gone, 2)
    fill(broker.bootstrap, topic, 30)
    found_them = find_partitions

    async def found_before(cluster: Cluster, subscription: Subscription) -> FoundPartitions:
        found = await found_them(cluster, subscription)
        await asyncio.to_thread(broker.delete_topic, gone)
        return found

    reader = reader_for(broker, topic, subscribePattern=f"^{topic}")
    with monkeypatch.context() as patch:
        patch.setattr(stream, "find_partitions", found_before)
        reader.prepareForTriggerAvailableNow()
    start = reader.initialOffset()
    assert values(reader, start, reader.latestOffset(start, EVERYTHING)) == list(range(30))


@pytest.mark.parametrize("strict", [True, False])
def test_a_broker_that_lags_takes_no_topic_away(
    broker: InProcessBroker, topic: str, fill: Fill, monkeypatch: pytest.MonkeyPatch, *, strict: bool
) -> None:
    lagging = LaggingBroker(monkeypatch)
    fill(broker.bootstrap, topic, 30)
    reader = reader_for(broker, topic, failOnDataLoss=str(strict).lower())
    end = reader.latestOffset(reader.initialOffset(), EVERYTHING)
    lagging.left = 3
    assert reader.latestOffset(end, EVERYTHING) == end
    assert not lagging.left


def test_a_broker_that_lags_as_available_now_begins(
    broker: InProcessBroker, topic: str, fill: Fill, monkeypatch: pytest.MonkeyPatch
) -> None:
    lagging = LaggingBroker(monkeypatch)
    fill(broker.bootstrap, topic, 30)
    reader = reader_for(broker, topic)
    lagging.left = 3
    reader.prepareForTriggerAvailableNow()
    start = reader.initialOffset()
    assert values(reader, start, reader.latestOffset(start, EVERYTHING)) == list(range(30))


def test_what_available_now_did_not_see_as_it_began_stays_where_it_was(
    broker: InProcessBroker, topic: str, fill: Fill, monkeypatch: pytest.MonkeyPatch
) -> None:
    lagging = LaggingBroker(monkeypatch)
    fill(broker.bootstrap, topic, 30)
    reader = reader_for(broker, topic)
    known = as_spark_keeps_it(reader.latestOffset({topic: {"0": 4, "1": 5, "2": 6}}, ReadMaxRows(3)))
    again = reader_for(broker, topic)
    lagging.left = 1_000
    again.prepareForTriggerAvailableNow()
    lagging.left = 0
    assert again.latestOffset(known, EVERYTHING) == known


def test_of_new_partitions_only_those_that_are_gone_are_given_up(
    broker: InProcessBroker, topic: str, fill: Fill, log_lines: list[str]
) -> None:
    fill(broker.bootstrap, topic, 30)
    gone = f"{topic}-gone"
    end = {topic: {"0": 10, "1": 10, "2": 10}, gone: {"0": 5}}
    options = {"subscribePattern": f"^{topic}"}
    assert values(reader_for(broker, topic, **options, failOnDataLoss="false"), {}, end) == list(range(30))
    assert sum(f"of {gone}-0 nothing can be read any more" in line for line in log_lines) == 1
    with pytest.raises(DataLost, match=f"of {gone}-0 nothing can be read any more"):
        reader_for(broker, topic, **options).partitions({}, end)


def test_a_new_partition_that_does_not_begin_at_zero_is_a_loss(
    broker: InProcessBroker, topic: str, fill: Fill, log_lines: list[str]
) -> None:
    fill(broker.bootstrap, topic, 30)
    with Admin(bootstrap_servers=broker.bootstrap) as admin:
        admin.delete_records({TopicPartition(topic, 1): 4})
    strict, forgiving = reader_for(broker, topic), reader_for(broker, topic, failOnDataLoss="false")
    start, end = {topic: {"0": 10}}, {topic: {"0": 10, "1": 10, "2": 10}}
    said = f"{topic}-1 is new to the query, and begins at offset 4 instead of 0"
    with pytest.raises(DataLost, match=said):
        strict.partitions(start, end)
    assert len(values(forgiving, start, end)) == 16
    assert sum(said in line for line in log_lines) == 1


def test_a_topic_that_was_made_again_is_read_from_its_beginning(
    broker: InProcessBroker, topic: str, fill: Fill, log_lines: list[str]
) -> None:
    fill(broker.bootstrap, topic, 30)
    strict, forgiving = reader_for(broker, topic), reader_for(broker, topic, failOnDataLoss="false")
    end = as_spark_keeps_it(strict.latestOffset(strict.initialOffset(), EVERYTHING))
    broker.delete_topic(topic)
    broker.create_topic(topic, partitions=3)
    fill(broker.bootstrap, topic, 60, first=1000)  # more than there was: offsets alone would say nothing
    with pytest.raises(DataLost, match=f"topic {topic} was deleted and made again: {topic}-0 was read up to offset 10"):
        strict.latestOffset(end, EVERYTHING)
    after = as_spark_keeps_it(forgiving.latestOffset(end, EVERYTHING))
    assert values(forgiving, end, after) == list(range(1000, 1060))
    assert any("was deleted and made again" in line for line in log_lines)


@pytest.mark.parametrize("available_now", [False, True])
def test_a_log_that_has_become_shorter(broker: InProcessBroker, topic: str, fill: Fill, *, available_now: bool) -> None:
    fill(broker.bootstrap, topic, 30)
    strict, forgiving = reader_for(broker, topic), reader_for(broker, topic, failOnDataLoss="false")
    before = {topic: {"0": 10, "1": 15, "2": 10}}
    if available_now:
        strict.prepareForTriggerAvailableNow()
        forgiving.prepareForTriggerAvailableNow()
    with pytest.raises(DataLost, match=f"offsets 10 to 14 of {topic}-1 .* the log ends at offset 10 now"):
        strict.latestOffset(before, EVERYTHING)
    assert plain(forgiving.latestOffset(before, EVERYTHING)) == {topic: {"0": 10, "1": 10, "2": 10}}


def test_a_checkpoint_of_the_kafka_source_goes_on(broker: InProcessBroker, topic: str, fill: Fill) -> None:
    fill(broker.bootstrap, topic, 30)
    reader = reader_for(broker, topic)
    start = {topic: {"0": 9, "1": 8, "2": 10}}
    assert values(reader, start, reader.latestOffset(start, EVERYTHING)) == [25, 27, 28]


@pytest.mark.parametrize("start", [5, [1], {"rows": 5}, {"orders": {"zero": 1}}, "rate"])
def test_a_checkpoint_of_another_source_is_no_checkpoint(broker: InProcessBroker, topic: str, start: Any) -> None:
    with pytest.raises(OptionError, match=r"the checkpoint.*another source's offsets.*checkpointLocation of its own"):
        reader_for(broker, topic).latestOffset(start, EVERYTHING)


def test_a_checkpoint_of_a_query_over_another_topic_is_a_loss(broker: InProcessBroker, topic: str) -> None:
    with pytest.raises(DataLost, match="others-0 is no longer there, or no longer subscribed to: it was read up to"):
        reader_for(broker, topic).latestOffset({"others": {"0": 9}}, EVERYTHING)


def test_progress_is_committed_to_the_group(broker: InProcessBroker, topic: str, fill: Fill) -> None:
    fill(broker.bootstrap, topic, 30)
    group = f"group-of-{topic}"
    reader = reader_for(broker, topic, **{"kafka.group.id": group})
    end = reader.latestOffset(reader.initialOffset(), EVERYTHING)
    reported = reader.reportLatestOffset()
    assert reported is not None
    assert reported[COMMITTED_TO] == {"group.id": group, "bootstrap.servers": broker.bootstrap}
    reader.commit(as_spark_keeps_it(end))
    with Admin(bootstrap_servers=broker.bootstrap) as admin:
        found = admin.list_group_offsets(group)
    assert {tp: one.offset for tp, one in found.items()} == {TopicPartition(topic, n): 10 for n in range(3)}


def test_without_a_group_nothing_is_committed(broker: InProcessBroker, topic: str, fill: Fill) -> None:
    fill(broker.bootstrap, topic, 3)
    reader = reader_for(broker, topic)
    end = reader.latestOffset(reader.initialOffset(), EVERYTHING)
    reader.commit(end)
    assert reader.reportLatestOffset() == end


def test_a_group_with_members_is_refused(broker: InProcessBroker, topic: str, fill: Fill) -> None:
    from ottla.client.sync import Consumer

    fill(broker.bootstrap, topic, 3)
    group = f"group-of-{topic}"
    reader = reader_for(broker, topic, **{"kafka.group.id": group})
    end = reader.latestOffset(reader.initialOffset(), EVERYTHING)
    with Consumer(bootstrap_servers=broker.bootstrap, group_id=group, auto_offset_reset="earliest") as member:
        member.subscribe([topic])
        member.poll(timeout_ms=20_000)
        with pytest.raises(OptionError, match=f"group {group} has members"):
            reader.commit(end)
