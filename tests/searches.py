"""How far a random search goes: a few of its seeds in `./test`, all others in `./test --slow`."""

from __future__ import annotations

from typing import Any

import pytest


def seeds(few: int, all_of_them: int) -> list[Any]:
    """For ``parametrize``: the first ``few`` seeds as they are, the others marked as slow."""
    return [*range(few), *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(few, all_of_them))]
