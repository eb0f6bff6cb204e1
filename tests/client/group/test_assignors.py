"""Who gets what: the known examples, and how assignors are chosen. Interop tests have them beside Java's."""

from __future__ import annotations

from typing import Any

import pytest

from ottla.client.consuming.group.assignors import (
    Assignor,
    CooperativeStickyAssignor,
    RangeAssignor,
    RoundRobinAssignor,
    StickyAssignor,
    Topics,
)
from ottla.client.consuming.group.assignors.assignor import Assignments
from ottla.client.consuming.group.assignors.chosen import chosen_assignors
from ottla.client.consuming.group.wire import Subscription
from ottla.client.errors import SettingsError
from ottla.model import TopicPartition


def members(**topics: list[str]) -> dict[str, Subscription]:
    return {name: Subscription(frozenset(wanted)) for name, wanted in topics.items()}


def numbers(given: Assignments) -> dict[str, list[int]]:
    return {member: [tp[1] for tp in partitions] for member, partitions in given.items()}  # type: ignore[union-attr]


THREE = members(a=["t"], b=["t"], c=["t"])


def test_range_of_ten_partitions_for_three_members() -> None:
    given = RangeAssignor().assign(Topics({"t": 10}), THREE)
    assert numbers(given) == {"a": [0, 1, 2, 3], "b": [4, 5, 6], "c": [7, 8, 9]}


def test_round_robin_of_ten_partitions_for_three_members() -> None:
    given = RoundRobinAssignor().assign(Topics({"t": 10}), THREE)
    assert numbers(given) == {"a": [0, 3, 6, 9], "b": [1, 4, 7], "c": [2, 5, 8]}


def test_a_sticky_group_begins_as_round_robin() -> None:
    given = StickyAssignor().assign(Topics({"t": 10}), THREE)
    assert numbers(given) == {"a": [0, 3, 6, 9], "b": [1, 4, 7], "c": [2, 5, 8]}


def test_one_to_four_members_over_three_partitions() -> None:
    topics = Topics({"topic1": 3})
    everybody = {f"consumer{n}": Subscription(frozenset({"topic1"})) for n in range(1, 5)}
    for count, expected in enumerate(([3], [2, 1], [1, 1, 1], [1, 1, 1, 0]), 1):
        some = dict(list(everybody.items())[:count])
        assert [len(list(one)) for one in RangeAssignor().assign(topics, some).values()] == expected


def test_static_members_stand_before_others_by_their_names() -> None:
    topics = frozenset({"t"})
    some = {
        "a": Subscription(topics),
        "z": Subscription(topics, instance_id="2"),
        "y": Subscription(topics, instance_id="1"),
    }
    assert numbers(RangeAssignor().assign(Topics({"t": 3}), some)) == {"y": [0], "z": [1], "a": [2]}


def test_names_are_in_javas_order() -> None:
    """By UTF-16 units: what lies beyond them in Unicode stands before the last of those."""
    some = members(**{"\uf900": ["t"], "😀": ["t"], "é": ["t"]})
    assert numbers(RangeAssignor().assign(Topics({"t": 3}), some)) == {"é": [0], "😀": [1], "\uf900": [2]}


@pytest.mark.parametrize("kind", [RangeAssignor, RoundRobinAssignor, StickyAssignor, CooperativeStickyAssignor])
def test_nothing_for_nobody_and_of_nothing(kind: type[Assignor]) -> None:
    assert dict(kind().assign(Topics({}), THREE)) == {"a": [], "b": [], "c": []}
    assert dict(kind().assign(Topics({"t": 3}), {})) == {}
    assert dict(kind().assign(Topics({"t": 3}), members(a=[]))) == {"a": []}


def test_near_partitions_first_where_racks_differ() -> None:
    topics = Topics({"t": 4}, {TopicPartition("t", n): frozenset({"east" if n % 2 else "west"}) for n in range(4)})
    some = {
        "a": Subscription(frozenset({"t"}), rack="east"),
        "b": Subscription(frozenset({"t"}), rack="west"),
    }
    assert numbers(RangeAssignor().assign(topics, some)) == {"a": [1, 3], "b": [0, 2]}


# Chosen by the setting


def test_names_classes_and_instances() -> None:
    class Own(RangeAssignor):
        name = "own"

    own = Own()
    found = chosen_assignors(["roundrobin", StickyAssignor, own])
    assert [type(one) for one in found] == [RoundRobinAssignor, StickyAssignor, Own]
    assert found[2] is own
    assert [one.name for one in chosen_assignors(" range , cooperative-sticky")] == ["range", "cooperative-sticky"]
    (java,) = chosen_assignors("org.apache.kafka.clients.consumer.CooperativeStickyAssignor")
    assert isinstance(java, CooperativeStickyAssignor)
    assert chosen_assignors(Own)[0].name == "own"


@pytest.mark.parametrize(
    ("setting", "said"),
    [
        ("fair", "there is no 'fair', only range, roundrobin, sticky, cooperative-sticky"),
        (["range", RangeAssignor], "names range twice"),
        ([], "names no assignor"),
        (7, "7 does not derive from"),
        ([dict], "does not derive from"),
    ],
)
def test_what_is_no_strategy(setting: Any, said: str) -> None:
    with pytest.raises(SettingsError, match=said):
        chosen_assignors(setting)
