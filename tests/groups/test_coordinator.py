"""The coordinator's shell: which partition answers, what is said while there is none, and its one timer."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable

import pytest
from tests.groups.journal import MemoryJournal
from tests.groups.world import DAY_MS, GROUP, TOPIC, Answer, commit_error, groups_config, subscription

from ottla.coordinators.caller import Caller, Now
from ottla.coordinators.led_partitions import LOAD_RETRY_S
from ottla.groups.coordinator import GroupCoordinator
from ottla.groups.shard import GroupShard
from ottla.metadata.cache import MetadataCache
from ottla.metadata.updates import MetadataUpdate, PartitionState
from ottla.model import OFFSETS_TOPIC, ZERO_TOPIC_ID, BrokerId, Epoch, ErrorCode, TopicId
from ottla.ports.memory.clock import Timeline, VirtualClock
from ottla.ports.memory.entropy import SeededEntropy
from ottla.ports.memory.loop import VirtualLoop
from ottla.protocol.generated.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from ottla.protocol.generated.heartbeat import HeartbeatRequest
from ottla.protocol.generated.join_group import JoinGroupRequest, JoinGroupRequestProtocol, JoinGroupResponse
from ottla.protocol.generated.leave_group import LeaveGroupRequest, MemberIdentity
from ottla.protocol.generated.list_groups import ListGroupsRequest, ListGroupsResponse
from ottla.protocol.generated.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)
from ottla.protocol.generated.offset_delete import OffsetDeleteRequest
from ottla.protocol.generated.offset_fetch import OffsetFetchRequestGroup, OffsetFetchRequestTopics
from ottla.protocol.generated.sync_group import SyncGroupRequest
from ottla.protocol.hot.offset_records import NO_EXPIRY, offset_key, offset_value
from ottla.steps import Steps, at_once

PARTITIONS = 5


class SlowJournal(MemoryJournal):
    """Gives nothing to load before it is let."""

    def __init__(self) -> None:
        super().__init__()
        self.may_load = asyncio.Event()

    async def replay(self) -> AsyncIterator[bytes]:
        await self.may_load.wait()
        async for chunk in super().replay():
            yield chunk


class BrokenJournal(MemoryJournal):
    async def replay(self) -> AsyncIterator[bytes]:
        raise OSError("the disk is gone")
        yield b""


class FlakyJournal(MemoryJournal):
    """Its disk answers again after a while."""

    def __init__(self) -> None:
        super().__init__()
        self.failures_left = 2

    async def replay(self) -> AsyncIterator[bytes]:
        async for chunk in super().replay():
            yield chunk  # a part of it is read before it fails
        if self.failures_left:
            self.failures_left -= 1
            raise OSError("the disk does not answer")


class House:
    def __init__(self, loop: VirtualLoop) -> None:
        self.clock = VirtualClock(loop.timeline)
        self.metadata = MetadataCache()
        settings = groups_config(group_initial_rebalance_delay_ms="3000")
        self.coordinator = GroupCoordinator(lambda: settings, self.metadata, self.clock, SeededEntropy(1))

    def create_topic(self, name: str = OFFSETS_TOPIC, partitions: int = PARTITIONS) -> None:
        assert self.metadata.apply(MetadataUpdate(controller_epoch=Epoch(1), partitions=self.states(name, partitions)))

    def hear_everything(self, *states: PartitionState) -> None:
        """An update that names all topics there are: the offsets topic, and these."""
        named = [*self.states(OFFSETS_TOPIC, PARTITIONS), *states]
        assert self.metadata.apply(MetadataUpdate(controller_epoch=Epoch(1), whole=True, partitions=named))

    @staticmethod
    def states(name: str, partitions: int, topic_id: bytes | None = None) -> list[PartitionState]:
        broker = BrokerId(1)
        return [
            PartitionState(
                topic=name,
                topic_id=TopicId(topic_id or name.encode()[:16].ljust(16)),
                partition=number,
                leader=broker,
                controller_epoch=Epoch(1),
                partition_epoch=0,
                leader_epoch=Epoch(0),
                replicas=(broker,),
                isr=(broker,),
            )
            for number in range(partitions)
        ]

    async def elect(self, journal: MemoryJournal, group: str = GROUP) -> None:
        """This broker coordinates the group's partition, and has loaded it."""
        self.create_topic()
        self.coordinator.led.elected(self.coordinator.partition_for(group), journal)
        for _ in range(10):
            await asyncio.sleep(0)

    @property
    def now(self) -> Now:
        return Now(self.clock.wall_ms(), self.clock.monotonic_ms())

    def caller(self, version: int = 9) -> Caller:
        return Caller("client", "/127.0.0.1", version, self.now)

    def commit(self, offset: int, group: str = GROUP) -> ErrorCode:
        entry = OffsetCommitRequestPartition(partition_index=0, committed_offset=offset)
        topic = OffsetCommitRequestTopic(name=TOPIC, partitions=[entry])
        answer: Answer[OffsetCommitResponse] = Answer()
        at_once(
            self.coordinator.shard_for(group).offset_commit(
                self.caller(), OffsetCommitRequest(group_id=group, topics=[topic]), answer
            )
        )
        return commit_error(answer)

    def committed(self, group: str = GROUP) -> int:
        topics = [OffsetFetchRequestTopics(name=TOPIC, partition_indexes=[0])]
        found = at_once(
            self.coordinator.shard_for(group).offset_fetch(
                OffsetFetchRequestGroup(group_id=group, topics=topics), False
            )
        )
        assert found.error_code == ErrorCode.NONE
        return found.topics[0].partitions[0].committed_offset

    def join(self, member_id: str = "", group: str = GROUP) -> Answer[JoinGroupResponse]:
        request = JoinGroupRequest(
            group_id=group,
            member_id=member_id,
            session_timeout_ms=10_000,
            rebalance_timeout_ms=60_000,
            protocol_type="consumer",
            protocols=[JoinGroupRequestProtocol(name="range", metadata=subscription(TOPIC))],
        )
        answer: Answer[JoinGroupResponse] = Answer()
        self.coordinator.shard_for_member(group).join_group(self.caller(), request, answer)
        return answer

    def listed(self) -> ListGroupsResponse:
        answer: Answer[ListGroupsResponse] = Answer()
        answer(at_once(self.coordinator.list_groups(ListGroupsRequest())))
        return answer.value

    def errors(self, group: str = GROUP) -> dict[str, ErrorCode]:
        """What each request is answered with."""
        caller = self.caller()
        shard, members = self.coordinator.shard_for(group), self.coordinator.shard_for_member(group)
        found: dict[str, ErrorCode] = {"join": self.join(group=group).error, "commit": self.commit(1, group)}

        def ask(name: str, call: Callable[..., Steps[None] | None], *arguments: object) -> None:
            answer: Answer = Answer()
            steps = call(caller, *arguments, answer)
            if steps is not None:
                at_once(steps)
            found[name] = answer.value if isinstance(answer.value, ErrorCode) else answer.error

        leaver = [MemberIdentity(member_id="m")]
        ask("sync", members.sync_group, SyncGroupRequest(group_id=group, member_id="m"))
        ask("heartbeat", members.heartbeat, HeartbeatRequest(group_id=group, member_id="m"))
        ask("leave", members.leave_group, LeaveGroupRequest(group_id=group, members=leaver))
        fetched = at_once(shard.offset_fetch(OffsetFetchRequestGroup(group_id=group), False))
        found["fetch"] = ErrorCode(fetched.error_code)
        ask("offset delete", members.offset_delete, OffsetDeleteRequest(group_id=group))
        found["describe"] = ErrorCode(at_once(shard.describe_group(group, 6)).error_code)
        ask("delete", shard.delete_group, group)
        request = ConsumerGroupHeartbeatRequest(group_id=group, member_id="m")
        ask("consumer heartbeat", members.consumer_group_heartbeat, request)
        found["describe consumer"] = ErrorCode(at_once(members.describe_consumer_group(group)).error_code)
        return found


