"""One member's next step from what it has to what it should have.

What it must give up comes first, and it keeps its epoch until it has said that it did. What it should get and another
member still holds comes last. So a partition never has two owners, and nobody waits for a member that has nothing to
do with the change.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping, Sized
from collections.abc import Set as AbstractSet
from dataclasses import replace
from typing import Final, NamedTuple

from ottla.groups.consumer.decision import RequestRefused
from ottla.groups.consumer.member import NOTHING_OWNED, Member, Owned, Partitions
from ottla.groups.consumer.states import NEXT_MEMBER_STATE, MemberState, Step
from ottla.model import ErrorCode, TopicId
from ottla.steps import PIECE, Steps, pieces

#: The member that holds a partition; None where none does.
OwnerOf = Callable[[TopicId, int], str | None]
#: What a member says that it has; None where it does not say.
Reported = Mapping[TopicId, AbstractSet[int]] | None
#: Takes partitions that have no owner, in the step in which that was found.
Claim = Callable[[TopicId, AbstractSet[int]], None]

#: What a topic takes, in partitions: some microseconds.
TOPIC_WORK: Final = 16
#: Partitions that are looked at in one step: two hundred microseconds.
WORK_A_STEP: Final = 1_024


class Goal(NamedTuple):
    """What the member is to reach."""

    epoch: int
    target: Partitions
    #: The topics that it is subscribed to now: it is left no partition of any other.
    subscribed: Container[TopicId]
    #: The subscription has just changed: partitions of topics that it left are asked back without a new epoch.
    subscription_changed: bool


def reconciled(
    member: Member, goal: Goal, owner_of: OwnerOf, reported: Reported, claim: Claim | None = None
) -> Steps[Member]:
    """The member after this step: the same object where there was nothing to do. Does not yield where it is short."""
    match member.state:
        case MemberState.STABLE:
            if member.epoch != goal.epoch:
                return (yield from _next(member, member.epoch, goal, owner_of, reported, claim))
            return (yield from _without_unsubscribed(member, goal, reported)) if goal.subscription_changed else member
        case MemberState.UNREVOKED_PARTITIONS:
            if (yield from _still_holds(reported, member.pending_revocation)):
                if not goal.subscription_changed:
                    return member
                return (yield from _without_unsubscribed(member, goal, reported))
            return (yield from _next(member, member.epoch, goal, owner_of, reported, claim))
        case MemberState.UNRELEASED_PARTITIONS:
            return (yield from _next(member, member.epoch, goal, owner_of, reported, claim))
        case MemberState.UNKNOWN:
            if reported is None or any(reported.values()):
                raise RequestRefused(
                    ErrorCode.FENCED_MEMBER_EPOCH,
                    "The state of the member is not known here: it must give up its partitions and join again.",
                )
            return (yield from _next(member, goal.epoch, goal, owner_of, reported, claim))


class _Pace:
    """Says when a step is full. A topic costs as much as some partitions."""

    __slots__ = ("_room",)

    def __init__(self) -> None:
        self._room = WORK_A_STEP

    def is_full(self, partitions: int) -> bool:
        self._room -= TOPIC_WORK + partitions
        if self._room > 0:
            return False
        self._room = WORK_A_STEP
        return True


def work_of(*shares: Mapping[TopicId, Sized]) -> int:
    """Of going through all of them."""
    return sum(TOPIC_WORK * len(share) + sum(map(len, share.values())) for share in shares)


class _PartitionSplit(NamedTuple):
    kept: Owned
    revoked: Owned
    #: What it does not have of its target, by topic.
    wanted: Partitions


def _next(
    member: Member, epoch: int, goal: Goal, owner_of: OwnerOf, reported: Reported, claim: Claim | None
) -> Steps[Member]:
    split = yield from _split(member, goal)
    if split.revoked and (yield from _still_holds(reported, split.revoked)):
        return replace(
            member,
            state=NEXT_MEMBER_STATE[member.state, Step.MUST_REVOKE],
            epoch=epoch,
            previous_epoch=member.epoch,
            assigned=split.kept,
            pending_revocation=split.revoked,
        )
    assigned = dict(split.kept)
    step, pace = Step.ARRIVED, _Pace()
    for topic, wanted in split.wanted.items():
        # What it was asked back itself and may have again, since the target changed in between, is not another's.
        mine = member.pending_revocation.get(topic, {})
        taken = {
            partition
            for partition in wanted
            if partition not in mine and owner_of(topic, partition) not in {None, member.id}
        }
        if taken:
            step = Step.MUST_WAIT
        if free := wanted - taken:
            if claim is not None:
                claim(topic, free)
            assigned[topic] = {**assigned.get(topic, {}), **dict.fromkeys(sorted(free), goal.epoch)}
        if pace.is_full(len(wanted)):
            yield
    return replace(
        member,
        state=NEXT_MEMBER_STATE[member.state, step],
        epoch=goal.epoch,
        previous_epoch=member.epoch,
        assigned=assigned,
        pending_revocation=NOTHING_OWNED,
    )


def _split(member: Member, goal: Goal) -> Steps[_PartitionSplit]:
    """Compares what the member has with its target, topic by topic."""
    kept: dict[TopicId, Mapping[int, int]] = {}
    revoked: dict[TopicId, Mapping[int, int]] = {}
    missing: dict[TopicId, frozenset[int]] = {}
    pace = _Pace()
    for topic in {*goal.target, *member.assigned}:
        target = goal.target.get(topic, frozenset()) if topic in goal.subscribed else frozenset()
        has = member.assigned.get(topic, {})
        # Most topics stay as they are, and the same object says so: there may be ten thousand of them.
        is_kept = has.keys() <= target
        keep = has if is_kept else {partition: epoch for partition, epoch in has.items() if partition in target}
        if keep:
            kept[topic] = keep
        if not is_kept:
            revoked[topic] = {partition: epoch for partition, epoch in has.items() if partition not in target}
        if len(target) != len(keep):
            missing[topic] = target - keep.keys()
        if pace.is_full(len(target) + len(has)):
            yield
    return _PartitionSplit(kept, revoked, missing)


def _without_unsubscribed(member: Member, goal: Goal, reported: Reported) -> Steps[Member]:
    """Asks back the partitions of topics that the member is not subscribed to any more, and leaves all else."""
    kept: dict[TopicId, Mapping[int, int]] = {}
    left: dict[TopicId, Mapping[int, int]] = {}
    for topics in pieces(member.assigned.items()):
        for topic, partitions in topics:
            (kept if topic in goal.subscribed else left)[topic] = partitions
        if len(topics) == PIECE:
            yield
    if not left:
        return member
    pending = dict(member.pending_revocation)
    pace = _Pace()
    for topic, partitions in left.items():
        pending[topic] = {**pending.get(topic, {}), **partitions}
        if pace.is_full(len(partitions)):
            yield
    if not (yield from _still_holds(reported, pending)):
        return replace(member, assigned=kept, previous_epoch=member.epoch)
    return replace(
        member,
        state=NEXT_MEMBER_STATE[member.state, Step.MUST_REVOKE],
        previous_epoch=member.epoch,
        assigned=kept,
        pending_revocation=pending,
    )


def _still_holds(reported: Reported, asked_back: Owned) -> Steps[bool]:
    """Whether the member has any of these, as far as it says; one that says nothing has them."""
    if reported is None:
        return True
    pace = _Pace()
    for topic, has in asked_back.items():
        if topic in reported and not has.keys().isdisjoint(reported[topic]):
            return True
        if pace.is_full(0):
            yield
    return False


def is_subset(reported: Reported, assigned: Owned) -> bool:
    """Whether all that the member says it has is its own."""
    if reported is None:
        return False
    return all(topic in assigned and has <= assigned[topic].keys() for topic, has in reported.items())
