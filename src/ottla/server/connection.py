"""One connection: frames in, answers out in the order of the requests.

A connection works on one request at a time, as Kafka's brokers do, with one exception: Produce requests that follow
one another are taken while earlier ones still wait for replicas or for the disk, and their answers stand in `slots`
until their turn. While anything is unsent nothing more is taken, so a client that does not read holds at most one
round of answers here.

What is in progress, of which several things may be at once; `takes` is this table:

    in progress                     stands in        frames that are taken       until
    nothing: the connection         -                any
      is clear, its lane receives
    a frame that is not whole,      buffer           any, once it is whole and   its rest has come, and
      or whose turn is to come                         has its turn                its turn
    Produces of this round          produces_open    Produce, SLOTS_MAX with     the round is written
    Produces that wait              slots              those that wait           they are filled, first to last
    Produces of its lane that       lane.waiting     what the lane takes; any    its leader has them answered
      wait                                             other claims places first
    any other request that waits    busy, cancel     none                        `finish`, or the peer has gone
    answers that are made           answers          (as above)                  the round's end
    answers that the socket         unsent           none                        it has taken them
      has not taken

    open ──abort, a fault, the peer has gone and is owed nothing any more──▶ closed ──the round's end──▶ released

A peer that sends no more may still read: whole requests that it has sent are served in their turns, and their answers
leave. What only waits for others (records, the members of a group) is given up then, with all that stands behind it.

Answers leave in the order of their requests: `answers` stand behind `unsent`, a filled slot behind those before it.
From `closed` on nothing is taken nor answered; from `released` on nothing is held.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from ottla.handlers.calls.peer import FilePiece, Outgoing, Slot
from ottla.ports import Channel
from ottla.protocol.fields import INT16, INT32, LENGTH_BYTES, REQUEST_HEAD_BYTES
from ottla.security.principal import Principal
from ottla.security.session import Session
from ottla.server.outgoing import SENT_AT_ONCE_BYTES, is_short, left_of, size_of

if TYPE_CHECKING:
    from ottla.handlers.commit.memo import CommitMemo, CommitSeed
    from ottla.handlers.fetch.followers import FollowerMemo
    from ottla.handlers.fetch.memo import FetchMemo
    from ottla.handlers.produce.memo import ProduceMemo
    from ottla.handlers.transactions.memo import TransactionMemos
    from ottla.native.fetch_lane import FetchLane
    from ottla.native.lane import Lane
    from ottla.server.buffers import Buffer
    from ottla.server.listeners import ServedListener

#: Produce answers that may wait at once; clients keep five in flight, and more is allowed to them.
SLOTS_MAX: Final = 32
#: What a socket is given in one turn, and what one call gives it more: some milliseconds.
SENT_A_TURN_BYTES: Final = 1024 * 1024


class Connection:
    __slots__ = (
        "_after",
        "accepted_ms",
        "answers",
        "begun_ms",
        "buffer",
        "busy",
        "cancel",
        "channel",
        "closed",
        "commit_memo",
        "end",
        "fetch_memo",
        "follower_memo",
        "is_open",
        "lane",
        "last_active_ms",
        "listener",
        "muted",
        "peer_gone",
        "produce_memo",
        "produces_open",
        "receive_into",
        "refused",
        "released",
        "send",
        "session",
        "slots",
        "start",
        "transaction_memos",
        "unsent",
        "waits",
    )

    def __init__(
        self, channel: Channel, listener: ServedListener, now_ms: int, after: Callable[[Connection], None]
    ) -> None:
        self.channel = channel
        self.receive_into: Callable[[memoryview], int] = channel.receive_into
        self.send = channel.send
        self.listener = listener
        self.session: Session = listener.session
        #: Of the session: asked for each request, recognised ones too.
        self.is_open = self.session.is_open
        self.accepted_ms = self.last_active_ms = now_ms
        #: When the first bytes came of the request that is not whole yet.
        self.begun_ms = now_ms
        #: What was received and not yet served: buffer[start:end]. None when all was.
        self.buffer: Buffer | None = None
        self.start = 0
        self.end = 0
        #: A request is being worked on, or waits; frames behind it wait too.
        self.busy = False
        #: What makes it busy waits for others, as long as these like: it is given up when the peer has gone.
        self.waits = False
        #: Drops the request that waits, when the connection ends.
        self.cancel: Callable[[], None] | None = None
        #: Produce requests of this round whose answers are not made yet.
        self.produces_open = 0
        #: Places of Produce answers that wait. An empty deque takes 620 bytes, which idle connections need not have.
        self.slots: deque[Slot] | tuple[()] = ()
        #: Answers made and not yet handed to the socket: a list where there are any, which idle connections have not.
        self.answers: list[Outgoing] | tuple[()] = ()
        #: What the socket would not take yet. While there is any, no frame is taken.
        self.unsent: deque[Outgoing] | tuple[()] = ()
        self.muted = False
        #: It sends no more.
        self.peer_gone = False
        #: To be closed at the end of the round.
        self.closed = False
        #: What it has sent is no request: nothing more is read.
        self.refused = False
        #: Closed, and everything it held given back.
        self.released = False
        #: What handlers remember of the last request of their kind, to recognise its like.
        self.produce_memo: ProduceMemo | None = None
        self.fetch_memo: FetchMemo | None = None
        self.follower_memo: FollowerMemo | None = None
        self.commit_memo: CommitMemo | CommitSeed | None = None
        self.transaction_memos: TransactionMemos | None = None
        #: Compiled, and knows the likes of the last Produce, or of the last Fetch, by itself.
        self.lane: Lane | FetchLane | None = None
        self._after = after

    @property
    def host(self) -> str:
        return self.channel.peer

    @property
    def listener_name(self) -> str:
        return self.listener.name

    @property
    def principal(self) -> Principal:
        return self.session.principal

    def enter(self, session: Session) -> None:
        """From now on the connection is served as this one; what was remembered under the one before was another's."""
        self.session = session
        self.is_open = session.is_open
        self.produce_memo = self.fetch_memo = self.follower_memo = self.commit_memo = self.transaction_memos = None
        self.leave_lane()

    # -- answers

    def answer(self, data: Outgoing) -> None:
        """Hands over the next answer, or a piece of it."""
        if self.answers:
            self.answers.append(data)
        else:
            self.answers = [data]
            self._after(self)

    @property
    def is_clear(self) -> bool:
        return not (self.answers or self.unsent or self.buffer is not None)

    def answer_now(self, data: bytes | bytearray | memoryview) -> None:
        """Sends an answer that nothing stands before; the round's end sees to what is left of it."""
        try:
            sent = self.send(data)
        except BlockingIOError:
            sent = 0
        except OSError:
            self.abort()
            return
        if sent != len(data):
            # A copy: the data may stand in a buffer that the round gives back.
            self.unsent = deque((bytes(memoryview(data)[sent:]),))
            self._watch()
            self._after(self)
        elif self.buffer is not None or self.peer_gone:
            self._after(self)

    def left_over(self, rest: bytes | None) -> None:
        """What a lane could not send of an answer; None: the peer has gone."""
        if rest is None:
            self.abort()
        elif isinstance(self.unsent, deque):
            self.unsent.append(rest)
        else:
            self.unsent = deque((rest,))
            self._watch()
            self._after(self)

    def claim_places(self) -> None:
        """What is held for its lane gets places here: another way is about to serve the connection."""
        lane = self.lane
        if lane is not None and lane.waiting:
            lane.token[1].leader.held.take_out(lane)

    @property
    def is_owed(self) -> bool:
        """Whether Produces wait for their answers."""
        return bool(self.slots) or (self.lane is not None and self.lane.waiting > 0)

    @property
    def has_frame(self) -> bool:
        """Whether a whole frame waits for its turn."""
        left = self.end - self.start
        if self.buffer is None or left < REQUEST_HEAD_BYTES:
            return False
        (length,) = INT32.unpack_from(self.buffer.data, self.start)
        return bool(length + LENGTH_BYTES <= left)

    @property
    def takes_next(self) -> bool:
        """Whether a whole frame waits that may be served now."""
        if not self.has_frame:
            return False
        assert self.buffer is not None
        return self.takes(INT16.unpack_from(self.buffer.data, self.start + LENGTH_BYTES)[0])

    @property
    def is_over(self) -> bool:
        """Of a peer that sends no more: whether nothing of what it has sent is left to be done."""
        if self.busy:
            return self.waits
        return not (self.produces_open or self.answers or self.unsent or self.is_owed or self.has_frame)

    def fileno(self) -> int:
        return self.channel.fileno()

    def take_lane(self, lane: Lane | FetchLane) -> None:
        """From now on the lane receives whatever comes while nothing is in progress."""
        if self.lane is not None:
            self.claim_places()
            self.lane.close()
        self.lane = lane
        self.receive_into = lane.receive

    def answer_later(self, cancel: Callable[[], None] | None, *, waits: bool = False) -> None:
        """The request waits, and all behind it, until `finish`. `waits`: for others, and not for work of ours."""
        self.busy = True
        self.waits = waits
        self.cancel = cancel

    def leave_lane(self) -> None:
        """What the lane knows is of the past: the connection receives by itself again."""
        if self.lane is not None:
            if not self.closed:
                self.claim_places()
            self.lane.close()
            self.lane = None
            self.receive_into = self.channel.receive_into

    def finish(self) -> None:
        """The request that made the connection busy is done; what waited behind it may go on."""
        self.busy = False
        self.cancel = None
        self._after(self)

    def finish_with(self, data: bytes | bytearray, now_ms: int) -> None:
        """The request that made the connection busy has this answer, the last piece of it."""
        self.busy = False
        self.cancel = None
        if len(data) <= SENT_AT_ONCE_BYTES and not self.muted and self.is_clear:
            # It must not pass for idle, however long the request has waited.
            self.last_active_ms = now_ms
            self.answer_now(data)
        else:
            self.answer(data)
            self._after(self)

    # -- answers of Produce

    def staged(self) -> None:
        self.produces_open += 1

    def written(self) -> None:
        self.produces_open -= 1

    def answer_in_turn(self, data: bytes) -> bool:
        if self.slots:
            return False
        if self.produces_open or self.answers or self.unsent:
            self.answer(data)
        else:
            self.answer_now(data)
        return True

    def fill(self, slot: Slot, data: bytes | bytearray) -> None:
        """Gives a waiting Produce its answer; it leaves when all before it have left."""
        slots = self.slots
        assert isinstance(slots, deque)
        if len(slots) == 1 and not (self.produces_open or self.answers or self.unsent) and slots[0] is slot and data:
            # Nothing stands before it or behind it, as with most clients.
            self.slots = ()
            self.answer_now(data)
            return
        slot.data = data
        while slots and slots[0].data is not None:
            ready = slots.popleft().data
            if ready:
                self.answer(ready)
        if not slots:
            self.slots = ()
        self._after(self)

    def hold(self, slot: Slot) -> None:
        """Keeps the place of an answer that is still to come."""
        if isinstance(self.slots, deque):
            self.slots.append(slot)
        else:
            self.slots = deque((slot,))

    def takes(self, api_key: int) -> bool:
        """Whether a frame of this API may be served now."""
        if self.busy or self.unsent:
            return False
        if self.produces_open or self.slots:
            return api_key == 0 and len(self.slots) + self.produces_open < SLOTS_MAX
        return True

    def abort(self) -> None:
        self.closed = True
        self._after(self)

    def refuse(self) -> None:
        """What it has sent is not served, so it is closed; the answers before that one leave."""
        self.refused = True
        self.abort()

    def forget_request(self) -> None:
        """The one that was refused, with all behind it: what is left are the answers to those before."""
        self.closed, self.refused = False, True
        self.busy = False
        self.cancel = None
        self.start = self.end

    # -- sending

    def send_answers(self) -> bool:
        """Gives the socket what was answered; what it does not take waits in `unsent`. OSError: the peer has gone.

        What is long is left to `send_unsent`, and True is returned.
        """
        answers = self.answers
        if self.unsent:
            self.unsent += tuple(answers)
            self.answers = ()
            return False
        data: Outgoing
        if len(answers) == 1 and type(answers[0]) is not FilePiece and len(answers[0]) <= SENT_AT_ONCE_BYTES:  # type: ignore[arg-type]
            data = answers[0]
        elif is_short(answers):
            data = b"".join(answers)  # type: ignore[arg-type]
        else:
            self.unsent = deque(answers)
            self.answers = ()
            if size_of(self.unsent) > SENT_AT_ONCE_BYTES:
                return True
            self.send_unsent()
            return False
        self.answers = ()
        try:
            sent = self.channel.send(data)  # type: ignore[arg-type]
        except BlockingIOError:
            sent = 0
        if sent != len(data):  # type: ignore[arg-type]
            self.unsent = deque((left_of(data, sent),))
            self._watch()
        return False

    def put_off_answers(self) -> None:
        """Leaves them to `send_unsent`, once the socket is said to take something."""
        self.unsent = deque(self.answers)
        self.answers = ()
        self._watch()

    @property
    def owes_little(self) -> bool:
        """Whether what the socket has not taken leaves at once when it takes it."""
        return is_short(self.unsent)

    def send_unsent(self) -> None:
        """Goes on where the socket was full."""
        unsent = self.unsent
        if not isinstance(unsent, deque):
            return
        channel = self.channel
        left = SENT_A_TURN_BYTES
        try:
            while unsent and left > 0:
                piece = unsent[0]
                if type(piece) is FilePiece:
                    if piece.may_have_changed:
                        raise ConnectionAbortedError("a leader that leads no more had promised these records")
                    sent = channel.send_file(piece.file, piece.position, piece.count)
                    if sent == 0:
                        raise ConnectionAbortedError("a segment ended before the slice that was promised of it")
                    left -= sent
                    piece.position += sent
                    piece.count -= sent
                    if piece.count:
                        break  # the socket is full, and asked again it would only say so
                    piece.file.release()
                else:
                    sent = channel.send(piece)  # type: ignore[arg-type]
                    left -= sent
                    if sent != len(piece):  # type: ignore[arg-type]
                        unsent[0] = left_of(piece, sent)
                        continue
                unsent.popleft()
        except BlockingIOError:
            pass
        if not unsent:
            self.unsent = ()
        self._watch()

    def outgoing_bytes(self) -> int:
        """Bytes of answers in memory; pieces of files are not."""
        return sum(len(piece) for piece in (*self.unsent, *self.answers) if not isinstance(piece, FilePiece))

    # -- reading

    def mute(self, muted: bool) -> None:
        # The end of what a peer sends would be named in each round.
        muted = muted or self.peer_gone
        if muted != self.muted:
            self.muted = muted
            self._watch()

    def _watch(self) -> None:
        self.channel.watch(reading=not self.muted, writing=bool(self.unsent))

    def release(self) -> None:
        """Lets go of everything held for the peer and closes the channel; only the first call does something."""
        if self.released:
            return
        self.released = self.closed = True
        cancel, self.cancel = self.cancel, None
        try:
            if cancel is not None:
                cancel()
        finally:
            # A socket that stays open is reported as readable for ever, and its client never learns of the end.
            self._let_go()

    def _let_go(self) -> None:
        for piece in (*self.unsent, *self.answers):
            if type(piece) is FilePiece:
                piece.file.release()
        self.unsent = ()
        self.answers = ()
        self.slots = ()
        self.produce_memo = self.fetch_memo = self.follower_memo = self.commit_memo = self.transaction_memos = None
        try:
            # Its descriptor's number may be another connection's at once.
            self.leave_lane()
        finally:
            self.channel.close()
