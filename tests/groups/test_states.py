"""The table of a classic group's states."""

from __future__ import annotations

import pytest

from ottla.groups.classic.states import NEXT, ClassicGroupEvent, ClassicGroupState, after


def test_every_state_can_end_and_the_end_is_final() -> None:
    for state in ClassicGroupState:
        if state is ClassicGroupState.DEAD:
            assert not any(source is state for source, _ in NEXT)
        else:
            assert after(state, ClassicGroupEvent.REMOVED) is ClassicGroupState.DEAD


def test_what_leads_to_a_rebalance() -> None:
    sources = {state for (state, _), target in NEXT.items() if target is ClassicGroupState.PREPARING_REBALANCE}
    assert sources == {ClassicGroupState.EMPTY, ClassicGroupState.STABLE, ClassicGroupState.COMPLETING_REBALANCE}


@pytest.mark.parametrize(
    ("state", "event"),
    [
        (ClassicGroupState.EMPTY, ClassicGroupEvent.ASSIGNED),
        (ClassicGroupState.STABLE, ClassicGroupEvent.ASSIGNED),
        (ClassicGroupState.PREPARING_REBALANCE, ClassicGroupEvent.REBALANCE_NEEDED),
        (ClassicGroupState.DEAD, ClassicGroupEvent.REBALANCE_NEEDED),
        (ClassicGroupState.STABLE, ClassicGroupEvent.NOBODY_LEFT),
    ],
)
def test_what_is_not_in_the_table_cannot_happen(state: ClassicGroupState, event: ClassicGroupEvent) -> None:
    with pytest.raises(KeyError):
        after(state, event)
