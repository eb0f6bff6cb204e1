"""How much a micro-batch reads."""

from __future__ import annotations

from ottla.model import TopicPartition
from ottla.spark.source.limits import MinimumWait, between, within_bytes, within_rows

A, B, C = (TopicPartition("orders", number) for number in range(3))


def test_rows_are_taken_in_proportion() -> None:
    starts, ends = {A: 0, B: 100, C: 5}, {A: 900, B: 200, C: 5}
    assert within_rows(starts, ends, 100) == {A: 90, B: 110, C: 5}
    assert within_rows(starts, ends, 1000) == ends


def test_a_small_partition_is_not_left_waiting() -> None:
    assert within_rows({A: 0, B: 0}, {A: 1_000_000, B: 1}, 10) == {A: 9, B: 1}


def test_bytes_are_taken_in_proportion_and_at_least_an_offset_at_a_time() -> None:
    starts, ends = {A: 0, B: 0, C: 3}, {A: 1000, B: 1000, C: 3}
    weights = {A: 10.0, B: 90.0, C: 1.0}
    assert within_bytes(starts, ends, weights, 50_000) == {A: 500, B: 500, C: 3}
    assert within_bytes(starts, ends, weights, 1) == {A: 1, B: 1, C: 3}
    assert within_bytes(starts, ends, weights, 100_000) == ends


def test_between_counts_what_lies_ahead() -> None:
    assert between({A: 1, B: 9}, {A: 4, B: 7, C: 5}) == 3


def test_a_minimum_is_waited_for_until_the_delay_is_over() -> None:
    wait = MinimumWait(10, 1000)
    assert not wait.waits(1, 0)  # the first batch does not wait
    assert wait.waits(9, 999)
    assert not wait.waits(10, 999)
    assert wait.waits(9, 1998)
    assert not wait.waits(9, 1999)


def test_without_a_minimum_nothing_is_waited_for() -> None:
    assert not MinimumWait(None, 1000).waits(0, 0)
