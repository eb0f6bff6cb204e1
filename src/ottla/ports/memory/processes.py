"""Processes of simulated machines: what one starts carries its mark, stands still while it is stopped, ends with it.

The mark is a context variable, which tasks, timers and call-backs inherit from whatever sets them. The loop looks at it
before it runs a call-back: one of a process that is stopped (SIGSTOP) is put aside until it goes on. Its sockets fill
up meanwhile, since the network belongs to no process, and time has passed when it wakes.

    running ──suspend──▶ stopped ──go_on──▶ running        either ──end──▶ ended, for good
"""

from __future__ import annotations

import asyncio
from contextvars import Context, ContextVar, copy_context
from typing import Any, Final

#: Tasks that a process keeps track of before it looks which of them have ended.
_TASKS_KEPT: Final = 64


class Process:
    """One life of one program on one machine."""

    __slots__ = ("_prune_at", "_tasks", "ended", "name", "set_aside", "stopped")

    def __init__(self, name: str) -> None:
        self.name = name
        self.ended = False
        self.stopped = False
        #: Call-backs that came due while it was stopped, in their order. The loop fills it.
        self.set_aside: list[asyncio.Handle] = []
        self._tasks: list[asyncio.Task[Any]] = []
        self._prune_at = _TASKS_KEPT

    def context(self) -> Context:
        """A copy of this context with the process's mark: what is started in it belongs to the process."""
        context = copy_context()
        context.run(PROCESS.set, self)
        return context

    def has_started(self, task: asyncio.Task[Any]) -> None:
        if len(self._tasks) >= self._prune_at:
            self._tasks = [task for task in self._tasks if not task.done()]
            self._prune_at = max(_TASKS_KEPT, 2 * len(self._tasks))
        self._tasks.append(task)

    @property
    def tasks(self) -> list[asyncio.Task[Any]]:
        """Those that run, in the order in which they were started."""
        return [task for task in self._tasks if not task.done()]

    def __repr__(self) -> str:
        state = "ended" if self.ended else "stopped" if self.stopped else "running"
        return f"<Process {self.name}, {state}>"


#: The process that a call-back belongs to. None: the network, a client, the scenario itself.
PROCESS: Final[ContextVar[Process | None]] = ContextVar("process", default=None)


def task_of_a_process(
    loop: asyncio.AbstractEventLoop, work: Any, /, context: Context | None = None
) -> asyncio.Task[Any]:
    """asyncio's task, noted with the process that it belongs to."""
    process = PROCESS.get() if context is None else context.get(PROCESS)
    task = asyncio.Task(work, loop=loop, context=context)
    if process is not None:
        process.has_started(task)
    return task
