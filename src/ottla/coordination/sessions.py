"""The sessions of a durable tree: they are opened and closed by writes of its own, so that a start finds them."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Final

from ottla.coordination.errors import SessionExpired
from ottla.coordination.interface import OpResult, SessionEvent, SessionInfo, SessionListener
from ottla.coordination.leases import SessionLeases
from ottla.coordination.tree import CloseSession, OpenSession, TreeOp, ZnodeTree
from ottla.coordination.watches import WatchTable
from ottla.ports.clock import Clock
from ottla.ports.entropy import Entropy

#: The session of the store's own transactions, which end other sessions.
STORE_SESSION: Final = 0

#: The password of a session whose owner is the process that has the tree: no connection can take it up.
_OF_THIS_PROCESS: Final = b""

#: Of a session: applies operations durably.
_Write = Callable[[int, Sequence[TreeOp]], Awaitable[list[OpResult]]]


def ends_with_process(session: SessionInfo) -> bool:
    """Whether its owner was the process that had the tree, so that it is over when that has ended."""
    return session.password == _OF_THIS_PROCESS


class Sessions:
    def __init__(self, write: _Write, clock: Clock, entropy: Entropy) -> None:
        self._write = write
        self._clock = clock
        self._entropy = entropy
        self._tree = ZnodeTree()
        #: Of sessions whose owners are in other processes; the server of these looks after them.
        self.leases = SessionLeases()
        self._listeners: dict[int, list[SessionListener]] = {}
        self._last_id = 0

    async def take(self, tree: ZnodeTree, *, keep: bool) -> None:
        """After a start: sessions of an earlier run go on, or end.

        Those whose owner was the process that had the tree end in any case: it is gone, since its lock is.
        """
        self._tree = tree
        self._last_id = tree.last_session_id
        now_ms = self._clock.monotonic_ms()
        for session in list(tree.sessions.values()):
            if keep and not ends_with_process(session):
                self.leases.grant(session.id, session.timeout_ms, now_ms)
            else:
                await self._write(STORE_SESSION, [CloseSession(session.id)])

    async def open(self, timeout_ms: int, *, in_this_process: bool = False) -> SessionInfo:
        """A session that ends when it is closed, and with this process where its owner is `in_this_process`."""
        session = self.new(timeout_ms)
        if in_this_process:
            session = session._replace(password=_OF_THIS_PROCESS)
        await self._write(STORE_SESSION, [OpenSession(session)])
        return session

    def new(self, timeout_ms: int) -> SessionInfo:
        """A session that nobody has had, to be opened by a write."""
        # Made from the time, like ZooKeeper's, and from the zxid: ids of different trees differ. Where the clock was
        # set back they go on behind the last one, so that no process takes another's session for its own.
        fresh = (self._clock.wall_ms() << 20) + (self._tree.zxid & 0xFFFFF)
        self._last_id = max(fresh, self._last_id + 1)
        return SessionInfo(self._last_id, self._entropy.token(16), timeout_ms)

    def find(self, session_id: int) -> SessionInfo | None:
        return self._tree.sessions.get(session_id)

    def check(self, session_id: int) -> None:
        """Raises SessionExpired."""
        if session_id != STORE_SESSION and session_id not in self._tree.sessions:
            raise SessionExpired(f"session {session_id:#x} is over")

    def listen(self, session_id: int, listener: SessionListener) -> None:
        self._listeners.setdefault(session_id, []).append(listener)

    async def end(self, session_id: int, event: SessionEvent | None) -> None:
        """Deletes its ephemeral nodes, behind what it has asked for before; its listeners get `event`. Raises
        SessionExpired where it is over."""
        await self._write(session_id, [CloseSession(session_id)])
        if event:
            self._notify(session_id, event)
        self._listeners.pop(session_id, None)

    def ended(self, ops: Sequence[TreeOp], watches: WatchTable) -> None:
        """What is dropped with the sessions that these operations have ended."""
        for op in ops:
            if isinstance(op, CloseSession):
                watches.drop_session(op.session_id)
                self.leases.drop(op.session_id)

    def lose_all(self) -> None:
        """The tree is lost, and they are over with it."""
        for session_id in sorted(self._listeners):
            self._notify(session_id, SessionEvent.DISCONNECTED)
            self._notify(session_id, SessionEvent.EXPIRED)

    def _notify(self, session_id: int, event: SessionEvent) -> None:
        for listener in self._listeners.get(session_id, []):
            asyncio.get_running_loop().call_soon(listener, event)
