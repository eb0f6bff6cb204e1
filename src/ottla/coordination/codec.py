"""Transactions as bytes, for the journal: what was done, not what was asked.

Conditions have been met and sequential names been given when a transaction is written down, so that reading it back
can only do the same again. docs/formats/coordination-journal.md has the layout.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Final, NamedTuple

from ottla.coordination.interface import (
    NO_DATA,
    Check,
    Create,
    CreatedNode,
    Delete,
    OpResult,
    SessionInfo,
    SetData,
)
from ottla.coordination.tree import CloseSession, OpenSession, TreeOp
from ottla.steps import Steps

#: Each takes a microsecond.
_OPS_A_STEP: Final = 64

_CREATE: Final = 1
_CREATE_EPHEMERAL: Final = 2
_DELETE: Final = 3
_SET: Final = 4
_OPEN_SESSION: Final = 5
_CLOSE_SESSION: Final = 6

#: Wall time in ms, session, number of operations, bytes of operations.
_TXN: Final = struct.Struct(">qQII")
_KIND_LENGTH: Final = struct.Struct(">BI")
_LENGTH: Final = struct.Struct(">I")
#: Of NO_DATA: no data is as long.
NO_DATA_LENGTH: Final = 0xFFFFFFFF
_SESSION: Final = struct.Struct(">BQIB")
_CLOSED: Final = struct.Struct(">BQ")


class CodecFault(Exception):
    """These bytes are not transactions."""


class Txn(NamedTuple):
    time_ms: int
    session_id: int
    ops: list[TreeOp]


def encoding_txn(time_ms: int, session_id: int, ops: Sequence[TreeOp], results: Sequence[OpResult]) -> Steps[bytes]:
    """The same in steps."""
    parts: list[bytes] = []
    count = 0
    for index, (op, result) in enumerate(zip(ops, results, strict=True)):
        if index % _OPS_A_STEP == _OPS_A_STEP - 1:
            yield
        if isinstance(op, Create):
            assert isinstance(result, CreatedNode)
            path = result.path.encode()
            kind = _CREATE_EPHEMERAL if op.ephemeral else _CREATE
            parts += (_KIND_LENGTH.pack(kind, len(path)), path, _length_of(op.data), op.data)
        elif isinstance(op, SetData):
            path = op.path.encode()
            parts += (_KIND_LENGTH.pack(_SET, len(path)), path, _length_of(op.data), op.data)
        elif isinstance(op, Delete):
            path = op.path.encode()
            parts += (_KIND_LENGTH.pack(_DELETE, len(path)), path)
        elif isinstance(op, OpenSession):
            session = op.session
            parts += (_SESSION.pack(_OPEN_SESSION, session.id, session.timeout_ms, len(session.password)),)
            parts.append(session.password)
        elif isinstance(op, CloseSession):
            parts.append(_CLOSED.pack(_CLOSE_SESSION, op.session_id))
        else:
            assert isinstance(op, Check)
            continue
        count += 1
    body = b"".join(parts)
    return _TXN.pack(time_ms, session_id, count, len(body)) + body


def decode_txn(buffer: bytes, position: int) -> tuple[Txn, int]:
    """The transaction at `position` and where the next one starts. Raises CodecFault."""
    try:
        time_ms, session_id, count, length = _TXN.unpack_from(buffer, position)
        position += _TXN.size
        end = position + length
        if end > len(buffer):
            raise CodecFault(f"a transaction of {length} bytes where {len(buffer) - position} are left")
        ops: list[TreeOp] = []
        for _ in range(count):
            op, position = _decode_op(buffer, position, end)
            ops.append(op)
    except (struct.error, UnicodeDecodeError, IndexError) as error:
        raise CodecFault(str(error)) from error
    if position != end:
        raise CodecFault(f"{end - position} bytes behind the operations of a transaction")
    return Txn(time_ms, session_id, ops), end


def _decode_op(buffer: bytes, position: int, end: int) -> tuple[TreeOp, int]:
    kind = buffer[position]
    if kind in (_CREATE, _CREATE_EPHEMERAL, _SET, _DELETE):
        path, position = _take(buffer, position + 1, end)
        if kind == _DELETE:
            return Delete(path.decode()), position
        data, position = _take_data(buffer, position, end)
        if kind == _SET:
            return SetData(path.decode(), data), position
        return Create(path.decode(), data, ephemeral=kind == _CREATE_EPHEMERAL), position
    if kind == _OPEN_SESSION:
        _, session_id, timeout_ms, length = _SESSION.unpack_from(buffer, position)
        position += _SESSION.size
        password = buffer[position : position + length]
        return OpenSession(SessionInfo(session_id, password, timeout_ms)), position + length
    if kind == _CLOSE_SESSION:
        return CloseSession(_CLOSED.unpack_from(buffer, position)[1]), position + _CLOSED.size
    raise CodecFault(f"there is no operation of kind {kind}")


def _length_of(data: bytes) -> bytes:
    return _LENGTH.pack(NO_DATA_LENGTH if data is NO_DATA else len(data))


def _take_data(buffer: bytes, position: int, end: int) -> tuple[bytes, int]:
    if _LENGTH.unpack_from(buffer, position)[0] == NO_DATA_LENGTH:
        return NO_DATA, position + _LENGTH.size
    return _take(buffer, position, end)


def _take(buffer: bytes, position: int, end: int) -> tuple[bytes, int]:
    (length,) = _LENGTH.unpack_from(buffer, position)
    position += 4
    if position + length > end:
        raise CodecFault(f"a field of {length} bytes where {end - position} are left")
    return buffer[position : position + length], position + length
