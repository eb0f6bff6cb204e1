"""Settings as a broker reads them from the tree: what tools of Kafka leave there, what is damaged, what is lost."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import pytest

from ottla.broker.settings import TreeSettings
from ottla.controller.identity import make_persistent_paths
from ottla.coordination.interface import Stat, Watch
from ottla.coordination.local import LocalSession, open_local
from ottla.coordination.notifications import CONFIG_CHANGE_PREFIX, encode_config_change
from ottla.coordination.znodes import BROKER_CONFIGS, encode_config
from ottla.metadata import MetadataCache, MetadataUpdate, PartitionState
from ottla.model import BrokerId, Epoch, TopicId
from ottla.ports.memory import World
from ottla.ports.memory.loop import cancel_all


class Scene:
    """A tree, and a broker's cache that learns from it."""

    def __init__(self) -> None:
        self.world = World(1)
        self.cache = MetadataCache()
        self.learned: list[MetadataUpdate] = []
        self.tree: LocalSession
        self.settings: TreeSettings

    async def learn(self, update: MetadataUpdate) -> None:
        self.learned.append(update)
        self.cache.apply(update)

    async def open(self) -> None:
        ports = self.world.machine("m")
        self.tree = await open_local(
            disk=ports.disk, workers=ports.workers, clock=ports.clock, entropy=ports.entropy, directory="/tree"
        )
        await make_persistent_paths(self.tree)
        self.settings = TreeSettings(self.tree, self.cache, self.learn)

    async def put(self, entity: str, **settings: str) -> None:
        """As Kafka's tools do: the node, and then the note."""
        path = f"/config/{entity}"
        data = encode_config({key.replace("_", "."): value for key, value in settings.items()})
        if await self.tree.exists(path) is None:
            await self.tree.create(path, data)
        else:
            await self.tree.set(path, data)
        await self.note(encode_config_change(entity))

    async def note(self, data: bytes) -> None:
        await self.tree.create(CONFIG_CHANGE_PREFIX, data, sequential=True)
        await asyncio.sleep(0.1)

    def topic(self, name: str, topic_id: bytes = b"i" * 16) -> None:
        one = BrokerId(1)
        state = PartitionState(name, 0, TopicId(topic_id), Epoch(0), one, Epoch(0), (one,), (one,), 0)
        self.cache.apply(MetadataUpdate(controller_epoch=Epoch(0), partitions=[state]))


@pytest.fixture
def scene() -> Iterator[Scene]:
    made = Scene()
    yield made
    cancel_all(made.world.loop)
    made.world.loop.close()


def run(scene: Scene, work: Callable[[Scene], Awaitable[Any]]) -> None:
    async def body() -> None:
        await scene.open()
        await work(scene)
        scene.settings.close()

    scene.world.loop.run_until_complete(body())


def test_everything_is_read_at_first_and_then_what_changes(scene: Scene) -> None:
    async def work(scene: Scene) -> None:
        await scene.put("topics/t", retention_ms="1")
        await scene.put("brokers/3", log_retention_ms="2")
        await scene.put("brokers/<default>", log_retention_ms="3")
        await scene.put("groups/g%2F1", consumer_session_timeout_ms="4")
        await scene.settings.begin()
        cache = scene.cache
        assert cache.topic_config("t") == {"retention.ms": "1"}
        assert cache.broker_config(3) == {"log.retention.ms": "2"}
        assert cache.default_broker_config() == {"log.retention.ms": "3"}
        assert cache.group_config("g/1") == {"consumer.session.timeout.ms": "4"}
        scene.learned.clear()
        await scene.put("topics/t", retention_ms="5")
        await scene.put("brokers/<default>")
        await scene.put("groups/g%2F1")
        assert cache.topic_config("t") == {"retention.ms": "5"}
        assert cache.default_broker_config() == cache.group_config("g/1") == {}
        assert cache.broker_config(3) == {"log.retention.ms": "2"}
        assert len(scene.learned) == 3

    run(scene, work)


class InterruptedTree:
    """Something happens before brokers' settings are read, which is behind those of topics."""

    def __init__(self, tree: LocalSession, happens: Awaitable[None]) -> None:
        self._tree = tree
        self._happens: list[Awaitable[None]] = [happens]

    async def children(self, path: str, watch: Watch | None = None) -> tuple[list[str], Stat]:
        if path == BROKER_CONFIGS and self._happens:
            await self._happens.pop()
        return await self._tree.children(path, watch)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._tree, name)


