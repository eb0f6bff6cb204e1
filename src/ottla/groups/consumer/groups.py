"""Consumer groups of one coordinator: from requests to decisions, from decisions to journal, memory and timers."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from typing import Final, Protocol, TypeVar

from ottla.coordinators.caller import Caller, Now
from ottla.coordinators.journal import JournalRecord
from ottla.groups.classic.group import ClassicGroup
from ottla.groups.classic.rebalance import join_refused
from ottla.groups.classic.states import ClassicGroupState
from ottla.groups.consumer import checks, classic_members, leaving, migration, records, replay
from ottla.groups.consumer.answering import AnswerWhenAssigned, AnswerWhenWritten, RefusalCall
from ottla.groups.consumer.assigning import Assignments
from ottla.groups.consumer.decision import Decision, NeededShare, RequestRefused, TimerKind, TimerWish
from ottla.groups.consumer.describe import described
from ottla.groups.consumer.group import ConsumerGroup, consumer_group
from ottla.groups.consumer.heartbeat import heartbeat
from ottla.groups.consumer.heartbeat_answer import HeartbeatAnswer
from ottla.groups.consumer.leaving import Downgrade, removed
from ottla.groups.consumer.member import JOINING
from ottla.groups.consumer.member_change import HeartbeatContext, MemberChange
from ottla.groups.consumer.patterns import TopicPatterns
from ottla.groups.consumer.prepared import PreparedHeartbeat, TopicPreparation, prepared
from ottla.groups.consumer.share import LongShares, decided
from ottla.groups.consumer.states import MemberState
from ottla.groups.consumer.topics import TopicHashes
from ottla.groups.records.kinds import kind_of
from ottla.groups.state import Reply, ShardState, made_at_once, replied
from ottla.model import ErrorCode
from ottla.protocol.errors import EncodeError
from ottla.protocol.generated.consumer_group_describe import DescribedGroup
from ottla.protocol.generated.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from ottla.protocol.generated.heartbeat import HeartbeatRequest, HeartbeatResponse
from ottla.protocol.generated.join_group import JoinGroupRequest, JoinGroupResponse
from ottla.protocol.generated.leave_group import LeaveGroupRequest, LeaveGroupResponse
from ottla.protocol.generated.sync_group import SyncGroupRequest, SyncGroupResponse
from ottla.protocol.primitives import STRING_BYTES_MAX
from ottla.steps import Steps, at_once, pieces

T = TypeVar("T")

#: A member's timer whose decision could not be written is tried again.
_RETRY_MS: Final = 500
_KEY_START: Final = 2
#: A record that is longer is not read back when it has just been made.
READ_BYTES_MAX: Final = 4_096
_OF_A_MEMBER: Final = frozenset({records.MEMBER, records.CURRENT})
#: Members whose sessions are started without a pause when a partition is loaded.
_STARTED_AT_ONCE_MAX: Final = 200


class ClassicSide(Protocol):
    """What the classic groups of the same coordinator do when a group changes its protocol."""

    def join(self, group: None, caller: Caller, request: JoinGroupRequest, reply: Reply[JoinGroupResponse]) -> None: ...

    def leave(
        self, group: None, caller: Caller, request: LeaveGroupRequest, reply: Reply[LeaveGroupResponse]
    ) -> Steps[None]: ...

    def upgraded(self, group: ClassicGroup, now: Now) -> None:
        """Nobody calls on this group any more: members that wait in it are answered to join again, its timers end."""
        ...

    def downgraded(self, group: ClassicGroup, must_rebalance: bool, now: Now) -> None:
        """This group is the coordinator's now: its members' sessions begin, and a rebalance if there must be one."""
        ...


class ConsumerGroups:
    def __init__(
        self,
        state: ShardState,
        classic: ClassicSide,
        patterns: TopicPatterns,
        hashes: TopicHashes,
        assignments: Assignments,
        work_at_once_max: int,
    ) -> None:
        self._state = state
        self._classic = classic
        self._patterns = patterns
        self._hashes = hashes
        self._assignments = assignments
        self._preparation = TopicPreparation(state.metadata, patterns, hashes)
        self._shares = LongShares(state)
        self._work_at_once_max = work_at_once_max

    def unload(self, error: ErrorCode) -> None:
        """Answers all members that wait."""
        self._assignments.close(error)

    # The newer protocol.

    def prepare(self, request: ConsumerGroupHeartbeatRequest) -> Steps[PreparedHeartbeat]:
        """What takes long and decides nothing."""
        group = consumer_group(self._state.groups.get(request.group_id))
        return self._preparation.of(request, group)

    def heartbeat(
        self,
        caller: Caller,
        request: ConsumerGroupHeartbeatRequest,
        reply: Reply[ConsumerGroupHeartbeatResponse],
        made: PreparedHeartbeat | None,
    ) -> None:
        def answered(answer: HeartbeatAnswer) -> None:
            self._state.do(replied(answer.made(), reply))

        def refused(error: ErrorCode, message: str | None) -> None:
            reply(ConsumerGroupHeartbeatResponse(error_code=error, error_message=message))

        world = self._world(caller, request.group_id)
        try:
            checks.check_request(request, caller.version, world.config)
            made = made or at_once(prepared(request))
            known = self._state.groups.get(request.group_id)
            is_joining = request.member_epoch == JOINING
            if request.member_epoch < JOINING:
                group = self._consumer_group(request.group_id)
                decision = leaving.leave(group, request, world, caller.now.wall_ms)
            elif is_joining and isinstance(known, ClassicGroup):  # which becomes a consumer group
                self._join_classic(known, caller, request, made, world, answered, refused)
                return
            else:
                group = self._consumer_group(request.group_id, or_new=is_joining)
                decision = heartbeat(group, request, made, caller, world)
        except RequestRefused as fault:
            refused(fault.error, fault.message)
            return
        except EncodeError as fault:
            refused(_too_long(request.group_id), str(fault))
            return
        self._carry_out(group, decision, caller.now, answered, refused)

    def _join_classic(
        self,
        classic: ClassicGroup,
        caller: Caller,
        request: ConsumerGroupHeartbeatRequest,
        made: PreparedHeartbeat,
        world: HeartbeatContext,
        reply: Reply[HeartbeatAnswer],
        refused: RefusalCall,
    ) -> None:
        """A member of the newer protocol comes to a classic group, which becomes a consumer group. RequestRefused."""
        group = ConsumerGroup(classic.id, self._state.metadata)
        if classic.state is ClassicGroupState.EMPTY:
            conversion = list(classic.tombstones())
        else:
            migration.check_upgrade(classic, world.config)
            conversion = migration.from_classic(classic, self._state.metadata, self._hashes)
            _replayed(group, conversion)
        decision = heartbeat(group, request, made, caller, world)
        timers = [
            TimerWish(TimerKind.SESSION, member.id, member.classic.session_timeout_ms)
            for member in group.members.values()
            if member.classic is not None
        ]

        answer = self._answer(classic.id, decision, caller.now, reply, refused)
        written = [*conversion, *decision.records]
        error = self._state.write(written, caller.now, answer.written)
        if error:
            answer.written(error)
            return
        del self._state.groups[classic.id]
        self._classic.upgraded(classic, caller.now)
        for record in written:
            self._apply(record)
        self._note_heard(classic.id, decision)
        self._set_timers(classic.id, [*timers, *decision.timers], caller.now)
        answer.applied()

    def describe(self, group_id: str) -> Steps[DescribedGroup]:
        group = consumer_group(self._state.groups.get(group_id))
        if group is not None:
            return (yield from described(group, self._state.metadata, self._state.settings()))
        missing = f"There is no consumer group {group_id}."
        return DescribedGroup(group_id=group_id, error_code=ErrorCode.GROUP_ID_NOT_FOUND, error_message=missing)

    # Members of consumer groups that speak the classic protocol.

    def join(
        self, group: ConsumerGroup, caller: Caller, request: JoinGroupRequest, reply: Reply[JoinGroupResponse]
    ) -> None:
        if not group.members:
            if error := self._reopen_as_classic(group, request, caller.now):
                reply(join_refused(error, request.member_id))
            else:
                self._classic.join(None, caller, request, reply)
            return

        def refused(error: ErrorCode, _message: str | None) -> None:
            if error is ErrorCode.GROUP_ID_NOT_FOUND:
                # While it waited for its share the group became a classic one, in which it is to join again. Clients of
                # the classic protocol take the error itself for a fatal one.
                error = ErrorCode.REBALANCE_IN_PROGRESS
            reply(JoinGroupResponse(error_code=error, protocol_type=None, protocol_name=None, generation_id=-1))

        try:
            decision = classic_members.join(group, request, caller, self._world(caller, group.id))
        except RequestRefused as fault:
            refused(fault.error, fault.message)
            return
        except EncodeError as fault:
            refused(_too_long(request.group_id), str(fault))
            return
        self._carry_out(group, decision, caller.now, reply, refused)

    def _reopen_as_classic(self, group: ConsumerGroup, request: JoinGroupRequest, now: Now) -> ErrorCode:
        """An empty consumer group becomes whatever the next member wants it to be. Its offsets stay."""
        if request.member_id:
            return ErrorCode.UNKNOWN_MEMBER_ID
        if not request.protocol_type or not request.protocols:
            return ErrorCode.INCONSISTENT_GROUP_PROTOCOL
        # What comes behind it is committed later still: nobody waits for it.
        if error := self._state.write(group.tombstones(), now, lambda _: None):
            return error
        del self._state.groups[group.id]
        return ErrorCode.NONE

    def sync(
        self, group: ConsumerGroup, caller: Caller, request: SyncGroupRequest, reply: Reply[SyncGroupResponse]
    ) -> None:
        def refused(error: ErrorCode, _message: str | None) -> None:
            reply(SyncGroupResponse(error_code=error))

        try:
            decision = classic_members.sync(group, request, self._world(caller, group.id))
        except RequestRefused as fault:
            refused(fault.error, fault.message)
            return
        self._carry_out(group, decision, caller.now, reply, refused)

    def classic_heartbeat(
        self, group: ConsumerGroup, caller: Caller, request: HeartbeatRequest, reply: Reply[HeartbeatResponse]
    ) -> None:
        def refused(error: ErrorCode, _message: str | None) -> None:
            reply(HeartbeatResponse(error_code=error))

        try:
            decision = classic_members.heartbeat(group, request)
        except RequestRefused as fault:
            refused(fault.error, fault.message)
            return
        self._carry_out(group, decision, caller.now, reply, refused)

    def leave(
        self, group: ConsumerGroup, caller: Caller, request: LeaveGroupRequest, reply: Reply[LeaveGroupResponse]
    ) -> Steps[None]:
        def refused(error: ErrorCode, _message: str | None) -> None:
            reply(LeaveGroupResponse(error_code=error))

        answers, gone = yield from classic_members.leavers(group, request)
        if self._state.groups.get(group.id) is not group:
            # It became a classic group meanwhile, with the members that it had.
            yield from self._classic.leave(None, caller, request, reply)
            return
        # As they are by now, where they have changed meanwhile; one that has left is not taken out a second time.
        still = [now for member in gone if (now := group.members.get(member.id)) is not None]
        response = LeaveGroupResponse(members=answers)
        decision = removed(group, still, response, self._world(caller, group.id), caller.now.wall_ms)
        self._carry_out(group, decision, caller.now, reply, refused)

    def members_with_shares(self, _group: ConsumerGroup) -> Collection[str]:
        """The coordinator itself hands them out."""
        return ()

    # What happens beside requests.

    def replay(self, kind: int, key: bytes, value: bytes | None) -> Steps[None]:
        yield from ()
        self._replay(kind, key, value)

    def _replay(self, kind: int, key: bytes, value: bytes | None) -> None:
        """Applies a stored record of one of `records.KEY_TYPES`. BadRecord if it is none; then nothing has changed."""
        group_id, decoded = replay.group_of(kind, key, _KEY_START)
        groups = self._state.groups
        group = consumer_group(groups.get(group_id))
        if group is None:
            if value is None:
                return
            group = ConsumerGroup(group_id, self._state.metadata)
        if replay.apply(group, kind, decoded, value):
            groups[group_id] = group
        else:
            del groups[group_id]

    def loaded(self, group: ConsumerGroup, now: Now) -> Steps[None]:
        """All records were replayed: every member has a session's time to be heard of."""
        session_ms = self._state.settings_of(group.id).consumer_session_timeout_ms
        for members in pieces(group.members.values(), _STARTED_AT_ONCE_MAX):
            wishes = []
            for member in members:
                after_ms = session_ms if member.classic is None else member.classic.session_timeout_ms
                wishes.append(TimerWish(TimerKind.SESSION, member.id, after_ms))
                if member.classic is None and member.state is MemberState.UNREVOKED_PARTITIONS:
                    rebalance_ms = member.rebalance_timeout_ms
                    wishes.append(TimerWish(TimerKind.REBALANCE, member.id, rebalance_ms, epoch=member.epoch))
            self._set_timers(group.id, wishes, now)
            yield

    def deleted(self, group: ConsumerGroup, now: Now) -> None:
        """It has no members, and so no timers."""

    def given_up(self, group: ConsumerGroup, error: ErrorCode, now: Now) -> Steps[None]:
        """Members wait for targets, which `unload` has answered, and for shares, whose steps find that it is over."""
        return made_at_once(None)

    # From a decision on.

    def _carry_out(
        self, group: ConsumerGroup, decision: Decision[T], now: Now, reply: Reply[T], refused: RefusalCall
    ) -> ErrorCode:
        """Writes, applies, and answers once it is committed. An error: nothing has changed, and it was answered."""

        answer = self._answer(group.id, decision, now, reply, refused)
        if not decision.records:
            self._set_timers(group.id, decision.timers, now)
            # The answer may show what was decided a moment ago and is not committed yet.
            self._state.journal.when_settled(answer.written)
            answer.applied()
            return ErrorCode.NONE
        error = self._state.write(decision.records, now, answer.written)
        if error:
            # Whose request it was is alive all the same.
            sessions = (wish for wish in decision.timers if wish.kind is TimerKind.SESSION)
            known = [wish for wish in sessions if wish.after_ms is not None and wish.member_id in group.members]
            self._set_timers(group.id, known, now)
            answer.written(error)
            return error
        if isinstance(decision, Downgrade):
            self._become_classic(group, decision, now)
            return ErrorCode.NONE
        self._apply_all(group.id, decision)
        self._set_timers(group.id, decision.timers, now)
        answer.applied()
        return ErrorCode.NONE

    def _answer(
        self, group_id: str, decision: Decision[T], now: Now, reply: Reply[T], refused: RefusalCall
    ) -> AnswerWhenWritten | AnswerWhenAssigned:
        """What is called with the end of a decision's write."""
        if decision.share is not None:
            share = self._shared(group_id, decision.share, now, reply, refused)
            return AnswerWhenAssigned(
                lambda: self._shares.begin(group_id, share), refused, lambda done: done(ErrorCode.NONE)
            )
        if decision.then is None:
            return AnswerWhenWritten(lambda: reply(decision.response), refused)
        then = decision.then

        def go_on() -> None:
            group = consumer_group(self._state.groups.get(group_id))
            try:
                if group is None:
                    raise _no_group(group_id)
                following = then(group)
            except RequestRefused as fault:
                refused(fault.error, fault.message)
                return
            self._carry_out(group, following, now, reply, refused)

        return AnswerWhenAssigned(go_on, refused, lambda done: self._assignments.when_assigned(group_id, now, done))

    def _shared(
        self, group_id: str, share: NeededShare[T], now: Now, reply: Reply[T], refused: RefusalCall
    ) -> Steps[None]:
        """Decides on what a member is to have."""

        def group_now() -> ConsumerGroup:
            if self._state.is_over:
                raise RequestRefused(ErrorCode.NOT_COORDINATOR, "The group is another coordinator's by now.")
            return self._consumer_group(group_id)

        def decide(group: ConsumerGroup, change: MemberChange) -> bool:
            return not self._carry_out(group, share.decision(change), now, reply, refused)

        try:
            yield from decided(share.steps, group_now, decide)
        except RequestRefused as fault:
            refused(fault.error, fault.message)

    def _become_classic(self, group: ConsumerGroup, decision: Downgrade[T], now: Now) -> None:
        for member_id in group.members:
            for kind in TimerKind:
                self._state.timers.cancel(_timer_key(group.id, kind, member_id))
        self._state.groups[group.id] = decision.classic
        self._classic.downgraded(decision.classic, decision.must_rebalance, now)

    def _apply_all(self, group_id: str, decision: Decision[T]) -> None:
        """As if the records were read again, but what is known of the member that the decision is about."""
        member, is_left_out = decision.member, False
        if decision.is_claimed and member is not None:
            group = consumer_group(self._state.groups[group_id])
            assert group is not None
            group.put_claimed(member)
            return
        for record in decision.records:
            value = record.value
            is_long = value is not None and len(value) > READ_BYTES_MAX
            if is_long and member is not None and kind_of(record.key) in _OF_A_MEMBER:
                is_left_out = True
            else:
                self._apply(record)
        if member is not None and is_left_out:
            group = consumer_group(self._state.groups[group_id])
            assert group is not None
            group.put_member(member)
        self._note_heard(group_id, decision)

    def _note_heard(self, group_id: str, decision: Decision[T]) -> None:
        group = consumer_group(self._state.groups.get(group_id))
        if decision.heard is not None and group is not None:
            member_id, token = decision.heard
            group.heard[member_id] = token

    def _apply(self, record: JournalRecord) -> None:
        kind = kind_of(record.key)
        if kind in records.KEY_TYPES:
            self._replay(kind, record.key, record.value)

    def _set_timers(self, group_id: str, wishes: Iterable[TimerWish], now: Now) -> None:
        timers = self._state.timers
        for wish in wishes:
            key = _timer_key(group_id, wish.kind, wish.member_id)
            if wish.after_ms is None:
                timers.cancel(key)
            elif not wish.if_absent or key not in timers:
                timers.set(key, now.monotonic_ms + wish.after_ms, self._due(group_id, wish))

    def _due(self, group_id: str, wish: TimerWish) -> Callable[[Now], None]:
        def due(now: Now) -> None:
            group = consumer_group(self._state.groups.get(group_id))
            if group is None:
                return
            world = self._world(None, group.id)
            decision = leaving.timed_out(group, wish.kind, wish.member_id, wish.epoch, world, now.wall_ms)
            if decision is None:
                return
            if self._carry_out(group, decision, now, lambda _: None, lambda _error, _message: None):
                self._set_timers(group_id, [wish._replace(after_ms=_RETRY_MS)], now)

        return due

    def _consumer_group(self, group_id: str, *, or_new: bool = False) -> ConsumerGroup:
        found = self._state.groups.get(group_id)
        group = consumer_group(found)
        if group is None and (found is not None or not or_new):
            raise _no_group(group_id)
        return group or ConsumerGroup(group_id, self._state.metadata)

    def _world(self, caller: Caller | None, group_id: str) -> HeartbeatContext:
        prefix = "" if caller is None else caller.client_id
        return HeartbeatContext(
            self._state.metadata,
            self._hashes,
            self._patterns,
            self._state.settings_of(group_id),
            lambda: self._state.new_member_id(prefix),
            self._assignments.is_under_way(group_id),
            self._work_at_once_max,
        )


def _no_group(group_id: str) -> RequestRefused:
    return RequestRefused(ErrorCode.GROUP_ID_NOT_FOUND, f"There is no consumer group {group_id}.")


def _replayed(group: ConsumerGroup, made: Iterable[JournalRecord]) -> None:
    for record in made:
        kind = kind_of(record.key)
        if kind in records.KEY_TYPES:
            _, decoded = replay.group_of(kind, record.key, _KEY_START)
            replay.apply(group, kind, decoded, record.value)


def _too_long(group_id: str) -> ErrorCode:
    """What cannot be stored is refused: a member could not be found again after a restart."""
    return ErrorCode.INVALID_GROUP_ID if len(group_id.encode()) > STRING_BYTES_MAX else ErrorCode.INVALID_REQUEST


def _timer_key(group_id: str, kind: TimerKind, member_id: str) -> tuple[str, TimerKind, str]:
    return (group_id, kind, member_id)
