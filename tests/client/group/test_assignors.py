"""Range and round robin: the known examples, and the same results as Java's for whatever members and topics."""

from __future__ import annotations

import json
import random
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tools.kafka_jars import classpath

from ottla.client.errors import SettingsError
from ottla.client.group.assignors import (
    Assignor,
    CooperativeStickyAssignor,
    RangeAssignor,
    RoundRobinAssignor,
    StickyAssignor,
    Topics,
)
from ottla.client.group.assignors.assignor import Assignments
from ottla.client.group.assignors.chosen import chosen_assignors
from ottla.client.group.wire import Subscription
from ottla.model import TopicPartition

SOURCE = Path(__file__).parent / "java" / "Assign.java"


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


# Against Java's


class Java:
    """Java's assignors in a virtual machine: a case a line, its assignment a line."""

    def __init__(self, folder: Path) -> None:
        self._machine = subprocess.Popen(
            ["java", "-XX:TieredStopAtLevel=1", "-Xmx256m", "-cp", classpath(folder), str(SOURCE)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )

    def assign(self, assignor: str, topics: Topics, some: dict[str, Subscription]) -> dict[str, list[TopicPartition]]:
        case = {
            "assignor": assignor,
            "topics": {
                name: [sorted(topics.racks.get(TopicPartition(name, n), ())) for n in range(count)]
                for name, count in topics.counts.items()
            },
            "members": {
                name: {"topics": sorted(one.topics), "rack": one.rack, "instance": one.instance_id}
                for name, one in some.items()
            },
        }
        assert self._machine.stdin is not None
        assert self._machine.stdout is not None
        self._machine.stdin.write(json.dumps(case).encode() + b"\n")
        self._machine.stdin.flush()
        answer = json.loads(self._machine.stdout.readline())
        return {name: sorted(TopicPartition(*tp) for tp in given) for name, given in answer.items()}

    def end(self) -> None:
        self._machine.kill()
        self._machine.communicate()


@pytest.fixture(scope="module")
def java(kafka_jars: Path) -> Iterator[Java]:
    machine = Java(kafka_jars)
    try:
        yield machine
    finally:
        machine.end()


def random_case(chance: random.Random) -> tuple[Topics, dict[str, Subscription]]:
    """Topics of few partitions and members of mixed kinds: names in no order, some static, some in racks."""
    names = [f"t{n}" for n in range(chance.randint(1, 5))]
    counts = {name: chance.randint(1, 7) for name in names if chance.random() < 0.9}
    all_racks = ["r1", "r2", "r3"]
    with_racks = chance.random() < 0.6
    racks = {}
    if with_racks:
        replicas = chance.choice((1, 2, 3))
        racks = {
            TopicPartition(name, n): frozenset(chance.sample(all_racks, replicas))
            for name, count in counts.items()
            for n in range(count)
        }
    same = chance.random() < 0.5
    some: dict[str, Subscription] = {}
    for n in range(chance.randint(1, 7)):
        wanted = names if same else [name for name in names if chance.random() < 0.6]
        some[f"{chance.choice('aZ~é😀豈')}{chance.randint(0, 999)}-{n}"] = Subscription(
            frozenset(wanted),
            rack=chance.choice([*all_racks, "r4", None]) if with_racks else None,
            instance_id=f"i{chance.randint(0, 999)}-{n}" if chance.random() < 0.3 else None,
        )
    return Topics(counts, racks), some


@pytest.mark.java
@pytest.mark.parametrize("kind", [RangeAssignor, RoundRobinAssignor])
def test_java_gives_the_same(java: Java, kind: type[Assignor]) -> None:
    for seed in range(400):
        topics, some = random_case(random.Random(seed))
        ours = {name: sorted(given) for name, given in kind().assign(topics, some).items()}  # type: ignore[arg-type]
        assert ours == java.assign(kind.name, topics, some), f"seed {seed}: {topics} {some}"


@pytest.mark.java
@pytest.mark.parametrize("kind", [StickyAssignor, CooperativeStickyAssignor])
def test_sticky_groups_are_as_even_as_javas(java: Java, kind: type[Assignor]) -> None:
    """Or more even: the sums of squares tell."""
    for seed in range(200):
        topics, some = random_case(random.Random(seed))
        # Java's takes members that want nothing for members that want what the others do.
        without_racks = {name: one._replace(rack=None) for name, one in some.items() if one.topics}
        if not without_racks:
            continue
        ours = [len(list(given)) for given in kind().assign(topics, without_racks).values()]  # type: ignore[arg-type]
        theirs = [len(given) for given in java.assign(kind.name, topics, without_racks).values()]
        assert sum(ours) == sum(theirs), f"seed {seed}"
        assert sum(n * n for n in ours) <= sum(n * n for n in theirs), f"seed {seed}: {ours} {theirs}"
