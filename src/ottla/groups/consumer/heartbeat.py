"""ConsumerGroupHeartbeat of a member that joins or stays.

Five steps, each on what the one before left: find or make the member; take over what it says of itself; raise the
group's epoch if that changes who should have what; compute the target for a new epoch; bring this member one step
closer to its part of it. All that changes on the way goes into one write. The target of a large group is computed later
(`assigning.py`): until then the member is brought closer to the one that there is.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from collections.abc import Set as AbstractSet
from dataclasses import replace
from typing import Final

from ottla.config.slices import GroupsConfig
from ottla.coordinators.caller import Caller
from ottla.coordinators.journal import JournalRecord
from ottla.groups.consumer import checks, long_records, records
from ottla.groups.consumer.decision import Decision, NeededShare, RequestRefused, TimerKind, TimerWish
from ottla.groups.consumer.group import ConsumerGroup, decrease, topics_of
from ottla.groups.consumer.heartbeat_answer import HeartbeatAnswer
from ottla.groups.consumer.member import AWAY, JOINING, Member, Partitions, ResolvedRegex
from ottla.groups.consumer.member_change import HeartbeatContext, MemberChange
from ottla.groups.consumer.patterns import EXPRESSIONS_OF_A_GROUP_MAX
from ottla.groups.consumer.prepared import PreparedHeartbeat
from ottla.groups.consumer.reconciliation import Reported
from ottla.groups.consumer.share import LongShare, catch_up, reconcile
from ottla.groups.consumer.target import Basis, compute, is_large
from ottla.model import ErrorCode
from ottla.protocol.generated.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from ottla.steps import at_once

#: Kafka's: a group begins at 1, with nothing to assign, and what its first member wants raises that.
EMPTY_EPOCH: Final = 1
FIRST_EPOCH: Final = 2


def heartbeat(
    group: ConsumerGroup,
    request: ConsumerGroupHeartbeatRequest,
    prepared: PreparedHeartbeat,
    caller: Caller,
    world: HeartbeatContext,
) -> Decision[HeartbeatAnswer]:
    """`group` may be one that nobody knows yet, made for a member that joins. Raises RequestRefused."""
    checks.check_room(group, request.member_id, world.config)
    change = _member_of(group, request, prepared.reported, world)
    before = change.before
    change.after = _updated(before, request, prepared, caller)
    change.names, change.names_hash = prepared.stored_names, prepared.names_hash
    advance(change, caller, world, in_steps=True)
    change.timers.append(TimerWish(TimerKind.SESSION, change.after.id, world.config.consumer_session_timeout_ms))

    # It is given what follows, and does not name it: `then` names this, and both would stand in a circle.
    def decision(
        step: MemberChange, following: Callable[[ConsumerGroup], Decision[HeartbeatAnswer]] | None
    ) -> Decision[HeartbeatAnswer]:
        def shared(share: MemberChange) -> Decision[HeartbeatAnswer]:
            response = _answer(share.after, before, request, world)
            return Decision(
                response=response,
                records=share.records,
                timers=share.timers,
                member=share.after,
                then=following,
                is_claimed=True,
            )

        return Decision(
            response=_answer(step.after, before, request, world),
            records=step.records,
            timers=step.timers,
            member=step.after,
            then=following,
            heard=(step.after.id, step.token) if step is change else None,
            share=NeededShare(LongShare(step, world), shared) if step.needs_share else None,
        )

    def then(later: ConsumerGroup) -> Decision[HeartbeatAnswer]:
        return decision(catch_up(later, change, world, in_steps=True), None)

    # A member that has nothing new to say hears what is decided so far, and more with its next heartbeat.
    waits = change.needs_target and (change.raises_epoch or request.member_epoch == JOINING or not world.is_assigning)
    return decision(change, then if waits else None)


def advance(change: MemberChange, caller: Caller, world: HeartbeatContext, *, in_steps: bool = False) -> None:
    """From what the member says of itself to its next assignment; for members of both protocols."""
    # Of one that is yet to come, once it is written: nothing is kept of those whose write is refused.
    if change.after.id in change.group.members:
        change.group.heard[change.after.id] = change.token
    take_over(change, caller, world)
    raise_epoch(change, world)
    target = _target(change, caller, world)
    reached = change.group.assignment_epoch if change.needs_target else change.epoch
    # A group that never had a target: the member stays as it comes.
    reconcile(change, max(reached, change.group.assignment_epoch, JOINING), target, world, in_steps=in_steps)


# 1. The member.


def _member_of(
    group: ConsumerGroup, request: ConsumerGroupHeartbeatRequest, reported: Reported, world: HeartbeatContext
) -> MemberChange:
    member_id = request.member_id or world.new_member_id()
    if request.instance_id is None:
        return _dynamic(group, member_id, request.member_epoch, reported)
    return _static(group, member_id, request.instance_id, request.member_epoch, reported)


def _dynamic(group: ConsumerGroup, member_id: str, epoch: int, reported: Reported) -> MemberChange:
    known = group.members.get(member_id)
    if known is None:
        known = Member(id=member_id) if epoch == JOINING else checks.known_member(group, member_id)
    else:
        checks.check_epoch(known, epoch, reported)
    return MemberChange(group, known, known, reported)


def _static(group: ConsumerGroup, member_id: str, instance_id: str, epoch: int, reported: Reported) -> MemberChange:
    if epoch != JOINING:
        known = checks.known_static_member(group, member_id, instance_id)
        checks.check_epoch(known, epoch, reported)
        return MemberChange(group, known, known, reported)
    present = group.static_member(instance_id)
    if present is None:
        fresh = group.members.get(member_id) or Member(id=member_id)
        return MemberChange(group, fresh, fresh, reported)
    if present.classic is None and present.epoch != AWAY:
        raise RequestRefused(
            ErrorCode.UNRELEASED_INSTANCE_ID, f"Instance {instance_id} is member {present.id}, which has not left."
        )
    return replacing(group, present, member_id, reported)


def replacing(group: ConsumerGroup, present: Member, member_id: str, reported: Reported) -> MemberChange:
    """An instance comes back under another member id, or the same, and goes on with all that it had."""
    successor = replace(present, id=member_id, epoch=JOINING, previous_epoch=JOINING)
    change = MemberChange(group, successor, successor, reported, replaced=present)
    change.records += records.member_tombstones(group.id, present.id)
    change.records.append(records.member(group.id, successor))
    change.records.append(records.target(group.id, member_id, group.target.get(present.id, {})))
    change.records.append(records.current(group.id, successor))
    if present.id != member_id:
        change.timers += [TimerWish(kind, present.id, None) for kind in TimerKind]
    return change


# 2. What it says of itself.


def _updated(
    member: Member, request: ConsumerGroupHeartbeatRequest, prepared: PreparedHeartbeat, caller: Caller
) -> Member:
    """What a heartbeat leaves out stays as it was, and what is equal stays the same object."""
    names, regex = prepared.names, request.subscribed_topic_regex
    if names == member.topic_names:
        names = None
    return replace(
        member,
        instance_id=member.instance_id if request.instance_id is None else request.instance_id,
        rack_id=member.rack_id if request.rack_id is None else request.rack_id,
        rebalance_timeout_ms=(
            member.rebalance_timeout_ms if request.rebalance_timeout_ms == -1 else request.rebalance_timeout_ms
        ),
        assignor=member.assignor if request.server_assignor is None else request.server_assignor,
        topic_names=member.topic_names if names is None else names,
        topic_regex=member.topic_regex if regex is None else regex,
        client_id=caller.client_id,
        client_host=caller.host,
        classic=None,
    )


def take_over(change: MemberChange, caller: Caller, world: HeartbeatContext) -> None:
    group, before, after = change.group, change.before, change.after
    names_changed = before.topic_names != after.topic_names
    is_new = before.id not in group.members and change.replaced is None
    if is_new or before.subscription != after.subscription:
        change.records.append(_member_record(change))
    regex_changed = before.topic_regex != after.topic_regex
    change.subscription_changed = names_changed or regex_changed
    change.must_bump = group.epoch == 0 or change.subscription_changed
    _resolve_regexes(change, caller, world, regex_changed)


def _member_record(change: MemberChange) -> JournalRecord:
    group, after, names = change.group, change.after, change.names
    if names is not None and names.number == len(after.topic_names):
        return long_records.member(group.id, after, names)
    return records.member(group.id, after)


def _resolve_regexes(change: MemberChange, caller: Caller, world: HeartbeatContext, regex_changed: bool) -> None:
    """Looks at all of the group's expressions together, so that new topics make for one new epoch."""
    group, after = change.group, change.after
    change.regexes = group.regexes
    if not group.regex_counts and not after.topic_regex:
        return
    if regex_changed and after.topic_regex and after.topic_regex not in group.regexes:
        _check_room_for_expression(group)
        world.patterns.check(after.topic_regex)
    names_version = world.patterns.names_version
    if not regex_changed and names_version == group.checked_names_version:
        return
    wanted = _counts_after(
        change, group.regex_counts, lambda member: (member.topic_regex,) if member.topic_regex else ()
    )
    resolved = {pattern: regex for pattern, regex in group.regexes.items() if pattern in wanted}
    change.records += [records.regex_tombstone(group.id, gone) for gone in group.regexes if gone not in wanted]
    settled = True
    for pattern in wanted:
        if world.patterns.is_refused(pattern):
            continue
        known = world.patterns.known(pattern)
        if known is None or (known.version < names_version and pattern in resolved):
            # It is being matched: a later heartbeat finds what it stands for now.
            settled = False
            continue
        topics = known.topics if caller.may_describe is None else frozenset(filter(caller.may_describe, known.topics))
        if pattern not in resolved or resolved[pattern].topics != topics:
            settled = False
            change.must_bump = True
            resolved[pattern] = ResolvedRegex(topics, names_version, caller.now.wall_ms)
            change.records.append(records.regex(group.id, pattern, resolved[pattern]))
    change.regexes = resolved
    if settled:
        # Otherwise the write may yet be refused, and the next heartbeat has to find the same again.
        group.checked_names_version = names_version


