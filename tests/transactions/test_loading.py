"""A shard of the transaction coordinator that is loaded: what it finds, and how it goes on with that."""

from __future__ import annotations

from tests.groups.journal import MemoryJournal
from tests.transactions.world import TIMEOUT_MS, A, C, World, ongoing

from ottla.model import ErrorCode
from ottla.steps import at_once
from ottla.transactions.states import TransactionStatus

S = TransactionStatus
NONE, FENCED = ErrorCode.NONE, ErrorCode.PRODUCER_FENCED
HOUR_MS = 3_600_000


def test_a_decided_end_goes_on_after_a_load() -> None:
    world = World()
    world.end(ongoing(world))
    assert world.status is S.PREPARE_COMMIT
    world.move_over()
    assert len(world.sent.waiting) == 1
    assert world.sent.ends[1] == world.sent.ends[0]
    world.sent.written()
    assert world.status is S.COMPLETE_COMMIT


def test_nothing_that_a_load_has_found_is_acted_on_before_it_is_committed() -> None:
    journal = MemoryJournal()
    world = World(journal)
    world.end(ongoing(world))
    journal.hold_what_is_found()
    world.move_over()
    assert not world.shard.is_certain
    assert world.sent.waiting == []
    journal.commit()
    assert world.shard.is_certain
    assert len(world.sent.waiting) == 1


def test_an_end_that_is_decided_while_those_of_before_the_load_go_on_has_its_markers_once() -> None:
    """A second sending may be refused for now, and come again when the producer's next transaction has begun."""
    world = World()
    producer = ongoing(world)
    world.holds_beside = True
    world.move_over()
    assert world.end(producer).error is NONE
    for steps in world.left_beside:
        at_once(steps)
    assert len(world.sent.ends) == 1
    world.sent.written()
    assert world.status is S.COMPLETE_COMMIT


def test_a_load_that_is_given_up_sends_no_markers() -> None:
    world = World()
    world.end(ongoing(world))
    world.holds_beside = True
    world.move_over()
    world.shard.unload(ErrorCode.NOT_COORDINATOR, world.now())
    for steps in world.left_beside:
        at_once(steps)
    assert (len(world.sent.ends), world.sent.waiting, world.counts.ids) == (1, [], 0)


def test_an_open_transaction_has_what_is_left_of_its_time_after_a_load() -> None:
    world = World()
    ongoing(world)
    world.advance(TIMEOUT_MS // 2)
    world.move_over()
    assert world.transaction().partitions == {A, C}
    world.advance(TIMEOUT_MS // 2 - 1)
    assert world.status is S.ONGOING
    world.advance(world.config.transactions.abort_check_interval_ms + 1)
    assert world.status is S.PREPARE_ABORT


def test_a_load_after_the_clock_was_set_back() -> None:
    world = World()
    ongoing(world)
    world.clock.set_by_ms = -30 * 24 * HOUR_MS
    world.move_over()
    world.advance(TIMEOUT_MS + world.config.transactions.abort_check_interval_ms)
    assert world.status is S.PREPARE_ABORT


def test_a_load_after_the_clock_was_set_forward_takes_it_for_time_that_has_gone_by() -> None:
    """Kafka's does at every look; ours only where it knows nothing but the record. The end is a whole one."""
    world = World()
    producer = ongoing(world)
    world.clock.set_by_ms = HOUR_MS
    world.move_over()
    assert (world.status, world.sent.ends) == (S.ONGOING, [])
    world.advance(world.config.transactions.abort_check_interval_ms)
    assert (world.status, world.counts.aborted_by_timeout) == (S.PREPARE_ABORT, 1)
    assert world.end(producer).error is FENCED
    world.sent.written()
    assert world.status is S.COMPLETE_ABORT


def test_a_load_by_a_clock_that_is_a_little_ahead_leaves_what_is_left() -> None:
    world = World()
    ongoing(world)
    world.clock.set_by_ms = TIMEOUT_MS // 2
    world.move_over()
    world.advance(TIMEOUT_MS // 2 - 1)
    assert world.status is S.ONGOING
    world.advance(world.config.transactions.abort_check_interval_ms + 1)
    assert world.status is S.PREPARE_ABORT


def test_an_old_shard_does_nothing_more() -> None:
    world = World()
    producer = ongoing(world)
    world.end(producer)
    old = world.shard
    (_, _, done) = world.sent.waiting[0]
    world.move_over()
    writes = world.journal.writes
    done(world.now())
    assert world.journal.writes == writes
    assert old.state.ids == {}


def test_bad_records_are_passed_over() -> None:
    journal = MemoryJournal()
    journal.add((None, b"v"), (b"", b"v"), (b"\0\7k", b"v"), (b"\0\0\0\1a", b"\0\x09"), (b"\0\0\0\1a", b""))
    world = World(journal)
    assert not world.shard.state.ids
    assert world.init().error is NONE
