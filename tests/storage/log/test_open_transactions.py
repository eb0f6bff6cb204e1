"""Open transactions against a model that goes through all of them; and that readers' questions do not."""

from __future__ import annotations

import random
from collections.abc import Callable
from copy import deepcopy

import pytest
from tests.searches import seeds

from ottla.storage.log.producers.open_transactions import ENDED_KEPT_MAX, OpenTransactions


class Model:
    """What is open, and what has ended with a marker that may not be committed."""

    def __init__(self) -> None:
        self.open: list[int] = []
        self.ended: list[tuple[int, int]] = []

    def first_unstable(self, high_watermark: int) -> int | None:
        uncommitted = [first for first, marker in self.ended if marker >= high_watermark]
        return min([*self.open, *uncommitted], default=None)


@pytest.mark.parametrize("seed", seeds(20, 400))
def test_as_a_model_that_goes_through_all(seed: int) -> None:
    draw = random.Random(seed)
    found, model = OpenTransactions(), Model()
    written = deepcopy(model)
    offset = end_offset = high_watermark = 0

    def begin() -> None:
        found.begin(offset)
        model.open.append(offset)

    def end() -> None:
        if model.open:
            first = draw.choice([model.open[0], draw.choice(model.open)])
            found.end(first, offset)
            model.open.remove(first)
            model.ended.append((first, offset))

    def commit() -> None:
        nonlocal written, end_offset
        found.commit()
        end_offset = offset + 1
        written = deepcopy(model)

    def roll_back() -> None:
        nonlocal model
        found.rollback()
        model = deepcopy(written)

    def move_on() -> None:
        nonlocal high_watermark
        high_watermark = draw.randint(high_watermark, max(high_watermark, end_offset))

    steps: list[Callable[[], None]] = [begin, begin, end, end, commit, roll_back, move_on]
    for _ in range(300):
        offset += 1
        draw.choice(steps)()
        if draw.random() < 0.7:
            assert found.first() == min(model.open, default=None)
            assert found.first_unstable(high_watermark) == model.first_unstable(high_watermark)
        assert len(found) == len(model.open)
    assert OpenTransactions(model.open).first() == min(model.open, default=None)


class Looked(int):
    """Counts how often an offset is looked up."""

    times = 0

    def __hash__(self) -> int:
        Looked.times += 1
        return int(self)


@pytest.mark.parametrize("in_order", [True, False])
def test_a_question_looks_at_few_of_very_many(in_order: bool) -> None:
    count = 4 * ENDED_KEPT_MAX
    firsts = [Looked(number) for number in range(count)]
    found = OpenTransactions()
    for first in firsts:
        found.begin(first)
    found.commit()
    Looked.times = 0
    for number, first in enumerate(firsts if in_order else reversed(firsts)):
        found.end(first, count + number)
        if number % 8 == 7:
            found.commit()
        found.first_unstable(count + number)
    assert len(found) == 0
    assert Looked.times <= 16 * count


def test_those_that_have_ended_behind_one_that_is_held_open_take_no_memory() -> None:
    found = OpenTransactions()
    found.begin(0)
    for offset in range(1, 8 * ENDED_KEPT_MAX, 2):
        found.begin(offset)
        found.end(offset, offset + 1)
        found.commit()
        assert found.first_unstable(offset + 2) == 0
        assert len(found._order) <= ENDED_KEPT_MAX + 4
        assert len(found._uncommitted) <= 1


def test_what_was_taken_back_may_come_again() -> None:
    found = OpenTransactions([3])
    found.begin(5)
    found.end(3, 6)
    found.end(5, 7)
    assert found.first() is None
    assert found.first_unstable(0) == 3
    found.rollback()
    assert (found.first(), len(found)) == (3, 1)
    found.begin(5)
    found.commit()
    found.end(3, 6)
    found.commit()
    assert found.first() == 5
    assert found.first_unstable(6) == 3
    assert found.first_unstable(7) == 5
