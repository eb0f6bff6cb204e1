"""One shard of the group coordinator on a journal in memory, in virtual time, and members that talk to it."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from typing import TypeVar

from ottla.config import Config
from ottla.config.slices import GroupsConfig
from ottla.coordinators.caller import Caller, Now
from ottla.coordinators.journal import JournalRecord, Written
from ottla.groups.consumer.group import ConsumerGroup
from ottla.groups.consumer.patterns import TopicPatterns
from ottla.groups.consumer.target import WORK_AT_ONCE_MAX
from ottla.groups.shard import GroupShard, ShardContext
from ottla.groups.state import Counts
from ottla.metadata.cache import MetadataCache
from ottla.metadata.updates import MetadataUpdate, PartitionState
from ottla.model import BrokerId, Epoch, ErrorCode, TopicId
from ottla.ports.memory.entropy import SeededEntropy
from ottla.protocol.generated.consumer_group_describe import DescribedGroup
from ottla.protocol.generated.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    TopicPartitions,
)
from ottla.records.builder import BatchBuilder
from ottla.steps import Steps, at_once

T = TypeVar("T")
WALL_MS = 1_700_000_000_000
GROUP = "g"


class MemoryJournal:
    """Commits at once, or when told to; refuses when told to."""

    def __init__(self) -> None:
        self.epoch = 0
        self.records: list[JournalRecord] = []
        #: How many records each write brought.
        self.writes: list[int] = []
        self.refuses_with = ErrorCode.NONE
        self.holds = False
        self._held: list[Callable[[ErrorCode], None]] = []

    def write(
        self, records: Sequence[JournalRecord], wall_ms: int, written: Written, built: BatchBuilder | None = None
    ) -> ErrorCode:
        assert built is None or built.count == len(records)
        if self.refuses_with:
            return self.refuses_with
        assert records
        self.records += records
        self.writes.append(len(records))
        self._later(written)
        return ErrorCode.NONE

    def when_settled(self, call: Callable[[ErrorCode], None]) -> None:
        self._later(call)

    def _later(self, call: Callable[[ErrorCode], None]) -> None:
        if self.holds:
            self._held.append(call)
        else:
            call(ErrorCode.NONE)

    def settle(self, error: ErrorCode = ErrorCode.NONE) -> None:
        held, self._held = self._held, []
        for call in held:
            call(error)

    def replay(self) -> None:
        raise AssertionError("the tests replay record by record")

    def compacted(self) -> list[JournalRecord]:
        """The last record of each key, in their order: what the cleaner leaves."""
        last = {record.key: number for number, record in enumerate(self.records)}
        return [record for number, record in enumerate(self.records) if last[record.key] == number]


class Room:
    #: Work for a target that is done as part of a heartbeat; with less, more goes in steps.
    work_at_once_max = WORK_AT_ONCE_MAX

    def __init__(self, **properties: str) -> None:
        self.journal = MemoryJournal()
        self.metadata = MetadataCache()
        self.properties: dict[str, str] = {}
        self.monotonic_ms = 0
        #: Asked about topics by an authorizer; None where all is allowed.
        self.may_describe: Callable[[str], bool] | None = None
        self.settings: GroupsConfig
        self.configure(**properties)
        #: Targets that are being computed. `long_work` goes on with them.
        self.beside: deque[Steps[None]] = deque()
        self.shard = self._new_shard()
        self._topics = 0
        #: Answers on their way: clients hear of them when the coordinator is done.
        self.answers: list[Callable[[], None]] = []

    def configure(self, **properties: str) -> None:
        self.properties |= {name.replace("_", "."): value for name, value in properties.items()}
        self.settings = Config.parse(self.properties).groups

    def _new_shard(self) -> GroupShard:
        shared = ShardContext(Counts(), TopicPatterns(self.metadata), self.beside.append, self.work_at_once_max)
        entropy = SeededEntropy(len(self.journal.records))
        return GroupShard(0, self.journal, lambda: self.settings, self.metadata, entropy, shared)

    def long_work(self, steps: int = 1 << 30) -> None:
        """Does so many steps of it, or all that there is."""
        while self.beside and steps:
            try:
                next(self.beside[0])
            except StopIteration:
                self.beside.popleft()
            steps -= 1

    # The world.

    @property
    def now(self) -> Now:
        return Now(WALL_MS + self.monotonic_ms, self.monotonic_ms)

    def advance(self, ms: int) -> None:
        """Timers go off at their moments, one after another."""
        until = self.monotonic_ms + ms
        while (due := self.shard.timers.next_deadline_ms()) is not None and due <= until:
            self.monotonic_ms = max(self.monotonic_ms, due)
            self.shard.timers.expire(self.now)
            self.deliver()
        self.monotonic_ms = until

    def deliver(self) -> None:
        while self.answers:
            self.answers.pop(0)()

    def later(self, take: Callable[[T], None]) -> Callable[[T], None]:
        """A reply that arrives with the next delivery."""
        return lambda response: self.answers.append(lambda: take(response))

    def topic(self, name: str, partitions: int) -> TopicId:
        """Creates a topic, or gives it more partitions."""
        known = self.metadata.topic(name)
        if known is None:
            self._topics += 1
        topic_id = known.id if known is not None else TopicId(bytes(14) + self._topics.to_bytes(2, "big"))
        me = BrokerId(1)
        states = [
            PartitionState(name, number, topic_id, Epoch(1), me, Epoch(0), (me,), (me,), 0)
            for number in range(partitions)
        ]
        assert self.metadata.apply(MetadataUpdate(controller_epoch=Epoch(1), partitions=states))
        return topic_id

    def delete_topic(self, name: str) -> None:
        assert self.metadata.apply(MetadataUpdate(controller_epoch=Epoch(1), topics_deleted=[name]))

    # The coordinator.

    def restart(self, records: Sequence[JournalRecord] | None = None) -> None:
        """Another coordinator takes over, from all records or from these."""
        self.shard.unload(ErrorCode.NOT_COORDINATOR, self.now)
        self.long_work()
        self.shard = self._new_shard()
        for number, record in enumerate(self.journal.records if records is None else records):
            self.shard.replay(record.key, record.value, number, -1)
        for _ in self.shard.loaded(self.now):
            pass

    @property
    def group(self) -> ConsumerGroup:
        found = self.shard.groups[GROUP]
        assert isinstance(found, ConsumerGroup)
        return found

    def caller(self, version: int = 1, client_id: str = "client") -> Caller:
        return Caller(client_id, "/127.0.0.1", version, self.now, self.may_describe)

    def ask(self, request: Callable[[Callable[[T], None]], None]) -> T:
        """The answer, which has to come at once, or when the group has its target."""
        answers: list[T] = []
        request(answers.append)
        while not answers and self.beside:
            self.long_work(1)
        assert len(answers) == 1
        return answers[0]

    def beat(self, request: ConsumerGroupHeartbeatRequest, version: int = 1) -> ConsumerGroupHeartbeatResponse:
        prepared = at_once(self.shard.prepare_heartbeat(request))
        return self.ask(
            lambda reply: self.shard.consumer_group_heartbeat(self.caller(version), request, reply, prepared)
        )

    def beat_unprepared(
        self, request: ConsumerGroupHeartbeatRequest, version: int = 1
    ) -> ConsumerGroupHeartbeatResponse:
        """As if what its expressions stand for had been forgotten again, or topics had come, since it was prepared."""
        return self.ask(lambda reply: self.shard.consumer_group_heartbeat(self.caller(version), request, reply))

    def describe(self) -> DescribedGroup:
        return at_once(self.shard.describe_consumer_group(GROUP))

    def check(self) -> None:
        """What holds at every moment."""
        group = self.shard.groups.get(GROUP)
        if not isinstance(group, ConsumerGroup):
            return
        owners: dict[tuple[TopicId, int], str] = {}
        for member in group.members.values():
            for owned in (member.assigned, member.pending_revocation):
                for topic, partitions in owned.items():
                    assert partitions
                    for partition in partitions:
                        other = owners.setdefault((topic, partition), member.id)
                        assert other == member.id, f"{topic.hex()}-{partition} is {other}'s and {member.id}'s"
                        assert group.owner_of(topic, partition) == member.id
            assert member.epoch <= max(group.epoch, 0)
        targets = [
            (topic, partition)
            for target in group.target.values()
            for topic, partitions in target.items()
            for partition in partitions
        ]
        assert len(targets) == len(set(targets))
        assert group.assignment_epoch <= group.epoch
        assert set(group.target) <= set(group.members)


class Consumer:
    """A member of the newer protocol. It gives up partitions when it is told to, or only when it gets to it."""

    def __init__(
        self,
        room: Room,
        name: str,
        topics: Sequence[str] | None = ("t",),
        *,
        regex: str | None = None,
        instance: str | None = None,
        assignor: str | None = None,
        rebalance_ms: int = 60_000,
    ) -> None:
        self.room = room
        self.name = name
        self.topics = topics
        self.regex = regex
        self.instance = instance
        self.assignor = assignor
        self.rebalance_ms = rebalance_ms
        self.epoch = 0
        #: What it reads.
        self.owned: set[tuple[TopicId, int]] = set()
        #: What it was last told to read.
        self.told: set[tuple[TopicId, int]] = set()
        self.revokes_at_once = True
        self.last = ConsumerGroupHeartbeatResponse()

    def revoke(self) -> None:
        self.owned &= self.told

    def request(self, epoch: int | None = None) -> ConsumerGroupHeartbeatRequest:
        """A full one: the coordinator takes out of it what is new."""
        by_topic: dict[TopicId, list[int]] = {}
        for topic, partition in sorted(self.owned):
            by_topic.setdefault(topic, []).append(partition)
        return ConsumerGroupHeartbeatRequest(
            group_id=GROUP,
            member_id=self.name,
            member_epoch=self.epoch if epoch is None else epoch,
            instance_id=self.instance,
            rebalance_timeout_ms=self.rebalance_ms,
            # What is missing stays as it was, also for who takes an instance over.
            subscribed_topic_names=list(self.topics or ()),
            subscribed_topic_regex=self.regex or "",
            server_assignor=self.assignor,
            topic_partitions=[TopicPartitions(topic_id=topic, partitions=parts) for topic, parts in by_topic.items()],
        )

    def beat(self) -> ErrorCode:
        """One heartbeat. Fenced, it gives all up, and joins with the next."""
        self.last = self.room.beat(self.request())
        error = ErrorCode(self.last.error_code)
        self.heard(self.last)
        return error

    def heard(self, response: ConsumerGroupHeartbeatResponse) -> None:
        error = ErrorCode(response.error_code)
        if error in {ErrorCode.FENCED_MEMBER_EPOCH, ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.GROUP_ID_NOT_FOUND}:
            self.epoch = 0
            self.owned, self.told = set(), set()
            return
        if error:
            return
        self.epoch = response.member_epoch
        if response.assignment is not None:
            self.told = {
                (TopicId(bytes(entry.topic_id)), partition)
                for entry in response.assignment.topic_partitions
                for partition in entry.partitions
            }
            if self.revokes_at_once or not self.owned - self.told:
                self.owned = set(self.told)

    def leave(self, epoch: int = -1) -> ErrorCode:
        request = ConsumerGroupHeartbeatRequest(
            group_id=GROUP, member_id=self.name, member_epoch=epoch, instance_id=self.instance
        )
        self.last = self.room.beat(request)
        self.owned, self.told = set(), set()
        self.epoch = 0
        return ErrorCode(self.last.error_code)

    @property
    def partitions(self) -> list[int]:
        """Of all topics."""
        return sorted(partition for _, partition in self.owned)


def settle(consumers: Sequence[Consumer], rounds_max: int = 20) -> int:
    """Heartbeats in turn until nobody hears anything new; how many rounds that took."""
    for number in range(rounds_max):
        before = [(one.epoch, set(one.owned)) for one in consumers]
        for one in consumers:
            one.beat()
            one.room.check()
        if before == [(one.epoch, one.owned) for one in consumers]:
            return number
    raise AssertionError(f"not at rest after {rounds_max} rounds")
