"""What both faces of a broker in a thread share: the thread, the broker in it, and what is asked without a wait."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import TypeVar

from ottla.testing.addresses import ALL_INTERFACES, Addresses
from ottla.testing.hosting import HostedBroker
from ottla.testing.own_loop import SECONDS_MAX, OwnLoop

T = TypeVar("T")


class ThreadedBroker:
    def __init__(
        self,
        *,
        data: str | os.PathLike[str] | None = None,
        port: int = 0,
        properties: Mapping[str, str] | None = None,
        container_host: str | None = None,
        container_bind: str = ALL_INTERFACES,
        container_port: int = 0,
    ) -> None:
        self._loop = OwnLoop()
        self._addresses = Addresses(
            properties or {},
            port=port,
            container_host=container_host,
            container_bind=container_bind,
            container_port=container_port,
        )
        self._hosted = HostedBroker(self._loop.shift, data=data, addresses=self._addresses)

    @property
    def bootstrap(self) -> str:
        """`host:port`, for a client's bootstrap.servers. It stays the same over restarts."""
        return self._hosted.bootstrap

    @property
    def container_bootstrap(self) -> str:
        """The same for a client in a container. ValueError where no `container_host` was given."""
        return self._addresses.container_bootstrap

    @property
    def listening_on(self) -> list[str]:
        """`host:port` of each listener, whatever is advertised."""
        return list(self._addresses.listening_on)

    @property
    def port(self) -> int:
        return self._addresses.port

    @property
    def data(self) -> str:
        """The folder that holds the log directory, and what else the broker keeps."""
        return self._hosted.data

    @property
    def metrics_address(self) -> str | None:
        """Where `/metrics` is served, if `ottla.metrics.port` was set."""
        return self._hosted.metrics_address

    @property
    def is_running(self) -> bool:
        return self._hosted.is_running

    def topics(self) -> list[str]:
        return self._read(self._hosted.topics)

    def metrics(self) -> str:
        """The broker's metrics as Prometheus would read them."""
        return self._read(self._hosted.metrics)

    def _read(self, work: Callable[[], T]) -> T:
        """What the broker has at hand: asked for in its thread, and there before anybody would notice the wait."""

        async def given() -> T:
            return work()

        return self._loop.submit(given).result(SECONDS_MAX)
