"""Where a plan puts partitions: even numbers, few moves, racks apart."""

from __future__ import annotations

from collections import Counter
from random import Random
from typing import Any

from ottla.cli.reassign.placing import placed
from ottla.model import TopicPartition


def tp(number: int) -> TopicPartition:
    return TopicPartition("t", number)


def loads(found: dict[TopicPartition, list[int]]) -> Counter[int]:
    return Counter(broker for replicas in found.values() for broker in replicas)


def test_what_is_even_stays() -> None:
    current = {tp(0): [1, 2, 3], tp(1): [2, 3, 1], tp(2): [3, 1, 2]}
    assert placed(current, {1: None, 2: None, 3: None}) == current


def test_a_broker_that_was_added_gets_its_share_and_no_more_is_moved() -> None:
    current = {tp(number): [1, 2] if number % 2 else [2, 1] for number in range(6)}
    found = placed(current, {1: None, 2: None, 3: None})
    assert loads(found) == {1: 4, 2: 4, 3: 4}
    moved = sum(len({*found[one]} - {*current[one]}) for one in current)
    assert moved == 4


def test_a_broker_that_is_left_out_has_none() -> None:
    current = {tp(number): [1, 2, 3] for number in range(4)}
    found = placed(current, {2: None, 3: None, 4: None})
    assert loads(found) == {2: 4, 3: 4, 4: 4}
    assert all(replicas[:2] == [2, 3] for replicas in found.values())


def test_more_copies_and_fewer() -> None:
    current = {tp(0): [1], tp(1): [2], tp(2): [3]}
    found = placed(current, {1: None, 2: None, 3: None}, 3)
    assert [replicas[0] for replicas in found.values()] == [1, 2, 3]
    assert all(sorted(replicas) == [1, 2, 3] for replicas in found.values())
    assert placed(found, {1: None, 2: None, 3: None}, 1) == current


def test_copies_are_on_different_racks() -> None:
    racks = {1: "a", 2: "a", 3: "b", 4: "b"}
    found = placed({tp(number): [1] for number in range(8)}, racks, 2)
    assert all({racks[broker] for broker in replicas} == {"a", "b"} for replicas in found.values())


def test_a_broker_that_was_added_to_few_partitions_gets_some_of_them() -> None:
    """Two each on three brokers are no more than two each on four would be, and the new one has none."""
    found = placed({tp(number): [number % 3 + 1] for number in range(6)}, dict.fromkeys(range(1, 5)))
    assert sorted(loads(found).values()) == [1, 1, 2, 2]
    assert sum(replicas != [number.partition % 3 + 1] for number, replicas in found.items()) == 1


def test_copies_stay_on_different_racks_where_one_rack_has_fewer_brokers() -> None:
    racks = {1: "a", 2: "a", 3: "b"}
    current = {tp(number): [1 + number % 2, 3] if number % 4 < 2 else [3, 1 + number % 2] for number in range(6)}
    assert placed(current, racks) == current


def test_copies_on_one_rack_come_apart_where_another_was_added() -> None:
    racks = {1: "a", 2: "a", 3: "b", 4: "b"}
    found = placed({tp(number): [1, 2] for number in range(4)}, racks)
    assert all({racks[broker] for broker in replicas} == {"a", "b"} for replicas in found.values())
    assert loads(found) == {1: 2, 2: 2, 3: 2, 4: 2}


def test_of_fewer_copies_those_on_different_racks_stay() -> None:
    racks = {1: "a", 2: "a", 3: "b"}
    assert placed({tp(0): [1, 2, 3]}, racks, 2) == {tp(0): [1, 3]}


def test_racks_count_only_where_every_broker_has_one() -> None:
    """As where a topic is made: a broker without is on no rack of its own."""
    current = {tp(number): [1, 2] if number % 2 else [2, 1] for number in range(6)}
    assert loads(placed(current, {1: "a", 2: "a", 3: None})) == {1: 4, 2: 4, 3: 4}


def test_racks_that_any_placement_had_or_can_have_stay_apart() -> None:
    random = Random(11)
    for _ in range(100):
        racks = {broker: random.choice("abc") for broker in range(1, random.randint(2, 8))}
        copies = random.randint(1, len(racks))
        current = {
            tp(number): random.sample(range(1, 9), random.randint(1, 4)) for number in range(random.randint(1, 20))
        }
        found = placed(current, racks, copies)
        assert all(len(replicas) == len({*replicas}) == copies for replicas in found.values())
        apart = min(copies, len({*racks.values()}))
        assert all(len({racks[broker] for broker in replicas}) == apart for replicas in found.values())


def test_a_plan_for_many_partitions_looks_at_each_a_few_times() -> None:
    looked_at = 0

    class Counted(dict[int, str | None]):
        def items(self) -> Any:
            nonlocal looked_at
            looked_at += 1
            return super().items()

        def __iter__(self) -> Any:
            nonlocal looked_at
            looked_at += 1
            return super().__iter__()

    count = 1000
    current = {tp(number): [1 + number % 3] for number in range(count)}
    found = placed(current, Counted({1: "a", 2: "a", 3: "a", 4: "a"}))
    assert max(loads(found).values()) - min(loads(found).values()) <= 1
    assert looked_at < 5 * count


def test_any_placement_becomes_even() -> None:
    random = Random(7)
    for _ in range(200):
        brokers = range(1, random.randint(2, 6))
        copies = random.randint(1, len(brokers))
        current = {
            tp(number): random.sample(range(1, 9), random.randint(1, 4)) for number in range(random.randint(1, 20))
        }
        found = placed(current, dict.fromkeys(brokers), copies)
        assert all(len(replicas) == len({*replicas}) == copies for replicas in found.values())
        assert {*loads(found)} <= {*brokers}
        numbers = [loads(found)[broker] for broker in brokers]
        assert max(numbers) - min(numbers) <= 1
