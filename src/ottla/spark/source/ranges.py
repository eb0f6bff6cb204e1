"""What a task does: reads the offsets of a split, and nothing else, in the order in which they lie.

    fetch ----> answer ----> Arrow batches ----> Spark
                  |
                  +--> the next fetch, which is on its way while the answer is decoded

The thread of the link fetches; the task's own thread decodes. Fetches name the topic by its id where brokers know ids,
so that a topic that was made again under the same name is never read for the one that was planned. A range ends when a
batch at or behind its end has been seen: compaction and markers leave gaps, also at the end.

With direct reading an answer may be a piece of the partition's files instead (`direct`).

No offset is ever reset. One that is not there any more goes to the loss policy, which raises or says what is left out.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Generator, Iterator
from concurrent.futures import Future
from typing import Any, Final, Protocol

from ottla.arrow.decoding import Decoder
from ottla.arrow.errors import UnrepresentableTime
from ottla.arrow.survey import ReadBounds
from ottla.client.errors import KafkaError
from ottla.client.wire.backoff import Backoff
from ottla.client.wire.cluster import Cluster
from ottla.client.wire.offsets import READ_COMMITTED
from ottla.client.wire.world import real_world
from ottla.model import ErrorCode, TopicPartition
from ottla.protocol.generated.fetch import PartitionData
from ottla.records.aborted import AbortedTransactions
from ottla.records.batch import iterate
from ottla.records.errors import RecordError
from ottla.spark.source.bounds import Offsets
from ottla.spark.source.errors import ReadFailed
from ottla.spark.source.fetching import FetchedStretch, PartitionFetches
from ottla.spark.source.links import Link
from ottla.spark.source.loss import LossPolicy
from ottla.spark.source.settings import POLL_TIMEOUT
from ottla.spark.source.splits import Split

#: So long metadata say, and nothing else happens, that a topic is not there, or is another, until that is believed: a
#: broker may have just begun, or lag behind. A leader that knows no such id, and metadata do, has not heard of it yet.
_HEARD_SECONDS: Final = 2.0
_NOT_THERE: Final = frozenset(
    {ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.UNKNOWN_TOPIC_ID, ErrorCode.INCONSISTENT_TOPIC_ID}
)


class PendingStretch(Protocol):
    """What will be there when it is asked for."""

    def result(self) -> FetchedStretch | None: ...

    def cancel(self) -> object: ...


class FileReading(Protocol):
    """What of the split is read without the leader: `ottla.spark.source.direct`."""

    def covers(self, offset: int) -> bool: ...

    def read(self, offset: int) -> FetchedStretch | None:
        """None where the leader is to be asked. What was read before is overwritten."""
        ...

    def leave(self, why: str) -> None:
        """From now on nothing is covered."""
        ...

    def close(self) -> None: ...


class _FromFile:
    """Read when it is asked for: what is there then is decoded before the next is read."""

    def __init__(self, files: FileReading, offset: int, ask: Callable[[int], PendingStretch]) -> None:
        self._files = files
        self._offset = offset
        self._ask = ask

    def result(self) -> FetchedStretch | None:
        found = self._files.read(self._offset)
        return self._ask(self._offset).result() if found is None else found

    def cancel(self) -> None:
        """Nothing has begun."""


class RangeReader:
    """Of one split. `batches` may be called once."""

    def __init__(
        self,
        link: Link,
        split: Split,
        columns: tuple[str, ...],
        loss: LossPolicy,
        patience_ms: int,
        files: FileReading | None = None,
    ) -> None:
        self._link = link
        self._settings = link.settings
        self._split = split
        self._tp: TopicPartition = split.tp
        self._columns = columns
        self._loss = loss
        self._patience_ms = patience_ms
        self._files = files
        settings = link.settings
        self._fetches = PartitionFetches(settings, split)
        self._backoff = Backoff(settings.retry_backoff_ms, settings.retry_backoff_max_ms, real_world().entropy)

    def batches(self) -> Iterator[Any]:
        """Arrow batches with every record of the split that there is."""
        until = self._split.until
        pending: PendingStretch | None = self._begin(self._split.first)
        try:
            while pending is not None:
                fetched = pending.result()
                if fetched is None:
                    return
                pending = self._begin(fetched.next_offset) if fetched.next_offset < until else None
                damaged_at = yield from self._decoded(fetched)
                if damaged_at is not None:
                    if pending is not None:
                        pending.cancel()
                    pending = self._begin(damaged_at)
        finally:
            if pending is not None:
                pending.cancel()
            if self._files is not None:
                self._files.close()

    def _begin(self, offset: int) -> PendingStretch:
        if self._files is not None and self._files.covers(offset):
            return _FromFile(self._files, offset, self._asked)
        return self._asked(offset)

    def _asked(self, offset: int) -> Future[FetchedStretch | None]:
        return self._link.begin(lambda cluster: self._fetched(cluster, offset))

    # In the task's thread

    def _decoded(self, fetched: FetchedStretch) -> Generator[Any, None, int | None]:
        """Gives out the Arrow batches; the offset to ask the leader for, where a file has damage there."""
        bounds = ReadBounds(first=fetched.first, until=fetched.until, check_crcs=self._settings.check_crcs)
        decoder = Decoder(*self._tp, self._columns, bounds)
        aborted = None if fetched.aborted is None else AbortedTransactions(fetched.aborted)
        pos, ended, reached = 0, False, fetched.first
        while not ended and pos < fetched.end:
            try:
                found = decoder.step(fetched.buf, pos, fetched.end, aborted)
            except UnrepresentableTime as error:
                raise ReadFailed(f"{self._tp}: {error}") from error
            except RecordError as error:
                if fetched.file is not None and self._files is not None:
                    self._files.leave(f"{fetched.file} is damaged at offset {reached} or soon behind it: {error}")
                    return max(reached, fetched.first)  # it may lie before what is wanted
                raise ReadFailed(
                    f"{self._tp}: the batch at offset {reached} or soon behind it is damaged: {error}; name offsets "
                    "behind it in startingOffsets to read on"
                ) from error
            pos, ended = found.pos, found.ended
            reached = reached if found.next_offset is None else found.next_offset
            for rows in found.rows:
                yield rows.batch
        return None

    # In the link's thread

    async def _fetched(self, cluster: Cluster, offset: int) -> FetchedStretch | None:
        """The batches from an offset on, asked for until they come; None where nothing is left of the split."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + self._patience_ms / 1000
        failures = 0
        last: KafkaError | None = None
        gone_since: float | None = None
        while True:
            try:
                async with asyncio.timeout_at(deadline):
                    answered = await self._fetches.answer(cluster, offset)
                    fetched = self._whole_batches(answered, offset)
                if fetched is not None:
                    return fetched
                last = gone_since = None
            except TimeoutError:
                await self._give_up(cluster, offset, last)
                return None
            except KafkaError as error:
                if error.code is ErrorCode.OFFSET_OUT_OF_RANGE:
                    moved = await self._moved(cluster, offset)
                    if moved is None:
                        return None
                    offset = moved
                elif error.code not in _NOT_THERE and not error.retriable:
                    raise ReadFailed(f"{self._tp}: nothing could be read at offset {offset}: {error}") from error
                is_gone = error.code in _NOT_THERE and self._fetches.is_gone(cluster)
                gone_since = (gone_since or loop.time()) if is_gone else None
                if gone_since is not None and loop.time() - gone_since >= _HEARD_SECONDS:
                    self._loss.lost(self._tp, offset, self._split.until, "the topic was deleted, or made again")
                    return None
                last = error
                failures += 1
                cluster.request_update()
            if loop.time() >= deadline:
                await self._give_up(cluster, offset, last)
                return None
            if last is not None:
                await asyncio.sleep(self._backoff.pause_ms(failures) / 1000)

    def _whole_batches(self, answered: PartitionData, offset: int) -> FetchedStretch | None:
        """None where nothing came, for now."""
        records = answered.records
        if records is None or not len(records):
            return None
        end, last = 0, None
        fault: RecordError | None = None
        try:
            for pos, header in iterate(records, 0, len(records)):
                end, last = pos + header.size, header
        except RecordError as error:
            fault = error
        if last is None:
            if fault is None:
                raise ReadFailed(
                    f"{self._tp}: the batch at offset {offset} did not come whole: ask the broker's keeper"
                )
            raise ReadFailed(f"{self._tp}: what came at offset {offset} is no batch: {fault}") from fault
        aborted = None
        if self._fetches.isolation == READ_COMMITTED:
            aborted = [(one.first_offset, one.producer_id) for one in answered.aborted_transactions or ()]
        return FetchedStretch(offset, self._split.until, records, end, max(offset + 1, last.next_offset), aborted)

    # What is not there any more

    async def _moved(self, cluster: Cluster, offset: int) -> int | None:
        """Where to go on when an offset is out of range; None where nothing is left."""
        try:
            earliest, latest = (await Offsets(cluster, self._settings).ends([self._tp]))[self._tp]
        except KafkaError as error:
            if not error.retriable:
                raise
            return offset  # what keeps brokers from saying it the next fetch meets as well
        if offset < earliest:
            gone_until = min(earliest, self._split.until)
            self._loss.lost(
                self._tp,
                offset,
                gone_until,
                f"the log begins at offset {earliest} now: retention or a deletion has removed what lies before",
            )
            return earliest if earliest < self._split.until else None
        if offset > latest:
            self._loss.lost(self._tp, offset, self._split.until, f"the log ends at offset {latest} now")
            return None
        return offset

    async def _give_up(self, cluster: Cluster, offset: int, last: KafkaError | None) -> None:
        """Nothing came for so long: because the log ends before, or for a reason that the last error names."""
        seconds = self._patience_ms / 1000
        if last is None:
            try:
                latest = (await Offsets(cluster, self._settings).latest([self._tp]))[self._tp]
            except KafkaError as error:
                last = error
            else:
                # Not where there are records from this offset on, which did not come in time.
                if latest <= offset:
                    self._loss.lost(self._tp, offset, self._split.until, f"the log ends at offset {latest} now")
                    return
        why = "no record came" if last is None else f"it was tried again and again: {last}"
        raise ReadFailed(
            f"{self._tp}: nothing could be read at offset {offset} for {seconds:g} s: {why} "
            f"({POLL_TIMEOUT} is how long a task tries)"
        ) from last
