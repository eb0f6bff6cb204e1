"""An event loop in a thread of its own, and a way to have it do something and wait for the result."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from typing import Any, Final, TypeVar
from weakref import WeakSet

from ottla.client.arguments import checked_number
from ottla.client.errors import ClientClosed, WrongThread

Result = TypeVar("Result")

#: Those whose thread runs, which a process that is forked off does not have.
_running: Final[WeakSet[LoopThread]] = WeakSet()
_CLOSED: Final = "the client is closed"
_LEFT_BEHIND: Final = "the client was used before this process was forked off, and works in that one: make one here"


class LoopThread:
    """Started with the first thing to do, so that a client that is made before a fork does not lose its thread.

    A client that was used before is closed in the new process, which is told by `on_fork`.
    """

    def __init__(self, name: str, on_fork: Callable[[], object] | None = None) -> None:
        self._name = name
        self._on_fork = on_fork
        self._why_ended = _CLOSED
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._ended = False

    @property
    def loop(self) -> asyncio.AbstractEventLoop:
        with self._lock:
            return self._started()

    def _started(self) -> asyncio.AbstractEventLoop:
        self.check_runs()
        if self._loop is None:
            self._loop = asyncio.new_event_loop()
            # A daemon: a program that forgets to close a client can still end.
            self._thread = threading.Thread(target=self._run_loop, name=self._name, daemon=True)
            self._thread.start()
            _running.add(self)
        return self._loop

    def check_runs(self) -> None:
        if self._ended:
            raise ClientClosed(self._why_ended)

    def left_behind(self) -> None:
        """In a process that was forked off, whose only thread is another one. Locks may be held by those it lacks."""
        self._lock = threading.Lock()
        self._ended, self._why_ended = True, _LEFT_BEHIND
        self._thread = None  # the loop is kept as it is: to let go of its sockets would tell their peers
        if self._on_fork is not None:
            self._on_fork()

    def _run_loop(self) -> None:
        assert self._loop is not None
        asyncio.set_event_loop(self._loop)
        self._loop.set_default_executor(_DaemonThreads())
        self._loop.run_forever()

    def run(self, work: Callable[[], Coroutine[Any, Any, Result]], timeout: float | None = None) -> Result:
        """The result of a coroutine, which is made and runs in the loop's thread."""
        seconds = _seconds(timeout)
        future = self.begin(work)
        try:
            return future.result(seconds)
        except CancelledError:  # by `end`
            self.check_runs()
            raise
        except BaseException:
            future.cancel()
            raise

    def begin(self, work: Callable[[], Coroutine[Any, Any, Result]]) -> Future[Result]:
        """Has a coroutine made and run in the loop's thread, whose result the caller will wait for."""
        self.check_may_wait()
        with self._lock:  # what was begun is before the end, which cancels it
            loop = self._started()  # or raises, before there is a coroutine that nobody would await
            return asyncio.run_coroutine_threadsafe(_made(work), loop)

    def begin_soon(self, call: Callable[[], object]) -> None:
        """Has a plain function called in the loop's thread, and waits for nothing."""
        self.check_may_wait()
        with self._lock:
            self._started().call_soon_threadsafe(call)

    @property
    def is_here(self) -> bool:
        """Whether the caller is the loop's own thread."""
        return threading.current_thread() is self._thread

    def check_may_wait(self) -> None:
        """Raises in the loop's own thread: nothing that it waits for could happen."""
        if self.is_here:
            raise WrongThread("a call-back runs in the client's own thread: it must not wait for that, nor close it")

    def call(self, work: Callable[[], Result]) -> Result:
        """The result of a plain function that must run in the loop's thread."""

        async def made() -> Result:
            return work()

        return self.run(made)

    def end(self) -> None:
        """Stops the loop and its thread; what still runs in it is cancelled."""
        self.check_may_wait()
        with self._lock:
            self._ended = True
            loop, thread = self._loop, self._thread
        if loop is None or thread is None or loop.is_closed():
            return
        asyncio.run_coroutine_threadsafe(_cancel_all(), loop).result()
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


def _forked() -> None:
    for thread in list(_running):
        thread.left_behind()
    _running.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forked)


class _DaemonThreads(ThreadPoolExecutor):
    """A thread for each piece of work: a name that is looked up, or a schema that is fetched.

    Python's own pools refuse work once the main thread has ended, though threads of the program still use the client,
    and they hold up the program's end. A client looks up two names a broker at once, and fetches one schema.
    """

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        future: Future[Any] = Future()

        def work() -> None:
            if not future.set_running_or_notify_cancel():
                return
            try:
                result = fn(*args, **kwargs)
            except BaseException as error:
                future.set_exception(error)
            else:
                future.set_result(result)

        threading.Thread(target=work, name="ottla-client-work", daemon=True).start()
        return future


def _seconds(timeout: Any) -> float | None:
    """How long to wait; None for ever. A length that a clock has no number for is for ever as well."""
    given = checked_number(timeout, "timeout")
    return None if given is None or given > threading.TIMEOUT_MAX else max(0.0, given)


async def _made(work: Callable[[], Coroutine[Any, Any, Result]]) -> Result:
    return await work()


async def _cancel_all() -> None:
    others = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
    for task in others:
        task.cancel()
    await asyncio.gather(*others, return_exceptions=True)