def run(scene: Callable[[House], Awaitable[None]]) -> None:
    loop = VirtualLoop(Timeline())
    asyncio.set_event_loop(loop)

    async def main() -> None:
        house = House(loop)
        await scene(house)
        await house.coordinator.close()

    try:
        loop.run_until_complete(main())
    finally:
        asyncio.set_event_loop(None)
        loop.close()


async def turns() -> None:
    for _ in range(10):
        await asyncio.sleep(0)


def test_without_an_offsets_topic() -> None:
    async def scene(house: House) -> None:
        assert set(house.errors().values()) == {ErrorCode.COORDINATOR_NOT_AVAILABLE}
        assert house.coordinator.partition_for(GROUP) < 50

    run(scene)


def test_another_brokers_group() -> None:
    async def scene(house: House) -> None:
        house.create_topic()
        assert set(house.errors().values()) == {ErrorCode.NOT_COORDINATOR}
        assert house.listed().groups == []

    run(scene)


def test_while_it_is_loaded() -> None:
    async def scene(house: House) -> None:
        journal = SlowJournal()
        journal.add((offset_key(GROUP, TOPIC, 0), offset_value(5, -1, "", 1, -1, bytes(16))))
        await house.elect(journal)
        errors = house.errors()
        # Who heartbeats is fine; who syncs has to join again, since the rebalance is not known any more.
        assert errors.pop("heartbeat") is ErrorCode.NONE
        assert errors.pop("sync") is ErrorCode.REBALANCE_IN_PROGRESS
        assert set(errors.values()) == {ErrorCode.COORDINATOR_LOAD_IN_PROGRESS}
        assert house.listed().error_code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        journal.may_load.set()
        await turns()
        assert house.committed() == 5
        assert [group.group_id for group in house.listed().groups] == [GROUP]
        assert house.listed().error_code == ErrorCode.NONE

    run(scene)


