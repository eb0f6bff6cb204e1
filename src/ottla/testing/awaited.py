"""A broker for tests that run in an event loop: what takes a while is awaited. Its own loop runs in a thread."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from datetime import timedelta
from types import TracebackType
from typing import Any, Self, TypeVar

from ottla.testing.injecting import TransactionFault
from ottla.testing.threaded import ThreadedBroker

T = TypeVar("T")


class AsyncBroker(ThreadedBroker):
    """Runs inside of `async with`, or from `start` to `close`; may be started again, over the same data and port."""

    # Its life

    async def start(self) -> Self:
        """Serves when it returns; raises what keeps a broker from starting (`StartFault`, `ConfigError`, ...)."""
        await self._run(self._hosted.start)
        return self

    async def stop(self) -> None:
        """A clean stop. The data stay for the next `start` until `close`. Nothing where it does not run."""
        await self._ending()

    async def restart(self) -> None:
        """A clean stop and a start, over the same data and on the same port."""
        await self.stop()
        await self.start()

    async def close(self) -> None:
        """Stops, ends the thread, and removes the temporary folder."""
        await self._ending(self._hosted.remove_temporary)

    async def __aenter__(self) -> Self:
        try:
            return await self.start()
        except BaseException:
            await self.close()
            raise

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    # Topics

    async def create_topic(self, name: str, partitions: int = 1, configs: Mapping[str, str] | None = None) -> None:
        """When it returns, clients can produce to it. Raises KafkaError, as an admin client would."""
        await self._run(lambda: self._hosted.create_topic(name, partitions, configs))

    async def delete_topic(self, name: str) -> None:
        await self._run(lambda: self._hosted.delete_topic(name))

    # Time, transactions and groups

    async def advance(self, by: str | timedelta) -> None:
        """Moves the broker's clock (`"8d"`, `"90m"`): retention, sessions and expiry of that time are due now."""
        await self._run(lambda: self._hosted.advance(by))

    async def inject(self, fault: TransactionFault, transactional_id: str) -> None:
        """`"timeout"` aborts the id's open transaction as if its time were over, `"fence"` takes the id over, as a new
        producer does. When it returns, readers see what came of it. Raises KafkaError where nobody has the id
        (`TransactionalIdNotFound`), or no transaction is open that may time out (`InvalidTxnState`)."""
        await self._run(lambda: self._hosted.inject(fault, transactional_id))

    async def wait_for_lag(self, group: str, lag: int = 0, *, timeout: float = 30.0) -> None:  # noqa: ASYNC109
        """Until the group is at most `lag` records behind what there is; raises StillBehind (a TimeoutError)."""
        await self._run(lambda: self._hosted.wait_for_lag(group, lag, timeout_s=timeout))

    # Its loop

    async def _run(self, work: Callable[[], Coroutine[Any, Any, T]]) -> T:
        return await asyncio.wrap_future(self._loop.submit(work))

    async def _ending(self, then: Callable[[], object] | None = None) -> None:
        """What ends the broker is done to its end, also where the test is cancelled meanwhile."""

        async def ended() -> None:
            try:
                if self._loop.is_running:
                    await self._run(self._hosted.stop)
            finally:
                await asyncio.to_thread(self._loop.end)
                if then is not None:
                    await asyncio.to_thread(then)

        task = asyncio.ensure_future(ended())
        await asyncio.shield(task)
