"""Requests of a greeted connection: each is handed to the store, which answers in its own order, the order of the wire.

What needs nothing of the tree (an unknown operation, bytes that are no request) goes through the store as a read that
fails, so that its answer stands in its place. A ping alone is answered at once: it says that the server hears, and it
does hear while its disk stands still.
"""

from __future__ import annotations

import asyncio
import traceback
from collections.abc import Callable, Generator, Sequence
from functools import partial
from typing import Any, Final, NoReturn

from ottla import logs
from ottla.coordination.errors import (
    AuthenticationFailed,
    CoordinationError,
    OperationUnknown,
    SessionClosed,
)
from ottla.coordination.served.access import ACCEPTED_SCHEMES
from ottla.coordination.served.connection import Connection
from ottla.coordination.served.limits import NAME_BYTES, weight_of
from ottla.coordination.served.long_frames import (
    LONG_ANSWER,
    LONG_FRAME_BYTES,
    reading_multi_ops,
    reading_set_watches,
)
from ottla.coordination.served.operations import MultiOps, UnreadableRequest, op_of
from ottla.coordination.served.reads import READS, Asker, set_watches
from ottla.coordination.served.rounds import BadFrame
from ottla.coordination.served.serving import Serving
from ottla.coordination.served.tickets import CloseTicket, MultiTicket, Ticket, WriteTicket
from ottla.coordination.tree import CloseSession, TreeOp, ZnodeTree
from ottla.coordination.zookeeper.codes import PING_XID, OpCode
from ottla.coordination.zookeeper.frames import decode_request, decode_request_header, encode_answer
from ottla.coordination.zookeeper.jute import JuteFault
from ottla.coordination.zookeeper.messages import AuthRequest, EndWithConnectionRequest, SetWatchesRequest
from ottla.steps import Steps, at_once

#: Operations of ZooKeeper's clients that are refused here. The session goes on.
REFUSED: Final = frozenset(
    {
        OpCode.RECONFIG,
        OpCode.CHECK_WATCHES,
        OpCode.REMOVE_WATCHES,
        OpCode.CREATE_CONTAINER,
        OpCode.DELETE_CONTAINER,
        OpCode.CREATE_TTL,
        OpCode.MULTI_READ,
        OpCode.SASL,
        OpCode.GET_EPHEMERALS,
        OpCode.GET_ALL_CHILDREN_NUMBER,
        OpCode.ADD_WATCH,
        OpCode.WHO_AM_I,
    }
)
#: The least that a session may ask for of END_WITH_CONNECTION: less, and no client could connect again.
GRACE_MS_MIN: Final = 50
#: A node of more children waits for a place in what is being answered.
CHILDREN_AT_ONCE_MAX: Final = 2_000
#: Of a long read, between which others are served: 128 paths, of some microseconds each.
STEPS_A_PIECE: Final = 8

_log = logs.logger("tree")


