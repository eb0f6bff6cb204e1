"""Whose turn it is in the store's queue: as they came, but that long writes let others go first, and not for ever."""

from __future__ import annotations

from typing import Any

from ottla.coordination import Create
from ottla.coordination.requests import ReadRequest, WriteRequest
from ottla.coordination.sessions import STORE_SESSION
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
        add(waiting, request)
    return waiting


def add(waiting: WaitingRequests, request: StoreRequest) -> None:
    waiting.add(request, len(request.ops) if isinstance(request, WriteRequest) else 1)


def taken(waiting: WaitingRequests) -> list[StoreRequest]:
    return [waiting.take() for _ in range(len(waiting))]


def test_short_ones_are_served_as_they_came() -> None:
    requests = [write(session) if session % 3 else read(session) for session in range(50)]
    waiting = queue(*requests[:20])
    first = [waiting.take() for _ in range(10)]
    for request in requests[20:]:
        add(waiting, request)
    assert first + taken(waiting) == requests


def test_a_long_one_lets_those_behind_it_go_first_but_its_own_session() -> None:
    long, other, own = write(1, LONG), read(2), read(1)
    waiting = queue(long, own, other)
    assert waiting.first is other
    assert taken(waiting) == [other, long, own]
    assert waiting.first is None


def test_a_long_one_stands_behind_what_its_session_asked_for_before() -> None:
    """However many have gone before the long ones of others."""
    waiting = queue(write(1, LONG), *(write(3) for _ in range(LONG_OPS + 1)))
    for _ in range(LONG_OPS + 1):
        waiting.take()
    own, long = write(2), write(2, LONG_OPS + 1)
    add(waiting, own)
    add(waiting, long)
    assert taken(waiting)[:2] == [own, long]


def test_of_long_ones_the_shorter_is_first_and_a_session_keeps_its_order() -> None:
    longest, shorter, second = write(1, 3 * LONG), write(2, LONG), write(1, LONG)
    assert taken(queue(longest, second, shorter)) == [shorter, longest, second]


def test_a_long_one_waits_for_no_more_than_it_is_itself() -> None:
    long = write(1, LONG)
    waiting = queue(long)
    passed = 0
    while True:
        add(waiting, read(2))
        if waiting.take() is long:
            break
        passed += 1
    assert passed <= LONG


def test_a_short_one_waits_for_one_long_one_however_many_there_are() -> None:
    waiting = queue(*(write(session, LONG) for session in range(16)))
    waiting.take()  # it is under way
    short = read(20)
    add(waiting, short)
    assert waiting.first is short
    assert len(taken(waiting)) == 16


def test_ends_of_sessions_with_many_nodes_are_long_and_hold_up_no_new_session() -> None:
    """What a request takes, its operations do not always say: the store counts."""
    ends, opened = [write(STORE_SESSION) for _ in range(16)], write(STORE_SESSION)
    waiting = WaitingRequests()
    for end in ends:
        waiting.add(end, LONG)
    add(waiting, opened)
    assert taken(waiting) == [opened, *ends]


def test_a_session_keeps_its_order_behind_a_multi_of_nothing() -> None:
    first, other, nothing = write(1, LONG), write(2, LONG), write(1, 0)
    waiting = queue(first, other, nothing)
    assert waiting.take() is first
    last = write(1)
    add(waiting, last)
    assert taken(waiting) == [other, nothing, last]
