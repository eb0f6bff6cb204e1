"""DescribeGroups: a classic group as tools see it."""

from __future__ import annotations

from typing import Final

from ottla.groups.classic.group import ClassicGroup
from ottla.groups.classic.states import State
from ottla.model import ErrorCode
from ottla.protocol.generated.describe_groups import DescribedGroup, DescribedGroupMember

#: Before this version a group that does not exist was described as dead, without an error.
NOT_FOUND_SINCE: Final = 6


def described(group: ClassicGroup) -> DescribedGroup:
    """Which protocol it is, and what members say in it, is told only while it holds."""
    stable = group.state is State.STABLE
    return DescribedGroup(
        group_id=group.id,
        group_state=group.state.value,
        protocol_type=group.protocol_type or "",
        protocol_data=(group.protocol_name or "") if stable else "",
        members=[
            DescribedGroupMember(
                member_id=member.id,
                group_instance_id=member.instance_id,
                client_id=member.client_id,
                client_host=member.client_host,
                member_metadata=member.metadata(group.protocol_name) if stable else b"",
                member_assignment=member.assignment,
            )
            for member in group.members.values()
        ],
    )


def not_found(group_id: str, version: int, *, consumer: bool = False) -> DescribedGroup:
    response = DescribedGroup(group_id=group_id, group_state=State.DEAD.value)
    if version >= NOT_FOUND_SINCE:
        response.error_code = ErrorCode.GROUP_ID_NOT_FOUND
        response.error_message = (
            f"Group {group_id} is not a classic group." if consumer else f"Group {group_id} not found."
        )
    return response
