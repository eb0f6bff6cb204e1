"""Placement: the seeds' rule, Kafka's worked examples, and that a dead broker's load spreads."""

from __future__ import annotations

from collections import Counter

import hypothesis.strategies as st
import pytest
from hypothesis import given
from tests.searches import examples

from ottla.controller.deciding.placement import growth_start, place
from ottla.model import BrokerId


def brokers(*racks: str | None) -> dict[BrokerId, str | None]:
    return {BrokerId(index): rack for index, rack in enumerate(racks)}


def test_partition_i_leads_on_broker_i_mod_n_and_replica_j_follows() -> None:
    placed = place(brokers(*[None] * 5), 5, 3, start=0, shift=0)
    assert placed == [tuple((partition + replica) % 5 for replica in range(3)) for partition in range(5)]


def test_the_ring_starts_anywhere_and_followers_shift_each_round() -> None:
    # The example of Kafka's documentation: ten partitions on five brokers.
    placed = place(brokers(*[None] * 5), 10, 3, start=0, shift=0)
    assert [replicas[0] for replicas in placed] == [0, 1, 2, 3, 4, 0, 1, 2, 3, 4]
    assert placed[:5] == [(0, 1, 2), (1, 2, 3), (2, 3, 4), (3, 4, 0), (4, 0, 1)]
    assert placed[5:] == [(0, 2, 3), (1, 3, 4), (2, 4, 0), (3, 0, 1), (4, 1, 2)]
    assert place(brokers(*[None] * 5), 2, 2, start=3, shift=1) == [(3, 0), (4, 1)]


def test_one_broker_holds_everything() -> None:
    assert place({BrokerId(7): None}, 3, 1, start=0, shift=0) == [(7,), (7,), (7,)]


def test_racks_alternate() -> None:
    # Kafka's example: 0 and 5 in rack1, 3 and 4 in rack2, 1 and 2 in rack3; ring 0, 3, 1, 5, 4, 2.
    racks = brokers("rack1", "rack3", "rack3", "rack2", "rack2", "rack1")
    placed = place(racks, 7, 3, start=0, shift=0)
    assert placed[:6] == [(0, 3, 1), (3, 1, 5), (1, 5, 4), (5, 4, 2), (4, 2, 0), (2, 0, 3)]
    assert placed[6] == (0, 4, 2)


def test_racks_count_only_when_every_broker_has_one() -> None:
    some = place(brokers("a", None, "a", "b"), 8, 2, start=1, shift=0)
    assert some == place(brokers(None, None, None, None), 8, 2, start=1, shift=0)


@examples(200)
@given(st.data())
def test_replicas_are_distinct_even_and_across_racks(draw: st.DataObject) -> None:
    count = draw.draw(st.integers(1, 9))
    factor = draw.draw(st.integers(1, count))
    rack_count = draw.draw(st.integers(0, count))
    racks = brokers(*(f"r{index % rack_count}" if rack_count else None for index in range(count)))
    placed = place(racks, 4 * count, factor, start=draw.draw(st.integers(0, 9)), shift=draw.draw(st.integers(0, 9)))
    assert all(len(set(replicas)) == factor for replicas in placed)
    leaders = Counter(replicas[0] for replicas in placed)
    assert set(leaders.values()) == {4}
    if not rack_count:
        # As many replicas on each.
        assert set(Counter(broker for replicas in placed for broker in replicas).values()) == {4 * factor}
    for replicas in placed if rack_count else []:
        assert len({racks[broker] for broker in replicas}) == min(factor, rack_count)


@pytest.mark.parametrize("dead", range(5))
def test_the_load_of_a_dead_broker_spreads_over_all_survivors(dead: int) -> None:
    placed = place(brokers(*[None] * 5), 100, 3, start=2, shift=1)
    heirs = Counter(next(broker for broker in replicas if broker != dead) for replicas in placed if replicas[0] == dead)
    assert set(heirs) == set(range(5)) - {dead}
    assert max(heirs.values()) <= 2 * min(heirs.values())


def test_a_topic_that_grows_goes_on_where_it_stopped() -> None:
    racks = brokers(*[None] * 4)
    start = growth_start(racks, BrokerId(2))
    grown = place(racks, 5, 2, start=start, shift=start, first_partition=3)
    assert [replicas[0] for replicas in grown] == [(partition + 2) % 4 for partition in range(3, 8)]
    assert growth_start({BrokerId(1): None, BrokerId(5): None}, BrokerId(3)) == 1
    assert growth_start({BrokerId(1): None}, BrokerId(3)) == 0
