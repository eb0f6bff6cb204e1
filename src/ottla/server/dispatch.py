"""From a frame to its handler, and from what the handler returns to the answer.

A request that cannot be understood is answered by closing the connection, as Kafka does: nothing behind it on the wire
can be trusted. The one exception is ApiVersions, which a newer client asks in a version that we may not know.
"""

from __future__ import annotations

import asyncio
import traceback
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from importlib import import_module
from struct import Struct
from types import GeneratorType
from typing import Any, Final

from ottla import logs
from ottla.handlers.api_versions import unsupported_version_answer
from ottla.handlers.call import Call, Services
from ottla.handlers.fetch import FetchHandler
from ottla.handlers.later import Later
from ottla.handlers.peer import Peer, Received
from ottla.handlers.produce import ProduceHandler
from ottla.handlers.routes import API_VERSIONS, FETCH, PATIENT, PRODUCE, ROUTES
from ottla.protocol.apis import api
from ottla.protocol.errors import DecodeError, EncodeError
from ottla.protocol.header import RequestHeader, decode_request_header, encode_response
from ottla.protocol.message import Message
from ottla.steps import Steps

log_event = logs.logger("server")

_KEY_VERSION_CORRELATION: Final = Struct(">hhi")

_KNOWN_AT_ONCE: Final = (Message, bytes)

Handle = Callable[[Call, Any], Any | Awaitable[Any]]


