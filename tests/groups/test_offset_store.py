"""Offsets and open transactions: what takes effect when."""

from __future__ import annotations

from random import Random

import pytest

from ottla.groups.offsets.store import OffsetStore

A, B = b"a", b"b"


def test_kept_counted_and_removed() -> None:
    store = OffsetStore()
    store.put("g", "t", 0, A)
    store.put("g", "t", 0, B)
    store.put("g", "t", 1, A)
    assert store.count == 2
    assert store.of_group("g") == {"t": {0: B, 1: A}}
    store.remove("g", "t", 0)
    store.remove("g", "t", 1)
    store.remove("g", "t", 1)
    assert store.count == 0
    assert store.group_ids() == []


def test_a_transaction_takes_effect_with_its_marker() -> None:
    store = OffsetStore()
    store.put("g", "t", 0, A)
    store.put_pending(7, "g", "t", 0, B)
    assert store.get("g", "t", 0) == A
    assert store.is_open("g", "t", 0)
    store.end_transaction(7, committed=True)
    assert store.get("g", "t", 0) == B
    assert not store.has_open("g")


def test_an_aborted_one_leaves_nothing() -> None:
    store = OffsetStore()
    store.put_pending(7, "g", "t", 0, B)
    assert store.group_ids() == ["g"]
    store.end_transaction(7, committed=False)
    assert store.get("g", "t", 0) is None
    assert store.group_ids() == []


def test_a_commit_behind_it_is_newer() -> None:
    store = OffsetStore()
    store.put_pending(7, "g", "t", 0, B)
    store.put("g", "t", 0, A)
    assert store.is_open("g", "t", 0)
    store.end_transaction(7, committed=True)
    assert store.get("g", "t", 0) == A


def test_of_two_transactions_the_later_written_wins() -> None:
    for order in ((1, 2), (2, 1)):
        store = OffsetStore()
        store.put_pending(1, "g", "t", 0, A)
        store.put_pending(2, "g", "t", 0, B)
        for producer_id in order:
            store.end_transaction(producer_id, committed=True)
        assert store.get("g", "t", 0) == B


def test_a_tombstone_takes_what_is_open_along() -> None:
    store = OffsetStore()
    store.put("g", "t", 0, A)
    store.put_pending(7, "g", "t", 0, B)
    store.remove("g", "t", 0)
    assert not store.has_open("g")
    store.end_transaction(7, committed=True)
    assert store.get("g", "t", 0) is None


class CountedName(str):
    """Of a group. Counts how often it was looked up."""

    looks = 0

    def __hash__(self) -> int:
        self.looks += 1
        return super().__hash__()


@pytest.mark.parametrize("what", ["commit", "tombstone", "end"])
def test_what_others_hold_open_is_not_gone_through(what: str) -> None:
    """A thousand producers of other partitions; each change of one offset went through all of them."""
    store, group = OffsetStore(), CountedName("g")
    for producer_id in range(1_000):
        store.put_pending(producer_id, group, "t", producer_id, A)
    store.put_pending(2_000, group, "t", 0, B)
    group.looks = 0
    match what:
        case "commit":
            store.put(group, "t", 0, A)
        case "tombstone":
            store.remove(group, "t", 0)
        case _:
            store.end_transaction(2_000, committed=True)
    assert group.looks < 20


def test_offsets_behind_a_tombstone_are_of_a_transaction_that_goes_on() -> None:
    store = OffsetStore()
    store.put_pending(7, "g", "t", 0, A)
    store.put_pending(8, "g", "t", 0, A)
    store.remove("g", "t", 0)
    assert not store.has_open("g")
    store.put_pending(7, "g", "t", 0, B)
    store.end_transaction(8, committed=True)
    assert store.is_open("g", "t", 0)
    assert store.get("g", "t", 0) is None
    store.end_transaction(7, committed=True)
    assert store.get("g", "t", 0) == B
    assert not store.has_open("g")


@pytest.mark.parametrize("seed", range(30))
def test_like_a_log_that_is_read_with_hindsight(seed: int) -> None:
    """The model keeps each record with its place in the log: of those that count, the last one holds."""
    random, store = Random(seed), OffsetStore()
    log: list[tuple[int, int, bytes | None]] = []
    ended: dict[int, bool] = {}
    # A producer has one transaction after the other.
    transactions = {producer: producer for producer in range(3)}
    for number in range(60):
        partition, producer = random.randrange(2), random.randrange(3)
        value = str(number).encode()
        match random.randrange(5):
            case 0 | 1:
                store.put("g", "t", partition, value)
                log.append((-1, partition, value))
            case 2:
                store.put_pending(producer, "g", "t", partition, value)
                log.append((transactions[producer], partition, value))
            case 3:
                committed = random.random() < 0.7
                store.end_transaction(producer, committed=committed)
                ended[transactions[producer]] = committed
                transactions[producer] = len(ended) * 10 + producer + 3
            case _:
                if random.random() < 0.3:
                    store.remove("g", "t", partition)
                    # What was open is gone for good, whatever its marker says.
                    log = [entry for entry in log if entry[1] != partition]
        for place in (0, 1):
            holds = [value for by, where, value in log if where == place and (by == -1 or ended.get(by))]
            assert store.get("g", "t", place) == (holds[-1] if holds else None)
            is_open = any(where == place and by != -1 and by not in ended for by, where, _ in log)
            assert store.is_open("g", "t", place) == is_open
