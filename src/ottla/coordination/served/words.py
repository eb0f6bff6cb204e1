"""ZooKeeper's four-letter words, as its 3.8 prints them: `ruok`, `srvr` and `mntr`, with this server's own figures.

A word is the first four bytes of a connection. ZooKeeper's other words are refused in its own sentence; four bytes that
are no word are the length of the first frame.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, Final, NamedTuple

from ottla import __version__
from ottla.coordination.errors import CoordinationError
from ottla.coordination.served.connection import Connection
from ottla.coordination.served.serving import Serving
from ottla.coordination.sessions import STORE_SESSION
from ottla.coordination.tree import ZnodeTree
from ottla.steps import Steps, pieces

#: The ZooKeeper that this server is like, which clients look at, and what it is.
VERSION: Final = f"3.8.4-ottla-{__version__}"
#: ZooKeeper's words that this server does not have.
_REFUSED: Final = frozenset(b"conf cons crst dirs dump envi gtmk hash isro srst stat stmk wchc wchp wchs".split())
#: Nodes that are looked at in one step.
_NODES_A_STEP: Final = 64


#: How long what was measured of the tree is good enough to be said again; and as many times as long as it took.
SIZES_KEPT_MS_MIN: Final = 1_000
_REST: Final = 50


class _Sizes(NamedTuple):
    data: int
    ephemerals: int
    until_ms: int


class Descriptors(NamedTuple):
    """Of this process."""

    open: int
    limit: int


#: Asks the system, where there is one to ask.
AskDescriptors = Callable[[], Descriptors]


class Words:
    def __init__(self, serving: Serving, connections: Callable[[], int], descriptors: AskDescriptors | None) -> None:
        self._serving = serving
        self._connections = connections
        self._descriptors = descriptors
        self._started_ms = serving.clock.monotonic_ms()
        self._sizes: _Sizes | None = None

    def serve(self, connection: Connection, word: bytes) -> bool:
        """Answers the word and ends the connection; False where it is none."""
        if word == b"ruok":
            self._answer(connection, "imok")
        elif word == b"srvr":
            self._read(connection, self._srvr)
        elif word == b"mntr":
            self._read(connection, self._mntr)
        elif word in _REFUSED:
            self._answer(connection, f"{word.decode()} is not executed because it is not in the whitelist.\n")
        else:
            return False
        return True

    @staticmethod
    def _answer(connection: Connection, text: str) -> None:
        connection.send(text.encode())
        connection.end_when_sent()

    def _read(self, connection: Connection, text_of: Callable[[ZnodeTree], Steps[str]]) -> None:
        connection.greeting = True  # nothing more is taken of it
        asked = _StoreAnswer(connection, partial(self._answer, connection), self._serving)
        try:
            self._serving.store.submit_read(STORE_SESSION, text_of, asked, is_long=True)
        except CoordinationError as error:
            asked.set_exception(error)

    def _srvr(self, tree: ZnodeTree) -> Steps[str]:
        figures = self._serving.figures
        low = max(figures.latency_ms_min, 0)
        yield
        return (
            f"Zookeeper version: {VERSION}\n"
            f"Latency min/avg/max: {low}/{figures.latency_ms_mean:.4g}/{figures.latency_ms_max}\n"
            f"Received: {figures.received}\n"
            f"Sent: {figures.sent}\n"
            f"Connections: {self._connections()}\n"
            f"Outstanding: {self._serving.rounds.waiting}\n"
            f"Zxid: {tree.zxid:#x}\n"
            f"Mode: standalone\n"
            f"Node count: {len(tree.nodes)}\n"
        )

    def _mntr(self, tree: ZnodeTree) -> Steps[str]:
        began_ms, sizes = self._serving.clock.monotonic_ms(), self._sizes
        if sizes is None or began_ms >= sizes.until_ms:
            sizes = self._sizes = yield from self._measured(tree, began_ms)
        return "".join(f"zk_{name}\t{value}\n" for name, value in self._figures(tree, sizes.data, sizes.ephemerals))

    def _measured(self, tree: ZnodeTree, began_ms: int) -> Steps[_Sizes]:
        """All writes wait for it, and anybody may ask without a session: so it is not done again at once."""
        data = ephemerals = 0
        for some in pieces(tree.nodes.items(), _NODES_A_STEP):
            data += sum(len(path) + len(node.data) for path, node in some)
            yield
        for paths in pieces(tree.ephemerals.values(), _NODES_A_STEP):
            ephemerals += sum(map(len, paths))
            yield
        ended_ms = self._serving.clock.monotonic_ms()
        return _Sizes(data, ephemerals, ended_ms + max(SIZES_KEPT_MS_MIN, _REST * (ended_ms - began_ms)))

    def _figures(self, tree: ZnodeTree, size: int, ephemerals: int) -> Iterable[tuple[str, Any]]:
        serving = self._serving
        figures = serving.figures
        yield "version", VERSION
        yield "server_state", "standalone"
        yield "ephemerals_count", ephemerals
        yield "num_alive_connections", self._connections()
        yield "avg_latency", f"{figures.latency_ms_mean:.4f}"
        yield "outstanding_requests", serving.rounds.waiting
        yield "znode_count", len(tree.nodes)
        yield "global_sessions", len(tree.sessions)
        yield "packets_sent", figures.sent
        yield "packets_received", figures.received
        yield "watch_count", len(serving.store.watches)
        yield "min_latency", max(figures.latency_ms_min, 0)
        yield "approximate_data_size", size
        yield "local_sessions", 0
        yield "uptime", serving.clock.monotonic_ms() - self._started_ms
        yield "max_latency", figures.latency_ms_max
        yield "connection_rejected", figures.rejected
        # Not ZooKeeper's: how long this process once stood still, by which sessions live longer.
        yield "ottla_stall_ms_max", serving.life.stall_ms_max
        if self._descriptors is not None:
            descriptors = self._descriptors()
            yield "open_file_descriptor_count", descriptors.open
            yield "max_file_descriptor_count", descriptors.limit


class _StoreAnswer:
    """Takes the store's answer."""

    __slots__ = ("_answer", "_connection", "_serving")

    def __init__(self, connection: Connection, answer: Callable[[str], None], serving: Serving) -> None:
        self._connection = connection
        self._answer = answer
        self._serving = serving

    def done(self) -> bool:
        return self._connection.closed

    def set_result(self, text: str, /) -> None:
        self._answer(text)

    def set_exception(self, _: CoordinationError, /) -> None:
        self._serving.rounds.close(self._connection)
