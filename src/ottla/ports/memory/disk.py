"""A disk in memory that forgets on a crash whatever a real one may forget, and fails on demand.

`inode` says what happens to contents, `namespace` what happens to names, `faults` how to ask for errors.
"""

from __future__ import annotations

import errno
from random import Random

from ottla.ports.clock import Clock
from ottla.ports.disk import File
from ottla.ports.memory.faults import DESCRIPTOR, DiskFaults, Fault
from ottla.ports.memory.file import MemoryFile
from ottla.ports.memory.inode import Inode
from ottla.ports.memory.namespace import DirectoryNode, Namespace, parts, problem


class Medium:
    """What stays when the machine that uses it is replaced by its next life."""

    __slots__ = ("boot", "capacity_bytes", "faults", "locked", "names", "used_bytes")

    def __init__(self, capacity_bytes: int) -> None:
        self.names = Namespace()
        self.faults = DiskFaults()
        self.capacity_bytes = capacity_bytes
        self.used_bytes = 0
        self.locked: set[Inode] = set()
        #: Files and disks of an earlier one are dead.
        self.boot = 1

    def restart(self) -> None:
        """The processes are gone, and their handles and locks with them."""
        files = self.names.inodes()
        for file in files:
            file.handles = 0
            file.linked = True
        self.used_bytes = sum(len(file.data) for file in files)
        self.locked.clear()
        self.boot += 1
        self.faults.restore()


