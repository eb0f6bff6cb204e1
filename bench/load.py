"""One run of the load generator against one server."""

from __future__ import annotations

import json
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from bench import machine, native
from bench.frames import Frame
from bench.servers import Places, Running, load_core, server_cores

#: A run ends by itself; beyond this it hangs.
GRACE_SECONDS = 60.0


class LoadFailed(Exception):
    """The server answered with errors or not at all: its figures would mean nothing."""


@dataclass(frozen=True, kw_only=True)
class Work:
    frame: Frame
    connections: int
    depth: int = 1
    warm: float = 0.5
    seconds: float = 4.0
    #: Answers after which it ends early; 0 for none. Bounds what is written to the disk.
    limit: int = 0
    #: Requests a second in all, in an open loop: each is timed from when it was due. 0: as many as are answered.
    rate: int = 0
    #: For fetches: records that one answer brings, and where to start over.
    offset_step: int = 0
    offset_end: int = 0
    #: The frame is so many of one size behind each other, one for each connection.
    frames: int = 1
    #: Where a frame has the sequence of its batch, which is to be counted up; -1 where it stays as it is.
    sequence_position: int = -1


@dataclass(frozen=True, kw_only=True)
class Outcome:
    requests: int
    seconds: float
    p50: float
    p99: float
    server_cpu: float
    #: Bytes of record batches sent, or bytes of answers received.
    payload: int

    @property
    def rate(self) -> float:
        return self.requests / self.seconds

    @property
    def gigabytes_per_second(self) -> float:
        return self.payload / self.seconds / 1e9

    @property
    def cpu_microseconds_per_request(self) -> float:
        return self.server_cpu / self.requests * 1e6

    @property
    def cpu_seconds_per_gigabyte(self) -> float:
        return self.server_cpu / (self.payload / 1e9)


def run(work: Work, running: Running, places: Places) -> Outcome:
    """The server on one core and the load on another."""
    machine.pin(running.pid, server_cores(running.kind))
    return run_against(work, running.port, places, kind=running.kind, pids=[running.pid], cores=load_core())


def run_against(
    work: Work, port: int, places: Places, *, kind: str, pids: Sequence[int], cores: set[int] | None = None
) -> Outcome:
    """`pids`: whose CPU is summed. Without `cores` the load runs wherever the scheduler puts it."""
    with tempfile.NamedTemporaryFile(dir=places.scratch, suffix=".frame") as file:
        file.write(work.frame.request)
        file.flush()
        words = _words(work, port, pids, Path(file.name))
        child = subprocess.Popen(
            [*native.command("load", places.cache), *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        if cores is not None:
            machine.pin(child.pid, cores)
        try:
            out, err = child.communicate(timeout=work.warm + work.seconds + GRACE_SECONDS)
        except subprocess.TimeoutExpired:
            child.kill()
            child.communicate()
            raise LoadFailed(f"{kind} did not let the load end") from None
    if child.returncode:
        raise LoadFailed(f"against {kind}: {err.strip()}")
    found = json.loads(out)
    if found["errors"] or not found["requests"]:
        raise LoadFailed(f"{kind}: {found['errors']} errors in {found['requests']} answers")
    sent = work.frame.payload * found["requests"]
    return Outcome(
        requests=found["requests"],
        seconds=found["seconds"],
        p50=found["p50"],
        p99=found["p99"],
        server_cpu=found["server_cpu"],
        payload=found["answer_bytes"] if work.offset_step else sent,
    )


def _words(work: Work, port: int, pids: Sequence[int], frame: Path) -> list[str]:
    words = {
        "port": port,
        "frame": frame,
        "connections": work.connections,
        "depth": work.depth,
        "warm": work.warm,
        "seconds": work.seconds,
        "pid": ",".join(map(str, pids)),
        "limit": work.limit,
        "error": work.frame.error_position,
    }
    if work.rate:
        words["rate"] = work.rate
    if work.offset_step:
        words |= {"offset": work.frame.offset_position, "step": work.offset_step, "end": work.offset_end}
    if work.sequence_position >= 0:
        words |= {"frames": work.frames, "sequence": work.sequence_position}
    return [f"{name}={value}" for name, value in words.items()]
