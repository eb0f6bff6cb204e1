"""Our client with a real ensemble whose servers are killed, paused and started, and with a client that is paused."""

from __future__ import annotations

import asyncio
import itertools
import os
import signal
import sys
from collections.abc import Awaitable, Callable
from contextlib import suppress

import pytest
from tests.conftest import REPOSITORY
from tests.coordination.contract import Events, until
from tests.coordination.zookeeper.sessions import RemoteProvider
from tools.zookeeper_server import ZooKeeperEnsemble, ZooKeeperServer, four_letters, shell

from ottla.controller.electing.controllership import compete
from ottla.coordination.errors import ConnectionLoss, CoordinationError
from ottla.coordination.interface import Create, EventType, SessionEvent, SetData, TreeAge
from ottla.coordination.zookeeper.client import RemoteTree
from ottla.model import BrokerId
from ottla.ports.real import real_ports

pytestmark = [pytest.mark.java, pytest.mark.xdist_group("zookeeper")]

_bases = itertools.count()

Work = Callable[[RemoteProvider, str], Awaitable[None]]


def run(ensemble: ZooKeeperEnsemble, work: Work, timeout_ms: int = 6000) -> None:
    async def whole() -> None:
        provider = RemoteProvider(real_ports(), f"{ensemble.connect}/faults{next(_bases)}", timeout_ms)
        try:
            async with asyncio.timeout(150):
                await work(provider, "")
        finally:
            await provider.close()

    asyncio.run(whole())


async def connected_elsewhere(provider: RemoteProvider, server: ZooKeeperServer) -> RemoteTree:
    """A session with another server than this one."""
    while True:
        tree = await provider.session()
        if tree.server != server.bootstrap:
            return tree
        await tree.close()


def test_a_session_goes_on_when_its_server_is_killed(own_ensemble: ZooKeeperEnsemble) -> None:
    async def work(provider: RemoteProvider, _: str) -> None:
        tree = await provider.session()
        events: list[SessionEvent] = []
        tree.listen(events.append)
        session = tree.session
        first = own_ensemble.serving(tree.server or "")
        other = await connected_elsewhere(provider, first)
        await tree.create("/e", ephemeral=True)
        await tree.create("/a", b"0")
        left = await tree.create("/same")
        changed, same, born = Events(), Events(), Events()
        await tree.get("/a", changed)
        await tree.get("/same", same)
        await tree.exists("/born", born)
        first.kill()
        async with asyncio.timeout(60):
            while not await other.exists("/born"):
                # The killed one may have led the others, which then close their connections.
                with suppress(ConnectionLoss):
                    await other.multi([SetData("/a", b"1"), Create("/born")])
        await asyncio.gather(tree.sync("/"), other.sync("/"))
        assert await tree.get("/a") == await other.get("/a")
        assert await tree.exists("/born")
        await until(lambda: changed and born)
        assert list(changed) == [(EventType.NODE_DATA_CHANGED, "/a")]
        assert list(born) == [(EventType.NODE_CREATED, "/born")]
        assert not same
        assert tree.session == session
        assert tree.server != first.bootstrap
        found = await other.exists("/e")
        assert found is not None
        assert found.ephemeral_owner == session.id
        # A change between the two sessions that none of these servers forgets: the watch that did not fire is left.
        await other.delete("/same", left.stat.version)
        await until(lambda: same)
        assert SessionEvent.EXPIRED not in events

    # Its server may have led: on a busy machine others take seconds to elect one, and to shake hands after that.
    run(own_ensemble, work, timeout_ms=30_000)


@pytest.mark.slow
def test_leaders_of_the_ensemble_come_and_go_under_writes(own_ensemble: ZooKeeperEnsemble) -> None:
    """A conditional counter: what was acknowledged is there, and what is there was asked for."""

    async def work(provider: RemoteProvider, _: str) -> None:
        trees = [await provider.session() for _ in range(3)]
        await trees[0].create("/count", b"0")
        await asyncio.gather(*(tree.sync("/") for tree in trees))
        acknowledged = unknown = 0
        ending = asyncio.Event()

        async def increment(tree: RemoteTree) -> None:
            nonlocal acknowledged, unknown
            while not ending.is_set():
                data, stat = await tree.get("/count")
                assert int(data) == stat.version
                try:
                    await tree.set("/count", b"%d" % (int(data) + 1), stat.version)
                    acknowledged += 1
                except ConnectionLoss:
                    unknown += 1
                except CoordinationError as error:
                    if type(error).__name__ != "BadVersion":
                        raise

        async def disturb() -> None:
            for _ in range(3):
                leader = await asyncio.to_thread(own_ensemble.leader)
                before = acknowledged
                leader.kill()
                while acknowledged <= before + 20:  # noqa: ASYNC110 - an election takes seconds on a busy machine
                    await asyncio.sleep(0.001)
                await asyncio.to_thread(own_ensemble.start)
            ending.set()

        await asyncio.gather(disturb(), *map(increment, trees))
        await trees[0].sync("/")
        data, stat = await trees[0].get("/count")
        assert acknowledged <= int(data) == stat.version <= acknowledged + unknown
        assert acknowledged > 60

    run(own_ensemble, work)