class Dispatcher:
    def __init__(self, services: Services, produce: ProduceHandler, fetch: FetchHandler) -> None:
        self._services = services
        self._clock = services.clock
        self._metrics = services.metrics
        self._produce = produce
        self._fetch = fetch
        self.hot: Mapping[int, Callable[[Peer, Received, int, int, int, int], None]] = {
            PRODUCE: produce.serve,
            FETCH: fetch.serve,
        }
        self.patient = PATIENT
        self._handles: dict[int, Handle] = {}
        self._request_types: dict[int, type[Message]] = {}
        #: Handlers that are waiting: kept so that they are not collected, and can be ended at stop.
        self._tasks: dict[asyncio.Future[Any], None] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._timer_ms = 0
        self._turns = services.turns
        self._journals = services.journals
        self._replicas = services.replicas
        self._waiters = services.replicas.waiters
        self._journals.flush = self.run_empty_round
        produce.run_round = self._run_round

    # -- rounds

    def begin_round(self) -> None:
        self._metrics.round_began_ms = self._clock.monotonic_ms()
        self._journals.begin_round()
        self._produce.begin_round()

    def end_round(self) -> None:
        """One write a partition, the answers that waited for it, and those whose wait it ended."""
        self._journals.stage()
        self._produce.stage()
        self._replicas.write_round()
        self._journals.settle()
        self._produce.end_round()
        self._replicas.round_answered()
        self._fetch.end_round()
        if self._waiters:
            self._settle_waiters()

    def _settle_waiters(self) -> None:
        now_ms = self._clock.monotonic_ms()
        self._waiters.settle(now_ms)
        deadline_ms = self._waiters.next_deadline_ms()
        if deadline_ms is not None and (self._timer is None or deadline_ms < self._timer_ms):
            self._arm(deadline_ms, now_ms)

    def run_empty_round(self) -> None:
        """For what coordinators decided between two rounds of the network."""
        self._run_round(lambda: None)

    def _run_round(self, stage: Callable[[], None]) -> None:
        """For what was decided between two rounds of the network and is to be written."""
        self.begin_round()
        stage()
        self.end_round()

    def _arm(self, deadline_ms: int, now_ms: int) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer_ms = deadline_ms
        delay_s = max(0, deadline_ms - now_ms) / 1000
        self._timer = asyncio.get_running_loop().call_later(delay_s, self._expire)

    def _expire(self) -> None:
        self._timer = None
        now_ms = self._clock.monotonic_ms()
        self._waiters.expire(now_ms)
        deadline_ms = self._waiters.next_deadline_ms()
        if deadline_ms is not None:
            self._arm(deadline_ms, now_ms)

    # -- all other requests

    def serve(self, connection: Peer, buffer: Received, start: int, end: int) -> None:
        key, version, correlation = _KEY_VERSION_CORRELATION.unpack_from(buffer.data, start)
        route = ROUTES.get(key)
        if route is None or not route.version_min <= version <= route.version_max:
            if key == API_VERSIONS:
                connection.answer(unsupported_version_answer(correlation))
                return
            self._refuse(connection, f"API {key} in version {version} is not served")
            return
        # A copy: the buffer goes back to the pool at the end of the round, the handler may need longer.
        frame = bytes(buffer.view[start:end])
        try:
            header, position = decode_request_header(frame, 0)
            # Bytes behind the body are passed over, as Kafka does: librdkafka 2.x sends some in Metadata 13.
            request, _ = self._request_type(key).decode(frame, version, position)
        except DecodeError as error:
            self._refuse(connection, f"API {key} in version {version} cannot be read: {error}")
            return
        self._call(connection, header, request)

    def _call(self, connection: Peer, header: RequestHeader, request: Any) -> None:
        clock = self._clock
        # Each request comes by here, and a named tuple's own `__new__` takes twice as long.
        call: Call = tuple.__new__(
            Call,
            (
                self._services,
                header.api_version,
                header.correlation_id,
                header.client_id,
                connection.principal,
                connection.host,
                connection.listener_name,
                clock.wall_ms(),
                connection,
            ),
        )
        started_ms = clock.monotonic_ms()
        handle = self._handles.get(header.api_key) or self._load(header.api_key)
        try:
            result = handle(call, request)
        except Exception as error:
            self._failed(connection, header, error)
            return
        if type(result) is GeneratorType:
            self._work(connection, header, result, started_ms)
            return
        self._take(connection, header, result, started_ms)

    def _work(self, connection: Peer, header: RequestHeader, steps: Steps[Any], started_ms: int) -> None:
        """A request that may be long: what does not end in its first slice goes on in turns with others."""
        try:
            ended = self._turns.slice(steps)
        except Exception as error:
            self._failed(connection, header, error)
            return
        if ended is not None:
            self._take(connection, header, ended.result, started_ms)
            return
        connection.busy = True

        def done(result: Any) -> None:
            connection.busy = False
            connection.cancel = None
            self._take(connection, header, result, started_ms)
            if not connection.busy and not connection.closed:
                connection.finish()

        job = self._turns.go_on(steps, done, partial(self._failed, connection, header))
        connection.cancel = partial(self._turns.give_up, job)

    def _take(self, connection: Peer, header: RequestHeader, result: Any, started_ms: int) -> None:
        if type(result) is Later:
            if result.response is None:
                connection.busy = True
                result.then(partial(self._answer_later, connection, header, started_ms))
                return
            result = result.response
        if isinstance(result, _KNOWN_AT_ONCE):
            self._answer(connection, header, result, started_ms)
            return
        connection.busy = True
        task = asyncio.ensure_future(result)
        self._tasks[task] = None
        task.add_done_callback(partial(self._waited, connection, header, started_ms))

    def _answer_later(self, connection: Peer, header: RequestHeader, started_ms: int, response: Any) -> None:
        if not connection.closed:
            self._answer(connection, header, response, started_ms)
            connection.finish()

    def _waited(self, connection: Peer, header: RequestHeader, started_ms: int, task: asyncio.Future[Any]) -> None:
        self._tasks.pop(task, None)
        if task.cancelled():
            return
        error = task.exception()
        if isinstance(error, Exception):
            self._failed(connection, header, error)
        elif error is None and not connection.closed:
            self._answer(connection, header, task.result(), started_ms)
            connection.finish()

    def _request_type(self, key: int) -> type[Message]:
        found = self._request_types.get(key)
        if found is None:
            found = self._request_types[key] = api(key).request_type()
        return found

    def _load(self, key: int) -> Handle:
        handle: Handle = import_module(f"ottla.handlers.{ROUTES[key].module}").handle
        self._handles[key] = handle
        return handle

    def _answer(self, connection: Peer, header: RequestHeader, response: Any, started_ms: int) -> None:
        try:
            data = (
                response
                if isinstance(response, bytes)
                else encode_response(header.api_key, header.api_version, header.correlation_id, response)
            )
        except EncodeError as error:
            self._failed(connection, header, error)
            return
        connection.answer(data)
        elapsed_ms = self._clock.monotonic_ms() - started_ms
        self._metrics.request(header.api_key, api(header.api_key).name, elapsed_ms)

    # -- faults

    def _refuse(self, connection: Peer, reason: str) -> None:
        log_event.warning_limited("closing a connection", peer=connection.host, reason=reason)
        connection.abort()

    def _failed(self, connection: Peer, header: RequestHeader, error: Exception) -> None:
        log_event.error(
            "a request failed",
            api=header.api_key,
            version=header.api_version,
            error="".join(traceback.format_exception(error)),
        )
        connection.abort()

    # -- stop

    async def drain(self, seconds: float) -> None:
        """Gives requests in progress a moment to end, and ends the rest.

        A Produce that waits for a flush is one of those: the stop waits for the same flush in any case, and its
        client would have to send it again. A Fetch that waits for records is not, nor who waits for other brokers.
        """
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        await asyncio.sleep(0)  # what coordinators have just answered leaves with the next turn
        tasks = [*self._tasks, *self._produce.checks.tasks]
        if tasks:
            await asyncio.wait(tasks, timeout=seconds)
        for task in tasks:
            task.cancel()
        await self._replicas.catch_up(seconds)
        await asyncio.sleep(0)  # and so do these answers
