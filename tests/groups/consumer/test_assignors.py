"""The server's assignors: alone, and against Apache Kafka's own (java/Assignors.java)."""

from __future__ import annotations

import json
import random
import subprocess
from collections.abc import Iterable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tools.java import java_command

from ottla.groups.consumer.assignors import ASSIGNORS, Candidate, Demand, Targets
from ottla.groups.consumer.member import Partitions
from ottla.model import TopicId, topic_id_text
from ottla.steps import at_once

PROGRAM = Path(__file__).parent / "java" / "Assignors.java"
QUESTIONS = 400
TOPICS = [TopicId(bytes(15) + bytes([number])) for number in range(1, 9)]
T1, T2, T3 = TOPICS[:3]


def demand(counts: dict[TopicId, int], members: dict[str, Iterable[TopicId]], before: Targets | None = None) -> Demand:
    candidates = [
        Candidate(name, None, frozenset(topics), (before or {}).get(name, {})) for name, topics in members.items()
    ]
    return Demand(candidates, counts)


def assigned(name: str, asked: Demand) -> Targets:
    return at_once(ASSIGNORS[name](asked))


def sizes(targets: Targets, members: Iterable[str]) -> dict[str, int]:
    return {name: sum(map(len, targets.get(name, {}).values())) for name in members}


def moved(before: dict[str, Partitions] | Targets, after: Targets) -> int:
    """Partitions that somebody had and somebody else gets."""
    owner = {(t, p): name for name, topics in before.items() for t, numbers in topics.items() for p in numbers}
    return sum(
        owner.get((topic, number), name) != name
        for name, topics in after.items()
        for topic, numbers in topics.items()
        for number in numbers
    )


def check(asked: Demand, targets: Targets) -> None:
    """Every partition has one owner, who wants it."""
    seen: set[tuple[TopicId, int]] = set()
    wanted = {topic for candidate in asked.candidates for topic in candidate.topics}
    wants = {candidate.id: candidate.topics for candidate in asked.candidates}
    for name, topics in targets.items():
        for topic, numbers in topics.items():
            assert topic in wants[name]
            assert numbers
            assert not {(topic, number) for number in numbers} & seen
            seen |= {(topic, number) for number in numbers}
    assert seen == {(topic, number) for topic in wanted for number in range(asked.counts[topic])}


# Range.


def test_range_gives_runs_and_the_first_ones_more() -> None:
    asked = demand({T1: 7, T2: 3}, {"c": [T1, T2], "a": [T1, T2], "b": [T1, T2]})
    assert assigned("range", asked) == {
        "a": {T1: frozenset({0, 1, 2}), T2: frozenset({0})},
        "b": {T1: frozenset({3, 4}), T2: frozenset({1})},
        "c": {T1: frozenset({5, 6}), T2: frozenset({2})},
    }


def test_range_takes_static_members_first() -> None:
    asked = Demand([Candidate("a", None, frozenset({T1})), Candidate("z", "i", frozenset({T1}))], {T1: 3})
    assert assigned("range", asked) == {"z": {T1: frozenset({0, 1})}, "a": {T1: frozenset({2})}}


def test_range_with_more_members_than_partitions() -> None:
    asked = demand({T1: 1}, {"a": [T1], "b": [T1]})
    assert assigned("range", asked) == {"a": {T1: frozenset({0})}}


# Uniform.


def test_uniform_gives_a_new_member_its_share_and_moves_nothing_else() -> None:
    first = assigned("uniform", demand({T1: 6}, {"a": [T1], "b": [T1]}))
    asked = demand({T1: 6}, {"a": [T1], "b": [T1], "c": [T1]}, first)
    then = assigned("uniform", asked)
    assert sorted(sizes(then, "abc").values()) == [2, 2, 2]
    assert moved(first, then) == 2


