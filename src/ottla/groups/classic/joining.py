"""JoinGroup: who may enter, under which id, and what it sets off."""

from __future__ import annotations

from typing import Final

from ottla.coordinators.caller import Caller
from ottla.groups.classic.group import GROUP_BYTES_MAX, ClassicGroup, size_of
from ottla.groups.classic.member import ClassicMember, Protocols
from ottla.groups.classic.rebalance import NEW_MEMBER_JOIN_TIMEOUT_MS, Rebalances, join_refused
from ottla.groups.classic.returning import Return, Returns, TimeOuts
from ottla.groups.classic.states import ClassicGroupState
from ottla.groups.state import Reply, ShardState, session_key
from ottla.model import ErrorCode
from ottla.protocol.generated.join_group import JoinGroupRequest, JoinGroupResponse

#: From this version on a dynamic member first asks for an id, so that a client that joins and dies leaves nothing.
KNOWN_MEMBER_ID_SINCE: Final = 4


class JoinRequests:
    __slots__ = ("rebalances", "returns", "state")

    def __init__(self, state: ShardState, rebalances: Rebalances) -> None:
        self.state = state
        self.rebalances = rebalances
        self.returns = Returns(state, rebalances)

    def join(self, caller: Caller, request: JoinGroupRequest, reply: Reply[JoinGroupResponse]) -> None:
        """For a group that is classic or not there yet."""
        group = self.rebalances.classic(request.group_id)
        member_id = request.member_id
        if group is None:
            if member_id:
                reply(join_refused(ErrorCode.UNKNOWN_MEMBER_ID, member_id))
                return
            group = ClassicGroup(request.group_id, caller.now.wall_ms)
        attempt = _Attempt(self, caller, group, request, reply)
        if not self._has_room(group, member_id) or not _has_space(group, member_id, attempt.protocols):
            attempt.turn_away()
        elif not group.supports(request.protocol_type, attempt.protocols):
            reply(join_refused(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, member_id))
        else:
            self.state.groups.setdefault(group.id, group)
            if member_id:
                attempt.with_id()
            else:
                attempt.without_id()

    def _has_room(self, group: ClassicGroup, member_id: str) -> bool:
        size_max = self.state.settings().size_max
        match group.state:
            case ClassicGroupState.PREPARING_REBALANCE:
                member = group.members.get(member_id)
                if member is not None and member.id in group.join_replies:
                    return True
                return len(group.join_replies) < size_max
            case ClassicGroupState.COMPLETING_REBALANCE | ClassicGroupState.STABLE:
                return member_id in group.members or len(group.members) < size_max
        return True


def _has_space(group: ClassicGroup, member_id: str, protocols: Protocols) -> bool:
    member = group.members.get(member_id)
    before = 0 if member is None else size_of(member.protocols)
    return group.metadata_bytes - before + size_of(protocols) <= GROUP_BYTES_MAX


