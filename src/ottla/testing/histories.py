"""What clients of a cluster did and saw, and whether any order of events without a fault explains it.

Values are unique, so that one value stands for one write. Clients note here what they sent and what became of it,
readers what they polled, and at the end somebody who reads everything. `faults` then says what contradicts the brokers'
word:

    LOST        acknowledged, and not there at the end
    UNREAD      polled once, and not there at the end: it was shown before it was safe
    DOUBLED     one value at two offsets, though its producer is idempotent
    CLASH       two values at one offset
    MOVED       acknowledged or polled at one offset, and at another at the end
    REORDERED   a producer's later value stands before an earlier one, or was acknowledged with a lower offset
    UNWRITTEN   read, and nobody sent it, or its sender was answered that it was not written
    SKIPPED     a reader passed over a record that was there
    BACKWARDS   a reader was given a lower offset than before

What a setting permits is not decided here: acks=1 may lose what was acknowledged, and the caller counts.
"""

from __future__ import annotations

import threading
from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from enum import Enum
from itertools import pairwise
from typing import Final, NamedTuple

#: Examples of one kind in a report.
_SHOWN: Final = 5

Partition = tuple[str, int]
Row = tuple[int, str]


class FaultKind(Enum):
    LOST = "lost"
    UNREAD = "unread"
    DOUBLED = "doubled"
    CLASH = "clash"
    MOVED = "moved"
    REORDERED = "reordered"
    UNWRITTEN = "unwritten"
    SKIPPED = "skipped"
    BACKWARDS = "backwards"


class HistoryFault(NamedTuple):
    kind: FaultKind
    partition: Partition
    #: What it was about, in words.
    what: str


class _Producer:
    """What one producer did in one partition."""

    def __init__(self) -> None:
        #: In the order of its sends.
        self.sent: dict[str, int] = {}
        #: value -> offset, in the order of the answers; None where the answer did not say.
        self.acknowledged: dict[str, int | None] = {}
        #: Answered with an error that says that nothing was written.
        self.refused: set[str] = set()


