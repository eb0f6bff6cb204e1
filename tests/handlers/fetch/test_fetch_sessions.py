"""Fetch sessions as KIP-227 has them."""

from __future__ import annotations

import random

from ottla.handlers.fetch.asked import AskedPartition
from ottla.handlers.fetch.sessions import EVICTION_IDLE_MS, Session, Sessions
from ottla.handlers.fetch.watched import WatchedPartitions
from ottla.model import ErrorCode
from ottla.replication.waiters import Waiters


class Dice:
    def __init__(self, seed: int = 1) -> None:
        self._random = random.Random(seed)

    def token(self, size: int) -> bytes:
        return self._random.randbytes(size)

    def below(self, bound: int) -> int:
        return self._random.randrange(bound)


def asked(partition: int, offset: int = 0) -> AskedPartition:
    return AskedPartition("t", partition, -1, offset, -1, -1, 1000)


def watched(count: int = 2) -> WatchedPartitions:
    partitions = WatchedPartitions(Waiters())
    for partition in range(count):
        partitions.take(asked(partition))
    return partitions


class Cache(Sessions):
    """Remembers what its sessions gave back."""

    def __init__(self, **options: int) -> None:
        self.discarded: list[WatchedPartitions] = []
        super().__init__(Dice(), self.discarded.append, **options)


def opened(sessions: Sessions, now_ms: int = 0, *, privileged: bool = False) -> Session:
    session = sessions.open(watched(), uses_ids=False, privileged=privileged, now_ms=now_ms)
    assert session is not None
    return session


def test_epochs_follow_one_another() -> None:
    sessions = Cache()
    session = opened(sessions)
    assert sessions.resume(session.id, 1, uses_ids=False, now_ms=1) is session
    assert sessions.resume(session.id, 2, uses_ids=False, now_ms=2) is session
    assert sessions.resume(session.id, 2, uses_ids=False, now_ms=3) == ErrorCode.INVALID_FETCH_SESSION_EPOCH


def test_an_unknown_session_is_not_found() -> None:
    assert Cache().resume(7, 1, uses_ids=False, now_ms=0) == ErrorCode.FETCH_SESSION_ID_NOT_FOUND


def test_a_closed_session_is_not_found() -> None:
    sessions = Cache()
    session = opened(sessions)
    sessions.close(session.id)
    assert sessions.resume(session.id, 1, uses_ids=False, now_ms=0) == ErrorCode.FETCH_SESSION_ID_NOT_FOUND


def test_ids_in_a_session_of_names_are_refused() -> None:
    sessions = Cache()
    session = opened(sessions)
    assert sessions.resume(session.id, 1, uses_ids=True, now_ms=0) == ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR


def test_a_full_cache_opens_none_until_one_was_idle_for_long() -> None:
    sessions = Cache(sessions_max=2)
    first = opened(sessions, 0)
    opened(sessions, 0)
    assert sessions.open(watched(), uses_ids=False, privileged=False, now_ms=10) is None
    assert sessions.open(watched(), uses_ids=False, privileged=False, now_ms=EVICTION_IDLE_MS) is not None
    assert sessions.resume(first.id, 1, uses_ids=False, now_ms=0) == ErrorCode.FETCH_SESSION_ID_NOT_FOUND
    assert len(sessions) == 2


def test_a_follower_takes_a_consumers_place_and_never_the_other_way() -> None:
    sessions = Cache(sessions_max=1)
    opened(sessions, 0)
    follower = opened(sessions, 1, privileged=True)
    assert sessions.open(watched(), uses_ids=False, privileged=False, now_ms=10 * EVICTION_IDLE_MS) is None
    assert sessions.resume(follower.id, 1, uses_ids=False, now_ms=2) is follower


def test_the_partitions_of_all_sessions_have_a_bound() -> None:
    sessions = Cache(partitions_max=5)
    first = opened(sessions, 0)
    opened(sessions, 0)
    assert sessions.open(watched(2), uses_ids=False, privileged=False, now_ms=10) is None
    assert sessions.open(watched(6), uses_ids=False, privileged=False, now_ms=EVICTION_IDLE_MS) is None, "nobody leaves"
    assert len(sessions) == 2
    assert sessions.open(watched(2), uses_ids=False, privileged=False, now_ms=EVICTION_IDLE_MS) is not None
    assert sessions.discarded == [first.partitions]
    assert sessions.partition_count == 4


def test_a_session_that_grows_beyond_the_bound_ends() -> None:
    sessions = Cache(partitions_max=5)
    session, other = opened(sessions), opened(sessions)
    session.partitions.take(asked(2))
    assert sessions.updated(session)
    assert sessions.partition_count == 5
    other.partitions.take(asked(2))
    assert not sessions.updated(other)
    assert sessions.discarded == [other.partitions]
    assert sessions.resume(other.id, 1, uses_ids=False, now_ms=0) == ErrorCode.FETCH_SESSION_ID_NOT_FOUND
    session.partitions.forget(("t", 0))
    assert sessions.updated(session)
    assert sessions.partition_count == 2
