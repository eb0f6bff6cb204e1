"""What a supervisor does before it starts anything."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from ottla.local_cluster.layout import BrokerPlan, Wishes
from ottla.local_cluster.member import StartFailed
from ottla.local_cluster.supervisor import LocalCluster


class NotYet(Exception):
    """Ends a start before its first process."""


def cluster(tmp_path: Path, begun: asyncio.Event | None = None) -> LocalCluster:
    """Its start waits for nobody when it has `begun`, or ends at once."""

    async def arranged(_: BrokerPlan) -> BrokerPlan:
        if begun is None:
            raise NotYet
        begun.set()
        return await asyncio.get_running_loop().create_future()

    wishes = Wishes(brokers=1, first_log_dir=f"{tmp_path}/data", host="127.0.0.1", port=0, properties={})
    return LocalCluster(wishes, lambda *_: None, "127.0.0.1:1", arranged)


def test_two_commands_do_not_have_one_folder(tmp_path: Path) -> None:
    """The files that the brokers of the first are started again with stay as they are."""

    async def work() -> None:
        begun = asyncio.Event()
        first = asyncio.ensure_future(cluster(tmp_path, begun).start())
        await begun.wait()
        for _ in range(2):
            with pytest.raises(StartFailed, match="in use by another process"):
                await cluster(tmp_path).start()
        first.cancel()
        await asyncio.wait([first])
        with pytest.raises(NotYet):
            await cluster(tmp_path).start()

    asyncio.run(work())
