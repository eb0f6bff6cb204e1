"""Bytes a second, on a clock that only sleeping and work move."""

from __future__ import annotations

from random import Random

import pytest
from tests.storage.at_once import clean
from tests.storage.cleaner.cleaning import COMPACTED, Cleaner, compacted_world, put_keyed

from ottla.storage.cleaner.process import Throttle
from ottla.storage.cleaner.rounds import ThreadWorker, clean_log


class Time:
    def __init__(self) -> None:
        self.now_s = 1000.0
        self.slept_s = 0.0

    def monotonic(self) -> float:
        return self.now_s

    def sleep(self, seconds: float) -> None:
        assert seconds > 0
        self.now_s += seconds
        self.slept_s += seconds


@pytest.mark.parametrize("seed", range(20))
def test_no_second_sees_more_than_the_rate_and_a_span(seed: int) -> None:
    rng, time = Random(seed), Time()
    throttle = Throttle(1000, time.monotonic, time.sleep)
    done = 0
    for _ in range(200):
        size = rng.choice([1, 100, 2000])
        throttle(size)
        done += size
        assert done <= 1000 * (time.now_s - 1000.0) + 300 + 1e-6, "0.3 s ahead at most, after it has returned"
    assert done >= 1000 * (time.now_s - 1000.0), "and it does not sleep longer than it must"


def test_idle_time_is_not_made_up_for() -> None:
    time = Time()
    throttle = Throttle(1000, time.monotonic, time.sleep)
    throttle(100)
    time.now_s += 3600
    throttle(100)
    assert time.slept_s == 0
    throttle(5000)
    assert time.slept_s == 5


def test_without_a_bound_it_never_sleeps() -> None:
    time = Time()
    throttle = Throttle(1.7976931348623157e308, time.monotonic, time.sleep)
    for _ in range(100):
        throttle(1 << 40)
    assert time.slept_s == 0


def test_reads_and_writes_of_a_pass_are_counted_together() -> None:
    world = compacted_world(config=COMPACTED._replace(segment_bytes=3000))
    log = world.open()
    for number in range(100):
        put_keyed(log, (b"k%d" % (number % 7), b"v" * 50))
    world.flush(log)
    cleaner, paced = Cleaner(world), list[int]()
    around = cleaner.surrounding()._replace(worker=ThreadWorker(world.disk, paced.append))
    outcome = clean(clean_log(log, cleaner.dirt(log), around))
    assert outcome.bytes_written > 0
    assert sum(paced) == outcome.bytes_read + outcome.bytes_written