class _Attempt:
    """One JoinGroup."""

    __slots__ = ("_caller", "_group", "_now", "_rebalances", "_reply", "_request", "_returns", "_state", "protocols")

    def __init__(
        self,
        requests: JoinRequests,
        caller: Caller,
        group: ClassicGroup,
        request: JoinGroupRequest,
        reply: Reply[JoinGroupResponse],
    ) -> None:
        self._state = requests.state
        self._rebalances = requests.rebalances
        self._returns = requests.returns
        self._caller = caller
        self._now = caller.now
        self._group = group
        self._request = request
        self._reply = reply
        # Copied: a request's bytes may lie in a buffer that is used again. A name said twice counts once.
        named: dict[str, bytes] = {}
        for protocol in request.protocols:
            named.setdefault(protocol.name, bytes(protocol.metadata))
        self.protocols: Protocols = tuple(named.items())

    def turn_away(self) -> None:
        """The group is full. A member that was in it, and did not join again soon enough, loses its place."""
        group, member_id = self._group, self._request.member_id
        member = group.members.get(member_id)
        if member is not None:
            self._rebalances.drop(group, member, ErrorCode.GROUP_MAX_SIZE_REACHED)
        else:
            group.remove(member_id)
            self._state.timers.cancel(session_key(group.id, member_id))
        self._reply(join_refused(ErrorCode.GROUP_MAX_SIZE_REACHED))
        if member is None:
            self._rebalances.complete_if_due(group, self._now)
        else:
            self._rebalances.prepare_or_complete(group, self._now)

    def without_id(self) -> None:
        group, instance_id = self._group, self._request.group_instance_id
        if instance_id is not None:
            member_id = self._state.new_member_id(instance_id)
            if instance_id in group.static_members:
                timeouts = TimeOuts(self._rebalance_timeout_ms(), self._request.session_timeout_ms)
                self._returns.come_back(
                    Return(group, instance_id, member_id, self.protocols, timeouts, self._caller, self._reply)
                )
            else:
                self._add(member_id)
            return
        member_id = self._state.new_member_id(self._caller.client_id)
        if self._caller.version < KNOWN_MEMBER_ID_SINCE:
            self._add(member_id)
            return
        if (forgotten := group.add_pending(member_id)) is not None:
            self._state.timers.cancel(session_key(group.id, forgotten))
        self._rebalances.start_session(group, member_id, self._request.session_timeout_ms, self._now)
        self._reply(join_refused(ErrorCode.MEMBER_ID_REQUIRED, member_id))

    def with_id(self) -> None:
        group, request = self._group, self._request
        member_id = request.member_id
        if member_id in group.pending_join:
            if request.group_instance_id is None:
                self._add(member_id)
            else:
                # Ids are given out to dynamic members only.
                self._reply(join_refused(ErrorCode.UNKNOWN_SERVER_ERROR))
            return
        if error := group.check_member(member_id, request.group_instance_id):
            self._reply(join_refused(error, member_id))
            return
        member = group.members[member_id]
        match group.state:
            case ClassicGroupState.PREPARING_REBALANCE:
                self._join_again(member)
            case ClassicGroupState.COMPLETING_REBALANCE if member.protocols == self.protocols:
                # It has not heard of the generation that it is in: the answer got lost.
                self._rebalances.answer_joined(group, member, self._reply)
            case ClassicGroupState.STABLE if group.leader_id != member_id and member.protocols == self.protocols:
                self._rebalances.answer_joined(group, member, self._reply)
            case ClassicGroupState.COMPLETING_REBALANCE | ClassicGroupState.STABLE:
                # It wants something else than before; or it is the leader, which sees topics and partitions change.
                self._join_again(member)
            case _:
                self._reply(join_refused(ErrorCode.UNKNOWN_MEMBER_ID, member_id))

    def _add(self, member_id: str) -> None:
        group, request, caller = self._group, self._request, self._caller
        member = ClassicMember(
            member_id=member_id,
            instance_id=request.group_instance_id,
            client_id=caller.client_id,
            client_host=caller.host,
            session_timeout_ms=request.session_timeout_ms,
            rebalance_timeout_ms=self._rebalance_timeout_ms(),
            protocols=self.protocols,
        )
        member.new_in = group.generation
        if group.state is ClassicGroupState.PREPARING_REBALANCE and group.previous_state is ClassicGroupState.EMPTY:
            group.new_member_came = True
        if not group.members:
            group.protocol_type = request.protocol_type
        group.add(member)
        group.await_join(member, self._reply)
        self._rebalances.start_session(group, member_id, NEW_MEMBER_JOIN_TIMEOUT_MS, self._now)
        self._rebalances.prepare_or_complete(group, self._now)

    def _join_again(self, member: ClassicMember) -> None:
        group = self._group
        group.update(member, self.protocols, self._rebalance_timeout_ms(), self._request.session_timeout_ms)
        earlier = group.await_join(member, self._reply)
        if earlier is not None:
            earlier(join_refused(ErrorCode.REBALANCE_IN_PROGRESS, member.id))
        self._rebalances.prepare_or_complete(group, self._now)

    def _rebalance_timeout_ms(self) -> int:
        # Version 0 has one time-out for both.
        timeout_ms = self._request.rebalance_timeout_ms
        return self._request.session_timeout_ms if self._caller.version == 0 or timeout_ms < 0 else timeout_ms