def test_uniform_shares_what_a_member_leaves_behind() -> None:
    first = assigned("uniform", demand({T1: 6}, {"a": [T1], "b": [T1], "c": [T1]}))
    then = assigned("uniform", demand({T1: 6}, {"a": [T1], "c": [T1]}, {"a": first["a"], "c": first["c"]}))
    assert sizes(then, "ac") == {"a": 3, "c": 3}
    assert first["a"][T1] <= then["a"][T1]
    assert first["c"][T1] <= then["c"][T1]


def test_uniform_leaves_the_odd_partition_where_it_is() -> None:
    before: Targets = {"a": {T1: frozenset({0})}, "b": {T1: frozenset({1, 2})}}
    assert assigned("uniform", demand({T1: 3}, {"a": [T1], "b": [T1]}, before)) == before


def test_uniform_hands_on_in_chains() -> None:
    """b can only take of T2 from a, who then has room for nothing else; c gives a one of T1."""
    before: Targets = {"a": {T1: frozenset({0}), T2: frozenset({0, 1})}, "b": {}, "c": {T1: frozenset({1, 2, 3})}}
    asked = demand({T1: 4, T2: 2}, {"a": [T1, T2], "b": [T2], "c": [T1]}, before)
    then = assigned("uniform", asked)
    check(asked, then)
    assert sizes(then, "abc") == {"a": 2, "b": 2, "c": 2} or sorted(sizes(then, "abc").values()) == [2, 2, 2]


def test_uniform_drops_what_is_not_there_any_more() -> None:
    before: Targets = {"a": {T1: frozenset({0, 5}), T3: frozenset({0})}}
    assert assigned("uniform", demand({T1: 2}, {"a": [T1]}, before)) == {"a": {T1: frozenset({0, 1})}}


@pytest.mark.parametrize("name", sorted(ASSIGNORS))
def test_no_topics_and_no_members(name: str) -> None:
    assert assigned(name, demand({}, {})) == {}
    assert assigned(name, demand({}, {"a": []})) == {}
    assert assigned(name, demand({T1: 0}, {"a": [T1]})) == {}


def random_demand(dice: random.Random) -> Demand:
    """A group, maybe with a past: what members had comes from another group of the same names."""
    topics = TOPICS[: dice.randint(1, 6)]
    counts = {topic: dice.randint(1, 12) for topic in topics}
    members = [f"member-{dice.randrange(1000)}" for _ in range(dice.randint(1, 8))]
    members = list(dict.fromkeys(members))
    same = dice.random() < 0.5
    all_topics = frozenset(dice.sample(topics, dice.randint(1, len(topics))))
    wants = {
        name: all_topics if same else frozenset(dice.sample(topics, dice.randint(1, len(topics)))) for name in members
    }
    before: dict[str, dict[TopicId, set[int]]] = {name: {} for name in members}
    if dice.random() < 0.7:
        for topic in topics:
            takers = [name for name in members if topic in wants[name] or dice.random() < 0.1]
            for number in range(counts[topic]):
                if takers and dice.random() < 0.9:
                    before[dice.choice(takers)].setdefault(topic, set()).add(number)
    frozen = {name: {t: frozenset(numbers) for t, numbers in had.items()} for name, had in before.items()}
    instances = {name: f"instance-{dice.randrange(100)}" if dice.random() < 0.3 else None for name in members}
    used: set[str | None] = set()
    candidates = []
    for name in members:
        instance = None if instances[name] in used else instances[name]
        used.add(instance)
        candidates.append(Candidate(name, instance, wants[name], frozen[name]))
    return Demand(candidates, counts)


@given(st.randoms(use_true_random=False))
def test_uniform_cannot_be_more_even(dice: random.Random) -> None:
    asked = random_demand(dice)
    targets = assigned("uniform", asked)
    check(asked, targets)
    assert not improvable(asked, targets)


