"""Followers on two processes of this machine: how fast one catches up, and what a thousand idle partitions cost.

    python -m bench.following catch-up [--bytes 1G] [--batch 16K] [--partitions 1]
    python -m bench.following idle [--partitions 1000] [--seconds 10]
    python -m bench.following one-by-one [--partitions 1] [--records 5000]

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


async def heard() -> str:
    """The driver's next line."""
    line: str = await asyncio.get_running_loop().run_in_executor(None, sys.stdin.readline)
    if not line:
        raise SystemExit("the driver is gone")
    return line.strip()


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
        # Of the loop's own thread, which other processes on this machine do not lengthen.
        longest, last = 0.0, time.thread_time()
        while sum(log.size for log in broker.logs()) < wanted:
            await asyncio.sleep(0 if arguments.turns else 0.001)
            longest, last = max(longest, time.thread_time() - last), time.thread_time()
        say(seconds=time.monotonic() - began, cpu=cpu_s() - before, longest_turn_ms=longest * 1000)
    while True:
        if await heard() == "records":
            await one_by_one(broker, arguments.records)
        say(cpu=cpu_s(), size=sum(log.size for log in broker.logs()))


async def one_by_one(broker: Broker, count: int) -> None:
    """Appends a record and waits until it is committed, so often."""
    assert broker.services is not None
    services = broker.services
    leader = services.replicas.leaders[TopicPartition(TOPIC, 0)]
    leader.isr.confirmed((LEADER, FOLLOWER))
    batch = encode_batch([Record(0, 1_000, None, b"x" * 100)])

    def stage() -> None:
        leader.append(memoryview(bytearray(batch)), 1_000)
        services.writes.staged(leader)

    for _ in range(count):
        services.round.within(stage)
        while leader.high_watermark < leader.log.end_offset:  # noqa: ASYNC110 - nobody is called for it
            await asyncio.sleep(0)


class Side:
    """One of the two processes."""

    def __init__(self, number: int, directory: str, ports: list[int], arguments: argparse.Namespace) -> None:
        command = [sys.executable, "-m", "bench.following", "serve", "--number", str(number), "--directory", directory]
        command += ["--ports", *map(str, ports), "--bytes", str(arguments.bytes), "--batch", str(arguments.batch)]
        command += ["--partitions", str(arguments.partitions), "--records", str(arguments.records)]
        command += ["--turns"] if arguments.turns else []
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def said(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line, "a process has ended"
        found: dict[str, Any] = json.loads(line)
        return found

    def ask(self, what: str = "") -> dict[str, Any]:
        self.tell(what)
        return self.said()

    def tell(self, what: str = "") -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(f"{what}\n")
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
        if arguments.what == "one-by-one":
            began, before = time.monotonic(), follower.ask()["cpu"]
            leader.ask("records")
            took, cpu = time.monotonic() - began, follower.ask()["cpu"] - before
            print(f"{took / arguments.records * 1e6:.0f} us a record, {cpu / arguments.records * 1e6:.1f} us of CPU")
            return
        if arguments.what == "catch-up":
            rate = after["size"] / caught_up["seconds"] / 1e6
            print(f"{after['size'] / 1e6:.0f} MB in {caught_up['seconds']:.2f} s: {rate:.0f} MB/s")
            print(f"CPU: leader {after['cpu'] - before:.2f} s, follower {caught_up['cpu']:.2f} s")
            if arguments.turns:
                print(f"longest turn of the follower's loop: {caught_up['longest_turn_ms']:.1f} ms of CPU")
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
    parser.add_argument("what", choices=("catch-up", "idle", "one-by-one", "serve"))
    parser.add_argument("--bytes", type=number_of)
    parser.add_argument("--batch", type=number_of, default=16 * 1024)
    parser.add_argument("--partitions", type=int)
    parser.add_argument("--records", type=int)
    parser.add_argument("--turns", action="store_true", help="look at each turn of the follower's loop")
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
        arguments.bytes = 10**9 if arguments.what == "catch-up" else 0
    if arguments.records is None:
        arguments.records = 5_000 if arguments.what == "one-by-one" else 0
    if arguments.partitions is None:
        arguments.partitions = 1000 if is_idle else 1
    run(arguments)


if __name__ == "__main__":
    main()
