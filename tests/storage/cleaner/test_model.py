"""Passes over random logs, against a dictionary: the newest record of each key stays, at its offset, and nothing else.

Some producers write in transactions, several open at once, and abort half of them: what they aborted goes, and deletes
nothing.

`ModelRun(seed).run()` repeats a failure. The crashes are those of `test_crashes.py`.
"""

from __future__ import annotations

from random import Random

import pytest
from tests.searches import some
from tests.storage.cleaner.cleaning import (
    COMPACTED,
    LIMITS,
    Cleaner,
    Kept,
    compacted_world,
    fetched,
    newest,
    records_of,
)
from tests.storage.cleaner.cleaning import put_keyed as put
from tests.storage.log_world import NOW, marker
from tests.storage.log_world import put as put_batch

from ottla.storage.log.append import Origin


class ModelRun:
    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.rng = rng = Random(seed)
        config = COMPACTED._replace(
            segment_bytes=rng.choice([1500, 3000, 100_000]),
            index_interval_bytes=rng.choice([0, 100, 4096]),
            min_compaction_lag_ms=0,
        )
        self.world = compacted_world(config=config)
        # With little memory a pass sees a few keys at a time, and ends in the middle of a batch.
        limits = LIMITS._replace(memory_bytes=rng.choice([200, 500, 1 << 20]), buffer_bytes=rng.choice([128, 4096]))
        self.cleaner = Cleaner(self.world, limits)
        self.log = self.world.open()
        self.keys = [b"k%d" % number * rng.choice([1, 1, 1, 30]) for number in range(rng.choice([2, 10, 60]))]
        self.codec = rng.choice([0, 0, 1, 2, 3, 4])
        self.written: list[Kept] = []
        self.aborted: set[int] = set()
        #: By producer: the offsets of its open transaction.
        self.open: dict[int, list[int]] = {}
        self.sequences: dict[int, int] = {}
        self.producers = range(1, 1 + rng.choice([0, 1, 3]))

    def run(self) -> None:
        for _ in range(self.rng.randint(1, 5)):
            for _ in range(self.rng.randint(1, 30)):
                self.write()
            before = records_of(self.log)
            dirt = self.cleaner.dirt(self.log)
            outcome = self.cleaner.clean(self.log)
            self.check(before, dirt.first_dirty_offset, outcome.cleaned_to)
            if self.rng.random() < 0.5:
                self.cleaner.remove()
            if self.rng.random() < 0.3:
                self.reopen()
            self.cleaner.now_ms += self.rng.choice([0, 500, 1500])
        self.clean_all()

    def write(self) -> None:
        """A batch, in a transaction or not, or a transaction's end."""
        producer_id = self.rng.choice([0, *self.producers])
        if producer_id in self.open and self.rng.random() < 0.5:
            self.end(producer_id)
        elif producer_id:
            self.open.setdefault(producer_id, []).extend(self.put(producer_id))
        else:
            self.put()

    def end(self, producer_id: int) -> None:
        aborts = self.rng.random() < 0.5
        put_batch(self.log, marker(producer_id, 0, aborts=aborts), origin=Origin.COORDINATOR)
        offsets = self.open.pop(producer_id)
        if aborts:
            self.aborted.update(offsets)

    def put(self, producer_id: int = -1) -> range:
        pairs = [
            (self.rng.choice(self.keys), None if self.rng.random() < 0.2 else b"v%d" % self.rng.randrange(10**6))
            for _ in range(self.rng.choice([1, 1, 3, 12]))
        ]
        step = self.rng.choice([0, 0, 1, 100])
        sequence = self.sequences.get(producer_id, 0)
        appended = put(
            self.log,
            *pairs,
            timestamp=NOW + step * len(self.written),
            compression=self.codec,
            producer=(producer_id, 0, sequence) if producer_id > 0 else (-1, -1, -1),
            transactional=producer_id > 0,
        )
        self.sequences[producer_id] = sequence + len(pairs)
        for number, (key, value) in enumerate(pairs):
            self.written.append(Kept(appended.first_offset + number, 0, key, value))
        return range(appended.first_offset, appended.last_offset + 1)

    def decided(self, records: list[Kept]) -> list[Kept]:
        """Without what was aborted."""
        return [each for each in records if each.offset not in self.aborted]

    def check(self, before: list[Kept], first_dirty: int, cleaned_to: int) -> None:
        where = f"seed {self.seed}, cleaned from {first_dirty} to {cleaned_to}"
        after = records_of(self.log)
        assert [(each.offset, each.key, each.value) for each in fetched(self.log)] == [
            (each.offset, each.key, each.value) for each in after
        ], where
        assert set(after) <= set(before), where
        latest = {each.key: each.offset for each in self.decided(before) if first_dirty <= each.offset < cleaned_to}
        for each in before:
            if each.offset in self.aborted:
                assert each.offset >= cleaned_to or each not in after, f"{where}: {each} was aborted and is still there"
            elif each.offset < cleaned_to and latest.get(each.key, -1) > each.offset:
                assert each not in after, f"{where}: {each} is superseded and still there"
            elif each.value is not None:
                assert each in after, f"{where}: {each} was the newest of its key, and is gone"
        assert newest(self.decided(after)) == newest(self.decided(self.written)), where

    def reopen(self) -> None:
        self.world.close(self.log)
        self.log = self.world.open(clean=self.rng.random() < 0.5)
        self.log.cleaned_to = self.cleaner.cleaned_to
        assert not [each for each in self.world.warnings if "rebuilt" in each], self.world.warnings

    def clean_all(self) -> None:
        """Passes until nothing is dirty: then each key stands once, and no tombstone outlives its time."""
        for producer_id in list(self.open):
            self.end(producer_id)
        self.log.roll(NOW)
        last = put(self.log, (b"end", b"end"))
        self.written.append(Kept(last.first_offset, 0, b"end", b"end"))
        for _ in range(300):
            self.cleaner.now_ms += 600
            self.cleaner.clean(self.log)
            dirt = self.cleaner.dirt(self.log)
            if dirt.first_dirty_offset == dirt.end_offset:
                break
        self.sweep()
        found = records_of(self.log)
        assert len({each.key for each in found}) == len(found), f"seed {self.seed}"
        assert newest(found) == newest(self.decided(self.written)), f"seed {self.seed}"
        assert all(each.value is not None for each in found), f"seed {self.seed}"

    def sweep(self) -> None:
        """Two passes more, with the tombstones' time between them: the first may have set the horizon."""
        for _ in range(2):
            self.cleaner.now_ms += 2000
            self.cleaner.clean(self.log)


@pytest.mark.parametrize("first", some(range(0, 120, 30), 0))
def test_the_newest_record_of_each_key_stays(first: int) -> None:
    for seed in range(first, first + 30):
        ModelRun(seed).run()


@pytest.mark.slow
def test_the_newest_record_of_each_key_stays_in_many_logs() -> None:
    for seed in range(1000, 2000):
        ModelRun(seed).run()
