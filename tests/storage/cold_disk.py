"""A disk of which nothing is in memory until it is read: what would have to wait is noted, but for workers."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

from ottla.ports import Disk

PAGE_BYTES: Final = 4096
#: What changes the folder, or looks a name up in it.
WAITING: Final = frozenset({"open", "read_file", "rename", "remove", "sync", "sync_directory"})


class ColdDisk:
    def __init__(self, disk: Disk) -> None:
        self._disk = disk
        #: By path: pages that were read.
        self.warm: defaultdict[str, set[int]] = defaultdict(set)
        #: What the caller had to wait for: the operation, the path and the position.
        self.waited: list[tuple[str, str, int]] = []
        self._in_worker = True

    @contextmanager
    def loop(self) -> Iterator[None]:
        """What is done meanwhile should not wait, and nothing is in memory."""
        self.warm.clear()
        self._in_worker = False
        try:
            yield
        finally:
            self._in_worker = True

    @contextmanager
    def worker(self) -> Iterator[None]:
        before, self._in_worker = self._in_worker, True
        try:
            yield
        finally:
            self._in_worker = before

    def note(self, operation: str, path: str, position: int = 0) -> None:
        if not self._in_worker:
            self.waited.append((operation, path, position))

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._disk, name)
        if not callable(found):
            return found

        def call(*arguments: Any, **named: Any) -> Any:
            if name in WAITING or named.get("create"):
                self.note(name, str(arguments[0]))
            result = found(*arguments, **named)
            return ColdFile(self, result, arguments[0]) if name in {"open", "open_read_only"} else result

        return call


class ColdFile:
    def __init__(self, disk: ColdDisk, file: Any, path: str) -> None:
        self._disk = disk
        self._file = file
        self._path = path

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)

    def _cold(self, size: int, position: int) -> set[int]:
        pages = range(position // PAGE_BYTES, (position + size - 1) // PAGE_BYTES + 1)
        return set(pages) - self._disk.warm[self._path]

    def _read(self, size: int, position: int) -> None:
        if cold := self._cold(size, position):
            self._disk.note("read", self._path, position)
            self._disk.warm[self._path] |= cold

    def is_cold(self, size: int, position: int) -> bool:
        return bool(self._cold(size, position))

    def read(self, size: int, position: int) -> bytes:
        self._read(size, position)
        return self._file.read(size, position)

    def read_into(self, view: memoryview, position: int) -> int:
        self._read(len(view), position)
        return self._file.read_into(view, position)
