"""Planning and reading against a real broker, without Spark: what a job reads, and what it says of what is gone."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Mapping
from concurrent.futures import Future
from pathlib import Path
from random import Random
from typing import Any

import pytest
from pyspark.sql.datasource import InputPartition
from tests.searches import seeds
from tests.spark.source.conftest import Fill

from ottla.client.errors import UnknownTopicId, UnknownTopicOrPartition
from ottla.client.sync import Admin, Producer
from ottla.model import TopicPartition
from ottla.protocol.generated.fetch import PartitionData
from ottla.spark import OptionError
from ottla.spark.source import ranges
from ottla.spark.source.bounds import Offsets
from ottla.spark.source.errors import DataLost, ReadFailed, TopicMissing
from ottla.spark.source.fetching import PartitionFetches
from ottla.spark.source.links import Link, link
from ottla.spark.source.loss import LossPolicy
from ottla.spark.source.planning import batch_splits
from ottla.spark.source.pushdown import PushedBounds
from ottla.spark.source.ranges import RangeReader
from ottla.spark.source.settings import SourceSettings, source_settings
from ottla.spark.source.splits import Range, Split
from ottla.spark.source.tasks import read_split
from ottla.testing import InProcessBroker

Row = tuple[int, int, int]


def settings_for(broker: InProcessBroker, topic: str, **options: Any) -> SourceSettings:
    given: dict[str, Any] = {"kafka.bootstrap.servers": broker.bootstrap}
    if not {"subscribe", "subscribePattern", "assign"} & set(options):
        given["subscribe"] = topic
    return source_settings({**given, **options}, stream=False)


def read_all(settings: SourceSettings, splits: list[Split] | None = None) -> list[Row]:
    """Partition, offset and number of each record, in the order of the splits."""
    found = []
    for split in batch_splits(settings) if splits is None else splits:
        for batch in read_split(settings, split):
            columns = (batch.column(name).to_pylist() for name in ("partition", "offset", "value"))
            found += [(partition, offset, int(value)) for partition, offset, value in zip(*columns, strict=True)]
    return found


def numbered(count: int, partitions: int = 3) -> list[Row]:
    return sorted((number % partitions, number // partitions, number) for number in range(count))


def test_everything_once_and_in_order(broker: InProcessBroker, topic: str, fill: Fill) -> None:
    fill(broker.bootstrap, topic, 30)
    assert read_all(settings_for(broker, topic)) == numbered(30)
    splits = batch_splits(settings_for(broker, topic, minPartitions=7))
    assert len(splits) >= 6
    assert read_all(settings_for(broker, topic), splits) == numbered(30)
    assert len(batch_splits(settings_for(broker, topic, maxRecordsPerPartition=3))) == 12


def test_many_fetches_make_one_range(broker: InProcessBroker, topic: str, fill: Fill) -> None:
    fill(broker.bootstrap, topic, 3000)
    settings = settings_for(broker, topic, **{"kafka.max.partition.fetch.bytes": 100})
    assert read_all(settings) == numbered(3000)
    assert read_all(settings, [Split(Range(TopicPartition(topic, 1), 17, 801))]) == [
        row for row in numbered(3000) if row[0] == 1 and 17 <= row[1] < 801
    ]


def test_offsets_that_are_named(broker: InProcessBroker, topic: str, fill: Fill) -> None:
    fill(broker.bootstrap, topic, 30)
    first = f'{{"{topic}": {{"0": 3, "1": -2, "2": 9}}}}'
    last = f'{{"{topic}": {{"0": 5, "1": 1, "2": -1}}}}'
    found = read_all(settings_for(broker, topic, startingOffsets=first, endingOffsets=last))
    assert [(partition, offset) for partition, offset, _ in found] == [(0, 3), (0, 4), (1, 0), (2, 9)]


def test_what_is_assigned_or_matches(broker: InProcessBroker, topic: str, fill: Fill) -> None:
    fill(broker.bootstrap, topic, 6)
    assigned = settings_for(broker, topic, assign=f'{{"{topic}": [2, 0]}}')
    assert read_all(assigned) == [row for row in numbered(6) if row[0] != 1]
    matched = settings_for(broker, topic, subscribePattern=f"^{topic[:-1]}[{topic[-1]}]$")
    assert read_all(matched) == numbered(6)
    broker.create_topic(f"our-{topic}-too", partitions=3)
    fill(broker.bootstrap, f"our-{topic}-too", 9, first=100)
    of_both = {number for *_, number in read_all(settings_for(broker, topic, subscribePattern=f"{topic}(-|$)"))}
    assert of_both == {*range(6), *range(100, 109)}
    assert read_all(settings_for(broker, topic, subscribePattern="nothing-.*")) == []


def test_times_become_offsets(broker: InProcessBroker, topic: str) -> None:
    with Producer(bootstrap_servers=broker.bootstrap) as producer:
        for number, time_ms in enumerate((1000, 3000, 2000, 4000)):  # times of producers are in no order
            producer.send(topic, b"%d" % number, partition=0, timestamp=time_ms)

    def offsets(**options: Any) -> list[int]:
        given = settings_for(broker, topic, assign=f'{{"{topic}": [0]}}', **options)
        return [offset for _, offset, _ in read_all(given)]

    assert offsets(startingTimestamp=2000) == [1, 2, 3]
    assert offsets(startingTimestamp=0, endingTimestamp=3000) == [0]
    assert offsets(startingOffsetsByTimestamp=f'{{"{topic}": {{"0": 3001}}}}') == [3]
    assert offsets(endingOffsetsByTimestamp=f'{{"{topic}": {{"0": 9000}}}}') == [0, 1, 2, 3]
    with pytest.raises(OptionError, match=f"startingTimestamp: no record as young as that is in {topic}-0"):
        offsets(startingTimestamp=9000)
    assert offsets(startingTimestamp=9000, startingOffsetsByTimestampStrategy="latest") == []


def test_bounds_that_filters_left(broker: InProcessBroker, topic: str, fill: Fill) -> None:
    fill(broker.bootstrap, topic, 30)
    settings = settings_for(broker, topic)
    pushed = PushedBounds(partition_max=1, offset_min=4, offset_max=6)
    splits = batch_splits(settings, pushed)
    assert [(split.tp.partition, split.first, split.until) for split in splits] == [(0, 4, 7), (1, 4, 7)]
    assert batch_splits(settings, PushedBounds(time_ms_min=2**41)) == []


@pytest.mark.parametrize("seed", seeds(2, 20))
def test_a_bound_of_time_leaves_out_what_lies_before_the_first_as_young(
    broker: InProcessBroker, topic: str, seed: int
) -> None:
    """Times of producers are in no order: what comes behind the first that is as young is read, however old it is."""
    chance = Random(seed)
    times: dict[int, list[int]] = {partition: [] for partition in range(3)}
    with Producer(bootstrap_servers=broker.bootstrap, batch_size=chance.choice((1, 16_384))) as producer:
        for number in range(60):
            partition = chance.choice((0, 0, 1, 2))
            times[partition].append(1_700_000_000_000 + number + chance.randrange(-15, 16))
            producer.send(topic, b"%d" % number, partition=partition, timestamp=times[partition][-1])
    settings = settings_for(broker, topic)
    edges = sorted({edge for found in times.values() for time in found for edge in (time, time + 1)})
    for least in (edges[0], edges[-1], *chance.sample(edges, 6)):
        offset_max = chance.choice((None, chance.randrange(20)))
        wanted = []
        for partition, found in times.items():
            first = next((offset for offset, time in enumerate(found) if time >= least), len(found))
            until = len(found) if offset_max is None else min(len(found), offset_max + 1)
            if first < until:
                wanted.append((partition, first, until))
        splits = batch_splits(settings, PushedBounds(time_ms_min=least, offset_max=offset_max))
        assert [(one.tp.partition, one.first, one.until) for one in splits] == wanted, (least, offset_max)


def test_columns_that_are_not_asked_for_are_not_there(broker: InProcessBroker, topic: str, fill: Fill) -> None:
    fill(broker.bootstrap, topic, 3)
    settings = settings_for(broker, topic, columns="value,offset")
    (batch, *_) = read_split(settings, batch_splits(settings)[0])
    assert batch.schema.names == ["value", "offset"]


def test_a_group_says_where_to_begin(broker: InProcessBroker, topic: str, fill: Fill) -> None:
    fill(broker.bootstrap, topic, 30)
    with Admin(bootstrap_servers=broker.bootstrap) as admin:
        admin.alter_group_offsets(f"group-of-{topic}", {TopicPartition(topic, 1): 7})
    given = {"startingOffsets": "group", "kafka.group.id": f"group-of-{topic}"}
    found = read_all(settings_for(broker, topic, **given))
    assert found == [row for row in numbered(30) if row[0] != 1 or row[1] >= 7]


# What is not there


def test_a_topic_that_is_missing(broker: InProcessBroker, topic: str) -> None:
    with pytest.raises(TopicMissing, match="topic nowhere does not exist: create it, or change subscribe"):
        batch_splits(settings_for(broker, topic, subscribe=f"{topic},nowhere"))
    with pytest.raises(TopicMissing, match=f"{topic} has no partition 9: change assign"):
        batch_splits(settings_for(broker, topic, assign=f'{{"{topic}": [0, 9]}}'))
    assert "nowhere" not in broker.topics()


def test_offsets_that_do_not_name_what_there_is(broker: InProcessBroker, topic: str) -> None:
    with pytest.raises(
        OptionError, match=f"startingOffsets must name every partition .* does not name {topic}-1, {topic}-2$"
    ):
        batch_splits(settings_for(broker, topic, startingOffsets=f'{{"{topic}": {{"0": 0}}}}'))
    named = f'{{"{topic}": {{"0": 0, "1": 0, "2": 0, "3": 0}}}}'
    with pytest.raises(OptionError, match=f"endingOffsets names {topic}-3, which what is read does not have"):
        batch_splits(settings_for(broker, topic, endingOffsets=named))


def offsets_text(topic: str, *offsets: int) -> str:
    numbers = ", ".join(f'"{number}": {offset}' for number, offset in enumerate(offsets))
    return f'{{"{topic}": {{{numbers}}}}}'


def test_offsets_beyond_the_end(broker: InProcessBroker, topic: str, fill: Fill) -> None:
    fill(broker.bootstrap, topic, 30)
    beyond = {"endingOffsets": offsets_text(topic, 10, 13, 10)}
    with pytest.raises(DataLost, match=f"offsets 10 to 12 of {topic}-1 .* the log ends at offset 10 .*failOnDataLoss"):
        batch_splits(settings_for(broker, topic, **beyond))
    assert read_all(settings_for(broker, topic, **beyond, failOnDataLoss="false")) == numbered(30)


def test_a_beginning_behind_the_end(broker: InProcessBroker, topic: str, fill: Fill) -> None:
    fill(broker.bootstrap, topic, 30)
    given: Mapping[str, str] = {
        "startingOffsets": offsets_text(topic, 0, 7, 0),
        "endingOffsets": offsets_text(topic, 9, 5, 9),
    }
    with pytest.raises(OptionError, match=f"startingOffsets is behind endingOffsets in {topic}-1: 7 and 5"):
        batch_splits(settings_for(broker, topic, **given))


def test_records_removed_before_planning(broker: InProcessBroker, topic: str, fill: Fill, log_lines: list[str]) -> None:
    fill(broker.bootstrap, topic, 30)
    with Admin(bootstrap_servers=broker.bootstrap) as admin:
        admin.delete_records({TopicPartition(topic, 2): 4})
    asked = {"startingOffsets": offsets_text(topic, 0, 0, 1)}
    with pytest.raises(DataLost, match=f"offsets 1 to 3 of {topic}-2 .* begins at offset 4 now"):
        batch_splits(settings_for(broker, topic, **asked))
    left = [row for row in numbered(30) if row[0] != 2 or row[1] >= 4]
    assert read_all(settings_for(broker, topic, **asked, failOnDataLoss="false")) == left
    assert any(f"offsets 1 to 3 of {topic}-2" in line for line in log_lines)
    assert read_all(settings_for(broker, topic)) == left  # earliest is what there is: no loss


def test_records_removed_between_planning_and_reading(
    broker: InProcessBroker, topic: str, fill: Fill, log_lines: list[str]
) -> None:
    fill(broker.bootstrap, topic, 30)
    settings = settings_for(broker, topic)
    splits = batch_splits(settings)
    with Admin(bootstrap_servers=broker.bootstrap) as admin:
        admin.delete_records({TopicPartition(topic, 0): 4, TopicPartition(topic, 1): 10})
    with pytest.raises(DataLost, match=f"offsets 0 to 3 of {topic}-0 .* begins at offset 4 now"):
        read_all(settings, splits[:1])
    with pytest.raises(DataLost, match=f"offsets 0 to 9 of {topic}-1 .* begins at offset 10 now"):
        read_all(settings, splits[1:2])
    forgiving = settings_for(broker, topic, failOnDataLoss="false")
    left = [row for row in numbered(30) if row[0] == 2 or (row[0] == 0 and row[1] >= 4)]
    assert read_all(forgiving, splits) == left
    assert sum("can no longer be read" in line for line in log_lines) == 2


def test_a_topic_deleted_and_made_again_is_another(
    broker: InProcessBroker, topic: str, fill: Fill, log_lines: list[str]
) -> None:
    fill(broker.bootstrap, topic, 30)
    settings = settings_for(broker, topic)
    splits = batch_splits(settings)
    read_all(settings, splits)  # the link knows the topic by now
    broker.delete_topic(topic)
    broker.create_topic(topic, partitions=3)
    fill(broker.bootstrap, topic, 60, first=1000)
    with pytest.raises(DataLost, match=f"offsets 0 to 9 of {topic}-0 .* the topic was deleted, or made again"):
        read_all(settings, splits[:1])
    assert read_all(settings_for(broker, topic, failOnDataLoss="false"), splits[:1]) == []
    assert log_lines


def test_a_leader_that_knows_no_ids_yet_is_asked_until_it_does(
    broker: InProcessBroker, topic: str, fill: Fill, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(broker.bootstrap, topic, 30)
    quick = {"kafka.retry.backoff.ms": 1, "kafka.retry.backoff.max.ms": 1}
    settings = settings_for(broker, topic, **quick, failOnDataLoss="false")
    splits = batch_splits(settings)
    answer, refused = PartitionFetches.answer, itertools.count()

    async def of_a_new_leader(fetches: PartitionFetches, cluster: Any, offset: int) -> PartitionData:
        if next(refused) < 20:
            await fetches.leader(cluster)
            raise UnknownTopicId(topic)
        return await answer(fetches, cluster, offset)

    monkeypatch.setattr(PartitionFetches, "answer", of_a_new_leader)
    assert read_all(settings, splits) == numbered(30)


def test_a_topic_deleted(broker: InProcessBroker, topic: str, fill: Fill) -> None:
    fill(broker.bootstrap, topic, 30)
    settings = settings_for(broker, topic)
    splits = batch_splits(settings)
    broker.delete_topic(topic)
    with pytest.raises(DataLost, match=f"{topic}-0 .* the topic was deleted, or made again"):
        read_all(settings, splits[:1])


def test_a_broker_that_lags_takes_no_topic_from_a_task(
    broker: InProcessBroker, topic: str, fill: Fill, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However often it says so within the time for which nobody is believed."""
    fill(broker.bootstrap, topic, 30)
    settings = settings_for(broker, topic, **{"kafka.retry.backoff.ms": 1, "kafka.retry.backoff.max.ms": 1})
    splits = batch_splits(settings)
    answer, asked = PartitionFetches.answer, itertools.count()

    async def of_a_broker_that_lags(fetches: PartitionFetches, cluster: Any, offset: int) -> PartitionData:
        if next(asked) < 20:
            raise UnknownTopicOrPartition(topic)
        return await answer(fetches, cluster, offset)

    monkeypatch.setattr(PartitionFetches, "answer", of_a_broker_that_lags)
    monkeypatch.setattr(PartitionFetches, "is_gone", lambda fetches, cluster: True)
    monkeypatch.setattr(ranges, "_HEARD_SECONDS", 3600.0, raising=False)
    assert read_all(settings, splits) == numbered(30)