class Requests:
    def __init__(self, serving: Serving) -> None:
        self._serving = serving
        self._store = serving.store

    def is_long(self, frame: bytes) -> bool:
        """Whether what this request or its answer takes is worth waiting for a place."""
        if len(frame) > LONG_FRAME_BYTES:
            return True
        try:
            if decode_request_header(frame).op not in _OF_CHILDREN:
                return False
            fields = decode_request(frame)[1]
        except JuteFault:
            return False
        return self._store.children_count(fields.path or "/") > CHILDREN_AT_ONCE_MAX

    def serve(self, connection: Connection, frame: bytes) -> None:
        """Takes the next request of a connection. Raises BadFrame where it is none at all."""
        serving = self._serving
        serving.figures.received += 1
        try:
            xid, op = decode_request_header(frame)
        except JuteFault as fault:
            raise BadFrame(f"a request has a header: {fault}") from fault
        serving.life.heard_of(connection.session_id)
        if op == OpCode.PING:
            serving.figures.sent += 1
            connection.send(encode_answer(PING_XID, self._store.answered_zxid, op))
        elif op == OpCode.MULTI:
            self._decode(connection, frame, reading_multi_ops(frame), partial(self._multi, connection, xid, len(frame)))
        elif op in {OpCode.SET_WATCHES, OpCode.SET_WATCHES2}:
            self._decode(
                connection, frame, reading_set_watches(frame, op), partial(self._set_watches, connection, xid, frame)
            )
        else:
            try:
                fields = decode_request(frame)[1]
            except JuteFault as fault:
                if op == OpCode.AUTH:
                    raise BadFrame(f"no auth request: {fault}") from fault
                self._refuse(Ticket(serving, connection, xid, op, len(frame)), UnreadableRequest(str(fault)))
            else:
                self._ask(connection, xid, op, fields, len(frame))

    # Long requests.

    def _decode(self, connection: Connection, frame: bytes, steps: Steps[Any], serve: Callable[[Any], None]) -> None:
        """Has a request read that may have very many elements, and then served. Others of its connection wait."""
        if len(frame) <= LONG_FRAME_BYTES:
            try:
                fields = at_once(steps)
            except (JuteFault, CoordinationError) as fault:
                self._undecoded(connection, frame, fault)
            else:
                serve(fields)
            return
        connection.busy = True
        self._serving.rounds.hold(connection, len(frame), _weight(frame))
        self._serving.long_work.add(
            steps,
            partial(self._decoded, connection, frame, serve),
            partial(self._not_decoded, connection, frame),
        )

    def _decoded(self, connection: Connection, frame: bytes, serve: Callable[[Any], None], fields: Any) -> None:
        connection.busy = False
        if not connection.closed:
            serve(fields)
        self._serving.rounds.let_go(connection, len(frame), _weight(frame))

    def _not_decoded(self, connection: Connection, frame: bytes, fault: Exception) -> None:
        connection.busy = False
        if not connection.closed:
            self._undecoded(connection, frame, fault)
        self._serving.rounds.let_go(connection, len(frame), _weight(frame))

    def _undecoded(self, connection: Connection, frame: bytes, fault: Exception) -> None:
        xid, op = decode_request_header(frame)
        error = fault if isinstance(fault, CoordinationError) else UnreadableRequest(str(fault))
        self._refuse(Ticket(self._serving, connection, xid, op, len(frame)), error)

    # Handing over.

    def _read(self, ticket: Ticket, action: Callable[[ZnodeTree], Any]) -> None:
        connection = ticket.connection
        try:
            self._store.submit_read(connection.session_id, partial(_contained, connection, action), ticket)
        except CoordinationError as error:
            self._serving.rounds.close(connection, str(error))
            ticket.give_up()

    def _submit(self, ticket: WriteTicket, ops: Sequence[TreeOp], size: int) -> None:
        connection = ticket.connection
        try:
            ticket.write = self._store.submit_write(connection.session_id, ops, ticket, size)
        except CoordinationError as error:
            self._refuse(ticket, error)

    def _refuse(self, ticket: Ticket, error: CoordinationError) -> None:
        """In its place among the answers."""
        self._read(ticket, partial(_raise, error))

    def _ask(self, connection: Connection, xid: int, op: int, fields: Any, size: int) -> None:
        serving = self._serving
        if op in _WRITES:
            write = WriteTicket(serving, connection, xid, op, size)
            try:
                tree_op = op_of(fields)
            except CoordinationError as error:
                self._refuse(write, error)
            else:
                self._submit(write, [tree_op], size)
        elif op == OpCode.CLOSE_SESSION:
            self._close_session(connection, xid, size)
        elif op in REFUSED:
            name = OpCode(op).name.lower()
            _log.warning_limited("an operation that this tree does not have", key=name, operation=name)
            self._refuse(Ticket(serving, connection, xid, op, size), OperationUnknown(name))
        elif op == OpCode.END_WITH_CONNECTION:
            assert isinstance(fields, EndWithConnectionRequest)
            connection.grace_ms = min(max(fields.grace_ms, GRACE_MS_MIN), connection.timeout_ms)
            self._read(Ticket(serving, connection, xid, op, size), _nothing)
        elif op == OpCode.AUTH:
            self._auth(Ticket(serving, connection, xid, op, size), fields)
        elif (read := READS.get(op)) is not None:
            asker = Asker(self._store.watches, connection)
            # What is answered is held as a list until it is made, of each request another one.
            names = self._store.children_count(fields.path or "/") if op in _OF_CHILDREN else 0
            ticket = Ticket(serving, connection, xid, op, size + names * NAME_BYTES, is_long=names > LONG_ANSWER)
            self._read(ticket, partial(read, asker, fields))
        else:
            # As ZooKeeper does.
            self._refuse(Ticket(serving, connection, xid, op, size), OperationUnknown(str(op)))
            connection.end_when_sent()

    # Writes.

    def _multi(self, connection: Connection, xid: int, size: int, multi: MultiOps) -> None:
        ticket = MultiTicket(self._serving, connection, xid, size, multi)
        self._submit(ticket, multi.ops, size)

    def _close_session(self, connection: Connection, xid: int, size: int) -> None:
        session_id = connection.session_id
        ticket = CloseTicket(self._serving, connection, xid, OpCode.CLOSE_SESSION, size)
        self._submit(ticket, [CloseSession(session_id)], size)
        if ticket.write is not None:
            self._serving.life.ends(session_id)
        connection.end_when_sent()

    def _auth(self, ticket: Ticket, fields: AuthRequest) -> None:
        if fields.scheme in ACCEPTED_SCHEMES:
            self._read(ticket, _nothing)
            return
        self._refuse(ticket, AuthenticationFailed(f"the scheme {fields.scheme} is not known here"))
        ticket.connection.end_when_sent()

    def _set_watches(self, connection: Connection, xid: int, frame: bytes, fields: SetWatchesRequest) -> None:
        op = decode_request_header(frame).op
        # Always a long one: it is read in pieces, and what comes behind it is answered behind it.
        ticket = Ticket(self._serving, connection, xid, op, len(frame), is_long=True)
        if fields.persistent or fields.persistent_recursive:
            self._refuse(ticket, OperationUnknown("persistent watches are not known here"))
            return
        steps = set_watches(Asker(self._store.watches, connection), fields)
        _ReadInPieces(ticket, steps, partial(self._read_again, connection)).go_on()

    def _read_again(self, connection: Connection, piece: _ReadInPieces) -> None:
        """The next piece of a long read, behind what others have asked for meanwhile."""
        try:
            self._store.submit_read(connection.session_id, partial(_contained, connection, piece.read), piece)
        except CoordinationError as error:
            self._serving.rounds.close(connection, str(error))
            piece.ticket.give_up()


