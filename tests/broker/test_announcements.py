"""What a broker is told by others is carried out one after the other, whoever is the controller by then."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence

import pytest
from tests.replication.roles_world import TP, US, RolesWorld

from ottla.broker.announcements import BrokerAnnouncements
from ottla.config import Config
from ottla.config.live import LiveConfig
from ottla.controller.announcing.origin import Origin
from ottla.controller.deciding.orders import EPOCH_DURING_DELETE, ReplicaStop
from ottla.metadata import MetadataCache, MetadataUpdate
from ottla.model import BrokerId, Epoch, ErrorCode


def test_settings_that_waited_behind_another_controllers_announcement_are_learned() -> None:
    world, metadata = RolesWorld(), MetadataCache()
    answered = world.ports.loop.create_future()

    async def from_the_tree(_: Sequence[str]) -> Mapping[str, Mapping[str, str]]:
        await answered
        return {TP.topic: {"retention.ms": "1"}}

    async def work() -> None:
        announced = BrokerAnnouncements(
            *(US, world.ports.clock, LiveConfig(Config.parse()), metadata, world.replicas),
            on_settings=lambda _: None,
            topic_overrides=from_the_tree,
        )
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

    async def from_the_tree(_: Sequence[str]) -> Mapping[str, Mapping[str, str]]:
        return overrides

    async def work() -> None:
        announced = BrokerAnnouncements(
            *(US, world.ports.clock, LiveConfig(Config.parse()), metadata, world.replicas),
            on_settings=lambda _: None,
            topic_overrides=from_the_tree,
        )
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

    async def from_the_tree(topics: Sequence[str]) -> Mapping[str, Mapping[str, str]]:
        read.append(topics)
        return {TP.topic: {"retention.ms": "2"}}

    async def work() -> None:
        announced = BrokerAnnouncements(
            *(US, world.ports.clock, LiveConfig(Config.parse()), metadata, world.replicas),
            on_settings=lambda _: None,
            topic_overrides=from_the_tree,
        )
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
