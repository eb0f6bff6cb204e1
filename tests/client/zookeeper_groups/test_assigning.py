"""Who gets what: the examples of Kafka's own comments, and that all members compute the same."""

from __future__ import annotations

import random

import pytest

from ottla.client.zookeeper_groups.assigning import STRATEGIES, assign_range, assign_round_robin, readers_of
from ottla.model import TopicPartition


def shares(assignment: dict) -> dict[str, list[int]]:
    found: dict[str, list[int]] = {}
    for tp, thread in sorted(assignment.items()):
        found.setdefault(str(thread), []).append(tp.partition)
    return found


def test_range_gives_the_first_threads_one_more() -> None:
    """Two consumers with two threads each, and five partitions."""
    readers = readers_of({"C2": {"t": 2}, "C1": {"t": 2}})
    assert shares(assign_range(readers, {"t": range(5)})) == {"C1-0": [0, 1], "C1-1": [2], "C2-0": [3], "C2-1": [4]}


def test_ten_partitions_among_three() -> None:
    readers = readers_of({"a": {"t": 1}, "b": {"t": 1}, "c": {"t": 1}})
    assert shares(assign_range(readers, {"t": range(10)})) == {"a-0": [0, 1, 2, 3], "b-0": [4, 5, 6], "c-0": [7, 8, 9]}


def test_more_threads_than_partitions_leave_some_with_nothing() -> None:
    readers = readers_of({str(number): {"t": 1} for number in range(4)})
    assert shares(assign_range(readers, {"t": range(3)})) == {"0-0": [0], "1-0": [1], "2-0": [2]}
    assert assign_range(readers, {}) == assign_round_robin(readers, {}) == {}


def test_threads_are_in_the_order_of_their_names() -> None:
    """The eleventh of a consumer comes before the third, as texts go."""
    readers = readers_of({"c": {"t": 11}})
    assert [thread.number for thread in readers["t"]] == [0, 1, 10, 2, 3, 4, 5, 6, 7, 8, 9]


def test_round_robin_deals_by_the_hash_of_the_partitions_name() -> None:
    """`[t,0]` to `[t,3]` have hashes that rise: Java's."""
    readers = readers_of({"a": {"t": 1}, "b": {"t": 1}})
    assert shares(assign_round_robin(readers, {"t": range(4)})) == {"a-0": [0, 2], "b-0": [1, 3]}


def test_round_robin_passes_over_threads_that_do_not_read_the_topic() -> None:
    readers = readers_of({"a": {"t": 1}, "b": {"u": 1}})
    assignment = assign_round_robin(readers, {"t": range(3), "u": range(1)})
    assert {str(assignment[TopicPartition("t", number)]) for number in range(3)} == {"a-0"}
    assert str(assignment[TopicPartition("u", 0)]) == "b-0"


@pytest.mark.parametrize("strategy", sorted(STRATEGIES))
def test_every_partition_has_one_reader_of_its_topic_and_shares_are_even(strategy: str) -> None:
    chance = random.Random(strategy)
    for _ in range(200):
        topics = [f"t{number}" for number in range(chance.randrange(1, 4))]
        counts = {topic: chance.randrange(1, 9) for topic in topics}
        members = {f"m{number}": dict(counts) for number in range(chance.randrange(1, 5))}
        partitions = {topic: range(chance.randrange(0, 9)) for topic in topics}
        assignment = STRATEGIES[strategy](readers_of(members), partitions)
        # Whatever order the members were listed in.
        assert STRATEGIES[strategy](readers_of(dict(reversed(members.items()))), partitions) == assignment
        assert set(assignment) == {TopicPartition(topic, number) for topic in topics for number in partitions[topic]}
        assert all(thread.number < counts[tp.topic] for tp, thread in assignment.items())
        if strategy == "range":
            for topic in topics:
                held = [
                    len([tp for tp, one in assignment.items() if tp.topic == topic and one == thread])
                    for thread in readers_of(members)[topic]
                ]
                assert max(held) - min(held) <= 1
