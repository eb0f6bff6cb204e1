"""What a broker is told by others is carried out one after the other, whoever is the controller by then."""

from __future__ import annotations

import asyncio
import errno
from collections.abc import Awaitable, Callable, Mapping, Sequence

import pytest
from tests.replication.roles_world import DIRECTORIES, OTHER, TP, US, RolesWorld

from ottla.broker.announcements import BrokerAnnouncements
from ottla.config import Config
from ottla.config.live import LiveConfig
from ottla.controller.announcing.origin import Origin
from ottla.controller.deciding.orders import EPOCH_DURING_DELETE, ReplicaStop
from ottla.coordination.errors import ConnectionLoss
from ottla.metadata import MetadataCache, MetadataUpdate
from ottla.model import BrokerId, Epoch, ErrorCode

Overrides = Mapping[str, Mapping[str, str]]


def announcements(
    world: RolesWorld, metadata: MetadataCache, from_the_tree: Callable[[Sequence[str]], Awaitable[Overrides]]
) -> BrokerAnnouncements:
    return BrokerAnnouncements(
        *(US, world.ports.clock, LiveConfig(Config.parse()), metadata, world.replicas),
        on_settings=lambda _: None,
        topic_overrides=from_the_tree,
    )


def test_settings_that_waited_behind_another_controllers_announcement_are_learned() -> None:
    world, metadata = RolesWorld(), MetadataCache()
    answered = world.ports.loop.create_future()

    async def from_the_tree(_: Sequence[str]) -> Overrides:
        await answered
        return {TP.topic: {"retention.ms": "1"}}

    async def work() -> None:
        announced = announcements(world, metadata, from_the_tree)
        former, later = (Origin(BrokerId(1), Epoch(number)) for number in (5, 6))
        assert await announced.take_metadata(former, MetadataUpdate(controller_epoch=Epoch(5))) is ErrorCode.NONE
        roles = asyncio.ensure_future(announced.take_roles(former, [world.state(1)]))
        await asyncio.sleep(0)
        cluster = asyncio.ensure_future(announced.take_metadata(later, MetadataUpdate(controller_epoch=Epoch(6))))
        await asyncio.sleep(0)
        changed = {TP.topic: {"retention.ms": "2"}}
        note = MetadataUpdate(controller_epoch=metadata.controller_epoch, topic_configs=changed)
        learned = asyncio.ensure_future(announced.learn(note))
        await asyncio.sleep(0)
        answered.set_result(None)
        assert await roles == {}
        assert await cluster is ErrorCode.NONE
        await learned
        assert metadata.controller_epoch == 6
        assert metadata.topic_config(TP.topic) == changed[TP.topic]
        assert world.leader.log.config.retention_ms == 2

    world.ports.loop.run_until_complete(work())


def test_a_topic_that_was_taken_back_unseen_leaves_no_settings_to_a_later_one_of_its_name() -> None:
    """One that there was no room for: clients were never shown it, so that no metadata says that it is gone."""
    world, metadata = RolesWorld(), MetadataCache()
    overrides = {TP.topic: {"retention.ms": "1"}}

    async def from_the_tree(_: Sequence[str]) -> Overrides:
        return overrides

    async def work() -> None:
        announced = announcements(world, metadata, from_the_tree)
        controller = Origin(BrokerId(1), Epoch(5))
        assert await announced.take_roles(controller, [world.state(0, controller_epoch=5)]) == {}
        assert world.leader.log.config.retention_ms == 1
        gone = ReplicaStop(TP, EPOCH_DURING_DELETE, delete=True)
        assert await announced.stop_replicas(controller, [gone]) == {}
        overrides[TP.topic] = {"retention.ms": "2"}
        again = world.state(0, controller_epoch=5, topic_id=bytes(range(1, 17)))
        assert await announced.take_roles(controller, [again]) == {}
        assert world.leader.log.config.retention_ms == 2

    world.ports.loop.run_until_complete(work())


@pytest.mark.parametrize("shown", [False, True])
def test_settings_that_a_start_has_read_of_a_deleted_topic_are_not_those_of_a_later_one_of_its_name(
    *, shown: bool
) -> None:
    """The deletion waits for a broker that is away, and so does the node in the tree; then the topic is made anew."""
    world, metadata = RolesWorld(), MetadataCache()
    read: list[Sequence[str]] = []

    async def from_the_tree(topics: Sequence[str]) -> Overrides:
        read.append(topics)
        return {TP.topic: {"retention.ms": "2"}}

    async def work() -> None:
        announced = announcements(world, metadata, from_the_tree)
        await announced.learn(
            MetadataUpdate(controller_epoch=Epoch(0), topic_configs={TP.topic: {"retention.ms": "1"}})
        )
        controller, state = Origin(BrokerId(1), Epoch(5)), world.state(0, controller_epoch=5)
        update = MetadataUpdate(controller_epoch=Epoch(5), partitions=[state])
        if shown:
            assert await announced.take_metadata(controller, update) is ErrorCode.NONE
        assert await announced.take_roles(controller, [state]) == {}
        assert world.leader.log.config.retention_ms == 2
        assert metadata.topic_config(TP.topic) == {"retention.ms": "2"}
        # What is known from then on is read no more.
        assert await announced.take_metadata(controller, update) is ErrorCode.NONE
        read.clear()
        assert await announced.take_roles(controller, [world.state(1, controller_epoch=5)]) == {}
        assert await announced.take_metadata(controller, update) is ErrorCode.NONE
        assert read == []

    world.ports.loop.run_until_complete(work())


