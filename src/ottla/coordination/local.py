"""The local provider: the tree is in this process and in one directory on its disk.

The session begins at start and ends at `close`; ephemeral nodes of earlier runs are gone when it begins. A process
that opens several sessions (a simulated cluster) opens a `TreeStore` and a `LocalSession` for each.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from ottla.coordination.errors import MultiFailed, SessionClosed, SessionExpired
from ottla.coordination.interface import (
    ANY_VERSION,
    Create,
    CreatedNode,
    Delete,
    Op,
    OpResult,
    SessionEvent,
    SessionInfo,
    SessionListener,
    SetData,
    Stat,
    Watch,
)
from ottla.coordination.loading import TreeCheck, nothing_to_check
from ottla.coordination.store import StoreOptions, TreeStore
from ottla.coordination.tree import ZnodeTree
from ottla.ports.clock import Clock
from ottla.ports.disk import Disk
from ottla.ports.entropy import Entropy
from ottla.ports.workers import Workers

#: What a local session says its time-out is; nothing measures it, since it cannot lose its connection.
SESSION_TIMEOUT_MS: Final = 18_000


async def open_local(
    *,
    disk: Disk,
    workers: Workers,
    clock: Clock,
    entropy: Entropy,
    directory: str,
    options: StoreOptions | None = None,
    check: TreeCheck = nothing_to_check,
) -> LocalSession:
    """The tree of `directory` with its one session, whose `close` also closes the tree."""
    store = TreeStore(disk, workers, clock, entropy, directory, options)
    await store.open(check)
    try:
        session = await store.sessions.open(SESSION_TIMEOUT_MS, in_this_process=True)
    except BaseException:
        await store.close()
        raise
    return LocalSession(store, session, owns_store=True)


class LocalSession:
    """Implements `BrokersTree`."""

    def __init__(self, store: TreeStore, session: SessionInfo, *, owns_store: bool = False) -> None:
        self.store = store
        self._session = session
        self._owns_store = owns_store
        self._closed = False

    @property
    def session(self) -> SessionInfo:
        return self._session

    @property
    def place(self) -> str:
        return self.store.directory

    def start_ends(self) -> None:
        self.store.start_ends()

    @property
    def is_behind(self) -> bool:
        return self.store.is_behind

    def when_caught_up(self, call: Callable[[], None]) -> None:
        self.store.when_caught_up(call)

    @property
    def fault(self) -> str | None:
        """Why the tree is lost to this process; None while it is not."""
        return self.store.fault

    @property
    def may_live(self) -> bool:
        """It ends with this process, or with the tree."""
        return self.fault is None

    @property
    def is_connected(self) -> bool:
        return self.fault is None

    @property
    def durable_zxid(self) -> int:
        """The last transaction that is certainly on the medium."""
        return self.store.durable_zxid

    def listen(self, listener: SessionListener) -> None:
        self.store.sessions.listen(self._session.id, listener)

    async def create(
        self, path: str, data: bytes = b"", *, ephemeral: bool = False, sequential: bool = False
    ) -> CreatedNode:
        result = await self._write_one(Create(path, data, ephemeral, sequential))
        assert isinstance(result, CreatedNode)
        return result

    async def delete(self, path: str, version: int = ANY_VERSION) -> None:
        await self._write_one(Delete(path, version))

    async def set(self, path: str, data: bytes, version: int = ANY_VERSION) -> Stat:
        result = await self._write_one(SetData(path, data, version))
        assert isinstance(result, Stat)
        return result

    async def multi(self, ops: Sequence[Op]) -> list[OpResult]:
        self._check_open()
        if not ops:
            return []
        return await self.store.write(self._session.id, ops)

    async def exists(self, path: str, watch: Watch | None = None) -> Stat | None:
        def action(tree: ZnodeTree) -> Stat | None:
            stat = tree.exists(path)
            if watch is not None:
                self.store.watches.leave_data(self._session.id, path, watch)
            return stat

        self._check_open()
        return await self.store.read(self._session.id, action)

    async def get(self, path: str, watch: Watch | None = None) -> tuple[bytes, Stat]:
        def action(tree: ZnodeTree) -> tuple[bytes, Stat]:
            found = tree.get(path)
            if watch is not None:
                self.store.watches.leave_data(self._session.id, path, watch)
            return found

        self._check_open()
        return await self.store.read(self._session.id, action)

    async def get_many(self, paths: Sequence[str]) -> list[tuple[bytes, Stat] | None]:
        def action(tree: ZnodeTree) -> list[tuple[bytes, Stat] | None]:
            nodes = (tree.nodes.get(path) for path in paths)
            return [None if node is None else (node.data, node.stat()) for node in nodes]

        self._check_open()
        return await self.store.read(self._session.id, action)

    async def children(self, path: str, watch: Watch | None = None) -> tuple[list[str], Stat]:
        def action(tree: ZnodeTree) -> tuple[list[str], Stat]:
            found = tree.children(path)
            if watch is not None:
                self.store.watches.leave_child(self._session.id, path, watch)
            return found

        self._check_open()
        return await self.store.read(self._session.id, action)

    async def sync(self, path: str) -> None:
        self._check_open()
        await self.store.read(self._session.id, lambda tree: tree.exists(path))

    async def close(self) -> None:
        """Fine to call again, and after the session ended otherwise."""
        if self._closed:
            return
        self._closed = True
        try:
            await self.store.sessions.end(self._session.id, None)
        except (SessionExpired, SessionClosed):
            pass
        finally:
            if self._owns_store:
                await self.store.close()

    async def expire(self) -> None:
        """Ends the session as if it had not been heard of for its time-out."""
        await self.store.sessions.end(self._session.id, SessionEvent.EXPIRED)

    async def _write_one(self, op: Op) -> OpResult:
        self._check_open()
        try:
            (result,) = await self.store.write(self._session.id, [op])
        except MultiFailed as failed:
            raise failed.error from None
        return result

    def _check_open(self) -> None:
        if self._closed:
            raise SessionClosed(f"session {self._session.id:#x} was closed")
