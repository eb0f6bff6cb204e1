"""The aborted transactions of a segment that has very many: a look-up reads what it needs, and keeps nothing."""

from __future__ import annotations

import tracemalloc
from random import Random

import pytest
from tests.storage.log.test_log_transactions import end, write
from tests.storage.log_world import World

from ottla.config.log import LogConfig
from ottla.storage.errors import DamagedIndex
from ottla.storage.log.indexes import txn_index
from ottla.storage.log.indexes.txn_file import ENTRIES_A_PIECE
from ottla.storage.log.indexes.txn_index import AbortedTransaction
from ottla.storage.log.log import Log
from ottla.storage.log.segment import ABORTED_KEPT_MAX

MANY = 50_000
#: Every third offset is a marker.
ENTRIES = [AbortedTransaction(1, 3 * number, 3 * number + 2, 3 * number + 3) for number in range(MANY)]


def world_with(entries: list[AbortedTransaction]) -> tuple[World, Log]:
    """A log with these in the index of its only segment, whatever is in its batches."""
    world = World(config=LogConfig(retention_ms=-1))
    log = world.open()
    write(log, 1, 0)
    end(log, 1, aborts=True)
    world.close(log)
    file = world.disk.open(log.active.path(".txnindex"), create=True)
    file.truncate(0)
    file.write(txn_index.encode(entries), 0)
    file.close()
    return world, world.open()


def brute(entries: list[AbortedTransaction], first: int, last_exclusive: int) -> list[tuple[int, int]]:
    return [(each[0], each[1]) for each in entries if each.last_offset >= first and each.first_offset < last_exclusive]


def test_a_look_up_among_many_reads_and_keeps_little() -> None:
    _, log = world_with(ENTRIES)
    dice = Random(0)
    tracemalloc.start()
    try:
        for _ in range(50):
            first = dice.randrange(3 * MANY)
            found = log.aborted_transactions(first, first + 10)
            assert 3 <= len(found) <= 4 or first + 12 > 3 * MANY
        kept, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    # All of them are 1.7 MB as bytes, and 10 MB as entries.
    assert peak < 500_000
    assert kept < 100_000


@pytest.mark.parametrize(
    "count",
    [1, 2, ABORTED_KEPT_MAX - 1, ABORTED_KEPT_MAX, ABORTED_KEPT_MAX + 1, 3 * ENTRIES_A_PIECE, 3 * ENTRIES_A_PIECE + 1],
)
def test_look_ups_find_what_a_reading_of_all_finds(count: int) -> None:
    entries = ENTRIES[:count]
    _, log = world_with(entries)
    dice = Random(count)
    for _ in range(30):
        first = dice.randrange(3 * count + 3)
        for length in (1, 10, 3 * count):
            assert log.aborted_transactions(first, first + length) == brute(entries, first, first + length)


def test_of_those_behind_an_open_transaction_only_what_is_read_is_made_an_entry() -> None:
    """The last stable offset stood still, so that any of them may be one that the reader needs."""
    entries = [each._replace(last_stable_offset=0) for each in ENTRIES]
    late = AbortedTransaction(2, 4, 3 * MANY + 2, 3 * MANY + 3)
    entries.append(late)
    _, log = world_with(entries)
    tracemalloc.start()
    try:
        assert log.aborted_transactions(3, 9) == [(1, 3), (1, 6), (2, 4)]
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 200_000


@pytest.mark.parametrize("count", [1, ABORTED_KEPT_MAX - 1, ABORTED_KEPT_MAX, ABORTED_KEPT_MAX + 1, 5_000])
@pytest.mark.parametrize("looked_at", [True, False])
def test_entries_are_added_and_cut_off(count: int, looked_at: bool) -> None:
    entries = ENTRIES[: count + 3]
    world, log = world_with(entries[:count])
    limit = 3 * len(entries)
    if looked_at:
        assert log.aborted_transactions(0, limit) == brute(entries[:count], 0, limit)
    for entry in entries[count:]:
        log.active.add_aborted(entry)
    assert log.aborted_transactions(0, limit) == brute(entries, 0, limit)
    assert world.disk.size(log.active.path(".txnindex")) == len(entries) * txn_index.ENTRY.size
    for left in (count + 2, count, count // 2, 0):
        log.active.cut_aborted(entries[left].last_offset)
        assert log.aborted_transactions(0, limit) == brute(entries[:left], 0, limit)
        assert log.active.may_have_aborted is (left > 0)


@pytest.mark.parametrize("damage", ["cut", "zeros", "exchanged", "another version"])
def test_a_damaged_index_is_noticed_by_who_reads_there_and_made_again(damage: str) -> None:
    world, log = world_with(ENTRIES)
    file = world.disk.open(log.active.path(".txnindex"))
    middle = MANY // 2 * txn_index.ENTRY.size
    if damage == "cut":
        file.truncate(file.size() - 3)
    elif damage == "zeros":
        file.write(bytes(4096), middle - 2048 // txn_index.ENTRY.size * txn_index.ENTRY.size)
    elif damage == "exchanged":
        file.write(txn_index.encode(ENTRIES[MANY - 10 : MANY]), middle)
    else:
        file.write(b"\0\7", middle)
    file.close()
    with pytest.raises(DamagedIndex):
        log.active.check_aborted()
    first = 3 * (MANY // 2)
    log.aborted_transactions(first, first + 3 * ENTRIES_A_PIECE)
    assert world.warnings
    # What the batches say: one transaction.
    assert log.aborted_transactions(0, 10) == [(1, 0)]
