"""Leaving a group at once, so that nobody waits for the session time-out."""

from __future__ import annotations

import asyncio

from ottla.client.errors import KafkaError
from ottla.client.settings import ConsumerSettings
from ottla.client.wire.coordinator import Coordinator
from ottla.protocol.apis import ApiKey
from ottla.protocol.generated.leave_group import LeaveGroupRequest, LeaveGroupResponse, MemberIdentity

_SEVERAL_SINCE = 3
#: A member that does not reach the coordinator within that is missed by it sooner or later.
_LEAVE_SECONDS_MAX = 5.0


async def leave(settings: ConsumerSettings, coordinator: Coordinator, member_id: str, reason: str) -> None:
    """Raises nothing: a member that is not there any more has left, too."""
    assert settings.group_id is not None
    try:
        async with asyncio.timeout(_LEAVE_SECONDS_MAX):
            connection = await coordinator.connection()
            request = LeaveGroupRequest(group_id=settings.group_id)
            version = connection.version(ApiKey.LEAVE_GROUP)
            if version >= _SEVERAL_SINCE:
                request.members = [MemberIdentity(member_id=member_id, reason=reason)]
            else:
                request.member_id = member_id
            timeout_ms = settings.request_timeout_ms
            await connection.ask(request, LeaveGroupResponse, timeout_ms=timeout_ms, at_most=version)
    except (KafkaError, TimeoutError):
        return
