"""Fetch (1), versions 4 to 18: batches as they stand in the segments, to consumers and followers.

A fetch that finds fewer bytes than it asked for waits under its partitions until they change or its time is up. The
connection is busy meanwhile: what the client sends behind it waits its turn.
"""

from __future__ import annotations

import traceback
from functools import partial
from typing import Final

from ottla import logs
from ottla.handlers.call import Services
from ottla.handlers.cold_reads import Warming
from ottla.handlers.fetch_answer import encode_answer, encode_empty, encode_nonsense
from ottla.handlers.fetch_checked import CheckedReader
from ottla.handlers.fetch_memo import Memo, remember
from ottla.handlers.fetch_read import READ_COMMITTED, READ_UNCOMMITTED, PartitionRead, Reader
from ottla.handlers.fetch_sessions import FINAL_EPOCH, INITIAL_EPOCH, NO_SESSION, Asked, Session, Sessions, Told
from ottla.handlers.peer import FilePiece, Peer, Received
from ottla.handlers.routes import FETCH, HOT
from ottla.model import ErrorCode, TopicPartition
from ottla.ports import Entropy
from ottla.protocol.errors import DecodeError
from ottla.protocol.header import decode_request_header, request_body_start
from ottla.protocol.hot.fetch import FetchRequest, parse_fetch
from ottla.records.batch import HEADER_SIZE
from ottla.replication.leader import Leader
from ottla.replication.round import Participant
from ottla.security.quotas import Use
from ottla.storage.errors import CorruptLog, OffsetOutOfRange, StorageFault

log_event = logs.logger("handlers")

_VERSION_MIN, _VERSION_MAX = HOT[FETCH]
_BY_ID: Final = 13


class FetchWait:
    """A fetch from its frame to its answer."""

    __slots__ = (
        "asked",
        "began_ms",
        "client_id",
        "correlation",
        "handler",
        "max_bytes",
        "min_bytes",
        "peer",
        "reader",
        "session",
        "version",
    )

    def __init__(
        self,
        handler: FetchHandler,
        peer: Peer,
        version: int,
        correlation: int,
        request: FetchRequest,
        asked: list[Asked],
        session: Session | None,
        bytes_max: int,
    ) -> None:
        self.handler = handler
        self.peer = peer
        self.version = version
        self.correlation = correlation
        self.min_bytes = request.min_bytes
        self.max_bytes = min(request.max_bytes, bytes_max)
        self.asked = asked
        self.session = session
        #: When its round began, where that has left it waiting.
        self.began_ms: int | None = None
        #: Known where quotas ask for it.
        self.client_id: str | None = None
        self.reader = handler.reader(peer, request)

    def partitions(self) -> list[TopicPartition]:
        return [read.tp for one in self.asked if isinstance(read := self.reader.leader(one), Leader)]

    def first_try(self) -> bool:
        """Answers at once where there is enough, an error to tell, or nothing to wait for."""
        reads = self.reader.read_all(self.asked, self.max_bytes)
        size = sum(read.size for read in reads)
        if size >= self.min_bytes or not self.asked or any(read.error or read.diverging for read in reads):
            self.handler.settle(self, reads)
            return True
        return False

    def try_complete(self, now_ms: int) -> bool:
        if not self._has_news():
            return False
        return self.first_try()

    def _has_news(self) -> bool:
        """A cheap look before all partitions are read: a thousand of them cost a millisecond to read."""
        reader = self.reader
        for one in self.asked:
            leader = reader.leader(one)
            if not isinstance(leader, Leader) or reader.limit(leader) > one.fetch_offset:
                return True
        return False

    def failed(self, fault: Exception) -> None:
        self.peer.abort()

    def expire(self, now_ms: int) -> None:
        self.handler.settle(self, self.reader.read_all(self.asked, self.max_bytes))


