"""Groups that change protocol while they have members.

Up: a member of the newer protocol joins a classic group of consumers. Its members become members of a consumer group
that speak the classic protocol, with what their leader last gave them; they are to join again, and get the rest
from the coordinator. Down: the last member of the newer protocol leaves. The members that are left become a classic
group, with what they should have had, and rebalance.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ottla.config.slices import GroupsConfig
from ottla.coordinators.journal import JournalRecord
from ottla.groups.classic.group import ClassicGroup
from ottla.groups.classic.member import ClassicMember
from ottla.groups.classic.states import ClassicGroupState
from ottla.groups.classic.stored import group_record
from ottla.groups.consumer import embedded, records
from ottla.groups.consumer.decision import RequestRefused
from ottla.groups.consumer.group import ConsumerGroup
from ottla.groups.consumer.member import ClassicProtocol, Member, Owned, Partitions
from ottla.groups.consumer.states import MAY_DOWNGRADE, MAY_UPGRADE, Migration
from ottla.groups.consumer.topics import TopicHashes
from ottla.metadata.cache import MetadataCache
from ottla.model import ErrorCode, TopicId
from ottla.protocol.errors import DecodeError
from ottla.steps import at_once

# Up.


def check_upgrade(group: ClassicGroup, config: GroupsConfig) -> None:
    """Refuses in Kafka's order; to the member it looks as if there were no such consumer group."""
    if not MAY_UPGRADE[Migration(config.consumer_migration_policy)]:
        raise _no_upgrade(group, "group.consumer.migration.policy does not allow it")
    if group.protocol_type != embedded.CONSUMER:
        raise _no_upgrade(group, "its members are not consumers")
    if len(group.members) > config.consumer_size_max:
        raise _no_upgrade(group, "it has more members than a consumer group may have")


def from_classic(group: ClassicGroup, metadata: MetadataCache, hashes: TopicHashes) -> list[JournalRecord]:
    """Ends the classic group and begins the consumer group with the same members. Raises RequestRefused."""
    members = []
    taken: dict[TopicId, set[int]] = {}
    protocol = _protocol_of(group)
    for one in group.members.values():
        try:
            members.append(_converted(group, one, protocol, metadata, taken))
        except DecodeError as fault:
            raise _no_upgrade(group, f"member {one.id} says what no consumer says: {fault}") from fault
    names = {name for member in members for name in member.topic_names}
    made = list(group.tombstones())
    made += [records.member(group.id, member) for member in members]
    made.append(records.group_epoch(group.id, group.generation, hashes.of(names)))
    made += [records.target(group.id, member.id, _as_target(member.assigned)) for member in members]
    made.append(records.target_epoch(group.id, group.generation, 0))
    made += [records.current(group.id, member) for member in members]
    return made


def _protocol_of(group: ClassicGroup) -> str | None:
    """In which all members say what they subscribe to: that of their generation, or what they would vote for where they
    wait for their first one, or where one of them has joined since and does not know the former.
    """
    name, supported = group.protocol_name, group.supported
    if not group.members or (name is not None and supported is not None and supported[name] == len(group.members)):
        return name
    return group.vote()


def _converted(
    group: ClassicGroup,
    one: ClassicMember,
    protocol: str | None,
    metadata: MetadataCache,
    taken: dict[TopicId, set[int]],
) -> Member:
    given = embedded.assignment(one.assignment)
    if given.user_data:
        raise _no_upgrade(group, "its assignor keeps data of its own, which would be lost")
    wants = embedded.subscription(one.metadata(protocol))
    assigned: dict[TopicId, dict[int, int]] = {}
    for topic, partitions in embedded.with_ids(given.topics, metadata).items():
        # A leader may have given a partition to two: it stays with the first.
        own = sorted(partitions - taken.setdefault(topic, set()))
        taken[topic].update(own)
        if own:
            assigned[topic] = dict.fromkeys(own, group.generation)
    return Member(
        id=one.id,
        epoch=group.generation,
        previous_epoch=group.generation,
        instance_id=one.instance_id,
        rack_id=wants.rack_id,
        rebalance_timeout_ms=one.rebalance_timeout_ms,
        client_id=one.client_id,
        client_host=one.client_host,
        topic_names=frozenset(wants.topics),
        assigned=assigned,
        classic=ClassicProtocol(one.session_timeout_ms, one.protocols),
    )


def _as_target(owned: Owned) -> Partitions:
    return {topic: frozenset(partitions) for topic, partitions in owned.items()}


def _no_upgrade(group: ClassicGroup, why: str) -> RequestRefused:
    return RequestRefused(
        ErrorCode.GROUP_ID_NOT_FOUND, f"The classic group {group.id} cannot become a consumer group: {why}."
    )


# Down.


class MigratedGroup(NamedTuple):
    group: ClassicGroup
    records: list[JournalRecord]


def may_become_classic(left: Sequence[Member], config: GroupsConfig) -> bool:
    """Whether these members, all that are left, make a classic group."""
    return (
        bool(left)
        and all(member.classic is not None for member in left)
        and MAY_DOWNGRADE[Migration(config.consumer_migration_policy)]
        and len(left) <= config.size_max
    )


def to_classic(group: ConsumerGroup, left: Sequence[Member], metadata: MetadataCache, wall_ms: int) -> MigratedGroup:
    """Ends the consumer group and begins the classic one, stable, with each member's target as its assignment."""
    classic = ClassicGroup(group.id, wall_ms)
    classic.generation = group.epoch
    classic.protocol_type = embedded.CONSUMER
    for member in left:
        assert member.classic is not None
        classic.add(
            ClassicMember(
                member_id=member.id,
                instance_id=member.instance_id,
                client_id=member.client_id,
                client_host=member.client_host,
                session_timeout_ms=member.classic.session_timeout_ms,
                rebalance_timeout_ms=member.rebalance_timeout_ms,
                protocols=member.classic.protocols,
            )
        )
    classic.protocol_name = classic.vote()
    classic.subscribed_topics = at_once(classic.known_subscription())
    classic.state = ClassicGroupState.STABLE
    for member in left:
        one = classic.members[member.id]
        one.assignment = _encoded_target(group.target_of(member), one.metadata(classic.protocol_name), metadata)
    assignments = {one.id: one.assignment for one in classic.members.values()}
    return MigratedGroup(classic, [*group.tombstones(), at_once(group_record(classic, assignments))])


def _encoded_target(target: Partitions, subscription: bytes, metadata: MetadataCache) -> bytes:
    try:
        version = embedded.version_of(subscription)
    except DecodeError:
        version = 0
    topics = []
    for topic, partitions in target.items():
        name = metadata.topic_name(topic)
        if name is not None:
            topics.append((name, partitions))
    return embedded.encoded_assignment(topics, version)
