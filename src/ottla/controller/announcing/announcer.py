"""Carries orders to brokers, each at its own pace: a task a broker, which works its queue off.

`announce` returns at once. What brokers answer is kept until the controller takes it (`take_answers`), in a turn of its
own. A call that fails is made again until the broker is gone, and holds up nobody but that broker.
"""

from __future__ import annotations

import asyncio
import traceback
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final

from ottla import logs
from ottla.controller.announcing.announcements import (
    Announcement,
    AnnouncementOutcome,
    Answer,
    Metadata,
    NewLogs,
    Roles,
)
from ottla.controller.announcing.origin import NotAnnounced
from ottla.controller.announcing.queue import BrokerQueue
from ottla.controller.announcing.receiver import Receiver
from ottla.controller.deciding.orders import MetadataOrder, Order
from ottla.metrics.times import Times
from ottla.model import BrokerId
from ottla.steps import is_stray

log = logs.logger("controller")

#: Between two tries, twice as long each time.
_AGAIN_S: Final = 0.1
_AGAIN_S_MAX: Final = 10.0
#: A stop waits so long for the call in this process that is under way: it is in the middle of its folders.
_END_S: Final = 30.0


class _Line:
    """One broker: its queue, and who works it off."""

    def __init__(self, queue: BrokerQueue, receiver: Receiver, epoch: int) -> None:
        self.queue = queue
        self.receiver = receiver
        #: Of its registration.
        self.epoch = epoch
        #: Runs while there is something to call.
        self.task: asyncio.Task[None] | None = None
        self.is_closed = False
        #: Whether the task waits until it tries again.
        self.is_pausing = False
        #: Since when the oldest of what no call has taken along waits.
        self.waits_since_ms: int | None = None
        #: How long that waited, call by call.
        self.times = Times()


