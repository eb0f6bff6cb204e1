"""How far a search goes: a few of its cases in `./test`, all others in `./test --slow`."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import combinations
from typing import Any, Final

import pytest
from hypothesis import settings

#: What Hypothesis draws where a test does not say how many.
_USUAL: Final = 100


def seeds(few: int, all_of_them: int) -> list[Any]:
    """For ``parametrize``: the first ``few`` seeds as they are, the others marked as slow."""
    return some(range(all_of_them), *range(few))


def some(cases: Iterable[Any], *sharp: Any) -> list[Any]:
    """For ``parametrize``: the ``sharp`` ones of all cases as they are, the others marked as slow."""
    return [case if case in sharp else slow(case) for case in cases]


def spread(few: int, cases: Iterable[Any]) -> list[Any]:
    """For ``parametrize``: ``few`` of the cases as they are, evenly from the first to the last, the others as slow."""
    found = list(cases)
    kept = {number * len(found) // few for number in range(few)}
    return [case if at in kept else slow(case) for at, case in enumerate(found)]


def slow(case: Any) -> Any:
    """A case of ``parametrize``, with what it has of an id and of marks, that ``./test --slow`` has."""
    if isinstance(case, type(pytest.param())):
        return pytest.param(*case.values, id=case.id, marks=[*case.marks, pytest.mark.slow])
    return pytest.param(*(case if isinstance(case, tuple) else (case,)), marks=pytest.mark.slow)


def examples(count: int, **others: Any) -> settings:
    """For Hypothesis: ``count`` examples in ``./test --slow``, and in ``./test`` fewer in the measure of all others."""
    usual = settings().max_examples
    return settings(max_examples=max(1, count * usual // _USUAL), **others)


def left_out(items: Iterable[pytest.Item]) -> Iterator[pytest.Item]:
    """Of tests with the mark ``in_turns``, the cases that only ``./test --slow`` has.

    Of two parameters every value stays with some value of the other; of more, every two values stay together.
    """
    functions: defaultdict[object, list[pytest.Function]] = defaultdict(list)
    for item in items:
        marks = {mark.name for mark in item.iter_markers()}
        if isinstance(item, pytest.Function) and "in_turns" in marks and "slow" not in marks:
            functions[item.path, item.originalname].append(item)
    for cases in functions.values():
        values = [case.callspec.params if hasattr(case, "callspec") else {} for case in cases]
        yield from (cases[number] for number in spare(values))


def spare(cases: Sequence[Mapping[str, object]]) -> Iterator[int]:
    """Those of the cases that have nothing which another one has not: of each, the values of its parameters."""
    # Of each parameter, the how manieth of its values each case has. What always changes together is one parameter.
    columns = {_places([repr(case[name]) for case in cases]) for name in cases[0]}
    varying = sorted(column for column in columns if len(set(column)) > 1)
    places = [dict(enumerate(place)) for place in zip(*varying, strict=True)] or [{} for _ in cases]
    covered: set[frozenset[tuple[int, int]]] = set()
    for number in sorted(range(len(places)), key=lambda number: _turn(places[number])):
        together = _together(places[number])
        if covered.issuperset(together):
            yield number
        covered.update(together)


def _places(values: Sequence[str]) -> tuple[int, ...]:
    known = {value: place for place, value in enumerate(dict.fromkeys(values))}
    return tuple(known[value] for value in values)


def _turn(place: Mapping[int, int]) -> int:
    """The diagonal comes first: (0, 0), (1, 1), (2, 2), and then what lies beside it."""
    return max(place.values(), default=0) - min(place.values(), default=0)


def _together(place: Mapping[int, int]) -> list[frozenset[tuple[int, int]]]:
    return [frozenset(some) for some in combinations(place.items(), min(len(place), 2 if len(place) > 2 else 1))]
