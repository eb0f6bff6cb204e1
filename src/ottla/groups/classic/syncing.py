"""SyncGroup: the leader says who gets what; the others fetch their share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from ottla import logs
from ottla.coordinators.caller import Caller, Now
from ottla.groups.classic.group import ClassicGroup
from ottla.groups.classic.rebalance import Rebalances, sync_refused, synced_response
from ottla.groups.classic.states import ClassicGroupEvent, ClassicGroupState
from ottla.groups.classic.stored import group_record
from ottla.groups.state import Reply, ShardState
from ottla.model import ErrorCode
from ottla.protocol.generated.sync_group import SyncGroupRequest, SyncGroupRequestAssignment, SyncGroupResponse
from ottla.steps import Steps, pieces

log_event = logs.logger("groups")

#: What a leader hands out to all members: sixteen times what a record of the group can hold, unless the offsets topic
#: takes larger batches than it does by default. It is refused with the error of what is too large for a batch.
ASSIGNMENTS_BYTES_MAX: Final = 16 * 1024 * 1024


class Syncing:
    __slots__ = ("_rebalances", "_state")

    def __init__(self, state: ShardState, rebalances: Rebalances) -> None:
        self._state = state
        self._rebalances = rebalances

    def sync(self, caller: Caller, request: SyncGroupRequest, reply: Reply[SyncGroupResponse]) -> None:
        group = self._rebalances.classic(request.group_id)
        if group is None or group.state is ClassicGroupState.EMPTY:
            reply(sync_refused(ErrorCode.UNKNOWN_MEMBER_ID))
            return
        if error := _fault(group, request):
            reply(sync_refused(error))
            return
        member = group.members[request.member_id]
        match group.state:
            case ClassicGroupState.PREPARING_REBALANCE:
                reply(sync_refused(ErrorCode.REBALANCE_IN_PROGRESS))
            case ClassicGroupState.COMPLETING_REBALANCE:
                earlier = group.await_sync(member, reply)
                if earlier is not None:  # whose connection is gone
                    earlier(sync_refused(ErrorCode.REBALANCE_IN_PROGRESS))
                self._rebalances.synced(group, member.id)
                if group.leader_id == member.id:
                    self._state.do(self._stored(group, request.assignments, caller.now))
            case _:
                self._rebalances.synced(group, member.id)
                reply(synced_response(group, member))

    def _stored(self, group: ClassicGroup, shares: Sequence[SyncGroupRequestAssignment], now: Now) -> Steps[None]:
        """Shares of members who left are ignored; members without a share get an empty one."""
        generation = group.generation
        given: dict[str, bytes] = {}
        size = 0
        for number, piece in enumerate(pieces(shares)):
            if number:
                yield
            for share in piece:
                given[share.member_id] = bytes(share.assignment)
                size += len(share.assignment)
        # The generation's members are as they were as long as it awaits its assignment.
        if not self._is_awaited(group, generation):
            return
        if size > ASSIGNMENTS_BYTES_MAX:
            self._rebalances.refuse_assignment(group, ErrorCode.UNKNOWN_SERVER_ERROR, now)
            self._rebalances.prepare(group, now)
            return
        assignments = {member_id: given.get(member_id, b"") for member_id in group.members}
        missing = len(assignments.keys() - given.keys())
        if missing and given:
            log_event.warning_limited("the leader left members out", group=group.id, count=missing)
        record = yield from group_record(group, assignments)
        if not self._is_awaited(group, generation):
            return

        def done(error: ErrorCode) -> None:
            # Somebody may have come or gone meanwhile, so that this generation is over.
            if not self._is_awaited(group, generation):
                return
            if error:
                self._rebalances.refuse_assignment(group, error, now)
                self._rebalances.prepare(group, now)
            else:
                self._take_effect(group, assignments, now)

        if error := self._state.write([record], now, done):
            done(error)

    def _is_awaited(self, group: ClassicGroup, generation: int) -> bool:
        """Whether this generation still awaits its assignment. Where it does not, its members have been answered."""
        return (
            group.state is ClassicGroupState.COMPLETING_REBALANCE
            and group.generation == generation
            and not self._state.is_over
        )

    def _take_effect(self, group: ClassicGroup, assignments: dict[str, bytes], now: Now) -> None:
        for member in group.members.values():
            member.assignment = assignments.get(member.id, b"")
        group.move(ClassicGroupEvent.ASSIGNED, now.wall_ms)
        self._state.counts.rebalances += 1
        self._rebalances.hand_out(group, assignments, now)


def _fault(group: ClassicGroup, request: SyncGroupRequest) -> ErrorCode:
    if error := group.check_member(request.member_id, request.group_instance_id):
        return error
    if request.generation_id != group.generation:
        return ErrorCode.ILLEGAL_GENERATION
    if _differ(request.protocol_type, group.protocol_type) or _differ(request.protocol_name, group.protocol_name):
        return ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    return ErrorCode.NONE


def _differ(said: str | None, agreed: str | None) -> bool:
    """Clients before version 5 do not say."""
    return said is not None and agreed is not None and said != agreed
