"""kazoo behind the interface of coordination, so that the contract can be asked of it: an oracle for the server.

kazoo has two habits that the contract's own sessions have not, and what rests on them is left out by the test: a watch
that waits for data and for children is called twice at a deletion, and watches are called from another queue than
answers.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

from kazoo import exceptions as theirs
from kazoo.client import KazooClient
from kazoo.protocol.states import KazooState, WatchedEvent

from ottla.coordination.errors import (
    BadVersion,
    CoordinationError,
    InvalidPath,
    MultiFailed,
    NoChildrenForEphemerals,
    NodeExists,
    NoNode,
    NotEmpty,
    SessionClosed,
    SessionExpired,
)
from ottla.coordination.interface import (
    ANY_VERSION,
    NO_DATA,
    Check,
    Create,
    CreatedNode,
    Delete,
    EventType,
    Op,
    OpResult,
    SessionEvent,
    SessionInfo,
    SessionListener,
    SetData,
    Stat,
    Watch,
    WatchEvent,
)
from ottla.coordination.paths import check_data, check_path
from ottla.coordination.sizes import REQUEST_BYTES_MAX, op_size

_EVENTS = {
    "CREATED": EventType.NODE_CREATED,
    "DELETED": EventType.NODE_DELETED,
    "CHANGED": EventType.NODE_DATA_CHANGED,
    "CHILD": EventType.NODE_CHILDREN_CHANGED,
}
_STATES = {
    KazooState.CONNECTED: SessionEvent.CONNECTED,
    KazooState.SUSPENDED: SessionEvent.DISCONNECTED,
    KazooState.LOST: SessionEvent.EXPIRED,
}
_ERRORS: dict[type[Exception], Callable[[str], CoordinationError]] = {
    theirs.NoNodeError: NoNode,
    theirs.NodeExistsError: NodeExists,
    theirs.BadVersionError: lambda path: BadVersion(path, -1, -1),
    theirs.NotEmptyError: NotEmpty,
    theirs.NoChildrenForEphemeralsError: NoChildrenForEphemerals,
    theirs.BadArgumentsError: InvalidPath,
    theirs.SessionExpiredError: SessionExpired,
    theirs.ConnectionClosedError: SessionExpired,
    ValueError: InvalidPath,
}


def _ours(error: Exception, path: str) -> CoordinationError:
    return next(make(path) for kind, make in _ERRORS.items() if isinstance(error, kind))


class KazooSession:
    """Implements `Coordination`."""

    def __init__(self, connect: str, timeout_ms: int) -> None:
        # A session that has expired stays so, as the contract's do.
        self.client = KazooClient(connect, timeout=timeout_ms / 1000)
        self._loop = asyncio.get_running_loop()
        self._listeners: list[SessionListener] = []
        self._watches: dict[int, Callable[[WatchedEvent], None]] = {}
        self._over: type[CoordinationError] | None = None
        self.client.add_listener(self._changed)

    async def start(self) -> None:
        await asyncio.to_thread(self.client.start, 60)
        session_id, password = self.client.client_id
        self._info = SessionInfo(session_id, password, self.client._session_timeout)

    def _changed(self, state: str) -> None:
        self._loop.call_soon_threadsafe(self._notify, _STATES[state])

    def _notify(self, event: SessionEvent) -> None:
        if self._over is None:
            if event is SessionEvent.EXPIRED:
                self._over = SessionExpired
            for listener in self._listeners:
                listener(event)

    @property
    def session(self) -> SessionInfo:
        return self._info

    def listen(self, listener: SessionListener) -> None:
        self._listeners.append(listener)

    async def _ask(self, call: Callable[..., Any], path: str, *args: Any, **named: Any) -> Any:
        self._check_open()
        check_path(path + "0" if named.get("sequence") else path)
        future: asyncio.Future[Any] = self._loop.create_future()

        def done(result: Any) -> None:
            self._loop.call_soon_threadsafe(settle, result)

        def settle(result: Any) -> None:
            if result.exception is None:
                future.set_result(result.value)
            else:
                future.set_exception(_ours(result.exception, path))

        call(path, *args, **named).rawlink(done)
        return await future

    def _watch(self, watch: Watch | None) -> Callable[[WatchedEvent], None] | None:
        if watch is None:
            return None

        def called(event: WatchedEvent) -> None:
            if event.type in _EVENTS:
                self._loop.call_soon_threadsafe(watch, WatchEvent(_EVENTS[event.type], event.path))

        return self._watches.setdefault(id(watch), called)

    async def create(
        self, path: str, data: bytes = b"", *, ephemeral: bool = False, sequential: bool = False
    ) -> CreatedNode:
        check_data(path, data)
        call = self.client.create_async
        made, stat = await self._ask(call, path, data, ephemeral=ephemeral, sequence=sequential, include_data=True)
        return CreatedNode(made, Stat(*stat))

    async def delete(self, path: str, version: int = ANY_VERSION) -> None:
        if path == "/":
            raise InvalidPath("kazoo would ask")
        await self._ask(self.client.delete_async, path, version)

    async def exists(self, path: str, watch: Watch | None = None) -> Stat | None:
        stat = await self._ask(self.client.exists_async, path, self._watch(watch))
        return None if stat is None else Stat(*stat)

    async def get(self, path: str, watch: Watch | None = None) -> tuple[bytes, Stat]:
        data, stat = await self._ask(self.client.get_async, path, self._watch(watch))
        return NO_DATA if data is None else data, Stat(*stat)

    async def get_many(self, paths: Sequence[str]) -> list[tuple[bytes, Stat] | None]:
        found = await asyncio.gather(*map(self.get, paths), return_exceptions=True)
        return [None if isinstance(each, NoNode) else each for each in found]  # type: ignore[misc]

    async def set(self, path: str, data: bytes, version: int = ANY_VERSION) -> Stat:
        check_data(path, data)
        return Stat(*await self._ask(self.client.set_async, path, data, version))

    async def children(self, path: str, watch: Watch | None = None) -> tuple[list[str], Stat]:
        call = self.client.get_children_async
        names, stat = await self._ask(call, path, self._watch(watch), include_data=True)
        return sorted(names), Stat(*stat)

    async def multi(self, ops: Sequence[Op]) -> list[OpResult]:
        self._check_open()
        if not ops:
            return []
        for op in ops:
            check_path(op.path + "0" if isinstance(op, Create) and op.sequential else op.path)
        if sum(map(op_size, ops)) > REQUEST_BYTES_MAX or len(ops) > 10_000:
            from ottla.coordination.errors import DataTooLarge

            raise DataTooLarge("kazoo would ask")
        results = await asyncio.to_thread(self._commit, ops)
        for index, result in enumerate(results):
            if isinstance(result, Exception) and not isinstance(
                result, theirs.RolledBackError | theirs.RuntimeInconsistency
            ):
                raise MultiFailed(index, _ours(result, ops[index].path))
        return [await self._result(op, result) for op, result in zip(ops, results, strict=True)]

    def _commit(self, ops: Sequence[Op]) -> list[Any]:
        transaction = self.client.transaction()
        for op in ops:
            if isinstance(op, Create):
                transaction.create(op.path, op.data, ephemeral=op.ephemeral, sequence=op.sequential)
            elif isinstance(op, Delete):
                transaction.delete(op.path, op.version)
            elif isinstance(op, SetData):
                transaction.set_data(op.path, op.data, op.version)
            else:
                assert isinstance(op, Check)
                transaction.check(op.path, op.version)
        return list(transaction.commit())

    async def _result(self, op: Op, result: Any) -> OpResult:
        if isinstance(op, Create):
            stat = await self.exists(result)
            assert stat is not None
            return CreatedNode(result, stat)
        return Stat(*result) if isinstance(op, SetData) else None

    async def sync(self, path: str) -> None:
        await self._ask(self.client.sync_async, path)

    async def close(self) -> None:
        if self._over is not SessionClosed:
            self._over = self._over or SessionClosed
            await asyncio.to_thread(self.client.stop)
            await asyncio.to_thread(self.client.close)

    def _check_open(self) -> None:
        if self._over is not None:
            raise self._over("kazoo is stopped, or has lost its session")
