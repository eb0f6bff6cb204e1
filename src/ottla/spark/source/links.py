"""Connections that a process keeps: one to each broker that its tasks read from, from one task to the next.

Spark reuses its worker processes and runs one task at a time in each, so a link lives in a variable of this module and
is found again by the client's settings. A new task then neither connects nor asks for versions.
"""

from __future__ import annotations

import asyncio
import os
from collections import OrderedDict
from collections.abc import Callable, Coroutine, Mapping
from concurrent.futures import Future
from threading import Lock
from typing import Any, Final, TypeVar

from ottla.client.errors import NoBrokerReached
from ottla.client.settings import ConsumerSettings
from ottla.client.sync.loop_thread import LoopThread
from ottla.client.wire.cluster import Cluster
from ottla.client.wire.world import real_world
from ottla.spark.options import BROKERS_AWAY, parsed_client_settings

Result = TypeVar("Result")

#: Clusters, or ways to read one, that a process keeps connections to; the one that was not used for longest is closed.
LINKS_MAX: Final = 8
#: Longer than Spark takes between two tasks of a busy worker, shorter than it keeps one that has nothing to do.
IDLE_SECONDS_MAX: Final = 30.0


class Link:
    """A way to a cluster, and a thread whose event loop talks to it.

    What nobody has used for a while is closed and made anew when it is wanted again: a worker that waits for tasks does
    not try for ever to reach a broker that is gone.
    """

    def __init__(self, settings: Mapping[str, str]) -> None:
        self.settings = parsed_client_settings(ConsumerSettings, {"client.id": "ottla-spark", **settings})
        self._thread = LoopThread("ottla-spark")
        self._cluster: Cluster | None = None
        #: How many are at work with it. All of this is touched in the loop's thread alone.
        self._busy = 0
        self._idle_timer: asyncio.TimerHandle | None = None
        self._closing: asyncio.Task[None] | None = None

    def run(self, work: Callable[[Cluster], Coroutine[Any, Any, Result]]) -> Result:
        """The result of a coroutine that runs in the link's thread."""
        return self._thread.run(lambda: self._at_work(work))

    def begin(self, work: Callable[[Cluster], Coroutine[Any, Any, Result]]) -> Future[Result]:
        """The same without waiting for the result."""
        return self._thread.begin(lambda: self._at_work(work))

    async def _at_work(self, work: Callable[[Cluster], Coroutine[Any, Any, Result]]) -> Result:
        if self._idle_timer is not None:
            self._idle_timer.cancel()
            self._idle_timer = None
        if self._cluster is None:
            self._cluster = Cluster(self.settings, real_world())
        self._busy += 1
        try:
            return await work(self._cluster)
        except NoBrokerReached as error:
            raise NoBrokerReached(f"{error}: {BROKERS_AWAY}", code=error.code, faults=error.faults) from error
        finally:
            self._busy -= 1
            if not self._busy:
                self._idle_timer = asyncio.get_running_loop().call_later(IDLE_SECONDS_MAX, self._grew_idle)

    def _grew_idle(self) -> None:
        self._idle_timer = None
        assert not self._busy, "whoever comes to work stops the timer"
        cluster, self._cluster = self._cluster, None
        if cluster is not None:
            self._closing = asyncio.get_running_loop().create_task(cluster.close())

    @property
    def connected(self) -> bool:
        return self._cluster is not None

    def close(self) -> None:
        self._thread.run(self._closed)
        self._thread.end()

    async def _closed(self) -> None:
        if self._idle_timer is not None:
            self._idle_timer.cancel()
        if self._cluster is not None:
            await self._cluster.close()


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
