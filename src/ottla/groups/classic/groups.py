"""Classic groups of one coordinator: the kind of group (`groups.group.GroupKind`) that its own protocol makes."""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from ottla.coordinators.caller import Caller, Now
from ottla.groups.classic.group import ClassicGroup
from ottla.groups.classic.joining import JoinRequests
from ottla.groups.classic.leaving import Leaving
from ottla.groups.classic.rebalance import Rebalances
from ottla.groups.classic.states import ClassicGroupEvent
from ottla.groups.classic.stored import group_from
from ottla.groups.classic.syncing import Syncing
from ottla.groups.records.group_records import read_group_key, read_group_value
from ottla.groups.state import Reply, ShardState
from ottla.model import ErrorCode
from ottla.protocol.generated.heartbeat import HeartbeatRequest, HeartbeatResponse
from ottla.protocol.generated.join_group import JoinGroupRequest, JoinGroupResponse
from ottla.protocol.generated.leave_group import LeaveGroupRequest, LeaveGroupResponse
from ottla.protocol.generated.sync_group import SyncGroupRequest, SyncGroupResponse
from ottla.steps import Steps, pieces

#: Members whose sessions are started without a pause when a partition is loaded.
STARTED_AT_ONCE_MAX: Final = 200


class ClassicGroups:
    """What the requests are about they find themselves: while one is served its group may become another."""

    def __init__(self, state: ShardState) -> None:
        self._state = state
        self._rebalances = Rebalances(state)
        self._joining = JoinRequests(state, self._rebalances)
        self._syncing = Syncing(state, self._rebalances)
        self._leaving = Leaving(state, self._rebalances)

    def join(
        self,
        _group: ClassicGroup | None,
        caller: Caller,
        request: JoinGroupRequest,
        reply: Reply[JoinGroupResponse],
    ) -> None:
        """The group may be one that there is not yet."""
        self._joining.join(caller, request, reply)

    def sync(
        self,
        _group: ClassicGroup | None,
        caller: Caller,
        request: SyncGroupRequest,
        reply: Reply[SyncGroupResponse],
    ) -> None:
        self._syncing.sync(caller, request, reply)

    def classic_heartbeat(
        self,
        _group: ClassicGroup | None,
        caller: Caller,
        request: HeartbeatRequest,
        reply: Reply[HeartbeatResponse],
    ) -> None:
        self._leaving.heartbeat(caller, request, reply)

    def leave(
        self,
        _group: ClassicGroup | None,
        caller: Caller,
        request: LeaveGroupRequest,
        reply: Reply[LeaveGroupResponse],
    ) -> Steps[None]:
        return self._leaving.leave(caller, request, reply)

    def members_with_shares(self, group: ClassicGroup | None) -> Collection[str]:
        return () if group is None else group.members.keys()

    # A coordinator's life.

    def replay(self, _kind: int, key: bytes, value: bytes | None) -> Steps[None]:
        group_id = read_group_key(key)
        if value is not None:
            self._state.groups[group_id] = yield from group_from(group_id, (yield from read_group_value(value)))
        elif self._rebalances.classic(group_id) is not None:
            del self._state.groups[group_id]

    def loaded(self, group: ClassicGroup, now: Now) -> Steps[None]:
        if not group.members:
            return
        for members in pieces(group.members.values(), STARTED_AT_ONCE_MAX):
            for member in members:
                self._rebalances.restart_session(group, member, now)
            yield
        if len(group.members) > self._state.settings().size_max:
            # So that its members may commit before some of them are turned away.
            self._rebalances.prepare(group, now)

    def deleted(self, group: ClassicGroup, now: Now) -> None:
        self._rebalances.cancel_timers(group)
        group.move(ClassicGroupEvent.REMOVED, now.wall_ms)

    def given_up(self, group: ClassicGroup, error: ErrorCode, now: Now) -> Steps[None]:
        yield from self._rebalances.refused(group, error)
        group.move(ClassicGroupEvent.REMOVED, now.wall_ms)

    # Groups that change their protocol.

    def upgraded(self, group: ClassicGroup, now: Now) -> None:
        """It is a consumer group now: members that wait in the classic one join again, and find the other."""
        self._rebalances.cancel_timers(group)
        self._state.do(self._rebalances.refused(group, ErrorCode.REBALANCE_IN_PROGRESS))
        group.move(ClassicGroupEvent.REMOVED, now.wall_ms)

    def downgraded(self, group: ClassicGroup, must_rebalance: bool, now: Now) -> None:
        """It was a consumer group, and stands among the groups already."""
        for member in group.members.values():
            self._rebalances.restart_session(group, member, now)
        if must_rebalance:
            self._rebalances.prepare(group, now)