def test_a_lost_quorum_is_waited_for(own_ensemble: ZooKeeperEnsemble) -> None:
    async def work(provider: RemoteProvider, _: str) -> None:
        tree = await provider.session()
        events: list[SessionEvent] = []
        tree.listen(events.append)
        session = tree.session
        await tree.create("/e", ephemeral=True)
        for server in own_ensemble.servers[:2]:
            server.kill()
        # The third serves on until it notices.
        last = own_ensemble.servers[2]
        await until(lambda: last.mode() is None and tree.server is None and events[-1:] == [SessionEvent.DISCONNECTED])
        events.clear()
        waiting = asyncio.ensure_future(tree.create("/a"))
        # A server without a quorum takes no session, and nobody ends one: what the start below takes, and the time-out.
        assert events == []
        await asyncio.to_thread(own_ensemble.start)
        assert (await waiting).path == "/a"
        assert tree.session == session
        assert await tree.exists("/e")
        assert events == [SessionEvent.CONNECTED]

    run(own_ensemble, work, timeout_ms=30_000)


def test_a_server_that_stands_still_is_left(own_ensemble: ZooKeeperEnsemble) -> None:
    async def work(provider: RemoteProvider, _: str) -> None:
        tree = await provider.session()
        await tree.create("/e", ephemeral=True)
        still = own_ensemble.serving(tree.server or "")
        other = await connected_elsewhere(provider, still)
        os.kill(still.pid, signal.SIGSTOP)
        try:
            await until(lambda: tree.server not in {None, still.bootstrap})
            async with asyncio.timeout(60):
                assert await tree.exists("/e")
                await other.sync("/")
                assert await other.exists("/e")
        finally:
            os.kill(still.pid, signal.SIGCONT)

    run(own_ensemble, work)


def test_a_paused_client_loses_its_session_and_opens_another(ensemble: ZooKeeperEnsemble) -> None:
    async def work(provider: RemoteProvider, _: str) -> None:
        watching = await provider.session()
        client = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "tests.coordination.zookeeper.paused_client", provider.connect, "/e"),
            stdout=asyncio.subprocess.PIPE,
            cwd=REPOSITORY,
            env={**os.environ, "PYTHONPATH": f"{REPOSITORY}:{os.environ.get('PYTHONPATH', '')}"},
        )
        assert client.stdout is not None
        try:
            assert await client.stdout.readline() == b"registered\n"
            await watching.sync("/")
            _, first = await watching.get("/e")
            gone = Events()
            await watching.exists("/e", gone)
            client.send_signal(signal.SIGSTOP)
            await until(lambda: gone)
            client.send_signal(signal.SIGCONT)
            said = [await client.stdout.readline() for _ in range(3)]
            assert said == [b"disconnected\n", b"expired\n", b"registered\n"]
            await watching.sync("/")
            _, second = await watching.get("/e")
            assert second.ephemeral_owner != first.ephemeral_owner
            assert second.czxid > first.czxid
        finally:
            client.kill()
            await client.wait()

    run(ensemble, work)


def test_one_of_two_becomes_the_controller(ensemble: ZooKeeperEnsemble) -> None:
    async def work(provider: RemoteProvider, _: str) -> None:
        trees = [await provider.session() for _ in range(2)]
        tries = (compete(tree, BrokerId(number), 0, lambda _: None) for number, tree in enumerate(trees, 1))
        outcomes = await asyncio.gather(*tries)
        assert outcomes.count(None) == 1
        winner = 1 - outcomes.index(None)
        gone = Events()
        loser = trees[1 - winner]
        await loser.sync("/")
        await loser.exists("/controller", gone)
        await provider.expire(trees[winner])
        await until(lambda: gone)
        claim = await compete(loser, BrokerId(2 - winner), 0, lambda _: None)
        assert claim is not None
        assert claim.epoch == 2

    run(ensemble, work)


def test_the_age_of_the_tree_is_that_of_all_servers(ensemble: ZooKeeperEnsemble) -> None:
    async def work(provider: RemoteProvider, _: str) -> None:
        tree, other = await provider.session(), await provider.session()
        await other.create("/cluster")
        await other.create("/cluster/id", b"{}")
        stat = await other.exists("/cluster/id")
        assert stat is not None
        assert await tree.age() == TreeAge(stat.ctime_ms, tree.durable_zxid)
        assert tree.durable_zxid >= stat.czxid

    run(ensemble, work)


def test_zookeepers_own_shell_reads_what_we_write(ensemble: ZooKeeperEnsemble) -> None:
    async def work(provider: RemoteProvider, _: str) -> None:
        tree = await provider.session()
        await tree.create("/größe", b"some data")
        path = f"{provider.connect[provider.connect.index('/') :]}/größe"
        address = tree.server or ""
        said = await asyncio.to_thread(shell, address, f"get {path}")
        assert "some data" in said
        changed = Events()
        await tree.get("/größe", changed)
        await asyncio.to_thread(shell, address, f"set {path} theirs")
        await until(lambda: changed)
        assert (await tree.get("/größe"))[0] == b"theirs"
        assert "Connections" in four_letters(ensemble.serving(address).port, "srvr", 60)

    run(ensemble, work)
