"""When sessions run out, beside the plainest way to know it."""

from __future__ import annotations

import random

import pytest
from tests.searches import seeds

from ottla.coordination.leases import OVERDUE_A_LOOK_MAX, SessionLeases


@pytest.mark.parametrize("seed", seeds(5, 20))
def test_leases_run_out_when_they_should(seed: int) -> None:
    choice = random.Random(seed)
    leases = SessionLeases()
    plain: dict[int, tuple[int, int]] = {}
    now = 0
    for _ in range(2_000):
        now += choice.randrange(20)
        session = choice.randrange(30)
        kind = choice.randrange(5)
        if kind == 0:
            timeout = choice.choice((100, 200, 1_000))
            leases.grant(session, timeout, now)
            plain[session] = (timeout, now + timeout)
        elif kind == 1:
            leases.touch(session, now)
            if session in plain:
                plain[session] = (plain[session][0], now + plain[session][0])
        elif kind == 2:
            left = choice.choice((0, 50, 400))
            leases.shorten(session, left, now)
            if session in plain:
                timeout, end = plain[session]
                plain[session] = (timeout, min(end, now + left))
        elif kind == 3 and choice.random() < 0.3:
            leases.drop(session)
            plain.pop(session, None)
        else:
            overdue = leases.overdue(now)
            assert sorted(overdue) == sorted(each for each, (_, end) in plain.items() if end <= now)
            assert [plain[each][1] for each in overdue] == sorted(plain[each][1] for each in overdue)
            for each in choice.sample(overdue, len(overdue) // 2):
                leases.drop(each)
                del plain[each]
        assert len(leases) == len(plain)
    # A touch or a grant leaves nothing behind for ever.
    leases.overdue(now + 10_000)
    assert len(leases._ends) <= len(plain) + 30


def test_very_many_that_run_out_at_once_are_named_some_at_a_time() -> None:
    leases = SessionLeases()
    count = OVERDUE_A_LOOK_MAX * 2 + 10
    for session in range(count):
        leases.grant(session, 100, session % 7)
    ended = 0
    while overdue := leases.overdue(1_000):
        assert len(overdue) <= OVERDUE_A_LOOK_MAX
        for session in overdue:
            leases.drop(session)
        ended += len(overdue)
    assert ended == count
