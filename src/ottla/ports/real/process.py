"""What the system says of this process: its memory, its time on processors, its open files."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

#: Where Linux says it. Elsewhere OSError is raised but for `cpu_seconds` and `files_max`.
_SELF: Final = Path("/proc/self")
#: Of /proc/self/stat, behind the name in brackets, which may hold anything: state is the first of them.
_START_TICKS: Final = 19


class ProcessMemory(NamedTuple):
    virtual_bytes: int
    resident_bytes: int


def memory() -> ProcessMemory:
    virtual, resident, *_ = (_SELF / "statm").read_text().split()
    page = os.sysconf("SC_PAGE_SIZE")
    return ProcessMemory(int(virtual) * page, int(resident) * page)


def cpu_seconds() -> float:
    """In user mode and in the system, of all threads."""
    return time.process_time()


def started_seconds() -> float:
    """When the process was started, since 1970."""
    since_boot = int((_SELF / "stat").read_text().rpartition(")")[2].split()[_START_TICKS]) / os.sysconf("SC_CLK_TCK")
    for line in Path("/proc/stat").read_text().splitlines():
        name, _, rest = line.partition(" ")
        if name == "btime":
            return int(rest) + since_boot
    raise OSError("/proc/stat does not say when the system was booted")


def open_files() -> Iterator[int]:
    """1 for each: there may be thousands."""
    with os.scandir(_SELF / "fd") as entries:
        for _ in entries:
            yield 1


def files_max() -> float:
    import resource

    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return float("inf") if soft == resource.RLIM_INFINITY else soft
