"""ZooKeeper's messages as named tuples. How they stand in frames says `frames.py`.

A server answers in the order of the requests, and puts the notification of a change before the first answer that could
show it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from ottla.coordination.interface import CreatedNode, Stat
from ottla.coordination.zookeeper.codes import KeeperError, KeeperState, OpCode

ALL_PERMISSIONS: Final = 31


class AclEntry(NamedTuple):
    permissions: int
    scheme: str
    id: str


#: Everybody may do everything: ZooKeeper's OPEN_ACL_UNSAFE, and what Kafka writes without `zookeeper.set.acl`.
OPEN_TO_ALL: Final = (AclEntry(ALL_PERMISSIONS, "world", "anyone"),)


# The handshake.


class ConnectRequest(NamedTuple):
    protocol_version: int
    #: A server that has not come so far yet refuses the connection: the client would see the tree go back.
    last_zxid_seen: int
    timeout_ms: int
    #: 0 for a new session.
    session_id: int
    password: bytes
    #: Whether a server without a quorum will do. None: a client before ZooKeeper 3.4, which does not say.
    read_only: bool | None = False


class ConnectAnswer(NamedTuple):
    protocol_version: int
    #: As the server has decided; 0 or less: the session is over.
    timeout_ms: int
    session_id: int
    password: bytes
    #: Whether this server is one without a quorum. None where it does not say.
    read_only: bool | None = False


# Requests.


class CreateRequest(NamedTuple):
    """Of CREATE, CREATE2 and CREATE_CONTAINER."""

    path: str
    data: bytes
    acl: Sequence[AclEntry] = OPEN_TO_ALL
    flags: int = 0


class CreateTtlRequest(NamedTuple):
    path: str
    data: bytes
    acl: Sequence[AclEntry]
    flags: int
    ttl_ms: int


class DeleteRequest(NamedTuple):
    path: str
    version: int


class NodeRequest(NamedTuple):
    """Of EXISTS, GET_DATA, GET_CHILDREN and GET_CHILDREN2."""

    path: str
    watch: bool


class PathRequest(NamedTuple):
    """Of SYNC and GET_ACL."""

    path: str


class SetDataRequest(NamedTuple):
    path: str
    data: bytes
    version: int


class CheckRequest(NamedTuple):
    path: str
    version: int


class SetAclRequest(NamedTuple):
    path: str
    acl: Sequence[AclEntry]
    version: int


class AuthRequest(NamedTuple):
    type: int
    scheme: str
    credentials: bytes


class SetWatchesRequest(NamedTuple):
    """Of SET_WATCHES, whose request ends after `child`, and SET_WATCHES2."""

    #: What changed after it is notified at once.
    last_zxid_seen: int
    data: Sequence[str]
    #: Left by `exists` where there was no node.
    exist: Sequence[str]
    child: Sequence[str]
    persistent: Sequence[str] = ()
    persistent_recursive: Sequence[str] = ()


class EndWithConnectionRequest(NamedTuple):
    """Of END_WITH_CONNECTION: a session whose connection has closed ends after so long, unless it was resumed."""

    grace_ms: int


class MultiOp(NamedTuple):
    op: OpCode
    request: CreateRequest | CreateTtlRequest | DeleteRequest | SetDataRequest | CheckRequest


class MultiRequest(NamedTuple):
    ops: Sequence[MultiOp]


# Answers. CREATE2 is answered by a CreatedNode; EXISTS, SET_DATA and SET_ACL by a Stat.


class PathAnswer(NamedTuple):
    """Of CREATE and SYNC."""

    path: str


class DataAnswer(NamedTuple):
    data: bytes
    stat: Stat


class ChildrenAnswer(NamedTuple):
    """Of GET_CHILDREN. In no order."""

    names: Sequence[str]


class Children2Answer(NamedTuple):
    names: Sequence[str]
    stat: Stat


class AclAnswer(NamedTuple):
    acl: Sequence[AclEntry]
    stat: Stat


class MultiResult(NamedTuple):
    #: CREATE, CREATE2, DELETE, SET_DATA or CHECK; ERROR in a multi that was not done.
    op: OpCode
    #: Of ERROR: 0 before the operation that failed, RUNTIME_INCONSISTENCY behind it.
    error: int
    result: PathAnswer | CreatedNode | Stat | None = None


class MultiAnswer(NamedTuple):
    results: Sequence[MultiResult]


class NodeEvent(NamedTuple):
    """A notification. `type` and `state` are numbers as they came: there may be newer ones."""

    type: int
    state: int
    path: str


class RequestHeader(NamedTuple):
    xid: int
    #: A number that OpCode may not know.
    op: int


class AnswerHeader(NamedTuple):
    xid: int
    #: The last transaction that this server knew of.
    zxid: int
    error: int


def failed_multi(count: int, index: int, error: int) -> MultiAnswer:
    """The answer to a multi of `count` operations of which `index` failed."""
    before = MultiResult(OpCode.ERROR, KeeperError.OK)
    behind = MultiResult(OpCode.ERROR, KeeperError.RUNTIME_INCONSISTENCY)
    return MultiAnswer([before] * index + [MultiResult(OpCode.ERROR, error)] + [behind] * (count - index - 1))


def notification(type_: int, path: str) -> NodeEvent:
    return NodeEvent(type_, KeeperState.SYNC_CONNECTED, path)
