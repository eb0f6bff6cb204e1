"""Links to other brokers: one connection each, requests in the order of the calls, and what became of each.

    no connection -- a call waits --> dialling -- both sides agreed on versions --> open
          ^                              |                                            |
          +---- nobody waits any more ---+          the connection is lost, or the broker registered again

A call ends in one of three ways: with its answer; refused, which means that it was never sent; or lost, which means
that nobody knows whether the other broker has carried it out. A link never sends a request twice: whether that is right
is its caller's to know.

A broker that registers again is another process, with another epoch and perhaps at another address. What was asked of
the former one is lost, and the link dials the new one at once, without the pause that the former one has earned.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from functools import partial
from typing import Final, NamedTuple

from ottla import logs
from ottla.client.errors import ClientClosed, ConnectFailed, ConnectionLost, KafkaError, UnsupportedVersion
from ottla.client.settings import INT32_MAX
from ottla.client.wire.backoff import Backoff
from ottla.client.wire.connection import BrokerConnection
from ottla.client.wire.dialling import connect
from ottla.client.wire.world import ClientPorts
from ottla.model import BrokerId
from ottla.protocol.apis import api
from ottla.protocol.message import Message
from ottla.steps import is_stray

log_event = logs.logger("interbroker")

#: Kafka's reconnect.backoff.ms and reconnect.backoff.max.ms, as its brokers have them among each other.
RECONNECT_FIRST_MS: Final = 50
RECONNECT_LONGEST_MS: Final = 1_000
#: A broker that is there answers within milliseconds; a machine that is gone says nothing, and is tried again.
SETUP_MS_MAX: Final = 2_000
#: Calls that wait to be sent; the connection has its own bound (100) for those that were. Callers that are not
#: answered send one request at a time each, so that more than this means that one of them does not look at answers.
WAITING_MAX: Final = 100
#: That a broker is not reached is said again after so long.
_UNREACHED_SAID_S: Final = 30.0


class LinkFault(Exception):
    """A call had no answer."""


class LinkLost(LinkFault):
    """It was sent. Whether the other broker has carried it out is not known."""


class LinkRefused(LinkFault):
    """It was never sent."""


class BrokerAddress(NamedTuple):
    """Where a broker is reached, in one of its lives."""

    host: str
    port: int
    #: The broker's epoch: of the same address with another one, the former process is gone.
    epoch: int


#: Where a broker is now; None while it is not registered.
AddressOf = Callable[[BrokerId], BrokerAddress | None]


class BrokerLinks:
    """The links of one purpose: those on another listener, or that must not wait behind one another, are others'."""

    def __init__(self, address_of: AddressOf, world: ClientPorts, client_id: str) -> None:
        self._address_of = address_of
        self._world = world
        self._client_id = client_id
        self._links: dict[BrokerId, BrokerLink] = {}
        self._closed = False

    def to(self, broker: BrokerId) -> BrokerLink:
        link = self._links.get(broker)
        if link is None:
            link = self._links[broker] = BrokerLink(broker, self._address_of, self._world, self._client_id)
            if self._closed:
                link.close()
        return link

    def look(self) -> None:
        """Brokers have registered or gone: connections to former ones end now, and not with their next call."""
        for link in list(self._links.values()):
            link.look()

    def close(self) -> None:
        self._closed = True
        for link in self._links.values():
            link.close()


class _Call:
    """A request on its way, in the line or sent."""

    __slots__ = ("at_least", "deadline", "future", "request", "timeout_ms", "timer", "version", "waiting_on")

    def __init__(
        self,
        request: Message,
        version: int,
        at_least: int,
        future: asyncio.Future[Message],
        timeout_ms: int,
        deadline: float,
    ) -> None:
        self.request = request
        self.version = version
        self.at_least = at_least
        self.future = future
        self.timeout_ms = timeout_ms
        #: When that is over, in the loop's own time.
        self.deadline = deadline
        #: Ends it in the line; None once it has left.
        self.timer: asyncio.TimerHandle | None = None
        #: Ends it behind the line, where it has waited there.
        self.waiting_on: asyncio.TimerHandle | None = None

    def leaves(self) -> None:
        """It waits in the line no more."""
        if self.timer is not None:
            self.timer.cancel()
            self.timer = None

    def ends(self) -> None:
        if self.waiting_on is not None:
            self.waiting_on.cancel()
            self.waiting_on = None

    def fail(self, fault: Exception) -> None:
        if not self.future.done():
            self.future.set_exception(fault)
            self.future.exception()  # the caller may have gone: that is no news for the log


