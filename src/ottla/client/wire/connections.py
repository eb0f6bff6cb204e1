"""A client's connections: at most two to each broker, made when they are needed, with pauses between failures.

Each broker has two lanes, since a broker serves a connection's requests one after the other: on the data lane a fetch
may wait half a second for records, or a produce for followers; questions on the control lane do not wait behind them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any, Final

from ottla.client.errors import ClientClosed, ConnectionLost, KafkaError, NoBrokerReached
from ottla.client.settings import ClientSettings
from ottla.client.wire.backoff import Backoff
from ottla.client.wire.connection import BrokerConnection
from ottla.client.wire.dialling import connect
from ottla.client.wire.metadata import Node
from ottla.client.wire.world import ClientPorts
from ottla.logs import logger

CONTROL: Final = 0
DATA: Final = 1
#: Ids of bootstrap addresses, whose brokers' ids are not known yet: below every broker's.
_BOOTSTRAP_ID: Final = -2
_NOBODY: Final = "no broker was reached: "
#: That nobody answers is said again after so long.
_UNREACHED_SAID_S: Final = 30.0

_Place = tuple[int, int]  # node id and lane


class Connections:
    def __init__(
        self,
        settings: ClientSettings,
        world: ClientPorts,
        nodes: Callable[[], Mapping[int, Node]],
        on_trouble: Callable[[], None],
    ) -> None:
        self._settings = settings
        self._log = logger("client").bind(client=settings.client_id)
        self._world = world
        self._nodes = nodes
        #: Called when a known broker was lost or not reached: perhaps it has moved.
        self._on_trouble = on_trouble
        self._backoff = Backoff(settings.reconnect_backoff_ms, settings.reconnect_backoff_max_ms, world.entropy)
        self._bootstrap = {
            _BOOTSTRAP_ID - index: Node(_BOOTSTRAP_ID - index, host, port)
            for index, (host, port) in enumerate(settings.bootstrap_servers)
        }
        self._there: dict[_Place, BrokerConnection] = {}
        self._under_way: dict[_Place, asyncio.Task[BrokerConnection]] = {}
        #: Failures in a row and when the next attempt may be made (in the loop's time), by address.
        self._failures: dict[tuple[str, int], tuple[int, float]] = {}
        #: Called with the fault each time that no broker at all was reached, and with None when one is again.
        self.on_unreached: Callable[[NoBrokerReached | None], object] = self._log_unreached
        self._unreached = False
        self._closed = False
        #: Called with each address that was tried, and why it was not reached (None: it was).
        self.on_address: Callable[[str, KafkaError | None], object] = _nobody_listens

    def open(self, node_id: int, lane: int) -> BrokerConnection | None:
        """The connection to a broker if it is there already."""
        found = self._there.get((node_id, lane))
        return None if found is None or found.closed else found

    def open_soon(self, node_id: int, lane: int, then: Callable[[], None]) -> None:
        """Connects in the background, unless that is under way; `then` is called when it has succeeded or failed."""
        if self._closed or (node_id, lane) in self._under_way:
            return
        task = self._task(node_id, lane)
        task.add_done_callback(lambda _: None if self._closed else then())

    async def to(self, node_id: int, lane: int) -> BrokerConnection:
        """The connection to a broker, made if need be."""
        found = self.open(node_id, lane)
        if found is not None:
            return found
        task = self._task(node_id, lane)
        await asyncio.wait([task])
        if task.cancelled():  # by `close`: the callers that wait here were not
            raise ClientClosed("the client is closed")
        return task.result()

    async def to_any(self, rather_not: BrokerConnection | None = None) -> BrokerConnection:
        """A control connection to whichever broker is there: an open one, a known broker, a bootstrap address.

        `rather_not`: only where there is no other one that is open.
        """
        if self._closed:
            raise ClientClosed("the client is closed")
        there = [one for (_, lane), one in self._there.items() if lane == CONTROL and not one.closed]
        if there:
            return min(there, key=lambda connection: (connection is rather_not, connection.in_flight))
        faults: list[KafkaError] = []
        for node_id in self._all_nodes():
            try:
                return await self.to(node_id, CONTROL)
            except ClientClosed:
                raise
            except KafkaError as error:
                faults.append(error)
        fault = NoBrokerReached(_NOBODY + "; ".join(map(str, faults)), faults=faults)
        self._unreached = True
        self.on_unreached(fault)
        raise fault

    def open_another(self) -> None:
        """Connects in the background to one more of the brokers that are known, if there is one: nobody waits for a
        host that does not answer."""
        for node_id in self._all_nodes():
            if node_id >= 0 and self.open(node_id, CONTROL) is None:
                self.open_soon(node_id, CONTROL, lambda: None)
                return

    def adopt_bootstrap(self) -> None:
        """A bootstrap connection becomes its broker's, now that the broker's id is known."""
        by_address = {(node.host, node.port): node.id for node in self._nodes().values()}
        for place, connection in list(self._there.items()):
            if place[0] >= 0:
                continue
            node = self._bootstrap[place[0]]
            own = (by_address.get((node.host, node.port), -1), CONTROL)
            if own[0] >= 0 and own not in self._there and own not in self._under_way:
                del self._there[place]
                self._keep(own, connection, (node.host, node.port))

    def close_moved(self) -> None:
        """Closes what leads to where a broker was before: another one may have the address by now, and answer."""
        for place, connection in list(self._there.items()):
            if self._is_elsewhere(place[0], connection):
                self._give_up(place, f"broker {place[0]} is not at {connection.peer} any more")

    def close_idle(self) -> None:
        """Closes what `connections.max.idle.ms` has seen no use; it is made again when it is needed."""
        idle_ms = self._settings.connections_max_idle_ms
        if idle_ms < 0:
            return
        oldest = asyncio.get_running_loop().time() - idle_ms / 1000
        for place, connection in list(self._there.items()):
            if not connection.in_flight and connection.last_used < oldest:
                self._give_up(place, f"{connection.peer} was idle")

    def _give_up(self, place: _Place, why: str) -> None:
        """Nothing is wrong with its broker."""
        connection = self._there.pop(place)
        connection.on_lost = None
        connection.abandon(ConnectionLost(why))

    async def close(self) -> None:
        self._closed = True
        tasks: list[asyncio.Task[Any]] = list(self._under_way.values())
        for task in tasks:
            task.cancel()
        try:
            await asyncio.gather(*tasks, return_exceptions=True)
            for connection in list(self._there.values()):
                await connection.close()
        finally:
            for connection in list(self._there.values()):  # whoever closes has given up
                connection.abandon(ClientClosed(f"the connection to {connection.peer} was closed"))
            self._there.clear()

    # How a connection is made and lost

    def _all_nodes(self) -> list[int]:
        """Known brokers first, then the bootstrap addresses, each kind in an order of chance."""
        nodes, start = list(self._nodes()), list(self._bootstrap)
        for ids in (nodes, start):
            for index in range(len(ids) - 1, 0, -1):
                other = self._world.entropy.below(index + 1)
                ids[index], ids[other] = ids[other], ids[index]
        known_places = {(node.host, node.port) for node in self._nodes().values()}
        return nodes + [one for one in start if self._bootstrap[one][1:3] not in known_places]

    def _task(self, node_id: int, lane: int) -> asyncio.Task[BrokerConnection]:
        place = (node_id, lane)
        task = self._under_way.get(place)
        if task is None:
            task = asyncio.get_running_loop().create_task(self._connect(place))
            self._under_way[place] = task
            task.add_done_callback(lambda done: self._done(place, done))
        return task

    def _done(self, place: _Place, task: asyncio.Task[BrokerConnection]) -> None:
        self._under_way.pop(place, None)
        if not task.cancelled():
            task.exception()  # nobody may be waiting any more: that is no news for the log

    async def _connect(self, place: _Place) -> BrokerConnection:
        node_id = place[0]
        node = self._nodes().get(node_id) or self._bootstrap.get(node_id)
        if self._closed:
            raise ClientClosed("the client is closed")
        if node is None:
            self._on_trouble()
            raise ConnectionLost(f"broker {node_id} is not in the cluster now")
        address = (node.host, node.port)
        loop = asyncio.get_running_loop()
        failures, not_before = self._failures.get(address, (0, 0.0))
        if not_before > loop.time():
            await asyncio.sleep(not_before - loop.time())
        settings = self._settings
        try:
            connection = await connect(
                self._world,
                node.host,
                node.port,
                client_id=settings.client_id,
                setup_timeout_ms=settings.socket_connection_setup_timeout_ms,
                answer_bytes_max=settings.answer_bytes_max,
            )
        except KafkaError as error:
            self.on_address(f"{address[0]}:{address[1]}", error)
            failures += 1
            self._failures[address] = (failures, loop.time() + self._backoff.pause_ms(failures) / 1000)
            if node_id >= 0:
                self._on_trouble()
            raise
        self.on_address(f"{address[0]}:{address[1]}", None)
        self._failures.pop(address, None)
        if self._unreached:
            self._unreached = False
            self.on_unreached(None)
        if self._is_elsewhere(node_id, connection):
            moved = ConnectionLost(f"broker {node_id} is not at {connection.peer} any more")
            connection.abandon(moved)
            raise moved
        self._keep(place, connection, address)
        return connection

    def _is_elsewhere(self, node_id: int, connection: BrokerConnection) -> bool:
        """Whether the broker has moved since the connection was made, or meanwhile."""
        node = self._nodes().get(node_id)
        return node is not None and connection.peer != f"{node.host}:{node.port}"

    def _log_unreached(self, fault: NoBrokerReached | None) -> None:
        """A client is patient, and its program may wait for minutes: a user who looks at the log sees what for."""
        if fault is None:
            self._log.info("a broker is reached again")
        else:
            why = str(fault).removeprefix(_NOBODY)
            self._log.warning_limited("no broker is reached", interval_s=_UNREACHED_SAID_S, why=why)

    def _keep(self, place: _Place, connection: BrokerConnection, address: tuple[str, int]) -> None:
        self._there[place] = connection
        connection.on_lost = lambda _: self._lost(place, connection, address)

    def _lost(self, place: _Place, connection: BrokerConnection, address: tuple[str, int]) -> None:
        if self._there.get(place) is connection:
            del self._there[place]
        if not self._closed:
            # A broker that accepts and hangs up at once must not be called in a circle.
            pause = self._backoff.pause_ms(1) / 1000
            self._failures.setdefault(address, (0, asyncio.get_running_loop().time() + pause))
            if place[0] >= 0:
                self._on_trouble()


def _nobody_listens(_address: str, _fault: KafkaError | None) -> None:
    """Most programs do not ask about single addresses."""
