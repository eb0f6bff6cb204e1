"""Fetch sessions (KIP-227): a client names its partitions once, and then only what changes.

A full fetch (epoch 0) may open a session; each following one carries the next epoch and the changes, and is answered
with those partitions only that have something new. librdkafka never uses them, Java's clients and followers always do.
The cache is bounded, by sessions and by their partitions: a new session takes the place of one that was idle long
enough, or is not opened. Which partitions have something new is for `fetch_watched` to know.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from ottla.handlers.fetch.watched import WatchedPartitions
from ottla.model import ErrorCode
from ottla.ports import Entropy
from ottla.replication.isr_progress import Beat

#: The epoch of a request that opens a session, and of one that wants none.
INITIAL_EPOCH: Final = 0
FINAL_EPOCH: Final = -1
NO_SESSION: Final = 0
#: Kafka's `max.incremental.fetch.session.cache.slots`.
SESSIONS_MAX: Final = 1000
#: A session may be put out for another when it was idle for this long, as in Kafka.
EVICTION_IDLE_MS: Final = 120_000

#: Partitions of all sessions together, of half a kilobyte each: two hundred consumers with five hundred partitions, or
#: the followers of a hundred thousand. A client that finds no room is served without a session.
PARTITIONS_MAX: Final = 100_000


class Session:
    __slots__ = ("beat", "counted", "epoch", "id", "is_closed", "last_used_ms", "partitions", "privileged", "uses_ids")

    def __init__(
        self, session_id: int, partitions: WatchedPartitions, *, uses_ids: bool, privileged: bool, now_ms: int
    ) -> None:
        self.id = session_id
        #: The epoch that the next request must carry.
        self.epoch = 1
        self.uses_ids = uses_ids
        #: A follower's: it is not put out for a consumer's.
        self.privileged = privileged
        self.partitions = partitions
        #: How many of them stand in the sum of all sessions.
        self.counted = len(partitions)
        self.last_used_ms = now_ms
        #: What all partitions of a follower's session share: with each request it asks for all of them.
        self.beat: Beat | None = None
        self.is_closed = False


class Sessions:
    def __init__(
        self,
        entropy: Entropy,
        discard: Callable[[WatchedPartitions], None],
        sessions_max: int = SESSIONS_MAX,
        partitions_max: int = PARTITIONS_MAX,
    ) -> None:
        self._entropy = entropy
        #: Given the partitions of each session that ends.
        self._discard = discard
        self._sessions_max = sessions_max
        self._partitions_max = partitions_max
        #: In the order of their last use.
        self._sessions: dict[int, Session] = {}
        #: Of all sessions together.
        self.partition_count = 0

    def __len__(self) -> int:
        return len(self._sessions)

    def resume(self, session_id: int, epoch: int, *, uses_ids: bool, now_ms: int) -> Session | ErrorCode:
        """The session of an incremental fetch, if its epoch is the expected one."""
        session = self._sessions.get(session_id)
        if session is None:
            return ErrorCode.FETCH_SESSION_ID_NOT_FOUND
        if epoch != session.epoch:
            return ErrorCode.INVALID_FETCH_SESSION_EPOCH
        if uses_ids != session.uses_ids:
            return ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR
        self.go_on(session, now_ms)
        return session

    def go_on(self, session: Session, now_ms: int) -> None:
        """It is asked with the epoch that is expected."""
        session.epoch = 1 if session.epoch == 2**31 - 1 else session.epoch + 1
        session.last_used_ms = now_ms
        if session.beat is not None:
            session.beat.ms = now_ms
        self._sessions[session.id] = self._sessions.pop(session.id)

    def updated(self, session: Session) -> bool:
        """Counts the session's partitions anew. False where there is no room for them: the session has ended, and its
        client is to send a full request."""
        more = len(session.partitions) - session.counted
        if session.is_closed or (more > 0 and self.partition_count + more > self._partitions_max):
            self.close(session.id)
            return False
        session.counted += more
        self.partition_count += more
        return True

    def open(self, partitions: WatchedPartitions, *, uses_ids: bool, privileged: bool, now_ms: int) -> Session | None:
        """A new session, or None where the cache is full of ones in use."""
        if len(partitions) > self._partitions_max:
            return None
        while (
            len(self._sessions) >= self._sessions_max or self.partition_count + len(partitions) > self._partitions_max
        ):
            if not self._evict(privileged=privileged, now_ms=now_ms):
                return None
        session_id = NO_SESSION
        while session_id == NO_SESSION or session_id in self._sessions:
            session_id = 1 + self._entropy.below(2**31 - 1)
        session = Session(session_id, partitions, uses_ids=uses_ids, privileged=privileged, now_ms=now_ms)
        self._sessions[session_id] = session
        self.partition_count += session.counted
        return session

    def _evict(self, *, privileged: bool, now_ms: int) -> bool:
        oldest = next((s for s in self._sessions.values() if not s.privileged or privileged), None)
        if oldest is None or (
            now_ms - oldest.last_used_ms < EVICTION_IDLE_MS and not (privileged and not oldest.privileged)
        ):
            return False
        self.close(oldest.id)
        return True

    def close(self, session_id: int) -> None:
        session = self._sessions.pop(session_id, None)
        if session is not None:
            session.is_closed = True
            self.partition_count -= session.counted
            self._discard(session.partitions)
