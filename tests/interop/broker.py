"""The broker under test: a process, the folder it keeps its partitions in, and which kind it is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tools.kafka_server import QUICK_KAFKA_FLAGS, kafka_server
from tools.ottla_server import ottla_broker as ottla_with
from tools.ottla_server import ottla_up
from tools.server_process import ServerProcess


@dataclass(frozen=True, kw_only=True)
class Broker:
    kind: str
    server: ServerProcess
    data: Path
    #: What clients connect to in its place, where what they say is written down.
    front: ServerProcess | None = None

    @property
    def bootstrap(self) -> str:
        return (self.front or self.server).bootstrap

    def partition_folder(self, topic: str, partition: int = 0) -> Path:
        """Where the partition's segments lie, wherever under its data the broker keeps them."""
        folders = [path for path in self.data.rglob(f"{topic}-{partition}") if path.is_dir()]
        assert len(folders) == 1, folders
        return folders[0]


def ottla_broker(folder: Path, properties: Mapping[str, str] | None = None) -> Broker:
    """As a person starts it; with ``properties`` as a service does."""
    data = folder / "data"
    server = ottla_up(data) if properties is None else ottla_with(data, properties=properties)
    return Broker(kind="ottla", server=server, data=data)


#: For an Apache Kafka whose log directory is copied: indexes are made as large as they may become, 10 MB by default,
#: and a copy has all of it. These have room for segments of 16 MB.
SMALL_INDEXES = {"log.index.size.max.bytes": "65536"}


def kafka_broker(folder: Path, jar_folder: Path, properties: Mapping[str, str] | None = None) -> Broker:
    everywhere = {
        "log.segment.delete.delay.ms": "1000",
    }
    server = kafka_server(
        folder, folder=jar_folder, properties={**everywhere, **(properties or {})}, flags=QUICK_KAFKA_FLAGS
    )
    return Broker(kind="kafka", server=server, data=folder)
