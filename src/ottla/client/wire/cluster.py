"""A cluster as a client uses it: questions to its brokers, and knowledge of its topics that is kept fresh."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Final, TypeVar

from ottla.client.arguments import checked_topic
from ottla.client.errors import (
    ClientClosed,
    ClientFault,
    KafkaError,
    NoBrokerReached,
    RequestTimedOut,
    UnknownBroker,
    UnknownTopicOrPartition,
    error_of,
)
from ottla.client.settings import ClientSettings
from ottla.client.wire import metadata as known
from ottla.client.wire.backoff import Backoff
from ottla.client.wire.connection import Answer, BrokerConnection
from ottla.client.wire.connections import CONTROL, Connections
from ottla.client.wire.metadata import Metadata, Node, Topic
from ottla.client.wire.world import ClientPorts
from ottla.logs import logger
from ottla.protocol.apis import ApiKey
from ottla.protocol.generated.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse
from ottla.protocol.message import Message

#: However short `metadata.max.age.ms` is.
_AGE_SECONDS_MIN: Final = 0.1

_LOG = logger("client")

Result = TypeVar("Result")


class Cluster:
    def __init__(self, settings: ClientSettings, world: ClientPorts, *, auto_create: bool = False) -> None:
        self.settings = settings
        self.world = world
        self.metadata: Metadata = known.EMPTY
        #: Called after every change of the metadata.
        self.on_change: list[Callable[[], None]] = []
        #: Called with a group or a transactional id each time that its coordinator was looked for, and with why it was
        #: not found (None: it was).
        self.on_coordinator: Callable[[str, KafkaError | None], object] = _nobody_listens
        #: Whether asking for a topic may create it.
        self.auto_create = auto_create
        self._retry = Backoff(settings.retry_backoff_ms, settings.retry_backoff_max_ms, world.entropy)
        self.connections = Connections(settings, world, lambda: self.metadata.nodes, self.request_update)
        #: Topics whose metadata is kept.
        self._topics: dict[str, None] = {}
        #: Topics that a call asks about now, and how many calls.
        self._asked: Counter[str] = Counter()
        self._updater: asyncio.Task[None] | None = None
        #: Ends with the next round of metadata that has not begun yet.
        self._next_round: asyncio.Future[None] | None = None
        self._age_timer: asyncio.TimerHandle | None = None
        #: For a round that is wanted so soon after the last one that it has to wait.
        self._soon_timer: asyncio.TimerHandle | None = None
        #: When a round may follow the last one without a wait, in the loop's time.
        self._soon_at = 0.0
        #: Rounds, one after the other, whose answers lacked a topic or a leader: those may be away for hours.
        self._lacking_rounds = 0
        #: To the broker that last did not know a topic, or who leads or coordinates what was asked for.
        self._knew_nobody: BrokerConnection | None = None
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

    async def control(self, node_id: int | None) -> BrokerConnection:
        """The control connection to a broker that the cluster has, or to any."""
        if node_id is None:
            return await self.any_connection()
        if node_id not in self.metadata.nodes:
            await self.updated()
            if node_id not in self.metadata.nodes:
                raise UnknownBroker(f"the cluster has no broker {node_id} now")
        return await self.connections.to(node_id, CONTROL)

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

    async def any_connection(self) -> BrokerConnection:
        """A control connection to whichever broker is there."""
        return await self.connections.to_any(self._knew_nobody)

    def knew_nobody(self, connection: BrokerConnection) -> None:
        """A broker that has no topic, leader, coordinator or id may be cut off from those who do: others come next."""
        self._knew_nobody = connection
        self.connections.open_another()

    # Metadata

    def want(self, topics: Iterable[str]) -> None:
        """Keeps these topics' metadata from now on."""
        self._topics.update(dict.fromkeys(checked_topic(topic) for topic in topics))

    def forget(self, topics: Iterable[str]) -> None:
        for topic in topics:
            self._topics.pop(topic, None)

    @property
    def wanted(self) -> list[str]:
        """The topics that the next round of metadata asks for."""
        return list(dict.fromkeys((*self._topics, *self._asked)))

    @contextmanager
    def asking(self, topics: Iterable[str]) -> Iterator[None]:
        """Rounds of metadata ask for these topics as well, until the block ends."""
        names = {checked_topic(topic) for topic in topics}
        self._asked.update(names)
        try:
            yield
        finally:
            self._asked.subtract(names)
            for name in names:
                if not self._asked[name]:
                    del self._asked[name]

    async def topic(self, name: str, timeout_ms: int | None = None) -> Topic:
        """A topic's metadata, asked for until it is there and kept from then on; raises what keeps it from being
        there."""
        found = await self.seen_topic(name, timeout_ms)
        self.want([name])
        return found

    async def seen_topic(self, name: str, timeout_ms: int | None = None) -> Topic:
        """The same for one look: it is not kept."""
        checked_topic(name)
        found = self.metadata.topics.get(name)
        if found is None:
            with self.asking([name]):
                found = await self._heard_of(name, timeout_ms)
        return found

    async def _heard_of(self, name: str, timeout_ms: int | None) -> Topic:
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
                    raise last
            failures += 1
            pause = self._retry.pause_ms(failures) / 1000
            if loop.time() + pause >= deadline:
                raise last
            await asyncio.sleep(pause)

    def request_update(self) -> None:
        """Wants fresh metadata, as soon as it can be had: what the last round did not bring may take a while."""
        loop = asyncio.get_running_loop()
        if self._updater is not None or loop.time() >= self._soon_at:
            self._round_to_come()
        elif self._soon_timer is None and not self._closed:
            self._soon_timer = loop.call_at(self._soon_at, self._round_to_come)

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
                except Exception as error:  # a fault of our own: raised where the round is waited for
                    fault = ClientFault(f"the metadata could not be asked for: {type(error).__name__}: {error}")
                    fault.__cause__ = error
                    _fail(current, fault)
                    failures += 1
                except asyncio.CancelledError:  # by `close`
                    _fail(current, ClientClosed("the client is closed"))
                    raise
                else:
                    current.set_result(None)
                    failures = 0
                    pause_ms = self._retry.pause_ms(max(1, self._lacking_rounds))
                    self._soon_at = asyncio.get_running_loop().time() + pause_ms / 1000
                    self._call_on_change()
                if self._next_round is not None:
                    await asyncio.sleep(self._retry.pause_ms(max(1, failures)) / 1000)
        finally:
            self._updater = None
            if not self._closed:
                self._set_age_timer()  # also behind a fault of our own: what is known must not grow old for ever

    async def _one_round(self) -> None:
        self._cancel_soon()
        connection = await self.any_connection()
        wanted = self.wanted
        request = MetadataRequest(
            topics=[MetadataRequestTopic(name=name) for name in wanted],
            allow_auto_topic_creation=self.auto_create,
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
        self.connections.adopt_bootstrap()
        self.connections.close_moved()
        if known.lacks_something(answer):
            self._lacking_rounds += 1
            self.knew_nobody(connection)
        else:
            self._lacking_rounds = 0
        self.connections.close_idle()

    def learn_leader(
        self, tp: tuple[str, int], topic_id: bytes, leader: int, epoch: int, nodes: Iterable[Node]
    ) -> None:
        """A broker that does not lead (any more) has named the leader."""
        changed = known.with_leader(self.metadata, tp[0], topic_id, tp[1], leader, epoch, nodes)
        if changed is not self.metadata:
            self.metadata = changed
            self._call_on_change()

    def _call_on_change(self) -> None:
        """One that raises keeps neither the others from being called nor the metadata from being refreshed."""
        for call in list(self.on_change):
            try:
                call()
            except Exception as error:
                _LOG.error("what was called for changed metadata raised", error=error)

    def _cancel_soon(self) -> None:
        if self._soon_timer is not None:
            self._soon_timer.cancel()
            self._soon_timer = None

    def _set_age_timer(self) -> None:
        if self._age_timer is not None:
            self._age_timer.cancel()
        pause = max(_AGE_SECONDS_MIN, self.settings.metadata_max_age_ms / 1000)
        self._age_timer = asyncio.get_running_loop().call_later(pause, self._grew_old)

    def _grew_old(self) -> None:
        if not self._closed:
            self.request_update()

    async def close(self) -> None:
        if self._closed:
            return
        self._closed = True
        if self._age_timer is not None:
            self._age_timer.cancel()
        self._cancel_soon()
        try:
            if self._updater is not None:
                self._updater.cancel()
                await asyncio.gather(self._updater, return_exceptions=True)
        finally:
            if self._next_round is not None:
                _fail(self._next_round, ClientClosed("the client is closed"))
            await self.connections.close()


def _nobody_listens(_key: str, _error: KafkaError | None) -> None:
    return


def _fail(future: asyncio.Future[None], error: KafkaError) -> None:
    if not future.done():
        future.set_exception(error)
        future.exception()  # often nobody awaits it