class ClientHistory:
    """Any thread may note; `faults` is asked for when all have ended."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._producers: dict[Partition, dict[str, _Producer]] = defaultdict(lambda: defaultdict(_Producer))
        #: Reader -> its polls, each with where it began to read there anew.
        self._polls: dict[tuple[Partition, str], list[list[Row]]] = defaultdict(list)
        self._final: dict[Partition, list[Row]] = {}

    # -- notes

    def sent(self, producer: str, partition: Partition, value: str) -> None:
        """Before it is sent: one that is never answered may have been written."""
        with self._lock:
            found = self._producers[partition][producer].sent
            assert value not in found, f"{value!r} was sent before"
            found[value] = len(found)

    def acknowledged(self, producer: str, partition: Partition, value: str, offset: int | None) -> None:
        with self._lock:
            self._producers[partition][producer].acknowledged[value] = offset

    def refused(self, producer: str, partition: Partition, value: str) -> None:
        """The answer says that it was not written, and its producer does not send it again."""
        with self._lock:
            self._producers[partition][producer].refused.add(value)

    def assigned(self, reader: str, partition: Partition) -> None:
        """It begins to read there, at any offset."""
        with self._lock:
            self._polls[partition, reader].append([])

    def polled(self, reader: str, partition: Partition, rows: Iterable[Row]) -> None:
        with self._lock:
            self._polls[partition, reader][-1].extend(rows)

    def ended(self, partition: Partition, rows: Iterable[Row]) -> None:
        """All that a fresh reader finds, when everything has come to rest."""
        self._final[partition] = list(rows)

    # -- counts

    @property
    def sent_count(self) -> int:
        return sum(len(one.sent) for found in self._producers.values() for one in found.values())

    @property
    def acknowledged_count(self) -> int:
        return sum(len(one.acknowledged) for found in self._producers.values() for one in found.values())

    @property
    def polled_count(self) -> int:
        return sum(len(rows) for polls in self._polls.values() for rows in polls)

    # -- the verdict

    def faults(self, *, idempotent: bool = True) -> list[HistoryFault]:
        """Without `idempotent` values may be doubled and overtake one another, as retries make them."""
        found: list[HistoryFault] = []
        for partition in sorted({*self._final, *self._producers}):
            found += self._of(partition, idempotent=idempotent)
        return found

    def _of(self, partition: Partition, *, idempotent: bool) -> Iterator[HistoryFault]:
        final = self._final.get(partition, [])
        producers = self._producers[partition]
        polls = [rows for (read, _), all_rows in self._polls.items() if read == partition for rows in all_rows]
        places: dict[str, list[int]] = defaultdict(list)
        for offset, value in final:
            places[value].append(offset)

        def fault(kind: FaultKind, what: str) -> HistoryFault:
            return HistoryFault(kind, partition, what)

        if idempotent:
            for value, offsets in places.items():
                if len(offsets) > 1:
                    yield fault(FaultKind.DOUBLED, f"{value} stands at {offsets}")
        yield from self._clashes(partition, [final, *polls])
        yield from self._promises(partition, producers, places)
        yield from self._unwritten(partition, producers, [final, *polls])
        if idempotent:
            yield from self._orders(partition, producers, final)
        offsets = [offset for offset, _ in final]
        for rows in polls:
            for offset, value in rows:
                if value not in places:
                    yield fault(FaultKind.UNREAD, f"{value} was read at {offset} and is gone")
                elif offset not in places[value]:
                    yield fault(FaultKind.MOVED, f"{value} was read at {offset} and is at {places[value]}")
            for (before, _), (after, _) in pairwise(rows):
                if after <= before:
                    yield fault(FaultKind.BACKWARDS, f"{after} was read behind {before}")
                elif bisect_left(offsets, after) > bisect_right(offsets, before):
                    yield fault(FaultKind.SKIPPED, f"nothing was read between {before} and {after}")

    @staticmethod
    def _clashes(partition: Partition, readings: Sequence[Sequence[Row]]) -> Iterator[HistoryFault]:
        at: dict[int, str] = {}
        for rows in readings:
            for offset, value in rows:
                before = at.setdefault(offset, value)
                if before != value:
                    yield HistoryFault(FaultKind.CLASH, partition, f"{offset} was {before} and is {value}")

    @staticmethod
    def _promises(
        partition: Partition, producers: dict[str, _Producer], places: dict[str, list[int]]
    ) -> Iterator[HistoryFault]:
        for name, producer in producers.items():
            for value, offset in producer.acknowledged.items():
                found = places.get(value)
                if not found:
                    what = f"{value} of {name} was acknowledged at {offset} and is gone"
                    yield HistoryFault(FaultKind.LOST, partition, what)
                elif offset is not None and offset not in found:
                    what = f"{value} of {name} was acknowledged at {offset} and is at {found}"
                    yield HistoryFault(FaultKind.MOVED, partition, what)

    @staticmethod
    def _unwritten(
        partition: Partition, producers: dict[str, _Producer], readings: Sequence[Sequence[Row]]
    ) -> Iterator[HistoryFault]:
        refused = {value for producer in producers.values() for value in producer.refused}
        may_be = {value for producer in producers.values() for value in producer.sent} - refused
        said: set[str] = set()
        for rows in readings:
            for offset, value in rows:
                if value not in may_be and value not in said:
                    said.add(value)
                    why = "was refused" if value in refused else "nobody sent it"
                    yield HistoryFault(FaultKind.UNWRITTEN, partition, f"{value} was read at {offset}, and {why}")

    @staticmethod
    def _orders(partition: Partition, producers: dict[str, _Producer], final: Sequence[Row]) -> Iterator[HistoryFault]:
        for name, producer in producers.items():
            readings = [
                [(offset, value) for offset, value in final if value in producer.sent],
                sorted(
                    ((offset, value) for value, offset in producer.acknowledged.items() if offset is not None),
                    key=lambda row: producer.sent[row[1]],
                ),
            ]
            for rows in readings:
                for (place, before), (later, after) in pairwise(rows):
                    if producer.sent[after] < producer.sent[before] or later < place:
                        what = f"{name} sent {before} at {place} and {after} at {later} in the other order"
                        yield HistoryFault(FaultKind.REORDERED, partition, what)


def counted(faults: Sequence[HistoryFault]) -> dict[FaultKind, int]:
    return dict(Counter(fault.kind for fault in faults))


def summary(faults: Sequence[HistoryFault]) -> str:
    """Each kind with how often, and some of it."""
    lines = []
    for kind, count in counted(faults).items():
        lines.append(f"{kind.value}: {count}")
        of_kind = [fault for fault in faults if fault.kind is kind]
        lines += [f"    {topic}-{number}: {what}" for _, (topic, number), what in of_kind[:_SHOWN]]
    return "\n".join(lines) or "no fault"
