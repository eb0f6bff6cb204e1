"""What an API needs is imported by a worker before it is served, the rooms of a coordinator that it asks included."""

from __future__ import annotations

import re
from importlib.util import find_spec
from pathlib import Path

import pytest

from ottla.handlers.calls.loading import ASK_GROUPS, ASK_TRANSACTIONS
from ottla.handlers.routes import ROUTES

#: The controller's announcement, whose roles make coordinators: it asks them by what it sets off.
LEADER_AND_ISR = 4


def asking(what: str) -> set[int]:
    """APIs whose handler has a coordinator made where there is none, which imports it."""
    found = set()
    for key, route in ROUTES.items():
        spec = find_spec(f"ottla.handlers.{route.module}")
        assert spec is not None
        assert spec.origin is not None
        if re.search(rf"services\.{what}\b", Path(spec.origin).read_text(encoding="utf-8")):
            found.add(key)
    return found


@pytest.mark.parametrize(("what", "loaded"), [("groups", ASK_GROUPS), ("transactions", ASK_TRANSACTIONS)])
def test_the_rooms_of_a_coordinator_are_loaded_with_every_api_that_asks_it(what: str, loaded: frozenset[int]) -> None:
    assert asking(what) | {LEADER_AND_ISR} == loaded
