"""Our client's assignors beside those of Java and of librdkafka: the same shares, or as even and as steady."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient

from ottla.client.consuming.group.assignors import (
    Assignor,
    CooperativeStickyAssignor,
    RangeAssignor,
    RoundRobinAssignor,
    StickyAssignor,
    Topics,
)
from ottla.client.consuming.group.assignors.user_data import decode_previous
from ottla.client.consuming.group.wire import Assignment, Subscription
from ottla.model import TopicPartition
from tests.interop.conftest import Join, create_topic
from tests.interop.group_members import ConfluentMember, Member, Partition, wait_for
from tests.interop.java_assignors import JavaAssignors, PaperGroup, PaperMember

pytestmark = [pytest.mark.java, pytest.mark.xdist_group("kafka-groups")]

OURS: dict[str, type[Assignor]] = {
    each.name: each for each in (RangeAssignor, RoundRobinAssignor, StickyAssignor, CooperativeStickyAssignor)
}
Shares = dict[str, set[Partition]]


@pytest.fixture(scope="module")
def java_assignors(kafka_jars: Path) -> Iterator[JavaAssignors]:
    with JavaAssignors(kafka_jars) as assignors:
        yield assignors


def our_subscription(assignor: str, member: PaperMember) -> Subscription:
    """As the member itself would send it, in its second life of which ``owned`` tells."""
    mine = OURS[assignor]()
    owned = tuple(TopicPartition(*partition) for partition in member.owned)
    if member.generation >= 0:
        mine.assigned(Assignment(owned), member.generation)
    return Subscription(
        topics=frozenset(member.topics),
        user_data=mine.user_data(frozenset(member.topics)),
        owned=owned if mine.cooperative else (),
        generation=member.generation,
        rack=member.rack,
        instance_id=member.instance,
    )


def ours(group: PaperGroup) -> dict[str, list[Partition]]:
    racks = {
        TopicPartition(topic, number): frozenset(filter(None, found))
        for topic, partitions in group.topics.items()
        for number, found in enumerate(partitions)
    }
    topics = Topics({topic: len(partitions) for topic, partitions in group.topics.items()}, racks)
    members = {name: our_subscription(group.assignor, member) for name, member in group.members.items()}
    assigned = OURS[group.assignor]().assign(topics, members)
    found: dict[str, list[Partition]] = {name: [] for name in group.members}
    for name, partitions in assigned.items():
        assert not isinstance(partitions, Assignment)
        found[name] = [(partition.topic, partition.partition) for partition in partitions]
    return found


def random_group(chance: random.Random, assignor: str, *, racks: bool = False) -> PaperGroup:
    places = ["r1", "r2", "r3"] if racks else [""]
    topics = {
        f"t{number}": [chance.sample(places, chance.randint(1, len(places))) for _ in range(chance.randint(0, 9))]
        for number in range(chance.randint(1, 5))
    }
    known = [*topics, "no-such-topic"]
    alike = chance.sample(known, chance.randint(1, len(known))) if chance.random() < 0.5 else None
    members = {
        f"client-{chance.randrange(10**6)}": PaperMember(
            topics=alike or chance.sample(known, chance.randint(1, len(known))),
            rack=chance.choice([*places, None]) if racks else None,
            instance=f"i{chance.randrange(10**6)}" if chance.random() < 0.3 else None,
        )
        for _ in range(chance.randint(1, 7))
    }
    return PaperGroup(assignor=assignor, topics=topics, members=members)


@pytest.mark.parametrize("assignor", ["range", "roundrobin"])
def test_range_and_round_robin_give_what_javas_give(java_assignors: JavaAssignors, assignor: str) -> None:
    for seed in range(300):
        group = random_group(random.Random(f"{assignor} {seed}"), assignor)
        assert_same(group, java_assignors)


def test_range_gives_what_javas_gives_where_racks_differ(java_assignors: JavaAssignors) -> None:
    for seed in range(300):
        assert_same(random_group(random.Random(f"racks {seed}"), "range", racks=True), java_assignors)


def assert_same(group: PaperGroup, java_assignors: JavaAssignors) -> None:
    """In whatever order: Java's topics come as its hash tables have them."""
    of_java = {name: sorted(found) for name, found in java_assignors.ask(group).assigned.items()}
    assert {name: sorted(found) for name, found in ours(group).items()} == of_java, group


@pytest.mark.parametrize("assignor", ["sticky", "cooperative-sticky"])
def test_sticky_ones_are_as_even_as_javas_and_move_no_more(java_assignors: JavaAssignors, assignor: str) -> None:
    """Groups whose members, subscriptions and partitions change; each time both start from the same shares."""
    moved_by_us = moved_by_java = 0
    for seed in range(60):
        chance = random.Random(f"{assignor} {seed}")
        group = random_group(chance, assignor)
        for generation in range(1, 6):
            of_java = settle(java_assignors, group, generation, java=True)
            of_us = settle(java_assignors, group, generation, java=False)
            assert_fits(group, of_us)
            assert unevenness(of_us) <= unevenness(of_java), (group, of_us, of_java)
            if unevenness(of_us) == unevenness(of_java):
                moved_by_us += moved(group, of_us)
                moved_by_java += moved(group, of_java)
            group = changed(chance, group, of_java, generation)
    assert 0 < moved_by_us <= moved_by_java


