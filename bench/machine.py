"""What the kernel says of a process and of this machine: CPU time, memory, the disk under a folder."""

from __future__ import annotations

import os
import platform
import time
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from ottla.native import compiled_run

_TICKS = os.sysconf("SC_CLK_TCK")
_KIB = 1024

#: In memory: what is measured there is no log.
MEMORY_FILE_SYSTEMS = frozenset({"tmpfs", "ramfs"})


class Memory(NamedTuple):
    """Bytes. ``shared_out`` divides pages that other processes map too by their number."""

    resident: int
    shared_out: int


def cpu_seconds(pid: int) -> float:
    """User and system time of all threads of a process since its start."""
    text = Path(f"/proc/{pid}/stat").read_text()
    # The name in parentheses may contain blanks and parentheses itself.
    fields = text[text.rindex(")") + 2 :].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS


def memory(pid: int) -> Memory:
    found = {}
    for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()[1:]:
        name, _, rest = line.partition(":")
        found[name] = int(rest.split()[0]) * _KIB
    return Memory(found["Rss"], found["Pss"])


def peak_memory(pid: int) -> int:
    """Bytes that were resident at most since the process began."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * _KIB
    raise ProcessLookupError(f"process {pid} has ended")


def disk_reads(pid: int) -> int:
    """Bytes that the process had the disk read: what was in memory already does not count."""
    for line in Path(f"/proc/{pid}/io").read_text().splitlines():
        if line.startswith("read_bytes:"):
            return int(line.split()[1])
    raise ProcessLookupError(f"process {pid} has ended")


def children(pid: int) -> list[int]:
    """Of all threads of a process that do not end meanwhile."""
    found: list[int] = []
    for thread in Path(f"/proc/{pid}/task").iterdir():
        with suppress(FileNotFoundError, ProcessLookupError):
            found += [int(child) for child in (thread / "children").read_text().split()]
    return found


def idle_cpu_share(pid: int, seconds: float) -> float:
    """The share of one core that a process uses while nobody asks it for anything."""
    before, began = cpu_seconds(pid), time.monotonic()
    time.sleep(seconds)
    return (cpu_seconds(pid) - before) / (time.monotonic() - began)


def busy_share(seconds: float) -> float:
    """The share of all cores that anybody used during ``seconds``; a neighbour's share of the hardware counts too."""
    before = _cpu_ticks()
    time.sleep(seconds)
    busy, idle = (after - earlier for after, earlier in zip(_cpu_ticks(), before, strict=True))
    return busy / max(1, busy + idle)


def _cpu_ticks() -> tuple[int, int]:
    user, nice, system, idle, waiting, *others = map(int, Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:9])
    return user + nice + system + sum(others), idle + waiting


def cores() -> set[int]:
    return os.sched_getaffinity(0)


def pin(pid: int, cores: set[int]) -> None:
    """Keeps all threads of a process, and those that they start, on ``cores``.

    Left alone, the scheduler at times puts a client and the server that it wakes on one core and leaves the other idle,
    for seconds; the same pair then runs at half its rate. A benchmark cannot average that away.
    """
    for thread in Path(f"/proc/{pid}/task").iterdir():
        os.sched_setaffinity(int(thread.name), cores)


def file_system(folder: Path) -> str:
    """The kind of file system that holds ``folder``."""
    wanted = folder.resolve()
    best, kind = Path(), "unknown"
    for line in Path("/proc/mounts").read_text().splitlines():
        _device, mounted_on, candidate = line.split()[:3]
        place = Path(mounted_on.replace("\\040", " "))
        if (wanted == place or place in wanted.parents) and len(place.parts) >= len(best.parts):
            best, kind = place, candidate
    return kind


def description() -> str:
    model = "unknown CPU"
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            model = line.partition(":")[2].strip()
            break
    pages = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return (
        f"{os.cpu_count()} virtual cores ({model}), {pages / 2**30:.0f} GiB, {platform.system()} {platform.release()}, "
        f"{platform.python_implementation()} {platform.python_version()} "
        f"{'with' if compiled_run() is not None else 'without'} compiled code"
    )
