"""An open file of a `MemoryDisk`."""

from __future__ import annotations

import errno
from collections.abc import Sequence
from typing import TYPE_CHECKING

from ottla.ports.disk import Buffer
from ottla.ports.memory.inode import Inode
from ottla.ports.memory.namespace import problem

if TYPE_CHECKING:
    from ottla.ports.memory.disk import MemoryDisk


class MemoryFile:
    __slots__ = ("_boot", "_closing", "_disk", "_inode", "_leases", "_open", "_path", "_writable")

    def __init__(self, disk: MemoryDisk, inode: Inode, path: str, boot: int, *, writable: bool) -> None:
        self._disk = disk
        self._inode = inode
        self._path = path
        self._boot = boot
        self._writable = writable
        self._leases = 0
        self._closing = False
        self._open = True
        inode.handles += 1

    @property
    def path(self) -> str:
        return self._path

    def append(self, buffers: Sequence[Buffer]) -> int:
        data = b"".join(buffers)
        self._put("append", data, len(self._inode.data))
        return len(data)

    def write(self, data: Buffer, position: int) -> None:
        self._put("write", data, position)

    def _put(self, operation: str, data: Buffer, position: int) -> None:
        self._check(writing=True)
        try:
            self._disk.check(operation, self._path)
        except OSError:
            # Some of it may have been written before the fault, so half of it is.
            self._write(memoryview(data)[: len(data) // 2], position)
            raise
        written = self._write(data, position)
        self._disk.count(operation, self._path)
        if written < len(data):
            raise problem(errno.ENOSPC, self._path)

    def _write(self, data: Buffer, position: int) -> int:
        """Writes what fits, and returns how much that was."""
        inode = self._inode
        allowed = self._disk.grow(inode, max(len(inode.data), position + len(data)))
        fits = min(len(data), max(0, allowed - position))
        inode.write(memoryview(data)[:fits], position)
        self._disk.touch(inode)
        return fits

    def read(self, size: int, position: int) -> bytes:
        self._check()
        self._disk.check("read", self._path)
        self._disk.cold.discard(self._path)
        return bytes(memoryview(self._inode.data)[position : position + size])

    def read_into(self, view: memoryview, position: int) -> int:
        data = self.read(len(view), position)
        view[: len(data)] = data
        return len(data)

    def is_cold(self, size: int, position: int) -> bool:
        return size > 0 and self._path in self._disk.cold

    def size(self) -> int:
        self._check()
        return len(self._inode.data)

    def truncate(self, size: int) -> None:
        self._check(writing=True)
        self._disk.check("truncate", self._path)
        inode = self._inode
        if size < len(inode.data):
            self._disk.shrink(inode, size)
        elif self._disk.grow(inode, size) < size:
            raise problem(errno.ENOSPC, self._path)
        inode.truncate(size)
        self._disk.touch(inode)
        self._disk.count("truncate", self._path)

    def allocate(self, size: int) -> None:
        self._check(writing=True)
        if size > len(self._inode.data):
            self._put("allocate", bytes(size - len(self._inode.data)), len(self._inode.data))

    def sync(self) -> None:
        self._check()
        try:
            self._disk.check("sync", self._path)
        except OSError:
            self._inode.fail_sync()
            raise
        self._disk.count("sync", self._path)
        self._inode.sync()

    def fileno(self) -> int:
        return -1

    def lease(self) -> None:
        assert self._open
        self._leases += 1

    def release(self) -> None:
        assert self._leases > 0
        self._leases -= 1
        if self._closing and not self._leases:
            self._disk.lingering -= 1
        self._close_if_free()

    def close(self) -> None:
        if self._leases and not self._closing:
            self._disk.lingering += 1
        self._closing = True
        self._close_if_free()

    def _close_if_free(self) -> None:
        if self._closing and self._leases == 0 and self._open:
            self._open = False
            self._disk.closed(self._inode, self._boot)

    def _check(self, *, writing: bool = False) -> None:
        if not self._open or (writing and not self._writable):
            raise problem(errno.EBADF, self._path)
        self._disk.check_alive(self._path, self._boot)
