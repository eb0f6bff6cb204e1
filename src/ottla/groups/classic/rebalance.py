"""How a classic group comes from one generation to the next.

    somebody joins, leaves, falls silent       -> `prepare`: all members join again, within the rebalance time-out
    all have joined, or the time is over       -> `complete_join`: a generation; the leader gets all members
    its assignment is stored (`syncing.py`)    -> stable
    somebody did not fetch its share in time   -> it is taken out, and `prepare` again

The first rebalance of an empty group waits for `group.initial.rebalance.delay.ms`, and as long again whenever somebody
comes, up to the rebalance time-out: a fleet that starts together is then one generation instead of one each.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Final, TypeVar

from ottla import logs
from ottla.coordinators.caller import Now
from ottla.groups.classic.group import ClassicGroup
from ottla.groups.classic.member import ClassicMember, metadata_of
from ottla.groups.classic.states import ClassicGroupEvent, ClassicGroupState
from ottla.groups.classic.stored import group_record
from ottla.groups.state import Reply, ShardState, give, made_at_once, replied, session_key
from ottla.model import ErrorCode
from ottla.protocol.generated.join_group import JoinGroupResponse, JoinGroupResponseMember
from ottla.protocol.generated.sync_group import SyncGroupResponse
from ottla.steps import Steps, pieces
from ottla.steps import at_once as done_whole

log_event = logs.logger("groups")

T = TypeVar("T")
#: Of a member that is answered.
BeginSession = Callable[[ClassicGroup, ClassicMember], None]

#: A new member may wait so long for its first generation before it is given up, as Kafka has it.
NEW_MEMBER_JOIN_TIMEOUT_MS: Final = 5 * 60 * 1000
#: Members of a group to whom something happens in one step: some ten microseconds each, with their answers.
MEMBERS_A_STEP: Final = 16
#: Time-outs may be 0. What is looked at again and again until somebody comes is not looked at more often than this.
PAUSE_MS_MIN: Final = 1_000


def join_refused(error: ErrorCode, member_id: str = "") -> JoinGroupResponse:
    return JoinGroupResponse(error_code=error, member_id=member_id)


def sync_refused(error: ErrorCode) -> SyncGroupResponse:
    return SyncGroupResponse(error_code=error, assignment=b"")


def join_key(group_id: str) -> tuple[str, str]:
    return ("join", group_id)


def sync_key(group_id: str) -> tuple[str, str]:
    return ("sync", group_id)


class Rebalances:
    """Of all classic groups of one shard."""

    __slots__ = ("_state",)

    def __init__(self, state: ShardState) -> None:
        self._state = state

    def classic(self, group_id: str) -> ClassicGroup | None:
        group = self._state.groups.get(group_id)
        return group if isinstance(group, ClassicGroup) else None

    # Sessions.

    def restart_session(self, group: ClassicGroup, member: ClassicMember, now: Now) -> None:
        self.start_session(group, member.id, member.session_timeout_ms, now)

    def prolong_session(self, group: ClassicGroup, member: ClassicMember, now: Now) -> None:
        """As `restart_session`, by a time since which the member may have been heard of: that counts then."""
        when_ms = self._state.timers.when_ms(session_key(group.id, member.id))
        if when_ms is None or when_ms < now.monotonic_ms + member.session_timeout_ms:
            self.restart_session(group, member, now)

    def start_session(self, group: ClassicGroup, member_id: str, timeout_ms: int, now: Now) -> None:
        when_ms = now.monotonic_ms + max(0, timeout_ms)
        due = partial(self._session_over, group.id, member_id)
        self._state.timers.set(session_key(group.id, member_id), when_ms, due)

    def _session_over(self, group_id: str, member_id: str, now: Now) -> None:
        group = self.classic(group_id)
        if group is None:
            return
        if member_id in group.pending_join:
            group.remove(member_id)
            self._complete_if_all_joined(group, now)
            return
        member = group.members.get(member_id)
        if member is None:
            return
        if group.may_be_silent(member):
            self.start_session(group, member_id, max(member.session_timeout_ms, PAUSE_MS_MIN), now)
            return
        log_event.info("a member fell silent", group=group_id, member=member_id)
        self.drop(group, member, ErrorCode.UNKNOWN_MEMBER_ID)
        if group.can_rebalance:
            self.prepare(group, now)
        else:
            self._complete_if_all_joined(group, now)

    def drop(self, group: ClassicGroup, member: ClassicMember, error: ErrorCode) -> None:
        """Takes a member out, and answers it so if it waits for something."""
        self._state.timers.cancel(session_key(group.id, member.id))
        self.answer_waiting(group, member, error, "")
        group.remove(member.id)

    def answer_waiting(self, group: ClassicGroup, member: ClassicMember, error: ErrorCode, member_id: str) -> None:
        join_reply, sync_reply = group.join_replies.pop(member.id, None), group.sync_replies.pop(member.id, None)
        if join_reply is not None:
            join_reply(join_refused(error, member_id))
        if sync_reply is not None:
            sync_reply(sync_refused(error))

    def cancel_timers(self, group: ClassicGroup) -> None:
        timers = self._state.timers
        timers.cancel(join_key(group.id))
        timers.cancel(sync_key(group.id))
        for member_id in (*group.members, *group.pending_join):
            timers.cancel(session_key(group.id, member_id))

    # Preparing.

    def prepare_or_complete(self, group: ClassicGroup, now: Now) -> None:
        if group.can_rebalance:
            self.prepare(group, now)
        else:
            self.complete_if_due(group, now)

    def prepare(self, group: ClassicGroup, now: Now) -> None:
        if group.state is ClassicGroupState.COMPLETING_REBALANCE:
            self.refuse_assignment(group, ErrorCode.REBALANCE_IN_PROGRESS, now)
        group.pending_sync = set()
        self._state.timers.cancel(sync_key(group.id))
        is_first = group.state is ClassicGroupState.EMPTY
        group.move(ClassicGroupEvent.REBALANCE_NEEDED, now.wall_ms)
        if is_first:
            delay_ms = max(0, self._state.settings().initial_rebalance_delay_ms)
            rest_ms = max(group.rebalance_timeout_ms - delay_ms, 0)
            group.new_member_came = False
            self._when_to_complete(group, delay_ms, now, partial(self._delay_over, group.id, delay_ms, rest_ms))
        elif group.all_joined:
            self.complete_join(group, now)
        else:
            self._when_to_complete(group, group.rebalance_timeout_ms, now, partial(self._time_over, group.id))

    def _delay_over(self, group_id: str, delay_ms: int, rest_ms: int, now: Now) -> None:
        group = self.classic(group_id)
        if group is None or group.state is not ClassicGroupState.PREPARING_REBALANCE:
            return
        if not group.new_member_came or not rest_ms:
            self.complete_join(group, now)
            return
        group.new_member_came = False
        next_ms = min(max(0, self._state.settings().initial_rebalance_delay_ms), rest_ms)
        due = partial(self._delay_over, group_id, next_ms, max(rest_ms - delay_ms, 0))
        self._when_to_complete(group, next_ms, now, due)

    def _when_to_complete(self, group: ClassicGroup, after_ms: int, now: Now, due: Callable[[Now], None]) -> None:
        self._state.timers.set(join_key(group.id), now.monotonic_ms + max(0, after_ms), due)

    def _time_over(self, group_id: str, now: Now) -> None:
        group = self.classic(group_id)
        if group is not None and group.state is ClassicGroupState.PREPARING_REBALANCE:
            self.complete_join(group, now)

    # Completing.

    def complete_if_due(self, group: ClassicGroup, now: Now) -> None:
        """After somebody joined or left. The first rebalance waits for its delay, however many members are there."""
        if group.previous_state is not ClassicGroupState.EMPTY:
            self._complete_if_all_joined(group, now)

    def _complete_if_all_joined(self, group: ClassicGroup, now: Now) -> None:
        if group.state is ClassicGroupState.PREPARING_REBALANCE and group.all_joined:
            self.complete_join(group, now)

    def complete_join(self, group: ClassicGroup, now: Now) -> None:
        if group.is_completing:
            return
        self._state.timers.cancel(join_key(group.id))
        missing = group.not_joined()
        if missing:
            group.is_completing = True
            self._state.do(self._complete_without(group, missing, now))
        else:
            self._complete(group, now)

    def _complete_without(self, group: ClassicGroup, missing: Sequence[ClassicMember], now: Now) -> Steps[None]:
        """Takes out members that did not come; those that come while others are taken out stay."""
        try:
            for number, piece in enumerate(pieces(missing, MEMBERS_A_STEP)):
                if number:
                    yield
                if self._state.is_over or self.classic(group.id) is not group:
                    return
                for member in piece:
                    if group.members.get(member.id) is member and member.id not in group.join_replies:
                        self._drop_late(group, member)
        finally:
            group.is_completing = False
        self.complete_join(group, now)

    def _drop_late(self, group: ClassicGroup, member: ClassicMember) -> None:
        log_event.info("a member did not join again in time", group=group.id, member=member.id)
        self.drop(group, member, ErrorCode.UNKNOWN_MEMBER_ID)

    def _complete(self, group: ClassicGroup, now: Now) -> None:
        if not group.elect_joined_leader() and group.members:
            # All are static members, and away.
            pause_ms = max(group.rebalance_timeout_ms, PAUSE_MS_MIN)
            self._when_to_complete(group, pause_ms, now, partial(self._time_over, group.id))
            return
        group.begin_generation(now.wall_ms)
        if group.state is ClassicGroupState.EMPTY:
            self._store_empty(group, now)
        else:
            self._announce(group, now)

    def _store_empty(self, group: ClassicGroup, now: Now) -> None:
        def done(error: ErrorCode) -> None:
            if error:
                log_event.warning_limited("an empty group could not be stored", group=group.id, error=error.name)

        if error := self._state.write([done_whole(group_record(group, {}))], now, done):
            done(error)

    def _announce(self, group: ClassicGroup, now: Now) -> None:
        due = partial(self._sync_over, group.id, group.generation)
        self._state.timers.set(sync_key(group.id), now.monotonic_ms + group.rebalance_timeout_ms, due)
        replies = group.take_join_replies()
        self._state.do(self._find_subscription(group))
        self._state.do(self._answered_joins(group, replies, now))

    def answer_joined(self, group: ClassicGroup, member: ClassicMember, reply: Reply[JoinGroupResponse]) -> None:
        """A member asks again for the generation that it is in."""
        announcement = Announcement(group, names_members=member.id == group.leader_id)
        self._state.do(replied(announcement.to(member.id), reply))

    def _find_subscription(self, group: ClassicGroup) -> Steps[None]:
        """Until it is known the group counts as one whose subscription cannot be: nothing of it expires."""
        return _put_subscription(group, group.generation, group.known_subscription())

    def _answered_joins(
        self, group: ClassicGroup, replies: Mapping[str, Reply[JoinGroupResponse]], now: Now
    ) -> Steps[None]:
        """The answers about the generation of this moment, whatever becomes of it while they are given."""
        announcement = Announcement(group, names_members=group.leader_id in replies)
        return self._answered(group, replies, announcement.to, partial(self.restart_session, now=now))

    def _answered(
        self,
        group: ClassicGroup,
        replies: Mapping[str, Reply[T]],
        response_to: Callable[[str], Steps[T]],
        begin_session: BeginSession,
    ) -> Steps[None]:
        group.being_answered = (*group.being_answered, replies)
        return self._answered_each(group, replies, response_to, begin_session)

    def _answered_each(
        self,
        group: ClassicGroup,
        replies: Mapping[str, Reply[T]],
        response_to: Callable[[str], Steps[T]],
        begin_session: BeginSession,
    ) -> Steps[None]:
        """A member's session begins anew when it is answered, and cannot end before that."""
        try:
            for piece in pieces(replies.items(), MEMBERS_A_STEP):
                for member_id, reply in piece:
                    response = yield from response_to(member_id)
                    member = group.members.get(member_id)
                    if member is not None and self.classic(group.id) is group and not self._state.is_over:
                        begin_session(group, member)
                    give(reply, response)
                yield
        finally:
            group.being_answered = tuple(other for other in group.being_answered if other is not replies)

    def refused(self, group: ClassicGroup, error: ErrorCode) -> Steps[None]:
        """Answers all members that wait: the group is not this coordinator's any more."""
        joins, syncs = group.take_join_replies(), group.take_sync_replies()
        for piece in pieces(joins.items(), MEMBERS_A_STEP):
            for member_id, join_reply in piece:
                give(join_reply, join_refused(error, member_id))
            yield
        for others in pieces(syncs.values(), MEMBERS_A_STEP):
            for sync_reply in others:
                give(sync_reply, sync_refused(error))
            yield

    def _sync_over(self, group_id: str, generation: int, now: Now) -> None:
        """A member that has not asked for its share by now is not going to read its partitions."""
        group = self.classic(group_id)
        if group is None or group.generation != generation or not group.pending_sync:
            return
        if group.state not in {ClassicGroupState.COMPLETING_REBALANCE, ClassicGroupState.STABLE}:
            return
        late = list(group.pending_sync)
        self._state.do(self._prepare_without(group, late, now))

    def _prepare_without(self, group: ClassicGroup, late: Sequence[str], now: Now) -> Steps[None]:
        generation = group.generation
        for piece in pieces(late, MEMBERS_A_STEP):
            for member_id in piece:
                # Those that fetch it while others are taken out stay.
                if member_id in group.pending_sync:
                    log_event.info("a member did not fetch its assignment in time", group=group.id, member=member_id)
                    self.drop(group, group.members[member_id], ErrorCode.UNKNOWN_MEMBER_ID)
            yield
            if self._state.is_over or self.classic(group.id) is not group or group.generation != generation:
                return
            if not group.can_rebalance:
                break  # it is prepared already
        if group.can_rebalance:
            self.prepare(group, now)

    # Assignments.

    def synced(self, group: ClassicGroup, member_id: str) -> None:
        group.pending_sync.discard(member_id)
        if not group.pending_sync:
            self._state.timers.cancel(sync_key(group.id))

    def refuse_assignment(self, group: ClassicGroup, error: ErrorCode, now: Now) -> None:
        """The generation ends before everybody had its share."""
        for member in group.members.values():
            member.assignment = b""
        self._answer_syncs(group, lambda _: sync_refused(error), now)

    def hand_out(self, group: ClassicGroup, assignments: Mapping[str, bytes], now: Now) -> None:
        """Answers each member that waits with its share."""
        protocol_type, protocol_name = group.protocol_type, group.protocol_name

        def share_of(member_id: str) -> SyncGroupResponse:
            return SyncGroupResponse(
                protocol_type=protocol_type, protocol_name=protocol_name, assignment=assignments.get(member_id, b"")
            )

        self._answer_syncs(group, share_of, now)

    def _answer_syncs(self, group: ClassicGroup, response_to: Callable[[str], SyncGroupResponse], now: Now) -> None:
        """`now` is when the leader came: its plan may have taken seconds to be stored."""
        replies = group.take_sync_replies()
        prolong = partial(self.prolong_session, now=now)
        self._state.do(self._answered(group, replies, lambda member_id: made_at_once(response_to(member_id)), prolong))


