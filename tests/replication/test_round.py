"""Who takes part in a round, from when on, and in which order."""

from __future__ import annotations

from unittest.mock import Mock

import pytest

from ottla.replication.round import Participant, Round


class Noted(Participant):
    def __init__(self, name: str, notes: list[str], rank: int = 2) -> None:
        self._name = name
        self._notes = notes
        self.rank = rank  # type: ignore[misc]

    def stage(self) -> None:
        self._notes.append(f"{self._name} stages")

    def answer(self) -> None:
        self._notes.append(f"{self._name} answers")


class Inviting(Noted):
    """Has another one join from inside one of its own steps."""

    def __init__(self, notes: list[str], this_round: Round, other: Participant) -> None:
        super().__init__("first", notes)
        self._round = this_round
        self._other = other

    def stage(self) -> None:
        super().stage()
        self._round.join(self._other)


@pytest.fixture
def this_round() -> Round:
    clock = Mock(monotonic_ms=lambda: 0, wall_ms=lambda: 0)
    return Round(Mock(), lambda: None, clock, lambda reason: pytest.fail(reason))


def run(this_round: Round) -> None:
    this_round.begin()
    this_round.end()


def test_those_of_a_lower_rank_are_asked_first_whenever_they_joined(this_round: Round) -> None:
    notes: list[str] = []
    this_round.join(Noted("second", notes))
    this_round.join(Noted("third", notes))
    this_round.join(Noted("first", notes, rank=0))

    run(this_round)

    assert notes == [
        *("first stages", "second stages", "third stages"),
        *("first answers", "second answers", "third answers"),
    ]


def test_who_joins_twice_is_asked_once(this_round: Round) -> None:
    notes: list[str] = []
    only = Noted("it", notes)
    this_round.join(only)
    this_round.join(only)

    run(this_round)

    assert notes == ["it stages", "it answers"]


def test_nobody_is_asked_twice_because_another_joins_before_it(this_round: Round) -> None:
    notes: list[str] = []
    other = Noted("other", notes, rank=0)
    this_round.join(Inviting(notes, this_round, other))

    run(this_round)
    assert notes == ["first stages", "other answers", "first answers"]
    notes.clear()
    run(this_round)
    assert notes == ["other stages", "first stages", "other answers", "first answers"]
