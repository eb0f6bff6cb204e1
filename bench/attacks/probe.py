"""An honest client in a process of its own: asks ApiVersions again and again, and says how long it waited.

    python -m bench.attacks.probe PORT PID     until its input ends; then one line of JSON

On a machine with others on it, a wait is long because of them too. So the kernel is asked what the broker's loop did
meanwhile: how long it computed, and how long it, or the probe, was ready to run and had no core.
"""

from __future__ import annotations

import json
import os
import socket
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

HOST = "127.0.0.1"
#: Between an answer and the next question.
PAUSE_SECONDS = 0.005
#: For the answer that is open when the probe is to end.
LAST_ANSWER_SECONDS_MAX = 10.0
#: ApiVersions 0: no client is too old for it, and its body is empty.
QUESTION = struct.pack(">ihhih", 10, 18, 0, 1, -1)
_REPOSITORY = Path(__file__).resolve().parents[2]


@dataclass(frozen=True, kw_only=True)
class Waits:
    """What a probe has seen."""

    asked: int
    longest_ms: float
    #: The longest without the time in which the broker's loop, or the probe, was ready and had no core.
    served_ms: float
    #: Of questions that would have been asked every 5 ms, also where the probe could not for want of an answer.
    p99_ms: float
    #: CPU time of the broker's loop within one wait, at most.
    computed_ms: float
    #: The broker closed the connection, or never answered again.
    lost: bool = False


def asked_until(ended: Callable[[], bool], port: int, pid: int, begins: Callable[[], None]) -> Waits:
    """Asks until `ended`, and is answered; the wait that the end interrupts counts.

    One question is asked in any case, however late the probe gets a core. `begins` is called before the first.
    """
    waits: list[float] = []
    served, computed = [0.0], [0.0]
    lost = False
    with socket.create_connection((HOST, port), timeout=0.2) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        begins()
        while not lost and not (waits and ended()):
            try:
                loop, own, began = scheduled(pid), scheduled(os.getpid()), time.monotonic()
            except OSError:
                lost = True  # the broker has gone between two questions
                break
            lost = not _answered(connection, ended)
            wait = (time.monotonic() - began) * 1000
            waits.append(wait)
            with suppress(OSError):
                loop_now, own_now = scheduled(pid), scheduled(os.getpid())
                computed.append(loop_now.computed_ms - loop.computed_ms)
                delayed = loop_now.delayed_ms - loop.delayed_ms + own_now.delayed_ms - own.delayed_ms
                # Both may have been without a core at the same time.
                served.append(max(wait - delayed, min(wait, computed[-1])))
            time.sleep(PAUSE_SECONDS)
    # It may have gone behind the last answer.
    lost = lost or not os.path.exists(f"/proc/{pid}")
    return Waits(
        asked=len(waits),
        longest_ms=max(waits, default=0.0),
        served_ms=max(waits, default=0.0) if lost else max(served),
        p99_ms=_p99(waits),
        computed_ms=max(computed),
        lost=lost,
    )


def _answered(connection: socket.socket, ended: Callable[[], bool]) -> bool:
    """One question; False where there will be no answer."""
    wanted, got = 4, b""
    deadline = None
    try:
        connection.sendall(QUESTION)
        while len(got) < wanted:
            if ended():
                deadline = deadline or time.monotonic() + LAST_ANSWER_SECONDS_MAX
                if time.monotonic() > deadline:
                    return False
            with suppress(TimeoutError):
                piece = connection.recv(65536)
                if not piece:
                    return False
                got += piece
                if len(got) >= 4:
                    wanted = 4 + int.from_bytes(got[:4], "big")
    except OSError:
        return False
    return True


def _p99(waits: list[float]) -> float:
    """A wait of a second stands for two hundred questions, each asked five milliseconds later than the one before."""
    step = PAUSE_SECONDS * 1000
    all_waits: list[float] = []
    for wait in waits:
        all_waits.append(wait)
        all_waits += [wait - step * number for number in range(1, int(wait / step))]
    return sorted(all_waits)[int(len(all_waits) * 0.99)] if all_waits else 0.0


class Scheduled(NamedTuple):
    """What the kernel says of a thread since its start; exact to one of its ticks."""

    computed_ms: float
    #: Ready to run, without a core.
    delayed_ms: float


def scheduled(pid: int) -> Scheduled:
    """Of a process's first thread, which is the loop's in our broker."""
    with open(f"/proc/{pid}/task/{pid}/schedstat", encoding="ascii") as stat:
        computed, delayed, _ = stat.read().split()
    return Scheduled(int(computed) / 1e6, int(delayed) / 1e6)


def computed_ms(pid: int) -> float:
    return scheduled(pid).computed_ms


class Probe:
    """A context manager: the process. `waits` ends it."""

    def __init__(self, port: int, pid: int) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "bench.attacks.probe", str(port), str(pid)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=_REPOSITORY,
            env=os.environ,
        )
        assert self._process.stdout is not None
        if self._process.stdout.readline() != "ready\n":
            self._process.kill()
            self._process.communicate()
            raise RuntimeError("the probe could not start")

    def __enter__(self) -> Probe:  # noqa: PYI034 - never subclassed
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.communicate()

    def waits(self) -> Waits:
        out, _ = self._process.communicate(timeout=2 * LAST_ANSWER_SECONDS_MAX)
        return Waits(**json.loads(out))


def main() -> int:
    port, pid = map(int, sys.argv[1:3])
    ended = threading.Event()

    def listen() -> None:
        sys.stdin.read()
        ended.set()

    threading.Thread(target=listen, daemon=True).start()
    waits = asked_until(ended.is_set, port, pid, lambda: print("ready", flush=True))
    print(json.dumps(vars(waits)), flush=True)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