@pytest.mark.parametrize("group", ["", "g" * 65_000])
def test_names_that_no_group_with_members_can_have(group: str) -> None:
    async def scene(house: House) -> None:
        await house.elect(MemoryJournal(), group)
        errors = house.errors(group)
        for name in ("join", "sync", "heartbeat", "leave", "offset delete", "describe consumer"):
            assert errors[name] is ErrorCode.INVALID_GROUP_ID, name
        assert errors["consumer heartbeat"] is (ErrorCode.INVALID_GROUP_ID if group else ErrorCode.INVALID_REQUEST)
        # Kafka keeps offsets of consumers without a group's name.
        assert errors["commit"] is (ErrorCode.INVALID_GROUP_ID if group else ErrorCode.NONE)

    run(scene)


def test_a_coordinator_that_moves_in_the_middle() -> None:
    async def scene(house: House) -> None:
        journal = MemoryJournal()
        await house.elect(journal)
        partition = house.coordinator.partition_for(GROUP)
        assert house.commit(5) is ErrorCode.NONE
        joining = house.join(house.join().value.member_id)
        house.coordinator.led.resigned(partition)
        assert joining.error is ErrorCode.NOT_COORDINATOR
        assert house.commit(6) is ErrorCode.NOT_COORDINATOR
        # Its timers are of no effect any more.
        await asyncio.sleep(60)
        house.coordinator.led.elected(partition, journal)
        await turns()
        assert house.committed() == 5

    run(scene)


def test_another_epoch_of_the_same_broker() -> None:
    async def scene(house: House) -> None:
        journal = MemoryJournal()
        await house.elect(journal)
        joining = house.join(house.join().value.member_id)
        await house.elect(journal)
        assert joining.error is ErrorCode.NOT_COORDINATOR
        assert house.commit(1) is ErrorCode.NONE

    run(scene)


def test_resigned_while_it_is_loaded() -> None:
    async def scene(house: House) -> None:
        journal = SlowJournal()
        await house.elect(journal)
        house.coordinator.led.resigned(house.coordinator.partition_for(GROUP))
        journal.may_load.set()
        await turns()
        assert house.commit(1) is ErrorCode.NOT_COORDINATOR

    run(scene)


def test_a_journal_that_loses_a_write_is_loaded_again() -> None:
    async def scene(house: House) -> None:
        journal = MemoryJournal()
        await house.elect(journal)
        assert house.commit(5) is ErrorCode.NONE
        partition = house.coordinator.partition_for(GROUP)
        names = (f"group-{number}" for number in range(1_000))
        beside = next(name for name in names if house.coordinator.partition_for(name) == partition)
        joining = house.join(house.join(group=beside).value.member_id, beside)
        journal.held = True
        answer: Answer[OffsetCommitResponse] = Answer()
        entry = OffsetCommitRequestPartition(partition_index=0, committed_offset=6)
        topics = [OffsetCommitRequestTopic(name=TOPIC, partitions=[entry])]
        commit = OffsetCommitRequest(group_id=GROUP, topics=topics)
        at_once(house.coordinator.shard_for(GROUP).offset_commit(house.caller(), commit, answer))
        journal.lose()
        house.coordinator.led.journal_failed(partition)
        assert commit_error(answer) is ErrorCode.NOT_COORDINATOR
        assert joining.error is ErrorCode.NOT_COORDINATOR
        assert house.commit(7) is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        await turns()
        assert house.committed() == 5

    run(scene)


