"""Static members that come back: JoinGroup with an instance id that the group knows, and without a member id.

Such a member goes on under a new member id, and one with the old id is fenced. A stable group need not notice, unless
its members would vote otherwise by now: it is written with the new id, and the member is answered when that is
committed. The record holds the whole group. Of a large one it is made in steps, and one record is for all members
that came back before it was begun: a thousand that restart together are stored together.

    came back -> waiting -> (a record of this moment's group) -> written -> answered
"""

from __future__ import annotations

from typing import Final, NamedTuple

from ottla import logs
from ottla.coordinators.caller import Caller
from ottla.coordinators.journal import JournalRecord
from ottla.groups.classic.group import ClassicGroup
from ottla.groups.classic.member import ClassicMember, Protocols
from ottla.groups.classic.rebalance import Announcement, Rebalances, join_refused
from ottla.groups.classic.states import ClassicGroupState
from ottla.groups.classic.stored import group_record
from ottla.groups.state import Reply, ShardState, replied, session_key
from ottla.model import ErrorCode
from ottla.protocol.generated.join_group import JoinGroupResponse
from ottla.steps import Steps

log_event = logs.logger("groups")

#: From this version on a static leader that comes back is answered to leave the assignment as it is.
SKIP_ASSIGNMENT_SINCE: Final = 9


class TimeOuts(NamedTuple):
    rebalance_ms: int
    session_ms: int


class Return(NamedTuple):
    """What a static member that comes back asks for."""

    group: ClassicGroup
    instance_id: str
    #: Which it is to have from now on.
    new_id: str
    protocols: Protocols
    timeouts: TimeOuts
    caller: Caller
    reply: Reply[JoinGroupResponse]


class _ReturnedMember(NamedTuple):
    """A member of a stable group that has its new id, which is not stored yet."""

    asked: Return
    member: ClassicMember
    generation: int
    #: As they were before.
    old_id: str
    protocols: Protocols
    timeouts: TimeOuts
    leader_id: str

    @property
    def is_waiting(self) -> bool:
        """Otherwise it was answered, or takes part in a rebalance by now."""
        group = self.asked.group
        return (
            group.join_replies.get(self.member.id) is self.asked.reply
            and group.state is ClassicGroupState.STABLE
            and group.generation == self.generation
        )


class Returns:
    __slots__ = ("_rebalances", "_state", "_waiting")

    def __init__(self, state: ShardState, rebalances: Rebalances) -> None:
        self._state = state
        self._rebalances = rebalances
        #: Of large groups whose record is being made, by group: for the next one.
        self._waiting: dict[ClassicGroup, list[_ReturnedMember]] = {}

    def come_back(self, asked: Return) -> None:
        group, now = asked.group, asked.caller.now
        old_id = group.static_members[asked.instance_id]
        member = group.members[old_id]
        log_event.info(
            "a static member came back", group=group.id, instance=asked.instance_id, member=asked.new_id, before=old_id
        )
        is_noticed = group.state is not ClassicGroupState.STABLE or not _keeps_the_vote(group, member, asked.protocols)
        returned = self._replace(asked, member, old_id)
        if not is_noticed:
            self._store(returned)
        elif group.state is ClassicGroupState.PREPARING_REBALANCE:
            self._rebalances.complete_if_due(group, now)
        else:
            self._rebalances.prepare(group, now)

    def _replace(self, asked: Return, member: ClassicMember, old_id: str) -> _ReturnedMember:
        group, now = asked.group, asked.caller.now
        timeouts = TimeOuts(member.rebalance_timeout_ms, member.session_timeout_ms)
        before = _ReturnedMember(
            asked, member, group.generation, old_id, member.protocols, timeouts, group.leader_id or ""
        )
        self._rebalances.answer_waiting(group, member, ErrorCode.FENCED_INSTANCE_ID, old_id)
        self._state.timers.cancel(session_key(group.id, old_id))
        group.update(member, asked.protocols, *asked.timeouts)
        group.replace_static(old_id, asked.new_id)
        group.await_join(member, asked.reply)
        self._rebalances.restart_session(group, member, now)
        return before

    # Stable groups.

    def _store(self, returned: _ReturnedMember) -> None:
        group = returned.asked.group
        waiting = self._waiting.get(group)
        if waiting is not None:
            waiting.append(returned)
            return
        self._waiting[group] = [returned]
        self._state.do(self._stored(group))

    def _stored(self, group: ClassicGroup) -> Steps[None]:
        """One record after another, as long as somebody waits for one."""
        try:
            while served := [one for one in self._waiting[group] if one.is_waiting]:
                self._waiting[group] = []
                # A member that comes back meanwhile may stand in it with either id: another record follows.
                record = yield from group_record(group)
                served = [one for one in served if one.is_waiting]
                if served and not self._state.is_over:
                    self._write(group, record, served)
        finally:
            del self._waiting[group]

    def _write(self, group: ClassicGroup, record: JournalRecord, served: list[_ReturnedMember]) -> None:
        def done(error: ErrorCode) -> None:
            for one in served:
                if one.is_waiting:
                    del group.join_replies[one.member.id]
                    if error:
                        one.asked.reply(join_refused(error))
                    else:
                        self._answer(one)

        error = self._state.write([record], served[-1].asked.caller.now, done)
        if error:
            for one in reversed(served):
                self._undo(one)
                one.asked.reply(join_refused(error))

    def _undo(self, one: _ReturnedMember) -> None:
        """Nothing was written: a restart would find the member with its old id."""
        group, new_id = one.asked.group, one.member.id
        del group.join_replies[new_id]
        self._state.timers.cancel(session_key(group.id, new_id))
        group.replace_static(new_id, one.old_id)
        group.update(one.member, one.protocols, *one.timeouts)
        self._rebalances.restart_session(group, one.member, one.asked.caller.now)

    def _answer(self, one: _ReturnedMember) -> None:
        asked = one.asked
        is_leader = asked.group.leader_id == one.member.id
        may_skip = asked.caller.version >= SKIP_ASSIGNMENT_SINCE
        announcement = Announcement(asked.group, names_members=is_leader and may_skip)

        def response() -> Steps[JoinGroupResponse]:
            found = yield from announcement.to(one.member.id)
            if may_skip:
                found.skip_assignment = is_leader
            else:
                # A client of old that finds itself the leader would assign anew: it is answered the leader that it had.
                found.leader = one.leader_id
            return found

        self._state.do(replied(response(), asked.reply))


def _keeps_the_vote(group: ClassicGroup, member: ClassicMember, protocols: Protocols) -> bool:
    before = member.protocols
    timeouts = (member.rebalance_timeout_ms, member.session_timeout_ms)
    group.update(member, protocols, *timeouts)
    vote = group.vote()
    group.update(member, before, *timeouts)
    return vote == group.protocol_name
