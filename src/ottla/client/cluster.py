"""A cluster as a client uses it: connections to its brokers, and knowledge of its topics that is kept fresh.

Each broker has two lanes, since a broker serves a connection's requests one after the other: on the data lane a fetch
may wait half a second for records, or a produce for followers; questions on the control lane do not wait behind them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from typing import Any, Final, TypeVar

from ottla.client import metadata as known
from ottla.client.backoff import Backoff
from ottla.client.connection import Answer, Connection, connect
from ottla.client.errors import (
    ClientClosed,
    ConnectionLost,
    KafkaError,
    NoBrokerReached,
    RequestTimedOut,
    UnknownTopicOrPartition,
    error_of,
)
from ottla.client.metadata import Metadata, Node, Topic
from ottla.client.settings import ClientSettings
from ottla.client.world import World
from ottla.model import ErrorCode
from ottla.protocol.apis import ApiKey
from ottla.protocol.generated.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse
from ottla.protocol.message import Message

CONTROL: Final = 0
DATA: Final = 1
#: Ids of bootstrap addresses, whose brokers' ids are not known yet: below every broker's.
_BOOTSTRAP_ID: Final = -2

Result = TypeVar("Result")
_Place = tuple[int, int]  # node id and lane


class Cluster:
    def __init__(self, settings: ClientSettings, world: World, *, auto_create: bool = False) -> None:
        self.settings = settings
        self.world = world
        self.metadata: Metadata = known.EMPTY
        #: Called after every change of the metadata.
        self.on_change: list[Callable[[], None]] = []
        self._auto_create = auto_create
        self._reconnect = Backoff(settings.reconnect_backoff_ms, settings.reconnect_backoff_max_ms, world.entropy)
        self._retry = Backoff(settings.retry_backoff_ms, settings.retry_backoff_max_ms, world.entropy)
        self._bootstrap = {
            _BOOTSTRAP_ID - index: Node(_BOOTSTRAP_ID - index, host, port)
            for index, (host, port) in enumerate(settings.bootstrap_servers)
        }
        self._connections: dict[_Place, Connection] = {}
        self._connecting: dict[_Place, asyncio.Task[Connection]] = {}
        #: Failures in a row and when the next attempt may be made (in the loop's time), by address.
        self._failures: dict[tuple[str, int], tuple[int, float]] = {}
        #: Topics whose metadata is kept.
        self._topics: dict[str, None] = {}
        self._updater: asyncio.Task[None] | None = None
        #: Ends with the next round of metadata that has not begun yet.
        self._next_round: asyncio.Future[None] | None = None
        self._age_timer: asyncio.TimerHandle | None = None
        self._closed = False

    # Requests

    async def ask(
        self,
        node_id: int | None,
        request: Message,
        response_type: type[Answer],
        *,
        timeout_ms: int | None = None,
        at_most: int | None = None,
        at_least: int = 0,
    ) -> Answer:
        """Asks a broker (None: any) on its control lane and gives the answer."""
        connection = await self.control(node_id)
        return await connection.ask(
            request,
            response_type,
            timeout_ms=self.settings.request_timeout_ms if timeout_ms is None else timeout_ms,
            at_most=at_most,
            at_least=at_least,
        )

    async def control(self, node_id: int | None) -> Connection:
        """The control connection to a broker that the cluster has, or to any."""
        if node_id is None:
            return await self.any_connection()
        if node_id not in self.metadata.nodes:
            await self.updated()
            if node_id not in self.metadata.nodes:
                raise KafkaError(f"the cluster has no broker {node_id} now", code=ErrorCode.BROKER_NOT_AVAILABLE)
        return await self.connection(node_id, CONTROL)

    async def retrying(self, attempt: Callable[[], Awaitable[Result]], timeout_ms: int | None = None) -> Result:
        """Calls `attempt` until it does not raise a retriable error any more, within `default.api.timeout.ms`."""
        loop = asyncio.get_running_loop()
        allowed_ms = self.settings.default_api_timeout_ms if timeout_ms is None else timeout_ms
        deadline = loop.time() + allowed_ms / 1000
        failures = 0
        last: KafkaError | None = None
        while True:
            try:
                async with asyncio.timeout_at(deadline):
                    return await attempt()
            except KafkaError as error:
                if not error.retriable:
                    raise
                last = error
            except TimeoutError:
                if last is not None:
                    raise last from None
                raise RequestTimedOut(f"no answer within {allowed_ms} ms") from None
            failures += 1
            pause = self._retry.pause_ms(failures) / 1000
            if loop.time() + pause >= deadline:
                raise last
            self.request_update()
            await asyncio.sleep(pause)

    async def controller_id(self) -> int:
        """The broker that changes topics; asks once where nothing is known yet."""
        if self.metadata.controller_id not in self.metadata.nodes:
            await self.updated()
        if self.metadata.controller_id not in self.metadata.nodes:
            raise NoBrokerReached("the cluster has no controller now")
        return self.metadata.controller_id

    # Connections

    def open_connection(self, node_id: int, lane: int) -> Connection | None:
        """The connection to a broker if it is there already."""
        found = self._connections.get((node_id, lane))
        return None if found is None or found.closed else found

    def connect_soon(self, node_id: int, lane: int, then: Callable[[], None]) -> None:
        """Connects in the background; `then` is called when that has succeeded or failed."""
        if self._closed:
            return
        task = self._connect_task(node_id, lane)
        task.add_done_callback(lambda _: None if self._closed else then())

    def connecting(self, node_id: int, lane: int) -> bool:
        return (node_id, lane) in self._connecting

    async def connection(self, node_id: int, lane: int) -> Connection:
        """The connection to a broker, made if need be."""
        found = self.open_connection(node_id, lane)
        if found is not None:
            return found
        return await asyncio.shield(self._connect_task(node_id, lane))

    async def any_connection(self) -> Connection:
        """A control connection to whichever broker is there: an open one, a known broker, a bootstrap address."""
        if self._closed:
            raise ClientClosed("the client is closed")
        there = [c for (_, lane), c in self._connections.items() if lane == CONTROL and not c.closed]
        if there:
            return min(there, key=lambda connection: connection.in_flight)
        faults: list[str] = []
        for node_id in self._addresses():
            try:
                return await self.connection(node_id, CONTROL)
            except ClientClosed:
                raise
            except KafkaError as error:
                faults.append(str(error))
        raise NoBrokerReached("no broker was reached: " + "; ".join(faults))

    def _addresses(self) -> list[int]:
        """Known brokers first, then the bootstrap addresses, each kind in an order of chance."""
        nodes, start = list(self.metadata.nodes), list(self._bootstrap)
        for ids in (nodes, start):
            for index in range(len(ids) - 1, 0, -1):
                other = self.world.entropy.below(index + 1)
                ids[index], ids[other] = ids[other], ids[index]
        known_places = {(node.host, node.port) for node in self.metadata.nodes.values()}
        return nodes + [one for one in start if self._bootstrap[one][1:3] not in known_places]

    def _connect_task(self, node_id: int, lane: int) -> asyncio.Task[Connection]:
        place = (node_id, lane)
        task = self._connecting.get(place)
        if task is None:
            task = asyncio.get_running_loop().create_task(self._connect(place))
            self._connecting[place] = task
            task.add_done_callback(lambda done: self._connected(place, done))
        return task

    def _connected(self, place: _Place, task: asyncio.Task[Connection]) -> None:
        self._connecting.pop(place, None)
        if not task.cancelled():
            task.exception()  # nobody may be waiting any more: that is no news for the log

    async def _connect(self, place: _Place) -> Connection:
        node_id = place[0]
        node = self.metadata.nodes.get(node_id) or self._bootstrap.get(node_id)
        if self._closed:
            raise ClientClosed("the client is closed")
        if node is None:
            self.request_update()
            raise ConnectionLost(f"broker {node_id} is not in the cluster now")
        address = (node.host, node.port)
        loop = asyncio.get_running_loop()
        failures, not_before = self._failures.get(address, (0, 0.0))
        if not_before > loop.time():
            await asyncio.sleep(not_before - loop.time())
        settings = self.settings
        try:
            connection = await connect(
                self.world,
                node.host,
                node.port,
                client_id=settings.client_id,
                setup_timeout_ms=settings.socket_connection_setup_timeout_ms,
            )
        except KafkaError:
            failures += 1
            self._failures[address] = (failures, loop.time() + self._reconnect.pause_ms(failures) / 1000)
            if node_id >= 0:
                self.request_update()
            raise
        self._failures.pop(address, None)
        self._connections[place] = connection
        connection.on_lost = lambda _: self._lost(place, connection, address)
        return connection

    def _lost(self, place: _Place, connection: Connection, address: tuple[str, int]) -> None:
        if self._connections.get(place) is connection:
            del self._connections[place]
        if not self._closed:
            # A broker that accepts and hangs up at once must not be called in a circle.
            pause = self._reconnect.pause_ms(1) / 1000
            self._failures.setdefault(address, (0, asyncio.get_running_loop().time() + pause))
            if place[0] >= 0:
                self.request_update()

    # Metadata

    def want(self, topics: Iterable[str]) -> None:
        """Keeps these topics' metadata from now on."""
        for topic in topics:
            self._topics[topic] = None

    def forget(self, topics: Iterable[str]) -> None:
        for topic in topics:
            self._topics.pop(topic, None)

    async def topic(self, name: str, timeout_ms: int | None = None) -> Topic:
        """A topic's metadata, asked for until it is there; raises what keeps it from being there."""
        found = self.metadata.topics.get(name)
        if found is not None:
            return found
        self.want([name])
        loop = asyncio.get_running_loop()
        allowed_ms = self.settings.default_api_timeout_ms if timeout_ms is None else timeout_ms
        deadline = loop.time() + allowed_ms / 1000
        last: KafkaError = UnknownTopicOrPartition(f"{name}: nothing was heard of it within {allowed_ms} ms")
        failures = 0
        while True:
            try:
                async with asyncio.timeout_at(deadline):
                    await self.updated()
            except KafkaError as error:
                if not error.retriable:
                    raise
                last = error
            except TimeoutError:
                raise last from None
            found = self.metadata.topics.get(name)
            if found is not None:
                return found
            error_there = self.metadata.errors.get(name)
            if error_there is not None:
                last = error_of(error_there, about=name)
                if not last.retriable:
                    self.forget([name])
                    raise last
            failures += 1
            pause = self._retry.pause_ms(failures) / 1000
            if loop.time() + pause >= deadline:
                raise last
            await asyncio.sleep(pause)

    def request_update(self) -> None:
        """Wants fresh metadata, as soon as it can be had."""
        self._round_to_come()

    async def updated(self) -> None:
        """Waits for a round of metadata that begins after this call; raises what it failed with."""
        await asyncio.shield(self._round_to_come())

    def _round_to_come(self) -> asyncio.Future[None]:
        loop = asyncio.get_running_loop()
        if self._next_round is None:
            self._next_round = loop.create_future()
        future = self._next_round
        if self._closed:
            if not future.done():
                _fail(future, ClientClosed("the client is closed"))
        elif self._updater is None:
            self._updater = loop.create_task(self._update())
        return future

    async def _update(self) -> None:
        """Rounds of metadata until one succeeds and nobody has asked for another."""
        failures = 0
        try:
            while self._next_round is not None and not self._closed:
                current, self._next_round = self._next_round, None
                try:
                    await self._one_round()
                except KafkaError as error:
                    _fail(current, error)
                    failures += 1
                    if self._next_round is None:
                        self._next_round = asyncio.get_running_loop().create_future()
                else:
                    current.set_result(None)
                    failures = 0
                    for call in self.on_change:
                        call()
                if self._next_round is not None:
                    await asyncio.sleep(self._retry.pause_ms(max(1, failures)) / 1000)
        finally:
            self._updater = None

    async def _one_round(self) -> None:
        connection = await self.any_connection()
        wanted = list(self._topics)
        request = MetadataRequest(
            topics=[MetadataRequestTopic(name=name) for name in wanted],
            allow_auto_topic_creation=self._auto_create,
        )
        version = connection.version(ApiKey.METADATA, at_least=1)
        if version < 4:
            request.allow_auto_topic_creation = True  # older brokers have no choice
        timeout_ms = self.settings.request_timeout_ms
        answer = await connection.ask(request, MetadataResponse, timeout_ms=timeout_ms, at_most=version)
        if answer.error_code:
            raise error_of(answer.error_code)
        if not answer.brokers:
            raise NoBrokerReached(f"{connection.peer} knows no broker that is alive")
        self.metadata = known.merged(self.metadata, answer, wanted)
        self._adopt_bootstrap()
        self._set_age_timer()

    def learn_leader(self, topic: str, partition: int, leader: int, epoch: int, nodes: Iterable[Node]) -> None:
        """A broker that is no leader (any more) said who is."""
        changed = known.with_leader(self.metadata, topic, partition, leader, epoch, nodes)
        if changed is not self.metadata:
            self.metadata = changed
            for call in self.on_change:
                call()

    def _adopt_bootstrap(self) -> None:
        """A bootstrap connection becomes its broker's, now that the broker's id is known; others are closed."""
        by_address = {(node.host, node.port): node.id for node in self.metadata.nodes.values()}
        for place, connection in list(self._connections.items()):
            if place[0] >= 0:
                continue
            node = self._bootstrap[place[0]]
            own = (by_address.get((node.host, node.port), -1), CONTROL)
            if own[0] >= 0 and own not in self._connections and own not in self._connecting:
                del self._connections[place]
                self._connections[own] = connection
                connection.on_lost = lambda lost, own=own, node=node: self._lost(own, lost, (node.host, node.port))

    def _set_age_timer(self) -> None:
        if self._age_timer is not None:
            self._age_timer.cancel()
        idle_ms = self.settings.connections_max_idle_ms
        pause_ms = self.settings.metadata_max_age_ms
        self._age_timer = asyncio.get_running_loop().call_later(max(0.1, pause_ms / 1000), self._grew_old)
        if idle_ms >= 0:
            oldest = asyncio.get_running_loop().time() - idle_ms / 1000
            for connection in list(self._connections.values()):
                if not connection.in_flight and connection.last_used < oldest:
                    connection.on_lost = None  # nothing is wrong with its broker
                    connection.abandon(ConnectionLost(f"{connection.peer} was idle"))

    def _grew_old(self) -> None:
        if not self._closed:
            self.request_update()

    async def close(self) -> None:
        if self._closed:
            return
        self._closed = True
        if self._age_timer is not None:
            self._age_timer.cancel()
        tasks: list[asyncio.Task[Any]] = [*self._connecting.values()]
        if self._updater is not None:
            tasks.append(self._updater)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for connection in list(self._connections.values()):
            await connection.close()
        self._connections.clear()
        if self._next_round is not None and not self._next_round.done():
            _fail(self._next_round, ClientClosed("the client is closed"))


def _fail(future: asyncio.Future[None], error: KafkaError) -> None:
    if not future.done():
        future.set_exception(error)
        future.exception()  # often nobody awaits it
