"""A broker on a thread of its own, for tests that have no event loop, or block theirs."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Callable, Coroutine, Mapping
from concurrent.futures import Future
from types import TracebackType
from typing import Any, Final, Self, TypeVar

from ottla.testing.hosting import HostedBroker

T = TypeVar("T")

#: What a broker in process is asked takes milliseconds; longer, and it hangs.
SECONDS_MAX: Final = 60.0


class InProcessBroker:
    """Runs inside of `with`, or from `start()` to `close()`. Every method may be called from any thread."""

    def __init__(
        self,
        *,
        data: str | os.PathLike[str] | None = None,
        port: int = 0,
        properties: Mapping[str, str] | None = None,
    ) -> None:
        self._hosted = HostedBroker(data=data, port=port, properties=properties)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None

    @property
    def bootstrap(self) -> str:
        """`host:port`, for a client's bootstrap.servers. It stays the same over restarts."""
        return self._hosted.bootstrap

    @property
    def port(self) -> int:
        return self._hosted.port

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

    # Its life

    def start(self) -> Self:
        """Serves when it returns; raises what keeps a broker from starting (`StartFault`, `ConfigError`, ...)."""
        self._run(self._hosted.start)
        return self

    def stop(self) -> None:
        """A clean stop. The data stay for the next `start` until `close`. Nothing where it does not run."""
        if self._thread is not None:
            try:
                self._run(self._hosted.stop)
            finally:
                self._end_thread()

    def restart(self) -> None:
        """A clean stop and a start, over the same data and on the same port."""
        self.stop()
        self.start()

    def close(self) -> None:
        """Stops, ends the thread, and removes the temporary folder."""
        try:
            self._run(self._hosted.close)
        finally:
            self._end_thread()

    def __enter__(self) -> Self:
        try:
            return self.start()
        except BaseException:
            self.close()
            raise

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    # Topics

    def create_topic(self, name: str, partitions: int = 1, configs: Mapping[str, str] | None = None) -> None:
        """When it returns, clients can produce to it. Raises KafkaError, as an admin client would."""
        self._run(lambda: self._hosted.create_topic(name, partitions, configs))

    def delete_topic(self, name: str) -> None:
        self._run(lambda: self._hosted.delete_topic(name))

    def topics(self) -> list[str]:
        return self._run(lambda: _given(self._hosted.topics))

    def metrics(self) -> str:
        """The broker's metrics as Prometheus would read them."""
        return self._run(lambda: _given(self._hosted.metrics))

    # Its thread

    def _run(self, work: Callable[[], Coroutine[Any, Any, T]]) -> T:
        return asyncio.run_coroutine_threadsafe(work(), self._running_loop()).result(SECONDS_MAX)

    def _running_loop(self) -> asyncio.AbstractEventLoop:
        if self._loop is None:
            looping: Future[asyncio.AbstractEventLoop] = Future()
            # A daemon, so that a test run that is cut short ends in spite of a broker that nobody closed.
            self._thread = threading.Thread(target=_loop, args=(looping,), name="ottla-broker", daemon=True)
            self._thread.start()
            self._loop = looping.result(SECONDS_MAX)
        return self._loop

    def _end_thread(self) -> None:
        loop, thread = self._loop, self._thread
        self._loop = self._thread = None
        if loop is not None and thread is not None:
            loop.call_soon_threadsafe(loop.stop)
            thread.join(SECONDS_MAX)


def _loop(looping: Future[asyncio.AbstractEventLoop]) -> None:
    with asyncio.Runner() as runner:
        loop = runner.get_loop()
        looping.set_result(loop)
        loop.run_forever()


async def _given(work: Callable[[], T]) -> T:
    return work()
