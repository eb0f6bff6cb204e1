"""Joining a group: JoinGroup until the coordinator has everybody, SyncGroup until it has the leader's assignment.

    JoinGroup without a member id -> MEMBER_ID_REQUIRED with one -> JoinGroup with it -> generation, leader
    leader: assigns -> SyncGroup with everybody's partitions;  others: SyncGroup -> their own

Whatever passes by itself is waited for here; the caller gets an assignment, or None where it has lost what it had and
must say so first, or an error that its user has to know.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from ottla.client.consuming.group.assignors.assignor import Assignor
from ottla.client.consuming.group.heartbeats import Heartbeats
from ottla.client.consuming.group.leading import Leading
from ottla.client.consuming.group.membership import Membership
from ottla.client.consuming.group.wire import (
    PROTOCOL_TYPE,
    Assignment,
    Subscription,
    decode_assignment,
    encode_assignment,
    encode_subscription,
)
from ottla.client.errors import (
    AssignorFailed,
    IllegalGeneration,
    InconsistentGroupProtocol,
    KafkaError,
    error_of,
)
from ottla.client.settings import ConsumerSettings
from ottla.client.wire.backoff import Backoff
from ottla.client.wire.connection import BrokerConnection
from ottla.client.wire.coordinator import JOINS, Coordinator
from ottla.model import ErrorCode, TopicPartition
from ottla.protocol.errors import DecodeError
from ottla.protocol.generated.join_group import JoinGroupRequest, JoinGroupRequestProtocol, JoinGroupResponse
from ottla.protocol.generated.sync_group import SyncGroupRequest, SyncGroupRequestAssignment, SyncGroupResponse

#: Static members have been known to these since.
_STATIC_JOIN: Final = 5
_STATIC_SYNC: Final = 3
#: JoinGroup is answered when the last member has come, or the rebalance time-out is over: a little later than that.
_GRACE_MS: Final = 5_000
#: A name was given to this member, or another came while this one waited for its partitions: it joins again without a
#: pause, unless that goes on and on.
_AT_ONCE: Final = frozenset({ErrorCode.MEMBER_ID_REQUIRED, ErrorCode.REBALANCE_IN_PROGRESS})
_AT_ONCE_MAX: Final = 10
#: Reasons go into the coordinator's log: as many characters as it takes.
_REASON_CHARACTERS_MAX: Final = 255


class JoinResult(NamedTuple):
    generation: int
    assignor: Assignor
    assignment: Assignment


class JoinConversation:
    def __init__(
        self,
        settings: ConsumerSettings,
        coordinator: Coordinator,
        membership: Membership,
        assignors: Sequence[Assignor],
        leading: Leading,
        heartbeats: Heartbeats,
        backoff: Backoff,
    ) -> None:
        self._settings = settings
        self._coordinator = coordinator
        self._membership = membership
        self._assignors = {assignor.name: assignor for assignor in assignors}
        self._leading = leading
        self._heartbeats = heartbeats
        self._backoff = backoff

    async def join(self, topics: Callable[[], frozenset[str]], owned: Sequence[TopicPartition]) -> JoinResult | None:
        """`owned` is what this member keeps meanwhile. None: it was put out, and owns nothing of that any more."""
        membership = self._membership
        failures = at_once = 0
        while True:
            asked_for, membership.rejoin = membership.rejoin, None
            try:
                return await self._once(topics(), owned, asked_for or "")
            except KafkaError as error:
                membership.want(asked_for or "joining failed")
                self._coordinator.blame(error)
                if error.code in _AT_ONCE and at_once < _AT_ONCE_MAX:
                    at_once += 1
                    continue
                if error.code in _AT_ONCE:
                    pass
                elif error.code in {ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.ILLEGAL_GENERATION}:
                    self._heartbeats.stop()
                    forget = error.code is ErrorCode.UNKNOWN_MEMBER_ID
                    membership.out("the coordinator did not know this member any more", forget_member=forget)
                    if owned:
                        return None
                elif not error.retriable:
                    raise
            failures += 1
            await asyncio.sleep(self._backoff.pause_ms(failures) / 1000)

    async def _once(self, topics: frozenset[str], owned: Sequence[TopicPartition], reason: str) -> JoinResult:
        membership = self._membership
        connection = await self._coordinator.connection(JOINS)
        self._heartbeats.stop()
        membership.join()
        answer = await self._join_group(connection, topics, owned, reason)
        if answer.error_code:
            if answer.error_code == ErrorCode.MEMBER_ID_REQUIRED:
                membership.named(answer.member_id)
            raise error_of(answer.error_code, about=f"group {membership.group_id}")
        assignor = self._assignors.get(answer.protocol_name or "")
        if assignor is None or answer.protocol_type not in {None, PROTOCOL_TYPE}:
            raise InconsistentGroupProtocol(
                f"group {membership.group_id} assigns by {answer.protocol_name!r} of {answer.protocol_type!r}, which "
                f"this consumer has not offered"
            )
        membership.joined(
            answer.member_id,
            answer.generation_id,
            is_leader=bool(answer.member_id) and answer.leader == answer.member_id,
        )
        self._heartbeats.start()
        assignments: dict[str, Assignment] = {}
        if not membership.is_leader:
            self._leading.end()
        elif answer.skip_assignment:
            await self._leading.watch(answer.members)
        else:
            assignments = await self._leading.assign(assignor, answer.members)
        assignment = await self._sync_group(connection, answer, assignments)
        if membership.generation != answer.generation_id:
            raise IllegalGeneration(f"group {membership.group_id}: this member was put out while it waited")
        membership.synced()
        return JoinResult(answer.generation_id, assignor, assignment)

    async def _join_group(
        self, connection: BrokerConnection, topics: frozenset[str], owned: Sequence[TopicPartition], reason: str
    ) -> JoinGroupResponse:
        settings, membership = self._settings, self._membership
        request = JoinGroupRequest(
            group_id=membership.group_id,
            session_timeout_ms=settings.session_timeout_ms,
            rebalance_timeout_ms=settings.max_poll_interval_ms,
            member_id=membership.member_id,
            group_instance_id=membership.instance_id,
            protocol_type=PROTOCOL_TYPE,
            protocols=[
                JoinGroupRequestProtocol(
                    name=assignor.name,
                    metadata=encode_subscription(
                        Subscription(
                            topics,
                            _user_data(assignor, topics),
                            tuple(owned),
                            membership.generation,
                            settings.client_rack or None,
                        )
                    ),
                )
                for assignor in self._assignors.values()
            ],
            reason=reason[:_REASON_CHARACTERS_MAX] or None,
        )
        return await connection.ask(
            request,
            JoinGroupResponse,
            timeout_ms=max(settings.request_timeout_ms, settings.max_poll_interval_ms + _GRACE_MS),
            at_least=_STATIC_JOIN if membership.instance_id is not None else 0,
        )

    async def _sync_group(
        self, connection: BrokerConnection, joined: JoinGroupResponse, assignments: dict[str, Assignment]
    ) -> Assignment:
        settings, membership = self._settings, self._membership
        request = SyncGroupRequest(
            group_id=membership.group_id,
            generation_id=joined.generation_id,
            member_id=membership.member_id,
            group_instance_id=membership.instance_id,
            protocol_type=PROTOCOL_TYPE,
            protocol_name=joined.protocol_name,
            assignments=[
                SyncGroupRequestAssignment(member_id=member, assignment=encode_assignment(one))
                for member, one in assignments.items()
            ],
        )
        answer = await connection.ask(
            request,
            SyncGroupResponse,
            # Answered when the leader has assigned, for which it has as long as for joining.
            timeout_ms=max(settings.request_timeout_ms, settings.max_poll_interval_ms + _GRACE_MS),
            at_least=_STATIC_SYNC if membership.instance_id is not None else 0,
        )
        if answer.error_code:
            raise error_of(answer.error_code, about=f"group {membership.group_id}")
        if answer.protocol_name not in {None, joined.protocol_name}:
            raise InconsistentGroupProtocol(
                f"group {membership.group_id} joined with {joined.protocol_name!r}, but was assigned by "
                f"{answer.protocol_name!r}"
            )
        try:
            return decode_assignment(answer.assignment)
        except DecodeError as error:
            raise AssignorFailed(
                f"the leader of group {membership.group_id} assigned what cannot be read: {error}"
            ) from error


def _user_data(assignor: Assignor, topics: frozenset[str]) -> bytes | None:
    try:
        return assignor.user_data(topics)
    except Exception as error:
        raise AssignorFailed(f"assignor {assignor.name} raised {type(error).__name__}: {error}") from error
