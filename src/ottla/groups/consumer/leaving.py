"""Members that go: by their own word, for a while, or because they were silent or slow."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from ottla.coordinators.journal import JournalRecord
from ottla.groups.classic.group import ClassicGroup
from ottla.groups.consumer import checks, migration, records
from ottla.groups.consumer.decision import Decision, TimerKind, all_timers_cancelled
from ottla.groups.consumer.group import ConsumerGroup, decrease, topics_of
from ottla.groups.consumer.heartbeat_answer import HeartbeatAnswer
from ottla.groups.consumer.member import AWAY, NOTHING_OWNED, Member
from ottla.groups.consumer.member_change import HeartbeatContext
from ottla.protocol.generated.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Downgrade(Decision[T]):
    """Only members of the classic protocol are left: the group is a classic one from now on, and rebalances."""

    classic: ClassicGroup
    #: The others have to share anew; not where an instance only came back by the other protocol.
    must_rebalance: bool


def leave(
    group: ConsumerGroup, request: ConsumerGroupHeartbeatRequest, world: HeartbeatContext, wall_ms: int
) -> Decision[HeartbeatAnswer]:
    """Raises RequestRefused."""
    if request.instance_id is None:
        member = checks.known_member(group, request.member_id)
    else:
        member = checks.known_static_member(group, request.member_id, request.instance_id)
        if request.member_epoch == AWAY:
            return _away(group, member)
    response = ConsumerGroupHeartbeatResponse(member_id=request.member_id, member_epoch=request.member_epoch)
    return removed(group, [member], HeartbeatAnswer(response), world, wall_ms)


def _away(group: ConsumerGroup, member: Member) -> Decision[HeartbeatAnswer]:
    """It keeps its partitions until it comes back or its session ends; what it was asked to give up is free now.

    A member that comes back in its place may commit in any epoch what it takes over.
    """
    assigned = {topic: dict.fromkeys(partitions, 0) for topic, partitions in member.assigned.items()}
    gone = replace(member, epoch=AWAY, assigned=assigned, pending_revocation=NOTHING_OWNED)
    return Decision(
        response=HeartbeatAnswer(ConsumerGroupHeartbeatResponse(member_id=member.id, member_epoch=AWAY)),
        records=[records.current(group.id, gone)],
    )


def timed_out(
    group: ConsumerGroup, kind: TimerKind, member_id: str, epoch: int, world: HeartbeatContext, wall_ms: int
) -> Decision[None] | None:
    """None where the member is not what the timer was set for any more."""
    member = group.members.get(member_id)
    if member is None or (kind is TimerKind.REBALANCE and member.epoch != epoch):
        return None
    return removed(group, [member], None, world, wall_ms)


def removed(
    group: ConsumerGroup, gone: Sequence[Member], response: T, world: HeartbeatContext, wall_ms: int
) -> Decision[T]:
    """Takes members out: a new epoch, or a classic group if only classic members are left."""
    if not gone:
        return Decision(response=response)
    timers = [wish for member in gone for wish in all_timers_cancelled(member.id)]
    away = {member.id for member in gone}
    left = [member for name, member in group.members.items() if name not in away]
    if migration.may_become_classic(left, world.config):
        moved = migration.to_classic(group, left, world.metadata, wall_ms)
        return Downgrade(
            response=response, records=moved.records, timers=timers, classic=moved.group, must_rebalance=True
        )
    return Decision(response=response, records=_removal(group, gone, world), timers=timers)


def _removal(group: ConsumerGroup, gone: Sequence[Member], world: HeartbeatContext) -> list[JournalRecord]:
    made = [record for member in gone for record in records.member_tombstones(group.id, member.id)]
    names: Counter[str] = Counter()
    patterns = group.regex_counts.copy()
    for member in gone:
        names.update(member.topic_names)
        if member.topic_regex:
            decrease(patterns, (member.topic_regex,))
    made += [records.regex_tombstone(group.id, pattern) for pattern in group.regexes if pattern not in patterns]
    unwanted = {name for name, count in names.items() if count == group.name_counts[name]}
    wanted = group.name_counts.keys() - unwanted
    wanted |= topics_of([regex for pattern, regex in group.regexes.items() if pattern in patterns])
    generation = world.metadata.generation
    if group.is_checked(generation):
        hashed = world.hashes.changed(group.metadata_hash, (), group.wanted_topics() - wanted)
        group.checked = (generation, hashed)
    else:
        hashed = world.hashes.of(wanted)
    made.append(records.group_epoch(group.id, group.epoch + 1, hashed))
    return made
