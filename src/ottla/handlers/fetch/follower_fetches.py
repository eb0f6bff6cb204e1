"""What becomes of a follower's Fetch that is recognised (`followers.py`): answered, or parked and looked at again.

serve ──▶ records: answered at the round's end
      └─▶ none: parked ──a change: go_on_with──▶ records: answered; a watermark that moved: in a few milliseconds
                       └─its time: end_with────▶ the watermark that moved
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ottla.handlers.calls.peer import Peer, RequestBuffer
from ottla.handlers.fetch.followers import FollowerMemo
from ottla.handlers.fetch.sessions import Sessions
from ottla.storage.log.reader import Slice

if TYPE_CHECKING:
    from ottla.handlers.fetch.handler import FetchHandler
    from ottla.handlers.fetch.in_steps import WatchedFetch


class FollowerFetches:
    __slots__ = ("_handler", "_services", "_sessions")

    def __init__(self, handler: FetchHandler, sessions: Sessions) -> None:
        self._handler = handler
        self._services = handler.services
        self._sessions = sessions

    def serve(
        self, memo: FollowerMemo, peer: Peer, buffer: RequestBuffer, start: int, end: int, correlation: int
    ) -> bool:
        """Answers a request that is like the last one of its follower, or lets it wait; False, and nothing is noted,
        where the ordinary way is to serve it."""
        found = memo.read(buffer.data, start, end)
        if found is None:
            return False
        wait_ms, session_epoch, asked = found
        records: bytes | None = None
        session, watched, leader = memo.session, memo.watched, memo.leader
        partitions = session.partitions
        if (
            wait_ms <= 0
            or session.is_closed
            or session.epoch != session_epoch
            or watched.within is not partitions
            or watched.stands_at is None
            or watched.is_new
            or partitions.has_other_news(watched)
            or (there := memo.look(asked or watched.asked)) is None
            or (there.size and (records := self._records(there)) is None)
        ):
            return False
        now_ms = self._services.round.began_ms
        self._sessions.go_on(session, now_ms)
        self._services.metrics.total_fetches.value += len(partitions)
        reader, replicas = memo.reader, self._services.replicas
        if asked is not None:
            partitions.goes_on(watched, asked)
            replicas.follower_fetched(
                *(leader, reader.replica_id, asked.fetch_offset, reader.replica_epoch, session.beat),
                log_start=asked.log_start_offset,
            )
        fetch = memo.fetch
        if there.size >= memo.min_bytes:
            assert records is not None
            self._count(memo, there)
            self._handler.answer_at_end(peer, memo.answer(correlation, records))
            return True
        fetch.begin_again(correlation, wait_ms, now_ms)
        self._looked_at(memo, fetch, there)
        fetch.park()
        return True

    def _records(self, there: Slice) -> bytes | None:
        """Where they are to be copied, and the disk gives them."""
        try:
            return there.read() if self._handler.room().copies(there) else None
        except OSError:
            return None

    @staticmethod
    def _looked_at(memo: FollowerMemo, fetch: WatchedFetch, there: Slice) -> None:
        """There are too few records for the follower; a watermark that it does not know is said soon."""
        leader, watched = memo.leader, memo.watched
        is_behind = (
            leader.high_watermark != watched.high_watermark
            or leader.log.places.start_offset != watched.log_start_offset
        )
        memo.session.partitions.looked_at(watched, is_news=is_behind or there.size > 0)
        if is_behind:
            fetch.hasten()

    def go_on_with(self, memo: FollowerMemo, fetch: WatchedFetch) -> bool | None:
        """Something has changed for a follower's request that waits: whether it is answered; None, and nothing is
        noted, where the ordinary way is to look."""
        if (there := self._there(memo, fetch)) is None:
            return None
        if there.size < memo.min_bytes:
            self._looked_at(memo, fetch, there)
            return False
        records = self._records(there)
        if records is None:
            return None
        self._count(memo, there)
        self._finish(memo, fetch, records)
        return True

    def end_with(self, memo: FollowerMemo, fetch: WatchedFetch) -> bool:
        """The time of a follower's request is over: answers a watermark that has moved; False, and nothing is noted,
        where the ordinary way is to answer."""
        there = self._there(memo, fetch)
        if there is None or there.size or memo.leader.high_watermark == memo.watched.high_watermark:
            return False
        self._finish(memo, fetch, b"")
        return True

    def _there(self, memo: FollowerMemo, fetch: WatchedFetch) -> Slice | None:
        """What there is for a request that waits, where it is as it was when it began to."""
        watched, partitions = memo.watched, memo.session.partitions
        if (
            fetch.peer.follower_memo is not memo
            or memo.policy != self._services.policy.number
            or not fetch.is_of_its_session
            or watched.within is not partitions
            or watched.is_new
            or partitions.has_other_news(watched)
        ):
            return None
        return memo.look(watched.asked)

    def _count(self, memo: FollowerMemo, there: Slice) -> None:
        self._handler.copied(there.size)
        traffic = self._services.replicas.traffic
        traffic.replicated_bytes_out += there.size
        if memo.reader.replica_id in memo.leader.adding_replicas:
            traffic.reassigned_bytes_out += there.size

    def _finish(self, memo: FollowerMemo, fetch: WatchedFetch, records: bytes) -> None:
        answer = memo.answer(fetch.correlation, records)
        fetch.leave()
        self._handler.finish(fetch, answer)
