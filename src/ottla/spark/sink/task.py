"""One task's rows to the brokers.

Spark hands Arrow batches over one after the other. While the loop's thread makes batches of Kafka's of one and sends
them, the task's thread receives the next from the JVM; no more than one is between the two, so that the rows of a
partition keep their order. Acknowledgements are not waited for before the end.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any, NamedTuple

from ottla.client.errors import KafkaError
from ottla.client.producing.arrow import EnteredRows, enter_table
from ottla.spark.sink.errors import RowsNotWritten, what_to_change

if TYPE_CHECKING:
    from ottla.client.producing.producer import Producer
    from ottla.client.records import WrittenRows
    from ottla.client.sync.loop_thread import LoopThread
    from ottla.spark.sink.exactly_once.checksum import TakenColumns


class TaskOutcome(NamedTuple):
    rows: int
    #: Some of the last ones of which a broker has said where they are; None where there were none.
    last: WrittenRows | None


class TaskRows:
    """The rows of one task, in the loop's thread."""

    def __init__(self, producer: Producer, topic: str | None) -> None:
        self._producer = producer
        self._topic = topic
        #: What is not known to be acknowledged, the oldest first; `buffer.memory` bounds what it holds.
        self._entered: deque[EnteredRows] = deque()
        #: Known at the end.
        self.last: WrittenRows | None = None

    async def add(self, rows: Any, first_row: int) -> None:
        """Into the queues. Raises what is known by now of rows that were added before, and of these."""
        entered = await enter_table(self._producer, rows, self._topic, first_row)
        self._entered = deque(one for one in self._entered if not one.settled())
        if entered.fault is not None:
            raise entered.fault
        self._entered.append(entered)

    def waiting(self) -> int:
        """How many batches of Kafka's are not known to be acknowledged."""
        return sum(len(one) for one in self._entered)

    async def end(self) -> None:
        """Until all are acknowledged."""
        while self._entered:
            for one in await self._entered.popleft().written():
                self.last = one if one.offset >= 0 else self.last


def write_rows(
    batches: Iterator[Any], columns: TakenColumns, topic: str | None, producer: Producer, thread: LoopThread, where: str
) -> TaskOutcome:
    """When all are acknowledged. `where` says whose they are, for what is said of them."""
    task = TaskRows(producer, topic)
    count = 0
    adding: Future[None] | None = None
    try:
        for batch in batches:
            if not batch.num_rows:
                continue
            rows = columns.taken_from(batch, count)
            if adding is not None:
                adding.result()
            adding = thread.begin(lambda rows=rows, first=count: task.add(rows, first))  # type: ignore[misc]
            count += batch.num_rows
        if adding is not None:
            adding.result()
        thread.run(task.end)
    except KafkaError as error:
        raise RowsNotWritten(f"{where}: {error}{what_to_change(error)}") from error
    finally:
        if adding is not None:
            adding.cancel()
    return TaskOutcome(count, task.last)
