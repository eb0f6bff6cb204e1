"""Admin's groups: listed by every broker, described and deleted by their coordinators."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from contextlib import suppress

from ottla.client.admin.group_results import CLASSIC, CONSUMER, GroupDescription, GroupListing, MemberDescription
from ottla.client.consuming.group import wire
from ottla.client.errors import KafkaError, error_of
from ottla.client.wire.cluster import Cluster
from ottla.client.wire.coordinators import ask_coordinators
from ottla.model import ErrorCode, TopicPartition
from ottla.protocol.apis import ApiKey
from ottla.protocol.errors import DecodeError
from ottla.protocol.generated import consumer_group_describe as newer
from ottla.protocol.generated import delete_groups as deleting
from ottla.protocol.generated import describe_groups as classic
from ottla.protocol.generated.list_groups import ListGroupsRequest, ListGroupsResponse

#: The first versions of ListGroups that filter by state and by type.
_STATES_SINCE = 4
_TYPES_SINCE = 5
#: How DescribeGroups calls a group that is not there, before it had an error for it.
_DEAD = "Dead"
#: A coordinator's word that a group is none of the newer kind.
_NOT_NEWER = frozenset({ErrorCode.GROUP_ID_NOT_FOUND, ErrorCode.UNSUPPORTED_VERSION})
#: Members of newer groups: those that still speak the classic protocol, and those that have been upgraded.
_UPGRADED = {0: False, 1: True}


async def list_groups(
    cluster: Cluster, states: Iterable[str] | None = None, types: Iterable[str] | None = None
) -> list[GroupListing]:
    """Sorted by id. A broker that is too old for a filter that is asked for raises UnsupportedVersion."""
    wanted_states, wanted_types = list(states or ()), list(types or ())
    at_least = _TYPES_SINCE if wanted_types else _STATES_SINCE if wanted_states else 0
    request = ListGroupsRequest(states_filter=wanted_states, types_filter=wanted_types)

    async def ask(broker: int) -> list[GroupListing]:
        connection = await cluster.control(broker)
        version = connection.version(ApiKey.LIST_GROUPS, at_least=at_least)
        answer = await connection.ask(
            request, ListGroupsResponse, timeout_ms=cluster.settings.request_timeout_ms, at_most=version
        )
        if answer.error_code:
            raise error_of(answer.error_code, about=f"broker {broker}")
        return [
            GroupListing(
                group_id=one.group_id,
                protocol_type=one.protocol_type,
                state=one.group_state if version >= _STATES_SINCE else None,
                type=one.group_type.lower() if version >= _TYPES_SINCE else None,
            )
            for one in answer.groups
        ]

    async def attempt() -> list[GroupListing]:
        # Anew each time: a broker that has gone is not asked again, its groups are with others now.
        await cluster.updated()
        listed = await asyncio.gather(*(ask(broker) for broker in sorted(cluster.metadata.nodes)))
        # While a partition of the offsets topic moves, two brokers may list its groups: the later one holds.
        return list({group.group_id: group for part in listed for group in part}.values())

    return sorted(await cluster.retrying(attempt), key=lambda group: group.group_id)


async def describe_groups(cluster: Cluster, group_ids: Iterable[str]) -> dict[str, GroupDescription]:
    async def ask(
        node: int,
        groups: Sequence[str],
        results: dict[str, GroupDescription],
        errors: dict[str, KafkaError],
    ) -> None:
        left = list(groups)
        connection = await cluster.control(node)
        if connection.serves(ApiKey.CONSUMER_GROUP_DESCRIBE):
            left = await _describe_newer(cluster, node, left, results, errors)
        if left:
            await _describe_classic(cluster, node, left, results, errors)

    return await ask_coordinators(cluster, group_ids, ask)


async def _describe_newer(
    cluster: Cluster,
    node: int,
    groups: list[str],
    results: dict[str, GroupDescription],
    errors: dict[str, KafkaError],
) -> list[str]:
    """Gives back those that are not of the newer kind."""
    request = newer.ConsumerGroupDescribeRequest(group_ids=groups)
    answer = await cluster.ask(node, request, newer.ConsumerGroupDescribeResponse)
    left = []
    for answered in answer.groups:
        if answered.error_code in _NOT_NEWER:
            left.append(answered.group_id)
        elif answered.error_code:
            errors[answered.group_id] = error_of(answered.error_code, answered.error_message, about=answered.group_id)
        else:
            results[answered.group_id] = GroupDescription(
                group_id=answered.group_id,
                type=CONSUMER,
                state=answered.group_state,
                protocol_type="consumer",
                assignor=answered.assignor_name,
                coordinator=cluster.metadata.nodes.get(node),
                members=tuple(_newer_member(one) for one in answered.members),
                epoch=answered.group_epoch,
                assignment_epoch=answered.assignment_epoch,
            )
    return left


def _newer_member(answered: newer.Member) -> MemberDescription:
    return MemberDescription(
        member_id=answered.member_id,
        instance_id=answered.instance_id,
        client_id=answered.client_id,
        host=answered.client_host,
        assignment=_partitions(answered.assignment),
        target=_partitions(answered.target_assignment),
        epoch=answered.member_epoch,
        rack=answered.rack_id,
        topics=tuple(answered.subscribed_topic_names),
        regex=answered.subscribed_topic_regex or None,
        upgraded=_UPGRADED.get(answered.member_type),
    )


def _partitions(answered: newer.Assignment) -> tuple[TopicPartition, ...]:
    return tuple(
        sorted(TopicPartition(topic.topic_name, one) for topic in answered.topic_partitions for one in topic.partitions)
    )


async def _describe_classic(
    cluster: Cluster,
    node: int,
    groups: list[str],
    results: dict[str, GroupDescription],
    errors: dict[str, KafkaError],
) -> None:
    answer = await cluster.ask(node, classic.DescribeGroupsRequest(groups=groups), classic.DescribeGroupsResponse)
    for answered in answer.groups:
        code, message = answered.error_code, answered.error_message
        if not code and answered.group_state == _DEAD:
            code = ErrorCode.GROUP_ID_NOT_FOUND
        if code:
            errors[answered.group_id] = error_of(code, message, about=answered.group_id)
            continue
        results[answered.group_id] = GroupDescription(
            group_id=answered.group_id,
            type=CLASSIC,
            state=answered.group_state,
            protocol_type=answered.protocol_type,
            assignor=answered.protocol_data,
            coordinator=cluster.metadata.nodes.get(node),
            members=tuple(_classic_member(one, answered.protocol_type) for one in answered.members),
        )


def _classic_member(answered: classic.DescribedGroupMember, protocol_type: str) -> MemberDescription:
    assignment: tuple[TopicPartition, ...] = ()
    topics: tuple[str, ...] | None = None
    if protocol_type == wire.PROTOCOL_TYPE:
        # The bytes are the members' own, and coordinators do not check them: the rest is worth showing all the same.
        with suppress(DecodeError):
            assignment = tuple(sorted(wire.decode_assignment(answered.member_assignment).partitions))
        with suppress(DecodeError):
            topics = tuple(sorted(wire.decode_subscription(answered.member_metadata).topics))
    return MemberDescription(
        member_id=answered.member_id,
        instance_id=answered.group_instance_id,
        client_id=answered.client_id,
        host=answered.client_host,
        assignment=assignment,
        topics=topics,
    )


async def delete_groups(cluster: Cluster, group_ids: Iterable[str]) -> None:
    async def ask(node: int, groups: Sequence[str], results: dict[str, None], errors: dict[str, KafkaError]) -> None:
        request = deleting.DeleteGroupsRequest(groups_names=list(groups))
        answer = await cluster.ask(node, request, deleting.DeleteGroupsResponse)
        for answered in answer.results:
            if answered.error_code:
                errors[answered.group_id] = error_of(answered.error_code, about=answered.group_id)
            else:
                results[answered.group_id] = None

    await ask_coordinators(cluster, group_ids, ask)
