"""What `./test` leaves to `./test --slow` is had in another case."""

from __future__ import annotations

from itertools import combinations, product
from typing import Any

import pytest

from tests.searches import seeds, slow, some, spare, spread


def is_slow(case: Any) -> bool:
    return any(mark.name == "slow" for mark in getattr(case, "marks", ()))


@pytest.mark.parametrize(
    ("sizes", "at_most"), [((7,), 7), ((2, 5), 5), ((1, 5), 5), ((2, 2, 2), 5), ((2, 2, 5, 2), 12), ((2, 1, 2, 5), 11)]
)
def test_every_value_or_every_two_of_them_stay(sizes: tuple[int, ...], at_most: int) -> None:
    places: list[dict[str, int]] = [dict(zip("abcd", indices, strict=False)) for indices in product(*map(range, sizes))]
    left_out = set(spare(places))
    kept = [place for number, place in enumerate(places) if number not in left_out]
    assert len(kept) <= at_most
    strength = 1 if sum(size > 1 for size in sizes) < 3 else 2
    for names in combinations("abcd"[: len(sizes)], strength):
        values = [tuple(place[name] for name in names) for place in kept]
        assert set(values) == set(product(*(range(sizes["abcd".index(name)]) for name in names)))


def test_what_always_changes_together_is_one_parameter() -> None:
    cases = [{"given": given, "said": f"about {given}", "pure": pure} for given, pure in product("abc", [True, False])]
    assert len(cases) - len(set(spare(cases))) == 3


def test_without_parameters_or_with_one_value_a_test_stays() -> None:
    assert list(spare([{}])) == []
    assert list(spare([{"only": 1}])) == []


def test_the_first_seeds_the_sharp_cases_or_some_evenly() -> None:
    assert [is_slow(case) for case in seeds(2, 4)] == [False, False, True, True]
    assert [is_slow(case) for case in some("abc", "b")] == [True, False, True]
    assert [number for number, case in enumerate(spread(3, range(9))) if not is_slow(case)] == [0, 3, 6]
    assert spread(3, "ab") == ["a", "b"]


def test_a_slow_case_keeps_its_values_its_id_and_its_marks() -> None:
    assert slow(("a", 1)).values == ("a", 1)
    assert slow([1, 2]).values == ([1, 2],)
    case = slow(pytest.param(1, id="one", marks=pytest.mark.java))
    assert (case.values, case.id, [mark.name for mark in case.marks]) == ((1,), "one", ["java", "slow"])
