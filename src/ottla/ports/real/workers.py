"""Threads for what waits for the disk, and processes for what computes: one to clean, two to look into batches.

All start with their first piece of work: a broker that never cleans has no second process, and none of its start-up
cost. A process is a plain child that reads calls from a pipe (`process_child`); one thread here feeds it.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import subprocess
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, TypeVar

from ottla.ports.real.process_child import read_message, write_message

if TYPE_CHECKING:
    import asyncio
    from concurrent.futures import ThreadPoolExecutor

T = TypeVar("T")

#: Enough to keep a disk's queue filled; more would only wait for the interpreter's lock.
THREADS: Final = 4
#: Pieces of work that may wait. Some flush per partition is normal; beyond this somebody starts work without end.
WAITING_MAX: Final = 65_536
#: A thread that computes asks for the interpreter's lock when it has waited so long, and again behind each system call.
#: By Python's 5 ms an import of thirty files takes seconds beside a loop that is never idle: 17 s were seen.
SWITCH_S: Final = 0.0005


def take_short_turns() -> None:
    """For a process that serves: its loop and its workers wait little for each other."""
    sys.setswitchinterval(SWITCH_S)


class RealWorkers:
    __slots__ = ("_checking", "_checking_long", "_cleaning", "_closed", "_threads", "_waiting")

    def __init__(self) -> None:
        self._threads: ThreadPoolExecutor | None = None
        self._cleaning = FedProcess("ottla-process")
        self._checking = FedProcess("ottla-check")
        self._checking_long = FedProcess("ottla-check-long")
        self._waiting = 0
        self._closed = False

    def thread(self, work: Callable[[], T]) -> asyncio.Future[T]:
        if self._threads is None:
            self._threads = _pool(THREADS, "ottla-worker")
        return self._submit(self._threads, work)

    def process(self, work: Callable[..., T], *arguments: object) -> asyncio.Future[T]:
        return self._submit(self._cleaning.pool(), lambda: self._cleaning.child.call(work, arguments))

    def check(self, work: Callable[..., T], *arguments: object) -> asyncio.Future[T]:
        return self._submit(self._checking.pool(), lambda: self._checking.child.call(work, arguments))

    def check_long(self, work: Callable[..., T], *arguments: object) -> asyncio.Future[T]:
        return self._submit(self._checking_long.pool(), lambda: self._checking_long.child.call(work, arguments))

    def _submit(self, pool: ThreadPoolExecutor, work: Callable[[], T]) -> asyncio.Future[T]:
        from asyncio import get_running_loop

        if self._closed:
            raise RuntimeError("the workers are closed")
        if self._waiting >= WAITING_MAX:
            raise BlockingIOError(f"{WAITING_MAX} pieces of work wait already")
        future = get_running_loop().run_in_executor(pool, work)
        self._waiting += 1
        future.add_done_callback(self._done)
        return future

    def _done(self, _: asyncio.Future[Any]) -> None:
        self._waiting -= 1

    def close(self) -> None:
        self._closed = True
        for fed in (self._cleaning, self._checking, self._checking_long):
            fed.child.kill()
        for fed in (self._cleaning, self._checking, self._checking_long):
            fed.end()
        if self._threads is not None:
            self._threads.shutdown(cancel_futures=True)


def _pool(threads: int, name: str) -> ThreadPoolExecutor:
    from concurrent.futures import ThreadPoolExecutor

    return ThreadPoolExecutor(threads, name)


class WorkerDiedError(RuntimeError):
    """The worker process ended in the middle of its work."""


class FedProcess:
    """A process, and the thread that feeds it."""

    __slots__ = ("_name", "_pool", "child")

    def __init__(self, name: str) -> None:
        self._name = name
        self._pool: ThreadPoolExecutor | None = None
        self.child = Child()

    def pool(self) -> ThreadPoolExecutor:
        if self._pool is None:
            self._pool = _pool(1, self._name)
        return self._pool

    def end(self) -> None:
        """After `kill`."""
        if self._pool is not None:
            self._pool.shutdown(cancel_futures=True)
            self.child.bury()


class Child:
    """The process, started again after it has died. Only the feeder calls this, but for `kill`."""

    __slots__ = ("_ended", "_process")

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._ended = False

    def call(self, work: Callable[..., T], arguments: tuple[object, ...]) -> T:
        data = pickle.dumps((work, arguments))  # fails here, before the child has seen half of it
        process = self._process
        if process is not None and process.poll() is not None:
            self.bury()
            process = None
        if process is None:
            process = self._start()
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            write_message(process.stdin, data)
            answer = read_message(process.stdout)
        except (OSError, EOFError) as error:
            raise WorkerDiedError(f"the worker process died (exit code {self.bury()})") from error
        succeeded, result = pickle.loads(answer)  # noqa: S301 - the pipe comes from our own child
        if not succeeded:
            raise result
        value: T = result
        return value

    def _start(self) -> subprocess.Popen[bytes]:
        self._process = process = subprocess.Popen(
            [sys.executable, "-P", "-m", "ottla.ports.real.process_child"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            # So that it finds what we find, also where paths were added at run time.
            env={**os.environ, "PYTHONPATH": os.pathsep.join(path or os.getcwd() for path in sys.path)},
        )
        if self._ended:  # `kill` came while it was being started
            process.kill()
        return process

    def kill(self) -> None:
        """Work in a process is written so that it can be lost at any point, as in a crash."""
        self._ended = True
        if self._process is not None:
            self._process.kill()

    def bury(self) -> int:
        """Its exit code, and nothing of it left."""
        process, self._process = self._process, None
        if process is None:
            return 0
        process.kill()
        for pipe in (process.stdin, process.stdout):
            assert pipe is not None
            with contextlib.suppress(OSError):  # closing flushes what the dead will not read
                pipe.close()
        return process.wait()
