"""A few bytes ask for an answer of hundreds of kilobytes: many of those together cost others no more than one does."""

from __future__ import annotations

from typing import Any

from tests.server.conftest import BrokerThread

from ottla.broker.broker import Broker
from ottla.handlers.calls.turns import SLICE_MS, SMALL_AT_ONCE, STEPS_A_LOOK, JobResult
from ottla.protocol.header import RequestHeader
from ottla.server.answer_memory import HELD_BYTES_MAX
from ottla.server.dispatch import Dispatcher
from ottla.steps import Steps

DESCRIBE_LOG_DIRS, METADATA, OFFSET_FETCH = 35, 3, 9


class Asker:
    """A connection of the dispatcher's whose answers nobody looks at."""

    host, closed = "peer", False

    def __init__(self) -> None:
        self.answers: list[Any] = []

    def answer(self, data: Any) -> None:
        self.answers.append(data)

    def answer_later(self, cancel: Any) -> None: ...

    def finish(self) -> None: ...

    def abort(self) -> None:
        raise AssertionError("nobody is to be closed")


def gathering(steps: list[int], count: int) -> Steps[bytes]:
    for number in range(count):
        steps.append(number)
        yield
    return b"answer"


def header(key: int) -> RequestHeader:
    return RequestHeader(api_key=key, api_version=1, correlation_id=1, client_id="test")


def work(dispatcher: Dispatcher, key: int, steps: Any) -> None:
    head = header(key)
    dispatcher._work(Asker(), head, dispatcher._finished(head, steps), 0)  # type: ignore[arg-type]


def test_while_there_is_no_room_for_long_answers_none_is_gathered(running: BrokerThread) -> None:
    def ask(broker: Broker) -> tuple[int, bool]:
        dispatcher = broker._dispatcher
        holder: Any = Asker()
        dispatcher._memory.note(holder, HELD_BYTES_MAX)
        steps: list[int] = []
        try:
            found = dispatcher._turns.slice(dispatcher._finished(header(METADATA), gathering(steps, 1000)))
        finally:
            dispatcher._memory.note(holder, 0)
        return len(steps), found is dispatcher._memory

    assert running.look(ask) == (STEPS_A_LOOK, True)


def test_what_ends_in_a_few_steps_needs_no_room(running: BrokerThread) -> None:
    def ask(broker: Broker) -> Any:
        dispatcher = broker._dispatcher
        holder: Any = Asker()
        dispatcher._memory.note(holder, HELD_BYTES_MAX)
        try:
            return dispatcher._turns.slice(dispatcher._finished(header(OFFSET_FETCH), gathering([], STEPS_A_LOOK - 1)))
        finally:
            dispatcher._memory.note(holder, 0)

    assert running.look(ask) == JobResult(b"answer")


def test_of_requests_that_gather_much_only_so_many_have_begun(running: BrokerThread) -> None:
    """Each first slice would hold what it has gathered until its turn comes again."""

    def ask(broker: Broker) -> tuple[int, int]:
        dispatcher = broker._dispatcher
        dispatcher.round.begin()
        all_steps: list[list[int]] = [[] for _ in range(10 * SMALL_AT_ONCE)]
        for steps in all_steps:
            work(dispatcher, DESCRIBE_LOG_DIRS, gathering(steps, 10_000))
        hurried: list[int] = []
        work(dispatcher, OFFSET_FETCH, gathering(hurried, 3))
        dispatcher.round.end()
        return sum(map(bool, all_steps)), len(hurried)

    assert running.look(ask) == (SMALL_AT_ONCE, 3)


def test_the_first_slices_of_a_round_end_together(running: BrokerThread) -> None:
    """A hundred requests of just under one slice each would hold up everybody else for all of it."""

    def ask(broker: Broker) -> int:
        dispatcher = broker._dispatcher
        dispatcher.round.begin()
        dispatcher.round.began_ms -= SLICE_MS
        steps: list[int] = []
        work(dispatcher, METADATA, gathering(steps, 10 * STEPS_A_LOOK))
        dispatcher.round.end()
        return len(steps)

    assert running.look(ask) == STEPS_A_LOOK
