"""Members of a group of Kafka 0.8's kind come, crash, lose their sessions and go: over our tree and over ZooKeeper."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any, Self

import pytest
from tests.coordination.zookeeper.sessions import RemoteProvider
from tools.kafka_jars import JarsUnavailable
from tools.ottla_server import ottla_tree
from tools.zookeeper_server import ZooKeeperEnsemble

from ottla.client import Admin, Producer
from ottla.client.errors import BadArgument, GroupRebalanceFailed
from ottla.client.zookeeper_groups.consumer import ZookeeperConsumer
from ottla.client.zookeeper_groups.znodes import ids_path, offset_path, offsets_path, owner_path, owners_path
from ottla.coordination.errors import NoNode
from ottla.coordination.interface import Stat, Watch
from ottla.coordination.znodes import (
    BROKER_IDS,
    TOPICS,
    BrokerRegistration,
    TopicAssignment,
    encode_broker,
    encode_topic,
    topic_path,
)
from ottla.coordination.zookeeper.client import RemoteTree
from ottla.metadata.updates import Endpoint
from ottla.model import ZERO_TOPIC_ID, BrokerId, TopicPartition
from ottla.ports.real import real_ports
from ottla.testing import InProcessBroker

SECONDS_MAX = 60.0
PARTITIONS = 4
#: Longer than a busy machine keeps a process waiting: nobody's session ends by chance.
SESSION_MS = 20_000
#: Of a member that crashes, which is missed after its session.
CRASHING_MS = 2_000


class World:
    """A tree, and a broker that has registered in it."""

    def __init__(self, connect: str, broker: InProcessBroker) -> None:
        self.connect = connect
        self.broker = broker
        self._topics = 0

    def topic(self) -> str:
        self._topics += 1
        name = f"orders-{self._topics}"
        self.broker.create_topic(name, partitions=PARTITIONS)
        return name


@pytest.fixture(scope="module", params=["served", "zookeeper"])
def world(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    folder: Path = tmp_path_factory.mktemp("groups")
    if request.param == "served":
        server: object = ottla_tree(folder / "tree")
    else:
        try:
            server = ZooKeeperEnsemble(folder, 1)
        except JarsUnavailable as missing:
            pytest.skip(str(missing))
    with server:  # type: ignore[attr-defined]
        address = server.bootstrap if request.param == "served" else server.connect  # type: ignore[attr-defined]
        connect = f"{address}/kafka"
        with InProcessBroker(properties={"zookeeper.connect": connect}) as broker:
            yield World(connect, broker)


class Crowd:
    """Consumers of one group that poll all the time, and what they read."""

    def __init__(self, world: World, topic: str, group: str, **settings: object) -> None:
        self.world = world
        self.topic = topic
        self.group = group
        self._settings = settings
        self._polls: dict[str, asyncio.Task[None]] = {}
        self.members: dict[str, ZookeeperConsumer] = {}
        #: Offsets by partition, in the order in which any member got them.
        self.read: dict[int, list[int]] = {number: [] for number in range(PARTITIONS)}
        self.provider = RemoteProvider(real_ports(), world.connect, SESSION_MS)
        self.tree: RemoteTree

    async def __aenter__(self) -> Self:
        self.tree = await self.provider.session()
        return self

    async def __aexit__(self, *_: object) -> None:
        for name in list(self.members):
            await self.leave(name)
        await self.provider.close()

    def join(self, name: str, **settings: object) -> ZookeeperConsumer:
        consumer = ZookeeperConsumer(
            {
                "zookeeper.connect": self.world.connect,
                "group.id": self.group,
                "consumer.id": name,
                "zookeeper.session.timeout.ms": SESSION_MS,
                "rebalance.backoff.ms": 50,
                "rebalance.max.retries": 200,
                "auto.commit.interval.ms": 100,
                "auto.offset.reset": "smallest",
                **self._settings,
                **settings,
            }
        )
        consumer.subscribe([self.topic])
        self.members[name] = consumer
        self._polls[name] = asyncio.create_task(self._poll(consumer))
        return consumer

    async def _poll(self, consumer: ZookeeperConsumer) -> None:
        while True:
            for record in await consumer.poll(timeout_ms=1_000):
                self.read[record.partition].append(record.offset)

    async def leave(self, name: str) -> None:
        self._polls.pop(name).cancel()
        await self.members.pop(name).close()

    async def crash(self, name: str) -> None:
        """Its connection ends, and nobody says a word to ZooKeeper."""
        self._polls.pop(name).cancel()
        consumer = self.members.pop(name)
        member = consumer._member
        assert member is not None
        for task in member._tasks:
            task.cancel()
        assert isinstance(member._tree, RemoteTree)
        await member._tree._session._end()
        await consumer._share.close()

    async def expire(self, name: str) -> None:
        """The ensemble ends its session, and its connection stays."""
        member = self.members[name]._member
        assert member is not None
        assert member._tree is not None
        await self.provider.expire(member._tree)

    def shares(self) -> dict[str, int]:
        return {name: len(one.assignment()) for name, one in self.members.items()}

    async def until_shared(self, shares: dict[str, int]) -> None:
        """Each has so many partitions, and the tree says the same."""

        async def is_so() -> bool:
            if self.shares() != shares:
                return False
            owners = await self.owners()
            mine = {
                TopicPartition(self.topic, tp.partition): f"{self.group}_{name}-0"
                for name, one in self.members.items()
                for tp in one.assignment()
            }
            return owners == mine

        await until_so(is_so)

    async def owners(self) -> dict[TopicPartition, str]:
        found = {}
        for number in range(PARTITIONS):
            try:
                data, _ = await self.tree.get(owner_path(self.group, self.topic, number))
            except NoNode:
                continue
            found[TopicPartition(self.topic, number)] = data.decode()
        return found

    async def write(self, count: int) -> None:
        """So many records to each partition."""
        async with Producer(bootstrap_servers=self.world.broker.bootstrap) as producer:
            for number in range(PARTITIONS):
                for _ in range(count):
                    await producer.send(self.topic, b"x", partition=number)

    async def until_read(self, ends: int) -> None:
        async def is_so() -> bool:
            return all(set(range(ends)) <= set(offsets) for offsets in self.read.values())

        await until_so(is_so)


async def until_so(is_so: Callable[[], Awaitable[bool]]) -> None:
    async with asyncio.timeout(SECONDS_MAX):
        while not await is_so():  # noqa: ASYNC110 - what is looked at is in another process
            await asyncio.sleep(0.02)


async def test_four_members_a_crash_a_join_and_an_expired_session(world: World) -> None:
    async with Crowd(world, world.topic(), "four") as crowd:
        for name in "abc":
            crowd.join(name)
        crowd.join("d", **{"zookeeper.session.timeout.ms": CRASHING_MS})
        await crowd.until_shared(dict.fromkeys("abcd", 1))
        await crowd.write(20)
        await crowd.until_read(20)
        await crowd.crash("d")
        # Range: whoever comes first by name has one more.
        await crowd.until_shared({"a": 2, "b": 1, "c": 1})
        await crowd.write(20)
        await crowd.until_read(40)
        crowd.join("e")
        await crowd.until_shared({"a": 1, "b": 1, "c": 1, "e": 1})
        before = crowd.members["b"]._member._tree  # type: ignore[union-attr]
        await crowd.expire("b")
        await until_so(lambda: _is_other(crowd, "b", before))
        await crowd.until_shared({"a": 1, "b": 1, "c": 1, "e": 1})
        await crowd.write(20)
        await crowd.until_read(60)
        for offsets in crowd.read.values():
            # Whatever was read twice was read again from some point on: nothing is passed over.
            assert all(later <= earlier + 1 for earlier, later in pairwise(offsets))


async def _is_other(crowd: Crowd, name: str, before: object) -> bool:
    member = crowd.members[name]._member
    return member is not None and member._tree is not None and member._tree is not before


async def test_the_tree_is_as_kafka_0_8_leaves_it(world: World) -> None:
    async with Crowd(world, world.topic(), "nodes") as crowd:
        crowd.join("a")
        await crowd.until_shared({"a": PARTITIONS})
        data, stat = await crowd.tree.get(f"{ids_path('nodes')}/nodes_a")
        registered = json.loads(data)
        assert list(registered) == ["version", "subscription", "pattern", "timestamp"]
        assert registered["subscription"] == {crowd.topic: 1}
        assert stat.ephemeral_owner != 0
        owner, stat = await crowd.tree.get(owner_path("nodes", crowd.topic, 0))
        assert (owner, stat.ephemeral_owner != 0) == (b"nodes_a-0", True)
        await crowd.write(3)
        await crowd.until_read(3)

        async def is_committed() -> bool:
            nodes = await crowd.tree.get_many([offset_path("nodes", crowd.topic, one) for one in range(PARTITIONS)])
            return [node and node[0] for node in nodes] == [b"3"] * PARTITIONS

        await until_so(is_committed)
        await crowd.leave("a")
        assert await crowd.owners() == {}
        assert (await crowd.tree.children(ids_path("nodes")))[0] == []
        assert await is_committed(), "offsets stay"
        assert (await crowd.tree.children(offsets_path("nodes")))[0] == [crowd.topic]
        assert (await crowd.tree.children(owners_path("nodes")))[0] == [crowd.topic]


async def test_a_group_goes_on_where_its_offsets_are(world: World) -> None:
    """What another consumer of Kafka 0.8 has left there; and `commit` writes them at once."""
    async with Crowd(world, world.topic(), "goes-on", **{"auto.commit.enable": False}) as crowd:
        await crowd.write(10)
        base = offsets_path("goes-on")
        for path in ("/consumers", "/consumers/goes-on", base, f"{base}/{crowd.topic}"):
            if await crowd.tree.exists(path) is None:
                await crowd.tree.create(path)
        await crowd.tree.create(offset_path("goes-on", crowd.topic, 1), b"7")
        consumer = crowd.join("a")

        async def is_read() -> bool:
            return {n: (one[0], one[-1]) for n, one in crowd.read.items() if one} == {
                0: (0, 9), 1: (7, 9), 2: (0, 9), 3: (0, 9),
            }  # fmt: skip

        await until_so(is_read)
        assert (await crowd.tree.get(offset_path("goes-on", crowd.topic, 1)))[0] == b"7"
        await consumer.commit()
        assert (await crowd.tree.get(offset_path("goes-on", crowd.topic, 1)))[0] == b"10"


async def test_a_place_that_only_a_reset_gave_is_committed(world: World) -> None:
    """A quiet topic: what is written while the group is away is read by the next member."""
    async with Crowd(world, world.topic(), "quiet", **{"auto.offset.reset": "largest"}) as crowd:
        await crowd.write(2)
        consumer = crowd.join("a")
        await crowd.until_shared({"a": PARTITIONS})
        reader = consumer._share.reader
        assert reader is not None
        for tp in consumer.assignment():
            assert await reader.position(tp) == 2
        await crowd.leave("a")
        await crowd.write(1)
        crowd.join("b")
        await crowd.until_shared({"b": PARTITIONS})
        await crowd.write(1)

        async def is_read() -> bool:
            return all(offsets and offsets[-1] == 3 for offsets in crowd.read.values())

        await until_so(is_read)
        assert crowd.read == {number: [2, 3] for number in range(PARTITIONS)}


async def test_a_topic_that_grows_is_shared_anew(world: World) -> None:
    async with Crowd(world, "grows", "grows") as crowd:
        crowd.join("a")
        crowd.join("b")

        # The topic is not there yet: nobody has anything.
        await crowd.until_shared({"a": 0, "b": 0})
        await asyncio.to_thread(world.broker.create_topic, "grows", 2)
        await crowd.until_shared({"a": 1, "b": 1})
        async with Admin(bootstrap_servers=world.broker.bootstrap) as admin:
            await admin.create_partitions({"grows": PARTITIONS})
        await crowd.until_shared({"a": 2, "b": 2})


async def test_a_topic_that_comes_between_two_looks_is_shared(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    get = RemoteTree.get
    topic = "comes-late"

    async def get_before_it_comes(tree: RemoteTree, path: str, watch: Watch | None = None) -> tuple[bytes, Stat]:
        try:
            return await get(tree, path, watch)
        except NoNode:
            if path == topic_path(topic):
                monkeypatch.undo()
                await asyncio.to_thread(world.broker.create_topic, topic, PARTITIONS)
            raise

    monkeypatch.setattr(RemoteTree, "get", get_before_it_comes)
    async with Crowd(world, topic, topic) as crowd:
        crowd.join("a")
        await crowd.until_shared({"a": PARTITIONS})


async def test_a_partition_that_nobody_lets_go_of_ends_the_tries(world: World) -> None:
    """An owner node that no member has: rebalance.max.retries, and then the poll says so; later it goes well."""
    async with Crowd(world, world.topic(), "stuck") as crowd:
        base = owners_path("stuck")
        for path in ("/consumers", "/consumers/stuck", base, f"{base}/{crowd.topic}"):
            if await crowd.tree.exists(path) is None:
                await crowd.tree.create(path)
        await crowd.tree.create(owner_path("stuck", crowd.topic, 2), b"somebody-0", ephemeral=True)
        settings = {"zookeeper.connect": world.connect, "group.id": "stuck", "rebalance.backoff.ms": 10}
        async with ZookeeperConsumer(settings, rebalance_max_retries=2) as consumer:
            consumer.subscribe([crowd.topic])
            with pytest.raises(GroupRebalanceFailed, match="in 2 tries"):
                await consumer.poll()
            assert await crowd.owners() == {TopicPartition(crowd.topic, 2): "somebody-0"}, "it holds nothing back"
            await crowd.tree.delete(owner_path("stuck", crowd.topic, 2))

            async def is_shared() -> bool:
                try:
                    await consumer.poll(timeout_ms=100)
                except GroupRebalanceFailed:
                    return False
                return len(consumer.assignment()) == PARTITIONS

            await until_so(is_shared)


async def test_polls_that_are_cancelled_lose_no_record(world: World) -> None:
    """Wherever the poll has come to: also between the end of its reading and its own."""
    async with Crowd(world, world.topic(), "cancelled") as crowd:
        await crowd.write(20)
        settings = {"zookeeper.connect": world.connect, "group.id": "cancelled", "auto.offset.reset": "smallest"}
        read: dict[int, list[int]] = {number: [] for number in range(PARTITIONS)}
        async with asyncio.timeout(SECONDS_MAX), ZookeeperConsumer(settings, auto_commit_enable=False) as consumer:
            consumer.subscribe([crowd.topic])
            turns = 0
            while sum(map(len, read.values())) < 20 * PARTITIONS:
                poll = asyncio.create_task(consumer.poll(max_records=1))
                turns += 1
                for _ in range(turns % 8):
                    await asyncio.sleep(0)
                if turns % 8:
                    poll.cancel()
                for found in await asyncio.gather(poll, return_exceptions=True):
                    if not isinstance(found, BaseException):
                        for record in found:
                            read[record.partition].append(record.offset)
            assert read == {number: list(range(20)) for number in range(PARTITIONS)}


async def test_a_broker_that_learns_to_speak_in_the_clear_is_heard_of(world: World) -> None:
    topic = world.topic()
    server = world.connect.partition("/")[0]
    root, tree = (RemoteProvider(real_ports(), at, SESSION_MS) for at in (server, f"{server}/secret"))
    try:
        base = await root.session()
        if await base.exists("/secret") is None:
            await base.create("/secret")
        session = await tree.session()
        for path in ("/brokers", BROKER_IDS, TOPICS, "/consumers"):
            if await session.exists(path) is None:
                await session.create(path)
        replicas = {number: (BrokerId(0),) for number in range(PARTITIONS)}
        await session.create(topic_path(topic), encode_topic(TopicAssignment(ZERO_TOPIC_ID, replicas, {}, {})))
        host, _, port = world.broker.bootstrap.rpartition(":")
        node = f"{BROKER_IDS}/0"
        secret = Endpoint("SSL", "SSL", host, 9)
        await session.create(node, encode_broker(BrokerRegistration((secret,))))
        settings = {"zookeeper.connect": f"{server}/secret", "group.id": "clear", "auto.offset.reset": "smallest"}
        async with asyncio.timeout(SECONDS_MAX), ZookeeperConsumer(settings) as consumer:
            consumer.subscribe([topic])
            assert await consumer.poll(timeout_ms=500) == []
            clear = Endpoint("PLAINTEXT", "PLAINTEXT", host, int(port))
            await session.set(node, encode_broker(BrokerRegistration((secret, clear))))

            async def is_shared() -> bool:
                await consumer.poll(timeout_ms=50)
                return len(consumer.assignment()) == PARTITIONS

            await until_so(is_shared)
        await session.delete(node)
    finally:
        await tree.close()
        await root.close()


@pytest.mark.parametrize("topics", [5, b"orders", [], [3], {"orders": 0}, {"orders": "two"}, {"orders": 1.5}, [""]])
async def test_what_cannot_be_subscribed_to(topics: Any) -> None:
    async with ZookeeperConsumer({"zookeeper.connect": "127.0.0.1:1", "group.id": "g"}) as consumer:
        with pytest.raises(BadArgument):
            consumer.subscribe(topics)
        for expression in ("(", "", 5):
            with pytest.raises(BadArgument):
                consumer.subscribe_pattern(expression)  # type: ignore[arg-type]
        assert consumer.name is None


async def test_one_name_is_one_topic(world: World) -> None:
    settings = {"zookeeper.connect": world.connect, "group.id": "one-name", "auto.offset.reset": "smallest"}
    async with ZookeeperConsumer(settings) as consumer:
        consumer.subscribe(world.topic())

        async def is_shared() -> bool:
            await consumer.poll(timeout_ms=50)
            return len(consumer.assignment()) == PARTITIONS

        await until_so(is_shared)
