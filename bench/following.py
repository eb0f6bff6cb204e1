"""Followers on two processes of this machine: how fast one catches up, and what a thousand idle partitions cost.

    python -m bench.following catch-up [--bytes 1G] [--batch 16K] [--partitions 1]
    python -m bench.following idle [--partitions 1000] [--seconds 10]

Roles are given by the processes themselves: there is no controller between them. What is measured is a leader that
serves fetches, a follower that sends them and appends, and the loopback between.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, Final

from tools.server_process import free_port

from ottla.app import assemble
from ottla.broker.broker import Broker
from ottla.config import Config
from ottla.metadata import BrokerEndpoints, Endpoint, MetadataUpdate, PartitionState
from ottla.model import BrokerId, Epoch, TopicId, TopicPartition
from ottla.ports.real import real_ports
from ottla.records.record import Record, encode_batch

TOPIC: Final = "t"
TOPIC_ID: Final = TopicId(b"benchmark-topic.")
LEADER, FOLLOWER = BrokerId(1), BrokerId(2)
CONTROLLER_EPOCH: Final = Epoch(1_000_000)
#: Batches that are appended and written at once while the leader's log is filled.
_FILLED_AT_ONCE: Final = 64


def states(partitions: int) -> list[PartitionState]:
    return [
        PartitionState(
            *(TOPIC, number, TOPIC_ID, CONTROLLER_EPOCH, LEADER, Epoch(1), (LEADER,), (LEADER, FOLLOWER), 0),
            is_new=True,
        )
        for number in range(partitions)
    ]


async def started(number: int, directory: str, ports: dict[int, int]) -> Broker:
    properties = {
        "broker.id": str(number),
        "listeners": f"PLAINTEXT://127.0.0.1:{ports[number]}",
        "log.dirs": directory,
        "log.segment.bytes": str(1 << 30),
    }
    broker = assemble(Config.parse(properties), real_ports(), "127.0.0.1")
    await broker.start()
    return broker


async def give_roles(broker: Broker, partitions: int, ports: dict[int, int]) -> None:
    assert broker.services is not None
    replicas = broker.services.replicas
    endpoints = [
        BrokerEndpoints(BrokerId(each), (Endpoint("PLAINTEXT", "PLAINTEXT", "127.0.0.1", port),), None, each)
        for each, port in ports.items()
    ]
    all_states = states(partitions)
    broker.metadata.apply(MetadataUpdate(controller_epoch=CONTROLLER_EPOCH, brokers=endpoints, partitions=all_states))
    await replicas.change(replicas.take_on(all_states, lambda _: broker.config.log))


def fill(broker: Broker, partitions: int, size: int, batch_bytes: int) -> None:
    """Appends so many bytes in all to the leaders, in batches of about this size."""
    assert broker.services is not None
    value = b"x" * 100
    records = max(1, batch_bytes // 110)
    batch = encode_batch([Record(each, 1_000, None, value) for each in range(records)])
    leaders = [broker.services.replicas.leaders[TopicPartition(TOPIC, number)] for number in range(partitions)]
    written = 0
    while written < size:
        for leader in leaders:
            for _ in range(_FILLED_AT_ONCE):
                leader.append(memoryview(bytearray(batch)), 1_000)
                written += len(batch)
            leader.log.write_staged()
            leader.advance()


def cpu_s() -> float:
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


def say(**fields: Any) -> None:
    print(json.dumps(fields), flush=True)


async def heard() -> None:
    """Returns when the driver has sent a line, or is gone."""
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.readline)


async def serve(arguments: argparse.Namespace) -> None:
    ports = {1: arguments.ports[0], 2: arguments.ports[1]}
    broker = await started(arguments.number, arguments.directory, ports)
    assert broker.services is not None
    if arguments.number == LEADER:
        await give_roles(broker, arguments.partitions, ports)
        fill(broker, arguments.partitions, arguments.bytes, arguments.batch)
        say(ready=True)
    else:
        say(ready=True)
        await heard()
        began, before = time.monotonic(), cpu_s()
        await give_roles(broker, arguments.partitions, ports)
        wanted = arguments.bytes
        longest, last = 0.0, time.monotonic()
        while sum(log.size for log in broker.logs()) < wanted:
            await asyncio.sleep(0.001)
            longest, last = max(longest, time.monotonic() - last), time.monotonic()
        say(seconds=time.monotonic() - began, cpu=cpu_s() - before, longest_turn_ms=longest * 1000)
    while True:
        await heard()
        say(cpu=cpu_s(), size=sum(log.size for log in broker.logs()))


class Side:
    """One of the two processes."""

    def __init__(self, number: int, directory: str, ports: list[int], arguments: argparse.Namespace) -> None:
        command = [sys.executable, "-m", "bench.following", "serve", "--number", str(number), "--directory", directory]
        command += ["--ports", *map(str, ports), "--bytes", str(arguments.bytes), "--batch", str(arguments.batch)]
        command += ["--partitions", str(arguments.partitions)]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def said(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line, "a process has ended"
        found: dict[str, Any] = json.loads(line)
        return found

    def ask(self) -> dict[str, Any]:
        self.tell()
        return self.said()

    def tell(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write("\n")
        self.process.stdin.flush()

    def end(self) -> None:
        self.process.kill()
        self.process.wait()


def run(arguments: argparse.Namespace) -> None:
    folder = Path(tempfile.mkdtemp(prefix="ottla-following-"))
    ports = [free_port(), free_port()]
    sides: list[Side] = []
    try:
        leader = Side(1, str(folder / "leader"), ports, arguments)
        sides.append(leader)
        follower = Side(2, str(folder / "follower"), ports, arguments)
        sides.append(follower)
        leader.said()
        follower.said()
        before = leader.ask()["cpu"]
        follower.tell()
        caught_up = follower.said()
        after = leader.ask()
        if arguments.what == "catch-up":
            rate = after["size"] / caught_up["seconds"] / 1e6
            print(f"{after['size'] / 1e6:.0f} MB in {caught_up['seconds']:.2f} s: {rate:.0f} MB/s")
            print(f"CPU: leader {after['cpu'] - before:.2f} s, follower {caught_up['cpu']:.2f} s")
            print(f"longest turn of the follower's loop: {caught_up['longest_turn_ms']:.1f} ms")
            return
        time.sleep(2)
        ends = [(side.ask()["cpu"], time.monotonic()) for side in (leader, follower)]
        time.sleep(arguments.seconds)
        for name, side, (cpu, at) in zip(("leader", "follower"), (leader, follower), ends, strict=True):
            took = (side.ask()["cpu"] - cpu) / (time.monotonic() - at)
            print(f"{name}: {took * 100:.2f} % of a core")
    finally:
        for side in sides:
            side.end()
        shutil.rmtree(folder, ignore_errors=True)


def number_of(text: str) -> int:
    for suffix, factor in (("G", 10**9), ("M", 10**6), ("K", 1024)):
        if text.endswith(suffix):
            return int(float(text.removesuffix(suffix)) * factor)
    return int(text)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=("catch-up", "idle", "serve"))
    parser.add_argument("--bytes", type=number_of)
    parser.add_argument("--batch", type=number_of, default=16 * 1024)
    parser.add_argument("--partitions", type=int)
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--number", type=int)
    parser.add_argument("--directory")
    parser.add_argument("--ports", type=int, nargs=2)
    arguments = parser.parse_args()
    if arguments.what == "serve":
        asyncio.run(serve(arguments))
        return
    is_idle = arguments.what == "idle"
    if arguments.bytes is None:
        arguments.bytes = 0 if is_idle else 10**9
    if arguments.partitions is None:
        arguments.partitions = 1000 if is_idle else 1
    run(arguments)


if __name__ == "__main__":
    main()
