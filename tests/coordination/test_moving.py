"""A cluster's tree is written into another place, and never one that is behind the logs."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import pytest

from ottla.controller.identity import make_persistent_paths
from ottla.coordination.at_rest import NoTree, tree_at_rest
from ottla.coordination.errors import DirectoryInUse, NoNode
from ottla.coordination.interface import Coordination
from ottla.coordination.local import LocalSession, open_local
from ottla.coordination.moving import LoadRefused, load_tree
from ottla.coordination.notifications import CONFIG_CHANGES
from ottla.coordination.transfer import DamagedDump, export_tree
from ottla.coordination.znode_json import DamagedZnode
from ottla.coordination.znodes import (
    BROKER_SEQUENCE,
    CLUSTER_ID,
    CONTROLLER_EPOCH,
    PERSISTENT_PATHS,
    LeaderAndIsr,
    TopicAssignment,
    broker_path,
    decode_cluster_id,
    encode_cluster_id,
    encode_epoch,
    encode_state,
    encode_topic,
    partition_path,
    partitions_path,
    state_path,
    topic_path,
)
from ottla.model import BrokerId, Epoch, TopicId
from ottla.ports.memory import MemoryPorts, memory_ports
from ottla.ports.memory.loop import cancel_all

STATE = state_path("orders", 0)


class Places:
    def __init__(self, ports: MemoryPorts) -> None:
        self.ports = ports

    async def open(self, directory: str) -> LocalSession:
        ports = self.ports
        return await open_local(
            disk=ports.disk, workers=ports.workers, clock=ports.clock, entropy=ports.entropy, directory=directory
        )

    async def cluster(self, directory: str, *, leader_epoch: int = 3, name: str = "c1") -> LocalSession:
        """A tree as brokers leave it."""
        await asyncio.sleep(1)  # virtual: no two trees begin at the same time
        tree = await self.open(directory)
        for path in (*PERSISTENT_PATHS, *(path for path in (topic_path("orders"),)), partitions_path("orders")):
            await tree.create(path)
        await tree.create(partition_path("orders", 0))
        assignment = TopicAssignment(TopicId(b"o" * 16), {0: (BrokerId(1), BrokerId(2))}, {}, {})
        await tree.set(topic_path("orders"), encode_topic(assignment))
        await tree.create(STATE, state(leader_epoch, 1, 2))
        await tree.create(CONTROLLER_EPOCH, encode_epoch(7))
        await tree.create(CLUSTER_ID, encode_cluster_id(name))
        return tree


def state(leader_epoch: int, *isr: int) -> bytes:
    members = tuple(BrokerId(member) for member in isr)
    return encode_state(LeaderAndIsr(Epoch(7), members[0], Epoch(leader_epoch), members))


@pytest.fixture
def places() -> Iterator[Callable[[Callable[[Places], Awaitable[None]]], None]]:
    ports = memory_ports(5)

    def run(work: Callable[[Places], Awaitable[None]]) -> None:
        async def body() -> None:
            await work(Places(ports))

        ports.loop.run_until_complete(body())

    yield run
    cancel_all(ports.loop)
    ports.loop.close()


Run = Callable[[Callable[[Places], Awaitable[None]]], None]


async def data_of(tree: Coordination) -> dict[str, bytes]:
    nodes = (await export_tree(tree))["nodes"]
    return {node["path"]: node["text"].encode() for node in nodes}


def test_a_cluster_moves_whole(places: Run) -> None:
    async def work(places: Places) -> None:
        source, target = await places.cluster("/a"), await places.open("/b")
        await source.set(BROKER_SEQUENCE, b"")
        # As it comes from a file.
        dump = json.loads(json.dumps(await export_tree(source)))
        loaded = await load_tree(target, dump)
        assert (loaded.cluster_id, loaded.topics) == ("c1", 1)
        assert await data_of(target) == await data_of(source)
        assert (await target.get(BROKER_SEQUENCE))[1].version == 1

    places(work)


def test_notifications_and_sessions_stay_behind(places: Run) -> None:
    async def work(places: Places) -> None:
        source, target = await places.cluster("/a"), await places.open("/b")
        for _ in range(3):
            await source.create(f"{CONFIG_CHANGES}/config_change_", b"{}", sequential=True)
        await source.create("/consumers/g", b"")
        await source.create("/consumers/g/owner", b"", ephemeral=True)
        await load_tree(target, await export_tree(source))
        assert await target.children(CONFIG_CHANGES) == ([], (await target.get(CONFIG_CHANGES))[1])
        # The next one gets a number that nobody has: names of the other tree would be in the way at its third.
        for number in range(4):
            made = await target.create(f"{CONFIG_CHANGES}/config_change_", b"{}", sequential=True)
            assert made.path.endswith(f"{number:010}")
        assert await target.exists("/consumers/g") is not None
        assert await target.exists("/consumers/g/owner") is None

    places(work)


@pytest.mark.parametrize("side", ["dumped", "written"])
def test_neither_tree_may_have_brokers(places: Run, side: str) -> None:
    async def work(places: Places) -> None:
        source, target = await places.cluster("/a"), await places.open("/b")
        alive = source if side == "dumped" else target
        for path in ("/brokers", "/brokers/ids"):
            if await alive.exists(path) is None:
                await alive.create(path)
        await alive.create(broker_path(2), b"{}", ephemeral=True)
        with pytest.raises(LoadRefused, match="broker 2 is registered"):
            await load_tree(target, await export_tree(source))
        assert await target.exists(CLUSTER_ID) is None

    places(work)


def test_a_tree_in_use_is_replaced_on_demand_alone(places: Run) -> None:
    async def work(places: Places) -> None:
        source, target = await places.cluster("/a", leader_epoch=4), await places.cluster("/b")
        await target.create(topic_path("gone"), b"{}")
        await target.create(partitions_path("gone"))
        await target.create("/hbase", b"another application's")
        before = await data_of(target)
        dump = await export_tree(source)
        with pytest.raises(LoadRefused, match="cluster c1, topics: 2"):
            await load_tree(target, dump)
        assert await data_of(target) == before
        await load_tree(target, dump, replace=True)
        assert await data_of(target) == {**await data_of(source), "/hbase": b"another application's"}

    places(work)


async def higher_leader_epoch(tree: Coordination) -> None:
    await tree.set(STATE, state(4, 2))


async def higher_controller_epoch(tree: Coordination) -> None:
    await tree.set(CONTROLLER_EPOCH, encode_epoch(8))


async def another_cluster(tree: Coordination) -> None:
    await tree.set(CLUSTER_ID, encode_cluster_id("c2"))


@pytest.mark.parametrize("change", [higher_leader_epoch, higher_controller_epoch, another_cluster])
def test_a_tree_that_went_on_stays(places: Run, change: Callable[[Coordination], Awaitable[None]]) -> None:
    async def work(places: Places) -> None:
        source, target = await places.cluster("/a"), await places.cluster("/b")
        await change(target)
        before = await data_of(target)
        with pytest.raises(LoadRefused, match=r"further than the dump|cluster c2's"):
            await load_tree(target, await export_tree(source), replace=True)
        assert await data_of(target) == before

    places(work)


def test_an_isr_that_shrank_after_the_dump_does_not_come_back(places: Run) -> None:
    """Under the same leader epoch: only the tree's own transactions say that it went on."""

    async def work(places: Places) -> None:
        tree = await places.cluster("/a")
        dump = await export_tree(tree)
        await load_tree(tree, dump, replace=True)  # nothing has changed: nothing does
        dump = await export_tree(tree)
        await tree.set(STATE, state(3, 1))
        with pytest.raises(LoadRefused, match="it has changed since the dump"):
            await load_tree(tree, dump, replace=True)
        assert (await tree.get(STATE))[0] == state(3, 1)

    places(work)


