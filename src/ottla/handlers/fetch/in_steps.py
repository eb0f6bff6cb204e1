"""A fetch that knows which of its partitions have changed: in a session, or of very many partitions.

What is little is read and answered in the round that brings it, as any other fetch. What is much goes in steps: the
request is parsed, its partitions are read and its answer is made between the rounds of others, one try after another.

While such a fetch waits it stands under no partition. A change marks a partition of its set, and that wakes it; what
it reads then is what was marked.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import TYPE_CHECKING, Final

from ottla.handlers.calls.peer import Outgoing
from ottla.handlers.calls.turns import Job, Pause
from ottla.handlers.fetch.answer import answer_in_steps, encode_empty
from ottla.handlers.fetch.asked import AskedPartition, Key, each_asked, each_forgotten, without_empty
from ottla.handlers.fetch.reading import PartitionRead, let_go
from ottla.handlers.fetch.sessions import NO_SESSION, Session
from ottla.handlers.fetch.waiting import COLD_READS_MAX, WATERMARK_NEWS_MS, Answer, FetchWait
from ottla.handlers.fetch.watched import WatchedPartitions
from ottla.model import ErrorCode
from ottla.protocol.errors import DecodeError
from ottla.protocol.hot.fetch import FetchRequest
from ottla.replication.isr_progress import Beat
from ottla.steps import Steps, at_once, pieces
from ottla.storage.log.cold_reads import ColdPause, Warmth

if TYPE_CHECKING:
    from ottla.handlers.calls.peer import Peer
    from ottla.handlers.fetch.followers import FollowerMemo
    from ottla.handlers.fetch.handler import FetchHandler

#: Marked partitions that are read within a round: a millisecond and a half.
READ_AT_ONCE_MAX: Final = 256

#: What a request may hold in memory once it is decoded: eighty thousand partitions. Each is held twice more, as what is
#: watched and as what is read of it, which makes 64 MB in all.
REQUEST_BYTES_MAX: Final = 24 << 20

InSteps = Generator[Pause | None, None, list[Outgoing] | None]


class WatchedFetch(FetchWait):
    __slots__ = (
        "_again",
        "_deadline_ms",
        "_is_late",
        "_is_parked",
        "_job",
        "_session_epoch",
        "_unwatched",
        "is_full",
        "memo",
        "opens_session",
        "session",
        "uses_ids",
        "watched",
    )

    def __init__(
        self,
        handler: FetchHandler,
        peer: Peer,
        version: int,
        correlation: int,
        request: FetchRequest,
        session: Session | None,
        *,
        opens_session: bool,
    ) -> None:
        super().__init__(handler, peer, version, correlation, request)
        #: The session of an incremental fetch.
        self.session = session
        self._session_epoch = 0 if session is None else session.epoch
        #: Its answer says everything; that of an incremental fetch what is news.
        self.is_full = session is None
        self.opens_session = opens_session
        #: A follower's session is asked again and again; that of a consumer may rest for hours.
        stays = opens_session and self.reader.is_follower
        waiters = handler.services.replicas.waiters
        if session is not None:
            self.reader.beat = session.beat
        elif stays:
            self.reader.beat = Beat(handler.services.clock.monotonic_ms())
        self.watched = WatchedPartitions(waiters, stays=stays) if session is None else session.partitions
        self._deadline_ms = handler.services.clock.monotonic_ms() + max(0, request.max_wait_ms)
        #: To be answered with what there is.
        self._is_late = request.max_wait_ms <= 0
        self._is_parked = False
        self._job: Job | None = None
        #: Whether something has changed while a try was under way.
        self._again = False
        #: All that it asks for, where it is watched only if it has to wait: most fetches need not.
        self._unwatched: list[AskedPartition] | None = None
        #: Of a follower that asks for one partition again and again.
        self.memo: FollowerMemo | None = None

    # -- in a round

    def begin_again(self, correlation: int, wait_ms: int, now_ms: int) -> None:
        """Stands for the next request of its session, which is like the last one but for its numbers."""
        assert self.session is not None
        self.correlation = correlation
        self._session_epoch = self.session.epoch
        self._deadline_ms = now_ms + wait_ms
        self._is_late = self._is_parked = self._again = False
        self.reads_left, self.reader.gives_up = COLD_READS_MAX, False
        self.reader.were_read(())
        self.began_ms = None
        self.watched.on_mark = self._wake

    def begin(self) -> None:
        """Its partitions are known: answers, or begins to wait."""
        self.watched.on_mark = self._wake
        if self.is_much:
            self.go_on(self.steps(), 0)
            return
        if not self.first_try():
            self.park()

    @property
    def is_much(self) -> bool:
        return self.watched.marked_count > READ_AT_ONCE_MAX

    @property
    def _is_over(self) -> bool:
        """There is nothing to wait for."""
        session = self.session
        return self._is_late or not len(self.watched) or (session is not None and session.is_closed)

    def take_steps(self, request: FetchRequest) -> Steps[int]:
        """Takes up what the request asks for. The number of its partitions."""
        yield from without_empty(request)
        if self.session is None and not self.opens_session:
            by_key: dict[Key, AskedPartition] = {}
            for some in pieces(each_asked(request)):
                for one in some:
                    by_key[one[:2]] = one
                yield
            if by_key:
                self._unwatched = list(by_key.values())
            return len(by_key)
        yield from self.watched.take_steps(each_asked(request))
        if self.session is None:
            return len(self.watched)  # a session that begins has nothing to forget
        for forgotten in pieces(each_forgotten(request)):
            for key in forgotten:
                self.watched.forget(key)
            yield
        return len(self.watched)

    def end_session(self) -> None:
        """Nothing is left in its session, which has ended: it goes on without one."""
        self.session = None
        self.is_full = True

    def first_try(self) -> bool:
        reads = self._read()
        if not (self._is_over or self.is_enough(reads)):
            if at_once(self._is_to_hear(reads)):
                self.hasten()
            return False
        if self.is_full and len(reads) < len(self.watched):
            if len(self.watched) > READ_AT_ONCE_MAX:
                self.go_on(self.steps(), 0)
                return False
            reads = self.reader.read_all(self.watched.asked, self.max_bytes, self.handler.room())
        # Workers may come first, and nobody asks it again meanwhile: it has left those who wait.
        self._is_parked = False
        self.handler.settle(self, reads)
        return True

    def _read(self) -> list[PartitionRead]:
        return at_once(self.watched.look(self.reader, self.max_bytes, self.handler.room(), full=self.is_full))

    def answer(self, reads: list[PartitionRead]) -> Answer:
        return at_once(self._answer_steps(reads))

    def throttled(self) -> int:
        self.leave()
        return NO_SESSION if self.session is None else self.session.id

    # -- waiting

    def park(self) -> None:
        handler = self.handler
        if self.began_ms is None:
            self.began_ms = handler.services.round.began_ms
        self._is_parked = True
        self.peer.answer_later(self.cancel, waits=True)
        handler.services.replicas.waiters.park(self, (), self._deadline_ms)
        handler.services.round.soon()

    def _is_to_hear(self, reads: list[PartitionRead]) -> Steps[bool]:
        """Whether a follower that is not answered yet is to hear of something besides records."""
        if not self.reader.is_follower:
            return False
        if self.is_full:
            for asked in pieces(self.watched.asked):
                if self.reader.lags(asked):
                    return True
                yield
        else:
            for some in pieces(reads):
                if self.watched.is_behind(some):
                    return True
                yield
        return False

    def hasten(self) -> None:
        """A follower hears of a watermark that has moved, soon and not at once: records mostly come before."""
        soon_ms = self.handler.services.clock.monotonic_ms() + WATERMARK_NEWS_MS
        if soon_ms < self._deadline_ms:
            self._deadline_ms = soon_ms
            if self._is_parked:
                self.handler.services.replicas.waiters.wait_until(self, soon_ms)

    def _wake(self) -> None:
        if self._job is not None:
            self._again = True
        else:
            self.handler.services.replicas.waiters.wake(self)

    def try_complete(self, now_ms: int) -> bool:
        if self._job is not None:
            self._again = True
            return False
        if self.is_much:
            self.go_on(self.steps(), 0)
            return False
        if self.memo is not None and (done := self.handler.followers.go_on_with(self.memo, self)) is not None:
            return done
        return self.first_try()

    @property
    def is_of_its_session(self) -> bool:
        """Whether no other request has gone on with the session while this one waited."""
        session = self.session
        return session is not None and not session.is_closed and session.epoch == self._session_epoch

    def expire(self, now_ms: int) -> None:
        self._is_parked = False
        if self._job is None and self.memo is not None and self.handler.followers.end_with(self.memo, self):
            return
        self._is_late = True
        if self._job is None:
            self.answer_now()

    def answer_now(self) -> None:
        self._is_late = True
        if self.is_much:
            self.go_on(self.steps(), 0)
        else:
            self.first_try()

    def cancel(self) -> None:
        if self._job is not None:
            self.handler.services.turns.give_up(self._job)
            self._job = None
        super().cancel()
        self.leave()

    def failed(self, fault: Exception) -> None:
        self.cancel()
        self.peer.abort()

    # -- in steps

    def go_on(self, steps: InSteps, size: int) -> None:
        """One try, in turns with the work of others."""
        handler = self.handler
        if self.began_ms is None:
            self.began_ms = handler.services.round.began_ms
        self._again = False
        self._job = handler.services.turns.go_on(steps, self.tried, self._broke, size)
        self.peer.answer_later(self.cancel)

    def steps(self) -> InSteps:
        """The answer's frame; None where the fetch is to wait on."""
        reads = yield from self._reads()
        while reads is not None and (missing := [read.missing for read in reads if read.missing is not None]):
            let_go(reads)
            self.handler.services.metrics.cold_reads.value += 1
            yield ColdPause(self.handler.services.replicas.cold_reads, missing)
            self.cold_was_read(missing)
            reads = yield from self._reads()
        if reads is None:
            return None
        try:
            yield from self._warm(reads)
            while not self.handler.untaken.has_room:
                yield self.handler.untaken
            return (yield from self._frame_steps(reads))
        finally:
            let_go(reads)

    def _reads(self) -> Steps[list[PartitionRead] | None]:
        """What the answer is made of. They hold their files open."""
        handler, watched = self.handler, self.watched
        if self._unwatched is not None:
            is_new, self.is_new = self.is_new, False
            reads = yield from self.reader.read_steps(self._unwatched, self.max_bytes, handler.room(), is_new=is_new)
            self.is_new = is_new and any(read.lacks for read in reads)
            if self._is_late or self.is_enough(reads):
                return reads
            let_go(reads)
            yield from watched.take_steps(self._unwatched)
            self._unwatched = None
        reads = yield from watched.look(self.reader, self.max_bytes, handler.room(), full=self.is_full, in_steps=True)
        if not (self._is_over or self.is_enough(reads)):
            let_go(reads)
            if (yield from self._is_to_hear(reads)):
                self.hasten()
                handler.services.round.soon()  # none is under way that would look when to wake next
            return None
        if self.is_full and len(reads) < len(watched):
            let_go(reads)
            reads = yield from watched.read_steps(self.reader, self.max_bytes, handler.room())
        return reads

    def _warm(self, reads: list[PartitionRead]) -> Generator[Pause | None, None, None]:
        cold = []
        for some in pieces(reads):
            # One answer has some dozens of slices that the system is asked about.
            cold += [read.slice for read in some if read.slice is not None and read.is_cold]
            yield None
        if cold:
            self.handler.services.metrics.cold_reads.value += 1
            yield Warmth(self.handler.services.workers, cold)

    def _frame_steps(self, reads: list[PartitionRead]) -> Steps[list[Outgoing]]:
        handler = self.handler
        throttle_ms = handler.throttle_ms(self, sum(read.size for read in reads))
        if throttle_ms:
            session_id = self.throttled()
            return [encode_empty(self.version, self.correlation, ErrorCode.NONE, session_id, throttle_ms)]
        for some in pieces(reads):
            for read in some:
                if read.is_copied:
                    handler.load(read)
                    yield
            yield
        reads, session_id, error = yield from self._answer_steps(reads)
        if error != ErrorCode.NONE:
            return [encode_empty(self.version, self.correlation, error, session_id, 0)]
        for some in pieces(reads):
            handler.count(self, some)
            yield
        return (yield from answer_in_steps(self.version, self.correlation, session_id, reads, handler.answer_bytes_max))

    def is_tried_by(self, job: Job | None) -> None:
        """Its first try is part of the work that has parsed its request."""
        self._job = job
        self.watched.on_mark = self._wake

    def tried(self, answer: list[Outgoing] | None) -> None:
        self._job = None
        if answer is not None:
            self.handler.services.replicas.waiters.forget(self)
            self.handler.send(self, answer)
        elif self._again or self._is_late:
            self.go_on(self.steps(), 0)
        elif not self._is_parked:
            self.park()

    def _broke(self, fault: Exception) -> None:
        self.cancel()
        self.handler.end(self.peer, fault)

    # -- its answer

    def _answer_steps(self, reads: list[PartitionRead]) -> Steps[Answer]:
        if self.opens_session and self.session is None:
            self.session = self.handler.open_session(self)
            self._session_epoch = 1
            if self.session is not None:
                self.session.beat = self.reader.beat
        session = self.session
        self.leave()
        if session is None:
            return reads, NO_SESSION, ErrorCode.NONE
        if session.is_closed:
            return [], NO_SESSION, ErrorCode.FETCH_SESSION_ID_NOT_FOUND
        if session.epoch != self._session_epoch:
            # Another request has gone on with the session while this one waited.
            return [], session.id, ErrorCode.INVALID_FETCH_SESSION_EPOCH
        watched, reader = self.watched, self.reader
        for some in pieces(reads):
            for read in some:
                watched.answer(read, reader, moves=not self.is_full)
            yield
        return reads, session.id, ErrorCode.NONE

    def leave(self) -> None:
        """The fetch is over; what it alone has watched is watched no more."""
        watched = self.watched
        if watched.on_mark == self._wake:
            watched.on_mark = None
        if self.session is None:
            self.handler.discard(watched)