class Announcer:
    def __init__(
        self,
        now_ms: Callable[[], int],
        on_answers: Callable[[], None],
        on_fault: Callable[[BrokerId, BaseException], None],
    ) -> None:
        """`on_answers` is called when there are some to take, `on_fault` at each call that failed."""
        self._now_ms = now_ms
        self._on_answers = on_answers
        self._on_fault = on_fault
        self._lines: dict[BrokerId, _Line] = {}
        #: From then on there are no lines: a turn that goes on behind the end of its tenure connects nobody.
        self._is_dropped = False
        #: In the order in which they came. They are no more than what was announced.
        self._answers: list[Answer] = []

    @property
    def brokers(self) -> Mapping[BrokerId, int]:
        """Each with the epoch of its registration."""
        return {broker: line.epoch for broker, line in self._lines.items()}

    @property
    def waiting(self) -> Mapping[BrokerId, int]:
        """How many calls each broker has still to answer."""
        return {broker: line.queue.waiting for broker, line in self._lines.items()}

    @property
    def times(self) -> Mapping[BrokerId, Times]:
        """How long each broker's calls have waited until they were made."""
        return {broker: line.times for broker, line in self._lines.items()}

    def connect(self, broker: BrokerId, epoch: int, receiver: Receiver) -> None:
        """From now on the broker is announced to. It knows nothing yet."""
        assert broker not in self._lines
        if self._is_dropped:
            return
        self._lines[broker] = _Line(BrokerQueue(broker), receiver, epoch)

    def disconnect(self, broker: BrokerId) -> None:
        """The broker is gone, and with it everything that it was still to hear."""
        self._close(self._lines.pop(broker))

    def announce(self, orders: Iterable[Order]) -> None:
        """In this order, where it matters (`BrokerQueue`). A broker that is not there hears nothing."""
        called = set()
        for order in orders:
            for broker in self._audience(order):
                line = self._lines.get(broker)
                if line is not None:
                    if line.waits_since_ms is None:
                        line.waits_since_ms = self._now_ms()
                    self._answered(line.queue.add(order))
                    called.add(broker)
        for broker in sorted(called):
            self._work(self._lines[broker])

    def _audience(self, order: Order) -> Sequence[BrokerId]:
        if isinstance(order, MetadataOrder):
            return list(self._lines) if order.brokers is None else order.brokers
        return [order.broker]

    def when_confirmed(self, brokers: Iterable[BrokerId]) -> asyncio.Future[None]:
        """Done when these brokers have carried out what was announced before, or are gone."""
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        left = {broker for broker in brokers if broker in self._lines}

        def confirmed(broker: BrokerId) -> None:
            left.discard(broker)
            if not left and not done.done():
                done.set_result(None)

        if not left:
            done.set_result(None)
        for broker in sorted(left):
            line = self._lines[broker]
            line.queue.wait(lambda broker=broker: confirmed(broker))  # type: ignore[misc]
            self._work(line)
        return done

    def take_answers(self) -> list[Answer]:
        answers, self._answers = self._answers, []
        return answers

    def go_on(self) -> None:
        """The controller has decided on the answers that it took."""
        unseen = {answer.broker for answer in self._answers}
        for broker, line in self._lines.items():
            if broker not in unseen:
                line.queue.go_on()
                self._work(line)

    def drop(self) -> None:
        """The controller is another one: nothing more is announced. A call that is under way ends by itself."""
        self._is_dropped = True
        for broker in list(self._lines):
            self.disconnect(broker)
        self._answers.clear()

    async def close(self, own: BrokerId) -> None:
        """As `drop`; the call that is under way in this broker itself has ended, or takes too long.

        What others have begun they end without us, and the next controller announces everything anew. One that is
        gone as well would never answer, and no broker can be the controller before this one has left the tree.
        """
        tasks = {broker: line.task for broker, line in self._lines.items() if line.task is not None}
        self.drop()
        waited_for = tasks.pop(own, None)
        for task in tasks.values():
            task.cancel()
        if waited_for is not None:
            _, late = await asyncio.wait([waited_for], timeout=_END_S)
            for task in late:
                task.cancel()

    def _close(self, line: _Line) -> None:
        line.is_closed = True
        line.queue.release()
        if line.is_pausing and line.task is not None:
            line.task.cancel()

    # One line.

    def _work(self, line: _Line) -> None:
        if line.task is None and not line.is_closed:
            line.task = asyncio.get_running_loop().create_task(self._run(line))

    async def _run(self, line: _Line) -> None:
        queue, tries = line.queue, 0
        try:
            while not line.is_closed and (call := queue.next()) is not None:
                if line.waits_since_ms is not None:
                    line.times.took(self._now_ms() - line.waits_since_ms)
                    line.waits_since_ms = None
                try:
                    outcome = await _called(line.receiver, call)
                except (Exception, asyncio.CancelledError) as fault:
                    if isinstance(fault, asyncio.CancelledError) and not is_stray(fault):
                        raise
                    if not line.is_closed:
                        queue.failed()
                        if line.waits_since_ms is None:
                            line.waits_since_ms = self._now_ms()
                        await self._pause(line, call, fault, tries)
                        tries += 1
                    continue
                tries = 0
                if not line.is_closed:
                    self._answered(queue.done(outcome))
        except BaseException:
            # The process ends, or the task was cancelled: nobody knows what became of the call.
            line.is_closed = True
            raise
        finally:
            line.task = None

    async def _pause(self, line: _Line, call: Announcement, fault: BaseException, tries: int) -> None:
        pause_s = min(_AGAIN_S * 2 ** min(tries, 16), _AGAIN_S_MAX)
        known = isinstance(fault, NotAnnounced)
        write = log.warning if known else log.error
        write(
            "an announcement was not carried out, and comes again",
            broker=line.queue.broker,
            what=type(call).__name__,
            again_s=pause_s,
            fault=str(fault) if known else "".join(traceback.format_exception(fault)),
        )
        self._on_fault(line.queue.broker, fault)
        line.is_pausing = True
        try:
            await asyncio.sleep(pause_s)
        finally:
            line.is_pausing = False

    def _answered(self, answers: Sequence[Answer]) -> None:
        if answers:
            self._answers += answers
            self._on_answers()


async def _called(receiver: Receiver, call: Announcement) -> AnnouncementOutcome:
    if isinstance(call, Metadata):
        await receiver.on_metadata_update(call.update)
        return None
    if isinstance(call, NewLogs):
        return await receiver.on_new_replicas(call.states)
    if isinstance(call, Roles):
        return await receiver.on_leader_and_isr(call.states)
    return await receiver.on_stop_replicas(call.stops)
