"""Topics that are created because somebody asked for them: once, some at a time, and not without end."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from ottla.config import Config
from ottla.config.live import LiveConfig
from ottla.controller.interface import TopicCreation, TopicToCreate
from ottla.handlers.on_demand.topics import AT_ONCE_MAX, WAITING_MAX, TopicsOnDemand
from ottla.model import OFFSETS_TOPIC, ErrorCode


class Creations:
    """The part of a controller that is asked; it answers when it is let."""

    def __init__(self) -> None:
        self.asked: list[list[TopicToCreate]] = []
        self.may_go_on = asyncio.Event()

    async def create_topics(self, topics: Sequence[TopicToCreate], **_: Any) -> list[TopicCreation]:
        self.asked.append(list(topics))
        await self.may_go_on.wait()
        return [TopicCreation(topic.name, ErrorCode.INVALID_REPLICATION_FACTOR, "no") for topic in topics]


def on_demand(creations: Creations) -> TopicsOnDemand:
    return TopicsOnDemand(creations, LiveConfig(Config.parse()))  # type: ignore[arg-type]


async def until_empty(topics: TopicsOnDemand) -> None:
    for _ in range(10 * WAITING_MAX):
        await asyncio.sleep(0)
        if not len(topics):
            return
    raise AssertionError(f"{len(topics)} topics wait for ever")


def test_a_name_is_created_once_however_often_it_is_asked_for() -> None:
    async def scenario() -> None:
        creations = Creations()
        topics = on_demand(creations)
        for _ in range(3):
            topics.ask("a")
            await asyncio.sleep(0)
        creations.may_go_on.set()
        await until_empty(topics)
        assert [[topic.name for topic in topics] for topics in creations.asked] == [["a"]]
        # What could not be created may be asked for again.
        topics.ask("a")
        await until_empty(topics)
        assert len(creations.asked) == 2

    asyncio.run(scenario())


def test_the_controller_is_asked_for_some_at_a_time_and_for_no_more_than_may_wait() -> None:
    async def scenario() -> None:
        creations = Creations()
        topics = on_demand(creations)
        for number in range(WAITING_MAX + 5):
            topics.ask(f"t-{number}")
        assert len(topics) == WAITING_MAX
        creations.may_go_on.set()
        await until_empty(topics)
        assert {len(asked) for asked in creations.asked} == {AT_ONCE_MAX}
        assert sum(map(len, creations.asked)) == WAITING_MAX

    asyncio.run(scenario())


def test_the_offsets_topic_is_made_as_it_is_to_be() -> None:
    async def scenario() -> None:
        creations = Creations()
        creations.may_go_on.set()
        topics = on_demand(creations)
        topics.ask(OFFSETS_TOPIC)
        await until_empty(topics)
        ((asked,),) = creations.asked
        assert (asked.partitions, asked.configs["cleanup.policy"]) == (50, "compact")

    asyncio.run(scenario())
