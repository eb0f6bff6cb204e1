"""Names in a log directory that bear something else than they say: links, pipes, files in the place of folders."""

from __future__ import annotations

import os
import shutil
import socket
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.storage.directory_world import CONFIG, NOW, TOPIC_ID, TP, World, append, expected, flush, values

from ottla.model import TopicPartition
from ottla.ports.real.disk import RealDisk
from ottla.storage.directories.directories import LogDirectories
from ottla.storage.directories.events import Severity

OTHER = TopicPartition("other", 0)


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(RealDisk(), (str(tmp_path / "a"),))


def home(world: World) -> Path:
    return Path(world.paths[0])


def filled(world: World) -> None:
    """Two partitions with ten records each, left clean."""
    directories = world.open()
    for tp in (TP, OTHER):
        log = directories.create(tp, TOPIC_ID, CONFIG, now_ms=NOW)
        append(log, 10)
        flush(log)
    directories.close({TP: 10, OTHER: 10})


def serves(directories: LogDirectories, *partitions: TopicPartition) -> None:
    assert not directories.failures
    for tp in partitions:
        log = directories.get(tp)
        assert log is not None
        assert values(log) == expected(0, log.end_offset)


def test_the_deletion_of_a_linked_folder_takes_the_link(world: World, tmp_path: Path) -> None:
    filled(world)
    elsewhere = tmp_path / "elsewhere"
    shutil.move(home(world) / "orders-0", elsewhere)
    (home(world) / "orders-0").symlink_to(elsewhere)
    directories = world.open()
    serves(directories, TP, OTHER)
    removals = directories.delete(TP)
    # A crash comes before the removal: the next start does it.
    directories.close({OTHER: 10})
    again = world.open()
    assert [removal.path for removal in again.removals] == [removal.path for removal in removals]
    for removal in again.removals:
        removal.run()
    assert sorted(elsewhere.glob("*.log"))
    assert not list(home(world).glob("orders*"))
    serves(again, OTHER)
    log = again.create(TP, bytes(16), CONFIG, now_ms=NOW)
    assert log.end_offset == 0
    again.close({})
    serves(world.open(), TP, OTHER)


def _socket(path: str) -> None:
    with socket.socket(socket.AF_UNIX) as listener:
        folder, _, name = path.rpartition("/")
        here = os.getcwd()
        os.chdir(folder)
        listener.bind(name)
        os.chdir(here)


NO_FOLDERS: dict[str, Callable[[str], None]] = {
    "file": lambda path: Path(path).write_bytes(b"something"),
    "pipe": os.mkfifo,
    "socket": _socket,
    "link to a device": lambda path: os.symlink("/dev/zero", path),
    "dangling link": lambda path: os.symlink(path + ".nowhere", path),
    "link to itself": lambda path: os.symlink(path, path),
}


@pytest.mark.parametrize("kind", NO_FOLDERS)
def test_what_bears_a_folders_name_and_is_none(world: World, kind: str) -> None:
    filled(world)
    for name in ("new-0", "gone-0.0123abcd-delete", "copy-0.0123abcd-future", "set-0.0123abcd-stray", "other-1"):
        NO_FOLDERS[kind](str(home(world) / name))
    directories = world.open()
    serves(directories, TP, OTHER)
    assert directories.removals == []
    said = " ".join(world.said(Severity.WARNING))
    for name in ("gone-0.0123abcd-delete", "copy-0.0123abcd-future", "set-0.0123abcd-stray"):
        assert f"'{name}' is not a folder; it is left alone" in said
    assert set(directories.offline) == {TopicPartition("new", 0), TopicPartition("other", 1)}
    directories.close({})
    assert os.path.lexists(home(world) / "gone-0.0123abcd-delete")


#: But for files, and a link to nothing as `partition.metadata`: these are damage like any other.
STRANGE = [
    (kind, name)
    for kind in ["folder", *NO_FOLDERS]
    for name in ["partition.metadata", "leader-epoch-checkpoint", *(f"{0:020}.{suffix}" for suffix in ("log", "index"))]
    if kind != "file" and (kind, name) != ("dangling link", "partition.metadata")
]


@pytest.mark.parametrize(("kind", "name"), STRANGE)
@pytest.mark.parametrize("clean", [True, False], ids=["clean", "crashed"])
def test_what_bears_the_name_of_a_partitions_file(world: World, kind: str, name: str, clean: bool) -> None:
    """It costs that partition at most, and never its directory."""
    filled(world)
    path = home(world) / "orders-0" / name
    path.unlink()
    if kind == "folder":
        path.mkdir()
    else:
        NO_FOLDERS[kind](str(path))
    if not clean:
        (home(world) / ".kafka_cleanshutdown").unlink()
    directories = world.open()
    serves(directories, OTHER)
    log = directories.get(TP)
    assert (log is None) == (TP in directories.offline)
    if name.endswith(".index"):
        assert log is not None
        serves(directories, TP)
    directories.close({OTHER: 10})
    serves(world.open(), OTHER)


@pytest.mark.parametrize("name", ["meta.properties", "recovery-point-offset-checkpoint", ".kafka_cleanshutdown"])
@pytest.mark.parametrize("kind", ["pipe", "link to a device", "socket"])
def test_what_bears_the_name_of_a_directorys_file_takes_it_offline(
    world: World, kind: str, name: str, tmp_path: Path
) -> None:
    world.paths = (*world.paths, str(tmp_path / "b"))
    filled(world)
    path = home(world) / name
    path.unlink()
    NO_FOLDERS[kind](str(path))
    directories = world.open()
    assert list(directories.failures) == [str(home(world))]
    directories.close({})
