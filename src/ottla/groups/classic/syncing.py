"""SyncGroup: the leader says who gets what; the others fetch their share."""

from __future__ import annotations

from typing import Final

from ottla import logs
from ottla.groups.caller import Caller, Now
from ottla.groups.classic.group import ClassicGroup
from ottla.groups.classic.rebalance import Rebalances, sync_refused, synced_response
from ottla.groups.classic.states import ClassicGroupEvent, ClassicGroupState
from ottla.groups.classic.stored import group_record
from ottla.groups.state import Reply, ShardState
from ottla.model import ErrorCode
from ottla.protocol.generated.sync_group import SyncGroupRequest, SyncGroupResponse

log_event = logs.logger("groups")

#: What a leader hands out to all members, which is copied, encoded and written in one piece of some ten milliseconds:
#: sixteen times what a record of the group can hold, unless the offsets topic takes larger batches than it does by
#: default. It is refused with the error of what is too large for a batch.
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
                if member.sync_reply is not None:
                    # Its own earlier attempt, whose connection is gone.
                    member.sync_reply(sync_refused(ErrorCode.REBALANCE_IN_PROGRESS))
                member.sync_reply = reply
                self._rebalances.synced(group, member.id)
                if group.leader_id == member.id:
                    self._store(group, request, caller.now)
            case _:
                self._rebalances.synced(group, member.id)
                reply(synced_response(group, member))

    def _store(self, group: ClassicGroup, request: SyncGroupRequest, now: Now) -> None:
        """Shares of members who left are ignored; members without a share get an empty one."""
        if sum(len(entry.assignment) for entry in request.assignments) > ASSIGNMENTS_BYTES_MAX:
            self._rebalances.refuse_assignment(group, ErrorCode.UNKNOWN_SERVER_ERROR, now)
            self._rebalances.prepare(group, now)
            return
        given = {entry.member_id: bytes(entry.assignment) for entry in request.assignments}
        assignments = {member_id: given.get(member_id, b"") for member_id in group.members}
        missing = [member_id for member_id in group.members if member_id not in given]
        if missing and given:
            log_event.warning_limited("the leader left members out", group=group.id, count=len(missing))
        generation = group.generation

        def done(error: ErrorCode) -> None:
            # Somebody may have come or gone meanwhile, so that this generation is over.
            if group.state is not ClassicGroupState.COMPLETING_REBALANCE or group.generation != generation:
                return
            if error:
                self._rebalances.refuse_assignment(group, error, now)
                self._rebalances.prepare(group, now)
            else:
                self._take_effect(group, assignments, now)

        if error := self._state.write([group_record(group, assignments)], now, done):
            done(error)

    def _take_effect(self, group: ClassicGroup, assignments: dict[str, bytes], now: Now) -> None:
        for member in group.members.values():
            member.assignment = assignments.get(member.id, b"")
        group.move(ClassicGroupEvent.ASSIGNED, now.wall_ms)
        self._state.counts.rebalances += 1
        self._rebalances.answer_syncs(group, ErrorCode.NONE, now)


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
