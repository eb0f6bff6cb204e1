"""Work that would stall the loop: fsync, deletion, cold reads in threads; cleaning in a process of its own.

The loop is never waited for inside a worker, and a worker touches nothing that the loop owns: it gets plain values and
open files, and returns a plain value.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Protocol, TypeVar

T = TypeVar("T")


class Workers(Protocol):
    def thread(self, work: Callable[[], T]) -> asyncio.Future[T]:
        """Runs `work` beside the loop. Its result or exception arrives on the loop."""
        ...

    def process(self, work: Callable[..., T], *arguments: object) -> asyncio.Future[T]:
        """Runs a module-level function in another process, so that it takes no time under the interpreter's lock."""
        ...

    def close(self) -> None:
        """Waits for what runs and starts nothing more."""
        ...
