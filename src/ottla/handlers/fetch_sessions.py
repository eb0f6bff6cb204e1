"""Fetch sessions (KIP-227): a client names its partitions once, and then only what changes.

A full fetch (epoch 0) may open a session; each following one carries the next epoch and the changes, and is answered
with those partitions only that have something new. librdkafka never uses them, Java's clients and followers always do.
The cache is bounded: a new session takes the place of one that was idle long enough, or is not opened.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from ottla.model import ErrorCode
from ottla.ports import Entropy

#: The epoch of a request that opens a session, and of one that wants none.
INITIAL_EPOCH: Final = 0
FINAL_EPOCH: Final = -1
NO_SESSION: Final = 0
#: Kafka's `max.incremental.fetch.session.cache.slots`.
SESSIONS_MAX: Final = 1000
#: A session may be put out for another when it was idle for this long, as in Kafka.
EVICTION_IDLE_MS: Final = 120_000

#: Topic name or id as the client wrote it, and partition.
Key = tuple[str | bytes, int]


class Asked(NamedTuple):
    """One partition of a fetch, as the client asks for it."""

    topic: str | bytes
    partition: int
    current_leader_epoch: int
    fetch_offset: int
    last_fetched_epoch: int
    log_start_offset: int
    max_bytes: int


class Told(NamedTuple):
    """What the client last heard of a partition: an answer that says the same needs not be sent."""

    high_watermark: int
    log_start_offset: int
    error: int


class Session:
    __slots__ = ("epoch", "id", "last_used_ms", "partitions", "privileged", "told", "uses_ids")

    def __init__(self, session_id: int, asked: list[Asked], *, uses_ids: bool, privileged: bool, now_ms: int) -> None:
        self.id = session_id
        #: The epoch that the next request must carry.
        self.epoch = 1
        self.uses_ids = uses_ids
        #: A follower's: it is not put out for a consumer's.
        self.privileged = privileged
        self.partitions: dict[Key, Asked] = {(a.topic, a.partition): a for a in asked}
        self.told: dict[Key, Told] = {}
        self.last_used_ms = now_ms

    def update(self, changed: list[Asked], forgotten: list[Key]) -> None:
        for key in forgotten:
            self.partitions.pop(key, None)
            self.told.pop(key, None)
        for asked in changed:
            key = (asked.topic, asked.partition)
            # One that moved goes to the end, so that the first in the list cannot starve the others.
            self.partitions.pop(key, None)
            self.partitions[key] = asked

    def is_news(self, key: Key, told: Told, *, has_records: bool) -> bool:
        """Whether an answer must carry this partition; notes it as told if so."""
        if not has_records and told.error == ErrorCode.NONE and self.told.get(key) == told:
            return False
        self.told[key] = told
        return True


class Sessions:
    def __init__(self, entropy: Entropy, sessions_max: int = SESSIONS_MAX) -> None:
        self._entropy = entropy
        self._sessions_max = sessions_max
        #: In the order of their last use.
        self._sessions: dict[int, Session] = {}

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
        session.epoch = 1 if session.epoch == 2**31 - 1 else session.epoch + 1
        session.last_used_ms = now_ms
        self._sessions[session_id] = self._sessions.pop(session_id)
        return session

    def open(self, asked: list[Asked], *, uses_ids: bool, privileged: bool, now_ms: int) -> Session | None:
        """A new session, or None where the cache is full of ones in use."""
        if len(self._sessions) >= self._sessions_max and not self._evict(privileged=privileged, now_ms=now_ms):
            return None
        session_id = NO_SESSION
        while session_id == NO_SESSION or session_id in self._sessions:
            session_id = 1 + self._entropy.below(2**31 - 1)
        session = Session(session_id, asked, uses_ids=uses_ids, privileged=privileged, now_ms=now_ms)
        self._sessions[session_id] = session
        return session

    def _evict(self, *, privileged: bool, now_ms: int) -> bool:
        oldest = next((s for s in self._sessions.values() if not s.privileged or privileged), None)
        if oldest is None or (
            now_ms - oldest.last_used_ms < EVICTION_IDLE_MS and not (privileged and not oldest.privileged)
        ):
            return False
        del self._sessions[oldest.id]
        return True

    def close(self, session_id: int) -> None:
        self._sessions.pop(session_id, None)
