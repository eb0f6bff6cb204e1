"""How each of ZooKeeper's messages is read and written, on a client's side and on a server's.

Every frame is a length (int32) and that many bytes. The first frame each way is the handshake (`ConnectRequest`,
`ConnectAnswer`), which has no header; each other begins with one:

    request       xid int32, operation int32, then the request's fields
    answer        xid int32, zxid int64, error int32, then the answer's fields if the error is 0
    notification  an answer of xid -1, with a `NodeEvent`

The tables `REQUESTS` and `ANSWERS` say which fields an operation has: as in zookeeper.jute of ZooKeeper 3.8. A multi
alone is not a row of fields: its operations stand behind one another, each after a header (`_MULTI`), until one that
says that it was the last; the answer is made in the same way.
"""

from __future__ import annotations

import struct
import sys
from collections.abc import Iterable
from typing import Any, Final

from ottla.coordination.interface import CreatedNode
from ottla.coordination.zookeeper.codes import NOTIFICATION_XID, KeeperError, OpCode
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
from ottla.coordination.zookeeper.messages import (
    AclAnswer,
    AclEntry,
    AnswerHeader,
    AuthRequest,
    CheckRequest,
    Children2Answer,
    ChildrenAnswer,
    ConnectAnswer,
    ConnectRequest,
    CreateRequest,
    CreateTtlRequest,
    DataAnswer,
    DeleteRequest,
    EndWithConnectionRequest,
    MultiAnswer,
    MultiOp,
    MultiRequest,
    MultiResult,
    NodeEvent,
    NodeRequest,
    PathAnswer,
    PathRequest,
    RequestHeader,
    SetAclRequest,
    SetDataRequest,
    SetWatchesRequest,
)
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

#: Entries of an access list that are read: a frame of them alone would take a server 0.1 s.
ACL_ENTRIES_MAX: Final = 1_024


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
