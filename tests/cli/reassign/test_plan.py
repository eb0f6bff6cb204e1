"""What a plan starts from: copies are counted as they will be, and none is given up unasked."""

from __future__ import annotations

import pytest

from ottla.cli.faults import FAILED, CommandFault
from ottla.cli.reassign.plan import destined, refuse_fewer_copies
from ottla.client.admin.results import Reassignment

#: From brokers 1 and 2 to 3 and 2.
MOVE = Reassignment(replicas=(3, 2, 1), adding=(3,), removing=(1,))


def test_a_partition_on_its_way_has_the_copies_that_it_will_have() -> None:
    assert destined([3, 2, 1], MOVE) == [3, 2]
    assert destined([1, 2], None) == [1, 2]


def test_a_move_that_has_ended_meanwhile_takes_nothing_away() -> None:
    assert destined([3, 2], MOVE) == [3, 2]
    assert destined([1, 2], MOVE) == [1, 2]  # it was called off


@pytest.mark.parametrize(
    ("placements", "said"),
    [
        ([[1, 2, 3], [1, 2]], "1 partition has 3 copies, and there are 2 brokers to use: --replication-factor 2"),
        ([[1, 2, 3], [2, 3, 1]], "2 partitions have 3 copies, and there are 2 brokers to use"),
    ],
)
def test_a_broker_that_is_away_costs_no_copy(placements: list[list[int]], said: str) -> None:
    with pytest.raises(CommandFault, match=said) as fault:
        refuse_fewer_copies(placements, 2)
    assert fault.value.code == FAILED


def test_as_many_copies_as_brokers_are_planned_for() -> None:
    refuse_fewer_copies([[1, 2], [3]], 2)
    refuse_fewer_copies([], 2)
