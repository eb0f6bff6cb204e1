"""The log against a list: whatever is done, in whatever order, it gives back what a list would."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from tests.searches import examples
from tests.storage.at_once import begin_anew_at, cut_to, expire, first_at_or_after
from tests.storage.log_world import NOW, World, batch, read_all

from ottla.config.log import LogConfig
from ottla.storage.errors import OffsetOutsideLog

MINUTE = 60_000


class LogMachine(RuleBasedStateMachine):
    """`model` holds (first offset, values, timestamp) of each batch that the log has."""

    @initialize(
        segment_bytes=st.sampled_from([700, 1500, 5000]),
        interval=st.sampled_from([0, 100, 4096]),
        index_bytes=st.sampled_from([40, 10 << 20]),
    )
    def begin(self, segment_bytes: int, interval: int, index_bytes: int) -> None:
        config = LogConfig(
            segment_bytes=segment_bytes,
            segment_index_bytes=index_bytes,
            index_interval_bytes=interval,
            segment_ms=30 * MINUTE,
            retention_ms=60 * MINUTE,
        )
        self.world = World(config=config)
        self.log = self.world.open()
        self.model: list[tuple[int, list[bytes], int]] = []
        self.staged: list[tuple[int, list[bytes], int]] = []
        self.start = self.end = 0
        self.now = NOW
        self.count = 0

    def _values(self, sizes: list[int]) -> list[bytes]:
        self.count += 1
        return [b"%d." % self.count + b"v" * size for size in sizes]

    @rule(sizes=st.lists(st.integers(0, 120), min_size=1, max_size=4), ago=st.integers(0, 40))
    def stage(self, sizes: list[int], ago: int) -> None:
        values, timestamp = self._values(sizes), self.now - ago * MINUTE
        appended = self.log.stage(batch(*values, timestamp=timestamp), leader_epoch=1, now_ms=self.now)
        # A roll in between writes what was staged before.
        written = [entry for entry in self.staged if entry[0] < self.log.end_offset]
        self.model += written
        self.staged = [entry for entry in self.staged if entry[0] >= self.log.end_offset]
        self.end = self.log.end_offset
        expected = self.staged[-1][0] + len(self.staged[-1][1]) if self.staged else self.end
        assert appended.first_offset == expected
        assert appended.last_offset == expected + len(values) - 1
        self.staged.append((expected, values, timestamp))

    @rule()
    def write(self) -> None:
        self.log.write_staged()
        self.model += self.staged
        if self.staged:
            self.end = self.staged[-1][0] + len(self.staged[-1][1])
        self.staged = []

    @rule()
    def discard(self) -> None:
        self.log.discard_staged()
        self.staged = []

    @rule(minutes=st.integers(0, 20))
    def time_passes(self, minutes: int) -> None:
        self.now += minutes * MINUTE

    @rule(share=st.floats(0, 1))
    def truncate(self, share: float) -> None:
        self.staged = []
        offset = self.start + int((self.end - self.start) * share)
        cut_to(self.log, offset)
        while self.model and self.model[-1][0] + len(self.model[-1][1]) > offset:
            self.end = self.model.pop()[0]
        self.start = min(self.start, self.end)
        assert self.log.end_offset == self.end

    @rule(ahead=st.integers(0, 1000))
    def start_anew(self, ahead: int) -> None:
        self.staged = []
        self.model = []
        self.start = self.end = self.end + ahead
        begin_anew_at(self.log, self.start)

    @rule(share=st.floats(0, 1))
    def delete_records(self, share: float) -> None:
        self.start += int((self.end - self.start) * share)
        self.log.advance_start(self.start, self.end)

    @precondition(lambda self: not self.staged)
    @rule(share=st.floats(0, 1))
    def expire(self, share: float) -> None:
        watermark = self.start + int((self.end - self.start) * share)
        before = {segment.base_offset for segment in self.log.segments}
        for removal in expire(self.log, self.now, watermark):
            removal.run()
        kept = [segment.base_offset for segment in self.log.segments]
        assert kept[0] <= max(watermark, self.start)
        gone = [entry for entry in self.model if entry[0] < kept[0]]
        assert all(entry[0] + len(entry[1]) <= max(watermark, self.start) for entry in gone)
        if kept[0] > self.start:
            assert all(entry[2] < self.now - 60 * MINUTE for entry in gone if entry[0] >= self.start)
            self.start = kept[0]
        assert before.issuperset(kept[:-1])
        self._drop_below(kept[0])

    def _drop_below(self, offset: int) -> None:
        self.model = [entry for entry in self.model if entry[0] + len(entry[1]) > offset]

    @rule()
    def roll(self) -> None:
        self.write()
        self.log.roll(self.now)
        assert self.log.active.size == 0

    @rule()
    def flush(self) -> None:
        self.world.flush(self.log)
        assert self.log.recovery_point == self.end

    @rule(clean=st.booleans(), point=st.floats(0, 1))
    def restart(self, clean: bool, point: float) -> None:
        self.staged = []
        if clean:
            self.world.close(self.log)
        else:
            self.log.abandon()
            self.world.recovery_point = int(self.log.end_offset * point)
            self.world.start_offset = self.log.start_offset
        size, bases = self.log.size, [segment.base_offset for segment in self.log.segments]
        while not clean and len(bases) > 1 and bases[1] <= self.start:
            # What was deleted and not yet removed goes at once.
            size -= self.log.segments[len(self.log.segments) - len(bases)].size
            del bases[0]
        self._drop_below(bases[0])
        self.log = self.world.open(clean=clean, now_ms=self.now)
        assert (self.log.size, [segment.base_offset for segment in self.log.segments]) == (size, bases)
        assert self.world.warnings == []

    @rule(timestamp=st.integers(0, 60))
    def find_time(self, timestamp: int) -> None:
        wanted = self.now - timestamp * MINUTE
        found = first_at_or_after(self.log, wanted, self.end)
        expected = [
            (time + number, first + number)
            for first, values, time in self.model
            for number in range(len(values))
            if time + number >= wanted and first + number >= self.start
        ]
        assert (found is None) == (not expected)
        if found is not None:
            assert (found.timestamp, found.offset) == expected[0]

    @rule(share=st.floats(0, 1), max_bytes=st.integers(1, 2000))
    def read_somewhere(self, share: float, max_bytes: int) -> None:
        offset = self.start + int((self.end - self.start) * share)
        if offset == self.end:
            assert self.log.read(offset, max_bytes, self.end).size == 0
            return
        limit = Random(max_bytes).randint(offset, self.end)
        taken = self.log.read(offset, max_bytes, limit)
        below = [entry for entry in self.model if offset < entry[0] + len(entry[1]) <= limit]
        assert (taken.size == 0) == (not below)
        assert len(taken.read()) == taken.size

    @invariant()
    def holds_what_the_list_holds(self) -> None:
        if not hasattr(self, "model"):
            return
        log = self.log
        assert (log.start_offset, log.end_offset) == (self.start, self.end)
        expected = [(first + number, value) for first, values, _ in self.model for number, value in enumerate(values)]
        assert read_all(log) == [pair for pair in expected if pair[0] >= self.start]
        assert log.size == sum(segment.size for segment in log.segments)
        assert [segment.base_offset for segment in log.segments] == log.places.bases
        for offset in (self.start - 1, self.end + 1):
            with pytest.raises(OffsetOutsideLog):
                log.read(offset, 100, self.end)


TestLogModel = LogMachine.TestCase
TestLogModel.settings = examples(60, stateful_step_count=40)
