"""What followers fetch, compiled and not: the same logs from the same bytes, whatever these are."""

from __future__ import annotations

import struct
from random import Random
from typing import Final

import pytest
from tests.native.conftest import IS_PURE, NOTHING_COMPILED
from tests.storage.log_world import NOW, SMALL, World, batch, marker

from ottla.model import ErrorCode
from ottla.records.batch import BASE_OFFSET_AT, HEADER_SIZE, LEADER_EPOCH_AT
from ottla.storage.errors import AppendRefused
from ottla.storage.log import replica_append
from ottla.storage.log.log import Log
from ottla.storage.log.replica_append import COMPILED_WALK

followed = pytest.importorskip("ottla.native.followed", reason=NOTHING_COMPILED)

EPOCH_MAX: Final = 6


def test_it_is_what_logs_use() -> None:
    assert COMPILED_WALK is (None if IS_PURE else followed.walk)


def stamp(records: bytearray, offset: int, epoch: int) -> None:
    struct.pack_into(">q", records, BASE_OFFSET_AT, offset)
    struct.pack_into(">i", records, LEADER_EPOCH_AT, epoch)


class Leader:
    """Makes answers of batches as a leader's log has them, and at times of others."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self.offset = 0
        self.epoch = 0
        self.sequences: dict[int, int] = {}

    def _batch(self) -> bytearray:
        random = self.random
        values = [random.randbytes(random.choice((3, 40, 200))) for _ in range(random.randint(1, 3))]
        timestamp = NOW + random.choice((0, 0, 5, 10**9))
        kind = random.random()
        if kind < 0.05:
            found = bytearray(marker(random.randint(1, 3), 0, aborts=random.random() < 0.5))
            values = [b""]
        else:
            producer = (-1, -1, -1)
            if kind < 0.4:
                number = random.randint(1, 3)
                sequence = self.sequences.get(number, 0)
                self.sequences[number] = sequence + len(values)
                producer = (number, 0, sequence)
            transactional = producer[0] >= 0 and random.random() < 0.2
            compression = random.choice((0, 0, 0, 1))
            found = bytearray(
                batch(
                    *values,
                    timestamp=timestamp,
                    producer=producer,
                    transactional=transactional,
                    compression=compression,
                )
            )
        if random.random() < 0.05:
            self.epoch += 1
        if random.random() < 0.05:
            self.offset += random.choice((1, 7, 2**31))  # what compaction has taken away
        stamp(found, self.offset, self.epoch)
        self.offset += len(values)
        return found

    def answer(self) -> bytearray:
        random = self.random
        found = bytearray()
        for _ in range(random.randint(0, 12)):
            found += self._batch()
        chance = random.random()
        if chance < 0.1 and found:
            found[random.randrange(len(found))] ^= 1 << random.randrange(8)
        elif chance < 0.3:
            del found[random.randrange(len(found) + 1) :]
        elif chance < 0.4:
            found += random.randbytes(random.randrange(2 * HEADER_SIZE))
        return found


def staged(log: Log, answer: bytearray, walk: replica_append.Walk | None) -> tuple[object, ...]:
    try:
        found = replica_append.stage_replica(log.staging, memoryview(answer), NOW, EPOCH_MAX, walk)
    except AppendRefused as refused:
        log.discard_staged()
        return refused.error, str(refused)
    log.write_staged()
    return found


def seen(log: Log) -> tuple[object, ...]:
    return (
        log.end_offset,
        [segment.file.read(segment.size, 0) for segment in log.segments],
        [(segment.base_offset, segment.max_timestamp()) for segment in log.segments],
        log.epochs.entries(),
        log.first_unstable_offset,
        [each[:3] for each in log.describe_producers()],
    )


@pytest.mark.parametrize("seed", range(40))
def test_both_ways_make_the_same_log(seed: int) -> None:
    random = Random(seed)
    config = SMALL._replace(segment_bytes=random.choice((2000, 100_000)))
    compiled, plain = World(config=config).open(), World(config=config).open()
    leader = Leader(random)
    for _ in range(30):
        answer = leader.answer()
        one, other = staged(compiled, answer, followed.walk), staged(plain, answer, None)
        assert one == other
        assert seen(compiled) == seen(plain)
        leader.offset = compiled.end_offset
        leader.epoch = min(leader.epoch, EPOCH_MAX + 1)
        if compiled.epochs.entries():
            leader.epoch = max(leader.epoch, compiled.epochs.entries()[-1][0])


def test_nothing_is_read_beyond_the_end() -> None:
    whole = bytearray(batch(b"value"))
    stamp(whole, 5, 3)
    limits = (5, 3, 1 << 30, 1 << 62, 1 << 62)
    assert followed.walk(whole, *limits)[0] == len(whole)
    for size in range(len(whole)):
        assert followed.walk(whole[:size], *limits) == (0, [], [])


@pytest.mark.parametrize(
    "limits",
    [
        pytest.param((6, 3, 1 << 30, 1 << 62, 1 << 62), id="an offset that was there before"),
        pytest.param((5, 2, 1 << 30, 1 << 62, 1 << 62), id="another leader epoch"),
        pytest.param((5, 3, 60, 1 << 62, 1 << 62), id="no room in the segment"),
        pytest.param((5, 3, -2, 1 << 62, 1 << 62), id="the segment is to be looked at"),
        pytest.param((5, 3, 1 << 30, 4, 1 << 62), id="offsets beyond the segment's"),
        pytest.param((5, 3, 1 << 30, 1 << 62, NOW - 1), id="a time at which it is rolled"),
    ],
)
def test_what_does_not_fit_is_left(limits: tuple[int, int, int, int, int]) -> None:
    whole = bytearray(batch(b"value"))
    stamp(whole, 5, 3)
    assert followed.walk(whole, *limits) == (0, [], [])


def test_a_batch_that_is_damaged_is_refused_in_the_words_of_the_loop() -> None:
    log = World().open()
    one, other = bytearray(batch(b"a")), bytearray(batch(b"b"))
    stamp(one, 0, 1)
    stamp(other, 1, 1)
    other[-1] ^= 1
    with pytest.raises(AppendRefused, match="its checksum differs") as caught:
        log.stage_replica(memoryview(one + other))
    assert caught.value.error == ErrorCode.CORRUPT_MESSAGE