class Cut(Exception):
    pass


class CutShort:
    """A session whose writes end after some."""

    def __init__(self, tree: LocalSession, writes: int) -> None:
        self._tree = tree
        self._left = writes

    async def multi(self, ops: Any) -> Any:
        if self._left == 0:
            raise Cut
        self._left -= 1
        return await self._tree.multi(ops)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._tree, name)


@pytest.mark.parametrize("replace", [False, True])
def test_a_load_that_was_cut_short_is_no_tree_and_goes_on(places: Run, replace: bool) -> None:
    async def work(places: Places) -> None:
        source = await places.cluster("/a", leader_epoch=5)
        dump = await export_tree(source)
        for writes in range(6):
            directory = f"/b{writes}"
            target = await (places.cluster(directory) if replace else places.open(directory))
            try:
                await load_tree(CutShort(target, writes), dump, replace=replace)  # type: ignore[arg-type]
            except Cut:
                if writes:
                    with pytest.raises(DamagedZnode, match="ottla tree load did not end"):
                        decode_cluster_id(CLUSTER_ID, (await target.get(CLUSTER_ID))[0])
                    await load_tree(target, dump)
                else:
                    await load_tree(target, dump, replace=replace)
            assert await data_of(target) == await data_of(source)

    places(work)


def test_a_load_that_was_cut_short_goes_on_with_the_same_dump_alone(places: Run) -> None:
    """Of what is left nobody can say whether another dump is older than it was."""

    async def work(places: Places) -> None:
        old, source = await places.cluster("/old", leader_epoch=4), await places.cluster("/a", leader_epoch=5)
        target = await places.cluster("/b")
        dump, older = await export_tree(source), await export_tree(old)
        with pytest.raises(Cut):
            await load_tree(CutShort(target, 2), dump, replace=True)  # type: ignore[arg-type]
        for replace in (False, True):
            with pytest.raises(LoadRefused, match="a load of another dump was cut short"):
                await load_tree(target, older, replace=replace)
        await load_tree(target, dump)
        assert await data_of(target) == await data_of(source)

    places(work)


class Meanwhile:
    """Does something once so many writes have come."""

    def __init__(self, tree: LocalSession, writes: int, does: Callable[[], Awaitable[None]]) -> None:
        self._tree = tree
        self._left = writes
        self._does = does

    async def multi(self, ops: Any) -> Any:
        if self._left == 0:
            await self._does()
        self._left -= 1
        return await self._tree.multi(ops)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._tree, name)


