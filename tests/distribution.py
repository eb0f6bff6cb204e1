"""Which tests run side by side: a file's tests, and those of an `xdist_group`, are one worker's, from first to last.

What a file's tests share is then made once and not once a worker. What waits for other programs, or takes long in one
piece, begins first: no worker is alone with it at the end.
"""

from __future__ import annotations

from typing import Final

import pytest
from xdist.scheduler.loadgroup import LoadGroupScheduling

#: In this order, and all others behind them.
BEGIN_FIRST: Final = (
    "tests/interop/",
    "tests/coordination/",
    "tests/local_cluster/",
    "tests/spark/",
    "tests/testing/",
    "tests/native/test_sanitized.py",
    "tests/server/",
    "tests/cli/",
)


def in_order(items: list[pytest.Item]) -> None:
    def rank(item: pytest.Item) -> int:
        return next(
            (rank for rank, prefix in enumerate(BEGIN_FIRST) if item.nodeid.startswith(prefix)), len(BEGIN_FIRST)
        )

    items.sort(key=rank)


class FilesAndGroups(LoadGroupScheduling):  # type: ignore[misc]  # xdist has no types
    def _split_scope(self, nodeid: str) -> str:
        group = super()._split_scope(nodeid)
        return nodeid.partition("::")[0] if group == nodeid else group
