"""Tables of rows to batches, and these to their partitions' queues, where they are sent as all others are.

Rows are placed as the partitioner `murmur2` places records: by the column `partition`, else by the key's hash, else to
one partition after the other. A batch holds up to `batch.size`, and `buffer.memory` bounds what waits: a large table
goes through it piece by piece.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from ottla.arrow.encoding import Encoder
from ottla.arrow.errors import BadColumns, BadRow, RowTooLarge
from ottla.arrow.given import checked_names, table_of
from ottla.arrow.library import pa
from ottla.arrow.plain_encoding import WriteBounds
from ottla.arrow.schema import PARTITION, TOPIC
from ottla.client.arguments import checked_topic
from ottla.client.errors import BadArgument, KafkaError, RecordTooLarge
from ottla.client.producing.accumulator import RECORD_OVERHEAD
from ottla.client.producing.batches import ProducerBatch
from ottla.client.records import WrittenRows
from ottla.records.batch import HEADER_SIZE

if TYPE_CHECKING:
    from ottla.client.producing.producer import Producer


class EnteredRows:
    """A table's rows in their partitions' queues, and what becomes of them."""

    def __init__(self) -> None:
        self._batches: list[ProducerBatch] = []
        #: What kept the rest of the table from its queues.
        self.fault: KafkaError | None = None

    def add(self, batch: ProducerBatch) -> None:
        self._batches.append(batch)

    def __len__(self) -> int:
        return len(self._batches)

    def settled(self) -> bool:
        """Lets go of what was written; whether nothing is left. Raises the first error that is known.

        For callers that do not ask where rows are: a row that waits for its leader keeps no others in memory.
        """
        if self.fault is not None:
            raise self.fault
        left = []
        for batch in self._batches:
            for part in _parts(batch):
                if part.error is not None:
                    raise _with_its_size(part, part.error)
                if not part.done:
                    left.append(part)
        self._batches = left
        return not left

    async def written(self) -> list[WrittenRows]:
        """All of them, or the first error when the outcome of all that was queued is known."""
        fault, written = self.fault, []
        for batch in [each for whole in self._batches for each in await _ended(whole)]:
            if batch.error is not None:
                fault = fault or _with_its_size(batch, batch.error)
            written.append(WrittenRows(batch.queue.topic, batch.queue.partition, batch.base_offset, batch.count))
        if fault is not None:
            raise fault
        return written


async def enter_table(producer: Producer, rows: Any, topic: str | None, first_row: int = 0) -> EnteredRows:
    """Returns when all rows are in their queues, or one is known that cannot be. Errors count from `first_row` on."""
    producer.check_places_rows()
    entered = EnteredRows()
    try:
        table = table_of(rows)
        checked_names(table)
        for name, part in _by_topic(table, topic, first_row):
            try:
                await _enter(producer, name, part, entered)
            except BadRow as bad:
                raise _numbered(bad, table, name, first_row, whole=part is table) from bad
    except (BadRow, BadColumns) as error:
        entered.fault = BadArgument(str(error))
    except KafkaError as error:
        entered.fault = error
    return entered


async def _enter(producer: Producer, topic: str, table: Any, entered: EnteredRows) -> None:
    partitions, turns = await producer.led_partitions(topic, _highest_partition(table))
    settings = producer.settings
    most = max(HEADER_SIZE + 1, min(settings.max_request_size, settings.buffer_memory - RECORD_OVERHEAD))
    bounds = WriteBounds(partitions, producer.now_ms(), max(1, min(settings.batch_size, most)), most)
    for batch in Encoder(bounds, turns).batches(table):
        entered.add(await producer.enter_batch(topic, batch.partition, batch))


def _highest_partition(table: Any) -> int | None:
    """That rows name, if any does."""
    if PARTITION not in table.schema.names or not pa.types.is_integer(table.schema.field(PARTITION).type):
        return None
    import pyarrow.compute as pc

    highest: int | None = pc.max(table[PARTITION]).as_py()
    return highest


def _numbered(bad: BadRow, table: Any, topic: str, first_row: int, *, whole: bool) -> KafkaError:
    """What is wrong with a row, as the caller counts rows: those of other topics stand between."""
    row = bad.row
    if not whole:
        row = [number for number, name in enumerate(table[TOPIC].to_pylist()) if name == topic][row]
    kind = RecordTooLarge if isinstance(bad, RowTooLarge) else BadArgument
    return kind(f"row {first_row + row}: {bad.message}")


def _with_its_size(batch: ProducerBatch, error: KafkaError) -> KafkaError:
    """A broker that refuses a size does not say which."""
    if batch.count > 1 or not isinstance(error, RecordTooLarge):
        return error
    return RecordTooLarge(f"{error}; the record alone makes a batch of {batch.builder.size} bytes", code=error.code)


def _parts(batch: ProducerBatch) -> Iterator[ProducerBatch]:
    """What it was split into by now, or itself."""
    if not batch.parts:
        yield batch
    for part in batch.parts:
        yield from _parts(part)


async def _ended(batch: ProducerBatch) -> list[ProducerBatch]:
    """The batch when its outcome is known, or what it was split into."""
    pending, ended = [batch], []
    while pending:
        one = pending.pop(0)
        await one.wait()
        if one.parts:
            pending[:0] = one.parts
        else:
            ended.append(one)
    return ended


def _by_topic(table: Any, topic: str | None, first_row: int) -> Iterator[tuple[str, Any]]:
    """A topic that is given counts more than a column. In a topic the rows keep their order."""
    if topic is not None:
        yield checked_topic(topic), table
        return
    if TOPIC not in table.schema.names:
        raise BadColumns("there is no topic: give one, or a column 'topic'")
    import pyarrow.compute as pc

    column = table[TOPIC]
    if column.null_count:
        raise BadRow(first_row + column.to_pylist().index(None), "it has no topic")
    try:
        column = column.cast(pa.string())
    except pa.ArrowException as error:
        raise BadColumns(f"column 'topic' is {column.type}, not a string") from error
    names = pc.unique(column).to_pylist()
    if len(names) == 1:
        yield checked_topic(names[0]), table
        return
    for name in names:
        yield checked_topic(name), table.filter(pc.equal(column, name))
