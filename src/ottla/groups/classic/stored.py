"""A classic group as a record, and back: the members of a generation with their assignments."""

from __future__ import annotations

from collections.abc import Mapping

from ottla.coordinators.journal import JournalRecord
from ottla.groups.classic.group import ClassicGroup
from ottla.groups.classic.member import ClassicMember
from ottla.groups.classic.states import ClassicGroupState
from ottla.groups.records.group_records import group_key, group_value
from ottla.protocol.generated.group_metadata_value import GroupMetadataValue, MemberMetadata
from ottla.steps import PIECE, Steps, pieces


def group_record(group: ClassicGroup, assignments: Mapping[str, bytes] | None = None) -> Steps[JournalRecord]:
    """What stands in the offsets topic of this generation, whose members get these assignments, or have theirs.

    The caller has to see that the group is still what it was, where this has yielded.
    """
    value = GroupMetadataValue(
        protocol_type=group.protocol_type or "",
        generation=group.generation,
        protocol=group.protocol_name,
        leader=group.leader_id,
        current_state_timestamp=group.state_since_ms,
        members=[],
    )
    for number, piece in enumerate(pieces(list(group.members.values()))):
        if number:
            yield
        value.members += [
            MemberMetadata(
                member_id=member.id,
                group_instance_id=member.instance_id,
                client_id=member.client_id,
                client_host=member.client_host,
                rebalance_timeout=member.rebalance_timeout_ms,
                session_timeout=member.session_timeout_ms,
                subscription=member.metadata(value.protocol),
                assignment=member.assignment if assignments is None else assignments.get(member.id, b""),
            )
            for member in piece
        ]
    return JournalRecord(group_key(group.id), (yield from group_value(value)))


def group_from(group_id: str, value: GroupMetadataValue) -> Steps[ClassicGroup]:
    group = ClassicGroup(group_id, value.current_state_timestamp)
    group.generation = value.generation
    group.protocol_type = value.protocol_type or None
    group.protocol_name = value.protocol
    group.leader_id = value.leader
    for number, stored in enumerate(value.members, 1):
        if number % PIECE == 0:
            yield
        if stored.member_id in group.members or stored.group_instance_id in group.static_members:
            continue  # Twice in one record: the first stays.
        rebalance_ms = stored.session_timeout if stored.rebalance_timeout == -1 else stored.rebalance_timeout
        group.add(
            ClassicMember(
                member_id=stored.member_id,
                instance_id=stored.group_instance_id,
                client_id=stored.client_id,
                client_host=stored.client_host,
                session_timeout_ms=stored.session_timeout,
                rebalance_timeout_ms=rebalance_ms,
                protocols=((value.protocol or "", bytes(stored.subscription)),),
                assignment=bytes(stored.assignment),
            )
        )
    if group.members:
        group.state = ClassicGroupState.STABLE
        if group.leader_id not in group.members:
            group.leader_id = next(iter(group.members))
    group.subscribed_topics = yield from group.known_subscription()
    return group
