"""Frames that are too long to be read or made in one piece, in steps."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from ottla.coordination.errors import DataTooLarge
from ottla.coordination.interface import MULTI_OPS_MAX, CreatedNode, OpResult, Stat
from ottla.coordination.served.operations import MultiOps, ops_of
from ottla.coordination.zookeeper.codes import KeeperError, OpCode
from ottla.coordination.zookeeper.frames import ANSWERS, REQUEST_HEADER_BYTES, reading_multi, writing_multi_answer
from ottla.coordination.zookeeper.jute import LENGTH_BYTES, JuteFault, JuteReader, JuteWriter
from ottla.coordination.zookeeper.messages import MultiAnswer, MultiResult, PathAnswer, SetWatchesRequest
from ottla.steps import Steps, pieces

#: A request of more bytes is read in steps if it may have many elements: up to here they take half a millisecond.
LONG_FRAME_BYTES: Final = 8 * 1024
#: Names in an answer, and results of a multi, from which on it is made in steps.
LONG_ANSWER: Final = 256
#: Texts that are read or written in one step.
_TEXTS_A_STEP: Final = 32


def reading_multi_ops(frame: bytes) -> Steps[MultiOps]:
    """Raises JuteFault, or DataTooLarge where it has too many operations."""
    request = yield from reading_multi(JuteReader(frame, REQUEST_HEADER_BYTES), MULTI_OPS_MAX)
    if request is None:
        raise DataTooLarge(f"a multi of more than {MULTI_OPS_MAX} operations")
    return (yield from ops_of(request))


def answering_multi(xid: int, zxid: int, codes: Sequence[OpCode], results: Sequence[OpResult]) -> Steps[bytes]:
    made: list[MultiResult] = []
    for some in pieces(zip(codes, results, strict=True), _TEXTS_A_STEP):
        for code, result in some:
            if isinstance(result, CreatedNode) and code == OpCode.CREATE:
                made.append(MultiResult(code, KeeperError.OK, PathAnswer(result.path)))
            else:
                made.append(MultiResult(code, KeeperError.OK, result))
        yield
    return (yield from writing_multi_answer(xid, zxid, MultiAnswer(made)))


def reading_set_watches(frame: bytes, op: int) -> Steps[SetWatchesRequest]:
    reader = JuteReader(frame, REQUEST_HEADER_BYTES)
    seen = reader.int64()
    lists: list[Sequence[str]] = []
    for _ in range(5 if op == OpCode.SET_WATCHES2 else 3):
        lists.append((yield from _reading_texts(reader)))  # noqa: PERF401 - a generator cannot be awaited inside of one
    return SetWatchesRequest(seen, *lists)


def _reading_texts(reader: JuteReader) -> Steps[list[str]]:
    count = reader.int32()
    if count == -1:
        return []
    if count < 0 or count * LENGTH_BYTES > reader.remaining:
        raise JuteFault(f"a vector of {count} elements where {reader.remaining} bytes are left")
    texts: list[str] = []
    for some in pieces(range(count), _TEXTS_A_STEP):
        texts += [reader.text() for _ in some]
        yield
    return texts


def writing_children(xid: int, zxid: int, names: Sequence[str], stat: Stat | None) -> Steps[bytes]:
    """The answer to GET_CHILDREN, and with a `stat` that to GET_CHILDREN2."""
    writer = JuteWriter()
    writer.int32(xid)
    writer.int64(zxid)
    writer.int32(KeeperError.OK)
    writer.int32(len(names))
    for some in pieces(names, _TEXTS_A_STEP):
        for name in some:
            writer.text(name)
        yield
    form = ANSWERS[OpCode.EXISTS]
    if stat is not None and form is not None:
        form.write(writer, stat)
    return writer.frame()
