"""What only a real disk can show: limits of the system, locks between processes, and what an import costs."""

from __future__ import annotations

import errno
import resource
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from tests.ports.world import World

from ottla.ports.real import wants_portable
from ottla.ports.real.disk import RealDisk

real_worlds = pytest.mark.parametrize("world", ["real", "portable"], indirect=True)


@contextmanager
def files_end_at(size: int) -> Iterator[None]:
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@real_worlds
def test_append_that_fails_half_way_can_be_cut_back(world: World) -> None:
    file = world.ports.disk.open(world.folder + "/log", create=True)
    file.append([b"a" * 500])
    with files_end_at(1000), pytest.raises(OSError, match="too large") as caught:
        file.append([b"b" * 300, b"c" * 300, b"d" * 300])
    assert caught.value.errno == errno.EFBIG
    assert 500 <= file.size() <= 1000
    assert file.size() == world.ports.disk.size(world.folder + "/log")
    file.truncate(500)
    file.append([b"e"])
    assert file.read(2000, 0) == b"a" * 500 + b"e"
    file.close()


@real_worlds
def test_full_device_is_told(world: World) -> None:
    file = world.ports.disk.open("/dev/full")
    with pytest.raises(OSError, match="No space left"):
        file.append([b"x"])
    with pytest.raises(OSError, match="No space left"):
        file.append([b"x", b"y"])
    assert file.size() == 0
    file.close()


def takes_lock(path: str) -> bool:
    try:
        RealDisk().lock(path).release()
    except BlockingIOError:
        return False
    return True


@real_worlds
def test_lock_holds_against_another_process(world: World) -> None:
    async def main() -> None:
        path = world.folder + "/.lock"
        lock = world.ports.disk.lock(path)
        assert not await world.ports.workers.process(takes_lock, path)
        lock.release()
        assert await world.ports.workers.process(takes_lock, path)

    world.run(main())


@pytest.mark.parametrize(("value", "portable"), [("1", True), ("yes", True), ("0", False), ("", False)])
def test_environment_asks_for_portable_means(monkeypatch: pytest.MonkeyPatch, value: str, portable: bool) -> None:
    monkeypatch.setenv("OTTLA_PORTABLE", value)
    assert wants_portable() is (portable or sys.platform != "linux")


def test_reading_files_imports_no_asyncio() -> None:
    script = "import sys, ottla.ports.real.disk; print('asyncio' in sys.modules, 'socket' in sys.modules)"
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert ran.stdout.split() == ["False", "False"]