def _check_room_for_expression(group: ConsumerGroup) -> None:
    if len(group.regex_counts) >= EXPRESSIONS_OF_A_GROUP_MAX:
        raise RequestRefused(
            ErrorCode.INVALID_REGULAR_EXPRESSION,
            f"Group {group.id} has the {EXPRESSIONS_OF_A_GROUP_MAX} different regular expressions that it may have.",
        )


# 3. The group's epoch.


def raise_epoch(change: MemberChange, world: HeartbeatContext) -> None:
    group, generation = change.group, world.metadata.generation
    change.epoch = group.epoch
    is_checked = group.is_checked(generation)
    if is_checked and not change.must_bump:
        return
    hashed = _hash_after(change, world)
    # Valid once the group has this hash: the write may yet be refused.
    group.checked = (generation, hashed)
    if hashed == group.metadata_hash and not change.must_bump:
        return
    change.epoch = max(change.epoch + 1, FIRST_EPOCH if change.subscription_changed else EMPTY_EPOCH)
    change.records.append(records.group_epoch(group.id, change.epoch, hashed))
    if group.has_partition_metadata:
        change.records.append(records.partition_metadata_tombstone(group.id))


def _hash_after(change: MemberChange, world: HeartbeatContext) -> int:
    group, generation = change.group, world.metadata.generation
    known = group.known_hash(generation)
    if known is not None and not change.subscription_changed and change.regexes == group.regexes:
        return known
    wanted = _names_after(change) | topics_of(change.regexes.values())
    before = group.wanted_topics()
    if change.names_hash is not None and change.names_hash[0] == generation and not before:
        return world.hashes.changed(change.names_hash[1], wanted - change.after.topic_names, ())
    if known is None:
        return world.hashes.of(wanted)
    return world.hashes.changed(known, wanted - before, before - wanted)


