"""Splits: everything once, in order, in about the number that was asked for."""

from __future__ import annotations

import pickle
from random import Random

import pytest

from ottla.model import TopicPartition
from ottla.spark import OptionError
from ottla.spark.source.splits import Split, planned

ID = bytes(range(16))


def partitions(*sizes: int) -> tuple[dict[TopicPartition, int], dict[TopicPartition, int]]:
    starts = {TopicPartition("orders", number): 100 * number for number in range(len(sizes))}
    return starts, {tp: starts[tp] + size for tp, size in zip(starts, sizes, strict=True)}


def sizes_of(splits: list[Split]) -> list[int]:
    return [split.until - split.first for split in splits]


def test_a_partition_is_a_split_and_an_empty_one_is_none() -> None:
    splits = planned(*partitions(5, 0, 7), {"orders": ID}, at_least=None, records_max=None)
    assert [(split.tp.partition, split.first, split.until, split.topic_id) for split in splits] == [
        (0, 0, 5, ID),
        (2, 200, 207, ID),
    ]
    assert pickle.loads(pickle.dumps(splits[0])).until == 5


def test_an_end_before_the_start_is_nothing() -> None:
    tp = TopicPartition("orders", 0)
    assert planned({tp: 7}, {tp: 3}, {}, at_least=3, records_max=1) == []


def test_no_split_has_more_records_than_it_may() -> None:
    assert sizes_of(planned(*partitions(10, 3), {}, at_least=None, records_max=4)) == [3, 3, 4, 3]


def test_large_partitions_are_cut_in_proportion_and_small_ones_are_not() -> None:
    # Of five, two stay whole; the other three are shared between 100 and 200.
    assert sizes_of(planned(*partitions(1, 100, 200, 1), {}, at_least=5, records_max=None)) == [1, 100, 100, 100, 1]


def test_so_many_tasks_are_no_plan() -> None:
    tp = TopicPartition("orders", 0)
    with pytest.raises(OptionError, match="maxRecordsPerPartition=1 would make 10000000 tasks"):
        planned({tp: 0}, {tp: 10_000_000}, {}, at_least=None, records_max=1)


@pytest.mark.parametrize("seed", range(50))
def test_splits_hold_everything_once(seed: int) -> None:
    chance = Random(seed)
    starts, ends = partitions(*(chance.choice((0, 1, 2, 10, 99)) for _ in range(chance.randrange(1, 6))))
    splits = planned(
        starts,
        ends,
        {},
        at_least=chance.choice((None, 1, 3, 10, 500)),
        records_max=chance.choice((None, 1, 5, 1000)),
    )
    read = [(split.tp, offset) for split in splits for offset in range(split.first, split.until)]
    assert read == [(tp, offset) for tp in starts for offset in range(starts[tp], ends[tp])]
    assert all(size > 0 for size in sizes_of(splits))