def test_a_log_that_cannot_be_loaded() -> None:
    async def scene(house: House) -> None:
        await house.elect(BrokenJournal())
        assert house.commit(1) is ErrorCode.NOT_COORDINATOR
        assert house.listed().error_code == ErrorCode.NONE
        await house.elect(MemoryJournal())
        assert house.commit(1) is ErrorCode.NONE

    run(scene)


def test_a_log_that_could_not_be_loaded_is_tried_again() -> None:
    async def scene(house: House) -> None:
        journal = FlakyJournal()
        journal.add((offset_key(GROUP, TOPIC, 0), offset_value(5, -1, "", 1, -1, bytes(16))))
        await house.elect(journal)
        for _ in range(2):
            assert house.commit(6) is ErrorCode.NOT_COORDINATOR
            await asyncio.sleep(LOAD_RETRY_S)
        await turns()
        assert house.committed() == 5
        # Given up meanwhile it is not.
        journal.failures_left = 1
        await house.elect(journal)
        house.coordinator.led.resigned(house.coordinator.partition_for(GROUP))
        await asyncio.sleep(2 * LOAD_RETRY_S)
        assert house.commit(6) is ErrorCode.NOT_COORDINATOR

    run(scene)


def test_timers_of_all_partitions_are_kept_by_one_alarm() -> None:
    async def scene(house: House) -> None:
        house.create_topic()
        for partition in range(PARTITIONS):
            house.coordinator.led.elected(partition, MemoryJournal())
        await turns()
        groups = [f"group-{number}" for number in range(20)]
        joining = []
        for group in groups:
            joining.append(house.join(house.join(group=group).value.member_id, group))
            await asyncio.sleep(0.1)
        await asyncio.sleep(0.9)
        assert not any(answer.came for answer in joining)
        await asyncio.sleep(2.1)
        assert all(answer.value.generation_id == 1 for answer in joining)
        # All fall silent.
        await asyncio.sleep(20)
        assert {group.group_state for group in house.listed().groups} == {"Empty"}

    run(scene)


def test_a_clock_that_is_moved_by_hand() -> None:
    async def scene(house: House) -> None:
        await house.elect(MemoryJournal())
        assert house.commit(5) is ErrorCode.NONE
        house.clock.jump(8 * DAY_MS)
        house.coordinator.led.tick()
        await asyncio.sleep(600)
        assert house.committed() == -1

    run(scene)


def test_deleted_topics_take_their_offsets_along() -> None:
    async def scene(house: House) -> None:
        journal = SlowJournal()
        journal.may_load.set()
        await house.elect(journal)
        house.create_topic(TOPIC, 1)
        house.commit(5)
        gone = MetadataUpdate(controller_epoch=Epoch(1), topics_deleted=(TOPIC,))
        house.metadata.apply(gone)
        assert house.committed() == -1
        # The same while it is loaded.
        house.commit(6)
        journal.may_load.clear()
        await house.elect(journal)
        house.metadata.apply(gone)
        journal.may_load.set()
        await turns()
        assert house.committed() == -1

    run(scene)


