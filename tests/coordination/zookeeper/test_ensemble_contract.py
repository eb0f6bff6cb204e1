"""The contract of coordination, held by our client with a real ensemble of three ZooKeeper servers."""

from __future__ import annotations

import asyncio
import itertools

import pytest
from tests.coordination.contract import SCENARIOS, Scenario
from tests.coordination.zookeeper.sessions import RemoteProvider
from tools.zookeeper_server import ZooKeeperEnsemble

from ottla.ports.real import real_ports

pytestmark = [pytest.mark.java, pytest.mark.xdist_group("zookeeper")]

_bases = itertools.count()


@pytest.mark.in_turns
@pytest.mark.parametrize("chroot", ["", "/a/chroot"], ids=["root", "chroot"])
@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.__name__)
def test_contract(scenario: Scenario, chroot: str, ensemble: ZooKeeperEnsemble) -> None:
    async def run() -> None:
        provider = RemoteProvider(real_ports(), ensemble.connect + chroot, 60_000)
        base = f"/contract{next(_bases)}"
        await (await provider.session()).create(base)
        try:
            await scenario(provider, base)
        finally:
            await provider.close()

    asyncio.run(run())
