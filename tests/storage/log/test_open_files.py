"""The bound on open files: what closes, what stays, and what it costs when nothing may close."""

from __future__ import annotations

import errno

import pytest

from ottla.storage.log.open_files import LOOKED_AT_MAX, OpenFiles


class Segment:
    looked_at = 0

    def __init__(self, *, is_clean: bool = True) -> None:
        self.used = False
        self.is_open = True
        self._is_clean = is_clean

    @property
    def is_clean(self) -> bool:
        Segment.looked_at += 1
        return self._is_clean

    def release_files(self) -> None:
        self.is_open = False


def test_the_longest_unused_ones_close() -> None:
    files = OpenFiles(10)
    segments = [Segment() for _ in range(15)]
    for segment in segments:
        files.opened(segment)
    assert [segment.is_open for segment in segments] == [False] * 5 + [True] * 10


def test_a_used_one_has_a_second_chance() -> None:
    files = OpenFiles(3)
    segments = [Segment() for _ in range(4)]
    segments[0].used = True
    for segment in segments:
        files.opened(segment)
    assert [segment.is_open for segment in segments] == [True, False, True, True]


def test_where_none_may_close_each_opening_costs_the_same() -> None:
    files = OpenFiles(10)
    count = 2_000
    Segment.looked_at = 0
    for _ in range(count):
        files.opened(Segment(is_clean=False))
    assert Segment.looked_at <= count * LOOKED_AT_MAX


def test_the_bound_is_reached_again_once_they_may_close() -> None:
    files = OpenFiles(10)
    dirty = [Segment(is_clean=False) for _ in range(100)]
    for segment in dirty:
        files.opened(segment)
    for segment in dirty:
        segment._is_clean = True
    for _ in range(20):
        files.opened(Segment())
    assert len(files) == 10


def test_an_opening_without_a_descriptor_closes_half_and_tries_again() -> None:
    files = OpenFiles(10)
    segments = [Segment(), Segment(is_clean=False), Segment(), Segment(), Segment()]
    for segment in segments:
        files.opened(segment)
    refusals = [OSError(errno.EMFILE, "none left")]

    def opens() -> str:
        if refusals:
            raise refusals.pop()
        return "open"

    assert files.opening(opens) == "open"
    assert [segment.is_open for segment in segments] == [False, True, False, True, True]
    refusals[:] = [OSError(errno.EIO, "broken")]
    with pytest.raises(OSError, match="broken"):
        files.opening(opens)
    assert len(files) == 3