@pytest.mark.parametrize("loads", [False, True], ids=["loaded", "while it is loaded"])
@pytest.mark.parametrize("is_whole", [True, False], ids=["everything", "a part"])
@pytest.mark.parametrize(
    ("found", "kept"),
    [(None, -1), (b"another".ljust(16), -1), (TOPIC.encode().ljust(16), 5), (ZERO_TOPIC_ID, 5)],
    ids=["gone", "another", "the same", "without an id"],
)
def test_a_deletion_that_no_update_names(*, found: bytes | None, kept: int, is_whole: bool, loads: bool) -> None:
    """The controller that has deleted the topic was replaced, or this broker was away, before it heard of that."""

    async def scene(house: House) -> None:
        journal = SlowJournal()
        journal.may_load.set()
        await house.elect(journal)
        house.create_topic(TOPIC, 1)
        house.commit(5)
        if loads:
            journal.may_load.clear()
            await house.elect(journal)
        states = house.states(TOPIC, 1, found) if found is not None else []
        if is_whole:
            house.hear_everything(*states)
        else:
            house.metadata.apply(MetadataUpdate(controller_epoch=Epoch(1), partitions=states))
        journal.may_load.set()
        await turns()
        assert house.committed() == (kept if is_whole or found is not None else 5)

    run(scene)


def test_a_broker_that_has_just_started_takes_no_topic_for_deleted() -> None:
    async def scene(house: House) -> None:
        journal = MemoryJournal()
        key, value = offset_key(GROUP, TOPIC, 0), offset_value(5, -1, "", house.now.wall_ms, NO_EXPIRY, bytes(16))
        journal.add((key, value))
        await house.elect(journal)
        house.hear_everything()
        assert house.committed() == 5
        house.hear_everything(*house.states(TOPIC, 1))
        assert house.committed() == 5
        house.hear_everything()
        assert house.committed() == -1
        # What the next topic of that name has is its own.
        house.hear_everything(*house.states(TOPIC, 1, b"another".ljust(16)))
        house.commit(6)
        house.hear_everything(*house.states(TOPIC, 1, b"another".ljust(16)))
        assert house.committed() == 6

    run(scene)


def test_a_lost_write_loses_no_deletion() -> None:
    async def scene(house: House) -> None:
        journal = MemoryJournal()
        await house.elect(journal)
        house.create_topic(TOPIC, 1)
        house.commit(5)
        journal.held = True
        house.metadata.apply(MetadataUpdate(controller_epoch=Epoch(1), topics_deleted=(TOPIC,)))
        journal.lose()
        house.coordinator.led.journal_failed(house.coordinator.partition_for(GROUP))
        journal.held = False
        await turns()
        assert house.committed() == -1
        house.create_topic(TOPIC, 1)
        house.commit(6)
        house.coordinator.led.journal_failed(house.coordinator.partition_for(GROUP))
        await asyncio.sleep(2)
        assert house.committed() == 6

    run(scene)


@pytest.mark.parametrize("in_transaction", [None, "committed", "given up"])
def test_a_deletion_that_is_carried_out_again_leaves_what_was_committed_in_the_new_topic(
    in_transaction: str | None,
) -> None:
    async def scene(house: House) -> None:
        journal = MemoryJournal()
        await house.elect(journal)
        house.create_topic(TOPIC, 1)
        house.commit(5)
        await asyncio.sleep(0.1)
        journal.refusal = ErrorCode.COORDINATOR_NOT_AVAILABLE
        house.metadata.apply(MetadataUpdate(controller_epoch=Epoch(1), topics_deleted=(TOPIC,)))
        journal.refusal = None
        house.create_topic(TOPIC, 1)
        await asyncio.sleep(0.1)
        if in_transaction:
            value = offset_value(6, -1, "", house.now.wall_ms, NO_EXPIRY, bytes(16))
            journal.add((offset_key(GROUP, TOPIC, 0), value), producer_id=7)
        else:
            assert house.commit(6) is ErrorCode.NONE
        # Before the sweep tries again.
        house.coordinator.led.journal_failed(house.coordinator.partition_for(GROUP))
        await asyncio.sleep(10)
        if in_transaction:
            shard = house.coordinator.shard_for(GROUP)
            assert isinstance(shard, GroupShard)
            shard.end_transaction(7, committed=in_transaction == "committed")
            await asyncio.sleep(10)
        assert house.committed() == (-1 if in_transaction == "given up" else 6)

    run(scene)


def test_numbers_for_metrics() -> None:
    async def scene(house: House) -> None:
        await house.elect(MemoryJournal())
        house.commit(5)
        house.commit(6)
        assert house.coordinator.counts.commits == 2
        assert list(house.coordinator.committed()) == [(GROUP, TOPIC, 0, 6)]
        assert [(each.type_name, each.state_name) for each in house.coordinator.groups()] == [("classic", "Empty")]

    run(scene)
