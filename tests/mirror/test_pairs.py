"""Pairs of offsets, held against a list of every record that was copied."""

from __future__ import annotations

import bisect

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.mirror import pairs as module
from ottla.mirror.pairs import OffsetPairs, Pair

#: Gaps before each record of a source.
GAPS = st.lists(st.sampled_from([0, 0, 0, 1, 5]), max_size=40)


def copied(gaps: list[int], first_target: int) -> tuple[list[int], OffsetPairs]:
    """Source offsets of the records, and the pairs of a copy of them that begins at `first_target`."""
    sources: list[int] = []
    offset = 0
    pairs = OffsetPairs()
    for gap in gaps:
        offset += gap
        pairs.add(Pair(offset, first_target + len(sources)))
        sources.append(offset)
        offset += 1
    return sources, pairs


@given(GAPS, st.integers(0, 100))
def test_every_record_is_found_from_its_place_in_the_copy(gaps: list[int], first: int) -> None:
    sources, pairs = copied(gaps, first)
    for index, source in enumerate(sources):
        assert pairs.source_of(first + index) == source
    assert pairs.source_of(first - 1) is None


@given(GAPS, st.integers(0, 100), st.integers(0, 40), st.integers(0, 10))
def test_every_offset_is_translated_to_the_record_that_was_to_be_read_next(
    gaps: list[int], first: int, acknowledged: int, trailing: int
) -> None:
    """With some of the copy not acknowledged yet, and a gap at the source's end."""
    sources, pairs = copied(gaps, first)
    done = min(acknowledged, len(sources))
    everything = done == len(sources)
    read = (sources[-1] + 1 + trailing if sources else 0) if everything else sources[done]
    for offset in range((sources[-1] if sources else 0) + trailing + 3):
        translated = pairs.target_of(offset, read, first + done)
        forgotten = first > 0 and bool(sources) and offset < sources[0]
        if not sources or offset > read or forgotten:
            assert translated is None
        else:
            assert translated == first + min(done, bisect.bisect_left(sources, offset))


@given(GAPS)
def test_pairs_are_as_few_as_the_gaps(gaps: list[int]) -> None:
    _, pairs = copied(gaps, 0)
    assert len(pairs) == (1 + sum(gap > 0 for gap in gaps[1:]) if gaps else 0)


@given(GAPS, GAPS, st.integers(0, 40))
def test_a_plan_that_was_not_carried_out_is_replaced(gaps: list[int], others: list[int], kept: int) -> None:
    """What was to be copied may have gone from the source before it was: the copy goes on with what is there."""
    sources, pairs = copied(gaps, 0)
    kept = min(kept, len(sources))
    offset = sources[kept - 1] + 1 if kept else 0
    now = sources[:kept]
    for gap in others:
        offset += gap
        pairs.add(Pair(offset, len(now)))
        now.append(offset)
        offset += 1
    if others:
        assert [pairs.source_of(target) for target in range(len(now))] == now


def test_the_older_half_is_forgotten_when_there_are_too_many(monkeypatch) -> None:  # type: ignore[no-untyped-def]
    monkeypatch.setattr(module, "PAIRS_MAX", 10)
    pairs = OffsetPairs(Pair(2 * n, n) for n in range(11))
    assert len(pairs) == 6
    assert pairs.forgotten == 5
    assert pairs.target_of(3, 100, 11) is None, "where nobody knows any more, nobody guesses"
    assert pairs.target_of(10, 100, 11) == 5
    assert pairs.source_of(10) == 20


def test_what_was_forgotten_before_the_pairs_were_recorded_is_not_guessed_either(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A group that stands there would be moved over all that lies between."""
    monkeypatch.setattr(module, "PAIRS_MAX", 10)
    recorded = OffsetPairs(list(OffsetPairs(Pair(2 * n, n) for n in range(11))))
    assert recorded.target_of(3, 100, 11) is None
    assert recorded.target_of(10, 100, 11) == 5


@given(GAPS, st.integers(0, 40), st.integers(0, 40))
def test_a_plan_that_is_found_again_is_kept_to_its_end(gaps: list[int], first: int, again: int) -> None:
    """Whoever goes on in its middle meets the same gaps, and forgets none of those that are to come."""
    sources, pairs = copied(gaps, 0)
    plan = list(pairs)
    for index in range(min(first, len(sources)), min(first + again, len(sources))):
        assert not pairs.add(Pair(sources[index], index), index + 1)
        assert list(pairs) == plan


def test_a_gap_that_a_plan_has_and_a_batch_has_not_is_forgotten() -> None:
    pairs = OffsetPairs([Pair(0, 0), Pair(11, 10)])
    assert pairs.add(Pair(5, 5), 13)
    assert list(pairs) == [Pair(0, 0)]