def test_a_topic_deleted_while_its_offsets_are_asked_for(
    broker: InProcessBroker, topic: str, fill: Fill, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Records were removed, and then all of it."""
    fill(broker.bootstrap, topic, 30)
    strict, forgiving = settings_for(broker, topic), settings_for(broker, topic, failOnDataLoss="false")
    splits = batch_splits(strict)[:1]
    with Admin(bootstrap_servers=broker.bootstrap) as admin:
        admin.delete_records({TopicPartition(topic, 0): 5})
    earliest = Offsets.earliest

    async def deleted_before(offsets: Offsets, partitions: Any) -> dict[TopicPartition, int]:
        await asyncio.to_thread(broker.delete_topic, topic)
        return await earliest(offsets, partitions)

    with monkeypatch.context() as patch:
        patch.setattr(Offsets, "earliest", deleted_before)
        assert read_all(forgiving, splits) == []
    with pytest.raises(DataLost, match=f"{topic}-0 .* the topic was deleted, or made again"):
        read_all(strict, splits)


def test_brokers_that_neither_give_records_nor_say_where_they_end(
    broker: InProcessBroker, topic: str, fill: Fill, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(broker.bootstrap, topic, 30)
    settings = settings_for(broker, topic, **{"kafkaConsumer.pollTimeoutMs": 100, "kafka.default.api.timeout.ms": 200})
    splits = batch_splits(settings)[:1]

    async def never(fetches: PartitionFetches, cluster: Any, offset: int) -> PartitionData:
        await asyncio.Event().wait()
        raise AssertionError

    monkeypatch.setattr(PartitionFetches, "answer", never)
    broker.stop()
    try:
        said = f"{topic}-0: nothing could be read at offset 0 for 0.1 s: .*kafkaConsumer.pollTimeoutMs"
        with pytest.raises(ReadFailed, match=said):
            read_all(settings, splits)
    finally:
        broker.start()


def test_what_never_comes_is_given_up(broker: InProcessBroker, topic: str, fill: Fill) -> None:
    fill(broker.bootstrap, topic, 30)
    split = Split(Range(TopicPartition(topic, 0), 5, 12))
    options = {"kafkaConsumer.pollTimeoutMs": 2_000, "kafka.fetch.max.wait.ms": 50}
    with pytest.raises(DataLost, match=f"offsets 10 to 11 of {topic}-0 .* the log ends at offset 10 now"):
        read_all(settings_for(broker, topic, **options), [split])
    found = read_all(settings_for(broker, topic, **options, failOnDataLoss="false"), [split])
    assert [offset for _, offset, _ in found] == [5, 6, 7, 8, 9]


def test_what_comes_too_late_is_not_taken_for_lost(broker: InProcessBroker, topic: str, fill: Fill) -> None:
    fill(broker.bootstrap, topic, 30)
    split = Split(Range(TopicPartition(topic, 0), 5, 12))
    # The broker has offsets 5 to 9, and waits for more with them.
    waits = {"kafka.fetch.min.bytes": 1_000_000, "kafka.fetch.max.wait.ms": 20_000}
    settings = settings_for(broker, topic, **waits, **{"kafkaConsumer.pollTimeoutMs": 500}, failOnDataLoss="false")
    with pytest.raises(ReadFailed, match=f"{topic}-0: nothing could be read at offset 5 for 0.5 s: no record came"):
        read_all(settings, [split])


def test_a_broker_that_is_away_for_a_while(broker: InProcessBroker, topic: str, fill: Fill) -> None:
    fill(broker.bootstrap, topic, 30)
    settings = settings_for(broker, topic)
    splits = batch_splits(settings)
    broker.restart()
    assert read_all(settings, splits) == numbered(30)


def test_a_broker_that_stays_away(broker: InProcessBroker, topic: str, fill: Fill) -> None:
    fill(broker.bootstrap, topic, 30)
    settings = settings_for(broker, topic, **{"kafkaConsumer.pollTimeoutMs": 300})
    splits = batch_splits(settings)
    broker.stop()
    try:
        said = f"{topic}-0: nothing could be read at offset 0 for 0.3 s: .*kafkaConsumer.pollTimeoutMs"
        with pytest.raises(ReadFailed, match=said):
            read_all(settings, splits[:1])
    finally:
        broker.start()
    # With all the time that it takes to find the broker again.
    assert read_all(settings_for(broker, topic), splits) == numbered(30)


def test_a_damaged_batch_is_said_behind_what_is_sound(broker: InProcessBroker, topic: str, fill: Fill) -> None:
    for first in (0, 30):  # a batch each in the partition
        fill(broker.bootstrap, topic, 30, first=first)
    (segment,) = Path(broker.data).rglob(f"{topic}-1/*.log")
    whole = bytearray(segment.read_bytes())
    whole[-2] ^= 1
    with segment.open("r+b") as file:
        file.write(whole)
    settings = settings_for(broker, topic)
    batches = read_split(settings, batch_splits(settings)[1])
    assert next(batches).column("offset").to_pylist() == list(range(10))
    said = f"{topic}-1: the batch at offset 10 or soon behind it is damaged: .*checksum.* startingOffsets"
    with pytest.raises(ReadFailed, match=said):
        next(batches)


def test_a_time_that_spark_cannot_have_is_no_damage(broker: InProcessBroker, topic: str) -> None:
    topic = f"{topic}-far"
    broker.create_topic(topic, 1, {"message.timestamp.after.max.ms": str(2**63 - 1), "retention.ms": "-1"})
    with Producer(bootstrap_servers=broker.bootstrap) as producer:
        producer.send_and_wait(topic, b"7", partition=0, timestamp=2**63 - 1)
    settings = settings_for(broker, topic)
    said = f"^{topic}-0: the time of the record at offset 0, .* leave the column timestamp out to read it$"
    with pytest.raises(ReadFailed, match=said):
        read_all(settings)
    assert read_all(settings_for(broker, topic, columns="partition,offset,value")) == [(0, 0, 7)]


def test_a_task_that_is_left_early_leaves_the_link_usable(broker: InProcessBroker, topic: str, fill: Fill) -> None:
    fill(broker.bootstrap, topic, 3000)
    settings = settings_for(broker, topic, **{"kafka.max.partition.fetch.bytes": 100})
    splits = batch_splits(settings)
    batches = read_split(settings, splits[0])
    next(batches)
    batches.close()  # type: ignore[attr-defined]
    assert read_all(settings, splits) == numbered(3000)
    assert link(settings.client) is link(dict(settings.client))


class WatchedLink(Link):
    """Keeps what was begun with it."""

    def __init__(self, settings: Mapping[str, str]) -> None:
        super().__init__(settings)
        self.begun: list[Future[Any]] = []

    def begin(self, work: Any) -> Future[Any]:
        self.begun.append(super().begin(work))
        return self.begun[-1]


def test_the_next_mebibyte_is_on_its_way_while_one_is_decoded(broker: InProcessBroker, topic: str) -> None:
    with Producer(bootstrap_servers=broker.bootstrap, batch_size=100_000) as producer:
        for _ in range(50):
            producer.send(topic, bytes(90_000), partition=0)
    settings = settings_for(broker, topic)
    (split,) = batch_splits(settings)
    watched = WatchedLink(settings.client)
    try:
        batches = RangeReader(watched, split, ("offset",), LossPolicy(fail=True), 30_000).batches()
        assert next(batches).num_rows
        assert len(watched.begun) == 2
        first, second = (one.result(timeout=30) for one in watched.begun)  # and nobody takes the second yet
        assert second.first == first.next_offset
        assert all((1 << 20) - 91_000 < one.end <= 1 << 20 for one in (first, second))
        assert len(list(batches)) == 4
        assert len(watched.begun) == 5
    finally:
        watched.close()


def test_spark_makes_a_task_of_no_split() -> None:
    settings = source_settings({"kafka.bootstrap.servers": "localhost:1", "subscribe": "orders"}, stream=False)
    assert list(read_split(settings, None)) == []
    assert list(read_split(settings, InputPartition(None))) == []
