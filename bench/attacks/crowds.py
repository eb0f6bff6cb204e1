"""Crowds to whom the same happens in the same moment: they end, or expire, together."""

from __future__ import annotations

import os
import signal
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path

from tools.server_process import raise_open_files_limit

from bench.attacks.attack import Attack, Bound, Outcome, Victim
from bench.attacks.connections import SEND_SECONDS_MAX, crowd
from bench.attacks.long_answers import waiting_fetch
from bench.attacks.probe import QUESTION
from bench.frames import TOPIC, batch, produce
from bench.wire import create_topic

CROWD = 5_000
#: Behind the last of what happens, until the broker has dealt with all.
SETTLED_SECONDS = 2.0
LOOK_SECONDS = 0.1
IDLE_MS = 4_000
#: For a crowd to send its first requests.
FIRST_SECONDS = 4.0
PIPELINE = (produce(batch(1, 10)).request + produce(batch(1, 10), acks=0).request + QUESTION * 2) * 4
#: Between the last connection and what they do.
REST_SECONDS = 0.5
_REPOSITORY = Path(__file__).resolve().parents[2]
#: A close then sends a reset in place of an orderly end.
RESET = struct.pack("ii", 1, 0)


def half_close(connection: socket.socket) -> None:
    connection.shutdown(socket.SHUT_WR)


def reset(connection: socket.socket) -> None:
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
    connection.close()


def ask_and_end(connection: socket.socket) -> None:
    connection.sendall(QUESTION)
    connection.shutdown(socket.SHUT_WR)


def pipeline_and_end(connection: socket.socket) -> None:
    connection.settimeout(SEND_SECONDS_MAX)
    connection.sendall(PIPELINE)
    connection.shutdown(socket.SHUT_WR)


def ask(connection: socket.socket) -> None:
    connection.sendall(QUESTION)


class Alarms(Attack):
    name = "alarms"
    sends = f"{CROWD:,} fetches whose time ends in the same moment"
    bound = Bound(memory_mb=128)

    def prepare(self, victim: Victim) -> None:
        create_topic(victim.port, TOPIC)

    def run(self, victim: Victim) -> Outcome:
        with ExitStack() as stack:
            opened = crowd(stack, victim.port, CROWD)
            ends = time.monotonic() + FIRST_SECONDS
            for connection in opened:
                connection.sendall(waiting_fetch(max(1, int((ends - time.monotonic()) * 1000))))
            time.sleep(max(0, ends - time.monotonic()) + SETTLED_SECONDS)
        return Outcome(said=f"{len(opened):,} connections")


@dataclass
class Crowd(Attack):
    name: str
    sends: str
    #: What each does, one after the other, as fast as may be.
    act: Callable[[socket.socket], None]
    #: What each has sent before.
    first: bytes = b""
    #: For what follows of it, at most.
    settled_seconds: float = 2 * SETTLED_SECONDS
    #: Whether the broker is to have closed all of them in the end.
    ends: bool = True
    bound: Bound = field(default_factory=Bound)
    properties: dict[str, str] = field(default_factory=dict)

    def prepare(self, victim: Victim) -> None:
        create_topic(victim.port, TOPIC)

    def run(self, victim: Victim) -> Outcome:
        before = victim.open_files()
        with ExitStack() as stack:
            opened = crowd(stack, victim.port, CROWD, self.first)
            time.sleep(REST_SECONDS)
            began = time.monotonic()
            for connection in opened:
                with suppress(OSError):
                    self.act(connection)
            acted = time.monotonic() - began
            left = left_after(victim, before, self.settled_seconds) if self.ends else 0
            time.sleep(SETTLED_SECONDS)
        return outcome(len(opened), acted, left)


@dataclass
class Killed(Attack):
    """The connections of another process, which the system closes all at once."""

    name: str
    sends: str
    first: bytes = b""
    bound: Bound = field(default_factory=Bound)

    def prepare(self, victim: Victim) -> None:
        create_topic(victim.port, TOPIC)

    def run(self, victim: Victim) -> Outcome:
        before = victim.open_files()
        process = subprocess.Popen(
            [sys.executable, "-m", "bench.attacks.crowds", str(victim.port), self.first.hex()],
            stdout=subprocess.PIPE,
            text=True,
            cwd=_REPOSITORY,
            env=os.environ,
        )
        try:
            assert process.stdout is not None
            opened = int(process.stdout.readline() or 0)
            time.sleep(REST_SECONDS)
            began = time.monotonic()
        finally:
            process.send_signal(signal.SIGKILL)
            process.communicate()
        acted = time.monotonic() - began
        return outcome(opened, acted, left_after(victim, before, SETTLED_SECONDS))


def left_after(victim: Victim, before: int, seconds: float) -> int:
    """How many connections the broker has then, or when there are next to none."""
    ends = time.monotonic() + seconds
    while (left := victim.open_files() - before) > CROWD // 100 and time.monotonic() < ends:
        time.sleep(LOOK_SECONDS)
    return left


def outcome(opened: int, acted: float, left: int) -> Outcome:
    found = Outcome(said=f"{opened:,} connections, all at once in {acted:.2f} s")
    if left > CROWD // 100:
        found.faults.append(f"{left:,} connections are left")
    return found


def attacks() -> list[Attack]:
    half, waiting = produce(batch(1)).request[:60], waiting_fetch()
    return [
        Crowd("half-close", f"{CROWD:,} idle connections that end their side at once", half_close),
        Crowd("reset", f"{CROWD:,} idle connections that are reset at once", reset),
        Crowd(
            "pipelines-end",
            f"{CROWD:,} connections that send 16 requests of three kinds and end their side at once",
            pipeline_and_end,
            settled_seconds=20.0,
            bound=Bound(stall_ms=150),
        ),
        Alarms(),
        Crowd(
            "ask-and-end",
            f"{CROWD:,} connections that ask once and end their side at once",
            ask_and_end,
            # As `ask-at-once`: each is served before it is closed, and the probe has its turn among them.
            bound=Bound(stall_ms=150),
        ),
        Crowd(
            "ask-at-once",
            f"{CROWD:,} connections that ask once at the same moment",
            ask,
            ends=False,
            bound=Bound(stall_ms=150),
        ),
        Crowd(
            "expire",
            f"{CROWD:,} connections that ask once at the same moment and expire together",
            ask,
            settled_seconds=IDLE_MS / 1000 + 2,
            bound=Bound(stall_ms=150),
            properties={"connections.max.idle.ms": str(IDLE_MS)},
        ),
        Killed("killed", f"{CROWD:,} idle connections of a process that is killed"),
        Killed("killed-in-request", f"{CROWD:,} connections with half a produce of a process that is killed", half),
        Killed("killed-waiting", f"{CROWD:,} fetches that wait of a process that is killed", waiting),
    ]


def main() -> None:
    port, first = int(sys.argv[1]), bytes.fromhex(sys.argv[2])
    with ExitStack() as stack:
        raise_open_files_limit()
        print(len(crowd(stack, port, CROWD, first)), flush=True)
        signal.pause()


if __name__ == "__main__":
    main()