class BrokerLink:
    """To one broker: one connection, pipelined."""

    def __init__(self, broker: BrokerId, address_of: AddressOf, world: ClientPorts, client_id: str) -> None:
        self.broker = broker
        self._address_of = address_of
        self._world = world
        self._client_id = client_id
        self._loop = asyncio.get_running_loop()
        self._backoff = Backoff(RECONNECT_FIRST_MS, RECONNECT_LONGEST_MS, world.entropy)
        #: Calls that are not sent yet, in their order.
        self._line: deque[_Call] = deque()
        self._connection: BrokerConnection | None = None
        #: Where the connection leads, or where it is dialled just now or was last.
        self._address: BrokerAddress | None = None
        self._dialling: asyncio.Task[None] | None = None
        #: Since the last answer, and when it may be dialled again, in the loop's time.
        self._failures = 0
        self._not_before = 0.0
        #: What was wrong last, for calls whose time is over in the line.
        self._why = "it was not reached"
        self._throttle: asyncio.TimerHandle | None = None
        self._closed = False
        #: Whether there is to be a connection though nobody calls.
        self._wanted = False
        #: Of a user that sends frames of its own: called when there is a connection, and when there is none any more.
        self.on_open: Callable[[BrokerConnection], None] | None = None
        self.on_closed: Callable[[], None] | None = None
        #: Called when the other side has closed the connection, or refuses one: its process may have ended.
        self.on_hung_up: Callable[[], None] | None = None

    @property
    def connection(self) -> BrokerConnection | None:
        """For a user that sends frames of its own, which are its own to bound."""
        return self._connection

    def want(self) -> None:
        """There is to be a connection from now on, and another whenever it is lost, until `close`."""
        self._wanted = True
        self.look()
        self._serve()

    def hang_up(self, why: str) -> None:
        """Ends the connection though nothing is wrong with it; the next one is dialled at once."""
        connection = self._connection
        if connection is not None:
            self._drop(connection, ConnectionLost(why))
            self._serve()

    @property
    def waiting(self) -> int:
        """Calls that are not sent yet."""
        return len(self._line)

    async def call(self, request: Message, version: int, *, timeout_ms: int, at_least: int | None = None) -> Message:
        """Sends a request in this version, or in an older one down to `at_least` where that is given; returns the
        answer. Raises LinkLost or LinkRefused.

        The time is for all of it: waiting for a connection, and for the answer.
        """
        self.look()
        self._refuse_at_once()
        future: asyncio.Future[Message] = self._loop.create_future()
        deadline = self._loop.time() + timeout_ms / 1000
        one = _Call(request, version, version if at_least is None else at_least, future, timeout_ms, deadline)
        one.timer = self._loop.call_at(deadline, self._expire, one)
        self._line.append(one)
        self._serve()
        try:
            return await future
        finally:
            one.ends()
            if one.timer is not None:  # the caller was cancelled while its request was in the line
                one.leaves()
                self._line.remove(one)

    def look(self) -> None:
        """Ends the connection where the broker is another process by now, or none."""
        address = self._address_of(self.broker)
        if address == self._address:
            return
        self._address = address
        self._failures, self._not_before = 0, 0.0
        if self._connection is not None:
            fault = ConnectionLost(f"broker {self.broker} is not the process that was asked any more")
            self._drop(self._connection, fault)
        if self._dialling is not None:
            self._dialling.cancel()
            self._dialling = None
        if address is None:
            self._refuse_line(f"broker {self.broker} is not registered")
        elif not self._closed:
            self._serve()

    def close(self) -> None:
        """Calls that wait are refused, and those that were sent are lost; so is every later one refused."""
        if self._closed:
            return
        self._closed = True
        if self._dialling is not None:
            self._dialling.cancel()
            self._dialling = None
        if self._throttle is not None:
            self._throttle.cancel()
        self._refuse_line(f"the link to broker {self.broker} is closed")
        if self._connection is not None:
            self._drop(self._connection, ClientClosed(f"the link to broker {self.broker} was closed"))

    # The line

    def _refuse_at_once(self) -> None:
        if self._closed:
            raise LinkRefused(f"the link to broker {self.broker} is closed")
        if self._address is None:
            raise LinkRefused(f"broker {self.broker} is not registered")
        if len(self._line) >= WAITING_MAX:
            raise LinkRefused(f"{WAITING_MAX} requests wait for broker {self.broker}")

    def _expire(self, one: _Call) -> None:
        one.timer = None
        self._line.remove(one)
        one.fail(LinkRefused(f"broker {self.broker}: {self._why}"))

    def _refuse_line(self, why: str) -> None:
        line, self._line = self._line, deque()
        for one in line:
            one.leaves()
            one.fail(LinkRefused(why))

    def _serve(self) -> None:
        """Sends what waits, as far as there is room."""
        connection = self._connection
        if connection is None:
            if (self._line or self._wanted) and self._dialling is None and self._address and not self._closed:
                self._dialling = self._loop.create_task(self._dial())
            return
        while self._line and connection.sendable:
            self._send(connection, self._line.popleft())
        if self._line and connection.throttled_until > self._loop.time() and self._throttle is None:
            self._throttle = self._loop.call_at(connection.throttled_until, self._throttled_no_more)

    def _throttled_no_more(self) -> None:
        self._throttle = None
        self._serve()

    def _send(self, connection: BrokerConnection, one: _Call) -> None:
        one.leaves()
        key = one.request.API_KEY
        left_s = one.deadline - self._loop.time()
        try:
            version = connection.version(key, at_most=one.version, at_least=one.at_least)
            # What is left of its time behind the line says nothing about the broker: the connection, which would take
            # all others along, has a whole one.
            answer = connection.send(one.request, api(key).response_type(), version, one.timeout_ms)
        except UnsupportedVersion as fault:
            one.fail(LinkRefused(str(fault)))
        except Exception as fault:  # the request cannot be said in that version: its sender's fault
            one.fail(fault)
        else:
            self._why = "requests that were sent before are not answered"
            if round(left_s * 1000) < one.timeout_ms:
                one.waiting_on = self._loop.call_later(
                    left_s, one.fail, LinkLost(f"broker {self.broker} did not answer in time")
                )
            answer.add_done_callback(partial(self._answered, one))

    def _answered(self, one: _Call, answer: asyncio.Future[Message]) -> None:
        fault = answer.exception()
        if fault is None:
            self._failures = 0
            if not one.future.done():
                one.future.set_result(answer.result())
        elif isinstance(fault, KafkaError):
            one.fail(LinkLost(str(fault)))
        else:
            one.fail(fault if isinstance(fault, Exception) else LinkLost(repr(fault)))
        self._serve()

    # The connection

    async def _dial(self) -> None:
        """Until there is a connection, or nobody waits for one. `look` cancels it when the address changes."""
        while self._line or self._wanted:
            pause = self._not_before - self._loop.time()
            if pause > 0:
                await asyncio.sleep(pause)
                continue
            address = self._address
            assert address is not None, "a call is refused where there is no address"
            try:
                connection = await connect(
                    self._world,
                    address.host,
                    address.port,
                    client_id=self._client_id,
                    setup_timeout_ms=SETUP_MS_MAX,
                    answer_bytes_max=INT32_MAX,  # a batch is as large as its topic's max.message.bytes has let it be
                )
            except (Exception, asyncio.CancelledError) as fault:
                if isinstance(fault, asyncio.CancelledError) and not is_stray(fault):
                    raise
                self._failed(fault)
                continue
            self._open(connection)
            return
        self._dialling = None

    def _open(self, connection: BrokerConnection) -> None:
        self._dialling = None
        self._connection = connection
        connection.on_lost = self._lost
        connection.on_writable = self._serve
        if connection.fault is not None:  # between the broker's first words and now
            self._lost(connection)
            return
        if self.on_open is not None:
            self.on_open(connection)
        self._serve()

    def _drop(self, connection: BrokerConnection, fault: KafkaError) -> None:
        """Ends a connection with which nothing is wrong."""
        self._connection = None
        connection.on_lost = None
        connection.abandon(fault)
        if self.on_closed is not None:
            self.on_closed()

    def answered(self) -> None:
        """A user that sends frames of its own had an answer: the broker is well."""
        self._failures = 0

    def _failed(self, fault: BaseException) -> None:
        self._failures += 1
        self._not_before = self._loop.time() + self._backoff.pause_ms(self._failures) / 1000
        self._why = str(fault) or repr(fault)
        if isinstance(fault, ConnectFailed) and fault.refused:
            self._notice_hang_up()
        if isinstance(fault, KafkaError):
            log_event.warning_limited(
                "a broker is not reached",
                key=str(self.broker),
                interval_s=_UNREACHED_SAID_S,
                broker=self.broker,
                why=self._why,
            )
        else:
            log_event.error("a broker could not be dialled for a fault of ours", broker=self.broker, error=repr(fault))

    def _lost(self, connection: BrokerConnection) -> None:
        self._connection = None
        # A broker that accepts and hangs up at once must not be called in a circle.
        self._failures += 1
        self._not_before = self._loop.time() + self._backoff.pause_ms(self._failures) / 1000
        self._why = str(connection.fault)
        if self.on_closed is not None:
            self.on_closed()
        if isinstance(connection.fault, ConnectionLost):
            self._notice_hang_up()
        self._serve()

    def _notice_hang_up(self) -> None:
        if self.on_hung_up is not None:
            self.on_hung_up()
