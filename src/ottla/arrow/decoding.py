"""Record batches to Arrow batches.

A stretch of bytes, as a fetch or a segment file brings it, goes through in groups: `survey` finds as many batches as
make an Arrow batch, those that are compressed are unfolded, and then one pass over the bytes fills the columns. An
Arrow batch ends where the next would make it too long, where the type of the batches' times changes (so that this
column is a constant), and in front of damage: what comes before it is given out first, and the next call raises it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final, NamedTuple

from ottla.arrow.judge import judged
from ottla.arrow.library import pa
from ottla.arrow.memory import HEADER_BYTES_MIN, FilledColumns, Memory
from ottla.arrow.schema import (
    HEADERS,
    OFFSET,
    PARTITION,
    TIMESTAMP_TYPE,
    TOPIC,
    checked_columns,
    constant,
    schema_of,
)
from ottla.arrow.survey import Place, ReadBounds, Survey, judged_survey, survey
from ottla.native import compiled_columns
from ottla.records.aborted import AbortedTransactions
from ottla.records.batch import HEADER_SIZE, Readable, parse_header
from ottla.records.compression import DECOMPRESSED_BYTES_MAX, NONE, decompress
from ottla.records.errors import RecordError
from ottla.records.record import RECORD_BYTES_MIN

_compiled: Final = compiled_columns()
_SOUND, _IN_DOUBT, _NO_ROOM = range(3)
#: A guess at the number of headers; where it is too low the pass is made again with room for all that there can be.
_HEADERS_A_ROW: Final = 4


class Rows(NamedTuple):
    """An Arrow batch, and the offset behind its last record and behind all that was passed over after it."""

    batch: Any
    next_offset: int


class Stretch(NamedTuple):
    """What a step found: no rows, or those of one Arrow batch, in pieces of `rows_max` at most."""

    rows: list[Rows]
    #: Where the next step begins.
    pos: int
    #: Behind all that was looked at; None where that is nothing.
    next_offset: int | None
    leader_epoch: int
    ended: bool


class Decoder(NamedTuple):
    """What is asked of the records of a partition."""

    topic: str
    partition: int
    columns: tuple[str, ...]
    bounds: ReadBounds

    def step(self, buf: Readable, pos: int, end: int, aborted: AbortedTransactions | None = None) -> Stretch:
        """Goes on from `pos`; raises a RecordError for what is wrong with the first batch there.

        `aborted` is then as it was: who leaves a column out, or reads records instead, begins there once more.
        """
        if end < len(buf) or type(buf) is not memoryview:
            buf = memoryview(buf)[:end]
        if aborted is None or not aborted.any:
            return self._stepped(buf, pos, end, aborted, None)
        before = aborted.copy()
        try:
            return self._stepped(buf, pos, end, aborted, before)
        except BaseException:
            aborted.restore(before)
            raise

    def _stepped(
        self,
        buf: Readable,
        pos: int,
        end: int,
        aborted: AbortedTransactions | None,
        before: AbortedTransactions | None,
    ) -> Stretch:
        """`before` is what `aborted` is when it begins, if that can hide anything."""
        found = survey(buf, pos, end, self.bounds, aborted)
        if not found.places:
            return Stretch([], found.pos, found.next_offset, found.leader_epoch, found.ended)
        many = sum(place[3] for place in found.places) > self.bounds.rows_max
        done, rows, columns = self._filled(buf, found.places, offsets=many)
        if done < len(found.places):
            if aborted is not None and before is not None:
                # It has seen batches that come again.
                aborted.restore(before)
                judged_survey(buf, pos, end, self.bounds, aborted, places_max=done)
            found = _cut(buf, found, done)
        assert found.next_offset is not None
        made = self._batches(rows, columns, found.time_type, found.next_offset)
        return Stretch(made, found.pos, found.next_offset, found.leader_epoch, found.ended)

    def _filled(self, buf: Readable, places: list[Place], *, offsets: bool) -> tuple[int, int, dict[str, Any]]:
        """How many of the places were read, how many rows they have, and the columns that differ by row."""
        if _compiled is not None:
            payloads = self._unfolded(buf, places)
            found = self._in_one_pass(buf, places[: len(payloads)], payloads, offsets=offsets)
            if found is not None:
                return found
            places = places[:1]
        return judged(buf, places, self.columns, self.bounds, offsets=offsets)

    def _unfolded(self, buf: Readable, places: list[Place]) -> list[bytes | None]:
        """The payloads of what is compressed; fewer than there are places where that is enough, or where one is bad."""
        payloads: list[bytes | None] = []
        payload: bytes | None
        total = 0
        for pos, size, codec, count in places:
            if codec == NONE:
                if size - HEADER_SIZE > DECOMPRESSED_BYTES_MAX:
                    return payloads
                payload, unfolded = None, size
            else:
                try:
                    payload = bytes(decompress(codec, buf[pos + HEADER_SIZE : pos + size], DECOMPRESSED_BYTES_MAX))
                except RecordError:
                    return payloads  # the judge says what is wrong with it, when it is the first
                if count * RECORD_BYTES_MIN > len(payload):
                    return payloads
                unfolded = len(payload)
            total += unfolded
            if total > self.bounds.bytes_max and payloads:
                return payloads
            payloads.append(payload)
        return payloads

    def _in_one_pass(
        self, buf: Readable, places: list[Place], payloads: list[bytes | None], *, offsets: bool
    ) -> tuple[int, int, dict[str, Any]] | None:
        """None where the first batch is in doubt."""
        if not places:
            return None
        assert _compiled is not None
        rows = sum(place[3] for place in places)
        size = sum(
            place[1] - HEADER_SIZE if payload is None else len(payload)
            for place, payload in zip(places, payloads, strict=True)
        )
        headers_all = size // HEADER_BYTES_MIN
        headers_max = min(headers_all, _HEADERS_A_ROW * rows) if HEADERS in self.columns else 0
        first, until, _, _, check_crcs = self.bounds
        while True:
            memory = Memory(self.columns, rows, size, headers_max, offsets=offsets)
            groups = _compiled.fill(buf, tuple(places), tuple(payloads), memory.rooms(), rows, first, until, check_crcs)
            filled = FilledColumns(*(number for group in groups for number in group))
            if filled.verdict != _NO_ROOM:
                break
            assert headers_max < headers_all, "rows and bytes are no more than there is room for"
            headers_max = headers_all
        if not filled.batches:
            return None
        return filled.batches, filled.rows, memory.arrays(filled)

    def _batches(self, rows: int, columns: dict[str, Any], time_type: int, next_offset: int) -> list[Rows]:
        """Arrow batches of all these rows. The last one's next offset is that of the whole group."""
        if not rows:
            return []
        rows_max = self.bounds.rows_max
        if rows <= rows_max:
            return [Rows(self._batch(columns, 0, rows, time_type), next_offset)]
        offsets = columns[OFFSET]
        made = []
        for start in range(0, rows, rows_max):
            count = min(rows_max, rows - start)
            behind = next_offset if start + count == rows else offsets[start + count - 1].as_py() + 1
            made.append(Rows(self._batch(columns, start, count, time_type), behind))
        return made

    def _batch(self, columns: dict[str, Any], start: int, count: int, time_type: int) -> Any:
        same: dict[str, str | int] = {TOPIC: self.topic, PARTITION: self.partition, TIMESTAMP_TYPE: time_type}
        arrays = []
        for name in self.columns:
            if name in same:
                arrays.append(constant(name, same[name], count))
            else:
                arrays.append(columns[name].slice(start, count) if count < len(columns[name]) else columns[name])
        return pa.RecordBatch.from_arrays(arrays, schema=schema_of(self.columns))