def settle(java_assignors: JavaAssignors, group: PaperGroup, generation: int, *, java: bool) -> Shares:
    """The group's shares when its rebalances have ended: with the cooperative one there may be two."""
    shares: Shares = {}
    for round_number in range(3):
        answer = java_assignors.ask(group)
        for name, member in group.members.items():
            told, of_java = our_subscription(group.assignor, member).user_data, answer.user_data[name]
            assert read_user_data(group.assignor, told) == read_user_data(group.assignor, of_java), member
        found = answer.assigned if java else ours(group)
        shares = {name: set(partitions) for name, partitions in found.items()}
        if all(set(member.owned) == shares[name] for name, member in group.members.items()):
            break
        if group.assignor == "sticky" or not lacking(group, shares):
            break
        group = continued(group, shares, generation + round_number)
    assert not lacking(group, shares), "partitions that nobody has after three rounds"
    return shares


def read_user_data(assignor: str, data: bytes | None) -> object:
    """In whatever order topics stand there."""
    if assignor == "sticky":
        partitions, generation = decode_previous(data)
        return sorted(partitions), generation, data is None
    return data


def lacking(group: PaperGroup, shares: Shares) -> set[Partition]:
    wanted = {topic for member in group.members.values() for topic in member.topics}
    there = {(topic, n) for topic in wanted & group.topics.keys() for n in range(len(group.topics[topic]))}
    return there - {partition for held in shares.values() for partition in held}


def continued(group: PaperGroup, shares: Shares, generation: int) -> PaperGroup:
    members = {
        name: PaperMember(
            topics=member.topics, instance=member.instance, owned=sorted(shares[name]), generation=generation
        )
        for name, member in group.members.items()
    }
    return PaperGroup(assignor=group.assignor, topics=group.topics, members=members)


def changed(chance: random.Random, group: PaperGroup, shares: Shares, generation: int) -> PaperGroup:
    """Some leave, some come, one subscribes to something else, a topic grows."""
    after = continued(group, shares, generation)
    members, topics = dict(after.members), dict(after.topics)
    for name in chance.sample(sorted(members), chance.randint(0, len(members) - 1) if len(members) > 1 else 0)[:2]:
        del members[name]
    for _ in range(chance.randint(0, 2)):
        alike = chance.choice(list(members.values())).topics
        members[f"client-{chance.randrange(10**6)}"] = PaperMember(topics=alike)
    if chance.random() < 0.3:
        chosen = members[chance.choice(sorted(members))]
        chosen.topics = chance.sample(sorted(topics), chance.randint(1, len(topics)))
        chosen.owned = [partition for partition in chosen.owned if partition[0] in chosen.topics]
    if chance.random() < 0.3:
        grown = chance.choice(sorted(topics))
        topics[grown] = [*topics[grown], [""]]
    return PaperGroup(assignor=group.assignor, topics=topics, members=members)


def assert_fits(group: PaperGroup, shares: Shares) -> None:
    given = [partition for held in shares.values() for partition in held]
    assert len(given) == len(set(given)), "given twice"
    for name, held in shares.items():
        assert {topic for topic, _ in held} <= set(group.members[name].topics)


def unevenness(shares: Shares) -> int:
    """Smaller is more even, whatever the sum; the least possible where all want the same."""
    return sum(len(held) ** 2 for held in shares.values())


def moved(group: PaperGroup, shares: Shares) -> int:
    """Partitions that had an owner in the group and have another now."""
    owner = {partition: name for name, member in group.members.items() for partition in member.owned}
    return sum(owner.get(partition, name) != name for name, held in shares.items() for partition in held)


@pytest.mark.parametrize("assignor", ["range", "roundrobin"])
@pytest.mark.parametrize("seed", [1, 2])
def test_range_and_round_robin_give_what_librdkafkas_give(
    join: Join, group_admin: AdminClient, new_name: str, assignor: str, seed: int
) -> None:
    """In a live group, since librdkafka's assignors cannot be asked by themselves."""
    chance = random.Random(seed)
    counts = {f"{new_name}-{number}": chance.randint(1, 5) for number in range(3)}
    for topic, count in counts.items():
        create_topic(group_admin, topic, partitions=count)
    wanted: dict[Member, list[str]] = {}
    for number in range(4):
        topics = chance.sample(sorted(counts), chance.randint(1, 3))
        settings = {"partition_assignment_strategy": assignor}
        wanted[join("confluent", f"member-{number}", new_name, *topics, **settings)] = topics

    def agreed() -> bool:
        ids = {member: member.member_id for member in wanted if isinstance(member, ConfluentMember)}
        if not all(ids.values()):
            return False
        return all(set(member.assigned) == expected(assignor, counts, wanted, ids)[ids[member]] for member in ids)

    wait_for(agreed, join.members)


def expected(
    assignor: str, counts: Mapping[str, int], wanted: Mapping[Member, list[str]], ids: Mapping[ConfluentMember, str]
) -> Shares:
    members = {ids[member]: Subscription(frozenset(wanted[member])) for member in ids}
    assigned = OURS[assignor]().assign(Topics(counts), members)
    shares: Shares = {}
    for name, partitions in assigned.items():
        assert not isinstance(partitions, Assignment)
        shares[name] = {(partition.topic, partition.partition) for partition in partitions}
    return shares
