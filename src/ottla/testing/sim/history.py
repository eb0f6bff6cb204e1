"""What clients sent, what they were answered, what they saw; and whether a log agrees with it.

Values are unique, so one reading of a partition shows everything: a value that is missing, doubled, moved, out of its
producer's order, or that nobody sent.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence

from ottla.model import TopicPartition
from ottla.testing.sim.trace import Trace

#: Offset and value of a record.
Row = tuple[int, bytes]


class HistoryFault(Exception):
    """The broker broke its word."""


class History:
    def __init__(self, trace: Trace) -> None:
        self._trace = trace
        #: In each producer's order, by partition and producer.
        self.sent: dict[TopicPartition, dict[str, list[bytes]]] = defaultdict(dict)
        #: What was acknowledged, and at which offset; None where the answer did not say.
        self.acknowledged: dict[TopicPartition, dict[bytes, int | None]] = defaultdict(dict)
        #: What was acknowledged by a leader alone, and may be lost with it.
        self.uncertain: dict[TopicPartition, dict[bytes, int | None]] = defaultdict(dict)
        #: Called with the end of what was acknowledged for certain, at that moment.
        self.on_acknowledged: Callable[[TopicPartition, int], None] | None = None
        #: Producers whose values may overtake one another: what was sent on a connection that has stalled may arrive
        #: behind what was sent on the next one.
        self.unordered: set[str] = set()
        #: Before which offsets records may be gone: somebody has asked for that.
        self.trimmed: dict[TopicPartition, int] = {}
        #: What consumers saw on the way.
        self.seen: dict[TopicPartition, dict[int, bytes]] = defaultdict(dict)

    def send(self, tp: TopicPartition, producer: str, values: Sequence[bytes]) -> None:
        self.sent[tp].setdefault(producer, []).extend(values)

    def acknowledge(
        self, tp: TopicPartition, values: Sequence[bytes], first_offset: int | None, *, certain: bool = True
    ) -> None:
        """Not `certain`: a leader that fails may take it with itself, as under acks=1."""
        self._trace.say("acknowledged", f"{tp} {first_offset} {len(values)} from {values[0][:20]!r}")
        if certain and self.on_acknowledged is not None and first_offset is not None:
            self.on_acknowledged(tp, first_offset + len(values))
        known = self.acknowledged[tp] if certain else self.uncertain[tp]
        for place, value in enumerate(values):
            known[value] = None if first_offset is None else first_offset + place

    def see(self, tp: TopicPartition, rows: Sequence[Row]) -> None:
        seen = self.seen[tp]
        for offset, value in rows:
            before = seen.setdefault(offset, value)
            if before != value:
                raise HistoryFault(f"{tp}: offset {offset} was {before!r} and is {value!r}")

    def trim(self, tp: TopicPartition, before: int) -> None:
        """Records before that offset are asked to be deleted."""
        self.trimmed[tp] = max(before, self.trimmed.get(tp, 0))

    @property
    def acknowledged_count(self) -> int:
        return sum(map(len, self.acknowledged.values()))

    def check(self, tp: TopicPartition, found: Sequence[Row], *, durable: bool = True) -> None:
        """Raises HistoryFault. Without `durable` a log may have lost its end, and what was seen of it."""
        trimmed = self.trimmed.get(tp, 0)
        self._check_offsets(tp, found, trimmed)
        values = [value for _, value in found]
        at = {value: offset for offset, value in found}
        if len(at) != len(values):
            doubled = sorted({value for value in values if values.count(value) > 1})
            raise HistoryFault(f"{tp}: stands twice: {doubled[:5]}")
        self._check_order(tp, values)
        if not durable:
            return
        for value, offset in self.acknowledged[tp].items():
            if value not in at:
                if trimmed and (offset is None or offset < trimmed):
                    continue
                raise HistoryFault(f"{tp}: {value!r} was acknowledged at {offset} and is gone")
            if offset is not None and at[value] != offset:
                raise HistoryFault(f"{tp}: {value!r} was acknowledged at {offset} and is at {at[value]}")
        for offset, value in self.seen[tp].items():
            if at.get(value) != offset and not (value not in at and offset < trimmed):
                raise HistoryFault(f"{tp}: {value!r} was seen at {offset} and is at {at.get(value)}")

    @staticmethod
    def _check_offsets(tp: TopicPartition, found: Sequence[Row], trimmed: int) -> None:
        offsets = [offset for offset, _ in found]
        start = offsets[0] if offsets and offsets[0] <= trimmed else 0
        if offsets != list(range(start, start + len(offsets))):
            raise HistoryFault(f"{tp}: the offsets are not {start}, {start + 1}, {start + 2}, ...: {offsets}")

    def _check_order(self, tp: TopicPartition, values: Sequence[bytes]) -> None:
        place = {
            value: (producer, 0 if producer in self.unordered else number)
            for producer, sent in self.sent[tp].items()
            for number, value in enumerate(sent)
        }
        last: dict[str, int] = {}
        for value in values:
            if value not in place:
                raise HistoryFault(f"{tp}: nobody sent {value!r}")
            producer, number = place[value]
            if number < last.get(producer, -1):
                raise HistoryFault(f"{tp}: {value!r} stands behind a later one of {producer}")
            last[producer] = number
