"""Call-backs of a rebalance in the caller's own thread: while that waits for a poll, it runs what the loop hands to it.

So a listener may use the consumer as its program does: commit, seek, ask for positions.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine, Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from queue import SimpleQueue
from typing import Any, Generic, TypeVar

from ottla.client.consuming.group.listener import ASSIGNED, LOST, REVOKED, check_listener, method_of
from ottla.client.errors import WrongConsumerState
from ottla.client.sync.loop_thread import LoopThread
from ottla.model import TopicPartition

Result = TypeVar("Result")


class CallBacks:
    def __init__(self, thread: LoopThread) -> None:
        self._thread = thread
        #: Calls to make here, and futures that have ended.
        self._queue: SimpleQueue[Callable[[], None] | Future[Any]] = SimpleQueue()
        #: Held by the thread that waits: two would take each other's calls and results from the queue.
        self._turn = threading.Lock()

    @contextmanager
    def alone(self) -> Iterator[None]:
        """For the thread that waits. Raises WrongConsumerState in any other, and in a call-back."""
        if not self._turn.acquire(blocking=False):
            raise WrongConsumerState(
                "one thread at a time polls, unsubscribes or closes a consumer; "
                "a call-back of a rebalance must not poll, unsubscribe or close"
            )
        try:
            yield
        finally:
            self._turn.release()

    def run(
        self, work: Callable[[], Coroutine[Any, Any, Result]], unclaimed: Callable[[Result], None] | None = None
    ) -> Result:
        """As LoopThread.run, and makes the calls that come meanwhile. A result that a Ctrl-C keeps from the caller is
        handed to `unclaimed`, in the loop's thread."""
        with self.alone():
            return self.run_alone(work, unclaimed)

    def run_alone(
        self, work: Callable[[], Coroutine[Any, Any, Result]], unclaimed: Callable[[Result], None] | None = None
    ) -> Result:
        claim = _Claim[Result]()
        future = self._thread.begin(lambda: claim.filled(work))
        future.add_done_callback(self._queue.put)
        try:
            while (item := self._queue.get()) is not future:
                if not isinstance(item, Future):  # or it is one that was given up by a Ctrl-C
                    item()
            return future.result()
        except BaseException:
            future.cancel()
            if unclaimed is not None:
                self._thread.begin(lambda: claim.handed_to(unclaimed)).result()
            raise

    def relayed(self, listener: object) -> object:
        """A listener for the loop that has this one called here."""
        check_listener(listener)
        return None if listener is None else _RelayedListener(listener, self._relay)

    async def _relay(self, method: Callable[[list[TopicPartition]], Any], partitions: list[TopicPartition]) -> None:
        loop = asyncio.get_running_loop()
        done: asyncio.Future[None] = loop.create_future()

        def call() -> None:
            error: Exception | None = None
            try:
                method(partitions)
            except Exception as raised:
                error = raised
            finally:
                loop.call_soon_threadsafe(_end, done, error)

        self._queue.put(call)
        await done


class _Claim(Generic[Result]):
    """A result in the loop's thread, whether or not the thread that waits for it ever gets it."""

    def __init__(self) -> None:
        self._task: asyncio.Task[Any] | None = None
        self._results: list[Result] = []

    async def filled(self, work: Callable[[], Coroutine[Any, Any, Result]]) -> Result:
        self._task = asyncio.current_task()
        result = await work()
        self._results.append(result)
        return result

    async def handed_to(self, unclaimed: Callable[[Result], None]) -> None:
        if self._task is not None:
            await asyncio.wait([self._task])
        for result in self._results:
            unclaimed(result)


class _RelayedListener:
    def __init__(self, listener: object, relay: Callable[..., Coroutine[Any, Any, None]]) -> None:
        self._listener = listener
        self._relay = relay

    async def _tell(self, what: str, partitions: Sequence[TopicPartition]) -> None:
        method = method_of(self._listener, what)
        if method is not None:
            await self._relay(method, list(partitions))

    async def on_assigned(self, partitions: Sequence[TopicPartition]) -> None:
        await self._tell(ASSIGNED, partitions)

    async def on_revoked(self, partitions: Sequence[TopicPartition]) -> None:
        await self._tell(REVOKED, partitions)

    async def on_lost(self, partitions: Sequence[TopicPartition]) -> None:
        await self._tell(LOST, partitions)


def _end(done: asyncio.Future[None], error: Exception | None) -> None:
    if done.done():
        return
    if error is None:
        done.set_result(None)
    else:
        done.set_exception(error)
