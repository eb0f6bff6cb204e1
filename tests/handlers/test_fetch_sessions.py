"""Fetch sessions as KIP-227 has them."""

from __future__ import annotations

import random

from ottla.handlers.fetch_sessions import EVICTION_IDLE_MS, Asked, Session, Sessions, Told
from ottla.model import ErrorCode


class Dice:
    def __init__(self, seed: int = 1) -> None:
        self._random = random.Random(seed)

    def token(self, size: int) -> bytes:
        return self._random.randbytes(size)

    def below(self, bound: int) -> int:
        return self._random.randrange(bound)


def asked(partition: int, offset: int = 0) -> Asked:
    return Asked("t", partition, -1, offset, -1, -1, 1000)


def opened(sessions: Sessions, now_ms: int = 0, *, privileged: bool = False) -> Session:
    session = sessions.open([asked(0), asked(1)], uses_ids=False, privileged=privileged, now_ms=now_ms)
    assert session is not None
    return session


def test_epochs_follow_one_another() -> None:
    sessions = Sessions(Dice())
    session = opened(sessions)
    assert sessions.resume(session.id, 1, uses_ids=False, now_ms=1) is session
    assert sessions.resume(session.id, 2, uses_ids=False, now_ms=2) is session
    assert sessions.resume(session.id, 2, uses_ids=False, now_ms=3) == ErrorCode.INVALID_FETCH_SESSION_EPOCH


def test_an_unknown_session_is_not_found() -> None:
    assert Sessions(Dice()).resume(7, 1, uses_ids=False, now_ms=0) == ErrorCode.FETCH_SESSION_ID_NOT_FOUND


def test_a_closed_session_is_not_found() -> None:
    sessions = Sessions(Dice())
    session = opened(sessions)
    sessions.close(session.id)
    assert sessions.resume(session.id, 1, uses_ids=False, now_ms=0) == ErrorCode.FETCH_SESSION_ID_NOT_FOUND


def test_ids_in_a_session_of_names_are_refused() -> None:
    sessions = Sessions(Dice())
    session = opened(sessions)
    assert sessions.resume(session.id, 1, uses_ids=True, now_ms=0) == ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR


def test_changes_and_forgotten_partitions() -> None:
    session = opened(Sessions(Dice()))
    session.update([asked(0, offset=5), asked(2)], [("t", 1)])
    assert [(a.partition, a.fetch_offset) for a in session.partitions.values()] == [(0, 5), (2, 0)]


def test_only_news_is_told() -> None:
    session = opened(Sessions(Dice()))
    key, quiet = ("t", 0), Told(5, 0, 0)
    assert session.is_news(key, quiet, has_records=False)
    assert not session.is_news(key, quiet, has_records=False)
    assert session.is_news(key, quiet, has_records=True)
    assert session.is_news(key, Told(6, 0, 0), has_records=False)
    failed = Told(6, 0, ErrorCode.KAFKA_STORAGE_ERROR)
    assert session.is_news(key, failed, has_records=False)
    assert session.is_news(key, failed, has_records=False), "an error is told each time"


def test_a_full_cache_opens_none_until_one_was_idle_for_long() -> None:
    sessions = Sessions(Dice(), sessions_max=2)
    first = opened(sessions, 0)
    opened(sessions, 0)
    assert sessions.open([], uses_ids=False, privileged=False, now_ms=10) is None
    assert sessions.open([], uses_ids=False, privileged=False, now_ms=EVICTION_IDLE_MS) is not None
    assert sessions.resume(first.id, 1, uses_ids=False, now_ms=0) == ErrorCode.FETCH_SESSION_ID_NOT_FOUND
    assert len(sessions) == 2


def test_a_follower_takes_a_consumers_place_and_never_the_other_way() -> None:
    sessions = Sessions(Dice(), sessions_max=1)
    opened(sessions, 0)
    follower = opened(sessions, 1, privileged=True)
    assert sessions.open([], uses_ids=False, privileged=False, now_ms=10 * EVICTION_IDLE_MS) is None
    assert sessions.resume(follower.id, 1, uses_ids=False, now_ms=2) is follower