def test_what_changes_while_everything_is_read_stays(scene: Scene) -> None:
    async def work(scene: Scene) -> None:
        await scene.put("topics/t", retention_ms="1")
        tree = InterruptedTree(scene.tree, scene.put("topics/t", retention_ms="2"))
        scene.settings = TreeSettings(tree, scene.cache, scene.learn)
        await scene.settings.begin()
        await asyncio.sleep(0.1)
        assert scene.cache.topic_config("t") == {"retention.ms": "2"}

    run(scene, work)


def test_what_is_read_of_a_topic_is_not_taken_for_the_next_one_of_its_name(scene: Scene) -> None:
    """It is deleted and made anew while everything is read, of which no note speaks."""

    async def made_anew() -> None:
        await scene.tree.set("/config/topics/t", encode_config({"retention.ms": "-1"}))
        scene.cache.apply(MetadataUpdate(controller_epoch=Epoch(0), topics_deleted=["t"]))
        scene.topic("t", b"j" * 16)
        kept = {"t": {"retention.ms": "-1"}}
        scene.cache.apply(MetadataUpdate(controller_epoch=Epoch(0), topic_configs=kept))

    async def work(scene: Scene) -> None:
        scene.topic("t")
        await scene.put("topics/t", retention_ms="1")
        scene.settings = TreeSettings(InterruptedTree(scene.tree, made_anew()), scene.cache, scene.learn)
        await scene.settings.begin()
        assert scene.cache.topic_config("t") == {"retention.ms": "-1"}

    run(scene, work)


def test_a_note_that_says_nothing_to_us_is_passed_over_and_the_next_is_read(scene: Scene) -> None:
    async def work(scene: Scene) -> None:
        await scene.settings.begin()
        scene.topic("t")
        for data in (b"", b"{", b'{"version":2}', b'{"version":1}', b'{"version":1,"entity_type":"topics"}'):
            await scene.note(data)
        for entity in ("users/alice", "clients/c", "ips/1.2.3.4", "topics/../../x", "brokers/x", "nothing"):
            await scene.note(encode_config_change(entity))
        await scene.tree.create("/config/changes/by-hand")
        await scene.put("topics/t", retention_ms="6")
        assert scene.cache.topic_config("t") == {"retention.ms": "6"}

    run(scene, work)


@pytest.mark.parametrize("missed", [1, 3])
def test_where_notes_are_gone_before_they_were_read_everything_is_read(scene: Scene, missed: int) -> None:
    """Of two machines whose clocks differ by a quarter of an hour one takes a new note for an old one."""

    async def work(scene: Scene) -> None:
        await scene.put("topics/t", retention_ms="1")
        await scene.settings.begin()
        await scene.tree.set("/config/topics/t", encode_config({"retention.ms": "2"}))
        for _ in range(missed):
            created = await scene.tree.create(CONFIG_CHANGE_PREFIX, encode_config_change("topics/t"), sequential=True)
            await scene.tree.delete(created.path)
        await asyncio.sleep(0.1)
        assert scene.cache.topic_config("t") == {"retention.ms": "2"}
        scene.learned.clear()
        await scene.put("brokers/3", log_retention_ms="3")
        assert scene.cache.broker_config(3) == {"log.retention.ms": "3"}
        assert [update.topic_configs for update in scene.learned] == [{}]

    run(scene, work)


class ForgetfulTree:
    """A note that was listed is gone when it is read, the first time."""

    def __init__(self, tree: LocalSession) -> None:
        self._tree = tree
        self._forgets = True

    async def get_many(self, paths: list[str]) -> list[Any]:
        found: list[Any] = await self._tree.get_many(paths)
        if self._forgets and CONFIG_CHANGE_PREFIX in paths[0]:
            self._forgets = False
            return [None] * len(paths)
        return found

    def __getattr__(self, name: str) -> Any:
        return getattr(self._tree, name)


def test_where_a_note_is_gone_as_it_is_read_everything_is_read(scene: Scene) -> None:
    async def work(scene: Scene) -> None:
        scene.settings = TreeSettings(ForgetfulTree(scene.tree), scene.cache, scene.learn)  # type: ignore[arg-type]
        await scene.settings.begin()
        await scene.put("topics/t", retention_ms="1")
        scene.topic("t")
        assert scene.cache.topic_config("t") == {"retention.ms": "1"}
        await scene.put("topics/t", retention_ms="2")
        assert scene.cache.topic_config("t") == {"retention.ms": "2"}

    run(scene, work)


