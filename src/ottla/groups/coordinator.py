"""The group coordinator of this broker: the shards of the partitions that it leads, their loading, and one timer.

Handlers call it; it finds the shard, or answers why there is none.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Iterator
from typing import Final

from ottla import logs
from ottla.config.slices import GroupsConfig
from ottla.groups.caller import Caller, Now
from ottla.groups.classic.rebalance import join_refused, sync_refused
from ottla.groups.consumer.patterns import TopicPatterns
from ottla.groups.consumer.topics import TopicHashes
from ottla.groups.group import Group
from ottla.groups.javahash import partition_of
from ottla.groups.journal import Journal
from ottla.groups.loading import load
from ottla.groups.long_work import LongWork
from ottla.groups.offsets.committing import commit_refused
from ottla.groups.offsets.fetching import fetch_refused
from ottla.groups.shard import GroupShard, ShardContext
from ottla.groups.state import Counts, Done, Reply
from ottla.groups.timers import DUE_AT_ONCE_MAX
from ottla.metadata.cache import MetadataCache
from ottla.metadata.updates import MetadataUpdate
from ottla.model import OFFSETS_TOPIC, ErrorCode
from ottla.ports.clock import Clock
from ottla.ports.entropy import Entropy
from ottla.protocol.generated.consumer_group_describe import DescribedGroup as DescribedConsumerGroup
from ottla.protocol.generated.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from ottla.protocol.generated.describe_groups import DescribedGroup
from ottla.protocol.generated.heartbeat import HeartbeatRequest, HeartbeatResponse
from ottla.protocol.generated.join_group import JoinGroupRequest, JoinGroupResponse
from ottla.protocol.generated.leave_group import LeaveGroupRequest, LeaveGroupResponse
from ottla.protocol.generated.list_groups import ListGroupsRequest, ListGroupsResponse
from ottla.protocol.generated.offset_commit import OffsetCommitRequest, OffsetCommitResponse
from ottla.protocol.generated.offset_delete import OffsetDeleteRequest, OffsetDeleteResponse
from ottla.protocol.generated.offset_fetch import OffsetFetchRequestGroup, OffsetFetchResponseGroup
from ottla.protocol.generated.sync_group import SyncGroupRequest, SyncGroupResponse
from ottla.protocol.hot.offset_records import read_offset_value
from ottla.protocol.primitives import STRING_BYTES_MAX
from ottla.steps import Steps, is_stray, pieces

log_event = logs.logger("groups")

#: Partitions that are loaded side by side: one reads while the other applies.
LOADS_AT_ONCE_MAX: Final = 2
#: After a load that has failed. A disk may answer again; what is damaged is read in vain once in a while.
LOAD_RETRY_S: Final = 30.0
#: Timers that are due go off for so long, by a clock of milliseconds; the rest does in the next turn of the loop.
TIMERS_AT_ONCE_MS_MAX: Final = 2
_NEVER: Final = 2**63


class _Term:
    """One partition, from its election to its resignation."""

    __slots__ = ("deleted_topics", "failed", "journal", "loading", "shard")

    def __init__(self, journal: Journal) -> None:
        self.journal = journal
        #: Set once it is loaded.
        self.shard: GroupShard | None = None
        self.loading: asyncio.Task[None] | None = None
        #: It could not be loaded, and will be tried again: others may look for another coordinator meanwhile.
        self.failed = False
        #: While it was loaded.
        self.deleted_topics: set[str] = set()


class GroupCoordinator:
    def __init__(
        self, settings: Callable[[], GroupsConfig], metadata: MetadataCache, clock: Clock, entropy: Entropy
    ) -> None:
        self._settings = settings
        self._metadata = metadata
        self._clock = clock
        self._entropy = entropy
        self.counts = Counts()
        self._long_work = LongWork(clock.monotonic_ms)
        self._shared = ShardContext(
            self.counts,
            TopicPatterns(metadata),
            one_by_one=self._long_work.one_by_one,
            side_by_side=self._long_work.side_by_side,
            hashes=TopicHashes(metadata),
        )
        self._terms: dict[int, _Term] = {}
        self._load_places: asyncio.Semaphore | None = None
        self._alarm: asyncio.TimerHandle | None = None
        #: When the alarm rings.
        self._alarm_ms = _NEVER
        metadata.listen(self._metadata_changed)

    # Roles.

    def partition_for(self, group_id: str) -> int:
        """The partition of the offsets topic that keeps this group; by the setting while there is no topic."""
        topic = self._metadata.topic(OFFSETS_TOPIC)
        count = len(topic.partitions) if topic is not None else self._settings().offsets.topic_partitions
        return partition_of(group_id, count)

    def elected(self, partition: int, journal: Journal) -> None:
        """This broker leads the partition: its groups are loaded beside everything else."""
        self.resigned(partition)
        term = self._terms[partition] = _Term(journal)
        self._load(partition, term)

    def resigned(self, partition: int) -> None:
        """Another broker leads it, or none does: all requests that wait get NOT_COORDINATOR."""
        term = self._terms.pop(partition, None)
        if term is not None:
            self._unload(term)

    def journal_failed(self, partition: int) -> None:
        """A write that was applied did not reach the log: what the log holds is loaded again."""
        term = self._terms.get(partition)
        if term is not None:
            log_event.warning("groups are loaded again: their journal lost a write", partition=partition)
            self._unload(term)
            self._load(partition, term)

    async def close(self) -> None:
        """Answers all requests that wait, and does nothing from then on."""
        loads = [term.loading for term in self._terms.values() if term.loading is not None]
        for partition in list(self._terms):
            self.resigned(partition)
        if self._alarm is not None:
            self._alarm.cancel()
            self._alarm = None
            self._alarm_ms = _NEVER
        await asyncio.gather(*loads, return_exceptions=True)
        await self._long_work.close()

    def _unload(self, term: _Term) -> None:
        if term.loading is not None:
            term.loading.cancel()
            term.loading = None
        shard, term.shard = term.shard, None
        if shard is not None:
            shard.timers.on_sooner = _ignored
            shard.unload(ErrorCode.NOT_COORDINATOR, self._now())

    def _load(self, partition: int, term: _Term) -> None:
        term.failed = False
        term.deleted_topics.clear()
        name = f"load groups of partition {partition}"
        term.loading = asyncio.get_running_loop().create_task(self._load_term(partition, term), name=name)

    async def _load_term(self, partition: int, term: _Term) -> None:
        while True:
            if await self._try_to_load(partition, term):
                return
            await asyncio.sleep(LOAD_RETRY_S)

    async def _try_to_load(self, partition: int, term: _Term) -> bool:
        if self._load_places is None:
            self._load_places = asyncio.Semaphore(LOADS_AT_ONCE_MAX)
        shard = GroupShard(partition, term.journal, self._settings, self._metadata, self._entropy, self._shared)
        started_ms = self._clock.monotonic_ms()
        try:
            async with self._load_places:
                found = await load(term.journal, shard, self._clock)
        except (Exception, asyncio.CancelledError) as fault:
            if isinstance(fault, asyncio.CancelledError) and not is_stray(fault):
                raise
            # Whatever it is, the other partitions' groups go on, and this one's clients are answered at once.
            log_event.error("groups cannot be loaded", partition=partition, error=repr(fault), again_s=LOAD_RETRY_S)
            term.failed = True
            return False
        term.shard, term.loading, term.failed = shard, None, False
        shard.timers.on_sooner = self._arm
        if (deadline_ms := shard.timers.next_deadline_ms()) is not None:
            self._arm(deadline_ms)
        if term.deleted_topics:
            shard.topics_deleted(sorted(term.deleted_topics), self._now())
            term.deleted_topics.clear()
        if found.records:
            took_ms = self._clock.monotonic_ms() - started_ms
            log_event.info("groups loaded", partition=partition, **found._asdict(), ms=took_ms)
        return True

    def _metadata_changed(self, update: MetadataUpdate) -> None:
        if not update.topics_deleted:
            return
        for term in self._terms.values():
            if term.shard is not None:
                term.shard.topics_deleted(update.topics_deleted, self._now())
            else:
                term.deleted_topics.update(update.topics_deleted)

    # Time.

    def _now(self) -> Now:
        return Now(self._clock.wall_ms(), self._clock.monotonic_ms())

    def _arm(self, when_ms: int) -> None:
        if when_ms >= self._alarm_ms:
            return
        if self._alarm is not None:
            self._alarm.cancel()
        self._alarm_ms = when_ms
        delay_ms = max(0, when_ms - self._clock.monotonic_ms())
        self._alarm = asyncio.get_running_loop().call_later(delay_ms / 1000, self.tick)

    def tick(self) -> None:
        """Does what is due by the clock. The alarm calls it, and so does a caller that has moved the clock by hand."""
        if self._alarm is not None:
            self._alarm.cancel()
            self._alarm = None
        now = self._now()
        # Held high while timers run: they set others, and one look at the end is enough.
        self._alarm_ms = -1
        shards = [term.shard for term in self._terms.values() if term.shard is not None]
        # By the clock too: a timer of a group of ten thousand takes a millisecond. That of a simulation stands still.
        room, ends_ms = DUE_AT_ONCE_MAX, now.monotonic_ms + TIMERS_AT_ONCE_MS_MAX
        try:
            for shard in shards:
                while room and shard.timers.expire(now, 1):
                    room -= 1
                    if self._clock.monotonic_ms() >= ends_ms:
                        room = 0
        finally:
            self._alarm_ms = _NEVER
            for shard in shards:
                if (deadline_ms := shard.timers.next_deadline_ms()) is not None:
                    self._arm(deadline_ms)

    # Finding the shard.

    def _find(self, group_id: str) -> GroupShard | ErrorCode:
        term = self._terms.get(self.partition_for(group_id))
        if term is None:
            missing = self._metadata.topic(OFFSETS_TOPIC) is None
            return ErrorCode.COORDINATOR_NOT_AVAILABLE if missing else ErrorCode.NOT_COORDINATOR
        if term.shard is not None:
            return term.shard
        return ErrorCode.NOT_COORDINATOR if term.failed else ErrorCode.COORDINATOR_LOAD_IN_PROGRESS

    def _find_for_member(self, group_id: str) -> GroupShard | ErrorCode:
        """A group that is to have members needs a name, and one that fits in a record."""
        if not group_id or (len(group_id) > STRING_BYTES_MAX // 4 and len(group_id.encode()) > STRING_BYTES_MAX):
            return ErrorCode.INVALID_GROUP_ID
        return self._find(group_id)

    # Requests. Each is answered exactly once, now or later.

    def join_group(self, caller: Caller, request: JoinGroupRequest, reply: Reply[JoinGroupResponse]) -> None:
        found = self._find_for_member(request.group_id)
        if isinstance(found, ErrorCode):
            reply(join_refused(found, request.member_id))
        else:
            found.join_group(caller, request, reply)

    def members_of(self, group_id: str) -> Collection[str]:
        """The ids of a classic group's members; a live view."""
        found = self._find_for_member(group_id)
        return () if isinstance(found, ErrorCode) else found.members_of(group_id)

    def sync_group(self, caller: Caller, request: SyncGroupRequest, reply: Reply[SyncGroupResponse]) -> None:
        found = self._find_for_member(request.group_id)
        if found is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
            # The rebalance that it belongs to is gone. Clients take the loading itself for a fatal error here.
            reply(sync_refused(ErrorCode.REBALANCE_IN_PROGRESS))
        elif isinstance(found, ErrorCode):
            reply(sync_refused(found))
        else:
            found.sync_group(caller, request, reply)

    def heartbeat(self, caller: Caller, request: HeartbeatRequest, reply: Reply[HeartbeatResponse]) -> None:
        found = self._find_for_member(request.group_id)
        if found is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
            # Sessions begin anew once it is loaded: nothing is wrong with this one.
            reply(HeartbeatResponse(error_code=ErrorCode.NONE))
        elif isinstance(found, ErrorCode):
            reply(HeartbeatResponse(error_code=found))
        else:
            found.heartbeat(caller, request, reply)

    def leave_group(self, caller: Caller, request: LeaveGroupRequest, reply: Reply[LeaveGroupResponse]) -> Steps[None]:
        found = self._find_for_member(request.group_id)
        if isinstance(found, ErrorCode):
            reply(LeaveGroupResponse(error_code=found))
        else:
            yield from found.leave_group(caller, request, reply)

    def offset_commit(
        self, caller: Caller, request: OffsetCommitRequest, reply: Reply[OffsetCommitResponse]
    ) -> Steps[None]:
        found = self._find(request.group_id)
        if isinstance(found, ErrorCode):
            return _commit_refused(request, found, reply)
        return found.offset_commit(caller, request, reply)

    def offset_fetch(self, request: OffsetFetchRequestGroup, require_stable: bool) -> Steps[OffsetFetchResponseGroup]:
        """To be answered by `when_settled`."""
        found = self._find(request.group_id)
        if isinstance(found, ErrorCode):
            return fetch_refused(request.group_id, found)
        return (yield from found.offset_fetch(request, require_stable))

    def offsets_of(self, group_id: str) -> int:
        """How many it has committed."""
        found = self._find(group_id)
        if isinstance(found, ErrorCode):
            return 0
        return sum(map(len, found.state.offsets.of_group(group_id).values()))

    def when_settled(self, partition: int, call: Done) -> None:
        """Calls when all that was decided in this partition so far is committed; at once where nothing is kept here."""
        term = self._terms.get(partition)
        if term is None or term.shard is None:
            call(ErrorCode.NONE)
        else:
            term.shard.when_settled(call)

    def offset_delete(
        self, caller: Caller, request: OffsetDeleteRequest, reply: Reply[OffsetDeleteResponse]
    ) -> Steps[None]:
        found = self._find_for_member(request.group_id)
        if isinstance(found, ErrorCode):
            reply(OffsetDeleteResponse(error_code=found))
        else:
            yield from found.offset_delete(caller, request, reply)

    def describe_group(self, group_id: str, version: int) -> Steps[DescribedGroup]:
        found = self._find(group_id)
        if isinstance(found, ErrorCode):
            return DescribedGroup(group_id=group_id, error_code=found)
        return (yield from found.describe_group(group_id, version))

    def list_groups(self, request: ListGroupsRequest) -> Steps[ListGroupsResponse]:
        """All groups of this broker; while some are loaded, the others and an error."""
        response = ListGroupsResponse()
        # States and types as clients like to write them: in any case.
        states = yield from _in_small_letters(request.states_filter)
        types = yield from _in_small_letters(request.types_filter)
        for term in list(self._terms.values()):
            if term.shard is not None:
                response.groups += yield from term.shard.list_groups(states, types)
            elif not term.failed:
                response.error_code = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        return response

    def delete_group(self, caller: Caller, group_id: str, reply: Reply[ErrorCode]) -> Steps[None]:
        found = self._find(group_id)
        if isinstance(found, ErrorCode):
            reply(found)
        else:
            yield from found.delete_group(caller, group_id, reply)

    def consumer_group_heartbeat(
        self, caller: Caller, request: ConsumerGroupHeartbeatRequest, reply: Reply[ConsumerGroupHeartbeatResponse]
    ) -> Steps[None]:
        found = self._find_for_member(request.group_id)
        if not isinstance(found, ErrorCode):
            prepared = yield from found.prepare_heartbeat(request)
            found = self._find_for_member(request.group_id)  # another, where it was loaded again meanwhile
        if not request.group_id:
            message = "The group must have a name."
            reply(ConsumerGroupHeartbeatResponse(error_code=ErrorCode.INVALID_REQUEST, error_message=message))
        elif isinstance(found, ErrorCode):
            reply(ConsumerGroupHeartbeatResponse(error_code=found))
        else:
            found.consumer_group_heartbeat(caller, request, reply, prepared)

    def describe_consumer_group(self, group_id: str) -> Steps[DescribedConsumerGroup]:
        """To be answered by `when_settled`."""
        found = self._find_for_member(group_id)
        if isinstance(found, ErrorCode):
            return DescribedConsumerGroup(group_id=group_id, error_code=found)
        return (yield from found.describe_consumer_group(group_id))

    # For metrics.

    def _shards(self) -> Iterator[GroupShard]:
        return (term.shard for term in self._terms.values() if term.shard is not None)

    def groups(self) -> Iterator[Group]:
        """All groups. Whoever goes through them may pause: others come and go meanwhile."""
        for shard in list(self._shards()):
            yield from list(shard.groups.values())

    def committed(self) -> Iterator[tuple[str, str, int, int]]:
        """Group, topic, partition and offset of all that is committed, group by group and topic by topic."""
        for shard in list(self._shards()):
            offsets = shard.state.offsets
            for group_id in offsets.group_ids():
                for topic, partitions in list(offsets.of_group(group_id).items()):
                    for partition, value in list(partitions.items()):
                        yield group_id, topic, partition, read_offset_value(value).offset


def _in_small_letters(names: list[str]) -> Steps[set[str]]:
    found: set[str] = set()
    for piece in pieces(names):
        found.update(name.strip().lower() for name in piece)
        yield
    return found


def _ignored(_: int) -> None:
    """A shard that was given up has no time."""


def _commit_refused(request: OffsetCommitRequest, error: ErrorCode, reply: Reply[OffsetCommitResponse]) -> Steps[None]:
    reply((yield from commit_refused(request, error)))
