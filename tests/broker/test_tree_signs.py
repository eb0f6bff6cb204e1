"""The signs of the tree in the log directories are written by one worker at a time, however long that takes."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from typing import TypeVar, cast

from ottla.broker.tree_signs import TreeSigns
from ottla.coordination.interface import Stat
from ottla.coordination.providers import BrokersTree
from ottla.coordination.znodes import encode_cluster_id
from ottla.ports.memory import memory_ports
from ottla.ports.memory.workers import MemoryWorkers
from ottla.storage.formats import tree_sign

T = TypeVar("T")
HOME = "/data"


class BusyTree:
    """Changes all the time."""

    fault = None

    def __init__(self) -> None:
        self._zxid = 0

    @property
    def durable_zxid(self) -> int:
        self._zxid += 1
        return self._zxid

    async def get(self, _: str) -> tuple[bytes, Stat]:
        return encode_cluster_id("c"), cast("Stat", STAT)


class STAT:
    ctime_ms = 1


class Counted(MemoryWorkers):
    asked = 0

    def thread(self, work: Callable[[], T]) -> asyncio.Future[T]:
        self.asked += 1
        return super().thread(work)


def test_a_disk_that_hangs_holds_one_worker_and_not_one_more_each_time() -> None:
    ports = memory_ports(seed=1, shuffle=False)
    ports.disk.make_directory(HOME)
    workers = Counted(ports.loop, seed=1)
    ports = replace(ports, workers=workers)

    async def work() -> None:
        signs, tree = TreeSigns(ports, [HOME], "/tree"), BusyTree()
        await signs.keep(cast("BrokersTree", tree), lambda: [HOME])
        workers.asked = 0
        workers.latency_ms = (60_000, 60_000)
        await asyncio.sleep(59)
        assert workers.asked == 1
        workers.latency_ms = (1, 1)
        await asyncio.sleep(12)
        sign = tree_sign.read(ports.disk, f"{HOME}/{tree_sign.FILE_NAME}")
        assert sign is not None
        assert sign.zxid == tree._zxid
        assert workers.asked > 1
        signs.close()

    ports.loop.run_until_complete(work())
