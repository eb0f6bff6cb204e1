"""Work that would stall the loop: fsync, deletion, cold reads in threads; what computes in processes of their own.

The loop is never waited for inside a worker, and a worker touches nothing that the loop owns: it gets plain values and
open files, and returns a plain value.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol, TypeVar

if TYPE_CHECKING:
    import asyncio  # 90 ms to import: a verb that only reads files does without

T = TypeVar("T")


class Workers(Protocol):
    def thread(self, work: Callable[[], T]) -> asyncio.Future[T]:
        """Runs `work` beside the loop. Its result or exception arrives on the loop."""
        ...

    def process(self, work: Callable[..., T], *arguments: object) -> asyncio.Future[T]:
        """Runs a module-level function in another process, so that it takes no time under the interpreter's lock.

        It may be killed at any point, as in a crash: its future then has an exception.
        """
        ...

    def check(self, work: Callable[..., T], *arguments: object) -> asyncio.Future[T]:
        """As `process`, in one of its own: for what a client waits for, which cannot stand behind minutes of cleaning.

        One at a time, in the order in which they came; what is cancelled before its turn is never run.
        """
        ...

    def check_long(self, work: Callable[..., T], *arguments: object) -> asyncio.Future[T]:
        """As `check`, in yet another process: for what may take seconds, which others are not to stand behind."""
        ...

    def close(self) -> None:
        """Waits for the threads' running work, ends the processes, starts nothing more. What waited is cancelled."""
        ...
