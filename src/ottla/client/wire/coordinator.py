"""The broker that coordinates a group or a transactional id: looked up, and looked up again where it has moved."""

from __future__ import annotations

import asyncio
from typing import Final

from ottla.client.errors import ClientClosed, KafkaError, error_of
from ottla.client.wire.backoff import Backoff
from ottla.client.wire.cluster import Cluster
from ottla.client.wire.connection import BrokerConnection
from ottla.client.wire.connections import CONTROL
from ottla.client.wire.coordinators import GROUP, coordinators
from ottla.model import ErrorCode

#: JoinGroup waits for all members, and a broker serves a connection's requests in their order: without a lane of its
#: own, it would keep heartbeats and commits waiting.
JOINS: Final = 2
#: The partition that it is kept in has another leader, or none, or is still being read.
MOVED: Final = frozenset({ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_NOT_AVAILABLE})
#: A cluster's first group has its offsets topic made, which takes some milliseconds: asked again soon at first.
_FIRST_PAUSE_MS: Final = 10


class Coordinator:
    def __init__(self, cluster: Cluster, key: str, key_type: int = GROUP) -> None:
        self._cluster = cluster
        #: The group's id, or the transactional one.
        self._key = key
        self._key_type = key_type
        settings = cluster.settings
        self._backoff = Backoff(
            min(_FIRST_PAUSE_MS, settings.retry_backoff_ms), settings.retry_backoff_max_ms, cluster.world.entropy
        )
        #: The broker's id while it is known.
        self.node_id: int | None = None
        self._search: asyncio.Task[int] | None = None

    async def connection(self, lane: int = CONTROL) -> BrokerConnection:
        """A connection to the coordinator; waits until there is one. Raises what no waiting changes, or a passing fault
        of the way there."""
        node_id = await self.found()
        if node_id not in self._cluster.metadata.nodes:
            await self._cluster.updated()
            if node_id not in self._cluster.metadata.nodes:
                self.forget(node_id)
                raise error_of(ErrorCode.COORDINATOR_NOT_AVAILABLE, f"the cluster has no broker {node_id} now")
        try:
            return await self._cluster.connections.to(node_id, lane)
        except KafkaError:
            self.forget(node_id)
            raise

    async def found(self) -> int:
        """The coordinator's id, asked for until there is one."""
        if self.node_id is not None:
            return self.node_id
        if self._search is None:
            self._search = asyncio.get_running_loop().create_task(self._find())
            self._search.add_done_callback(self._searched)
        search = self._search
        await asyncio.wait([search])
        if search.cancelled():  # by `close`: the callers that wait here were not
            raise ClientClosed("the client is closed")
        return search.result()

    async def _find(self) -> int:
        failures = 0
        if not self._cluster.metadata.nodes:
            self._cluster.request_update()  # at the same time: both are needed
        while True:
            try:
                found, errors = await coordinators(self._cluster, [self._key], self._key_type)
                if not errors:
                    self._cluster.on_coordinator(self._key, None)
                    return next(iter(found))
                raise errors[self._key]
            except KafkaError as error:
                if not error.retriable:
                    raise
                self._cluster.on_coordinator(self._key, error)
            failures += 1
            await asyncio.sleep(self._backoff.pause_ms(failures) / 1000)

    def _searched(self, task: asyncio.Task[int]) -> None:
        self._search = None
        if not task.cancelled() and task.exception() is None:
            self.node_id = task.result()

    def forget(self, node_id: int | None = None) -> None:
        """This broker does not coordinate it any more; None: whichever broker it was."""
        if node_id is None or node_id == self.node_id:
            self.node_id = None

    def blame(self, error: KafkaError) -> None:
        """Looks for another after a fault that says that this one is gone, or that it cannot be reached."""
        if error.code in MOVED or error.code in {ErrorCode.NETWORK_EXCEPTION, ErrorCode.REQUEST_TIMED_OUT}:
            self.forget()

    async def close(self) -> None:
        if self._search is not None:
            self._search.cancel()
            await asyncio.gather(self._search, return_exceptions=True)