def test_settings_that_cannot_be_read_just_now_are_read_when_the_topic_is_announced_again() -> None:
    """What is known of its name may be of an earlier topic, whose node in the tree outlived it."""
    world, metadata = RolesWorld(), MetadataCache()
    faults: list[Exception] = [ConnectionLoss("planted")]

    async def from_the_tree(_: Sequence[str]) -> Overrides:
        if faults:
            raise faults.pop()
        return {TP.topic: {"retention.ms": "2"}}

    async def work() -> None:
        announced = announcements(world, metadata, from_the_tree)
        await announced.learn(
            MetadataUpdate(controller_epoch=Epoch(0), topic_configs={TP.topic: {"retention.ms": "1"}})
        )
        controller = Origin(BrokerId(1), Epoch(5))
        elsewhere = world.state(0, OTHER, replicas=(OTHER,), controller_epoch=5)
        update = MetadataUpdate(controller_epoch=Epoch(5), partitions=[elsewhere])
        with pytest.raises(ConnectionLoss):
            await announced.take_metadata(controller, update)
        assert await announced.take_metadata(controller, update) is ErrorCode.NONE
        assert metadata.topic_config(TP.topic) == {"retention.ms": "2"}
        assert not announced._unread
        # A replica that moves here later goes by them as well.
        here = world.state(1, OTHER, replicas=(OTHER, US), controller_epoch=5)
        assert await announced.take_roles(controller, [here]) == {}
        assert world.follower.log.config.retention_ms == 2

    world.ports.loop.run_until_complete(work())


class FullDisk:
    """A broker that had no room for a replica of a topic that keeps its records for a second."""

    def __init__(self) -> None:
        self.world, self.metadata = RolesWorld(), MetadataCache()
        self._retention_ms = 1000
        self._announced = announcements(self.world, self.metadata, self._from_the_tree)
        for path in DIRECTORIES:
            self.world.ports.disk.fail("make_directory", f"{path}/t-*", errno.ENOSPC)

    async def _from_the_tree(self, _: Sequence[str]) -> Overrides:
        return {TP.topic: {"retention.ms": str(self._retention_ms)}}

    async def gives_role(self) -> ErrorCode:
        refused = await self._announced.take_roles(Origin(BrokerId(1), Epoch(5)), [self.world.state(1)])
        return refused.get(TP, ErrorCode.NONE)

    async def hears(self, update: MetadataUpdate) -> ErrorCode:
        return await self._announced.take_metadata(Origin(BrokerId(1), Epoch(5)), update)

    async def keeps_for(self, ms: int) -> None:
        self._retention_ms = ms
        changed = {TP.topic: {"retention.ms": str(ms)}}
        await self._announced.learn(
            MetadataUpdate(controller_epoch=self.metadata.controller_epoch, topic_configs=changed)
        )

    async def makes_missing(self) -> None:
        await self.world.replicas.change(self.world.replicas.make_missing())

    def has_log(self) -> bool:
        return self.world.replicas.directories.get(TP) is not None


def test_a_log_that_a_full_disk_had_no_room_for_is_made_later_with_the_settings_of_that_moment() -> None:
    full = FullDisk()

    async def work() -> None:
        assert await full.gives_role() is ErrorCode.KAFKA_STORAGE_ERROR
        await full.makes_missing()
        await full.keeps_for(7000)
        full.world.ports.disk.stop_failing()
        await full.makes_missing()
        made = full.world.replicas.directories.get(TP)
        assert made is not None
        # Its files are laid out by them as well.
        assert made.config.retention_ms == 7000
        assert await full.gives_role() is ErrorCode.NONE
        assert full.world.leader.log.config.retention_ms == 7000

    full.world.ports.loop.run_until_complete(work())


def test_settings_that_change_while_a_worker_makes_a_log_that_lacked_room_govern_it() -> None:
    full = FullDisk()

    async def work() -> None:
        assert await full.gives_role() is ErrorCode.KAFKA_STORAGE_ERROR
        full.world.ports.disk.stop_failing()
        full.world.ports.workers.latency_ms = (10, 10)
        making = asyncio.ensure_future(full.makes_missing())
        await asyncio.sleep(0.005)
        await full.keeps_for(7000)
        # No log was there to take it.
        assert not full.has_log()
        await making
        assert full.has_log()
        assert await full.gives_role() is ErrorCode.NONE
        assert full.world.leader.log.config.retention_ms == 7000
        await full.keeps_for(8000)
        assert full.world.leader.log.config.retention_ms == 8000

    full.world.ports.loop.run_until_complete(work())


@pytest.mark.parametrize("is_later", [True, False])
def test_a_log_that_lacked_room_is_not_made_where_its_partition_is_elsewhere_by_now(is_later: bool) -> None:
    """The move to this broker was called off while it was away, and nobody will stop a replica here."""
    full = FullDisk()

    async def work() -> None:
        assert await full.gives_role() is ErrorCode.KAFKA_STORAGE_ERROR
        elsewhere = full.world.state(2 if is_later else 0, OTHER, replicas=(OTHER,), controller_epoch=5)
        update = MetadataUpdate(controller_epoch=Epoch(5), whole=True, partitions=[elsewhere])
        assert await full.hears(update) is ErrorCode.NONE
        full.world.ports.disk.stop_failing()
        await full.makes_missing()
        assert full.has_log() is not is_later
        assert full.world.replicas.lacks_some is not is_later

    full.world.ports.loop.run_until_complete(work())
