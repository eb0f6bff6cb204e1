"""Transactional ids that nobody uses."""

from __future__ import annotations

import pytest
from tests.transactions.world import ID, TIMEOUT_MS, A, World, ongoing, producer_of

from ottla.model import ErrorCode
from ottla.transactions.states import TransactionStatus

DAY_MS = 24 * 3_600_000


@pytest.mark.parametrize("set_by_days", [-30, 6])
def test_a_clock_that_is_set_by_less_than_the_time_forgets_nothing(set_by_days: int) -> None:
    world = World()
    world.init(name="idle")
    world.clock.set_by_ms = set_by_days * DAY_MS
    world.advance(DAY_MS // 2)
    assert "idle" in world.shard.state.ids


def test_a_clock_that_is_set_forward_by_more_forgets_what_is_idle_as_kafkas_would() -> None:
    world = World(transaction_max_timeout_ms=str(DAY_MS))
    idle = producer_of(world.init(name="idle"))
    busy = producer_of(world.init(timeout_ms=DAY_MS))
    assert world.add(busy, A) is ErrorCode.NONE
    world.clock.set_by_ms = 8 * DAY_MS
    world.advance(world.config.transactions.expiration_check_interval_ms)
    assert (list(world.shard.state.ids), world.counts.expired) == ([ID], 1)
    assert world.add(idle, A, name="idle") is ErrorCode.INVALID_PRODUCER_ID_MAPPING
    # What is open goes on: it is no idle id, and its own time goes by the other clock.
    assert world.status is TransactionStatus.ONGOING
    assert world.end(busy).error is ErrorCode.NONE


def test_an_id_that_was_forgotten_and_comes_again_has_a_time_out() -> None:
    """The timer of its last transaction may not have gone off yet: it is no later than the new one's."""
    world = World(transaction_remove_expired_transaction_cleanup_interval_ms="1000")
    world.end(ongoing(world))
    world.sent.written()
    world.clock.set_by_ms = 8 * DAY_MS
    world.advance(1_001)
    assert world.counts.expired == 1
    ongoing(world)
    world.advance(TIMEOUT_MS + world.config.transactions.abort_check_interval_ms)
    assert world.status is TransactionStatus.PREPARE_ABORT
