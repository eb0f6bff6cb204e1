"""The servers of an ensemble: in which order they are tried, for how long, and with which pauses.

Each client goes through them in a random order of its own, and from where it is goes on with the next: all clients of a
server that died do not fall upon the same other one. A round through all of them without an answer is followed by a
pause, and so is one of connections that came to nothing: they were lost before the session's watches were left there,
as where servers refuse them. Only the first refusal of each server is logged until there is a connection again.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Sequence
from typing import Final

from ottla import logs
from ottla.coordination.zookeeper.addresses import ServerAddress
from ottla.coordination.zookeeper.connection import ServerConnection
from ottla.coordination.zookeeper.jute import JuteFault
from ottla.coordination.zookeeper.messages import ConnectAnswer, ConnectRequest
from ottla.ports.clock import Clock
from ottla.ports.entropy import Entropy
from ottla.ports.network import Network

#: Between two rounds through all servers. A killed server is back in some 100 ms.
PAUSE_MS_FIRST: Final = 25
PAUSE_MS_MAX: Final = 400
#: Where there is no other server: a tree of ours, whose brokers are few, and which is started again at once.
PAUSE_MS_MAX_ALONE: Final = 50
#: After so many doublings the longest pause is reached.
_DOUBLINGS_MAX: Final = 4
#: One server is waited for at least so long, however many there are.
ATTEMPT_MS_MIN: Final = 250

_log = logs.logger("coordination")


class SessionUnknown(Exception):
    """A server says that there is no such session any more."""


class EnsembleServers:
    def __init__(self, network: Network, clock: Clock, entropy: Entropy, servers: Sequence[ServerAddress]) -> None:
        self._network = network
        self._clock = clock
        self._entropy = entropy
        left = list(servers)
        self._servers = [left.pop(entropy.below(len(left))) for _ in servers]
        self._next = 0
        #: Servers whose refusal was logged since the last connection.
        self._refused: set[ServerAddress] = set()
        #: Connections in a row that came to nothing.
        self._in_vain = 0
        #: Why the last attempt failed; empty before one has.
        self.last_fault = ""

    async def connect(self, request: ConnectRequest, timeout_ms: int) -> tuple[ServerConnection, ConnectAnswer]:
        """The first server that takes the session of `request`. Raises SessionUnknown; tries for as long as it takes.

        All servers together are given the session's time-out, as by ZooKeeper's own client.
        """
        wait_ms = max(ATTEMPT_MS_MIN, timeout_ms // len(self._servers))
        rounds, in_this_round = divmod(self._in_vain, len(self._servers))
        if rounds and not in_this_round:
            await asyncio.sleep(self._pause_ms(rounds - 1) / 1000)
        self._in_vain += 1
        while True:
            for _ in self._servers:
                server = self._servers[self._next]
                self._next = (self._next + 1) % len(self._servers)
                try:
                    taken = await self._attempt(server, request, wait_ms)
                except (OSError, JuteFault, UnicodeError) as error:  # also TimeoutError; of a bad name UnicodeError
                    self._say_refused(server, error)
                else:
                    self._refused.clear()
                    return taken
            await asyncio.sleep(self._pause_ms(rounds) / 1000)
            rounds += 1

    def serve_well(self) -> None:
        """The connection has come to something."""
        self._in_vain = 0

    async def _attempt(
        self, server: ServerAddress, request: ConnectRequest, wait_ms: int
    ) -> tuple[ServerConnection, ConnectAnswer]:
        """Raises OSError, JuteFault or SessionUnknown."""
        made: list[ServerConnection] = []

        def make() -> ServerConnection:
            made.append(ServerConnection(str(server), self._clock.monotonic_ms))
            return made[0]

        try:
            async with asyncio.timeout(wait_ms / 1000):
                await self._network.connect(make, server.host, server.port)
                answer = await made[0].shake_hands(request)
            _check_answer(server, request, answer)
        except BaseException as error:
            if made:
                made[0].end(f"no session: {error!r}")
            if isinstance(error, TimeoutError) and not error.args:
                raise TimeoutError(f"no answer within {wait_ms} ms") from None
            raise
        return made[0], answer

    def _pause_ms(self, rounds: int) -> int:
        """Doubles; a random half of it, so that many that lost one server do not come back as one."""
        most_ms = PAUSE_MS_MAX if len(self._servers) > 1 else PAUSE_MS_MAX_ALONE
        longest_ms = min(PAUSE_MS_FIRST << min(rounds, _DOUBLINGS_MAX), most_ms)
        return longest_ms // 2 + self._entropy.below(longest_ms // 2 + 1)

    def _say_refused(self, server: ServerAddress, error: Exception) -> None:
        self.last_fault = _reason(error)
        if server not in self._refused:
            self._refused.add(server)
            _log.warning("a ZooKeeper server cannot be connected to", server=str(server), why=self.last_fault)


def _reason(error: Exception) -> str:
    """In the system's words where it has some: the event loop's name no cause."""
    if isinstance(error, OSError) and error.errno is not None:
        # A resolver's numbers are its own, and below zero.
        return os.strerror(error.errno) if error.errno > 0 else error.strerror or str(error)
    return str(error) or repr(error)


def _check_answer(server: ServerAddress, request: ConnectRequest, answer: ConnectAnswer) -> None:
    if answer.timeout_ms <= 0:
        if request.session_id:
            raise SessionUnknown
        raise ConnectionRefusedError(f"{server} gives no session")
    if request.session_id and answer.session_id != request.session_id:
        raise JuteFault(f"{server} resumes session {answer.session_id:#x} in place of {request.session_id:#x}")
