"""Which tests stay together, and in which order they begin.

A file's tests, and those of an `xdist_group`, are one worker's, from first to last: what they share is then made once.
What takes long in one piece begins first: no worker is alone with it at the end. What waits for other programs and what
computes take turns there, so that the processors have something to do while a worker waits.
"""

from __future__ import annotations

from itertools import chain, zip_longest
from typing import Final

import pytest

#: In these orders, in turns.
WAITING: Final = (
    "tests/spark/",
    "tests/interop/",
    "tests/local_cluster/",
    "tests/coordination/",
    "tests/cli/",
)
COMPUTING: Final = ("tests/testing/sim/", "tests/native/test_sanitized.py", "tests/server/", "tests/testing/")


def scopes(items: list[pytest.Item]) -> list[list[int]]:
    """The places of the tests that stay together, those first that are to begin first."""
    found: dict[str, list[int]] = {}
    first: dict[str, str] = {}
    for place, item in enumerate(items):
        scope = _scope(item)
        found.setdefault(scope, []).append(place)
        first.setdefault(scope, item.nodeid)
    ordered = chain.from_iterable(zip_longest(_below(first, WAITING), _below(first, COMPUTING)))
    return [found[scope] for scope in dict.fromkeys(chain(filter(None, ordered), found))]


def _below(first: dict[str, str], folders: tuple[str, ...]) -> list[str]:
    return [scope for folder in folders for scope, nodeid in first.items() if nodeid.startswith(folder)]


def _scope(item: pytest.Item) -> str:
    group = item.get_closest_marker("xdist_group")
    return item.nodeid.partition("::")[0] if group is None else str(group.args[0])
