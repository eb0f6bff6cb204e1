"""A broker on the loop that is its own (`own_loop.py`): start, stop, restart, topics, time.

`in_process.py` and `awaited.py` are its faces for tests that block and for tests that await.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import AsyncExitStack, contextmanager
from dataclasses import replace
from datetime import timedelta
from typing import Any, Final, TypeVar

from ottla.app import running
from ottla.broker.broker import Broker, PortTaken
from ottla.client.arguments import INT32_MAX, check_values, checked_integer, checked_text, checked_topic
from ottla.client.errors import error_of
from ottla.config import Config, up_defaults
from ottla.controller.interface import TopicRef, TopicToCreate
from ottla.handlers.calls.call import Services
from ottla.model import BrokerId, ErrorCode
from ottla.ports.real import real_ports
from ottla.ports.workers import Workers
from ottla.server.metrics_http import MetricsEndpoint
from ottla.testing.addresses import Addresses
from ottla.testing.capture import CAPTURE, speaker
from ottla.testing.injecting import TransactionFault, inject
from ottla.testing.shifting import Shift, ShiftedClock, advance

#: Free ports that are chosen, one after the other, where somebody else was quicker.
_PORTS_TRIED: Final = 5
#: Turns of the loop for what has become due: a timer, what it sets off, and what that sets off.
_TURNS: Final = 10


class HostedBroker:
    """Runs from `start` to `stop`; may be started again, over the same data and port."""

    def __init__(
        self,
        shift: Shift,
        *,
        data: str | os.PathLike[str] | None = None,
        addresses: Addresses,
    ) -> None:
        self._shift = shift
        self._addresses = addresses
        self._given_data = None if data is None else os.path.abspath(data)
        self._temporary: str | None = None
        #: Raised by 1 at each start.
        self.starts = 0
        self._life: AsyncExitStack | None = None
        #: Begins a life just now, and ends one.
        self._starting: asyncio.Task[Any] | None = None
        self._stopping: asyncio.Task[Any] | None = None
        self._broker: Broker | None = None
        self._metrics: MetricsEndpoint | None = None
        self._workers: WatchedWorkers | None = None

    # What it is

    @property
    def bootstrap(self) -> str:
        """`host:port`, for a client's bootstrap.servers. It stays the same over restarts."""
        return self._addresses.bootstrap

    @property
    def data(self) -> str:
        """The folder that holds the log directory, and what else the broker keeps."""
        found = self._given_data or self._temporary
        assert found is not None, "the broker was not started yet, or its temporary folder is gone"
        return found

    @property
    def metrics_address(self) -> str | None:
        """Where `/metrics` is served, if `ottla.metrics.port` was set."""
        return None if self._metrics is None else self._metrics.address

    @property
    def is_running(self) -> bool:
        return self._life is not None

    def metrics(self) -> str:
        """The broker's metrics as Prometheus would read them."""
        return self._running().registry.render()

    # Its life

    async def start(self) -> None:
        """Serves when it returns; raises what keeps a broker from starting (`StartFault`, `ConfigError`, ...)."""
        assert self._life is None, "the broker runs already"
        assert self._starting is None, "the broker is being started already"
        self._starting = asyncio.current_task()
        try:
            for _ in range(_PORTS_TRIED - 1):
                try:
                    await self._start()
                except PortTaken:
                    # Between a free port's choice and the broker that listens on it others may choose the same one.
                    if not self._addresses.are_chosen_anew:
                        raise
                else:
                    return
            await self._start()
        finally:
            self._starting = None

    async def _start(self) -> None:
        if self._given_data is None and self._temporary is None:
            self._temporary = tempfile.mkdtemp(prefix="ottla-")
        async with AsyncExitStack() as life:
            CAPTURE.begin()
            life.callback(CAPTURE.end)
            with self._speaking():
                ports = real_ports()
                self._workers = WatchedWorkers(ports.workers)
                ports = replace(ports, clock=ShiftedClock(ports.clock, self._shift), workers=self._workers)
                life.callback(ports.workers.close)
                life.callback(ports.network.close)
                broker, self._metrics = await life.enter_async_context(running(self._config(), ports))
            self._broker = broker
            names = [listener.name for listener in broker.config.server.listeners]
            self._addresses.learn(names, broker.listening_on)
            self._life = life.pop_all()
        self.starts += 1

    async def stop(self) -> None:
        """A clean stop, as SIGTERM would do it. What it kept is kept. Nothing where it does not run."""
        await self._end_start()
        if self._stopping is not None:
            # Its caller, who was cancelled, waits for it no more: who ends the loop now would end it half way.
            await asyncio.wait([self._stopping])
            return
        self._stopping = asyncio.current_task()
        life, self._life = self._life, None
        self._broker = self._metrics = self._workers = None
        try:
            if life is not None:
                with self._speaking():
                    await life.aclose()
        finally:
            self._stopping = None

    async def _end_start(self) -> None:
        """Of a start for which its caller waits no more: it gives back what it took, and is not hurried in that."""
        starting = self._starting
        if starting is not None:
            if not starting.cancelling():
                starting.cancel()
            await asyncio.wait([starting])

    def remove_temporary(self) -> None:
        """Its folder, once it has stopped."""
        temporary, self._temporary = self._temporary, None
        if temporary is not None:
            shutil.rmtree(temporary, ignore_errors=True)

    def _config(self) -> Config:
        # The environment is the machine's, and would make a test depend on it: it is left out.
        return Config.parse(self._addresses.properties(self.data), defaults=up_defaults(1))

    @contextmanager
    def _speaking(self) -> Iterator[None]:
        """What is logged on the way is this broker's, and so is what the tasks log that are begun in here."""
        before = speaker.set(f"broker {os.path.basename(self.data)}")
        try:
            yield
        finally:
            speaker.reset(before)

    def _running(self) -> Broker:
        assert self._broker is not None, "the broker does not run"
        return self._broker

    def _services(self) -> Services:
        services = self._running().services
        assert services is not None
        return services

    # Topics

    async def create_topic(self, name: str, partitions: int = 1, configs: Mapping[str, str] | None = None) -> None:
        """When it returns, clients can produce to it. Raises KafkaError, as an admin client would."""
        check_values(configs or {})
        new = TopicToCreate(
            checked_topic(name),
            checked_integer(partitions, "partitions", INT32_MAX, least=-1),
            configs=dict(configs or {}),
        )
        for done in await self._services().controller.create_topics([new]):
            if done.error != ErrorCode.NONE:
                raise error_of(done.error, done.message, about=name)

    async def delete_topic(self, name: str) -> None:
        for done in await self._services().controller.delete_topics([TopicRef(checked_topic(name))]):
            if done.error != ErrorCode.NONE:
                raise error_of(done.error, done.message, about=name)

    def topics(self) -> list[str]:
        return sorted(self._running().metadata.topics)

    @property
    def broker_id(self) -> BrokerId:
        return self._running().broker_id

    # Time

    async def advance(self, by: str | timedelta) -> None:
        """What is due within that time is due now. Of a broker that does not run only the clock moves."""
        await advance(by, self._settled)

    async def _settled(self) -> None:
        if self._workers is not None:
            await self._workers.idle(_TURNS)

    async def inject(self, fault: TransactionFault, transactional_id: str) -> None:
        await inject(self._services(), fault, checked_text(transactional_id, "transactional id"))

    async def wait_for_lag(self, group: str, lag: int = 0, *, timeout_s: float = 30.0) -> None:
        # It brings the admin client with it, a fifth of what a broker's start costs, and few tests ask for it.
        from ottla.testing.lag import wait_for_lag

        await wait_for_lag(self.bootstrap, group, lag, timeout_s=timeout_s)