def test_no_broker_registers_while_a_tree_is_written(places: Run) -> None:
    """One that stood still for long, and whose session is over: it would decide by half a tree."""

    async def work(places: Places) -> None:
        source = await places.cluster("/a", leader_epoch=5)
        dump = await export_tree(source)
        for writes in range(3):
            target = await places.cluster(f"/b{writes}")

            async def register(target: LocalSession = target) -> None:
                await target.create(broker_path(2), b"{}", ephemeral=True)

            loading = load_tree(Meanwhile(target, writes, register), dump, replace=True)  # type: ignore[arg-type]
            if writes == 0:
                with pytest.raises(LoadRefused, match="a broker registered meanwhile"):
                    await loading
                assert await target.exists(broker_path(2)) is not None
                continue
            with pytest.raises(NoNode, match="/brokers/ids"):  # which is the broker's
                await loading
            with pytest.raises(DamagedZnode, match="ottla tree load did not end"):
                decode_cluster_id(CLUSTER_ID, (await target.get(CLUSTER_ID))[0])
            await load_tree(target, dump)
            assert await data_of(target) == await data_of(source)

    places(work)


def test_a_broker_that_was_started_meanwhile_is_in_no_ones_way(places: Run) -> None:
    """Its start makes what it expects to find, and ends at `/cluster/id`."""

    async def work(places: Places) -> None:
        dump = await export_tree(source := await places.cluster("/a", leader_epoch=5))
        target = await places.cluster("/b")
        with pytest.raises(Cut):
            await load_tree(CutShort(target, 2), dump, replace=True)  # type: ignore[arg-type]
        await make_persistent_paths(target)
        await load_tree(target, dump)
        assert set(await data_of(source)) <= set(await data_of(target))

    places(work)


@pytest.mark.parametrize("fault", ["no parent", "too large", "a counter"])
def test_a_dump_that_cannot_be_written_whole_leaves_the_tree_as_it_is(places: Run, fault: str) -> None:
    """Half of it would be a tree that no broker starts with, and into which no other dump could be loaded."""

    async def work(places: Places) -> None:
        source, target = await places.cluster("/a", leader_epoch=5), await places.cluster("/b", leader_epoch=4)
        await source.set(BROKER_SEQUENCE, b"")
        sound = await export_tree(source)
        dump = json.loads(json.dumps(sound))
        nodes = {node["path"]: node for node in dump["nodes"]}
        if fault == "no parent":  # as a line that was taken out
            dump["nodes"].remove(nodes[partitions_path("orders")])
        elif fault == "too large":
            nodes[topic_path("orders")]["text"] += " " * 1024 * 1024
        else:
            nodes[BROKER_SEQUENCE]["version"] = 10**9
        before = await data_of(target)
        with pytest.raises(DamagedDump, match=r"above it is not|at most|times"):
            await load_tree(target, dump, replace=True)
        assert await data_of(target) == before
        await load_tree(target, sound, replace=True)
        assert await data_of(target) == await data_of(source)

    places(work)


def test_a_dump_may_have_its_lines_in_any_order(places: Run) -> None:
    async def work(places: Places) -> None:
        source, target = await places.cluster("/a"), await places.open("/b")
        dump = await export_tree(source)
        dump["nodes"].reverse()
        await load_tree(target, dump)
        assert await data_of(target) == await data_of(source)

    places(work)


def test_what_is_no_whole_tree_is_refused(places: Run) -> None:
    async def work(places: Places) -> None:
        tree = await places.open("/a")
        with pytest.raises(LoadRefused, match="the dump has no /cluster/id"):
            await load_tree(tree, await export_tree(tree))
        for damaged in (None, [], {"format": 1}, {"format": 1, "nodes": [{"path": "/a"}]}):
            with pytest.raises(DamagedDump):
                await load_tree(tree, damaged)
        assert list(await data_of(tree)) == ["/"]

    places(work)


def test_a_tree_at_rest_is_read_and_left_as_it_is(places: Run) -> None:
    async def work(places: Places) -> None:
        disk = places.ports.disk
        with pytest.raises(NoTree, match="holds no tree"), tree_at_rest(disk, "/a"):
            pass
        tree = await places.cluster("/a")
        await tree.create(broker_path(1), b"{}", ephemeral=True)
        expected = await data_of(tree)
        with pytest.raises(DirectoryInUse, match="in use by another process"), tree_at_rest(disk, "/a"):
            pass
        await tree.store.close()  # its process ended, and the session did not
        files = {name: disk.read_file(f"/a/{name}") for name in disk.names("/a")}
        with tree_at_rest(disk, "/a") as found:
            nodes = (await export_tree(found))["nodes"]
        assert {node["path"]: node["text"].encode() for node in nodes} == {
            path: data for path, data in expected.items() if path != broker_path(1)
        }
        assert {name: disk.read_file(f"/a/{name}") for name in disk.names("/a")} == files

    places(work)
