"""Our client beside kazoo on a real ensemble of three."""

from __future__ import annotations

import asyncio
import itertools
from typing import TYPE_CHECKING

import pytest
from tests.coordination.zookeeper.sessions import RemoteProvider
from tools.zookeeper_server import ZooKeeperEnsemble

from ottla.ports.real import real_ports

pytest.importorskip("kazoo", reason="kazoo is not installed")

from kazoo.client import KazooClient
from tests.coordination.kazoo_contract import KAZOO_SCENARIOS

if TYPE_CHECKING:
    from tests.coordination.kazoo_contract import KazooScenario

pytestmark = [pytest.mark.java, pytest.mark.xdist_group("zookeeper")]

_bases = itertools.count()


@pytest.mark.parametrize("scenario", KAZOO_SCENARIOS, ids=lambda scenario: scenario.__name__)
def test_kazoo(scenario: KazooScenario, ensemble: ZooKeeperEnsemble) -> None:
    async def run() -> None:
        connect = f"{ensemble.connect}/kazoo{next(_bases)}"
        provider = RemoteProvider(real_ports(), connect, 60_000)
        started: list[KazooClient] = []

        async def start() -> KazooClient:
            client = KazooClient(connect, timeout=60)
            started.append(client)
            await asyncio.to_thread(client.start, 60)
            return client

        await (await provider.session()).create("/base")
        try:
            await scenario(provider, start, "/base")
        finally:
            for client in started:
                await asyncio.to_thread(client.stop)
                await asyncio.to_thread(client.close)
            await provider.close()

    asyncio.run(run())