class FetchHandler(Participant):
    def __init__(self, services: Services, entropy: Entropy) -> None:
        self.services = services
        self._waiters = services.replicas.waiters
        self._sessions = Sessions(entropy, services.config.server.fetch_sessions_max)
        self._bytes_max = services.config.server.fetch_bytes_max
        self._round = services.round
        self._metrics = services.metrics
        #: Answers of this round that stand in the buffers of their requests, which the round keeps until its end.
        self._made: list[tuple[Peer, memoryview]] = []
        #: Recognised requests of this round.
        self._alike = 0
        #: Other requests that were answered in this round.
        self._others = 0
        #: Whether requests may be recognised: with ACLs or quotas each one is to be asked about.
        self._unlimited = services.quotas.unlimited
        self._remembers = services.authorizer.allows_all and self._unlimited
        self._requests, self._times = services.metrics.of_api("Fetch")

    def serve(self, peer: Peer, buffer: Received, start: int, end: int, version: int, correlation: int) -> None:
        memo = peer.fetch_memo
        if (
            memo is None
            or memo.version != version
            or (offset := memo.offset(buffer, start, end)) < 0
            or not self._serve_alike(memo, peer, buffer, offset, correlation)
        ):
            self._serve_any(peer, buffer, start, end, version, correlation)

    def _serve_alike(self, memo: Memo, peer: Peer, buffer: Received, offset: int, correlation: int) -> bool:
        """Answers a request that differs from the last one in its offset only, if there is enough to read."""
        leader, cursor, log = memo.leader, memo.cursor, memo.log
        if not leader.active or leader.log is not log:
            return False
        try:
            size = cursor.find(offset, memo.max_bytes, leader.high_watermark)
            if size < memo.min_bytes:
                return False
            segment, position = cursor.segment, cursor.position
            file = segment.file
        except (OffsetOutOfRange, CorruptLog, StorageFault, OSError):
            return False
        if segment.sealed and file.is_cold(size, position):
            return False
        head, data, view = memo.head, buffer.data, buffer.view
        if size + head.room > len(data) or not peer.is_clear:
            before = bytearray(head.room)
            at = head.fill(before, correlation, leader.high_watermark, log.start_offset, size)
            peer.answer(before[:at])
            peer.answer(FilePiece(file, position, size))
            if head.tail:
                peer.answer(head.tail)
        else:
            # The request is read: its buffer takes the answer, and the records come into it straight from the file,
            # with the header behind them, by which the cursor knows its next place.
            at = head.fill(data, correlation, leader.high_watermark, log.start_offset, size)
            end = at + size
            try:
                got = file.read_into(view[at : end + HEADER_SIZE], position)
            except OSError:
                got = 0
            if got < size:
                peer.abort()  # the request is overwritten, so the client is to ask again
                return True
            cursor.has_read(data, at, got)
            if tail := head.tail:
                data[end : end + len(tail)] = tail
                end += len(tail)
            self._made.append((peer, view[:end]))
        self._alike += 1
        memo.traffic.bytes_out += size
        return True

    def _serve_any(self, peer: Peer, buffer: Received, start: int, end: int, version: int, correlation: int) -> None:
        if not _VERSION_MIN <= version <= _VERSION_MAX:
            self._refuse(peer, f"Fetch in version {version} is not served")
            return
        try:
            body = request_body_start(buffer.data, start, end)
            request = parse_fetch(buffer.data, body, version, end)
        except DecodeError as error:
            self._refuse(peer, f"Fetch in version {version} cannot be read: {error}")
            return
        self._requests.value += 1
        if request.isolation_level not in (READ_UNCOMMITTED, READ_COMMITTED):
            self._others += 1
            peer.answer(encode_nonsense(version, correlation, request))
            return
        session = self._session(request, version)
        client_id = None
        if not self._unlimited:
            client_id = decode_request_header(bytes(buffer.view[start:end]))[0].client_id
        if isinstance(session, ErrorCode):
            throttle_ms = self._throttle_ms(peer, client_id, request.replica_id, 0)
            self._others += 1
            peer.answer(encode_empty(version, correlation, session, request.session_id, throttle_ms))
            return
        asked = _asked(request) if session is None else list(session.partitions.values())
        self._metrics.total_fetches.value += len(asked)
        wait = FetchWait(self, peer, version, correlation, request, asked, session, self._bytes_max)
        wait.client_id = client_id
        if request.replica_id >= 0:
            self._note_follower(wait, request.replica_id)
        if self._remembers and len(asked) == 1:
            leader = wait.reader.leader(asked[0])
            if isinstance(leader, Leader) and leader.fencing(asked[0].current_leader_epoch) == ErrorCode.NONE:
                peer.fetch_memo = memo = remember(buffer, start, end, version, request, leader, self._bytes_max)
                if memo is not None:
                    memo.traffic = self.services.replicas.traffic.of(leader.tp.topic)
        if wait.first_try():
            return
        if request.max_wait_ms <= 0:
            self.settle(wait, wait.reader.read_all(asked, wait.max_bytes))
            return
        wait.began_ms = self._round.began_ms
        peer.answer_later(partial(self._waiters.forget, wait))
        self._waiters.park(wait, wait.partitions(), self.services.clock.monotonic_ms() + request.max_wait_ms)

    def answer(self) -> None:
        """Sends the answers that were made in the requests' buffers, one after the other: a client on another processor
        that was woken by the first is still awake for the rest."""
        if self._alike or self._others:
            took_ms = self.services.clock.monotonic_ms() - self._round.began_ms
            self._times.value += took_ms * (self._alike + self._others)
            self._others = 0
        if self._alike:
            self._requests.value += self._alike
            self._metrics.total_fetches.value += self._alike
            self._alike = 0
        made = self._made
        if made:
            self._made = []
            for peer, view in made:
                if peer.closed:
                    continue
                try:
                    peer.answer_now(view)
                except Exception as fault:
                    self._end(peer, fault)

    def failed(self, fault: Exception) -> None:
        made, self._made = self._made, []
        for peer, _ in made:
            peer.abort()

    def reader(self, peer: Peer, request: FetchRequest) -> Reader:
        if self.services.authorizer.allows_all:
            return Reader(self.services, request.replica_id, request.isolation_level)
        return CheckedReader(self.services, request.replica_id, request.isolation_level, peer)

    def _throttle_ms(self, peer: Peer, client_id: str | None, replica_id: int, size: int) -> int:
        """How long a consumer is to hold back after an answer with `size` bytes of records."""
        if self._unlimited or replica_id >= 0:
            return 0
        throttle = partial(self.services.quotas.throttle_ms, peer.principal, client_id)
        now_ms = self.services.clock.wall_ms()
        return max(throttle(Use.FETCHED_BYTES, size, now_ms), throttle(Use.REQUEST_TIME, 0.0, now_ms))

    def _session(self, request: FetchRequest, version: int) -> Session | ErrorCode | None:
        """The session that the request speaks in; None for a full fetch without one."""
        session_id, epoch = request.session_id, request.session_epoch
        now_ms = self.services.clock.monotonic_ms()
        if epoch in (INITIAL_EPOCH, FINAL_EPOCH):
            if session_id != NO_SESSION:
                self._sessions.close(session_id)
            if epoch == FINAL_EPOCH:
                return None
            privileged = request.replica_id >= 0
            return self._sessions.open(
                _asked(request), uses_ids=version >= _BY_ID, privileged=privileged, now_ms=now_ms
            )
        session = self._sessions.resume(session_id, epoch, uses_ids=version >= _BY_ID, now_ms=now_ms)
        if isinstance(session, Session):
            forgotten = [(topic, partition) for topic, partitions in request.forgotten for partition in partitions]
            session.update(_asked(request), forgotten)
        return session

    def _note_follower(self, wait: FetchWait, replica_id: int) -> None:
        """What a follower asks for tells what it has, which may commit what others wait for."""
        for one in wait.asked:
            leader = wait.reader.leader(one)
            if isinstance(leader, Leader) and leader.follower_fetched(replica_id, one.fetch_offset):
                self._waiters.changed(leader.tp)

    def settle(self, wait: FetchWait, reads: list[PartitionRead]) -> None:
        """Answers, and lets the connection go on; what is not in memory is brought there by a worker first."""
        cold = [read.slice for read in reads if read.slice is not None and read.is_cold]
        if not cold:
            self._answer(wait, reads)
            return
        peer = wait.peer
        self._metrics.cold_reads.value += 1
        if wait.began_ms is None:
            wait.began_ms = self._round.began_ms
        peer.answer_later(None)
        warming = Warming(cold)
        future = self.services.workers.thread(warming.run)

        def done(_: object) -> None:
            try:
                if not peer.closed:
                    self._answer_warm(wait, reads)
            finally:
                # Not before: of a log that was deleted or has moved meanwhile nobody else keeps the files open.
                warming.release()

        future.add_done_callback(done)

    def _answer_warm(self, wait: FetchWait, reads: list[PartitionRead]) -> None:
        try:
            self._answer(wait, reads)
        except Exception as fault:
            self._end(wait.peer, fault)

    @staticmethod
    def _end(peer: Peer, fault: Exception) -> None:
        log_event.error("a request failed", api=FETCH, error="".join(traceback.format_exception(fault)))
        peer.abort()

    def _answer(self, wait: FetchWait, reads: list[PartitionRead]) -> None:
        session = wait.session
        if wait.began_ms is None:
            self._others += 1
        else:
            self._times.value += self.services.clock.monotonic_ms() - wait.began_ms
        if not self._unlimited:
            size = sum(read.size for read in reads)
            throttle_ms = self._throttle_ms(wait.peer, wait.client_id, wait.reader.replica_id, size)
            if throttle_ms:
                self._answer_throttled(wait, throttle_ms)
                return
        for read in reads:
            read.load()
        session_id = NO_SESSION
        if session is not None:
            session_id = session.id
            # The first answer of a session tells everything, the following ones only what is new.
            news = [read for read in reads if self._is_news(session, read)]
            if session.epoch > 1:
                reads = news
        self._metrics.failed_fetches.value += sum(read.error != ErrorCode.NONE for read in reads)
        if wait.reader.replica_id < 0:
            traffic = self.services.replicas.traffic
            for read in reads:
                if read.leader is not None:
                    traffic.of(read.leader.tp.topic).bytes_out += read.size
        for piece in encode_answer(wait.version, wait.correlation, session_id, reads):
            wait.peer.answer(piece)
        if wait.began_ms is not None:
            wait.peer.finish()

    def _answer_throttled(self, wait: FetchWait, throttle_ms: int) -> None:
        """Nothing is sent to one who has had too much: it comes again for it, as with Kafka."""
        session_id = NO_SESSION
        if wait.session is not None and wait.session.epoch > 1:
            session_id = wait.session.id
        elif wait.session is not None:
            # It would have begun with this answer, which tells nothing.
            self._sessions.close(wait.session.id)
        wait.peer.answer(encode_empty(wait.version, wait.correlation, ErrorCode.NONE, session_id, throttle_ms))
        if wait.began_ms is not None:
            wait.peer.finish()

    @staticmethod
    def _is_news(session: Session, read: PartitionRead) -> bool:
        told = Told(read.high_watermark, read.log_start_offset, read.error)
        has_records = bool(read.size) or read.diverging is not None
        return session.is_news((read.asked.topic, read.asked.partition), told, has_records=has_records)

    @staticmethod
    def _refuse(peer: Peer, reason: str) -> None:
        log_event.warning_limited("closing a connection", peer=peer.host, reason=reason)
        peer.abort()


def _asked(request: FetchRequest) -> list[Asked]:
    return [Asked(topic, *partition) for topic, partitions in request.topics for partition in partitions]
