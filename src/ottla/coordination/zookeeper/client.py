"""A broker's tree in a ZooKeeper ensemble, or in a tree of this project on another process: the `BrokersTree` that
`zookeeper.connect` chooses.

It speaks in the caller's paths; the chroot is put before them and taken off again. A transaction that a server has
answered is on the disks of a majority, so that nothing here is ever behind.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any, Final, Protocol, TypeVar

from ottla import logs
from ottla.config.slices import CoordinationConfig
from ottla.coordination.errors import (
    AuthenticationFailed,
    ConnectionLoss,
    CoordinationError,
    DataTooLarge,
    InvalidPath,
    MultiFailed,
    NodeExists,
    NoNode,
)
from ottla.coordination.interface import (
    ANY_VERSION,
    MULTI_OPS_MAX,
    REQUEST_BYTES_MAX,
    Check,
    Create,
    CreatedNode,
    Delete,
    Op,
    OpResult,
    SessionInfo,
    SessionListener,
    SetData,
    Stat,
    TreeAge,
    Watch,
)
from ottla.coordination.loading import TreeCheck, nothing_to_check
from ottla.coordination.paths import check_data, check_path, parent_of
from ottla.coordination.sizes import op_size
from ottla.coordination.znodes import CLUSTER_ID
from ottla.coordination.zookeeper.addresses import Chroot, parse_connect_string
from ottla.coordination.zookeeper.codes import CreateFlags, KeeperError, OpCode, error_of
from ottla.coordination.zookeeper.connection import KeeperAnswer
from ottla.coordination.zookeeper.frames import reading_multi_answer, writing_multi
from ottla.coordination.zookeeper.jute import JuteFault
from ottla.coordination.zookeeper.messages import (
    CheckRequest,
    CreateRequest,
    DeleteRequest,
    MultiOp,
    MultiResult,
    NodeRequest,
    PathAnswer,
    PathRequest,
    SetDataRequest,
)
from ottla.coordination.zookeeper.session import KeeperSession, SessionOptions
from ottla.metrics.times import Times
from ottla.ports import Clock, Entropy, Network
from ottla.steps import Steps, at_once, in_turns, pieces

T = TypeVar("T")

#: A multi with more operations is written and read in turns: each takes some ten microseconds.
OPS_AT_ONCE_MAX: Final = 64
_OPS_A_STEP: Final = 8
#: Reads of many nodes that stand in the queue at once.
READS_QUEUED_MAX: Final = 1_000

_log = logs.logger("coordination")


class KeeperPorts(Protocol):
    """What a session needs of the world: a broker's ports, or a client's."""

    @property
    def clock(self) -> Clock: ...

    @property
    def network(self) -> Network: ...

    @property
    def entropy(self) -> Entropy: ...


async def open_remote(
    config: CoordinationConfig,
    ports: KeeperPorts,
    *,
    check: TreeCheck = nothing_to_check,
    end_with_connection: bool = True,
    times: Times | None = None,
) -> RemoteTree:
    """A new session with the servers of `zookeeper.connect`; it makes the chroot where that is missing. How long its
    requests take is added to `times`.

    Raises BadConnectString, ServersUnreachable or what `check` raises.
    """
    connect = parse_connect_string(config.zookeeper_connect)
    if config.set_acl:
        # As Kafka's brokers, which refuse to start without credentials.
        raise AuthenticationFailed(
            "zookeeper.set.acl is true, but there are no credentials for ZooKeeper: TLS and SASL towards it are not "
            "supported yet"
        )
    options = SessionOptions(
        servers=connect.servers,
        chroot=connect.chroot,
        timeout_ms=config.session_timeout_ms,
        connection_timeout_ms=config.connection_timeout_ms,
        in_flight_max=config.in_flight_requests_max,
        end_with_connection=end_with_connection,
    )
    session = KeeperSession(ports.network, ports.clock, ports.entropy, options, Times() if times is None else times)
    tree = RemoteTree(session, connect.chroot, f"ZooKeeper at {config.zookeeper_connect}", ports.clock.monotonic_ms)
    try:
        await session.open()
        check(await tree.age())
        await tree.make_chroot()
    except BaseException:
        await tree.close()
        raise
    return tree


class RemoteTree:
    """Implements `BrokersTree`: one session."""

    def __init__(self, session: KeeperSession, chroot: Chroot, place: str, now_ms: Callable[[], int]) -> None:
        self._session = session
        self._now_ms = now_ms
        self._chroot = chroot
        self._place = place

    @property
    def session(self) -> SessionInfo:
        return self._session.info

    @property
    def place(self) -> str:
        return self._place

    @property
    def server(self) -> str | None:
        """The one that the session is connected to; None while it is to none."""
        return self._session.server

    @property
    def fault(self) -> str | None:
        """Why the tree is lost to this session; None while it is not."""
        return self._session.fault

    @property
    def may_live(self) -> bool:
        return self._session.may_live

    @property
    def is_connected(self) -> bool:
        return self._session.server is not None

    @property
    def durable_zxid(self) -> int:
        """The last transaction that a server has shown: only committed ones are shown."""
        return self._session.last_zxid

    def start_ends(self) -> None:
        """Nothing is held back here at any time."""

    @property
    def is_behind(self) -> bool:
        return False

    def when_caught_up(self, call: Callable[[], None]) -> None:
        call()

    def listen(self, listener: SessionListener) -> None:
        self._session.listen(listener)

    async def close(self) -> None:
        await self._session.close()

    # At the start.

    async def age(self) -> TreeAge:
        """Of the tree as all servers together have it: this one may be behind."""
        await self.sync("/")
        stat = await self.exists(CLUSTER_ID)
        return TreeAge(None if stat is None else stat.ctime_ms, self._session.last_zxid)

    async def make_chroot(self) -> None:
        names = self._chroot.prefix.split("/")[1:]
        for count in range(1, len(names) + 1):
            path = "/" + "/".join(names[:count])
            request = CreateRequest(path, b"")
            answer = await self._session.ask(OpCode.CREATE2, request, writes=True)
            if answer.error not in (KeeperError.OK, KeeperError.NODE_EXISTS):
                raise error_of(answer.error, path)

    # Writes.

    async def create(
        self, path: str, data: bytes = b"", *, ephemeral: bool = False, sequential: bool = False
    ) -> CreatedNode:
        self._session.check_open()
        op = Create(path, data, ephemeral, sequential)
        answer = await self._write(OpCode.CREATE2, op)
        created: CreatedNode = answer.fields
        return CreatedNode(self._chroot.of_client(created.path), created.stat)

    async def delete(self, path: str, version: int = ANY_VERSION) -> None:
        self._session.check_open()
        await self._write(OpCode.DELETE, Delete(path, version))

    async def set(self, path: str, data: bytes, version: int = ANY_VERSION) -> Stat:
        self._session.check_open()
        answer = await self._write(OpCode.SET_DATA, SetData(path, data, version))
        return answer.fields  # type: ignore[no-any-return]

    async def _write(self, code: OpCode, op: Op) -> KeeperAnswer:
        _check(op)
        _check_data(op)
        answer = await self._session.ask(code, self._request(op).request, writes=True)
        if answer.error:
            raise _error(answer.error, op)
        return answer

    async def multi(self, ops: Sequence[Op]) -> list[OpResult]:
        session = self._session
        session.check_open()
        if not ops:
            return []
        if len(ops) > MULTI_OPS_MAX:
            raise DataTooLarge(f"{len(ops)} operations in a multi: {MULTI_OPS_MAX} are the limit")
        request = session.reserve(OpCode.MULTI, writes=True)
        try:
            frame = await self._done(self._writing(ops), ops)
        except BaseException:
            session.withdraw(request)
            raise
        answer = await session.fill(request, frame)
        if answer.error:
            raise error_of(answer.error, ops[0].path)
        try:
            return await self._done(self._reading(ops, answer), ops)
        except JuteFault as fault:
            session.distrust(str(fault))
            raise ConnectionLoss(f"the answer to a multi cannot be read: {fault}") from fault

    async def _done(self, steps: Steps[T], ops: Sequence[Op]) -> T:
        if len(ops) <= OPS_AT_ONCE_MAX:
            return at_once(steps)
        return await in_turns(steps, self._now_ms)

    def _writing(self, ops: Sequence[Op]) -> Steps[bytearray]:
        """Raises MultiFailed or DataTooLarge."""
        size = 0
        requests: list[MultiOp] = []
        for index, op in enumerate(ops):
            try:
                if len(ops) == 1:
                    _check_data(op)
                _check(op)
            except CoordinationError as error:
                raise MultiFailed(index, error) from None
            size += op_size(op)
            requests.append(self._request(op))
            if index % _OPS_A_STEP == 0:
                yield
        if len(ops) > 1 and size > REQUEST_BYTES_MAX:
            raise DataTooLarge(f"a multi of {size} bytes: {REQUEST_BYTES_MAX} are the limit")
        return (yield from writing_multi(requests))

    def _reading(self, ops: Sequence[Op], answer: KeeperAnswer) -> Steps[list[OpResult]]:
        """Raises MultiFailed or JuteFault."""
        results = (yield from reading_multi_answer(answer.fields)).results
        if len(results) != len(ops):
            raise JuteFault(f"{len(results)} results of {len(ops)} operations")
        for index, result in enumerate(results):
            if result.error:
                raise MultiFailed(index, _error(result.error, ops[index]))
        found: list[OpResult] = []
        for some in pieces(zip(ops, results, strict=True), _OPS_A_STEP):
            found += [self._result(op, result, answer.zxid) for op, result in some]
            yield
        return found

    def _result(self, op: Op, result: MultiResult, zxid: int) -> OpResult:
        if isinstance(result.result, PathAnswer):
            if not isinstance(op, Create):
                raise JuteFault(f"a path is the result of {op}")
            return CreatedNode(self._chroot.of_client(result.result.path), self._fresh_stat(op, zxid))
        if isinstance(result.result, Stat) != isinstance(op, SetData) or isinstance(op, Create):
            raise JuteFault(f"{result} is the result of {type(op).__name__}")
        return result.result

    def _fresh_stat(self, op: Create, zxid: int) -> Stat:
        """In a multi ZooKeeper gives a new node's path alone. All but the time is known: the answer names the
        transaction."""
        owner = self._session.info.id if op.ephemeral else 0
        return Stat(zxid, zxid, 0, 0, 0, 0, 0, owner, len(op.data), 0, zxid)

    def _request(self, op: Op) -> MultiOp:
        path = self._chroot.on_server(op.path)
        if isinstance(op, Create):
            flags = CreateFlags.EPHEMERAL * op.ephemeral | CreateFlags.SEQUENTIAL * op.sequential
            return MultiOp(OpCode.CREATE, CreateRequest(path, op.data, flags=flags))
        if isinstance(op, Delete):
            return MultiOp(OpCode.DELETE, DeleteRequest(path, op.version))
        if isinstance(op, SetData):
            return MultiOp(OpCode.SET_DATA, SetDataRequest(path, op.data, op.version))
        assert isinstance(op, Check)
        return MultiOp(OpCode.CHECK, CheckRequest(path, op.version))

    # Reads.

    async def exists(self, path: str, watch: Watch | None = None) -> Stat | None:
        answer = await self._read(OpCode.EXISTS, path, watch)
        if answer.error == KeeperError.NO_NODE:
            return None
        return _good(answer, path)  # type: ignore[no-any-return]

    async def get(self, path: str, watch: Watch | None = None) -> tuple[bytes, Stat]:
        fields = _good(await self._read(OpCode.GET_DATA, path, watch), path)
        return fields.data, fields.stat

    async def get_many(self, paths: Sequence[str]) -> list[tuple[bytes, Stat] | None]:
        self._session.check_open()
        found: list[tuple[bytes, Stat] | None] = []
        for start in range(0, len(paths), READS_QUEUED_MAX):
            piece = paths[start : start + READS_QUEUED_MAX]
            for path in piece:
                check_path(path)
            answers = await asyncio.gather(
                *(self._read(OpCode.GET_DATA, path, None) for path in piece), return_exceptions=True
            )
            for path, answer in zip(piece, answers, strict=True):
                if isinstance(answer, BaseException):
                    raise answer
                fields = None if answer.error == KeeperError.NO_NODE else _good(answer, path)
                found.append(fields and (fields.data, fields.stat))
        return found

    async def children(self, path: str, watch: Watch | None = None) -> tuple[list[str], Stat]:
        fields = _good(await self._read(OpCode.GET_CHILDREN2, path, watch), path)
        return sorted(fields.names), fields.stat

    async def sync(self, path: str) -> None:
        self._session.check_open()
        check_path(path)
        _good(await self._session.ask(OpCode.SYNC, PathRequest(self._chroot.on_server(path)), writes=False), path)

    def _read(self, op: OpCode, path: str, watch: Watch | None) -> asyncio.Future[KeeperAnswer]:
        self._session.check_open()
        check_path(path)
        on_server = self._chroot.on_server(path)
        left = None if watch is None else (on_server, watch)
        return self._session.ask(op, NodeRequest(on_server, watch is not None), writes=False, watch=left)


def _check(op: Op) -> None:
    """Raises what a server would, of an operation that need not be sent."""
    if isinstance(op, Create):
        check_path(op.path + "0" if op.sequential else op.path)
        if op.path == "/":
            raise NodeExists(op.path)
    else:
        check_path(op.path)
    if isinstance(op, Delete) and op.path == "/":
        raise InvalidPath("the root cannot be deleted")


def _check_data(op: Op) -> None:
    if isinstance(op, Create | SetData):
        check_data(op.path, op.data)


def _good(answer: KeeperAnswer, path: str) -> Any:
    if answer.error:
        raise error_of(answer.error, path)
    return answer.fields


def _error(code: int, op: Op) -> CoordinationError:
    if code == KeeperError.NO_NODE and isinstance(op, Create):
        return NoNode(parent_of(op.path))
    return error_of(code, op.path, getattr(op, "version", ANY_VERSION))
