"""ZooKeeper's messages as named tuples, and how each is read and written, on a client's side and on a server's.

Every frame is a length (int32) and that many bytes. The first frame each way is the handshake (`ConnectRequest`,
`ConnectAnswer`), which has no header; each other begins with one:

    request       xid int32, operation int32, then the request's fields
    answer        xid int32, zxid int64, error int32, then the answer's fields if the error is 0
    notification  an answer of xid -1, with a `NodeEvent`

A server answers in the order of the requests, and puts the notification of a change before the first answer that could
show it. The tables `REQUESTS` and `ANSWERS` say which fields an operation has: as in zookeeper.jute of ZooKeeper 3.8. A
multi alone is not a row of fields: its operations stand behind one another, each after a header (`_MULTI`), until
one that says that it was the last; the answer is made in the same way.
"""

from __future__ import annotations

import struct
import sys
from collections.abc import Iterable, Sequence
from typing import Any, Final, NamedTuple

from ottla.coordination.interface import CreatedNode, Stat
from ottla.coordination.zookeeper.codes import NOTIFICATION_XID, KeeperError, KeeperState, OpCode
from ottla.coordination.zookeeper.forms import (
    BOOLEAN,
    BOOLEAN_AT_END,
    DATA,
    INT,
    LONG,
    STAT,
    TEXT,
    TEXTS,
    Form,
    Kind,
)
from ottla.coordination.zookeeper.jute import JuteFault, JuteReader, JuteWriter
from ottla.steps import Steps, at_once, pieces

#: Of a request: xid, operation. Of an answer: xid, zxid, error.
_REQUEST: Final = struct.Struct(">ii")
_ANSWER: Final = struct.Struct(">iqi")
REQUEST_HEADER_BYTES: Final = _REQUEST.size
#: Before each operation of a multi, and each result: operation, whether this is the end, error.
_MULTI: Final = struct.Struct(">i?i")
#: A permission, and the lengths of scheme and id.
_ACL_BYTES_MIN: Final = 12
#: Operations of a multi that are read or written in one step, some microseconds each.
_OPS_A_STEP: Final = 8

ALL_PERMISSIONS: Final = 31
#: Entries of an access list that are read: a frame of them alone would take a server 0.1 s.
ACL_ENTRIES_MAX: Final = 1_024


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


# Fields.


def _read_acl_entry(reader: JuteReader) -> AclEntry:
    return AclEntry(reader.int32(), reader.text(), reader.text())


def _write_acl_entry(writer: JuteWriter, entry: AclEntry) -> None:
    writer.int32(entry.permissions)
    writer.text(entry.scheme)
    writer.text(entry.id)


_ACL: Final = Kind(
    lambda reader: tuple(reader.vector(_read_acl_entry, _ACL_BYTES_MIN, ACL_ENTRIES_MAX)),
    lambda writer, entries: writer.vector(entries, _write_acl_entry),
)


def _read_multi(reader: JuteReader) -> MultiRequest:
    request = at_once(reading_multi(reader, sys.maxsize))
    assert request is not None
    return request


def _write_multi(writer: JuteWriter, request: MultiRequest) -> None:
    for op, fields in request.ops:
        writer.fields(_MULTI, op, False, -1)
        _MULTI_REQUESTS[op].write(writer, fields)
    writer.fields(_MULTI, OpCode.ERROR, True, -1)


def _read_multi_answer(reader: JuteReader) -> MultiAnswer:
    return at_once(reading_multi_answer(reader))


def _read_multi_result(reader: JuteReader, op: int, error: int) -> MultiResult:
    if op == OpCode.ERROR:
        return MultiResult(OpCode.ERROR, reader.int32())
    if op not in _MULTI_ANSWERS:
        raise JuteFault(f"the result of operation {op} in a multi")
    form = _MULTI_ANSWERS[op]
    return MultiResult(OpCode(op), error, None if form is None else form.read(reader))


def _write_multi_answer(writer: JuteWriter, answer: MultiAnswer) -> None:
    _write_multi_results(writer, answer.results)
    writer.fields(_MULTI, OpCode.ERROR, True, -1)


def _write_multi_results(writer: JuteWriter, results: Iterable[MultiResult]) -> None:
    for op, error, result in results:
        writer.fields(_MULTI, op, False, error)
        if op == OpCode.ERROR:
            writer.int32(error)
        elif form := _MULTI_ANSWERS[op]:
            assert result is not None
            form.write(writer, result)


_Forms = Form | Kind

