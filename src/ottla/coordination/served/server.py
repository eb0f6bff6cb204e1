"""A durable tree, served on ZooKeeper's protocol: its life, its connections, and who may connect.

    start ▶ the tree is loaded, its sessions begin a whole time-out, connections are accepted
    stop  ▶ nobody is accepted, what waits is done and answered, sessions stay for the next start

The tree is lost to this process when its disk fails: `on_lost` is called, and the process that runs the server ends it.
The next start finds what is on the medium.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Final

from ottla import logs
from ottla.coordination.served.connection import Account, Connection
from ottla.coordination.served.figures import Figures
from ottla.coordination.served.greeting import Greeting
from ottla.coordination.served.limits import HANDSHAKE_MS_MAX, UNTAKEN_MS_MAX, ServedLimits
from ottla.coordination.served.long_work import LongWork
from ottla.coordination.served.requests import Requests
from ottla.coordination.served.rounds import ROUND_MS, Rounds
from ottla.coordination.served.serving import Serving
from ottla.coordination.served.session_life import LOOK_MS, SessionLife
from ottla.coordination.served.words import AskDescriptors, Words
from ottla.coordination.store import StoreOptions, TreeStore
from ottla.ports import Channel, Listening, Ports

#: Looks at sessions between two looks at connections: a second.
_LOOKS: Final = 1_000 // LOOK_MS
#: How long a stop waits for clients to take what they are owed.
_LAST_MS: Final = 500

_log = logs.logger("tree")


class CannotListen(Exception):
    """The address cannot be had; the message is the system's reason."""


