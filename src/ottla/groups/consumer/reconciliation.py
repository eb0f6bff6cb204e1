"""One member's next step from what it has to what it should have.

What it must give up comes first, and it keeps its epoch until it has said that it did. What it should get and another
member still holds comes last. So a partition never has two owners, and nobody waits for a member that has nothing to
do with the change.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import replace
from typing import NamedTuple

from ottla.groups.consumer.decision import RequestRefused
from ottla.groups.consumer.member import NOTHING_OWNED, Member, Owned, Partitions
from ottla.groups.consumer.states import NEXT_MEMBER_STATE, MemberState, Step
from ottla.model import ErrorCode, TopicId

#: The member that holds a partition; None where none does.
OwnerOf = Callable[[TopicId, int], str | None]
#: What a member says that it has; None where it does not say.
Reported = Mapping[TopicId, AbstractSet[int]] | None


class Goal(NamedTuple):
    """What the member is to reach."""

    epoch: int
    target: Partitions
    #: The topics that it is subscribed to now: it is left no partition of any other.
    subscribed: Container[TopicId]
    #: The subscription has just changed: partitions of topics that it left are asked back without a new epoch.
    subscription_changed: bool


def reconciled(member: Member, goal: Goal, owner_of: OwnerOf, reported: Reported) -> Member:
    """The member after this step: the same object where there was nothing to do."""
    match member.state:
        case MemberState.STABLE:
            if member.epoch != goal.epoch:
                return _next(member, member.epoch, goal, owner_of, reported)
            return _without_unsubscribed(member, goal, reported) if goal.subscription_changed else member
        case MemberState.UNREVOKED_PARTITIONS:
            if _still_holds(reported, member.pending_revocation):
                return _without_unsubscribed(member, goal, reported) if goal.subscription_changed else member
            return _next(member, member.epoch, goal, owner_of, reported)
        case MemberState.UNRELEASED_PARTITIONS:
            return _next(member, member.epoch, goal, owner_of, reported)
        case MemberState.UNKNOWN:
            if reported is None or any(reported.values()):
                raise RequestRefused(
                    ErrorCode.FENCED_MEMBER_EPOCH,
                    "The state of the member is not known here: it must give up its partitions and join again.",
                )
            return _next(member, goal.epoch, goal, owner_of, reported)


class _PartitionSplit(NamedTuple):
    kept: Owned
    revoked: Owned
    free: Partitions
    #: Something of the target is still held by somebody else.
    unreleased: bool


def _next(member: Member, epoch: int, goal: Goal, owner_of: OwnerOf, reported: Reported) -> Member:
    split = _split(member, goal, owner_of)
    if split.revoked and _still_holds(reported, split.revoked):
        return replace(
            member,
            state=NEXT_MEMBER_STATE[member.state, Step.MUST_REVOKE],
            epoch=epoch,
            previous_epoch=member.epoch,
            assigned=split.kept,
            pending_revocation=split.revoked,
        )
    assigned = dict(split.kept)
    for topic, free in split.free.items():
        assigned[topic] = {**assigned.get(topic, {}), **dict.fromkeys(sorted(free), goal.epoch)}
    step = Step.MUST_WAIT if split.unreleased else Step.ARRIVED
    return replace(
        member,
        state=NEXT_MEMBER_STATE[member.state, step],
        epoch=goal.epoch,
        previous_epoch=member.epoch,
        assigned=assigned,
        pending_revocation=NOTHING_OWNED,
    )


def _split(member: Member, goal: Goal, owner_of: OwnerOf) -> _PartitionSplit:
    """Compares what the member has with its target, topic by topic."""
    kept: dict[TopicId, Mapping[int, int]] = {}
    revoked: dict[TopicId, Mapping[int, int]] = {}
    free: dict[TopicId, frozenset[int]] = {}
    unreleased = False
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
        if len(target) == len(keep):
            continue
        wanted = target - keep.keys()
        # What it was asked back itself and may have again, since the target changed in between, is not another's.
        mine = member.pending_revocation.get(topic, {})
        taken = {
            partition
            for partition in wanted
            if partition not in mine and owner_of(topic, partition) not in {None, member.id}
        }
        unreleased = unreleased or bool(taken)
        if wanted - taken:
            free[topic] = wanted - taken
    return _PartitionSplit(kept, revoked, free, unreleased)


def _without_unsubscribed(member: Member, goal: Goal, reported: Reported) -> Member:
    """Asks back the partitions of topics that the member is not subscribed to any more, and leaves all else."""
    left = [topic for topic in member.assigned if topic not in goal.subscribed]
    if not left:
        return member
    kept = {topic: partitions for topic, partitions in member.assigned.items() if topic in goal.subscribed}
    pending = {topic: dict(partitions) for topic, partitions in member.pending_revocation.items()}
    for topic in left:
        pending.setdefault(topic, {}).update(member.assigned[topic])
    if not _still_holds(reported, pending):
        return replace(member, assigned=kept, previous_epoch=member.epoch)
    return replace(
        member,
        state=NEXT_MEMBER_STATE[member.state, Step.MUST_REVOKE],
        previous_epoch=member.epoch,
        assigned=kept,
        pending_revocation=pending,
    )


def _still_holds(reported: Reported, asked_back: Owned) -> bool:
    """Whether the member has any of these, as far as it says; one that says nothing has them."""
    if reported is None:
        return True
    return any(not has.keys().isdisjoint(reported[topic]) for topic, has in asked_back.items() if topic in reported)


def is_subset(reported: Reported, assigned: Owned) -> bool:
    """Whether all that the member says it has is its own."""
    if reported is None:
        return False
    return all(topic in assigned and has <= assigned[topic].keys() for topic, has in reported.items())
