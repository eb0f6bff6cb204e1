"""The same random requests to two servers, and what each answers, made comparable.

Two sessions take turns. After each request both ask once more, so that every notification has come. Of numbers that
differ by their nature (transactions, times, session ids) the relations are compared: a transaction is known by the
order in which it was first shown.
"""

from __future__ import annotations

import random
import struct
from collections.abc import Callable
from typing import Any

from tests.coordination.served.wire import WireClient

from ottla.coordination.interface import NO_DATA, CreatedNode, Stat
from ottla.coordination.zookeeper.codes import OpCode
from ottla.coordination.zookeeper.messages import (
    OPEN_TO_ALL,
    AclAnswer,
    AclEntry,
    AuthRequest,
    CheckRequest,
    Children2Answer,
    ChildrenAnswer,
    CreateRequest,
    CreateTtlRequest,
    DataAnswer,
    DeleteRequest,
    MultiAnswer,
    MultiOp,
    MultiRequest,
    NodeRequest,
    PathRequest,
    SetAclRequest,
    SetDataRequest,
    SetWatchesRequest,
)

#: (session, what to do with it)
Step = tuple[int, Callable[[WireClient], Any]]

NAMES = ("a", "b", "c")
#: What no create takes.
ODD_PATHS = ("{base}/", "a", "{base}/\x01", "{base}/a\x00b", "{base}/.", "{base}/..")
#: The same under a parent that is not there, which ZooKeeper looks for before it looks at the path.
ORPHANED_PATHS = ("{base}/a/", "{base}/a//b", "{base}/./a", "{base}/../a")


class Canonical:
    """Numbers of one server by the order in which it showed them."""

    def __init__(self, sessions: dict[int, int]) -> None:
        self._sessions = sessions
        self._zxids: dict[int, int] = {}

    def zxid(self, zxid: int) -> int:
        return self._zxids.setdefault(zxid, len(self._zxids))

    def stat(self, stat: Stat) -> tuple[Any, ...]:
        return (
            *map(self.zxid, (stat.czxid, stat.mzxid, stat.pzxid)),
            stat.mtime_ms >= stat.ctime_ms,
            stat.version,
            stat.cversion,
            self._sessions.get(stat.ephemeral_owner, stat.ephemeral_owner),
            stat.data_length,
            stat.num_children,
        )

    def of(self, fields: Any) -> Any:
        if isinstance(fields, Stat):
            return self.stat(fields)
        if isinstance(fields, CreatedNode):
            return fields.path, self.stat(fields.stat)
        if isinstance(fields, DataAnswer):
            return None if fields.data is NO_DATA else fields.data, self.stat(fields.stat)
        if isinstance(fields, ChildrenAnswer):
            return sorted(fields.names)
        if isinstance(fields, Children2Answer):
            return sorted(fields.names), self.stat(fields.stat)
        if isinstance(fields, AclAnswer):
            return tuple(fields.acl), self.stat(fields.stat)
        if isinstance(fields, MultiAnswer):
            return [(int(each.op), each.error, self.of(each.result)) for each in fields.results]
        return fields


