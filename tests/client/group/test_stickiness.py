"""Balance first, then stay: for random groups whose members come, go and change their minds."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.client.consuming.group.assignors import CooperativeStickyAssignor, StickyAssignor, Topics
from ottla.client.consuming.group.assignors.claims import Claim, owners
from ottla.client.consuming.group.assignors.stickiness import assign_sticky
from ottla.client.consuming.group.wire import Assignment, Subscription
from ottla.model import TopicPartition

TOPICS = ("t0", "t1", "t2", "t3")
Assigned = dict[str, list[TopicPartition]]

counts_of_topics = st.dictionaries(st.sampled_from(TOPICS), st.integers(0, 9), min_size=1)
member_names = st.lists(st.sampled_from("abcdefghij"), unique=True, min_size=1)
wishes = st.dictionaries(st.sampled_from("abcdefghij"), st.frozensets(st.sampled_from(TOPICS)), min_size=1)


def owned_by(assigned: Mapping[str, list[TopicPartition]]) -> dict[TopicPartition, str]:
    return {tp: member for member, partitions in assigned.items() for tp in partitions}


def check_complete(counts: Mapping[str, int], wants: Mapping[str, frozenset[str]], assigned: Assigned) -> None:
    """Everything that somebody wants has exactly one owner, who wants it."""
    wanted = frozenset[str]().union(*wants.values())
    everything = sorted(TopicPartition(topic, n) for topic in wanted for n in range(counts.get(topic, 0)))
    assert sorted(tp for partitions in assigned.values() for tp in partitions) == everything
    assert set(assigned) == set(wants)
    assert all(tp.topic in wants[member] for member, partitions in assigned.items() for tp in partitions)


def moved(before: Assigned, after: Assigned) -> int:
    """Partitions that somebody had who is still there, and who has them no more."""
    now = owned_by(after)
    return sum(member in after and now.get(tp) != member for tp, member in owned_by(before).items())


@given(counts_of_topics, st.lists(member_names, min_size=1, max_size=6))
def test_equal_wishes(counts: dict[str, int], rounds: list[list[str]]) -> None:
    """No two members differ by more than one, and no more partitions move than that demands."""
    before: Assigned = {}
    for names in rounds:
        wants = {name: frozenset(TOPICS) for name in names}
        after = assign_sticky(counts, wants, owned_by(before))
        check_complete(counts, wants, after)
        loads = [len(partitions) for partitions in after.values()]
        assert max(loads) - min(loads) <= 1
        assert moved(before, after) == least_moves(before, names, sum(loads))
        assert owned_by(assign_sticky(counts, wants, owned_by(after))) == owned_by(after)
        before = after


def least_moves(before: Assigned, names: list[str], total: int) -> int:
    """Who had more than its share gives up the difference; as many as may keep one more than the others."""
    least, longer = divmod(total, len(names))
    had = sorted((len(before.get(name, ())) for name in names), reverse=True)
    shares = [least + (n < longer) for n in range(len(names))]
    return sum(max(0, old - share) for old, share in zip(had, shares, strict=True))


@given(counts_of_topics, st.lists(wishes, min_size=1, max_size=6))
def test_any_wishes(counts: dict[str, int], rounds: list[dict[str, frozenset[str]]]) -> None:
    """No distribution is more even; a group that does not change keeps what it has."""
    before: Assigned = {}
    for wants in rounds:
        after = assign_sticky(counts, wants, owned_by(before))
        check_complete(counts, wants, after)
        assert sum(len(one) ** 2 for one in after.values()) == most_even(counts, wants)
        again = assign_sticky(counts, wants, owned_by(after))
        assert owned_by(again) == owned_by(after)
        before = after


def most_even(counts: Mapping[str, int], wants: Mapping[str, frozenset[str]]) -> int:
    """The least sum of squares: each partition by the cheapest way, as a flow of least cost, slowly and surely."""
    held: dict[str, dict[str, int]] = {member: dict.fromkeys(TOPICS, 0) for member in wants}
    loads = dict.fromkeys(wants, 0)
    for topic in TOPICS:
        for _ in range(counts.get(topic, 0) if any(topic in wanted for wanted in wants.values()) else 0):
            # From the new partition through members that hand one on, to the one with least.
            reached: dict[str, tuple[str | None, str]] = {}
            edge = [(None, topic)]
            while edge:
                giver, handed = edge.pop(0)
                for member, wanted in wants.items():
                    if member in reached or handed not in wanted:
                        continue
                    reached[member] = (giver, handed)
                    edge += [(member, other) for other in TOPICS if held[member][other]]  # type: ignore[misc]
            end: str | None = min(reached, key=lambda member: loads[member])
            loads[end] += 1  # type: ignore[index]
            while end is not None:
                giver, handed = reached[end]  # type: ignore[assignment]
                held[end][handed] += 1
                if giver is not None:
                    held[giver][handed] -= 1
                end = giver
    return sum(load**2 for load in loads.values())


def test_one_leaves_and_the_others_keep_all() -> None:
    counts = {"t": 10}
    three = {name: frozenset({"t"}) for name in "abc"}
    before = assign_sticky(counts, three, {})
    two = {name: three[name] for name in "ab"}
    after = assign_sticky(counts, two, owned_by(before))
    assert all(set(before[name]) <= set(after[name]) for name in "ab")
    assert [len(after[name]) for name in "ab"] == [5, 5]


def test_of_two_claims_the_younger_counts_and_of_equals_none() -> None:
    one, two, three = (TopicPartition("t", n) for n in range(3))
    found = owners({"a": Claim([one, two], 4), "b": Claim([one], 5), "c": Claim([two, three], 4)})
    assert found.by_partition == {one: "b", three: "c"}
    assert found.named == {one: ["a", "b"], two: ["a", "c"], three: ["c"]}


@given(counts_of_topics, st.lists(wishes, min_size=1, max_size=5))
def test_cooperative_groups_settle_without_two_owners(
    counts: dict[str, int], rounds: list[dict[str, frozenset[str]]]
) -> None:
    """Each round of a group, as its members would live it: no partition goes to one before another has let go."""
    assignor = CooperativeStickyAssignor()
    owned: Assigned = {}
    generation = 0
    for wants in rounds:
        owned = {member: [tp for tp in owned.get(member, []) if tp.topic in wanted] for member, wanted in wants.items()}
        for _ in range(2):  # one round to let go, one to give on
            generation += 1
            told = {
                member: Subscription(wanted, owned=tuple(owned[member]), generation=generation)
                for member, wanted in wants.items()
            }
            given_out = assignor.assign(Topics(counts), told)
            had = owned_by(owned)
            for member, partitions in given_out.items():
                assert all(had.get(tp, member) == member for tp in partitions)
            revoked = any(set(owned[member]) - set(given_out[member]) for member in wants)
            owned = {member: list(partitions) for member, partitions in given_out.items()}
            if not revoked:
                break
        check_complete(counts, wants, owned)
        assert sum(len(one) ** 2 for one in owned.values()) == most_even(counts, wants)


@pytest.mark.parametrize("newer", [True, False])
def test_sticky_members_say_what_they_had(newer: bool) -> None:
    topics, wanted = Topics({"t": 4}), frozenset({"t"})
    mine, other = StickyAssignor(), StickyAssignor()
    assert mine.user_data(wanted) is None
    mine.assigned(Assignment(tuple(TopicPartition("t", n) for n in (2, 3))), 7)
    other.assigned(Assignment(tuple(TopicPartition("t", n) for n in (0, 1, 2))), 8 if newer else 6)
    given_out = mine.assign(
        topics, {"a": Subscription(wanted, mine.user_data(wanted)), "b": Subscription(wanted, other.user_data(wanted))}
    )
    # Both name partition 2: it stays where the generation is younger, as far as balance goes.
    kept = {name: {tp.partition for tp in had} for name, had in given_out.items()}
    if newer:
        assert 3 in kept["a"]
        assert len(kept["b"] & {0, 1, 2}) == 2
    else:
        assert kept == {"a": {2, 3}, "b": {0, 1}}
