"""DescribeGroups: a classic group as tools see it."""

from __future__ import annotations

from typing import Final

from ottla.groups.classic.group import ClassicGroup
from ottla.groups.classic.states import ClassicGroupState
from ottla.model import ErrorCode
from ottla.protocol.generated.describe_groups import DescribedGroup, DescribedGroupMember
from ottla.steps import Steps, pieces

#: Before this version a group that does not exist was described as dead, without an error.
NOT_FOUND_SINCE: Final = 6


def described(group: ClassicGroup) -> Steps[DescribedGroup]:
    """Which protocol it is, and what members say in it, is shown only while it holds."""
    stable = group.state is ClassicGroupState.STABLE
    protocol = group.protocol_name
    members = []
    for piece in pieces(list(group.members.values())):
        members += [
            DescribedGroupMember(
                member_id=member.id,
                group_instance_id=member.instance_id,
                client_id=member.client_id,
                client_host=member.client_host,
                member_metadata=member.metadata(protocol) if stable else b"",
                member_assignment=member.assignment,
            )
            for member in piece
        ]
        yield
    return DescribedGroup(
        group_id=group.id,
        group_state=group.state.value,
        protocol_type=group.protocol_type or "",
        protocol_data=(protocol or "") if stable else "",
        members=members,
    )


def not_found(group_id: str, version: int, *, consumer: bool = False) -> DescribedGroup:
    response = DescribedGroup(group_id=group_id, group_state=ClassicGroupState.DEAD.value)
    if version >= NOT_FOUND_SINCE:
        response.error_code = ErrorCode.GROUP_ID_NOT_FOUND
        response.error_message = (
            f"Group {group_id} is not a classic group." if consumer else f"Group {group_id} not found."
        )
    return response