class LongFetch:
    """A request that is parsed in steps, until it is known what it asks for."""

    __slots__ = ("_handler", "_job", "began_ms", "correlation", "fetch", "peer", "version")

    def __init__(self, handler: FetchHandler, peer: Peer, version: int, correlation: int) -> None:
        self._handler = handler
        self.peer = peer
        self.version = version
        self.correlation = correlation
        self.began_ms: int | None = handler.services.round.began_ms
        self._job: Job | None = None
        self.fetch: WatchedFetch | None = None

    def go_on(self, steps: InSteps, size: int) -> None:
        self._job = self._handler.services.turns.go_on(steps, self._done, self._broke, size)
        self.peer.answer_later(self._cancel)

    def becomes(self, fetch: WatchedFetch) -> None:
        self.fetch = fetch
        fetch.began_ms = self.began_ms
        fetch.is_tried_by(self._job)

    def _done(self, answer: list[Outgoing] | None) -> None:
        if self.fetch is not None:
            self.fetch.tried(answer)
        else:
            assert answer is not None
            self._handler.send(self, answer)

    def _cancel(self) -> None:
        if self.fetch is not None:
            self.fetch.cancel()
        elif self._job is not None:
            self._handler.services.turns.give_up(self._job)

    def _broke(self, fault: Exception) -> None:
        self._cancel()
        if isinstance(fault, DecodeError):
            self._handler.refuse(self.peer, f"Fetch in version {self.version} cannot be read: {fault}")
        else:
            self._handler.end(self.peer, fault)
