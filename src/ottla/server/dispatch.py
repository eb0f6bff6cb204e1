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
from types import GeneratorType
from typing import Any, Final

from ottla import logs
from ottla.handlers.api_versions import unsupported_version_answer
from ottla.handlers.calls.call import Call, Services
from ottla.handlers.calls.later import Later
from ottla.handlers.calls.letting_go import LONG_BYTES, Parts, lets_go_itself
from ottla.handlers.calls.loading import api_loaded, is_loaded, load_api
from ottla.handlers.calls.peer import ANSWER_BYTES_MAX, Peer, RequestBuffer
from ottla.handlers.calls.turns import SLICE_MS, STEPS_A_LOOK, JobResult, PausingSteps, behind
from ottla.handlers.commit.recognised import RecognisedCommits
from ottla.handlers.fetch.handler import FetchHandler
from ottla.handlers.produce.handler import ProduceHandler
from ottla.handlers.routes import (
    ADD_PARTITIONS_TO_TXN,
    API_VERSIONS,
    BEFORE_AUTHENTICATION,
    BETWEEN_BROKERS,
    CONTROL,
    END_TXN,
    FETCH,
    OFFSET_COMMIT,
    PATIENT,
    PRODUCE,
    ROUTES,
    UNHURRIED,
)
from ottla.handlers.transactions.recognised import RecognisedTransactions
from ottla.protocol.apis import api
from ottla.protocol.errors import DecodeError
from ottla.protocol.fields import REQUEST_FIELDS
from ottla.protocol.header import (
    RequestHeader,
    decode_request_header,
    encode_response,
    encode_response_steps,
    is_long,
)
from ottla.protocol.message import Message
from ottla.protocol.primitives import Buffer
from ottla.protocol.stepping import DecodingAllowance
from ottla.server.answer_memory import AnswerMemory
from ottla.steps import Steps

log_event = logs.logger("server")

_KNOWN_AT_ONCE: Final = (Message, bytes, bytearray)

Handle = Callable[[Call, Any], Any | Awaitable[Any]]


