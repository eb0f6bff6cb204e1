"""Which provider a configuration chooses, and what a broker's start is told of the tree before anything is written."""

from __future__ import annotations

import pytest
from tests.coordination.zookeeper.small_server import SmallEnsemble

from ottla.config import Config
from ottla.coordination.errors import AuthenticationFailed, ServersUnreachable
from ottla.coordination.interface import TreeAge
from ottla.coordination.local import LocalSession
from ottla.coordination.providers import PROVIDERS, BrokersTree, Opening, Provider, open_tree
from ottla.coordination.znodes import CLUSTER_ID
from ottla.coordination.zookeeper.addresses import BadConnectString
from ottla.coordination.zookeeper.client import RemoteTree
from ottla.ports.memory import World, memory_ports


def test_a_configuration_without_addresses_has_its_tree_in_this_process() -> None:
    ports = memory_ports(seed=1)

    async def work() -> None:
        tree = await open_tree(Opening(Config.parse().coordination, ports, "/tree"))
        assert isinstance(tree, LocalSession)
        assert (tree.place, tree.fault, tree.is_behind) == ("/tree", None, False)
        await tree.close()

    ports.loop.run_until_complete(work())


def test_another_provider_is_chosen_by_its_property() -> None:
    ports = memory_ports(seed=1)
    opened: list[str] = []

    async def elsewhere(opening: Opening) -> BrokersTree:
        opened.append(opening.config.zookeeper_connect)
        return await PROVIDERS[-1].open(opening)

    providers = [Provider(lambda config: bool(config.zookeeper_connect), elsewhere), *PROVIDERS]

    async def work() -> None:
        for connect in ("", "one:2181,two:2181/ottla"):
            config = Config.parse({"zookeeper.connect": connect}).coordination
            tree = await open_tree(Opening(config, ports, "/tree"), providers)
            await tree.close()

    ports.loop.run_until_complete(work())
    assert opened == ["one:2181,two:2181/ottla"]


def test_addresses_choose_a_session_with_their_servers() -> None:
    world = World(1)
    ensemble = SmallEnsemble(world)
    ages: list[TreeAge] = []

    def check(age: TreeAge) -> None:
        ages.append(age)
        if len(ages) == 2:
            raise ValueError("not this one")

    async def work() -> None:
        config = Config.parse({"zookeeper.connect": f"{ensemble.connect}/a/kafka"}).coordination
        opening = Opening(config, world.machine("broker"), "/none", check)
        tree = await open_tree(opening)
        assert isinstance(tree, RemoteTree)
        assert (tree.place, tree.fault, tree.is_behind) == (f"ZooKeeper at {ensemble.connect}/a/kafka", None, False)
        created = await tree.create("/here")
        assert tree.durable_zxid == created.stat.czxid == ensemble.tree.zxid
        assert "/a/kafka/here" in ensemble.tree.nodes
        with pytest.raises(ValueError, match="not this one"):
            await open_tree(opening)
        assert ages == [TreeAge(None, 1), TreeAge(None, tree.durable_zxid + 1)]
        # Another session after one that is over.
        ensemble.expire(tree.session.id)
        again = await open_tree(opening)
        assert await again.exists("/here")
        assert list(ensemble.tree.sessions) == [again.session.id]
        await again.close()
        await tree.close()

    world.loop.run_until_complete(work())


@pytest.mark.parametrize(
    ("properties", "error"),
    [
        ({"zookeeper.connect": "one:0"}, BadConnectString),
        ({"zookeeper.connect": "zk1", "zookeeper.set.acl": "true"}, AuthenticationFailed),
        ({"zookeeper.connect": "nowhere,zk9"}, ServersUnreachable),
    ],
)
def test_addresses_that_lead_nowhere_end_the_start(properties: dict[str, str], error: type[Exception]) -> None:
    ports = memory_ports(seed=1)

    async def work() -> None:
        with pytest.raises(error):
            await open_tree(Opening(Config.parse(properties).coordination, ports, "/tree"))

    ports.loop.run_until_complete(work())


def test_the_age_of_a_tree_is_looked_at_before_anything_is_written() -> None:
    ports = memory_ports(seed=1)
    config = Config.parse().coordination
    ages: list[TreeAge] = []

    def check(age: TreeAge) -> None:
        ages.append(age)
        if len(ages) == 3:
            raise ValueError("not this one")

    async def work() -> None:
        for _ in range(2):
            tree = await open_tree(Opening(config, ports, "/tree", check))
            if len(ages) == 1:
                await tree.create("/cluster")
                await tree.create(CLUSTER_ID, b"one")
            await tree.close()
        with pytest.raises(ValueError, match="not this one"):
            await open_tree(Opening(config, ports, "/tree", check))
        tree = await open_tree(Opening(config, ports, "/tree", check))
        await tree.close()

    ports.loop.run_until_complete(work())
    assert ages[0] == TreeAge(None, 0)
    assert ages[1].created_ms is not None
    # The start that was refused has written nothing.
    assert ages[2] == ages[3]
    assert ages[2].zxid > ages[1].zxid
