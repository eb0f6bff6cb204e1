"""What only a real disk can show: limits of the system, locks between processes, and what an import costs."""

from __future__ import annotations

import errno
import os
import resource
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

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
    file = world.ports.disk.open(world.folder + "/log", create=True)
    device = os.open("/dev/full", os.O_RDWR)
    os.dup2(device, file.fileno())
    os.close(device)
    with pytest.raises(OSError, match="No space left"):
        file.append([b"x"])
    with pytest.raises(OSError, match="No space left"):
        file.append([b"x", b"y"])
    assert file.size() == 0
    file.close()


@real_worlds
def test_what_is_no_file_is_refused_and_not_waited_for(world: World) -> None:
    disk, folder = world.ports.disk, world.folder
    os.mkfifo(folder + "/pipe")
    os.symlink("/dev/zero", folder + "/zeros")
    os.symlink(folder + "/nowhere", folder + "/dangling")
    os.mkdir(folder + "/folder")
    with open(folder + "/file", "wb") as file:
        file.write(b"bytes")
    os.symlink(folder + "/file", folder + "/link")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(folder + "/socket")
        for name in ("pipe", "zeros", "socket", "folder", "dangling"):
            for opens in (disk.open, disk.open_read_only, disk.read_file):
                with pytest.raises(OSError, match=name):
                    opens(f"{folder}/{name}")
        assert [name for name, is_file in disk.entries(folder) if is_file] == ["file", "link"]
    assert disk.read_file(folder + "/link") == b"bytes"


@real_worlds
def test_a_linked_folder_loses_its_link_only(world: World) -> None:
    disk, folder = world.ports.disk, world.folder
    disk.make_directory(folder + "/elsewhere")
    disk.open(folder + "/elsewhere/kept", create=True).close()
    os.symlink(folder + "/elsewhere", folder + "/link")
    disk.remove_files(folder + "/link")
    disk.remove_tree(folder + "/link")
    assert disk.names(folder) == ["elsewhere"]
    assert disk.names(folder + "/elsewhere") == ["kept"]


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


@pytest.mark.parametrize("world", ["real"], indirect=True)
def test_ext4_is_told_that_folders_are_to_lie_apart(world: World) -> None:
    mounts = [line.split() for line in Path("/proc/mounts").read_text().splitlines()]
    place = max((fields for fields in mounts if world.folder.startswith(fields[1])), key=lambda fields: len(fields[1]))
    if place[2] != "ext4" or shutil.which("lsattr") is None:
        pytest.skip(f"{world.folder} is on {place[2]}, or lsattr is not there")
    world.ports.disk.spread_folders(world.folder)
    listed = subprocess.run(["lsattr", "-d", world.folder], capture_output=True, text=True, check=True)
    assert "T" in listed.stdout.split()[0]