class Dispatcher:
    def __init__(self, services: Services, produce: ProduceHandler, fetch: FetchHandler, memory: AnswerMemory) -> None:
        self._memory = memory
        self._services = services
        self._clock = services.clock
        self._metrics = services.metrics
        self._produce = produce
        self.hot: Mapping[int, Callable[[Peer, RequestBuffer, int, int, int, int], None]] = {
            PRODUCE: produce.serve,
            FETCH: fetch.serve,
        }
        self.patient = PATIENT
        self.round = services.round
        commits, transactions = RecognisedCommits(services), RecognisedTransactions(services)
        #: What serves a request that is like an earlier one of its connection.
        self._recognised = {
            OFFSET_COMMIT: commits.serve,
            ADD_PARTITIONS_TO_TXN: transactions.serve_adds,
            END_TXN: transactions.serve_ends,
        }
        # What every client asks first. Behind a crowd a worker that imports has the interpreter for moments only.
        load_api(API_VERSIONS)
        services.round.join(produce)
        services.round.join(fetch)
        self._handles: dict[int, Handle] = {}
        self._request_types: dict[int, type[Message]] = {}
        #: Handlers that are waiting: kept so that they are not collected, and can be ended at stop.
        self._tasks: dict[asyncio.Future[Any], None] = {}
        self._turns = services.turns
        self._replicas = services.replicas
        self._broker_listeners = services.config.server.broker_listeners

    def serve(self, connection: Peer, buffer: RequestBuffer, start: int, end: int) -> None:
        key, version, correlation = REQUEST_FIELDS.unpack_from(buffer.data, start)
        recognised = self._recognised.get(key)
        if (
            recognised is not None
            and connection.is_open
            and recognised(connection, buffer, start, end, version, correlation)
        ):
            return
        route = ROUTES.get(key)
        if route is None or not route.version_min <= version <= route.version_max:
            if key == API_VERSIONS:
                connection.answer(unsupported_version_answer(correlation))
                return
            self._refuse(connection, f"API {key} in version {version} is not served")
            return
        if not connection.is_open and key not in BEFORE_AUTHENTICATION:
            self._refuse(connection, f"API {key} was asked for in a session that is not open")
            return
        if key in BETWEEN_BROKERS and connection.listener_name not in self._broker_listeners:
            self._refuse(connection, f"API {key} is not served to clients")
            return
        if is_long(end - start) or not is_loaded(key):
            self._serve_long(connection, buffer, start, end)
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
        started_ms = self._clock.monotonic_ms()
        try:
            result = self._handle(key)(self._call(connection, header), request)
            if type(result) is GeneratorType:
                self._work(connection, header, self._finished(header, result), started_ms)
            else:
                self._take(connection, header, result, started_ms)
        except Exception as error:
            self._failed(connection, header, error)

    def _serve_long(self, connection: Peer, buffer: RequestBuffer, start: int, end: int) -> None:
        """A frame that may hold thousands of elements, or whose API is asked for the first time: decoded, handled and
        answered in steps."""
        frame = buffer.keep(start, end)
        try:
            header, position = decode_request_header(frame, 0)
        except DecodeError as error:
            self._refuse(connection, f"a header cannot be read: {error}")
            return
        steps = self._finished(header, self._handled(self._call(connection, header), header, frame, position))
        self._go_on(connection, header, steps, self._clock.monotonic_ms(), end - start)

    @lets_go_itself
    def _handled(self, call: Call, header: RequestHeader, frame: Buffer, position: int) -> PausingSteps[Any]:
        key = header.api_key
        yield from api_loaded(self._services.workers, key)
        if key not in PATIENT and key not in CONTROL:  # whose answers are short
            yield from self._room()
        size = len(frame)
        request, _ = yield from self._request_type(key).decode_steps(
            frame, header.api_version, position, DecodingAllowance()
        )
        result = self._handle(key)(call, request)
        del frame  # handlers that wait hold what they need
        result = yield from _known(result)
        if size >= LONG_BYTES:
            parts = Parts(request)
            yield from parts.found()
            del request
            yield from parts.let_go()
        return result

    @lets_go_itself
    def _finished(self, header: RequestHeader, steps: PausingSteps[Any]) -> PausingSteps[Any]:
        """The answer in bytes, where it is known when the handler has ended."""
        if header.api_key in CONTROL:  # clients that leave their answers untaken hold no controller up
            result = yield from _known((yield from steps))
        else:
            result = yield from _known((yield from self._as_there_is_room(steps)))
        if not isinstance(result, Message):
            return result
        if header.api_key not in CONTROL:
            yield from self._room()
        answer = yield from encode_response_steps(
            header.api_key, header.api_version, header.correlation_id, result, ANSWER_BYTES_MAX
        )
        if len(answer) >= LONG_BYTES:
            parts = Parts(result)
            yield from parts.found()
            del result
            yield from parts.let_go()
        return answer

    def _room(self) -> PausingSteps[None]:
        """What others have not taken of their answers leaves room for a long one."""
        while not self._memory.has_room:
            yield self._memory

    def _as_there_is_room(self, steps: PausingSteps[Any]) -> PausingSteps[Any]:
        """Work that is long makes a long answer: while there is no room for that, nothing of it is gathered either.

        What answers are made from takes more memory than they do, and thousands may wait.
        """
        try:
            while True:
                for _ in range(STEPS_A_LOOK):
                    yield next(steps)
                while not self._memory.has_room:
                    yield self._memory
        except StopIteration as end:
            return end.value
        finally:
            steps.close()

    def _call(self, connection: Peer, header: RequestHeader) -> Call:
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
                self._clock.wall_ms(),
                connection,
            ),
        )
        return call

    def _work(self, connection: Peer, header: RequestHeader, steps: PausingSteps[Any], started_ms: int) -> bool:
        """A request that may be long: what does not end in its first slice goes on in turns with others.

        The first slices of a round end together: a hundred requests that each take less than one would else hold up
        everybody for the sum of them. Where many are in progress, those that gather much are not begun: thousands would
        hold what their first slices have gathered. Whether it is answered.
        """
        if header.api_key in UNHURRIED and self._turns.is_full:
            self._go_on(connection, header, steps, started_ms, 0)
            return False
        ended = self._turns.slice(steps, self.round.began_ms + SLICE_MS)
        if isinstance(ended, JobResult):
            return self._take(connection, header, ended.result, started_ms, in_steps=True)
        self._go_on(connection, header, behind(ended, steps), started_ms, 0)
        return False

    def _go_on(
        self, connection: Peer, header: RequestHeader, steps: PausingSteps[Any], started_ms: int, size: int
    ) -> None:
        def done(result: Any) -> None:
            if self._take(connection, header, result, started_ms, in_steps=True):
                connection.finish()

        is_first = header.api_key in CONTROL
        job = self._turns.go_on(steps, done, partial(self._failed, connection, header), size, is_first=is_first)
        connection.answer_later(partial(self._turns.give_up, job))

    def _take(
        self, connection: Peer, header: RequestHeader, result: Any, started_ms: int, *, in_steps: bool = False
    ) -> bool:
        """Answers with what a handler has returned; False where that is known later, and the connection waits."""
        if type(result) is Later:
            if result.response is None:
                connection.answer_later(None, waits=header.api_key in PATIENT)
                result.then(partial(self._answer_late, connection, header, started_ms, in_steps))
                return False
            result = result.response
            if type(result) is GeneratorType:
                return self._work(connection, header, self._finished(header, result), started_ms)
        if isinstance(result, _KNOWN_AT_ONCE):
            self._answer(connection, header, result, started_ms)
            return True
        connection.answer_later(None)
        task = asyncio.ensure_future(result)
        self._tasks[task] = None
        task.add_done_callback(partial(self._waited, connection, header, started_ms, in_steps))
        return False

    def _waited(
        self, connection: Peer, header: RequestHeader, started_ms: int, in_steps: bool, task: asyncio.Future[Any]
    ) -> None:
        self._tasks.pop(task, None)
        if task.cancelled():
            # By the stop, or with something that it waited for: nobody else ends the client's wait.
            connection.abort()
            return
        error = task.exception()
        if isinstance(error, Exception):
            self._failed(connection, header, error)
        elif error is None:
            self._answer_late(connection, header, started_ms, in_steps, task.result())

    def _answer_late(
        self, connection: Peer, header: RequestHeader, started_ms: int, in_steps: bool, response: Any
    ) -> None:
        if connection.closed:
            return
        try:
            is_made_in_steps = type(response) is GeneratorType
            if is_made_in_steps or (in_steps and isinstance(response, Message)):
                steps = self._finished(header, response if is_made_in_steps else _nothing_more(response))
                ended = self._turns.slice(steps)
                if not isinstance(ended, JobResult):
                    self._go_on(connection, header, behind(ended, steps), started_ms, 0)
                    return
                response = ended.result
            if isinstance(response, Message):
                response = encode_response(header.api_key, header.api_version, header.correlation_id, response)
            now_ms = self._clock.monotonic_ms()
            if started_ms >= self.round.began_ms:
                connection.finish_with(response, now_ms)
            else:
                # A crowd may have waited for the same thing: its answers have the time of a round's end.
                connection.answer(response)
                connection.finish()
            self._metrics.request(header.api_key, api(header.api_key).name, now_ms - started_ms)
        except Exception as error:
            self._failed(connection, header, error)

    def _request_type(self, key: int) -> type[Message]:
        found = self._request_types.get(key)
        if found is None:
            found = self._request_types[key] = api(key).request_type()
        return found

    def _handle(self, key: int) -> Handle:
        return self._handles.get(key) or self._load(key)

    def _load(self, key: int) -> Handle:
        handle: Handle = import_module(f"ottla.handlers.{ROUTES[key].module}").handle
        self._handles[key] = handle
        return handle

    def _answer(self, connection: Peer, header: RequestHeader, response: Any, started_ms: int) -> None:
        if isinstance(response, Message):
            response = encode_response(header.api_key, header.api_version, header.correlation_id, response)
        connection.answer(response)
        elapsed_ms = self._clock.monotonic_ms() - started_ms
        self._metrics.request(header.api_key, api(header.api_key).name, elapsed_ms)

    # -- faults

    def _refuse(self, connection: Peer, reason: str) -> None:
        log_event.warning_limited("closing a connection", peer=connection.host, reason=reason)
        connection.refuse()

    def _failed(self, connection: Peer, header: RequestHeader, error: Exception) -> None:
        if isinstance(error, DecodeError):
            self._refuse(connection, f"API {header.api_key} in version {header.api_version} cannot be read: {error}")
            return
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
        client would have to send it again. A Fetch that waits for records is not, nor what waits for other brokers.
        """
        await asyncio.sleep(0)  # what coordinators have just answered leaves with the next turn
        tasks = [*self._tasks, *self._produce.checks.tasks]
        if tasks:
            await asyncio.wait(tasks, timeout=seconds)
        for task in tasks:
            task.cancel()
        await self._replicas.files.catch_up(seconds)
        await asyncio.sleep(0)  # and so do these answers


def _known(result: Any) -> PausingSteps[Any]:
    """What a handler has returned, where that is known by now: the steps that make it are done."""
    if type(result) is GeneratorType:
        result = yield from result
    if type(result) is Later and result.response is not None:
        result = result.response
        if type(result) is GeneratorType:
            result = yield from result
    return result


def _nothing_more(result: Any) -> Steps[Any]:
    """What is known already, as steps."""
    yield
    return result
