"""Call-backs of a rebalance in the caller's own thread: while that waits for a poll, it runs what the loop hands to it.

So a listener may use the consumer as its program does: commit, seek, ask for positions.
"""

from __future__ import annotations

import asyncio
import inspect
from asyncio import CancelledError
from collections.abc import Callable, Coroutine, Sequence
from queue import SimpleQueue
from typing import Any, Generic, TypeVar

from ottla.client.consuming.group.listener import ASSIGNED, LOST, REVOKED, check_listener, method_of
from ottla.client.errors import BadArgument, WrongConsumerState
from ottla.client.sync.loop_thread import LoopThread
from ottla.model import TopicPartition

Result = TypeVar("Result")


class CallBacks:
    """A Ctrl-C may come between any two steps of the thread that waits. So what must not be lost then goes through
    queues and dictionaries alone, whose calls are one step each: a lock that was just taken, or a future's condition,
    would stay held for ever."""

    def __init__(self, thread: LoopThread) -> None:
        self._thread = thread
        #: Calls to make here, as long as the loop waits for their ends.
        self._calls: dict[_Call, None] = {}
        #: What there is to look at: calls, and claims whose work has ended. A Ctrl-C may take one along, and what it
        #: stands for is found all the same.
        self._queue: SimpleQueue[_Call | _Claim[Any]] = SimpleQueue()
        #: The claim of the thread that waits: two would take each other's calls and results from the queue.
        self._turn: dict[None, _Claim[Any]] = {}

    def run(
        self,
        work: Callable[[], Coroutine[Any, Any, Result]],
        unclaimed: Callable[[Result], None] | None = None,
        *,
        finally_: Callable[[], None] | None = None,
    ) -> Result:
        """As LoopThread.run, and makes the calls that come meanwhile. A result that a Ctrl-C keeps from the caller is
        handed to `unclaimed`, in the loop's thread, once the work has ended; `finally_` is called before anybody else
        may wait.

        Raises WrongConsumerState where another thread waits, and in a call-back.
        """
        claim = _Claim[Result](self._queue.put)
        try:
            self._take_turn(claim)
            self._thread.begin_soon(lambda: claim.begin(work))
            self._make_calls()  # those that a Ctrl-C has kept the last one from
            while self._queue.get() is not claim:  # or it is one that was given up by a Ctrl-C
                self._make_calls()
            result = claim.result()
            self._ended(claim, finally_)
        except BaseException as error:
            if self._turn.get(None) is claim:
                try:
                    self._give_up(claim, unclaimed)
                finally:
                    self._ended(claim, finally_)
            if isinstance(error, CancelledError):  # by the loop's end
                self._thread.check_runs()
            raise
        return result  # no call comes before it, in which a Ctrl-C could take it along

    def _take_turn(self, claim: _Claim[Any]) -> None:
        if self._turn.setdefault(None, claim) is not claim:
            raise WrongConsumerState(
                "one thread at a time polls, unsubscribes or closes a consumer; "
                "a call-back of a rebalance must not poll, unsubscribe or close"
            )

    def _make_calls(self) -> None:
        for call in list(self._calls):
            if not call.has_begun:
                call.make()

    def _give_up(self, claim: _Claim[Result], unclaimed: Callable[[Result], None] | None) -> None:
        if self._calls:
            self._thread.begin_soon(self._end_begun)
        if claim.has_failed:
            return
        ended = self._thread.begin(lambda: claim.given_up(unclaimed))
        if unclaimed is not None:
            ended.result()

    def _end_begun(self) -> None:
        """In the loop's thread. A Ctrl-C has ended these, and may have kept them from saying so."""
        for call in self._calls:
            if call.has_begun:
                call.end()

    def _ended(self, claim: _Claim[Any], finally_: Callable[[], None] | None) -> None:
        if self._turn.get(None) is claim:
            try:
                if finally_ is not None:
                    finally_()
            finally:
                del self._turn[None]  # no call, in which a Ctrl-C could come: the result is the caller's then

    def relayed(self, listener: object) -> object:
        """A listener for the loop that has this one called here."""
        check_listener(listener)
        for what in (ASSIGNED, REVOKED, LOST):
            if inspect.iscoroutinefunction(getattr(listener, what, None)):
                raise BadArgument(f"{what} is a coroutine, which nobody would await: the methods are plain ones here")
        return None if listener is None else _RelayedListener(listener, self._relay)

    async def _relay(self, method: Callable[[list[TopicPartition]], Any], partitions: list[TopicPartition]) -> None:
        call = _Call(method, partitions)
        self._calls[call] = None
        self._queue.put(call)
        try:
            await call.done
        finally:
            del self._calls[call]


class _Call:
    """Of a listener's method: made in the thread that waits, and ended in the loop's."""

    def __init__(self, method: Callable[[list[TopicPartition]], Any], partitions: list[TopicPartition]) -> None:
        self._method = method
        self._partitions = partitions
        self._loop = asyncio.get_running_loop()
        self._error: Exception | None = None
        self.done: asyncio.Future[None] = self._loop.create_future()
        #: It is made once, whatever becomes of it.
        self.has_begun = False

    def make(self) -> None:
        self.has_begun = True
        try:
            self._method(self._partitions)
        except Exception as raised:
            self._error = raised
        finally:
            self._loop.call_soon_threadsafe(self.end)

    def end(self) -> None:
        if self.done.done():
            return
        if self._error is None:
            self.done.set_result(None)
        else:
            self.done.set_exception(self._error)


class _Claim(Generic[Result]):
    """Work in the loop's thread, whether or not the thread that waits for its result ever gets it."""

    def __init__(self, ended: Callable[[_Claim[Any]], None]) -> None:
        self._told = ended
        self._task: asyncio.Task[Result] | None = None

    def begin(self, work: Callable[[], Coroutine[Any, Any, Result]]) -> None:
        """In the loop's thread. It is told when the work has ended."""
        self._task = asyncio.get_running_loop().create_task(_made(work))
        self._task.add_done_callback(lambda _: self._told(self))

    def result(self) -> Result:
        """When it has ended."""
        assert self._task is not None
        return self._task.result()

    @property
    def has_failed(self) -> bool:
        task = self._task
        return task is not None and task.done() and (task.cancelled() or task.exception() is not None)

    async def given_up(self, unclaimed: Callable[[Result], None] | None) -> None:
        task = self._task
        if task is None:
            return
        task.cancel()
        await asyncio.wait([task])
        if unclaimed is not None and not self.has_failed:
            unclaimed(task.result())


async def _made(work: Callable[[], Coroutine[Any, Any, Result]]) -> Result:
    return await work()


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
