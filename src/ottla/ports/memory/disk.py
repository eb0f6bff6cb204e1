"""A disk in memory that forgets on a crash whatever a real one may forget, and fails when it is told to.

`inode` says what happens to contents, `namespace` what happens to names, `faults` how to ask for errors.
"""

from __future__ import annotations

import errno
from random import Random

from ottla.ports.clock import Clock
from ottla.ports.disk import File
from ottla.ports.memory.faults import Fault, Faults
from ottla.ports.memory.file import MemoryFile
from ottla.ports.memory.inode import Inode
from ottla.ports.memory.namespace import Folder, Namespace, parts, problem


class MemoryDisk:
    def __init__(self, clock: Clock, *, capacity_bytes: int = 1 << 40) -> None:
        self.faults = Faults()
        #: Appending beyond it takes what fits and raises ENOSPC. May be changed at any time.
        self.capacity_bytes = capacity_bytes
        self._clock = clock
        self._names = Namespace()
        self._locked: set[Inode] = set()
        self._used_bytes = 0
        #: Handles of an earlier one are dead.
        self._boot = 1

    # Faults and crashes

    def fail(self, operation: str, pattern: str, number: int, *, after: int = 0, times: int | None = None) -> None:
        """Makes an operation (`append`, `sync`, `rename`, ...; `*` for all) on matching paths raise OSError."""
        self.faults.add(Fault(operation, pattern, number, after, times))

    def crash_at(self, operation: int) -> None:
        """Cuts the power in the nth changing operation from now: it raises SimulatedCrash, and so does all after it."""
        self.faults.crash_at(operation)

    def crash(self, rng: Random) -> None:
        """A power cut, if there was none yet, and a restart: what is not certain is kept or lost as `rng` has it."""
        self._names.crash(rng)
        files = self._names.inodes()
        self._used_bytes = 0
        for file in files:
            file.crash(rng)
            file.linked = True
            self._used_bytes += len(file.data)
        self._locked.clear()
        self._boot += 1
        self.faults.restore()

    def flip(self, path: str, offset: int, bit: int = 0) -> None:
        """Bit rot in one byte."""
        self._names.file(path).flip(offset, bit)

    # The port

    def open(self, path: str, *, create: bool = False) -> File:
        self.faults.check("open", path)
        folder, name = self._names.place(path)
        node = folder.entries.get(name)
        if node is None and create:
            self.faults.check("create", path)
            node = Inode(self._clock.wall_ms())
            self._names.change((folder, name, node))
            self.faults.count("create", path)
        return self._opened(path, node, writable=True)

    def open_read_only(self, path: str) -> File:
        self.faults.check("open", path)
        return self._opened(path, self._names.file(path), writable=False)

    def _opened(self, path: str, node: Inode | Folder | None, *, writable: bool) -> MemoryFile:
        if node is None:
            raise problem(errno.ENOENT, path)
        if isinstance(node, Folder):
            raise problem(errno.EISDIR, path)
        return MemoryFile(self, node, path, self._boot, writable=writable)

    def read_file(self, path: str) -> bytes:
        self.faults.check("read", path)
        return bytes(self._names.file(path).data)

    def names(self, directory: str) -> list[str]:
        self.faults.check("names", directory)
        return sorted(self._names.folder(directory).entries)

    def exists(self, path: str) -> bool:
        self.faults.check("exists", path)
        try:
            self._names.find(path)
        except OSError:
            return False
        return True

    def is_directory(self, path: str) -> bool:
        return self.exists(path) and isinstance(self._names.find(path), Folder)

    def size(self, path: str) -> int:
        self.faults.check("size", path)
        return len(self._names.file(path).data)

    def modified_ms(self, path: str) -> int:
        self.faults.check("size", path)
        return self._names.file(path).modified_ms

    def make_directory(self, path: str) -> None:
        self.faults.check("make_directory", path)
        here = ""
        for name in parts(path):
            here = f"{here}/{name}"
            if self._is_folder(here):
                continue
            folder, name_there = self._names.place(here)
            if name_there in folder.entries:
                raise problem(errno.EEXIST, here)
            self._names.change((folder, name_there, Folder()))
            self.faults.count("make_directory", here)

    def _is_folder(self, path: str) -> bool:
        try:
            return isinstance(self._names.find(path), Folder)
        except FileNotFoundError:
            return False

    def rename(self, source: str, target: str) -> None:
        self.faults.check("rename", source)
        node = self._names.find(source)
        old_folder, old_name = self._names.place(source)
        new_folder, new_name = self._names.place(target)
        replaced = new_folder.entries.get(new_name)
        if replaced is node:
            return
        if isinstance(node, Folder):
            if isinstance(replaced, Inode):
                raise problem(errno.ENOTDIR, target)
            if replaced is not None and replaced.entries:
                raise problem(errno.ENOTEMPTY, target)
            if _holds(node, new_folder):
                raise problem(errno.EINVAL, target)
        elif isinstance(replaced, Folder):
            raise problem(errno.EISDIR, target)
        self._names.change((old_folder, old_name, None), (new_folder, new_name, node))
        if isinstance(replaced, Inode):
            self._unlinked(replaced)
        self.faults.count("rename", source)

    def remove(self, path: str) -> None:
        self.faults.check("remove", path)
        file = self._names.file(path)
        folder, name = self._names.place(path)
        self._names.change((folder, name, None))
        self._unlinked(file)
        self.faults.count("remove", path)

    def remove_tree(self, path: str) -> None:
        self.faults.check("remove_tree", path)
        folder = self._names.folder(path)
        for name in sorted(folder.entries):
            inner = f"{path}/{name}"
            if isinstance(folder.entries[name], Folder):
                self.remove_tree(inner)
            else:
                self.remove(inner)
        parent, name = self._names.place(path)
        self._names.change((parent, name, None))
        self.faults.count("remove_tree", path)

    def sync_directory(self, path: str) -> None:
        self.faults.check("sync_directory", path)
        folder = self._names.folder(path)
        self.faults.count("sync_directory", path)
        self._names.sync(folder)

    def free_bytes(self, path: str) -> int:
        self._names.find(path)
        return max(0, self.capacity_bytes - self._used_bytes)

    def total_bytes(self, path: str) -> int:
        self._names.find(path)
        return self.capacity_bytes

    def lock(self, path: str) -> MemoryLock:
        self.faults.check("lock", path)
        self.open(path, create=True).close()
        node = self._names.file(path)
        if node in self._locked:
            raise BlockingIOError(errno.EAGAIN, "locked by another", path)
        self._locked.add(node)
        return MemoryLock(self._locked, node)

    # For its files

    def check_boot(self, path: str, boot: int) -> None:
        self.faults.check_power("use", path)
        if boot != self._boot:
            raise OSError(errno.ESTALE, "opened before the crash", path)

    def grow(self, inode: Inode, size: int) -> int:
        """Takes space for the file to become `size` bytes; returns what it may become."""
        allowed = min(size, max(len(inode.data), len(inode.data) + self.capacity_bytes - self._used_bytes))
        self._used_bytes += max(0, allowed - len(inode.data))
        return allowed

    def shrink(self, inode: Inode, size: int) -> None:
        self._used_bytes -= len(inode.data) - size

    def touch(self, inode: Inode) -> None:
        inode.modified_ms = self._clock.wall_ms()

    def closed(self, inode: Inode, boot: int) -> None:
        if boot == self._boot:
            inode.handles -= 1
            self._free_if_gone(inode)

    def _unlinked(self, inode: Inode) -> None:
        inode.linked = False
        self._free_if_gone(inode)

    def _free_if_gone(self, inode: Inode) -> None:
        if not inode.linked and inode.handles == 0:
            self._used_bytes -= len(inode.data)
            inode.linked = True  # freed once only

    def __repr__(self) -> str:
        return f"<MemoryDisk {self._used_bytes} of {self.capacity_bytes} bytes used>"


class MemoryLock:
    __slots__ = ("_inode", "_locked")

    def __init__(self, locked: set[Inode], inode: Inode) -> None:
        self._locked = locked
        self._inode: Inode | None = inode

    def release(self) -> None:
        inode, self._inode = self._inode, None
        if inode is not None:
            self._locked.discard(inode)


def _holds(outer: Folder, inner: Folder) -> bool:
    """Whether a folder is another or lies somewhere below it."""
    return outer is inner or any(_holds(node, inner) for node in outer.entries.values() if isinstance(node, Folder))
