"""What a flow says of how far it is behind."""

from __future__ import annotations

from ottla.mirror.flow import PartitionLag, lag_sum
from ottla.model import TopicPartition


def test_the_sum_of_lags_says_of_how_many_partitions_it_is_not() -> None:
    def lags(*each: int | None) -> list[PartitionLag]:
        return [PartitionLag(TopicPartition("t", number), lag, 0, 0, 0, None) for number, lag in enumerate(each)]

    assert lag_sum(lags()) == (0, 0)
    assert lag_sum(lags(3, 0)) == (3, 0)
    assert lag_sum(lags(3, None, None)) == (3, 2)
    assert lag_sum(lags(None)) == (None, 1)
