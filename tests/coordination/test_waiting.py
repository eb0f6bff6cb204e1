"""Whose turn it is in the store's queue: as they came, but that long writes let others go first, and not for ever."""

from __future__ import annotations

from typing import Any

from ottla.coordination import Create
from ottla.coordination.requests import ReadRequest, WriteRequest
from ottla.coordination.waiting import LONG_OPS, StoreRequest, WaitingRequests

LONG = 10 * LONG_OPS


class Nobody:
    def done(self) -> bool:
        return False

    def set_result(self, _: Any, /) -> None: ...

    def set_exception(self, _: Any, /) -> None: ...


def write(session_id: int, ops: int = 1) -> WriteRequest:
    return WriteRequest(session_id, [Create("/a")] * ops, ops, Nobody())


def read(session_id: int) -> ReadRequest:
    return ReadRequest(session_id, lambda _: None, Nobody())


def queue(*requests: StoreRequest) -> WaitingRequests:
    waiting = WaitingRequests()
    for request in requests:
        waiting.add(request)
    return waiting


def taken(waiting: WaitingRequests) -> list[StoreRequest]:
    return [waiting.take() for _ in range(len(waiting))]


def test_short_ones_are_served_as_they_came() -> None:
    requests = [write(session) if session % 3 else read(session) for session in range(50)]
    waiting = queue(*requests[:20])
    first = [waiting.take() for _ in range(10)]
    for request in requests[20:]:
        waiting.add(request)
    assert first + taken(waiting) == requests


def test_a_long_one_lets_those_behind_it_go_first_but_its_own_session() -> None:
    long, other, own = write(1, LONG), read(2), read(1)
    waiting = queue(long, own, other)
    assert waiting.first is other
    assert taken(waiting) == [other, long, own]
    assert waiting.first is None


def test_of_long_ones_the_shorter_is_first_and_a_session_keeps_its_order() -> None:
    longest, shorter, second = write(1, 3 * LONG), write(2, LONG), write(1, LONG)
    assert taken(queue(longest, second, shorter)) == [shorter, longest, second]


def test_a_long_one_waits_for_no_more_than_it_is_itself() -> None:
    long = write(1, LONG)
    waiting = queue(long)
    passed = 0
    while True:
        waiting.add(read(2))
        if waiting.take() is long:
            break
        passed += 1
    assert passed <= LONG