CONNECT_REQUEST: Final = Form(ConnectRequest, (INT, LONG, INT, LONG, DATA, BOOLEAN_AT_END))
CONNECT_ANSWER: Final = Form(ConnectAnswer, (INT, INT, LONG, DATA, BOOLEAN_AT_END))
NODE_EVENT: Final = Form(NodeEvent, (INT, INT, TEXT))

_CREATE: Final = Form(CreateRequest, (TEXT, DATA, _ACL, INT))
_NODE: Final = Form(NodeRequest, (TEXT, BOOLEAN))
_PATH: Final = Form(PathRequest, (TEXT,))
_PATH_ANSWER: Final = Form(PathAnswer, (TEXT,))
_CREATED: Final = Form(CreatedNode, (TEXT, STAT))

_MULTI_REQUESTS: Final[dict[int, Form]] = {
    OpCode.CREATE: _CREATE,
    OpCode.CREATE2: _CREATE,
    OpCode.CREATE_CONTAINER: _CREATE,
    OpCode.CREATE_TTL: Form(CreateTtlRequest, (TEXT, DATA, _ACL, INT, LONG)),
    OpCode.DELETE: Form(DeleteRequest, (TEXT, INT)),
    OpCode.SET_DATA: Form(SetDataRequest, (TEXT, DATA, INT)),
    OpCode.CHECK: Form(CheckRequest, (TEXT, INT)),
}
#: What a request of each operation has behind its header; None: nothing. An operation that is not in it is unknown.
REQUESTS: Final[dict[int, _Forms | None]] = {
    **_MULTI_REQUESTS,
    OpCode.EXISTS: _NODE,
    OpCode.GET_DATA: _NODE,
    OpCode.GET_CHILDREN: _NODE,
    OpCode.GET_CHILDREN2: _NODE,
    OpCode.SYNC: _PATH,
    OpCode.GET_ACL: _PATH,
    OpCode.SET_ACL: Form(SetAclRequest, (TEXT, _ACL, INT)),
    OpCode.MULTI: Kind(_read_multi, _write_multi),
    OpCode.AUTH: Form(AuthRequest, (INT, TEXT, DATA)),
    OpCode.SET_WATCHES: Form(SetWatchesRequest, (LONG, TEXTS, TEXTS, TEXTS)),
    OpCode.SET_WATCHES2: Form(SetWatchesRequest, (LONG, TEXTS, TEXTS, TEXTS, TEXTS, TEXTS)),
    OpCode.END_WITH_CONNECTION: Form(EndWithConnectionRequest, (INT,)),
    OpCode.PING: None,
    OpCode.CLOSE_SESSION: None,
}
_MULTI_ANSWERS: Final[dict[int, Form | Kind | None]] = {
    OpCode.CREATE: _PATH_ANSWER,
    OpCode.CREATE2: _CREATED,
    OpCode.DELETE: None,
    OpCode.SET_DATA: STAT,
    OpCode.CHECK: None,
}
#: What an answer of each operation has behind its header where it has no error.
ANSWERS: Final[dict[int, _Forms | None]] = {
    **_MULTI_ANSWERS,
    OpCode.CREATE_CONTAINER: _CREATED,
    OpCode.CREATE_TTL: _CREATED,
    OpCode.EXISTS: STAT,
    OpCode.GET_DATA: Form(DataAnswer, (DATA, STAT)),
    OpCode.GET_CHILDREN: Form(ChildrenAnswer, (TEXTS,)),
    OpCode.GET_CHILDREN2: Form(Children2Answer, (TEXTS, STAT)),
    OpCode.SYNC: _PATH_ANSWER,
    OpCode.GET_ACL: Form(AclAnswer, (_ACL, STAT)),
    OpCode.SET_ACL: STAT,
    OpCode.MULTI: Kind(_read_multi_answer, _write_multi_answer),
    OpCode.AUTH: None,
    OpCode.SET_WATCHES: None,
    OpCode.SET_WATCHES2: None,
    OpCode.END_WITH_CONNECTION: None,
    OpCode.PING: None,
    OpCode.CLOSE_SESSION: None,
}


# Frames. What is encoded has its length before it; what is decoded has not.


def encode_connect(message: ConnectRequest | ConnectAnswer) -> bytes:
    writer = JuteWriter()
    form = CONNECT_REQUEST if isinstance(message, ConnectRequest) else CONNECT_ANSWER
    form.write(writer, message)
    return writer.frame()


def decode_connect_request(frame: bytes | memoryview) -> ConnectRequest:
    return CONNECT_REQUEST.read(JuteReader(frame))  # type: ignore[no-any-return]


def decode_connect_answer(frame: bytes | memoryview) -> ConnectAnswer:
    return CONNECT_ANSWER.read(JuteReader(frame))  # type: ignore[no-any-return]