def _names_after(change: MemberChange) -> AbstractSet[str]:
    """The names that are wanted with this member as it will be."""
    group, after = change.group, change.after
    gone = change.replaced or group.members.get(change.before.id)
    counts = group.name_counts
    if gone is None:
        return counts.keys() | after.topic_names
    left = {name for name in gone.topic_names - after.topic_names if counts[name] == 1}
    return (counts.keys() - left) | after.topic_names


def _counts_after(
    change: MemberChange, counts: Counter[str], of_member: Callable[[Member], Iterable[str]]
) -> Counter[str]:
    """The group's counts with this member as it will be."""
    after = counts.copy()
    gone = change.replaced or change.group.members.get(change.before.id)
    if gone is not None:
        decrease(after, of_member(gone))
    after.update(of_member(change.after))
    return after


# 4. The target.


def _target(change: MemberChange, caller: Caller, world: HeartbeatContext) -> Partitions:
    group, after = change.group, change.after
    if change.epoch <= group.assignment_epoch:
        return group.target_of(after)
    if world.is_assigning or _is_large(change, world):
        change.needs_target = True
        return group.target_of(after)
    members = group.members
    before = group.target
    if change.replaced is not None and change.replaced.id != after.id:
        members = {name: member for name, member in members.items() if name != change.replaced.id}
        before = {**before, after.id: before.get(change.replaced.id, {})}
    basis = Basis(
        group.id, list({**members, after.id: after}.values()), change.regexes, before, _assignor(change, world.config)
    )
    target = at_once(compute(basis, world.metadata))
    change.records += target.records.values()
    change.records.append(records.target_epoch(group.id, change.epoch, caller.now.wall_ms))
    return target.by_member[after.id]


