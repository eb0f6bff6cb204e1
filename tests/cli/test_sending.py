"""What `produce` says where it ends before its input does: of the records before that place, what is known of them."""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import AsyncIterator
from types import SimpleNamespace
from typing import Any

import pytest

from ottla.cli.faults import UNREACHABLE, CommandFault
from ottla.cli.lines import LineFault, ParsedRecord
from ottla.cli.produce import _Sending
from ottla.cli.reachability import BrokerWatch
from ottla.client.errors import DeliveryTimedOut

OPTIONS = argparse.Namespace(
    partition=None, ignore_place=False, key=None, header=[], timestamp=None, tombstone=False, format=None
)
RECORD = ParsedRecord(None, b"v", [])


class Outcome:
    def __init__(self, error: BaseException | None) -> None:
        self.error = error

    def exception(self) -> BaseException | None:
        return self.error


class LateProducer:
    """Keeps what it is given until it is flushed or closed; `error` is what becomes of all but the first."""

    def __init__(self, error: BaseException | None = None, transactional_id: str | None = None) -> None:
        self.settings = SimpleNamespace(transactional_id=transactional_id)
        self.error = error
        self.closed_within_ms: int | None = None
        self._waiting: list[Any] = []
        self._first = True

    async def send(self, *_: Any, on_delivery: Any, **__: Any) -> None:
        self._waiting.append(on_delivery)

    async def flush(self) -> None:
        while self._waiting:
            self._waiting.pop(0)(Outcome(None if self._first else self.error))
            self._first = False

    async def close(self, timeout_ms: int) -> None:
        self.closed_within_ms = timeout_ms
        await self.flush()


def sending(producer: LateProducer) -> _Sending:
    # A watch that has begun nothing, so that for it no broker is away.
    return _Sending(producer, "t", OPTIONS, None, BrokerWatch(None))  # type: ignore[arg-type]


async def source(count: int, end: BaseException) -> AsyncIterator[tuple[list[ParsedRecord], int]]:
    yield [RECORD] * count, count
    raise end


def ended(producer: LateProducer, count: int, end: BaseException) -> CommandFault:
    with pytest.raises(CommandFault) as fault:
        asyncio.run(sending(producer).send_all(source(count, end)))
    return fault.value


UNREAD = CommandFault("standard input cannot be read: Input/output error", UNREACHABLE)


@pytest.mark.parametrize("end", [LineFault("it is none"), UNREAD])
def test_records_that_failed_are_not_said_to_be_sent(end: BaseException) -> None:
    fault = ended(LateProducer(DeliveryTimedOut("nobody took it")), 3, end)
    assert (str(fault), fault.code) == ("2 records were not acknowledged: nobody took it", UNREACHABLE)


def test_what_was_sent_before_a_line_that_is_none() -> None:
    assert str(ended(LateProducer(), 2, LineFault("it is none"))) == "line 3: it is none; 2 records before it were sent"


def test_what_was_sent_before_the_input_could_not_be_read() -> None:
    fault = ended(LateProducer(), 1, UNREAD)
    assert (str(fault), fault.code) == (f"{UNREAD}; 1 record before it was sent", UNREACHABLE)


@pytest.mark.parametrize(
    ("count", "said"), [(2, "the transaction is aborted, with 2 records before it"), (0, "the transaction is aborted")]
)
def test_of_an_aborted_transaction_nothing_was_sent(count: int, said: str) -> None:
    fault = ended(LateProducer(transactional_id="x"), count, LineFault("it is none"))
    assert str(fault) == f"line {count + 1}: it is none; {said}"


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (None, ""),
        (
            DeliveryTimedOut("x"),
            "ottla: interrupted: 1 of 3 records was acknowledged; of the others nothing is known\n",
        ),
    ],
)
def test_ctrl_c_does_not_wait_for_a_broker_that_is_away(
    error: BaseException | None, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    producer = LateProducer(error)

    async def interrupted() -> None:
        one = sending(producer)
        try:
            await one.send_all(source(3, asyncio.CancelledError()))
        finally:
            await one.give_up()

    with pytest.raises(asyncio.CancelledError):
        asyncio.run(interrupted())
    assert producer.closed_within_ms == 5000
    assert capsys.readouterr().err == said
