"""A member's part of its group's target: one step closer to it, with each of its heartbeats.

Shares may be ten thousand topics, or a hundred thousand partitions. What is long is looked through in steps, beside
requests, for one member of a group after another:

    claim what nobody has, topic by topic -> write, if nothing has changed -> let go what the member has no more

A claimed partition has an owner from that moment on, and one that was given up has one until it is let go. So a member
that is served in between is given neither, and nothing has two owners. Where the member, its target or the topics have
changed meanwhile it is tried again; after some tries in one piece.
"""

from __future__ import annotations

import traceback
from collections import deque
from collections.abc import Callable, Collection, Mapping
from collections.abc import Set as AbstractSet
from typing import Final

from ottla import logs
from ottla.groups.consumer import checks, long_records, records
from ottla.groups.consumer.decision import TimerKind, TimerWish
from ottla.groups.consumer.group import ConsumerGroup
from ottla.groups.consumer.member import JOINING, Member, Partitions
from ottla.groups.consumer.member_change import HeartbeatContext, MemberChange
from ottla.groups.consumer.reconciliation import TOPIC_WORK, WORK_A_STEP, Goal, reconciled, work_of
from ottla.groups.consumer.states import MemberState
from ottla.groups.consumer.target import TopicsWanted
from ottla.groups.state import ShardState
from ottla.model import TopicId
from ottla.steps import Steps, at_once

log_event = logs.logger("groups")

#: How often a share is begun anew where something has changed meanwhile, before it is decided in one piece.
TRIES: Final = 3


def reconcile(
    change: MemberChange, target_epoch: int, target: Partitions, world: HeartbeatContext, *, in_steps: bool = False
) -> None:
    """At once; what is long is left for later where it may go `in_steps`."""
    group, member = change.group, change.after
    if not change.subscription_changed and member.is_reconciled_to(target_epoch):
        return
    if in_steps and _is_long(member, target, world.work_at_once_max):
        change.needs_share = True
        return
    goal = Goal(
        target_epoch,
        target,
        TopicsWanted(member, change.regexes, world.metadata),
        change.subscription_changed,
    )
    owner_of = group.owner_of
    if change.replaced is not None:
        present = change.replaced.id
        owner_of = lambda topic, partition: _except(present, group.owner_of(topic, partition))  # noqa: E731
    change.after = at_once(reconciled(member, goal, owner_of, change.reported))
    if change.after == member:
        return
    change.records.append(records.current(group.id, change.after))
    _watch(change)


def _watch(change: MemberChange) -> None:
    """The member has so long to give up what it is asked for."""
    member = change.after
    if member.classic is None:
        waits = member.state is MemberState.UNREVOKED_PARTITIONS
        after_ms = member.rebalance_timeout_ms if waits else None
        change.timers.append(TimerWish(TimerKind.REBALANCE, member.id, after_ms, epoch=member.epoch))


def _except(replaced: str, owner: str | None) -> str | None:
    return None if owner == replaced else owner


def _is_long(member: Member, target: Partitions, work_max: int) -> bool:
    shares = (target, member.assigned, member.pending_revocation)
    if TOPIC_WORK * sum(map(len, shares)) > work_max:
        return True
    return work_of(*shares) > work_max


def catch_up(
    group: ConsumerGroup, waited: MemberChange, world: HeartbeatContext, *, in_steps: bool = False
) -> MemberChange:
    """The group has got its target: the member's part of it. RequestRefused where it is not in the group any more."""
    change = _again(group, waited)
    reconcile(change, group.assignment_epoch, group.target_of(change.after), world, in_steps=in_steps)
    return change


def _again(group: ConsumerGroup, waited: MemberChange) -> MemberChange:
    member = checks.known_member(group, waited.after.id)
    # What it said that it has is out of date where it has got something else meanwhile, or was answered about more by
    # another request.
    is_latest = group.heard.get(member.id) is waited.token
    reported = waited.reported if is_latest and member == waited.after else None
    regexes = dict(group.regexes)
    return MemberChange(group, member, member, reported, regexes=regexes, epoch=group.epoch, token=waited.token)


