"""Who leads: a table of what is and who lives."""

from __future__ import annotations

import pytest

from ottla.controller.electing.partitions import after_change, first_state
from ottla.coordination.znodes import LeaderAndIsr
from ottla.model import BrokerId, Epoch


def ids(*numbers: int) -> tuple[BrokerId, ...]:
    return tuple(map(BrokerId, numbers))


def test_the_first_leader_is_the_first_live_replica() -> None:
    assert first_state(ids(1, 2, 3), ids(3, 2), Epoch(7)) == LeaderAndIsr(Epoch(7), BrokerId(2), Epoch(0), ids(2, 3))
    assert first_state(ids(1, 2), (), Epoch(7)) is None


@pytest.mark.parametrize(
    ("leader", "isr", "live", "unclean", "expected"),
    [
        (1, (1, 2), (1, 2, 3), False, None),
        (1, (1, 2), (2, 3), False, (2, (2,))),
        # The order of the replicas decides, not that of the ISR.
        (1, (3, 1, 2), (2, 3), False, (2, (3, 2))),
        (1, (1, 2), (3,), False, (-1, (1, 2))),
        (1, (1, 2), (3,), True, (3, (3,))),
        (1, (1, 2), (), True, (-1, (1, 2))),
        (-1, (1, 2), (3,), False, None),
        (-1, (1, 2), (2, 3), False, (2, (2,))),
        (-1, (1, 2), (3,), True, (3, (3,))),
        # A member of the ISR that is no replica any more can lead still.
        (1, (1, 9), (9,), False, (9, (9,))),
    ],
)
def test_elections(
    leader: int,
    isr: tuple[int, ...],
    live: tuple[int, ...],
    unclean: bool,
    expected: tuple[int, tuple[int, ...]] | None,
) -> None:
    before = LeaderAndIsr(Epoch(3), BrokerId(leader), Epoch(5), ids(*isr))
    after = after_change(before, ids(1, 2, 3), ids(*live), Epoch(4), unclean=unclean)
    if expected is None:
        assert after is None
    else:
        assert after == LeaderAndIsr(Epoch(4), BrokerId(expected[0]), Epoch(6), ids(*expected[1]))
