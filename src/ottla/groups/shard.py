"""One partition of the offsets topic: the groups whose names hash to it, and their offsets. Synchronous.

A decision is: check, build records, `state.write`, apply at once, answer when the journal says that it is committed.
Groups of all kinds stand in one table; a request meets the rules of its group's kind (`groups/group.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from typing import Any, Final, NamedTuple

from ottla import logs
from ottla.config.slices import GroupsConfig
from ottla.coordinators.caller import Caller, Now
from ottla.coordinators.journal import EndMarker, Journal, TransactionalProducer
from ottla.coordinators.long_work import Beside
from ottla.groups.classic.described import described, not_found
from ottla.groups.classic.group import MEMBER_BYTES_MAX, PROTOCOLS_MAX, ClassicGroup
from ottla.groups.classic.groups import STARTED_AT_ONCE_MAX, ClassicGroups
from ottla.groups.classic.rebalance import join_refused
from ottla.groups.consumer.assigning import Assignments
from ottla.groups.consumer.groups import ConsumerGroups
from ottla.groups.consumer.patterns import TopicPatterns
from ottla.groups.consumer.prepared import PreparedHeartbeat
from ottla.groups.consumer.target import WORK_AT_ONCE_MAX
from ottla.groups.consumer.topics import TopicHashes
from ottla.groups.group import Group, GroupKind
from ottla.groups.offsets.committing import TransactionalWriter, commit_few, commit_many, commit_offsets
from ottla.groups.offsets.deleting import delete_group, delete_offsets
from ottla.groups.offsets.fetching import fetch_offsets, fetch_refused
from ottla.groups.offsets.repeated import RepeatedCommit
from ottla.groups.offsets.sweeping import NO_DELETIONS_KNOWN, Sweeps
from ottla.groups.records.kinds import CONSUMER_GROUP_KINDS, GROUP, OFFSET, OFFSET_LEGACY, BadRecord, kind_of
from ottla.groups.state import Counts, Done, Reply, ShardState
from ottla.metadata.cache import MetadataCache
from ottla.model import NO_PRODUCER_ID, OFFSETS_TOPIC, ErrorCode
from ottla.ports.entropy import Entropy
from ottla.protocol.errors import DecodeError
from ottla.protocol.generated.consumer_group_describe import DescribedGroup as DescribedConsumerGroup
from ottla.protocol.generated.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from ottla.protocol.generated.describe_groups import DescribedGroup
from ottla.protocol.generated.heartbeat import HeartbeatRequest, HeartbeatResponse
from ottla.protocol.generated.join_group import JoinGroupRequest, JoinGroupResponse
from ottla.protocol.generated.leave_group import LeaveGroupRequest, LeaveGroupResponse
from ottla.protocol.generated.list_groups import ListedGroup
from ottla.protocol.generated.offset_commit import OffsetCommitRequest, OffsetCommitResponse
from ottla.protocol.generated.offset_delete import OffsetDeleteRequest, OffsetDeleteResponse
from ottla.protocol.generated.offset_fetch import OffsetFetchRequestGroup, OffsetFetchResponseGroup
from ottla.protocol.generated.sync_group import SyncGroupRequest, SyncGroupResponse
from ottla.protocol.hot.offset_records import OffsetKey, check_offset_value, read_offset_key
from ottla.steps import Steps, at_once, pieces
from ottla.storage.log.producers.verifying import Verification

log_event = logs.logger("groups")

#: When a partition is given up: one takes a microsecond, with its members more.
GROUPS_LET_GO_A_STEP: Final = 16

_OFFSET_KINDS: Final = frozenset({OFFSET, OFFSET_LEGACY})


class ShardContext(NamedTuple):
    """What all shards of a broker have in common."""

    counts: Counts
    patterns: TopicPatterns
    #: Has the targets of large groups computed, one after another.
    one_by_one: Beside = at_once
    #: Work for the target of a consumer group that is no long work.
    work_at_once_max: int = WORK_AT_ONCE_MAX
    #: Has all other long work done.
    side_by_side: Beside = at_once
    hashes: TopicHashes | None = None


class GroupShard:
    def __init__(
        self,
        partition: int,
        journal: Journal,
        settings: Callable[[], GroupsConfig],
        metadata: MetadataCache,
        entropy: Entropy,
        shared: ShardContext | None = None,
    ) -> None:
        shared = shared or ShardContext(Counts(), TopicPatterns(metadata))
        self.topic = OFFSETS_TOPIC
        self.partition = partition
        self.state = ShardState(partition, journal, settings, metadata, entropy, shared.counts, shared.side_by_side)
        self.timers = self.state.timers
        self.groups = self.state.groups
        self._sweeps = Sweeps(self.state)
        assignments = Assignments(self.state, shared.one_by_one)
        hashes = shared.hashes or TopicHashes(metadata)
        classic = ClassicGroups(self.state)
        self._consumer = ConsumerGroups(
            self.state, classic, shared.patterns, hashes, assignments, shared.work_at_once_max
        )
        #: By `type_name`; a group that there is not yet is a classic one to the requests of that protocol.
        self._kinds: dict[str, GroupKind[Any]] = {"classic": classic, "consumer": self._consumer}
        self._of_records: dict[int, GroupKind[Any]] = {
            GROUP: classic,
            **dict.fromkeys(CONSUMER_GROUP_KINDS, self._consumer),
        }

    def _kind_of(self, group: Group | None) -> GroupKind[Any]:
        return self._kinds["classic" if group is None else group.type_name]

    # Members that speak the classic protocol: the group's kind answers.

    def join_group(self, caller: Caller, request: JoinGroupRequest, reply: Reply[JoinGroupResponse]) -> None:
        settings = self.state.settings()
        if not settings.session_timeout_ms_min <= request.session_timeout_ms <= settings.session_timeout_ms_max:
            reply(join_refused(ErrorCode.INVALID_SESSION_TIMEOUT, request.member_id))
            return
        if len(request.protocols) > PROTOCOLS_MAX or _bytes_of(request) > MEMBER_BYTES_MAX:
            reply(join_refused(ErrorCode.INVALID_REQUEST, request.member_id))
            return
        group = self.groups.get(request.group_id)
        self._kind_of(group).join(group, caller, request, reply)

    def sync_group(self, caller: Caller, request: SyncGroupRequest, reply: Reply[SyncGroupResponse]) -> None:
        group = self.groups.get(request.group_id)
        self._kind_of(group).sync(group, caller, request, reply)

    def members_with_shares(self, group_id: str) -> Collection[str]:
        """The ids of the members to whom their leader hands out shares; a live view."""
        group = self.groups.get(group_id)
        return self._kind_of(group).members_with_shares(group)

    def heartbeat(self, caller: Caller, request: HeartbeatRequest, reply: Reply[HeartbeatResponse]) -> None:
        group = self.groups.get(request.group_id)
        self._kind_of(group).classic_heartbeat(group, caller, request, reply)

    def leave_group(self, caller: Caller, request: LeaveGroupRequest, reply: Reply[LeaveGroupResponse]) -> Steps[None]:
        group = self.groups.get(request.group_id)
        return self._kind_of(group).leave(group, caller, request, reply)

    # Offsets of groups of any kind.

    def offset_commit(
        self, caller: Caller, request: OffsetCommitRequest, reply: Reply[OffsetCommitResponse]
    ) -> Steps[None]:
        return commit_offsets(self.state, caller, request, reply)

    def commit_few(self, caller: Caller, request: OffsetCommitRequest, reply: Reply[OffsetCommitResponse]) -> None:
        """`offset_commit` of a request that names fewer topics and partitions than make a step."""
        commit_few(self.state, caller, request, reply)

    # Offsets that wait for the end of a transaction.

    @property
    def is_loaded(self) -> bool:
        return True

    def has_open(self, producer: TransactionalProducer) -> bool:
        return self.state.journal.has_open(producer)

    def is_behind(self, producer: TransactionalProducer) -> bool:
        return self.state.journal.is_behind(producer)

    def begin_verifying(self, producer: TransactionalProducer) -> Verification:
        """The producer's coordinator is asked about its transaction before `txn_offset_commit`."""
        return self.state.journal.begin_verifying(producer)

    def is_verified(self, producer: TransactionalProducer, verification: Verification) -> bool:
        """Whether no marker has come since."""
        return self.state.journal.is_verified(producer, verification)

    def txn_offset_commit(
        self,
        caller: Caller,
        writer: TransactionalWriter,
        request: OffsetCommitRequest,
        reply: Reply[OffsetCommitResponse],
    ) -> Steps[None]:
        return commit_many(self.state, caller, request, reply, writer)

    def write_marker(self, now: Now, end: EndMarker, reply: Reply[ErrorCode]) -> None:
        """Ends the transaction of a producer: its offsets are seen from now on, or are gone."""
        if self.state.is_over:
            error = ErrorCode.NOT_COORDINATOR
        else:
            error = self.state.journal.end_transaction(end, now.wall_ms, reply)
        if error:
            reply(error)
        else:
            self.end_transaction(end.producer_id, committed=end.is_commit)

    def repeated_commit(self, request: OffsetCommitRequest, version: int) -> RepeatedCommit | None:
        """What this request is but for its offsets, to be committed with others. EncodeError as in a commit."""
        return RepeatedCommit(self.state, request, version)

    def takes(self, commit: RepeatedCommit) -> bool:
        """Whether it is of this shard."""
        return commit.state is self.state

    def offset_fetch(self, request: OffsetFetchRequestGroup, require_stable: bool) -> Steps[OffsetFetchResponseGroup]:
        """To be answered by `when_settled`, as all that says what is stored."""
        found = yield from fetch_offsets(self.state, request, require_stable)
        return fetch_refused(request.group_id, ErrorCode.NOT_COORDINATOR) if self.state.is_over else found

    def offset_count(self, group_id: str) -> int:
        """How many the group has committed."""
        return sum(map(len, self.state.offsets.of_group(group_id).values()))

    def when_settled(self, call: Done) -> None:
        """Calls when all that was decided so far is committed: what a client learns must be found after a crash. Of a
        shard that was given up nobody knows."""
        if self.state.is_over:
            call(ErrorCode.NOT_COORDINATOR)
        else:
            self.state.when_settled(call)

    def offset_delete(
        self, caller: Caller, request: OffsetDeleteRequest, reply: Reply[OffsetDeleteResponse]
    ) -> Steps[None]:
        return delete_offsets(self.state, caller.now, request, reply)

    # Administrators.

    def describe_group(self, group_id: str, version: int) -> Steps[DescribedGroup]:
        group = self.groups.get(group_id)
        if isinstance(group, ClassicGroup):  # DescribeGroups is about these alone
            found = yield from described(group)
            return (
                DescribedGroup(group_id=group_id, error_code=ErrorCode.NOT_COORDINATOR) if self.state.is_over else found
            )
        return not_found(group_id, version, consumer=group is not None)

    def list_groups(self, states: AbstractSet[str], types: AbstractSet[str]) -> Steps[list[ListedGroup]]:
        """Those in one of the states and of one of the types, written in small letters; empty sets mean any."""
        listed = []
        for piece in pieces(list(self.groups.values())):
            listed += [
                ListedGroup(
                    group_id=group.id,
                    protocol_type=group.protocol_type or "",
                    group_state=group.state_name,
                    group_type=group.type_name,
                )
                for group in piece
                if (not types or group.type_name in types) and (not states or group.state_name.lower() in states)
            ]
            yield
        return listed

    def delete_group(self, caller: Caller, group_id: str, reply: Reply[ErrorCode]) -> Steps[None]:
        group = self.groups.get(group_id)
        if group is None:
            reply(ErrorCode.GROUP_ID_NOT_FOUND)
            return
        error = yield from delete_group(self.state, group, caller.now, reply)
        if error:
            reply(error)
        else:
            self._kind_of(group).deleted(group, caller.now)

    # The newer protocol.

    def prepare_heartbeat(self, request: ConsumerGroupHeartbeatRequest) -> Steps[PreparedHeartbeat]:
        """Comes before the heartbeat itself, which decides with what was found so far."""
        return self._consumer.prepare(request)

    def consumer_group_heartbeat(
        self,
        caller: Caller,
        request: ConsumerGroupHeartbeatRequest,
        reply: Reply[ConsumerGroupHeartbeatResponse],
        prepared: PreparedHeartbeat | None = None,
    ) -> None:
        """`prepared` by `prepare_heartbeat`, where the request may be long."""
        self._consumer.heartbeat(caller, request, reply, prepared)

    def describe_consumer_group(self, group_id: str) -> Steps[DescribedConsumerGroup]:
        """To be answered by `when_settled`."""
        return self._consumer.describe(group_id)

    # Loading.

    def replay(self, key: bytes | None, value: bytes | None, offset: int, producer_id: int) -> None:
        """Applies the stored record at `offset`; `producer_id` is -1 outside of transactions.

        What cannot be read is passed over: one bad record must not take the offsets of all others away.
        """
        if key is None:
            self._passed_over(b"", offset, BadRecord("a record without a key"))
            return
        try:
            kind = kind_of(key)
            if kind in _OFFSET_KINDS:
                self._replay_offset(read_offset_key(key), value, producer_id)
            else:
                at_once(self._replay_of_kind(kind, key, value))
        except DecodeError as fault:
            self._passed_over(key, offset, fault)

    def replay_long(self, key: bytes | None, value: bytes, offset: int) -> Steps[None]:
        """The same for a record that is long: one of a group of thousands takes tens of milliseconds."""
        try:
            if key is not None and (kind := kind_of(key)) not in _OFFSET_KINDS:
                yield from self._replay_of_kind(kind, key, value)
                return
        except DecodeError as fault:
            self._passed_over(key or b"", offset, fault)
            return
        self.replay(key, value, offset, NO_PRODUCER_ID)

    def _replay_of_kind(self, kind: int, key: bytes, value: bytes | None) -> Steps[None]:
        of_kind = self._of_records.get(kind)
        if of_kind is None:
            raise BadRecord("a key of an unknown type")
        return of_kind.replay(kind, key, value)

    def _passed_over(self, key: bytes, offset: int, fault: DecodeError) -> None:
        key_type = str(kind_of(key) & 0xFFFF) if len(key) > 1 else "none"
        partition = self.state.partition
        log_event.warning_limited(
            "a record of the offsets topic was skipped",
            f"{partition} {key_type}",
            interval_s=1.0,
            partition=partition,
            offset=offset,
            key_type=key_type,
            reason=str(fault),
        )

    def _replay_offset(self, place: OffsetKey, value: bytes | None, producer_id: int) -> None:
        if value is None:
            self.state.offsets.remove(*place)
            return
        check_offset_value(value)
        if producer_id == NO_PRODUCER_ID:
            self.state.offsets.put(*place, value)
        else:
            self.state.offsets.put_pending(producer_id, *place, value)

    def end_transaction(self, producer_id: int, *, committed: bool) -> None:
        """The marker of a transaction was read, or is written."""
        self.state.offsets.end_transaction(producer_id, committed=committed)

    def loaded(self, now: Now) -> Iterator[None]:
        """All records were replayed: sessions begin. To be exhausted; a pause is welcome wherever it yields."""
        for number, group_id in enumerate(self.state.offsets.group_ids()):
            if group_id not in self.groups:
                # Offsets without a group: it has no members, and never had, or Kafka forgot it after they had gone.
                self.groups[group_id] = ClassicGroup(group_id, now.wall_ms)
            if number % STARTED_AT_ONCE_MAX == 0:
                yield
        for number, group in enumerate(list(self.groups.values())):
            yield from self._kind_of(group).loaded(group, now)
            if number % STARTED_AT_ONCE_MAX == 0:
                yield
        self._sweeps.start(now)

    def held(self) -> Mapping[str, int]:
        return {"groups": len(self.groups), "offsets": self.state.offsets.count}

    # What else happens beside requests.

    def topics_deleted(self, names: Iterable[str], now: Now, known_ms: Mapping[str, int] = NO_DELETIONS_KNOWN) -> None:
        """Drops what groups have committed in these topics."""
        self._sweeps.topics_deleted(names, now, known_ms)

    @property
    def unsettled_deletions(self) -> Mapping[str, int]:
        return self._sweeps.unsettled_deletions

    def unload(self, error: ErrorCode, now: Now) -> None:
        """Answers all requests that wait. The shard is not used any more, whatever its journal still calls."""
        self.state.is_over = True
        self._consumer.unload(error)
        self.state.do(self._ended(self.timers.clear(), error, now))

    def _ended(self, timers: Steps[None], error: ErrorCode, now: Now) -> Steps[None]:
        """Callers that wait are answered first. What the shard held goes step by step: a hundred thousand groups take a
        tenth of a second. Requests in steps that come upon that are refused in the end.
        """
        for piece in pieces(list(self.groups.values())):
            for group in piece:
                yield from self._kind_of(group).given_up(group, error, now)
            yield
        yield from timers
        while self.groups:
            for _ in range(min(len(self.groups), GROUPS_LET_GO_A_STEP)):
                self.groups.popitem()
            yield
        yield from self.state.offsets.let_go()


def _bytes_of(request: JoinGroupRequest) -> int:
    return sum(len(protocol.name) + len(protocol.metadata) for protocol in request.protocols)
