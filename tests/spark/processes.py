"""The processes of a Spark driver: itself, its JVM, and the Python workers; and where they listen."""

from __future__ import annotations

import contextlib
import ipaddress
import os
import re
import signal
from pathlib import Path


def descendants(pid: int) -> list[int]:
    """Children, and their children; the nearest first."""
    found: list[int] = []
    waiting = [pid]
    while waiting:
        one = waiting.pop(0)
        # Its folder goes with a process, its tasks' with each of them: nobody waits for us to have read them.
        with contextlib.suppress(OSError):
            for task in Path(f"/proc/{one}/task").glob("*"):
                with contextlib.suppress(OSError):
                    waiting += [int(child) for child in (task / "children").read_text().split()]
        found.append(one)
    return found[1:]


def python_workers(pid: int) -> list[int]:
    """Those that run tasks, plan and commit; not the daemon that forks them."""
    named = [one for one in descendants(pid) if "pyspark.daemon" in _command(one)]
    return [one for one in named if _parent(one) in named]


def end_all(pid: int) -> None:
    """As when a machine dies: nobody has time for a last word."""
    everyone = [pid, *descendants(pid)]
    for one in everyone:
        with contextlib.suppress(ProcessLookupError):
            os.kill(one, signal.SIGKILL)


def listening(pids: list[int]) -> set[str]:
    """Addresses with ports on which these processes wait for others."""
    sockets: set[str] = set()
    for pid in pids:
        with contextlib.suppress(OSError):
            for fd in Path(f"/proc/{pid}/fd").glob("*"):
                with contextlib.suppress(OSError):
                    match = re.fullmatch(r"socket:\[(\d+)\]", str(fd.readlink()))
                    if match is not None:
                        sockets.add(match[1])
    found = set()
    for table in ("tcp", "tcp6"):
        for line in Path(f"/proc/net/{table}").read_text().splitlines()[1:]:
            fields = line.split()
            if fields[3] == "0A" and fields[9] in sockets:
                found.add(_address(fields[1]))
    return found


def _address(field: str) -> str:
    raw, _, port = field.partition(":")
    words = [int(raw[at : at + 8], 16).to_bytes(4, "little") for at in range(0, len(raw), 8)]
    address = ipaddress.ip_address(b"".join(words))
    mapped = getattr(address, "ipv4_mapped", None)
    return f"{mapped or address} {int(port, 16)}"


def _command(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_text()
    except OSError:
        return ""


def _parent(pid: int) -> int:
    try:
        return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    except OSError:
        return 0
