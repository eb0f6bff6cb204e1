"""Fetch (1), versions 4 to 18: batches as they stand in the segments, to consumers and followers.

A fetch that finds fewer bytes than it asked for waits under its partitions until they change or its time is up. The
connection is busy meanwhile: what the client sends behind it waits its turn.
"""

from __future__ import annotations

import traceback
from collections.abc import Sequence
from functools import partial
from typing import Final

from ottla import logs
from ottla.handlers.calls.call import Services
from ottla.handlers.calls.peer import ANSWER_BYTES_MAX, FilePiece, Outgoing, Peer, RequestBuffer
from ottla.handlers.fetch.answer import encode_answer, encode_empty, encode_nonsense, nonsense_in_steps
from ottla.handlers.fetch.asked import let_go, merged
from ottla.handlers.fetch.follower_fetches import FollowerFetches
from ottla.handlers.fetch.followers import remember_follower
from ottla.handlers.fetch.in_steps import READ_AT_ONCE_MAX, REQUEST_BYTES_MAX, InSteps, LongFetch, WatchedFetch
from ottla.handlers.fetch.lanes import FetchLanes
from ottla.handlers.fetch.memo import FetchMemo, remember
from ottla.handlers.fetch.reading import READ_COMMITTED, READ_UNCOMMITTED, CheckedReader, FetchReader, PartitionRead
from ottla.handlers.fetch.room import COPIED_A_ROUND_MAX, COPIED_BYTES_MAX, Room, UntakenAnswers, may_hold_files
from ottla.handlers.fetch.sessions import FINAL_EPOCH, INITIAL_EPOCH, NO_SESSION, Session, Sessions
from ottla.handlers.fetch.settling import FetchSettling
from ottla.handlers.fetch.waiting import FetchWait
from ottla.handlers.fetch.watched import WatchedPartitions
from ottla.handlers.routes import FETCH, HOT
from ottla.metadata import MetadataUpdate
from ottla.model import ErrorCode
from ottla.ports import Disk, Entropy
from ottla.protocol.errors import DecodeError
from ottla.protocol.header import decode_request_header, is_long, request_body_start
from ottla.protocol.hot.fetch import FetchRequest, parse_fetch
from ottla.protocol.hot.fetch_steps import parse_fetch_steps
from ottla.protocol.primitives import Buffer
from ottla.protocol.stepping import DecodingAllowance
from ottla.records.batch import HEADER_SIZE
from ottla.replication.leader import Leader
from ottla.replication.round import Participant
from ottla.security.quotas import Use
from ottla.steps import Steps, at_once
from ottla.storage.errors import CorruptLog, OffsetOutsideLog, StorageFault

log_event = logs.logger("handlers")

_VERSION_MIN, _VERSION_MAX = HOT[FETCH]
_BY_ID: Final = 13