def improvable(asked: Demand, targets: Targets) -> bool:
    """Looks for a chain of hand-overs from each member by plain search."""
    has = sizes(targets, (candidate.id for candidate in asked.candidates))
    wants = {candidate.id: candidate.topics for candidate in asked.candidates}
    for first in has:
        reached, queue = {first}, [first]
        while queue:
            giver = queue.pop()
            for taker, topics in wants.items():
                if taker not in reached and topics & targets.get(giver, {}).keys():
                    if has[taker] <= has[first] - 2:
                        return True
                    reached.add(taker)
                    queue.append(taker)
    return False


@given(st.randoms(use_true_random=False))
def test_uniform_moves_nothing_when_asked_again(dice: random.Random) -> None:
    asked = random_demand(dice)
    targets = assigned("uniform", asked)
    again = [candidate._replace(before=targets.get(candidate.id, {})) for candidate in asked.candidates]
    assert assigned("uniform", asked._replace(candidates=again)) == targets


# Against Kafka's.


def kafka_says(jars: Path, name: str, questions: list[Demand]) -> list[Targets]:
    ids = {topic_id_text(topic): topic for topic in TOPICS}
    lines = []
    for asked in questions:
        members = [
            {
                "id": one.id,
                "instance": one.instance_id,
                "topics": [topic_id_text(topic) for topic in one.topics],
                "before": {topic_id_text(topic): sorted(numbers) for topic, numbers in one.before.items()},
            }
            for one in asked.candidates
        ]
        counts = {topic_id_text(topic): count for topic, count in asked.counts.items()}
        lines.append(json.dumps({"assignor": name, "counts": counts, "members": members}))
    path = ":".join(str(jar) for jar in sorted(jars.glob("*.jar")))
    done = subprocess.run(
        java_command(path, str(PROGRAM)),
        input="\n".join(lines).encode(),
        capture_output=True,
        check=True,
        timeout=120,
    )
    return [
        {
            name: {ids[topic]: frozenset(numbers) for topic, numbers in topics.items() if numbers}
            for name, topics in json.loads(line).items()
            if topics
        }
        for line in done.stdout.decode().splitlines()
    ]


def questions(seed: int) -> list[Demand]:
    dice = random.Random(seed)
    return [random_demand(dice) for _ in range(QUESTIONS)]


@pytest.mark.java
def test_range_is_kafkas(kafka_jars: Path) -> None:
    asked = questions(1)
    for demanded, theirs in zip(asked, kafka_says(kafka_jars, "range", asked), strict=True):
        assert assigned("range", demanded) == theirs, demanded


@pytest.mark.java
def test_uniform_is_as_even_as_kafkas_and_moves_no_more(kafka_jars: Path) -> None:
    asked = questions(2)
    more_even = fewer = kafka_moved = we_moved = 0
    for demanded, theirs in zip(asked, kafka_says(kafka_jars, "uniform", asked), strict=True):
        ours = assigned("uniform", demanded)
        check(demanded, ours)
        check(demanded, theirs)
        names = [candidate.id for candidate in demanded.candidates]
        before = {candidate.id: candidate.before for candidate in demanded.candidates}
        mine, other = sorted(sizes(ours, names).values()), sorted(sizes(theirs, names).values())
        if mine == other:
            # Between different subscriptions, who gives what up to whom has more answers than either looks at.
            alike = len({candidate.topics for candidate in demanded.candidates}) == 1
            assert moved(before, ours) <= moved(before, theirs) + (0 if alike else 2), demanded
            we_moved += moved(before, ours)
            kafka_moved += moved(before, theirs)
            fewer += moved(before, ours) < moved(before, theirs)
        else:
            # Less spread: what is more even has the smaller sum of squares.
            assert sum(size * size for size in mine) < sum(size * size for size in other), demanded
            more_even += 1
    print(f"{more_even} of {QUESTIONS} more even than Kafka's; of the others {fewer} with fewer moves: {we_moved}")
    print(f"Kafka's moves: {kafka_moved}")
    assert we_moved <= kafka_moved