def test_notes_are_read_where_their_place_was_made_anew(scene: Scene) -> None:
    """By hand: they are numbered from the first one then."""

    async def work(scene: Scene) -> None:
        for number in range(3):
            await scene.put("topics/t", retention_ms=str(number))
        await scene.settings.begin()
        for name in (await scene.tree.children("/config/changes"))[0]:
            await scene.tree.delete(f"/config/changes/{name}")
        await scene.tree.delete("/config/changes")
        await scene.tree.create("/config/changes")
        await asyncio.sleep(0.1)
        for number in range(10, 13):
            await scene.put("topics/t", retention_ms=str(number))
            assert scene.cache.topic_config("t") == {"retention.ms": str(number)}

    run(scene, work)


def test_a_note_of_kafka_0_9_is_read(scene: Scene) -> None:
    async def work(scene: Scene) -> None:
        await scene.settings.begin()
        scene.topic("t")
        await scene.tree.create("/config/topics/t", encode_config({"retention.ms": "6"}))
        await scene.note(b'{"version":1,"entity_type":"topics","entity_name":"t"}')
        assert scene.cache.topic_config("t") == {"retention.ms": "6"}

    run(scene, work)


@pytest.mark.parametrize("entity", ["clients/slow", "users/alice", "users/alice/clients/slow", "ips/10.0.0.1"])
def test_quotas_and_passwords_are_left_alone_and_said(scene: Scene, entity: str, log_lines: list[str]) -> None:
    """Who sets one by Kafka's tools would take it for one that holds."""
    words = f"quotas and passwords in the tree have no effect path=/config/{entity.partition('/')[0]}"

    async def work(scene: Scene) -> None:
        await scene.settings.begin()
        scene.learned.clear()
        *above, _ = entity.split("/")
        for depth in range(2, len(above) + 1):
            await scene.tree.create("/config/" + "/".join(above[:depth]))
        await scene.put(entity, producer_byte_rate="1024")
        assert words in "\n".join(log_lines)
        assert scene.learned == []

    run(scene, work)


def test_what_is_damaged_leaves_settings_as_they_were(scene: Scene) -> None:
    async def work(scene: Scene) -> None:
        scene.topic("t")
        await scene.put("topics/t", retention_ms="7")
        await scene.settings.begin()
        await scene.tree.set("/config/topics/t", b"not json")
        await scene.note(encode_config_change("topics/t"))
        assert scene.cache.topic_config("t") == {"retention.ms": "7"}
        # Nor does another session change it; of a topic that nobody knew, everything is kept.
        await TreeSettings(scene.tree, scene.cache, scene.learn).begin()
        assert scene.cache.topic_config("t") == {"retention.ms": "7"}
        assert await scene.settings.topics(["t", "never"]) == {"t": {"cleanup.policy": ""}, "never": {}}

    run(scene, work)


def test_what_went_while_nobody_watched_is_gone_in_the_next_session(scene: Scene) -> None:
    async def work(scene: Scene) -> None:
        scene.topic("t")
        await scene.put("topics/t", retention_ms="8")
        await scene.put("brokers/3", log_retention_ms="8")
        await scene.put("groups/g", consumer_session_timeout_ms="8")
        await scene.settings.begin()
        scene.settings.close()
        for path in ("/config/topics/t", "/config/brokers/3", "/config/groups/g"):
            await scene.tree.delete(path)
        await TreeSettings(scene.tree, scene.cache, scene.learn).begin()
        cache = scene.cache
        assert cache.topic_config("t") == cache.broker_config(3) == cache.group_config("g") == {}

    run(scene, work)


def test_a_thousand_notes_at_once_are_read_in_few_updates(scene: Scene) -> None:
    async def work(scene: Scene) -> None:
        await scene.settings.begin()
        scene.topic("t")
        await scene.tree.create("/config/topics/t", encode_config({"retention.ms": "9"}))
        scene.learned.clear()
        data = encode_config_change("topics/t")
        await asyncio.gather(*(scene.tree.create(CONFIG_CHANGE_PREFIX, data, sequential=True) for _ in range(1000)))
        await asyncio.sleep(1)
        assert scene.cache.topic_config("t") == {"retention.ms": "9"}
        assert len(scene.learned) < 50

    run(scene, work)