T = TypeVar("T")

#: A flush and what follows from it take milliseconds. Work that takes longer is not waited for.
IDLE_SECONDS_MAX: Final = 1.0
#: Work that brings new work, again and again.
_ROUNDS_MAX: Final = 20


class WatchedWorkers:
    def __init__(self, workers: Workers) -> None:
        self._workers = workers
        self._under_way: set[asyncio.Future[Any]] = set()

    def thread(self, work: Callable[[], T]) -> asyncio.Future[T]:
        return self._watched(self._workers.thread(work))

    def process(self, work: Callable[..., T], *arguments: object) -> asyncio.Future[T]:
        return self._watched(self._workers.process(work, *arguments))

    def check(self, work: Callable[..., T], *arguments: object) -> asyncio.Future[T]:
        return self._watched(self._workers.check(work, *arguments))

    def check_long(self, work: Callable[..., T], *arguments: object) -> asyncio.Future[T]:
        return self._watched(self._workers.check_long(work, *arguments))

    def _watched(self, future: asyncio.Future[T]) -> asyncio.Future[T]:
        self._under_way.add(future)
        future.add_done_callback(self._under_way.discard)
        return future

    async def idle(self, turns: int) -> None:
        """Until nothing is under way, and whatever followed from it has had that many turns of the loop."""
        for _ in range(_ROUNDS_MAX):
            for _ in range(turns):
                await asyncio.sleep(0)
            if not self._under_way:
                return
            _, late = await asyncio.wait(list(self._under_way), timeout=IDLE_SECONDS_MAX)
            if late:
                return

    def close(self) -> None:
        self._workers.close()