def _cut(buf: Readable, found: Survey, done: int) -> Survey:
    """The survey up to the batch in front of which the pass stopped."""
    assert done, "the first batch is read or raises"
    last = parse_header(buf, found.places[done - 1][0])
    return Survey(
        found.places[:done], found.places[done][0], last.next_offset, last.leader_epoch, found.time_type, ended=False
    )


def decode(
    buf: Readable,
    *,
    topic: str,
    partition: int,
    columns: Iterable[str] | None = None,
    bounds: ReadBounds | None = None,
    aborted: Iterable[tuple[int, int]] | None = None,
) -> Iterator[Any]:
    """The Arrow batches of `buf`, which holds whole batches of a partition and perhaps a part of one at its end.

    `aborted` is what a fetch of committed records says of them: (first offset, producer id) of each transaction to
    leave out. Raises a RecordError at damage, when everything before it has been given out.
    """
    decoding = Decoder(topic, partition, checked_columns(columns), (bounds or ReadBounds()).checked())
    hidden = None if aborted is None else AbortedTransactions(aborted)
    view = memoryview(buf)
    pos, ended = 0, False
    while not ended:
        found = decoding.step(view, pos, len(view), hidden)
        pos, ended = found.pos, found.ended
        for rows in found.rows:
            yield rows.batch