class TreeServer:
    def __init__(
        self,
        ports: Ports,
        directory: str,
        limits: ServedLimits | None = None,
        *,
        on_lost: Callable[[str], None] | None = None,
        descriptors: AskDescriptors | None = None,
    ) -> None:
        self._ports = ports
        self._limits = limits or ServedLimits()
        self._on_lost = on_lost
        self._descriptors = descriptors
        self.store = TreeStore(
            ports.disk,
            ports.workers,
            ports.clock,
            ports.entropy,
            directory,
            StoreOptions(keep_sessions=True, hold_back=True),
        )
        self._account = Account()
        self._figures = Figures()
        self._connections: dict[Connection, None] = {}
        self._by_address: dict[str, int] = {}
        #: Those that have not begun, in the order in which they came.
        self._new: dict[Connection, None] = {}
        self._of_session: dict[int, Connection] = {}
        self._last_key = 0
        self._listening: Listening | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._looks = 0
        self._is_lost = False
        self._stopping = False

    @property
    def connection_count(self) -> int:
        return len(self._connections)

    # The server's life.

    async def start(self, host: str, port: int) -> int:
        """Loads the tree and begins to serve; returns the port.

        Raises StorageDamaged, DirectoryInUse or OSError of the tree, and CannotListen.
        """
        store, clock = self.store, self._ports.clock
        await store.open()
        # A full disk lets it start and be read; what it is asked to write is refused until there is room.
        store.start_ends()
        self._rounds = Rounds(clock, self._limits, self._account, self._serve, self._is_long, self._word, self._closed)
        self._serving = Serving(
            store=store,
            clock=clock,
            limits=self._limits,
            life=SessionLife(store, clock, self._session_ended, self._is_heard),
            rounds=self._rounds,
            figures=self._figures,
            long_work=LongWork(clock),
        )
        self._greeting = Greeting(self._serving, self._greeted)
        self._requests = Requests(self._serving)
        self._words = Words(self._serving, lambda: len(self._connections), self._descriptors)
        try:
            self._listening = self._ports.network.listen(host, port, self._accept, self._rounds.run)
        except OSError as error:
            await store.close()
            raise CannotListen(error.strerror or str(error)) from error
        self._look_later()
        report = store.report
        _log.info(
            "the tree is served",
            host=host,
            port=self._listening.port,
            directory=store.directory,
            replayed=report.txns_replayed,
            zxid=store.durable_zxid,
        )
        return self._listening.port

    async def stop(self) -> None:
        """Sessions stay: they have a whole time-out from the next start on."""
        self._stopping = True
        if self._listening is not None:
            self._listening.close()
        if self._timer is not None:
            self._timer.cancel()
        await self.store.close()
        await self._serving.long_work.finish()
        deadline_ms = self._ports.clock.monotonic_ms() + _LAST_MS
        while self._owes() and self._ports.clock.monotonic_ms() < deadline_ms:  # noqa: ASYNC110
            await asyncio.sleep(0.01)  # the client that takes it does not say so
        for connection in list(self._connections):
            self._rounds.close(connection)
        _log.info("the tree is served no more", zxid=self.store.durable_zxid)

    def _owes(self) -> bool:
        return any(each.outgoing for each in self._connections)

    def resting_ms(self) -> int:
        """For how long nobody has sent anything."""
        return self._ports.clock.monotonic_ms() - self._rounds.served_ms

    def _look_later(self) -> None:
        self._timer = asyncio.get_running_loop().call_later(LOOK_MS / 1_000, self._look)

    def _look(self) -> None:
        self._look_later()
        self._look_at_sessions()
        if self._account.total > self._limits.held_bytes_max:
            self._make_room()
        self._looks += 1
        if self._looks % _LOOKS == 0:
            self._look_at_connections()

    def _look_at_sessions(self) -> None:
        if (fault := self.store.fault) is not None:
            self._lose(fault)
        elif not self._stopping:
            self._serving.life.look()

    def _lose(self, fault: str) -> None:
        if self._is_lost:
            return
        self._is_lost = True
        for connection in list(self._connections):
            self._rounds.close(connection)
        if self._on_lost is not None:
            self._on_lost(fault)

    # Connections.

    def _accept(self, channel: Channel) -> Connection | None:
        address = channel.peer
        held = self._by_address.get(address, 0)
        limits = self._limits
        no_descriptor = channel.fileno() >= self._ports.network.connections_end
        full = no_descriptor or len(self._connections) >= limits.connections_max
        if self._stopping or self._is_lost or full or held >= limits.connections_per_address_max:
            self._figures.rejected += 1
            _log.warning_limited(
                "refusing a connection over the limit", peer=address, open=len(self._connections), from_peer=held
            )
            return None
        self._last_key += 1
        now_ms = self._ports.clock.monotonic_ms()
        connection = Connection(channel, self._last_key, now_ms, self._account, self._rounds.woken)
        self._connections[connection] = None
        self._new[connection] = None
        self._by_address[address] = held + 1
        return connection

    def _serve(self, connection: Connection, frame: bytes) -> None:
        if connection.greeted:
            self._requests.serve(connection, frame)
        else:
            self._greeting.serve(connection, frame)

    def _is_long(self, frame: bytes) -> bool:
        return self._requests.is_long(frame)

    def _word(self, connection: Connection, word: bytes) -> bool:
        return self._words.serve(connection, word)

    def _greeted(self, connection: Connection) -> None:
        """It has its session, which another connection may have had until now."""
        self._new.pop(connection, None)
        earlier = self._of_session.get(connection.session_id)
        self._of_session[connection.session_id] = connection
        if earlier is not None:
            self._rounds.close(earlier)

    def _closed(self, connection: Connection) -> None:
        del self._connections[connection]
        self._new.pop(connection, None)
        address = connection.channel.peer
        left = self._by_address[address] - 1
        if left:
            self._by_address[address] = left
        else:
            del self._by_address[address]
        watches = self.store.watches
        if watches.count_of(connection.key):
            self._serving.long_work.add(watches.dropping_session(connection.key), _nothing, _nothing)
        if self._of_session.get(connection.session_id) is connection:
            del self._of_session[connection.session_id]
            self._left_alone(connection)

    def _left_alone(self, connection: Connection) -> None:
        """Nobody has its session for now."""
        grace_ms = connection.grace_ms
        if grace_ms is not None and not self._stopping and not self._is_lost:
            self._serving.life.left_alone(connection.session_id, grace_ms)
            asyncio.get_running_loop().call_later((grace_ms + 1) / 1_000, self._look_at_sessions)

    def _is_heard(self, session_id: int) -> bool:
        connection = self._of_session.get(session_id)
        return connection is not None and connection.is_heard

    def _session_ended(self, session_id: int) -> None:
        connection = self._of_session.pop(session_id, None)
        if connection is not None and not connection.ends_when_sent:
            self._rounds.close(connection)

    def _look_at_connections(self) -> None:
        now_ms = self._ports.clock.monotonic_ms()
        late: deque[tuple[Connection, str]] = deque()
        for connection in self._new:
            if connection.accepted_ms > now_ms - HANDSHAKE_MS_MAX:
                break
            late.append((connection, "no session was asked for"))
        late_ms = now_ms - UNTAKEN_MS_MAX
        for connection in self._connections:
            since_ms = connection.untaken_since_ms
            if since_ms is not None and since_ms < late_ms:
                late.append((connection, "its answers were not taken"))
        self._close_late(late)

    def _close_late(self, late: deque[tuple[Connection, str]]) -> None:
        """Thousands may be late in the same moment: those that one turn has no time for are closed in the next one."""
        ends_ms = self._ports.clock.monotonic_ms() + ROUND_MS
        while late:
            self._rounds.close(*late.popleft())
            if late and self._ports.clock.monotonic_ms() >= ends_ms:
                asyncio.get_running_loop().call_soon(self._close_late, late)
                return

    def _make_room(self) -> None:
        """Closes the connections that hold the most, until the others have room."""
        for connection in sorted(self._connections, key=lambda each: -each.all_bytes):
            self._rounds.close(connection, "it held the most memory, and there was none left")
            if self._account.total <= self._limits.held_bytes_max:
                break


def _nothing(_: object) -> None: ...
