"""The caller of a coordinator, and the time of its call. Cores read no clock: time comes in with the request."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple


class Now(NamedTuple):
    #: For what is written down: commit times, expiry of offsets.
    wall_ms: int
    #: For what is waited for: sessions, rebalances. It never goes back.
    monotonic_ms: int


class Caller(NamedTuple):
    client_id: str
    host: str
    version: int
    now: Now
    #: Whether it may know of a topic, where a group is to find out by itself which ones it reads; None: of all.
    may_describe: Callable[[str], bool] | None = None
