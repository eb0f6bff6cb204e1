"""A small ensemble in memory for our client's tests: servers on machines of one simulated world, over one tree.

It speaks what the client speaks, at once and without a disk; a session ends when a test says so, or when nothing was
heard of it for its time-out. `Hook` lets a test do something else with a request than answering it.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from typing import Any

from ottla.coordination.errors import CoordinationError, MultiFailed
from ottla.coordination.interface import (
    Check,
    Create,
    CreatedNode,
    Delete,
    EventType,
    Op,
    SessionInfo,
    SetData,
    WatchEvent,
)
from ottla.coordination.tree import CloseSession, OpenSession, TreeOp, ZnodeTree
from ottla.coordination.zookeeper.codes import KeeperError, OpCode, code_of
from ottla.coordination.zookeeper.frames import (
    decode_connect_request,
    decode_request,
    encode_answer,
    encode_connect,
    encode_error,
    encode_event,
)
from ottla.coordination.zookeeper.messages import (
    Children2Answer,
    ConnectAnswer,
    ConnectRequest,
    DataAnswer,
    MultiAnswer,
    MultiResult,
    PathAnswer,
    RequestHeader,
    SetWatchesRequest,
    failed_multi,
    notification,
)
from ottla.ports.memory import MemoryPorts, World
from ottla.ports.network import Channel

#: Of a connection, a header and a request: whether the hook has dealt with it.
Hook = Callable[["SmallConnection", RequestHeader, Any], bool]


class SmallEnsemble:
    def __init__(self, world: World, count: int = 3) -> None:
        self.world = world
        self.tree = ZnodeTree()
        #: Of a session: when it was last heard of, in virtual milliseconds.
        self.heard_ms: dict[int, int] = {}
        self.connections: list[SmallConnection] = []
        self.hook: Hook = lambda *_: False
        #: Every request that was served, for tests that look.
        self.seen: list[tuple[str, OpCode, Any]] = []
        self.connects: list[tuple[str, ConnectRequest]] = []
        self.protocol_version = 0
        self.servers = [SmallServer(self, f"zk{number}") for number in range(1, count + 1)]

    @property
    def connect(self) -> str:
        return ",".join(f"{server.name}:2181" for server in self.servers)

    def now_ms(self) -> int:
        return round(self.world.loop.time() * 1000)

    def apply(self, session_id: int, ops: Sequence[TreeOp]) -> list[Any]:
        """Raises MultiFailed. Notifications stand before whatever is sent next."""
        outcome = self.tree.apply(session_id, ops, self.tree.zxid + 1, 1_700_000_000_000 + self.now_ms())
        for connection in list(self.connections):
            connection.notify(outcome.changes)
        return outcome.results

    def expire(self, session_id: int) -> None:
        if session_id in self.tree.sessions:
            self.apply(0, [CloseSession(session_id)])
        for connection in list(self.connections):
            if connection.session_id == session_id:
                connection.close()

    def expire_silent(self) -> None:
        for session in list(self.tree.sessions.values()):
            if self.now_ms() - self.heard_ms[session.id] > session.timeout_ms:
                self.expire(session.id)

    def open_session(self, timeout_ms: int) -> SessionInfo:
        session = SessionInfo(max(self.tree.sessions, default=0x1000) + 1 + self.tree.zxid, b"p" * 16, timeout_ms)
        self.apply(0, [OpenSession(session)])
        return session


class SmallServer:
    def __init__(self, ensemble: SmallEnsemble, name: str) -> None:
        self.ensemble = ensemble
        self.name = name
        self.start(ensemble.world.machine(name))

    def start(self, ports: MemoryPorts) -> None:
        ports.network.listen("0.0.0.0", 2181, self._accept, self._on_round)

    def kill(self) -> MemoryPorts:
        """Its process ends; `start` it again with these ports."""
        for connection in list(self.ensemble.connections):
            if connection.server is self:
                connection.gone()
        return self.ensemble.world.kill(self.name)

    def _accept(self, channel: Channel) -> SmallConnection:
        connection = SmallConnection(self, channel)
        self.ensemble.connections.append(connection)
        return connection

    def _on_round(self, ready: list[tuple[Any, int]]) -> bool:
        for connection, _ in ready:
            connection.receive()
        return False


class SmallConnection:
    def __init__(self, server: SmallServer, channel: Channel) -> None:
        self.server = server
        self.ensemble = server.ensemble
        self.channel = channel
        self.session_id = 0
        self.data_watches: set[str] = set()
        self.child_watches: set[str] = set()
        self._received = bytearray()
        self._unsent = bytearray()

    def receive(self) -> None:
        piece = bytearray(65536)
        try:
            self.flush()
            count = self.channel.receive_into(memoryview(piece))
        except BlockingIOError:
            return
        except OSError:
            count = 0
        if not count:
            self.close()
            return
        self._received += piece[:count]
        while len(self._received) >= 4 and self in self.ensemble.connections:
            (length,) = struct.unpack_from(">i", self._received)
            if len(self._received) < 4 + length:
                return
            frame = bytes(self._received[4 : 4 + length])
            del self._received[: 4 + length]
            self._serve(frame)

    def send(self, frame: bytes) -> None:
        self._unsent += frame
        self.flush()

    def flush(self) -> None:
        try:
            while self._unsent:
                del self._unsent[: self.channel.send(bytes(self._unsent))]
            self.channel.watch(reading=True, writing=False)
        except BlockingIOError:
            self.channel.watch(reading=True, writing=True)
        except OSError:
            self.gone()

    def close(self) -> None:
        self.gone()
        self.channel.close()

    def gone(self) -> None:
        if self in self.ensemble.connections:
            self.ensemble.connections.remove(self)

    def notify(self, changes: Sequence[WatchEvent]) -> None:
        for kind, path in changes:
            of_children = kind is EventType.NODE_CHILDREN_CHANGED
            tables = [self.child_watches] if of_children else [self.data_watches]
            if kind is EventType.NODE_DELETED:
                tables = [self.data_watches, self.child_watches]
            if any(path in table for table in tables):
                self.send(encode_event(notification(kind, path)))
            for table in tables:
                table.discard(path)

    def _serve(self, frame: bytes) -> None:
        ensemble = self.ensemble
        if not self.session_id:
            self._shake_hands(decode_connect_request(frame))
            return
        header, request = decode_request(frame)
        ensemble.heard_ms[self.session_id] = ensemble.now_ms()
        if ensemble.hook(self, header, request):
            return
        ensemble.seen.append((self.server.name, OpCode(header.op), request))
        self.serve(header, request)

    def serve(self, header: RequestHeader, request: Any) -> None:
        op = OpCode(header.op)
        try:
            answer = self._result(op, request)
        except MultiFailed as failed:
            if op is not OpCode.MULTI:
                self.send(encode_error(header.xid, self.ensemble.tree.zxid, code_of(failed.error)))
                return
            answer = failed_multi(len(request.ops), failed.index, code_of(failed.error))
        except CoordinationError as error:
            self.send(encode_error(header.xid, self.ensemble.tree.zxid, code_of(error)))
            return
        self.send(encode_answer(header.xid, self.ensemble.tree.zxid, op, answer))
        if op is OpCode.CLOSE_SESSION:
            self.close()

    def _shake_hands(self, request: ConnectRequest) -> None:
        ensemble = self.ensemble
        ensemble.connects.append((self.server.name, request))
        if request.last_zxid_seen > ensemble.tree.zxid:
            self.close()
            return
        if not request.session_id:
            session = ensemble.open_session(request.timeout_ms)
        elif request.session_id in ensemble.tree.sessions:
            session = ensemble.tree.sessions[request.session_id]
            assert request.password == session.password
            for other in list(ensemble.connections):
                if other.session_id == session.id:
                    other.close()
        else:
            self.send(encode_connect(ConnectAnswer(0, 0, 0, bytes(16))))
            self.close()
            return
        self.session_id = session.id
        ensemble.heard_ms[session.id] = ensemble.now_ms()
        self.send(
            encode_connect(ConnectAnswer(ensemble.protocol_version, session.timeout_ms, session.id, session.password))
        )

    def _result(self, op: OpCode, request: Any) -> Any:
        tree, session_id = self.ensemble.tree, self.session_id
        match op:
            case OpCode.PING | OpCode.END_WITH_CONNECTION:
                return None
            case OpCode.SYNC:
                return PathAnswer(request.path)
            case OpCode.CREATE2 | OpCode.DELETE | OpCode.SET_DATA:
                return self.ensemble.apply(session_id, [_op(op, request)])[0]
            case OpCode.MULTI:
                results = self.ensemble.apply(session_id, [_op(*each) for each in request.ops])
                return MultiAnswer([_multi_result(*pair) for pair in zip(request.ops, results, strict=True)])
            case OpCode.CLOSE_SESSION:
                return self.ensemble.apply(0, [CloseSession(session_id)]) and None
            case OpCode.SET_WATCHES:
                self._set_watches(request)
                return None
        return self._read(op, request, tree)

    def _read(self, op: OpCode, request: Any, tree: ZnodeTree) -> Any:
        path, watch = request
        if op is OpCode.EXISTS:
            if watch:
                self.data_watches.add(path)
            return tree.node(path).stat()
        if op is OpCode.GET_DATA:
            found = DataAnswer(*tree.get(path))
            if watch:
                self.data_watches.add(path)
            return found
        assert op is OpCode.GET_CHILDREN2
        children = Children2Answer(*tree.children(path))
        if watch:
            self.child_watches.add(path)
        return children

    def _set_watches(self, request: SetWatchesRequest) -> None:
        nodes = self.ensemble.tree.nodes
        for paths, watches, kind in (
            (request.data, self.data_watches, EventType.NODE_DATA_CHANGED),
            (request.child, self.child_watches, EventType.NODE_CHILDREN_CHANGED),
        ):
            for path in paths:
                node = nodes.get(path)
                if node is None:
                    self.send(encode_event(notification(EventType.NODE_DELETED, path)))
                elif (node.mzxid if watches is self.data_watches else node.pzxid) > request.last_zxid_seen:
                    self.send(encode_event(notification(kind, path)))
                else:
                    watches.add(path)
        for path in request.exist:
            if path in nodes:
                self.send(encode_event(notification(EventType.NODE_CREATED, path)))
            else:
                self.data_watches.add(path)


def _op(op: OpCode, request: Any) -> Op:
    if op in (OpCode.CREATE, OpCode.CREATE2):
        flags = request.flags
        return Create(request.path, request.data, bool(flags & 1), bool(flags & 2))
    if op is OpCode.DELETE:
        return Delete(request.path, request.version)
    if op is OpCode.SET_DATA:
        return SetData(request.path, request.data, request.version)
    return Check(request.path, request.version)


def _multi_result(op: Any, result: Any) -> MultiResult:
    if op.op is OpCode.CREATE:
        assert isinstance(result, CreatedNode)
        return MultiResult(OpCode.CREATE, KeeperError.OK, PathAnswer(result.path))
    return MultiResult(op.op, KeeperError.OK, result)
