"""Topics with many partitions: their folders come and go in workers, and the loop's thread serves others meanwhile."""

from __future__ import annotations

import asyncio
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

from ottla.broker.broker import Broker
from ottla.config import Config
from ottla.controller.interface import TopicRef, TopicToCreate
from ottla.model import ErrorCode
from ottla.ports.real import real_ports
from ottla.ports.real.disk import RealDisk

PARTITIONS = 600


class WatchedDisk(RealDisk):
    """Remembers what was done to folders by the thread that watches."""

    def __init__(self) -> None:
        super().__init__()
        self.watching: int | None = None
        self.seen: list[tuple[str, str]] = []

    def _note(self, operation: str, path: str) -> None:
        if threading.get_ident() == self.watching:
            self.seen.append((operation, path))

    def make_directory(self, path: str) -> bool:
        self._note("make", path)
        return super().make_directory(path)

    def rename(self, source: str, target: str) -> None:
        self._note("rename", source)
        super().rename(source, target)

    def remove_tree(self, path: str) -> None:
        self._note("remove", path)
        super().remove_tree(path)

    def sync_directory(self, path: str) -> None:
        self._note("sync", path)
        super().sync_directory(path)


def folders(logs: Path) -> list[str]:
    return [path.name for path in logs.iterdir() if path.is_dir() and path.name.startswith(("big", "small"))]


async def until_removed(logs: Path) -> None:
    for _ in range(6_000):
        if not folders(logs):
            return
        await asyncio.sleep(0.01)
    raise TimeoutError(f"{len(folders(logs))} folders are left")


def test_folders_come_and_go_beside_the_loop(tmp_path: Path) -> None:
    disk = WatchedDisk()
    logs = tmp_path / "logs"

    async def scenario() -> None:
        ports: Any = replace(real_ports(), disk=disk)
        broker = Broker(Config.parse({"listeners": "PLAINTEXT://127.0.0.1:0", "log.dirs": str(logs)}), ports)
        await broker.start()
        assert broker.services is not None
        controller = broker.services.controller
        disk.watching = threading.get_ident()
        answered: list[str] = []

        async def create(name: str, partitions: int) -> None:
            (created,) = await controller.create_topics([TopicToCreate(name, partitions, 1)])
            assert created.error == ErrorCode.NONE
            answered.append(name)

        await asyncio.gather(create("big", PARTITIONS), create("small", 1))
        assert answered == ["small", "big"]
        assert len(folders(logs)) == PARTITIONS + 1
        (deleted,) = await controller.delete_topics([TopicRef("big")])
        # The same name again, at once.
        (again,) = await controller.create_topics([TopicToCreate("big", 3, 1)])
        assert (deleted.error, again.error) == (ErrorCode.NONE, ErrorCode.NONE)
        await controller.delete_topics([TopicRef("big"), TopicRef("small")])
        await until_removed(logs)
        disk.watching = None
        await broker.stop()
        ports.network.close()
        ports.workers.close()

    asyncio.run(scenario())
    assert disk.seen == []


def test_the_next_start_serves_what_was_acknowledged_and_removes_what_was_deleted(tmp_path: Path) -> None:
    logs = tmp_path / "logs"

    async def life(topics: dict[str, int], *, delete: bool) -> None:
        ports = real_ports()
        broker = Broker(Config.parse({"listeners": "PLAINTEXT://127.0.0.1:0", "log.dirs": str(logs)}), ports)
        await broker.start()
        assert broker.services is not None
        controller, metadata = broker.services.controller, broker.services.metadata
        assert {name: len(topic.partitions) for name, topic in metadata.topics.items()} == topics
        if delete:
            await controller.delete_topics([TopicRef("big")])
        else:
            await controller.create_topics([TopicToCreate("big", PARTITIONS, 1)])
        # The stop comes at once: folders that wait for their removal are left to the next start.
        await broker.stop()
        ports.network.close()
        ports.workers.close()

    asyncio.run(life({}, delete=False))
    assert len(folders(logs)) == PARTITIONS
    asyncio.run(life({"big": PARTITIONS}, delete=True))

    async def last() -> None:
        ports = real_ports()
        broker = Broker(Config.parse({"listeners": "PLAINTEXT://127.0.0.1:0", "log.dirs": str(logs)}), ports)
        await broker.start()
        await until_removed(logs)
        await broker.stop()
        ports.network.close()
        ports.workers.close()

    asyncio.run(last())
