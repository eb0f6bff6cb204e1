"""A broker on a thread of its own, for tests that have no event loop, or block theirs."""

from __future__ import annotations

import threading
from collections.abc import Callable, Coroutine, Mapping
from datetime import timedelta
from types import TracebackType
from typing import Any, Self, TypeVar

from ottla.testing.injecting import TransactionFault
from ottla.testing.own_loop import SECONDS_MAX
from ottla.testing.threaded import ThreadedBroker

T = TypeVar("T")


class InProcessBroker(ThreadedBroker):
    """Runs inside of `with`, or from `start()` to `close()`. Every method may be called from any thread."""

    # Its life

    def start(self) -> Self:
        """Serves when it returns; raises what keeps a broker from starting (`StartFault`, `ConfigError`, ...)."""
        self._run(self._hosted.start)
        return self

    def stop(self) -> None:
        """A clean stop. The data stay for the next `start` until `close`. Nothing where it does not run."""
        if self._loop.is_running:
            try:
                self._run(self._hosted.stop)
            finally:
                self._loop.end()

    def restart(self) -> None:
        """A clean stop and a start, over the same data and on the same port."""
        self.stop()
        self.start()

    def close(self) -> None:
        """Stops, ends the thread, and removes the temporary folder."""
        try:
            self.stop()
        finally:
            self._hosted.remove_temporary()

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

    # Time, transactions and groups

    def advance(self, by: str | timedelta) -> None:
        """Moves the broker's clock (`"8d"`, `"90m"`): retention, sessions and expiry of that time are due now."""
        self._run(lambda: self._hosted.advance(by))

    def inject(self, fault: TransactionFault, transactional_id: str) -> None:
        """`"timeout"` aborts the id's open transaction as if its time were over, `"fence"` takes the id over, as a new
        producer does. When it returns, readers see what came of it. Raises KafkaError where nobody has the id
        (`TransactionalIdNotFound`), or no transaction is open that may time out (`InvalidTxnState`)."""
        self._run(lambda: self._hosted.inject(fault, transactional_id))

    def wait_for_lag(self, group: str, lag: int = 0, *, timeout: float = 30.0) -> None:
        """Until the group is at most `lag` records behind what there is; raises StillBehind (a TimeoutError)."""
        # What is no number, or not one to wait for, is refused there.
        longer_s = min(timeout, threading.TIMEOUT_MAX) if isinstance(timeout, int | float) and timeout > 0 else 0
        self._run(lambda: self._hosted.wait_for_lag(group, lag, timeout_s=timeout), longer_s)

    # Its thread

    def _run(self, work: Callable[[], Coroutine[Any, Any, T]], longer_s: float = 0.0) -> T:
        seconds = min(SECONDS_MAX + longer_s, threading.TIMEOUT_MAX)
        done = self._loop.submit(work)
        try:
            return done.result(seconds)
        except TimeoutError:
            if done.done():  # it is what the work has raised
                raise
            raise TimeoutError(f"the broker has not done it within {seconds:g} s") from None