class MemoryDisk:
    def __init__(self, clock: Clock, *, capacity_bytes: int = 1 << 40, medium: Medium | None = None) -> None:
        self._clock = clock
        self._medium = medium if medium is not None else Medium(capacity_bytes)
        self._boot = self._medium.boot
        self.lingering = 0
        #: Paths that are not in memory until they are read, for tests of cold reads.
        self.cold: set[str] = set()

    # Faults and crashes

    @property
    def operations(self) -> int:
        """Changing operations so far, syncs among them: what `crash_at` counts."""
        return self._medium.faults.operations

    @property
    def faults(self) -> DiskFaults:
        """The machine's, in all its lives."""
        return self._medium.faults

    @property
    def is_down(self) -> bool:
        """Whether the power is cut, and the machine not started again."""
        return self._medium.faults.down

    @property
    def capacity_bytes(self) -> int:
        """Appending beyond it takes what fits and raises ENOSPC."""
        return self._medium.capacity_bytes

    @capacity_bytes.setter
    def capacity_bytes(self, size: int) -> None:
        self._medium.capacity_bytes = size

    def fail(self, operation: str, pattern: str, number: int, *, after: int = 0, times: int | None = None) -> None:
        """Makes an operation (`append`, `sync|rename`, ...; `*` for all) on matching paths raise OSError.

        `descriptor` is whatever needs one: opening, reading a whole file, listing or syncing a folder; not in `*`.
        """
        self._medium.faults.add(Fault(operation, pattern, number, after, times))

    def stop_failing(self) -> None:
        self._medium.faults.clear()

    def crash_at(self, operation: int) -> None:
        """Cuts the power in the nth changing operation from now: it raises SimulatedCrash, and so does all after it."""
        self._medium.faults.crash_at(operation)

    def crash(self, rng: Random) -> None:
        """A power cut, if there was none yet, and a restart: what is not certain is kept or lost as `rng` has it.

        This disk can be used again; files that were open raise ESTALE.
        """
        self._lose_what_is_uncertain(rng)
        self._boot = self._medium.boot

    def successor(self, rng: Random | None = None) -> MemoryDisk:
        """The disk of the machine's next life, after a power cut with `rng` or the mere end of its process without.

        This one is dead from now on, so that what is left of the old life cannot reach into the new.
        """
        if rng is not None:
            self._lose_what_is_uncertain(rng)
        else:
            self._medium.restart()
        return MemoryDisk(self._clock, medium=self._medium)

    def _lose_what_is_uncertain(self, rng: Random) -> None:
        self._medium.names.crash(rng)
        for file in self._medium.names.inodes():
            file.crash(rng)
        self._medium.restart()

    def flip(self, path: str, offset: int, bit: int = 0) -> None:
        """Bit rot in one byte."""
        self._medium.names.file(path).flip(offset, bit)

    def content(self, path: str) -> bytearray:
        """What a file has, for an observer: no operation, no fault, no power needed. It is the disk's own."""
        return self._medium.names.file(path).data

    # The port

    def open(self, path: str, *, create: bool = False) -> File:
        self.check(DESCRIPTOR, path)
        self.check("open", path)
        folder, name = self._medium.names.place(path)
        node = folder.entries.get(name)
        if node is None and create:
            self.check("create", path)
            node = Inode(self._clock.wall_ms())
            self._medium.names.change((folder, name, node))
            self.count("create", path)
        return self._opened(path, node, writable=True)

    def open_read_only(self, path: str) -> File:
        self.check(DESCRIPTOR, path)
        self.check("open", path)
        return self._opened(path, self._medium.names.file(path), writable=False)

    def _opened(self, path: str, node: Inode | DirectoryNode | None, *, writable: bool) -> MemoryFile:
        if node is None:
            raise problem(errno.ENOENT, path)
        if isinstance(node, DirectoryNode):
            raise problem(errno.EISDIR, path)
        return MemoryFile(self, node, path, self._boot, writable=writable)

    def read_file(self, path: str) -> bytes:
        self.check(DESCRIPTOR, path)
        self.check("read", path)
        return bytes(self._medium.names.file(path).data)

    def names(self, directory: str) -> list[str]:
        self.check(DESCRIPTOR, directory)
        self.check("names", directory)
        return sorted(self._medium.names.folder(directory).entries)

    def entries(self, directory: str) -> list[tuple[str, bool]]:
        self.check("names", directory)
        return [
            (name, isinstance(node, Inode))
            for name, node in sorted(self._medium.names.folder(directory).entries.items())
        ]

    def exists(self, path: str) -> bool:
        self.check("exists", path)
        try:
            self._medium.names.find(path)
        except OSError:
            return False
        return True

    def is_directory(self, path: str) -> bool:
        return self.exists(path) and isinstance(self._medium.names.find(path), DirectoryNode)

    def size(self, path: str) -> int:
        self.check("size", path)
        return len(self._medium.names.file(path).data)

    def modified_ms(self, path: str) -> int:
        self.check("size", path)
        return self._medium.names.file(path).modified_ms

    def make_directory(self, path: str) -> bool:
        self.check("make_directory", path)
        here, is_new = "", False
        for name in parts(path):
            here = f"{here}/{name}"
            if self._is_folder(here):
                continue
            folder, name_there = self._medium.names.place(here)
            if name_there in folder.entries:
                raise problem(errno.EEXIST, here)
            self._medium.names.change((folder, name_there, DirectoryNode()))
            self.count("make_directory", here)
            is_new = True
        return is_new

    def _is_folder(self, path: str) -> bool:
        try:
            return isinstance(self._medium.names.find(path), DirectoryNode)
        except FileNotFoundError:
            return False

    def spread_folders(self, path: str) -> None:
        """Nothing lies anywhere here."""

    def rename(self, source: str, target: str) -> None:
        self.check("rename", source)
        node = self._medium.names.find(source)
        old_folder, old_name = self._medium.names.place(source)
        new_folder, new_name = self._medium.names.place(target)
        replaced = new_folder.entries.get(new_name)
        if replaced is node:
            return
        if isinstance(node, DirectoryNode):
            if isinstance(replaced, Inode):
                raise problem(errno.ENOTDIR, target)
            if replaced is not None and replaced.entries:
                raise problem(errno.ENOTEMPTY, target)
            if _holds(node, new_folder):
                raise problem(errno.EINVAL, target)
        elif isinstance(replaced, DirectoryNode):
            raise problem(errno.EISDIR, target)
        self._medium.names.change((old_folder, old_name, None), (new_folder, new_name, node))
        if isinstance(replaced, Inode):
            self._unlinked(replaced)
        self.count("rename", source)

    def remove(self, path: str) -> None:
        self.check("remove", path)
        file = self._medium.names.file(path)
        folder, name = self._medium.names.place(path)
        self._medium.names.change((folder, name, None))
        self._unlinked(file)
        self.count("remove", path)

    def remove_tree(self, path: str) -> None:
        self.check(DESCRIPTOR, path)
        self.check("remove_tree", path)
        folder = self._medium.names.folder(path)
        for name in sorted(folder.entries):
            inner = f"{path}/{name}"
            if isinstance(folder.entries[name], DirectoryNode):
                self.remove_tree(inner)
            else:
                self.remove(inner)
        parent, name = self._medium.names.place(path)
        self._medium.names.change((parent, name, None))
        self.count("remove_tree", path)

    def remove_files(self, folder: str) -> None:
        self.check(DESCRIPTOR, folder)
        self.check("remove_files", folder)
        for name, is_file in self.entries(folder):
            if is_file:
                self.remove(f"{folder}/{name}")
        self.count("remove_files", folder)

    def sync_directory(self, path: str) -> None:
        self.check(DESCRIPTOR, path)
        self.check("sync_directory", path)
        folder = self._medium.names.folder(path)
        self.count("sync_directory", path)
        self._medium.names.sync(folder)

    def free_bytes(self, path: str) -> int:
        self._medium.names.find(path)
        return max(0, self._medium.capacity_bytes - self._medium.used_bytes)

    def total_bytes(self, path: str) -> int:
        self._medium.names.find(path)
        return self._medium.capacity_bytes

    def lock(self, path: str) -> MemoryLock:
        self.check("lock", path)
        self.open(path, create=True).close()
        node = self._medium.names.file(path)
        if node in self._medium.locked:
            raise BlockingIOError(errno.EAGAIN, "locked by another", path)
        self._medium.locked.add(node)
        return MemoryLock(self._medium.locked, node)

    # For its files

    def check_alive(self, path: str, boot: int) -> None:
        """Raises where the power is off or the handle is from an earlier life."""
        self._medium.faults.check_power("use", path)
        if boot != self._medium.boot:
            raise problem(errno.ESTALE, path)

    def check(self, operation: str, path: str) -> None:
        """Raises also what was asked for by `fail`."""
        self.check_alive(path, self._boot)
        self._medium.faults.check(operation, path)

    def count(self, operation: str, path: str) -> None:
        self._medium.faults.count(operation, path)

    def grow(self, inode: Inode, size: int) -> int:
        """Takes space for the file to become `size` bytes; returns what it may become."""
        allowed = min(
            size, max(len(inode.data), len(inode.data) + self._medium.capacity_bytes - self._medium.used_bytes)
        )
        self._medium.used_bytes += max(0, allowed - len(inode.data))
        return allowed

    def shrink(self, inode: Inode, size: int) -> None:
        self._medium.used_bytes -= len(inode.data) - size

    def touch(self, inode: Inode) -> None:
        inode.modified_ms = self._clock.wall_ms()

    def closed(self, inode: Inode, boot: int) -> None:
        if boot == self._medium.boot:
            inode.handles -= 1
            self._free_if_gone(inode)

    def _unlinked(self, inode: Inode) -> None:
        inode.linked = False
        self._free_if_gone(inode)

    def _free_if_gone(self, inode: Inode) -> None:
        if not inode.linked and inode.handles == 0:
            self._medium.used_bytes -= len(inode.data)
            inode.linked = True  # freed once only

    def __repr__(self) -> str:
        return f"<MemoryDisk {self._medium.used_bytes} of {self._medium.capacity_bytes} bytes used>"


class MemoryLock:
    __slots__ = ("_inode", "_locked")

    def __init__(self, locked: set[Inode], inode: Inode) -> None:
        self._locked = locked
        self._inode: Inode | None = inode

    def release(self) -> None:
        inode, self._inode = self._inode, None
        if inode is not None:
            self._locked.discard(inode)


def _holds(outer: DirectoryNode, inner: DirectoryNode) -> bool:
    """Whether a folder is another or lies somewhere below it."""
    return outer is inner or any(
        _holds(node, inner) for node in outer.entries.values() if isinstance(node, DirectoryNode)
    )
