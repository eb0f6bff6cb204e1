"""Files, as a log needs them: append, positioned read, sync, rename; and what a crash may do to them.

The contract that the in-memory disk holds callers to: after a crash any subset of the writes since the last `sync`
survives (later pages may while earlier ones do not, the last may be torn), and a created, renamed or removed name is
only certain after `sync_directory` of its folder. Faults are OSError with the usual errno (EIO, ENOSPC, ...).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

Buffer = bytes | bytearray | memoryview


class File(Protocol):
    """An open file. It closes when `close` was called and no lease is left: a slow reader never loses its file."""

    @property
    def path(self) -> str: ...

    def append(self, buffers: Sequence[Buffer]) -> int:
        """Writes all buffers behind the end, in one call where the system can, and returns how many bytes that was.

        On OSError some of them may have been written: the caller truncates back to the size it knows.
        """
        ...

    def read(self, size: int, position: int) -> bytes:
        """Up to `size` bytes from `position`; fewer only at the end of the file."""
        ...

    def read_into(self, view: memoryview, position: int) -> int: ...

    def is_cold(self, size: int, position: int) -> bool:
        """Whether reading this piece would wait for the medium; False where the system cannot say."""
        ...

    def write(self, data: Buffer, position: int) -> None:
        """Writes all of `data` at `position`."""
        ...

    def size(self) -> int: ...

    def truncate(self, size: int) -> None: ...

    def allocate(self, size: int) -> None:
        """Grows the file to `size` with zeros whose blocks are set aside: a full disk is met here and not later.

        Does nothing where the file is as large already.
        """
        ...

    def sync(self) -> None:
        """Returns when everything written is on the medium. It blocks, so workers call it."""
        ...

    def fileno(self) -> int:
        """The descriptor for sendfile; -1 where there is none."""
        ...

    def lease(self) -> None:
        """Holds the file open until `release`, even past `close`."""
        ...

    def release(self) -> None: ...

    def close(self) -> None: ...


class Lock(Protocol):
    def release(self) -> None: ...


class Disk(Protocol):
    @property
    def lingering(self) -> int:
        """Files that were closed and that leases keep open. Each has a descriptor that nobody counts elsewhere."""
        ...

    def open(self, path: str, *, create: bool = False) -> File:
        """Opens for reading and appending; FileNotFoundError where it is missing and not to be created.

        Whatever is no file is refused, here and in the next two, and never waited for.
        """
        ...

    def open_read_only(self, path: str) -> File: ...

    def read_file(self, path: str) -> bytes:
        """The whole of a small file."""
        ...

    def names(self, directory: str) -> list[str]:
        """The names in a folder, sorted."""
        ...

    def entries(self, directory: str) -> list[tuple[str, bool]]:
        """The same, each with whether it is a file or leads to one: folders, pipes, sockets and devices are none."""
        ...

    def exists(self, path: str) -> bool: ...

    def is_directory(self, path: str) -> bool: ...

    def size(self, path: str) -> int: ...

    def modified_ms(self, path: str) -> int:
        """When the file was last written, in wall milliseconds."""
        ...

    def make_directory(self, path: str) -> bool:
        """With its parents; fine where it exists. Returns whether it is new, and so empty."""
        ...

    def spread_folders(self, path: str) -> None:
        """A hint that the folders in this one have nothing to do with one another: they may lie far apart. A file
        system that cannot be told goes on as it is."""
        ...

    def rename(self, source: str, target: str) -> None:
        """Atomic, replacing a file at the target."""
        ...

    def remove(self, path: str) -> None: ...

    def remove_tree(self, path: str) -> None:
        """Removes a folder with all that is in it. Of one that is a symbolic link the link only."""
        ...

    def remove_files(self, folder: str) -> None:
        """Removes the files in a folder, which stays, with the folders in it. Of a symbolic link to one nothing."""
        ...

    def sync_directory(self, path: str) -> None: ...

    def free_bytes(self, path: str) -> int: ...

    def total_bytes(self, path: str) -> int: ...

    def lock(self, path: str) -> Lock:
        """Takes the lock file for this process; BlockingIOError where another process has it."""
        ...
