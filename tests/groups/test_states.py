"""The table of a classic group's states."""

from __future__ import annotations

import pytest

from ottla.groups.classic.states import NEXT, Event, State, after


def test_every_state_can_end_and_the_end_is_final() -> None:
    for state in State:
        if state is State.DEAD:
            assert not any(source is state for source, _ in NEXT)
        else:
            assert after(state, Event.REMOVED) is State.DEAD


def test_what_leads_to_a_rebalance() -> None:
    sources = {state for (state, _), target in NEXT.items() if target is State.PREPARING_REBALANCE}
    assert sources == {State.EMPTY, State.STABLE, State.COMPLETING_REBALANCE}


@pytest.mark.parametrize(
    ("state", "event"),
    [
        (State.EMPTY, Event.ASSIGNED),
        (State.STABLE, Event.ASSIGNED),
        (State.PREPARING_REBALANCE, Event.REBALANCE_NEEDED),
        (State.DEAD, Event.REBALANCE_NEEDED),
        (State.STABLE, Event.NOBODY_LEFT),
    ],
)
def test_what_is_not_in_the_table_cannot_happen(state: State, event: Event) -> None:
    with pytest.raises(KeyError):
        after(state, event)
