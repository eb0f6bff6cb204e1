"""How a classic group comes from one generation to the next.

    somebody joins, leaves, falls silent       -> `prepare`: all members join again, within the rebalance time-out
    all have joined, or the time is over       -> `complete_join`: a generation; the leader gets all members
    its assignment is stored (`syncing.py`)    -> stable
    somebody did not fetch its share in time   -> it is taken out, and `prepare` again

The first rebalance of an empty group waits for `group.initial.rebalance.delay.ms`, and as long again whenever somebody
comes, up to the rebalance time-out: a fleet that starts together is then one generation instead of one each.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Final

from ottla import logs
from ottla.groups.caller import Now
from ottla.groups.classic.group import ClassicGroup
from ottla.groups.classic.member import ClassicMember
from ottla.groups.classic.states import ClassicGroupEvent, ClassicGroupState
from ottla.groups.classic.stored import group_record
from ottla.groups.state import ShardState
from ottla.groups.timers import session_key
from ottla.model import ErrorCode
from ottla.protocol.generated.join_group import JoinGroupResponse, JoinGroupResponseMember
from ottla.protocol.generated.sync_group import SyncGroupResponse

log_event = logs.logger("groups")

#: A new member may wait so long for its first generation before it is given up, as Kafka has it.
NEW_MEMBER_JOIN_TIMEOUT_MS: Final = 5 * 60 * 1000
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
        if member.may_be_silent:
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
        join_reply, sync_reply = group.take_join_reply(member), member.sync_reply
        member.sync_reply = None
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
        self._state.timers.cancel(join_key(group.id))
        for member in list(group.members.values()):
            # Static members may be away for a session: they keep their place.
            if member.join_reply is None and member.instance_id is None:
                log_event.info("a member did not join again in time", group=group.id, member=member.id)
                self.drop(group, member, ErrorCode.UNKNOWN_MEMBER_ID)
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

        if error := self._state.write([group_record(group, {})], now, done):
            done(error)

    def _announce(self, group: ClassicGroup, now: Now) -> None:
        answers: list[Callable[[], None]] = []
        for member in group.members.values():
            member.is_new = False
            self.restart_session(group, member, now)
            reply = group.take_join_reply(member)
            if reply is not None:
                answers.append(partial(reply, joined(group, member)))
        timeout_ms = group.rebalance_timeout_ms
        due = partial(self._sync_over, group.id, group.generation)
        self._state.timers.set(sync_key(group.id), now.monotonic_ms + timeout_ms, due)
        self._state.answer_all(answers, now)

    def _sync_over(self, group_id: str, generation: int, now: Now) -> None:
        """A member that has not asked for its share by now is not going to read its partitions."""
        group = self.classic(group_id)
        if group is None or group.generation != generation or not group.pending_sync:
            return
        if group.state not in {ClassicGroupState.COMPLETING_REBALANCE, ClassicGroupState.STABLE}:
            return
        for member_id in list(group.pending_sync):
            log_event.info("a member did not fetch its assignment in time", group=group_id, member=member_id)
            self.drop(group, group.members[member_id], ErrorCode.UNKNOWN_MEMBER_ID)
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
        self.answer_syncs(group, error, now)

    def answer_syncs(self, group: ClassicGroup, error: ErrorCode, now: Now) -> None:
        answers: list[Callable[[], None]] = []
        for member in group.members.values():
            reply = member.sync_reply
            if reply is not None:
                member.sync_reply = None
                self.restart_session(group, member, now)
                response = sync_refused(error) if error else synced_response(group, member)
                answers.append(partial(reply, response))
        self._state.answer_all(answers, now)


def joined(group: ClassicGroup, member: ClassicMember) -> JoinGroupResponse:
    """The answer to a member about its generation. Only the leader's names the other members."""
    members: list[JoinGroupResponseMember] = []
    if group.leader_id == member.id:
        members = [
            JoinGroupResponseMember(
                member_id=other.id,
                group_instance_id=other.instance_id,
                metadata=other.metadata(group.protocol_name),
            )
            for other in group.members.values()
        ]
    return JoinGroupResponse(
        generation_id=group.generation,
        protocol_type=group.protocol_type,
        protocol_name=group.protocol_name,
        leader=group.leader_id or "",
        member_id=member.id,
        members=members,
    )


def synced_response(group: ClassicGroup, member: ClassicMember) -> SyncGroupResponse:
    return SyncGroupResponse(
        protocol_type=group.protocol_type, protocol_name=group.protocol_name, assignment=member.assignment
    )
