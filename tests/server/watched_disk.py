"""A disk that notes what is asked of it on one thread, and by which function of the broker."""

from __future__ import annotations

import sys
import threading
from collections import Counter
from types import FrameType
from typing import Any, Final

from ottla.ports import Disk

#: Modules that only pass a question on: a caller is looked for behind them.
PASSING: Final = ("ottla.ports.", "ottla.storage.log.open_files", "ottla.storage.formats.reading")
#: What a file answers by itself, without a system call.
OF_THE_HANDLE: Final = frozenset({"path", "fileno", "lease", "release"})


class Watched:
    """Stands for a disk or a file of its. `asked` counts (operation, module and function that asked)."""

    def __init__(self, real: Any, asked: Counter[tuple[str, str]], thread: list[int]) -> None:
        self._real = real
        self._asked = asked
        self._thread = thread

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._real, name)
        if name in OF_THE_HANDLE or not callable(found):
            return found

        def call(*arguments: Any, **named: Any) -> Any:
            operation = name
            if named.get("create"):
                operation = "create"
            if name == "open_read_only":
                operation = "open"
            if threading.get_ident() in self._thread:
                self._asked[operation, caller()] += 1
            result = found(*arguments, **named)
            return Watched(result, self._asked, self._thread) if name in {"open", "open_read_only"} else result

        return call


def caller() -> str:
    frame: FrameType | None = sys._getframe(2)
    while frame is not None:
        module = frame.f_globals.get("__name__", "")
        if module.startswith("ottla.") and not module.startswith(PASSING):
            return f"{module.removeprefix('ottla.')}.{frame.f_code.co_qualname}"
        frame = frame.f_back
    return "?"


def watched(disk: Disk) -> tuple[Disk, Counter[tuple[str, str]], list[int]]:
    """The disk, what it was asked on the threads of the list, and the list, to which the caller adds."""
    asked: Counter[tuple[str, str]] = Counter()
    threads: list[int] = []
    return Watched(disk, asked, threads), asked, threads
