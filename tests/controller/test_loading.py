"""What the controller reads of the tree is read and decoded some at a time, with turns of the loop between."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Sequence
from typing import Any

import pytest
from tests.controller.cluster import Cluster
from tests.controller.several import Brokers
from tests.controller.test_tree_changes import assignment

from ottla.controller import loading
from ottla.controller.deciding.context import ClusterContext
from ottla.controller.identity import make_persistent_paths
from ottla.controller.interface import TopicToCreate
from ottla.coordination.interface import Create, Stat, WatchEvent
from ottla.coordination.local import LocalSession
from ottla.coordination.znodes import LeaderAndIsr, decoding_topic, encode_state, state_path
from ottla.model import BrokerId, Epoch, TopicPartition
from ottla.steps import STEPS_A_TURN

TOPICS = 600
#: Of one topic.
PARTITIONS = 600
STATES = [LeaderAndIsr(Epoch(1), BrokerId(1), Epoch(number), (BrokerId(1),)) for number in range(PARTITIONS)]


@pytest.fixture
def decoded(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> Counter[int]:
    """Texts of JSON that are decoded in each turn of the loop."""
    turns: Counter[int] = Counter()
    loads = json.loads

    def counting(text: str) -> Any:
        turns[cluster.world.loop.turns] += 1
        return loads(text)

    monkeypatch.setattr(json, "loads", counting)
    return turns


class CountingTree:
    """Notes how many nodes are read in each turn of the loop."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self.read: Counter[int] = Counter()

    async def get_many(self, paths: Sequence[str]) -> list[tuple[bytes, Stat] | None]:
        self.read[self._cluster.world.loop.turns] += len(paths)
        return await self._cluster.session.get_many(paths)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._cluster.session, name)


async def empty_tree(cluster: Cluster) -> LocalSession:
    tree = await cluster.open()
    await make_persistent_paths(tree)
    return tree


def nothing(_: WatchEvent) -> None:
    pass


def test_assignments_of_many_topics_are_decoded_in_several_turns(cluster: Cluster, decoded: Counter[int]) -> None:
    async def body() -> None:
        tree = await empty_tree(cluster)
        names = [f"t{number:03}" for number in range(TOPICS)]
        await tree.multi([Create(f"/brokers/topics/{name}", assignment((1,))) for name in names])
        for watch in (None, nothing):
            decoded.clear()
            found = await loading.load_assignments(tree, names, watch)
            assert [topic.name for topic in found] == names
            assert decoded.total() == TOPICS
            assert max(decoded.values()) <= STEPS_A_TURN

    cluster.run(body())


def test_states_are_read_and_decoded_in_several_turns(cluster: Cluster, decoded: Counter[int]) -> None:
    async def body() -> None:
        tree = await empty_tree(cluster)
        path = "/brokers/topics/orders"
        nodes = [Create(path, assignment(*[(1,)] * PARTITIONS)), Create(f"{path}/partitions")]
        for number, state in enumerate(STATES):
            nodes.append(Create(f"{path}/partitions/{number}"))
            nodes.append(Create(state_path("orders", number), encode_state(state)))
        await tree.multi(nodes)
        counting = CountingTree(cluster)
        context = ClusterContext()
        await loading.load_topics(counting, context)
        assert [known.state for known in context.topics["orders"].states.values()] == STATES
        assert decoded.total() > PARTITIONS
        assert max(decoded.values()) <= loading.READ_AT_ONCE + STEPS_A_TURN
        assert counting.read.total() > PARTITIONS
        assert max(counting.read.values()) <= loading.READ_AT_ONCE

    cluster.run(body())


def test_states_that_others_wrote_are_read_in_several_turns(cluster: Cluster) -> None:
    async def body() -> None:
        await cluster.start()
        await cluster.controller.create_topics([TopicToCreate("orders", PARTITIONS, 1)])
        core, counting = cluster.controller.tenure.core, CountingTree(cluster)
        core.coordination = counting
        partitions = [TopicPartition("orders", number) for number in range(PARTITIONS)]
        for tp, state in zip(partitions, STATES, strict=True):
            await cluster.session.set(state_path(*tp), encode_state(state))
        assert await core.read_again(partitions) == set(partitions)
        assert [known.state for known in cluster.context.topics["orders"].states.values()] == STATES
        assert counting.read.total() >= PARTITIONS
        assert max(counting.read.values()) <= loading.READ_AT_ONCE

    cluster.run(body())


def test_what_changes_while_it_is_read_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    brokers = Brokers()
    brokers.settle(brokers.begin())
    names = [f"t{number:03}" for number in range(loading.READ_AT_ONCE + 20)]
    begun = 0
    grown: list[asyncio.Task[None]] = []

    async def grow() -> None:
        """Of one that was read, and of one that was not."""
        for name in (names[0], names[-1]):
            await brokers.person.set(f"/brokers/topics/{name}", assignment((1,), (2,)))

    def noticing(path: str, data: bytes) -> Any:
        nonlocal begun
        begun += 1
        if begun == loading.READ_AT_ONCE // 2:
            grown.append(asyncio.ensure_future(grow()))
        return decoding_topic(path, data)

    async def write() -> None:
        await brokers.person.multi([Create(f"/brokers/topics/{name}", assignment((1,))) for name in names])

    monkeypatch.setattr(loading, "decoding_topic", noticing)
    brokers.settle(write())
    assert [task.done() for task in grown] == [True]
    assert begun > len(names)
    assert all(brokers.seen_by(1, name).leader == 1 for name in names)
    assert [brokers.seen_by(1, name, 1).leader for name in (names[0], names[-1])] == [2, 2]
    brokers.close()
