"""What an API needs is imported by a worker before it is served, the rooms of a coordinator that it asks included."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

import pytest

from ottla.handlers.calls import loading
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


class Threads:
    """Workers that do a thing when they are asked, and note how long the broker had rested by then."""

    def __init__(self, looks: list[int]) -> None:
        self._looks = looks
        self.begun: list[int] = []

    def thread(self, work: Callable[[], None]) -> asyncio.Future[None]:
        self.begun.append(len(self._looks))
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        try:
            work()
            done.set_result(None)
        except ImportError as error:
            done.set_exception(error)
        return done


@pytest.fixture
def nothing_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loading, "_LOADED", set())
    monkeypatch.setattr(loading, "_LOOK_S", 0.0)


@pytest.mark.usefixtures("nothing_loaded")
@pytest.mark.parametrize(("resting_ms", "looks_each"), [(1000, 1), (0, 10)])
def test_what_nobody_has_asked_for_is_brought_at_rest_and_without_rest_too(resting_ms: int, looks_each: int) -> None:
    looks: list[int] = []
    workers = Threads(looks)

    def rests() -> int:
        looks.append(resting_ms)
        return resting_ms

    loading.load_api(18)
    asyncio.run(loading.load_what_is_left(workers, rests))  # type: ignore[arg-type] # one method of theirs
    assert all(map(loading.is_loaded, ROUTES))
    assert workers.begun == [looks_each * (1 + number) for number in range(len(ROUTES) - 1)]


@pytest.mark.usefixtures("nothing_loaded")
def test_an_api_that_cannot_be_imported_keeps_no_other_from_it(monkeypatch: pytest.MonkeyPatch) -> None:
    broken = next(iter(ROUTES))
    monkeypatch.setitem(loading.ROUTES, broken, ROUTES[broken]._replace(module="there_is_none"))
    asyncio.run(loading.load_what_is_left(Threads([]), lambda: 1000))  # type: ignore[arg-type] # one method of theirs
    assert {key for key in ROUTES if not loading.is_loaded(key)} == {broken}
