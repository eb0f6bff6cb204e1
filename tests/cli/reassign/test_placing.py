"""Where a plan puts partitions: even numbers, few moves, racks apart."""

from __future__ import annotations

from collections import Counter
from random import Random

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
        assert max(loads(found).values()) <= -(-copies * len(current) // len(brokers))
