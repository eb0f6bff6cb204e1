"""The three that are measured: ``ottla``, the ``null`` server and Apache ``kafka``, each started the same way."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tools.kafka_server import UNLIMITED_RETENTION, kafka_server
from tools.ottla_server import ottla_broker
from tools.server_process import ServerProcess, free_port

from bench import machine, native
from bench.frames import null_answers

OTTLA, NULL, KAFKA = "ottla", "null", "kafka"

#: Of both brokers. Deleted topics leave the disk at once, before the kernel writes them out under the next run.
PROPERTIES = {**UNLIMITED_RETENTION, "log.segment.delete.delay.ms": "100"}
#: What Kafka is given by `kafka_server` already.
OURS = {
    "offsets.topic.replication.factor": "1",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "group.initial.rebalance.delay.ms": "0",
}


@dataclass(frozen=True, kw_only=True)
class Places:
    """Where a run keeps what it makes."""

    #: Removed at the end. Holds the brokers' data, so it must lie on a real disk.
    scratch: Path
    #: Stays: compiled programs.
    cache: Path
    kafka_jars: Path | None


@dataclass(frozen=True, kw_only=True)
class Running:
    """A server that has been started."""

    kind: str
    server: ServerProcess

    @property
    def port(self) -> int:
        return self.server.port

    @property
    def pid(self) -> int:
        return self.server.pid


def make(
    kind: str, name: str, places: Places, *, properties: Mapping[str, str] | None = None, null_fetch_bytes: int = 0
) -> ServerProcess:
    """A server of ``kind`` over the fresh folder ``name``; not yet started. ``properties`` are for brokers."""
    folder = places.scratch / name
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    common = {**PROPERTIES, **(properties or {})}
    if kind == OTTLA:
        return ottla_broker(folder / "data", properties={**common, **OURS})
    if kind == KAFKA:
        assert places.kafka_jars is not None
        return kafka_server(folder, folder=places.kafka_jars, properties=common)
    port = free_port()
    answers = folder / "answers"
    answers.write_bytes(null_answers(port, null_fetch_bytes))
    program = native.command("null", places.cache)
    return ServerProcess([*program, str(port), str(answers)], port=port, log=folder / "null.out")


@contextmanager
def started(
    kind: str, name: str, places: Places, *, properties: Mapping[str, str] | None = None, null_fetch_bytes: int = 0
) -> Iterator[Running]:
    server = make(kind, name, places, properties=properties, null_fetch_bytes=null_fetch_bytes)
    try:
        server.start()
        yield Running(kind=kind, server=server)
    finally:
        server.kill()  # nothing here is worth a clean stop, and its data goes with the scratch folder
        shutil.rmtree(places.scratch / name, ignore_errors=True)


def load_core() -> set[int]:
    """The core that the load generator has to itself, on a machine that has one to spare."""
    cores = sorted(machine.cores())
    return {cores[-1]} if len(cores) > 1 else set(cores)


def server_cores(kind: str) -> set[int]:
    """Kafka has many threads and may use every core; a server of one thread gets those without the load."""
    every = machine.cores()
    return every if kind == KAFKA or len(every) == 1 else every - load_core()
