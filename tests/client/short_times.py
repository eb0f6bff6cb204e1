"""Time-outs that are short for one silence only: what comes before it and behind it has the time that it takes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def having(client: Any, **settings: int) -> Iterator[None]:
    """Within the block the living client has these settings instead of its own.

    A time-out of a client bounds everything that it does, its first connection too: on a busy machine one that is made
    for a silence would end that as well.
    """
    before = {name: getattr(client.settings, name) for name in settings}
    _set(client, settings)
    try:
        yield
    finally:
        _set(client, before)


def _set(client: Any, settings: dict[str, int]) -> None:
    for name, value in settings.items():
        object.__setattr__(client.settings, name, value)  # they are frozen
