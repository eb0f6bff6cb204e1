"""What ConsumerGroupDescribe says of a group."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ottla.config.slices import GroupsConfig
from ottla.groups.consumer.checks import assignor_of
from ottla.groups.consumer.group import ConsumerGroup
from ottla.groups.consumer.member import NO_PARTITIONS, Member
from ottla.metadata.cache import MetadataCache
from ottla.model import TopicId
from ottla.protocol.generated.consumer_group_describe import (
    Assignment,
    DescribedGroup,
    TopicPartitions,
)
from ottla.protocol.generated.consumer_group_describe import Member as DescribedMember
from ottla.steps import Steps, pieces

_CLASSIC = 0
_CONSUMER = 1


def described(group: ConsumerGroup, metadata: MetadataCache, config: GroupsConfig) -> Steps[DescribedGroup]:
    members = []
    for member in list(group.members.values()):
        members.append((yield from _member(group, member, metadata)))
        yield
    return DescribedGroup(
        group_id=group.id,
        group_state=group.state_name,
        group_epoch=group.epoch,
        assignment_epoch=group.assignment_epoch,
        assignor_name=assignor_of(group.assignor_counts, config),
        members=members,
    )


def _member(group: ConsumerGroup, member: Member, metadata: MetadataCache) -> Steps[DescribedMember]:
    held = yield from _assignment(_held(member), metadata)
    target = yield from _assignment(group.target.get(member.id, NO_PARTITIONS), metadata)
    return DescribedMember(
        member_id=member.id,
        instance_id=member.instance_id,
        rack_id=member.rack_id,
        member_epoch=member.epoch,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=sorted(member.topic_names),
        subscribed_topic_regex=member.topic_regex,
        assignment=held,
        target_assignment=target,
        member_type=_CONSUMER if member.classic is None else _CLASSIC,
    )


def _held(member: Member) -> Mapping[TopicId, Iterable[int]]:
    """What it has: until it says so, that is also what it is to give up."""
    held = {topic: set(numbers) for topic, numbers in member.assigned.items()}
    for topic, numbers in member.pending_revocation.items():
        held.setdefault(topic, set()).update(numbers)
    return held


def _assignment(partitions: Mapping[TopicId, Iterable[int]], metadata: MetadataCache) -> Steps[Assignment]:
    """Topics that were deleted in the meantime have no name any more, and are left out."""
    answered = []
    for piece in pieces(partitions.items()):
        for topic, numbers in piece:
            name = metadata.topic_name(topic)
            if name is not None:
                answered.append(TopicPartitions(topic_id=topic, topic_name=name, partitions=sorted(numbers)))
        yield
    return Assignment(topic_partitions=sorted(answered, key=lambda one: one.topic_name))