class Announcement:
    """A generation as its members hear of it. What it says stays as it was when the generation began."""

    __slots__ = ("_generation", "_leader_id", "_members", "_protocol_name", "_protocol_type")

    def __init__(self, group: ClassicGroup, *, names_members: bool) -> None:
        self._generation = group.generation
        self._protocol_type = group.protocol_type
        self._protocol_name = group.protocol_name
        self._leader_id = group.leader_id or ""
        named = group.members.values() if names_members else ()
        self._members = [(member.id, member.instance_id, member.protocols) for member in named]

    def to(self, member_id: str) -> Steps[JoinGroupResponse]:
        """Only the leader's names the other members."""
        members: list[JoinGroupResponseMember] = []
        if member_id == self._leader_id:
            for piece in pieces(self._members):
                members += [
                    JoinGroupResponseMember(
                        member_id=other,
                        group_instance_id=instance,
                        metadata=metadata_of(protocols, self._protocol_name),
                    )
                    for other, instance, protocols in piece
                ]
                yield
        return JoinGroupResponse(
            generation_id=self._generation,
            protocol_type=self._protocol_type,
            protocol_name=self._protocol_name,
            leader=self._leader_id,
            member_id=member_id,
            members=members,
        )


def _put_subscription(group: ClassicGroup, generation: int, steps: Steps[frozenset[str] | None]) -> Steps[None]:
    found = yield from steps
    if group.generation == generation:
        group.subscribed_topics = found


def synced_response(group: ClassicGroup, member: ClassicMember) -> SyncGroupResponse:
    return SyncGroupResponse(
        protocol_type=group.protocol_type, protocol_name=group.protocol_name, assignment=member.assignment
    )