class LongShare:
    """What a member is to have, where that is much; decided in steps once all else of its heartbeat is applied."""

    __slots__ = ("_claimed", "_group", "_let_go", "_waited", "_world")

    def __init__(self, waited: MemberChange, world: HeartbeatContext) -> None:
        self._waited = waited
        self._world = world
        #: That it was tried with.
        self._group: ConsumerGroup | None = None
        self._claimed: dict[TopicId, AbstractSet[int]] = {}
        #: What may stand under the member and is not its own any more.
        self._let_go: list[Mapping[TopicId, Collection[int]]] = [self._claimed]

    def tried(self, group: ConsumerGroup) -> Steps[MemberChange | None]:
        """The member's next step; None where that is out of date by now. Raises RequestRefused."""
        self._group = group
        world, waited = self._world, self._waited
        change = _again(group, waited)
        member, token = change.before, group.heard.get(change.before.id)
        target, epoch, generation = group.target_of(member), group.assignment_epoch, world.metadata.generation
        goal = Goal(
            max(epoch, JOINING),
            target,
            TopicsWanted(member, change.regexes, world.metadata),
            waited.subscription_changed,
        )
        if waited.subscription_changed or not member.is_reconciled_to(goal.epoch):
            change.after = yield from reconciled(member, goal, group.owner_of, change.reported, self._claim)
        if change.after != member:
            change.records.append((yield from long_records.current(group.id, change.after)))
            _watch(change)
        same_member = group.members.get(member.id) is member and group.heard.get(member.id) is token
        same_target = group.assignment_epoch == epoch and group.target_of(member) is target
        if not (same_member and same_target) or (world.metadata.generation, group.regexes) != (
            generation,
            change.regexes,
        ):
            return None
        return change

    def _claim(self, topic: TopicId, partitions: AbstractSet[int]) -> None:
        assert self._group is not None
        member_id = self._waited.after.id
        self._claimed[topic] = self._claimed.get(topic, frozenset()) | partitions
        self._group.claim(topic, partitions, member_id)

    def written(self, change: MemberChange) -> None:
        """The member is what it is by now."""
        self._let_go += [change.before.assigned, change.before.pending_revocation]
        self._waited.after = change.after

    def let_go(self) -> Steps[None]:
        """To the end, however it went."""
        group, room = self._group, WORK_A_STEP
        if group is None:
            return
        for share in self._let_go:
            for topic, partitions in share.items():
                group.let_go(topic, partitions, self._waited.after.id)
                room -= TOPIC_WORK + len(partitions)
                if room <= 0:
                    room = WORK_A_STEP
                    yield


class LongShares:
    """Of one shard: those of one group are decided one after another."""

    def __init__(self, state: ShardState) -> None:
        self._state = state
        self._lines: dict[str, deque[Steps[None]]] = {}

    def begin(self, group_id: str, steps: Steps[None]) -> None:
        if group_id in self._lines:
            self._lines[group_id].append(steps)
            return
        line = self._lines[group_id] = deque([steps])
        self._state.do(self._all(group_id, line))

    def _all(self, group_id: str, line: deque[Steps[None]]) -> Steps[None]:
        while line:
            try:
                yield from line[0]
            except Exception as fault:
                text = "".join(traceback.format_exception(fault))
                log_event.error("a member's share could not be decided", group=group_id, error=text)
            line.popleft()
        del self._lines[group_id]


def decided(
    share: LongShare, group_now: Callable[[], ConsumerGroup], decide: Callable[[ConsumerGroup, MemberChange], bool]
) -> Steps[None]:
    """Has it decided with the group of the moment; whether `decide` could write it is what that returns. Raises
    RequestRefused, also from `group_now` where the group is not here any more."""
    try:
        for _ in range(TRIES):
            group = group_now()
            change = yield from share.tried(group)
            if change is not None and group_now() is group:
                break
        else:
            group = group_now()
            change = at_once(share.tried(group))
            assert change is not None, "nothing happens in between"
        if decide(group, change):
            share.written(change)
    finally:
        yield from share.let_go()