def _is_large(change: MemberChange, world: HeartbeatContext) -> bool:
    group, after, work_max = change.group, change.after, world.work_at_once_max
    if len(group.members) + max(len(group.name_counts), len(after.topic_names)) > work_max:
        return True
    names = _counts_after(change, group.name_counts, lambda member: member.topic_names)
    for pattern, regex in change.regexes.items():
        members = max(1, group.regex_counts[pattern])
        if members * len(regex.topics) > work_max:
            return True
        for name in regex.topics:
            names[name] += members
    return is_large(len(group.members) + 1, names, world.metadata, work_max)


def _assignor(change: MemberChange, config: GroupsConfig) -> str:
    counts = _counts_after(
        change, change.group.assignor_counts, lambda member: () if member.assignor is None else (member.assignor,)
    )
    return checks.assignor_of(counts, config)


# The answer.


def _answer(
    member: Member, before: Member, request: ConsumerGroupHeartbeatRequest, world: HeartbeatContext
) -> HeartbeatAnswer:
    response = ConsumerGroupHeartbeatResponse(
        member_id=member.id,
        member_epoch=member.epoch,
        heartbeat_interval_ms=world.config.consumer_heartbeat_interval_ms,
    )
    says_all = request.member_epoch == JOINING or _is_full(request)
    if says_all or (member.assigned is not before.assigned and member.assigned != before.assigned):
        return HeartbeatAnswer(response, member.assigned)
    return HeartbeatAnswer(response)


def _is_full(request: ConsumerGroupHeartbeatRequest) -> bool:
    """A member that sends everything wants everything in the answer: it may have missed one."""
    return (
        request.rebalance_timeout_ms != -1
        and (request.subscribed_topic_names is not None or request.subscribed_topic_regex is not None)
        and request.topic_partitions is not None
    )