class FetchHandler(Participant):
    def __init__(self, services: Services, entropy: Entropy, untaken: UntakenAnswers, disk: Disk) -> None:
        self.services = services
        self.untaken = untaken
        self._disk = disk
        self._waiters = services.replicas.waiters
        self._sessions = Sessions(entropy, self.discard, services.config.server.fetch_sessions_max)
        self.bytes_max = services.config.server.fetch_bytes_max
        #: Records, and what stands around them.
        self.answer_bytes_max = self.bytes_max + ANSWER_BYTES_MAX
        self._round = services.round
        #: Records that answers have copied since this round began, and whether there is room for it.
        self._copied = 0
        self._has_room = True
        self._metrics = services.metrics
        #: Answers of this round that stand in the buffers of their requests, which the round keeps until its end.
        self._made: list[tuple[Peer, memoryview]] = []
        #: Recognised requests of this round.
        self._alike = 0
        #: Other requests that were answered in this round.
        self._others = 0
        self._quotas = services.quotas
        #: Memos are void once its number is another.
        self._policy = services.policy
        self._lanes = FetchLanes(services.policy)
        self.settle = FetchSettling(services, self._answer, self.end).settle
        self._times = services.metrics.times_of("Fetch")
        #: Of requests that are like the last one of their follower.
        self.followers = FollowerFetches(self, self._sessions)

        services.metadata.listen(self._metadata_changed)

    def begin(self) -> None:
        self._copied = 0
        if (has_room := self.untaken.has_room) is not self._has_room:
            self._has_room = has_room
            self._lanes.may_copy(has_room)

    def serve(self, peer: Peer, buffer: RequestBuffer, start: int, end: int, version: int, correlation: int) -> None:
        memo = peer.fetch_memo
        if (
            memo is None
            or memo.version != version
            or memo.policy != self._policy.number
            or (offset := memo.offset(buffer, start, end)) < 0
            or not self._serve_alike(memo, peer, buffer, offset, correlation)
        ):
            self._serve_any(peer, buffer, start, end, version, correlation)

    def _serve_alike(self, memo: FetchMemo, peer: Peer, buffer: RequestBuffer, offset: int, correlation: int) -> bool:
        """Answers a request that differs from the last one in its offset only, if there is enough to read."""
        leader, cursor, log = memo.leader, memo.cursor, memo.log
        if not leader.active or leader.log is not log or leader.epoch != memo.epoch:
            return False
        try:
            size = cursor.find(offset, memo.max_bytes, leader.high_watermark)
            if size < memo.min_bytes:
                return False
            segment, position = cursor.segment, cursor.position
            file = segment.file
        except (OffsetOutsideLog, CorruptLog, StorageFault, OSError):
            return False
        if segment.sealed and file.is_cold(size, position):
            return False
        head, data, view = memo.head, buffer.data, buffer.view
        if size + memo.room > len(data) or not peer.is_clear or not self._has_room:
            if not may_hold_files(self._disk):
                return False
            before = bytearray(memo.room)
            at = head.fill(before, correlation, leader.high_watermark, log.places.start_offset, size, memo.stable())
            peer.answer(before[:at])
            peer.answer(FilePiece(file, position, size))
            if head.tail:
                peer.answer(head.tail)
        else:
            # The request is read: its buffer takes the answer, and the records come into it straight from the file,
            # with the header behind them, by which the cursor knows its next place.
            at = head.fill(data, correlation, leader.high_watermark, log.places.start_offset, size, memo.stable())
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
            if not memo.has_lane:
                self._lanes.open(peer, memo)
        self._alike += 1
        memo.traffic.bytes_out += size
        return True

    def _serve_any(
        self, peer: Peer, buffer: RequestBuffer, start: int, end: int, version: int, correlation: int
    ) -> None:
        memo = peer.follower_memo
        if (
            memo is not None
            and memo.version == version
            and memo.policy == self._policy.number
            and self.followers.serve(memo, peer, buffer, start, end, correlation)
        ):
            return
        if not _VERSION_MIN <= version <= _VERSION_MAX:
            self.refuse(peer, f"Fetch in version {version} is not served")
            return
        if is_long(end - start):
            self._serve_long(peer, buffer, start, end, version, correlation)
            return
        try:
            body = request_body_start(buffer.data, start, end)
            request = parse_fetch(buffer.data, body, version, end)
        except DecodeError as error:
            self.refuse(peer, f"Fetch in version {version} cannot be read: {error}")
            return
        if request.isolation_level not in (READ_UNCOMMITTED, READ_COMMITTED):
            self._others += 1
            peer.answer(encode_nonsense(version, correlation, request))
            return
        client_id = None
        if not self._quotas.unlimited:
            client_id = decode_request_header(bytes(buffer.view[start:end]))[0].client_id
        wait: FetchWait
        if request.session_epoch == FINAL_EPOCH:
            if request.session_id != NO_SESSION:
                self._sessions.close(request.session_id)
            wait = FetchWait(self, peer, version, correlation, request)
            wait.asked = merged(request)
            wait.client_id = client_id
            self._serve_wait(wait, request, buffer, start, end)
            return
        session = self._session(request, version)
        if isinstance(session, ErrorCode):
            self._refuse_session(peer, version, correlation, request, session, client_id)
            return
        fetch = self._watched(peer, version, correlation, request, session)
        fetch.client_id = client_id
        key = _only_key(request) if fetch.reader.is_follower and session is not None else None
        at_once(self._take_partitions(fetch, request))
        fetch.begin()
        peer.follower_memo = None
        if key is not None and self._policy.remembers:
            memo = remember_follower(fetch, request, key, buffer, start, end, self._policy.number)
            peer.follower_memo = fetch.memo = memo

    def _serve_wait(self, wait: FetchWait, request: FetchRequest, buffer: RequestBuffer, start: int, end: int) -> None:
        """A request without a session."""
        peer, asked = wait.peer, wait.asked
        self._metrics.total_fetches.value += len(asked)
        if (
            self._policy.remembers
            and len(asked) == 1
            and not wait.reader.chooses
            and (self._quotas.unlimited or self._policy.is_free(peer.principal, wait.client_id))
        ):
            leader = wait.reader.leader(asked[0])
            if isinstance(leader, Leader) and leader.fencing(asked[0].current_leader_epoch) == ErrorCode.NONE:
                peer.fetch_memo = memo = remember(
                    buffer, start, end, wait.version, request, leader, self.bytes_max, self._policy.number
                )
                if memo is not None:
                    memo.traffic = self.services.replicas.traffic.of(leader.tp.topic)
        if wait.first_try():
            return
        if request.max_wait_ms <= 0:
            wait.answer_now()
            return
        wait.began_ms = self._round.began_ms
        peer.answer_later(wait.cancel, waits=True)
        deadline_ms = self.services.clock.monotonic_ms() + wait.wait_ms(request.max_wait_ms)
        self._waiters.park(wait, wait.partitions(), deadline_ms)

    # -- requests that know what has changed, and long ones

    def _serve_long(
        self, peer: Peer, buffer: RequestBuffer, start: int, end: int, version: int, correlation: int
    ) -> None:
        frame = buffer.keep(start, end)
        request = LongFetch(self, peer, version, correlation)
        request.go_on(self._long_steps(request, frame), end - start)

    def _long_steps(self, long: LongFetch, frame: Buffer) -> InSteps:
        peer, version, correlation = long.peer, long.version, long.correlation
        body = request_body_start(frame, 0, len(frame))
        request = yield from parse_fetch_steps(frame, body, version, len(frame), DecodingAllowance(REQUEST_BYTES_MAX))
        if request.isolation_level not in (READ_UNCOMMITTED, READ_COMMITTED):
            return (yield from nonsense_in_steps(version, correlation, request, self.answer_bytes_max))
        client_id = None if self._quotas.unlimited else decode_request_header(bytes(frame))[0].client_id
        del frame
        session: Session | ErrorCode | None = None
        if request.session_epoch == FINAL_EPOCH:
            self._sessions.close(request.session_id)
        else:
            session = self._session(request, version)
        if isinstance(session, ErrorCode):
            throttle_ms = self._throttle_ms(peer, client_id, request.replica_id, 0)
            yield from let_go(request)
            return [encode_empty(version, correlation, session, NO_SESSION, throttle_ms)]
        fetch = self._watched(peer, version, correlation, request, session)
        fetch.client_id = client_id
        long.becomes(fetch)
        yield from self._take_partitions(fetch, request)
        return (yield from fetch.steps())

    def _watched(
        self, peer: Peer, version: int, correlation: int, request: FetchRequest, session: Session | None
    ) -> WatchedFetch:
        opens = session is None and request.session_epoch == INITIAL_EPOCH
        return WatchedFetch(self, peer, version, correlation, request, session, opens_session=opens)

    def _take_partitions(self, fetch: WatchedFetch, request: FetchRequest) -> Steps[None]:
        try:
            self._metrics.total_fetches.value += yield from fetch.take_steps(request)
        finally:
            # Also of a client that goes in the middle: its session has what was taken.
            if fetch.session is not None:
                self._count_partitions(fetch, fetch.session)

    def _count_partitions(self, fetch: WatchedFetch, session: Session) -> None:
        if not len(fetch.watched):
            self._sessions.close(session.id)
            fetch.end_session()
        else:
            self._sessions.updated(session)

    def open_session(self, fetch: WatchedFetch) -> Session | None:
        return self._sessions.open(
            fetch.watched,
            uses_ids=fetch.version >= _BY_ID,
            privileged=fetch.reader.replica_id >= 0,
            now_ms=self.services.clock.monotonic_ms(),
        )

    def discard(self, partitions: WatchedPartitions) -> None:
        """Nobody wants to know of them any more."""
        partitions.on_mark = None
        steps = partitions.close_steps()
        if len(partitions) <= READ_AT_ONCE_MAX:
            at_once(steps)
        else:
            self.services.turns.go_on(steps, _forget, _log_fault)

    def _metadata_changed(self, update: MetadataUpdate) -> None:
        """Some may have asked for a topic by its id before anybody here knew that."""
        for topic_id in {state.topic_id for state in update.partitions}:
            self._waiters.topic_is_known(topic_id)
        self._round.soon()

    def answer(self) -> None:
        """Sends the answers that were made in the requests' buffers, one after the other: a client on another processor
        that was woken by the first is still awake for the rest."""
        if self._lanes.taken:
            self._alike += self._lanes.answer()
        if answered := self._alike + self._others:
            took_ms = self.services.clock.monotonic_ms() - self._round.began_ms
            if took_ms:
                self._times.took(took_ms, answered)
            else:
                self._times.counts[0] += answered
            self._others = 0
        if self._alike:
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
                    self.end(peer, fault)

    def failed(self, fault: Exception) -> None:
        made, self._made = self._made, []
        for peer in (*(peer for peer, _ in made), *self._lanes.give_up()):
            peer.abort()

    def reader(self, peer: Peer, request: FetchRequest, version: int) -> FetchReader:
        if self.services.authorizer.allows_all:
            return FetchReader(self.services, request, version, peer.listener_name)
        return CheckedReader(self.services, request, version, peer)

    def room(self) -> Room:
        """For an answer that is read now."""
        if self._copied <= COPIED_A_ROUND_MAX - COPIED_BYTES_MAX and self.untaken.has_room:
            return Room(holds_files=may_hold_files(self._disk))
        return Room(0, holds_files=may_hold_files(self._disk))

    def throttle_ms(self, wait: FetchWait, size: int) -> int:
        return self._throttle_ms(wait.peer, wait.client_id, wait.reader.replica_id, size)

    def _throttle_ms(self, peer: Peer, client_id: str | None, replica_id: int, size: int) -> int:
        """How long a consumer is to hold back after an answer with `size` bytes of records."""
        if self._quotas.unlimited or replica_id >= 0:
            return 0
        throttle = partial(self.services.quotas.throttle_ms, peer.principal, client_id)
        now_ms = self.services.clock.wall_ms()
        return max(throttle(Use.FETCHED_BYTES, size, now_ms), throttle(Use.REQUEST_TIME, 0.0, now_ms))

    def _session(self, request: FetchRequest, version: int) -> Session | ErrorCode | None:
        """The session that the request goes on with; None where it wants to open one."""
        if request.session_epoch == INITIAL_EPOCH:
            self._sessions.close(request.session_id)
            return None
        now_ms = self.services.clock.monotonic_ms()
        return self._sessions.resume(
            request.session_id, request.session_epoch, uses_ids=version >= _BY_ID, now_ms=now_ms
        )

    def _refuse_session(
        self, peer: Peer, version: int, correlation: int, request: FetchRequest, error: ErrorCode, client_id: str | None
    ) -> None:
        throttle_ms = self._throttle_ms(peer, client_id, request.replica_id, 0)
        self._others += 1
        peer.answer(encode_empty(version, correlation, error, NO_SESSION, throttle_ms))

    @staticmethod
    def end(peer: Peer, fault: Exception) -> None:
        log_event.error("a request failed", api=FETCH, error="".join(traceback.format_exception(fault)))
        peer.abort()

    def _answer(self, wait: FetchWait, reads: list[PartitionRead]) -> None:
        if not self._quotas.unlimited:
            throttle_ms = self.throttle_ms(wait, sum(read.size for read in reads))
            if throttle_ms:
                # Nothing is sent to a client that has had too much: it comes again for it, as with Kafka.
                session_id = wait.throttled()
                empty = encode_empty(wait.version, wait.correlation, ErrorCode.NONE, session_id, throttle_ms)
                self.send(wait, (empty,))
                return
        for read in reads:
            if read.is_copied:
                self.load(read)
        reads, session_id, error = wait.answer(reads)
        if error != ErrorCode.NONE:
            self.send(wait, (encode_empty(wait.version, wait.correlation, error, session_id, 0),))
            return
        self.count(wait, reads)
        self.send(wait, encode_answer(wait.version, wait.correlation, session_id, reads))

    def copied(self, size: int) -> None:
        """So many bytes of records were copied into an answer of this round."""
        self._copied += size

    def answer_at_end(self, peer: Peer, answer: bytes) -> None:
        """Of a request of this round that is served: its whole answer."""
        self._others += 1
        if peer.is_clear:
            self._made.append((peer, memoryview(answer)))
        else:
            peer.answer(answer)

    def finish(self, wait: FetchWait, answer: bytes) -> None:
        """The whole answer of a request that has waited."""
        now_ms = self.services.clock.monotonic_ms()
        if wait.began_ms is not None:
            self._times.took(now_ms - wait.began_ms, 1)
        wait.peer.finish_with(answer, now_ms)

    def load(self, read: PartitionRead) -> None:
        read.load()
        self._copied += len(read.records)

    def count(self, wait: FetchWait, reads: Sequence[PartitionRead]) -> None:
        """For metrics."""
        self._metrics.failed_fetches.value += sum(read.error != ErrorCode.NONE for read in reads)
        traffic = self.services.replicas.traffic
        if not wait.reader.is_follower:
            for read in reads:
                if read.leader is not None:
                    traffic.of(read.leader.tp.topic).bytes_out += read.size
            return
        wait.reader.answered(reads)
        for read in reads:
            traffic.replicated_bytes_out += read.size
            leader = read.leader
            if not read.size or not isinstance(leader, Leader):
                continue
            if wait.reader.replica_id in leader.adding_replicas:
                traffic.reassigned_bytes_out += read.size
            if leader.log.config.leader_throttled_replicas:
                self.services.replicas.throttle.sent(leader, read.size)

    def send(self, wait: FetchWait | LongFetch, answer: Sequence[Outgoing]) -> None:
        """Hands a whole answer over, and lets the connection go on."""
        peer = wait.peer
        for piece in answer:
            peer.answer(piece)
        if wait.began_ms is None:
            self._others += 1
        else:
            self._times.took(self.services.clock.monotonic_ms() - wait.began_ms, 1)
            peer.finish()

    @staticmethod
    def refuse(peer: Peer, reason: str) -> None:
        log_event.warning_limited("closing a connection", peer=peer.host, reason=reason)
        peer.refuse()


def _only_key(request: FetchRequest) -> tuple[str | bytes, int] | None:
    """The only partition that a request names."""
    if len(request.topics) != 1 or len(request.topics[0][1]) != 1 or request.forgotten or request.rack_id:
        return None
    topic, ((partition, *_),) = request.topics[0]
    return topic, partition


def _forget(_: object) -> None: ...


def _log_fault(fault: Exception) -> None:
    log_event.error("a fetch session could not be ended", error="".join(traceback.format_exception(fault)))
