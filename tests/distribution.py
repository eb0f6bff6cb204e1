"""Which tests run side by side: a file's tests, and those of an `xdist_group`, are one worker's, from first to last.

What a file's tests share is then made once and not once a worker. What takes long in one piece begins first: no worker
is alone with it at the end. What waits for other programs and what computes take turns there, so that the processors
have something to do while a worker waits.
"""

from __future__ import annotations

from itertools import chain, zip_longest
from typing import Final

import pytest
from xdist.scheduler.loadgroup import LoadGroupScheduling

#: In these orders, in turns.
WAITING: Final = (
    "tests/test_several_machines.py",
    "tests/spark/",
    "tests/interop/",
    "tests/local_cluster/",
    "tests/coordination/",
    "tests/cli/",
)
COMPUTING: Final = ("tests/testing/sim/", "tests/native/test_sanitized.py", "tests/server/", "tests/testing/")


def in_order(items: list[pytest.Item]) -> None:
    turns = chain.from_iterable(zip_longest(_scopes(items, WAITING), _scopes(items, COMPUTING)))
    rank = {scope: turn for turn, scope in enumerate(turns)}
    items.sort(key=lambda item: rank.get(_scope(item), len(rank)))


def _scopes(items: list[pytest.Item], prefixes: tuple[str, ...]) -> list[str]:
    """Those of the tests below these folders, each once."""
    return list(dict.fromkeys(_scope(item) for prefix in prefixes for item in items if item.nodeid.startswith(prefix)))


def _scope(item: pytest.Item) -> str:
    group = item.get_closest_marker("xdist_group")
    return item.nodeid.partition("::")[0] if group is None else str(group.args[0])


class FilesAndGroups(LoadGroupScheduling):  # type: ignore[misc]  # xdist has no types
    def _split_scope(self, nodeid: str) -> str:
        group = super()._split_scope(nodeid)
        return nodeid.partition("::")[0] if group == nodeid else group
