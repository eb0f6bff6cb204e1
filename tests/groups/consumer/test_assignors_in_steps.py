"""The server's assignors go in steps, and what they give is what it was when they went in one piece."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Mapping

import pytest
from tests.groups.test_long_work import counted

from ottla.groups.consumer.assignors import ASSIGNORS, Candidate, Demand, Targets
from ottla.groups.consumer.member import Partitions
from ottla.model import TopicId
from ottla.steps import PIECE, at_once

DEMANDS = 300
#: Each of them is asked for again with the answer to the one before, less some members and with new ones.
TURNS = 4
#: Of all answers, by the functions as they were before they went in steps.
DIGESTS = {
    "uniform": "bf92252d13f63351b4b9f864d84dee5c460b6b6831037e12a2dec15bb54c2688",
    "range": "03b92fe35e0ee88b27cb0523dcd10608eae5eaca1944305096d169b66c923131",
}


def topic_ids(count: int) -> list[TopicId]:
    return [TopicId(bytes(14) + number.to_bytes(2, "big")) for number in range(1, count + 1)]


class Group:
    """Members come, go and change what they want; topics grow and shrink."""

    def __init__(self, dice: random.Random) -> None:
        self.dice = dice
        self.topics = topic_ids(dice.randint(1, 30))
        self.counts = {topic: dice.choice([0, 1, 2, 3, 5, 17]) for topic in self.topics}
        #: What all want, where they want the same.
        self.alike: frozenset[TopicId] | None = None
        if dice.random() < 0.4:
            self.alike = frozenset(dice.sample(self.topics, dice.randint(1, len(self.topics))))
        self.members: dict[str, Candidate] = {}

    def demand(self, before: Mapping[str, Partitions]) -> Demand:
        dice = self.dice
        for name in [name for name in self.members if dice.random() < 0.2]:
            del self.members[name]
        for number in dice.sample(range(1000), dice.randint(0, 12)):
            wants = self.alike
            if wants is None:
                wants = frozenset(dice.sample(self.topics, dice.randint(0, len(self.topics))))
            instance = f"i{number * 7 % 1000}" if dice.random() < 0.3 else None
            self.members[f"m{number}"] = Candidate(f"m{number}", instance, wants)
        for topic in dice.sample(self.topics, len(self.topics) // 4):
            self.counts[topic] = dice.choice([0, 1, 4, 9])
        candidates = [one._replace(before=before.get(one.id, {})) for one in self.members.values()]
        return Demand(candidates, dict(self.counts))


def clashing(dice: random.Random, targets: Targets) -> dict[str, Partitions]:
    """As if two coordinators had stored it: some partitions stand twice."""
    clashes: dict[str, Partitions] = {name: dict(target) for name, target in targets.items()}
    for name in dice.sample(sorted(clashes), len(clashes) // 2):
        clashes[name] = {**clashes[name], **clashes[dice.choice(sorted(clashes))]}
    return clashes


def in_words(targets: Targets) -> str:
    return repr(
        sorted(
            (name, sorted((topic.hex(), sorted(numbers)) for topic, numbers in target.items()))
            for name, target in targets.items()
        )
    )


@pytest.mark.parametrize("name", sorted(ASSIGNORS))
def test_what_they_give_is_what_it_was(name: str) -> None:
    digest = hashlib.sha256()
    for seed in range(DEMANDS):
        dice = random.Random(seed)
        group = Group(dice)
        before: Mapping[str, Partitions] = {}
        for _ in range(TURNS):
            targets = at_once(ASSIGNORS[name](group.demand(before)))
            digest.update(in_words(targets).encode())
            before = clashing(dice, targets) if dice.random() < 0.1 else targets
    assert digest.hexdigest() == DIGESTS[name]


@pytest.mark.parametrize("name", sorted(ASSIGNORS))
@pytest.mark.parametrize("alike", [True, False], ids=["the same topics", "different topics"])
def test_as_many_steps_as_there_is_work(name: str, alike: bool) -> None:
    topics = topic_ids(200)
    wants = [frozenset(topics), frozenset(topics if alike else topics[:100])]
    candidates = [Candidate(f"m{number:04}", None, wants[number % 2]) for number in range(500)]
    steps, targets = counted(ASSIGNORS[name](Demand(candidates, dict.fromkeys(topics, 50))))
    assert sum(len(numbers) for target in targets.values() for numbers in target.values()) == 200 * 50
    assert steps >= 200 * 50 // PIECE


@pytest.mark.parametrize("more", [0, 1, 7])
def test_members_that_want_nearly_the_same_take_as_many_steps_as_there_is_work(more: int) -> None:
    """The one has all that it wants, and hands half of it to the one that comes."""
    topics = topic_ids(4_000)
    counts = dict.fromkeys(topics, 1)
    one, two = frozenset(topics), frozenset(topics[: -1 - more])
    first = at_once(ASSIGNORS["uniform"](Demand([Candidate("m1", None, one)], counts)))
    candidates = [Candidate("m1", None, one, first["m1"]), Candidate("m2", None, two)]
    steps, targets = counted(ASSIGNORS["uniform"](Demand(candidates, counts)))
    assert [sum(map(len, targets[name].values())) for name in ("m1", "m2")] == [2_000, 2_000]
    # A step for each hand-over, and some for each time that all are gone through.
    assert steps < 4 * len(topics)
