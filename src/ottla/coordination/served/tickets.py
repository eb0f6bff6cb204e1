"""Places of requests that the store works on: each takes the store's answer and makes a frame of it.

The store calls in its own order, which is the order of the requests, in the very moment in which an answer is known. So
the answers of a connection and the notifications between them stand in the order of what happened.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable
from functools import partial
from typing import Any

from ottla import logs
from ottla.coordination.errors import (
    ConnectionLoss,
    CoordinationError,
    MultiFailed,
    SessionClosed,
    SessionExpired,
)
from ottla.coordination.interface import CreatedNode
from ottla.coordination.requests import WriteRequest
from ottla.coordination.served.connection import AnswerPlace, Connection
from ottla.coordination.served.limits import weight_of
from ottla.coordination.served.long_frames import LONG_ANSWER, LONG_FRAME_BYTES, answering_multi, writing_children
from ottla.coordination.served.operations import MultiOps, UnreadableRequest
from ottla.coordination.served.serving import Serving
from ottla.coordination.zookeeper.codes import KeeperError, OpCode, code_of
from ottla.coordination.zookeeper.frames import encode_answer, encode_error, writing_multi_answer
from ottla.coordination.zookeeper.messages import Children2Answer, ChildrenAnswer, PathAnswer, failed_multi
from ottla.steps import Steps, at_once

_log = logs.logger("tree")

Frame = bytes | Steps[bytes]


class Ticket:
    """Of a read, or of anything that is refused."""

    __slots__ = ("_began_ms", "_is_long", "_serving", "_size", "_weight", "connection", "op", "xid")

    def __init__(
        self, serving: Serving, connection: Connection, xid: int, op: int, size: int, *, is_long: bool = False
    ) -> None:
        """One that `is_long` keeps its connection busy until it is answered."""
        self.connection = connection
        self.xid = xid
        self.op = op
        self._serving = serving
        self._size = size
        self._is_long = is_long
        connection.busy = connection.busy or is_long
        self._began_ms = serving.clock.monotonic_ms()
        self._weight = weight_of(op, size)
        serving.rounds.hold(connection, size, self._weight)

    def done(self) -> bool:
        """Never before it is called: it holds its place, and a write is done whether its client waits or not."""
        return False

    def set_result(self, result: Any, /) -> None:
        self._settle(partial(self.answer, result))

    def set_exception(self, error: CoordinationError, /) -> None:
        if isinstance(error, SessionExpired | SessionClosed | ConnectionLoss):
            # The session or the tree is over, or nobody knows what has happened. A server of ZooKeeper's says the same
            # by closing the connection: its client finds out when it connects again.
            self._serving.rounds.close(self.connection)
            self._let_go()
        else:
            self._settle(partial(self.refusal, error))

    @property
    def zxid(self) -> int:
        """The last transaction that the answer can show."""
        return self._serving.store.answered_zxid

    def answer(self, result: Any) -> Frame:
        if isinstance(result, ChildrenAnswer | Children2Answer) and len(result.names) > LONG_ANSWER:
            stat = result.stat if isinstance(result, Children2Answer) else None
            return writing_children(self.xid, self.zxid, result.names, stat)
        return encode_answer(self.xid, self.zxid, self.op, result)

    def refusal(self, error: CoordinationError) -> Frame:
        code = KeeperError.MARSHALLING_ERROR if isinstance(error, UnreadableRequest) else code_of(error)
        return encode_error(self.xid, self.zxid, code)

    def give_up(self) -> None:
        """Nobody will call it: its connection is closed."""
        self._let_go()

    def _settle(self, make: Callable[[], Frame]) -> None:
        """Raises nothing: the caller has others to answer."""
        try:
            frame = make()
            if isinstance(frame, bytes):
                self._send(frame)
            else:
                later = self.connection.send_later()
                self._serving.long_work.add(frame, partial(self._made, later), self._failed)
        except Exception as fault:
            self._failed(fault)

    def _send(self, frame: bytes) -> None:
        figures = self._serving.figures
        figures.sent += 1
        figures.answer(self._serving.clock.monotonic_ms() - self._began_ms)
        self.connection.send(frame)
        self._let_go()

    def _made(self, later: AnswerPlace, frame: bytes) -> None:
        self.connection.made(later, frame)
        figures = self._serving.figures
        figures.sent += 1
        figures.answer(self._serving.clock.monotonic_ms() - self._began_ms)
        self._let_go()

    def _failed(self, fault: Exception) -> None:
        trace = "".join(traceback.format_exception(fault))
        _log.error("an answer could not be made", operation=self.op, error=trace)
        self._serving.rounds.close(self.connection)
        self._let_go()

    def _let_go(self) -> None:
        if self._is_long:
            self.connection.busy = False
        self._serving.rounds.let_go(self.connection, self._size, self._weight)


class WriteTicket(Ticket):
    """Of one operation."""

    __slots__ = ("write",)

    def __init__(
        self, serving: Serving, connection: Connection, xid: int, op: int, size: int, *, is_long: bool = False
    ) -> None:
        super().__init__(serving, connection, xid, op, size, is_long=is_long)
        #: As the store has it, from when it was handed over until it is answered: it refers to this ticket.
        self.write: WriteRequest | None = None

    @property
    def zxid(self) -> int:
        return super().zxid if self.write is None else self.write.zxid

    def _let_go(self) -> None:
        self.write = None
        super()._let_go()

    def answer(self, result: Any) -> Frame:
        (only,) = result
        if self.op == OpCode.CREATE:
            assert isinstance(only, CreatedNode)
            only = PathAnswer(only.path)
        return encode_answer(self.xid, self.zxid, self.op, only)


class MultiTicket(WriteTicket):
    __slots__ = ("_multi",)

    def __init__(self, serving: Serving, connection: Connection, xid: int, size: int, multi: MultiOps) -> None:
        # Bytes say less of what it takes than the number of its operations does.
        super().__init__(serving, connection, xid, OpCode.MULTI, size, is_long=size > LONG_FRAME_BYTES)
        self._multi = multi

    def answer(self, result: Any) -> Frame:
        codes = self._multi.codes
        return _in_steps(answering_multi(self.xid, self.zxid, codes, result), len(codes))

    def refusal(self, error: CoordinationError) -> Frame:
        if not isinstance(error, MultiFailed):
            return super().refusal(error)
        codes, ops, refused = self._multi
        is_place = refused is not None and error.index == len(ops) - 1
        code = code_of(refused if refused is not None and is_place else error.error)
        failed = failed_multi(len(codes), error.index, code)
        return _in_steps(writing_multi_answer(self.xid, self.zxid, failed), len(codes))


def _in_steps(steps: Steps[bytes], count: int) -> Frame:
    return steps if count > LONG_ANSWER else at_once(steps)


class CloseTicket(WriteTicket):
    """Of the end of its session."""

    __slots__ = ()

    def set_result(self, result: Any, /) -> None:
        self._serving.life.has_ended(self.connection.session_id)
        super().set_result(result)

    def set_exception(self, error: CoordinationError, /) -> None:
        life = self._serving.life
        life.not_ended(self.connection.session_id, error)
        # Its owner has said that it is over: it ends as soon as it can.
        life.left_alone(self.connection.session_id, 0)
        super().set_exception(error)

    def answer(self, result: Any) -> Frame:
        return encode_answer(self.xid, self.zxid, self.op, None)
