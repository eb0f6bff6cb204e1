"""The parts of a fetcher by themselves: pieces of records, sessions, rates, and which fetcher has a partition."""

from __future__ import annotations

import asyncio
from random import Random

import pytest

from ottla.model import TopicPartition
from ottla.ports.memory import World
from ottla.protocol.hot.follower_fetch import AskedRow
from ottla.records.batch import iterate
from ottla.records.record import Record, encode_batch
from ottla.replication.fetching import records_pieces
from ottla.replication.fetching.fetchers import fetcher_number
from ottla.replication.fetching.partition import Key
from ottla.replication.fetching.rate import MinuteRate
from ottla.replication.fetching.records_pieces import BATCHES_MAX, BYTES_MAX, pieces
from ottla.replication.fetching.session import EPOCH_MAX, FollowerSession


def batches(*sizes: int) -> bytes:
    return b"".join(
        encode_batch([Record(offset, 1_000, None, b"x" * size)], base_offset=offset)
        for offset, size in enumerate(sizes)
    )


# Pieces


def test_what_is_little_is_one_piece() -> None:
    data = memoryview(batches(*[10] * 100))
    assert [bytes(piece) for piece in pieces(data)] == [bytes(data)]
    assert [bytes(piece) for piece in pieces(memoryview(b""))] == [b""]


@pytest.mark.parametrize("seed", range(10))
def test_pieces_are_whole_batches_within_both_bounds(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    random = Random(seed)
    most = random.choice((100_000, 500_000))
    monkeypatch.setattr(records_pieces, "BYTES_MAX", most)
    sizes = [random.choice((1, 1, 1, 100, 5_000, 200_000)) for _ in range(random.randrange(1, 1_500))]
    data = batches(*sizes)
    cut = random.choice((0, 0, random.randrange(61)))
    found = list(pieces(memoryview(data + data[:cut])))
    assert b"".join(bytes(piece) for piece in found) == data + data[:cut]
    for piece in found:
        whole = list(iterate(piece, 0, len(piece)))
        assert len(whole) <= BATCHES_MAX
        assert len(piece) <= most + cut or len(whole) == 1
        assert whole, "no piece is without a batch"


def test_a_large_batch_is_a_piece_of_its_own() -> None:
    data = batches(1, BYTES_MAX + 1, 1)
    found = list(pieces(memoryview(data)))
    assert [len(list(iterate(piece, 0, len(piece)))) for piece in found] == [1, 1, 1]


def test_garbage_is_left_in_one_piece_for_the_log_to_refuse() -> None:
    for data in (b"\x00" * 100_000, b"\xff" * 100_000, batches(5) + b"\x00" * 100_000):
        found = [bytes(piece) for piece in pieces(memoryview(data))]
        assert b"".join(found) == data


# Sessions

A: Key = (b"a" * 16, 0)
B: Key = (b"a" * 16, 1)
C: Key = (b"c" * 16, 0)


def row(key: Key, offset: int) -> AskedRow:
    return (key[1], 1, offset, 1, 0, 1_000)


def test_a_session_says_what_has_changed_and_nothing_else() -> None:
    session = FollowerSession()
    offsets: dict[Key, int | None] = {A: 1, B: 2, C: None}

    def row_of(key: Key) -> AskedRow | None:
        offset = offsets[key]
        return None if offset is None else row(key, offset)

    assert session.take([A, B, C], row_of) == ({A[0]: [row(A, 1), row(B, 2)]}, {})
    session.answered(7)
    assert (session.id, session.epoch) == (7, 1)
    assert session.take([A, B, C], row_of) == ({}, {})
    session.answered(7)
    offsets.update({A: None, B: 3, C: 5})
    assert session.take([A, B, C], row_of) == ({B[0]: [row(B, 3)], C[0]: [row(C, 5)]}, {A[0]: [0]})
    session.answered(7)
    assert (session.id, session.epoch) == (7, 3)
    offsets[A] = 1
    assert session.take([A], row_of) == ({A[0]: [row(A, 1)]}, {})


def test_a_sessions_epoch_comes_round() -> None:
    session = FollowerSession()
    session.answered(7)
    session.epoch = EPOCH_MAX
    session.answered(7)
    assert session.epoch == 1


def test_a_leader_without_room_for_a_session_is_asked_in_full() -> None:
    session = FollowerSession()
    session.take([A], lambda key: row(key, 1))
    session.answered(0)
    assert (session.id, session.epoch) == (0, 0)


def test_a_session_that_starts_anew_gives_up_the_former() -> None:
    session = FollowerSession()
    session.take([A], lambda key: row(key, 1))
    session.answered(7)
    session.restart()
    assert (session.id, session.epoch, session.known) == (7, 0, {})
    session.answered(9)
    assert (session.id, session.epoch) == (9, 1)
    session.forget()
    assert (session.id, session.epoch) == (0, 0)


def test_a_session_starts_anew_where_the_leader_told_what_was_not_taken_over() -> None:
    session = FollowerSession()
    offsets: dict[Key, int | None] = {A: 1, B: 2}

    def row_of(key: Key) -> AskedRow | None:
        offset = offsets.get(key)
        return None if offset is None else row(key, offset)

    session.take([A, B], row_of)
    session.answered(7)
    session.untaken[A] = None
    assert session.has_missed(row_of)
    assert not session.has_missed(row_of)
    # Neither of these is known to the leader as it is asked for next.
    session.untaken.update({B: None, C: None})
    offsets[B] = None
    assert not session.has_missed(row_of)
    session.untaken[A] = None
    session.restart()
    assert not session.has_missed(row_of)


# Which fetcher


@pytest.mark.parametrize(
    ("topic", "partition", "fetchers", "wanted"),
    # Computed in Java, by what Kafka's AbstractFetcherManager.getFetcherId computes.
    [("t", 0, 4, 0), ("t", 1, 4, 1), ("orders", 7, 3, 1), ("__consumer_offsets", 49, 8, 6), ("t", 5, 1, 0)],
)
def test_a_partitions_fetcher_is_that_of_kafka(topic: str, partition: int, fetchers: int, wanted: int) -> None:
    assert fetcher_number(TopicPartition(topic, partition), fetchers) == wanted


# Rates


def test_a_rate_forgets_within_minutes() -> None:
    world = World(1)
    rate = MinuteRate(world.machine("here").clock)

    def passes(seconds: float) -> None:
        world.loop.run_until_complete(asyncio.sleep(seconds))

    assert rate.a_second() == 0
    for _ in range(20):
        for _ in range(50):
            rate.count()
        passes(5)
        rate.a_second()
    assert rate.a_second() == pytest.approx(10)
    passes(60)
    assert 3 < rate.a_second() < 4.5
    passes(600)
    assert rate.a_second() < 0.01
    world.loop.close()
