"""Connections that a process keeps: one to each broker that its tasks read from, from one task to the next.

Spark reuses its worker processes and runs one task at a time in each, so a link lives in a variable of this module and
is found again by the client's settings. A new task then neither connects nor asks for versions.
"""

from __future__ import annotations

import os
from collections import OrderedDict
from collections.abc import Callable, Coroutine, Mapping
from concurrent.futures import Future
from threading import Lock
from typing import Any, Final, TypeVar

from ottla.client.settings import ConsumerSettings
from ottla.client.sync.loop_thread import LoopThread
from ottla.client.wire.cluster import Cluster
from ottla.client.wire.world import real_world
from ottla.spark.options import parsed_client_settings

Result = TypeVar("Result")

#: Clusters, or ways to read one, that a process keeps connections to; the one that was not used for longest is closed.
LINKS_MAX: Final = 8


class Link:
    """A cluster, and a thread whose event loop talks to it."""

    def __init__(self, settings: Mapping[str, str]) -> None:
        self.settings = parsed_client_settings(ConsumerSettings, {"client.id": "ottla-spark", **settings})
        self._thread = LoopThread("ottla-spark")
        self.cluster = Cluster(self.settings, real_world())

    def run(self, work: Callable[[Cluster], Coroutine[Any, Any, Result]]) -> Result:
        return self._thread.run(lambda: work(self.cluster))

    def begin(self, work: Callable[[Cluster], Coroutine[Any, Any, Result]]) -> Future[Result]:
        return self._thread.begin(lambda: work(self.cluster))

    def close(self) -> None:
        self._thread.run(self.cluster.close)
        self._thread.end()


_kept: OrderedDict[tuple[tuple[str, str], ...], Link] = OrderedDict()
_keeper = os.getpid()
_lock = Lock()


def link(settings: Mapping[str, str]) -> Link:
    """The process's link under these settings. A fork has none of its parent's, whose thread it does not have."""
    global _keeper  # noqa: PLW0603 - as said above, it is the process that keeps them
    name = tuple(sorted(settings.items()))
    with _lock:
        if _keeper != os.getpid():
            _kept.clear()
            _keeper = os.getpid()
        found = _kept.get(name)
        if found is None:
            found = _kept[name] = Link(settings)
        _kept.move_to_end(name)
        eldest = _kept.popitem(last=False)[1] if len(_kept) > LINKS_MAX else None
    if eldest is not None:
        eldest.close()
    return found


def close_links() -> None:
    with _lock:
        kept = list(_kept.values())
        _kept.clear()
    for one in kept:
        one.close()