class Choice:
    """One seed's requests."""

    def __init__(self, seed: int, base: str) -> None:
        self.random = random.Random(seed)
        self.base = base

    def path(self, *, reads: bool = False) -> str:
        if self.random.random() < 0.05:
            return self.random.choice(ODD_PATHS).format(base=self.base)
        if reads and self.random.random() < 0.05:
            return self.random.choice(ORPHANED_PATHS).format(base=self.base)
        depth = self.random.choice((1, 1, 1, 1, 2, 2, 3))
        return self.base + "".join(f"/{self.random.choice(NAMES)}" for _ in range(depth))

    def version(self) -> int:
        return self.random.choice((-1, -1, 0, 0, 1, 2))

    def data(self) -> bytes:
        size = self.random.choice((None, 0, 1, 10))
        return NO_DATA if size is None else self.random.randbytes(size)

    def flags(self) -> int:
        return self.random.choice((0, 0, 0, 0, 0, 1, 1, 2, 3, 7, -1))

    def acl(self) -> tuple[AclEntry, ...]:
        odd = ((), (AclEntry(31, "nobody", "knows"),), (*OPEN_TO_ALL, *OPEN_TO_ALL))
        return OPEN_TO_ALL if self.random.random() < 0.95 else self.random.choice(odd)

    def write(self) -> MultiOp:
        kind = self.random.random()
        if kind < 0.45:
            op = self.random.choice((OpCode.CREATE, OpCode.CREATE2))
            return MultiOp(op, CreateRequest(self.path(), self.data(), self.acl(), self.flags()))
        if kind < 0.7:
            return MultiOp(OpCode.SET_DATA, SetDataRequest(self.path(), self.data(), self.version()))
        if kind < 0.95:
            return MultiOp(OpCode.DELETE, DeleteRequest(self.path(), self.version()))
        ttl = CreateTtlRequest(self.path(), self.data(), OPEN_TO_ALL, 5, 1000)
        return MultiOp(OpCode.CREATE_TTL, ttl)

    def multi(self) -> MultiRequest:
        ops = [self.write() for _ in range(self.random.choice((0, 1, 2, 3, 5)))]
        # Of ZooKeeper's check operations that stand alone nothing is known but that none of its clients sends one.
        ops = [MultiOp(OpCode.CHECK, CheckRequest(self.path(), self.version())) if self.rarely() else op for op in ops]
        return MultiRequest(ops)

    def rarely(self) -> bool:
        return self.random.random() < 0.2

    def request(self) -> tuple[int, Any]:
        kind = self.random.random()
        if kind < 0.45:
            return self.write()
        if kind < 0.6:
            return OpCode.MULTI, self.multi()
        if kind < 0.64:
            return OpCode.SYNC, PathRequest(self.path())
        if kind < 0.68:
            return OpCode.GET_ACL, PathRequest(self.path())
        if kind < 0.7:
            return OpCode.SET_ACL, SetAclRequest(self.base + "/none", self.acl(), -1)
        if kind < 0.72:
            return OpCode.AUTH, AuthRequest(0, self.random.choice(("digest", "ip")), b"user:word")
        if kind < 0.75:
            paths = [[self.path() for _ in range(2)] for _ in range(3)]
            return OpCode.SET_WATCHES, SetWatchesRequest(self.random.choice((0, 2**62)), *paths)
        op = self.random.choice((OpCode.EXISTS, OpCode.GET_DATA, OpCode.GET_CHILDREN, OpCode.GET_CHILDREN2))
        return op, NodeRequest(self.path(reads=True), self.random.random() < 0.5)

    def damaged(self) -> tuple[int, bytes]:
        """An operation, and bytes that are not its fields."""
        op = self.random.choice((OpCode.CREATE, OpCode.SET_DATA, OpCode.EXISTS, OpCode.MULTI, OpCode.GET_DATA))
        length = self.random.choice((0x7FFFFFFF, 1000, 5))
        return op, struct.pack(">i", length) + self.random.randbytes(self.random.choice((0, 3)))


def trace(port: int, seed: int, steps: int) -> list[Any]:
    """What a server answers to the requests of a seed."""
    base = f"/d{seed}"
    choice = Choice(seed, base)
    with WireClient(port) as first, WireClient(port) as second:
        clients = (first, second)
        first.call(OpCode.CREATE, CreateRequest(base, b""))
        canonical = Canonical({client.session.session_id: -1 - at for at, client in enumerate(clients)})
        seen: list[Any] = []
        last_zxid = 0
        for step in range(steps):
            client = choice.random.choice(clients)
            if choice.random.random() < 0.03:
                op, body = choice.damaged()
                client.ask_raw(op, body)
                asked: Any = (OpCode(op).name, body)
            else:
                op, request = choice.request()
                client.ask(op, request)
                asked = (OpCode(op).name, request)
            answer = client.answer()
            assert answer.header.zxid >= last_zxid or op == OpCode.AUTH
            last_zxid = max(last_zxid, answer.header.zxid)
            for each in clients:
                each.call(OpCode.EXISTS, NodeRequest(base, watch=False))
            seen.append(
                (step, asked, answer.header.error, canonical.of(answer.fields), [each.events for each in clients])
            )
            for each in clients:
                each.events = []
        return seen