class _ReadInPieces:
    """Takes the store's answers to the pieces of one read. Between them the tree may change."""

    __slots__ = ("_steps", "_submit", "ticket")

    def __init__(
        self, ticket: Ticket, steps: Generator[None, ZnodeTree], submit: Callable[[_ReadInPieces], None]
    ) -> None:
        self.ticket = ticket
        self._steps = steps
        self._submit = submit
        next(steps)

    def go_on(self) -> None:
        self._submit(self)

    def read(self, tree: ZnodeTree) -> bool:
        """Some steps; whether these were the last."""
        try:
            for _ in range(STEPS_A_PIECE):
                self._steps.send(tree)
        except StopIteration:
            return True
        return False

    def done(self) -> bool:
        return False

    def set_result(self, is_over: bool, /) -> None:
        if is_over:
            self.ticket.set_result(None)
        else:
            # Not from here: where nothing waits the store answers at once.
            asyncio.get_running_loop().call_soon(self.go_on)

    def set_exception(self, error: CoordinationError, /) -> None:
        self.ticket.set_exception(error)


_OF_CHILDREN: Final = frozenset({OpCode.GET_CHILDREN, OpCode.GET_CHILDREN2})
_WRITES: Final = frozenset({OpCode.CREATE, OpCode.CREATE2, OpCode.DELETE, OpCode.SET_DATA})


def _weight(frame: bytes) -> int:
    return weight_of(decode_request_header(frame).op, len(frame))


def _nothing(_: ZnodeTree) -> None:
    """What needs the tree for its place among the answers alone."""


def _raise(error: CoordinationError, _: ZnodeTree) -> NoReturn:
    raise error


def _contained(connection: Connection, action: Callable[[ZnodeTree], Any], tree: ZnodeTree) -> Any:
    """A fault of ours in one request is no fault of the store, which would give up for it."""
    _check_waited_for(connection)
    try:
        return action(tree)
    except Exception as fault:
        raise _said(fault) from fault


def _check_waited_for(connection: Connection) -> None:
    if connection.closed:
        raise SessionClosed("nobody waits for it, and it must leave no watch")


def _said(fault: Exception) -> CoordinationError:
    if isinstance(fault, CoordinationError):
        return fault
    _log.error("a request could not be served", error="".join(traceback.format_exception(fault)))
    return CoordinationError("a fault of this server")