def encode_request(xid: int, op: OpCode, request: tuple[Any, ...] | None = None) -> bytes:
    writer = JuteWriter()
    writer.fields(_REQUEST, xid, op)
    if form := REQUESTS[op]:
        form.write(writer, request)  # type: ignore[arg-type]
    return writer.frame()


def decode_request_header(frame: bytes | memoryview) -> RequestHeader:
    """Of a frame that may be no request at all. Raises JuteFault where it is too short for one."""
    return RequestHeader._make(JuteReader(frame).fields(_REQUEST))


def decode_request(frame: bytes | memoryview) -> tuple[RequestHeader, Any]:
    """The header and the request's fields; None for an operation without any, or one that `REQUESTS` does not know."""
    reader = JuteReader(frame)
    header = RequestHeader._make(reader.fields(_REQUEST))
    form = REQUESTS.get(header.op)
    return header, None if form is None else form.read(reader)


def encode_answer(xid: int, zxid: int, op: int, answer: tuple[Any, ...] | None = None) -> bytes:
    """An answer without an error; `answer` is None for an operation whose answer has no fields."""
    writer = JuteWriter()
    writer.fields(_ANSWER, xid, zxid, KeeperError.OK)
    if form := ANSWERS[op]:
        form.write(writer, answer)  # type: ignore[arg-type]
    return writer.frame()


def encode_error(xid: int, zxid: int, error: int) -> bytes:
    writer = JuteWriter()
    writer.fields(_ANSWER, xid, zxid, error)
    return writer.frame()


def encode_event(event: NodeEvent) -> bytes:
    writer = JuteWriter()
    writer.fields(_ANSWER, NOTIFICATION_XID, -1, KeeperError.OK)
    NODE_EVENT.write(writer, event)
    return writer.frame()


def notification(type_: int, path: str) -> NodeEvent:
    return NodeEvent(type_, KeeperState.SYNC_CONNECTED, path)


def decode_answer_header(frame: bytes | memoryview) -> tuple[AnswerHeader, JuteReader]:
    """The header, and what reads the rest: which operation it answers says the request of the same xid."""
    reader = JuteReader(frame)
    return AnswerHeader._make(reader.fields(_ANSWER)), reader


def decode_answer(op: int, reader: JuteReader) -> Any:
    """The fields of an answer without an error; None where there are none."""
    form = ANSWERS[op]
    return None if form is None else form.read(reader)


def decode_event(reader: JuteReader) -> NodeEvent:
    return NODE_EVENT.read(reader)  # type: ignore[no-any-return]


# The same in steps, for those who serve others meanwhile: a frame may carry some ten thousand operations.


def reading_multi(reader: JuteReader, ops_max: int) -> Steps[MultiRequest | None]:
    """A multi's fields; None where it has more operations than `ops_max`, the others unread."""
    ops: list[MultiOp] = []
    while True:
        op, done, _ = reader.fields(_MULTI)
        if done:
            return MultiRequest(ops)
        if len(ops) == ops_max:
            return None
        form = _MULTI_REQUESTS.get(op)
        if form is None:
            raise JuteFault(f"operation {op} in a multi")
        ops.append(MultiOp(OpCode(op), form.read(reader)))
        if len(ops) % _OPS_A_STEP == 0:
            yield


def writing_multi_answer(xid: int, zxid: int, answer: MultiAnswer) -> Steps[bytes]:
    """The frame of an answer."""
    writer = JuteWriter()
    writer.fields(_ANSWER, xid, zxid, KeeperError.OK)
    for some in pieces(answer.results, _OPS_A_STEP):
        _write_multi_results(writer, some)
        yield
    writer.fields(_MULTI, OpCode.ERROR, True, -1)
    return writer.frame()


def writing_multi(ops: Iterable[MultiOp]) -> Steps[bytearray]:
    """A request's frame, with 0 for its xid."""
    writer = JuteWriter()
    writer.fields(_REQUEST, 0, OpCode.MULTI)
    for some in pieces(ops, _OPS_A_STEP):
        for op, fields in some:
            writer.fields(_MULTI, op, False, -1)
            _MULTI_REQUESTS[op].write(writer, fields)
        yield
    writer.fields(_MULTI, OpCode.ERROR, True, -1)
    return bytearray(writer.frame())


def reading_multi_answer(reader: JuteReader) -> Steps[MultiAnswer]:
    """An answer's fields. Raises JuteFault."""
    results: list[MultiResult] = []
    while True:
        op, done, error = reader.fields(_MULTI)
        if done:
            return MultiAnswer(results)
        results.append(_read_multi_result(reader, op, error))
        if len(results) % _OPS_A_STEP == 0:
            yield
