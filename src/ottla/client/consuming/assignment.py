"""One assigned partition: where it is read, and what of it has been fetched and not been given out yet.

`position` is the next offset that the caller will see; `fetch_offset` runs ahead of it, behind what is buffered. A
seek makes a new `generation`: answers to what was asked before it are dropped.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from ottla.client.errors import CorruptRecords, KafkaError, SerializationFailed
from ottla.client.records import ConsumerRecord
from ottla.client.schemas import SchemaDeserializer, SchemaNotLoaded
from ottla.client.serializers import Deserializer
from ottla.client.wire.metadata import Metadata
from ottla.model import NO_BROKER, NO_EPOCH, TopicPartition
from ottla.records.aborted import AbortedTransactions
from ottla.records.batch import BatchHeader, Readable, iterate, parse_header
from ottla.records.errors import RecordError
from ottla.records.record import decode_placed

if TYPE_CHECKING:
    from ottla.arrow.decoding import Rows

#: Answers of one partition that are kept: one to give out, one to have ready when that is empty.
CHUNKS_MAX: Final = 2


class Chunk:
    """Whole batches as an answer brought them, decoded one at a time."""

    __slots__ = ("aborted", "buf", "end", "pos", "size", "topic_id")

    def __init__(self, topic_id: bytes, buf: Readable, end: int, aborted: Iterable[tuple[int, int]] | None) -> None:
        self.topic_id = topic_id
        self.buf = buf
        self.pos = 0
        #: Behind the last whole batch.
        self.end = end
        self.size = len(buf)
        #: Transactions to leave out; None: nothing is left out.
        self.aborted = None if aborted is None else AbortedTransactions(aborted)


class FetchedBatches(NamedTuple):
    """Whole batches of one partition, as an answer brought them: the first may begin before what was asked for."""

    partition: TopicPartition
    #: Of the topic that they were read of, as one of that name may be made again; zero where the broker is too old.
    topic_id: bytes
    #: Where the reader stood, and where it stands behind these.
    position: int
    next_position: int
    records: Readable
    #: The batches lie from here to there.
    begin: int
    end: int
    #: Transactions to leave out, for a reader of committed records.
    aborted: AbortedTransactions | None


class AssignedPartition:
    """Part of a consumer's state; the fetcher fills it, the consumer empties it."""

    __slots__ = (
        "_batch",
        "_index",
        "_records",
        "_rows",
        "_rows_epoch",
        "chunks",
        "error",
        "failures",
        "fetch_epoch",
        "fetch_offset",
        "generation",
        "held",
        "high_watermark",
        "last_stable_offset",
        "log_start_offset",
        "not_before_ms",
        "paused",
        "position",
        "position_epoch",
        "read_replica",
        "read_replica_until_ms",
        "refused_by",
        "reset",
        "tp",
        "unwanted",
    )

    def __init__(self, tp: TopicPartition) -> None:
        self.tp = tp
        #: The next offset to give out; None until a seek or a reset has set it.
        self.position: int | None = None
        #: The leader epoch of the last batch before it, also of one that gave out nothing, as a transaction's end: with
        #: an older one the next reader would be told that the log has another past.
        self.position_epoch = int(NO_EPOCH)
        #: Which offset is to be asked for, as a timestamp or code of ListOffsets; None where none is.
        self.reset: int | None = None
        self.fetch_offset = 0
        #: The leader epoch of the last batch fetched: by which a broker sees that its log has another past.
        self.fetch_epoch = int(NO_EPOCH)
        self.generation = 0
        self.paused = False
        #: Is about to be given up: nothing more of it is given out.
        self.held = False
        #: Of a topic that is not subscribed to any more; the next rebalance gives it up.
        self.unwanted = False
        self.chunks: deque[Chunk] = deque()
        #: The batch that is being given out: its header, its records, and how many of them are out.
        self._batch: BatchHeader | None = None
        self._records: list[ConsumerRecord] = []
        self._index = 0
        #: Arrow batches that are decoded and not given out, and the leader epoch of the last.
        self._rows: deque[Rows] = deque()
        self._rows_epoch = int(NO_EPOCH)
        #: To be raised when everything before it has been given out.
        self.error: KafkaError | None = None
        #: The metadata by which its topic was refused last: nobody hears of that again before there is newer.
        self.refused_by: Metadata | None = None
        self.failures = 0
        self.not_before_ms = 0
        self.high_watermark: int | None = None
        self.last_stable_offset: int | None = None
        self.log_start_offset: int | None = None
        #: A nearer replica that the leader has named for us to read from, for a while.
        self.read_replica = int(NO_BROKER)
        self.read_replica_until_ms = 0

    def seek(self, offset: int, epoch: int = NO_EPOCH) -> None:
        self._begin_anew()
        self.position = self.fetch_offset = offset
        self.fetch_epoch = self.position_epoch = epoch
        self.reset = None

    def reset_to(self, timestamp: int) -> None:
        """Has the position looked up before anything is fetched."""
        self._begin_anew()
        self.position = None
        self.position_epoch = NO_EPOCH
        self.reset = timestamp

    def _begin_anew(self) -> None:
        self.generation += 1
        self.drop_buffered()
        self.error = None
        self.failures = 0
        self.not_before_ms = 0

    def drop_buffered(self) -> None:
        self.chunks.clear()
        self._rows.clear()
        self._batch = None
        self._records = []
        self._index = 0
        if self.position is not None:
            self.fetch_offset = self.position

    @property
    def gives_out(self) -> bool:
        return not (self.paused or self.held or self.unwanted)

    @property
    def has_records(self) -> bool:
        return bool(self.chunks) or self._batch is not None or bool(self._rows)

    @property
    def buffered_bytes(self) -> int:
        return sum(chunk.size for chunk in self.chunks)

    def take(
        self,
        limit: int,
        *,
        check_crcs: bool,
        key_deserializer: Deserializer | SchemaDeserializer | None,
        value_deserializer: Deserializer | SchemaDeserializer | None,
    ) -> list[ConsumerRecord]:
        """Up to `limit` next records of one batch. Empty when nothing is buffered; raises what is wrong with it."""
        if self._rows:
            self._ask_again()
        while self._batch is None:
            if not self.chunks:
                return []
            self._open_next_batch(check_crcs)
        header, records, index = self._batch, self._records, self._index
        if index or limit < len(records):
            records = records[index : index + limit]
        if key_deserializer is None and value_deserializer is None:
            taken = records
        else:
            taken = self._deserialized(records, key_deserializer, value_deserializer)
        self._index += len(taken)
        self.position_epoch = header.leader_epoch
        if self._index >= len(self._records):
            self.position = header.next_offset
            self._batch = None
            self._records = []
        else:
            self.position = taken[-1].offset + 1
        return taken

    def _deserialized(
        self,
        records: list[ConsumerRecord],
        key_deserializer: Deserializer | SchemaDeserializer | None,
        value_deserializer: Deserializer | SchemaDeserializer | None,
    ) -> list[ConsumerRecord]:
        taken: list[ConsumerRecord] = []
        for topic, partition, offset, timestamp, kind, key, value, headers, epoch in records:
            try:
                made_key = key_deserializer(key) if key_deserializer is not None and key is not None else key
                made = value_deserializer(value) if value_deserializer is not None and value is not None else value
            except Exception as error:
                if taken:
                    return taken  # those before it first; the next call finds it again
                if isinstance(error, SchemaNotLoaded):
                    raise
                raise SerializationFailed(
                    f"{self.tp}: the record at offset {offset} cannot be deserialized: {error}; seek past it to go on"
                ) from error
            taken.append(ConsumerRecord(topic, partition, offset, timestamp, kind, made_key, made, headers, epoch))
        return taken

    def _open_next_batch(self, check_crcs: bool) -> None:
        """Decodes the first chunk's next batch that has something to give out; drops the chunk when it has no more."""
        chunk = self.chunks[0]
        assert self.position is not None
        while chunk.pos < chunk.end:
            try:
                header = parse_header(chunk.buf, chunk.pos)
                records = self._visible(chunk, header, check_crcs)
            except RecordError as error:
                raise self._damaged(error) from error
            chunk.pos += header.size
            if records:
                self._batch, self._records, self._index = header, records, 0
                break
            self._passed(header)
        if chunk.pos >= chunk.end:
            self.chunks.popleft()

    def _visible(self, chunk: Chunk, header: BatchHeader, check_crcs: bool) -> list[ConsumerRecord]:
        position = self.position
        assert position is not None
        if header.last_offset < position:
            return []
        aborted = chunk.aborted
        hidden = aborted is not None and aborted.hides(header)
        if header.is_control:
            if aborted is not None:
                aborted.note_marker(header, chunk.buf, chunk.pos, check_crcs=check_crcs)
            return []
        if hidden:
            return []
        records = decode_placed(ConsumerRecord, *self.tp, chunk.buf, chunk.pos, check_crcs=check_crcs)
        if header.base_offset < position:
            return [record for record in records if record.offset >= position]
        return records

    def take_batches(self) -> FetchedBatches | None:
        """What one answer brought, undecoded; None when nothing is buffered. Raises what is wrong with it."""
        if self._batch is not None or self._rows:
            self._ask_again()
        if not self.chunks:
            return None
        assert self.position is not None
        chunk, begun = self.chunks.popleft(), self.position
        for _, header in iterate(chunk.buf, chunk.pos, chunk.end):
            self._passed(header)
        return FetchedBatches(
            self.tp, chunk.topic_id, begun, self.position, chunk.buf, chunk.pos, chunk.end, chunk.aborted
        )

    def _passed(self, header: BatchHeader) -> None:
        self._moved_to(header.next_offset, header.leader_epoch)

    def _moved_to(self, offset: int, epoch: int) -> None:
        """A batch that lies wholly before the position says nothing of the epoch there."""
        assert self.position is not None
        if offset > self.position:
            self.position, self.position_epoch = offset, epoch

    # As Arrow

    def take_arrow(self, columns: tuple[str, ...], rows_max: int, *, check_crcs: bool) -> Any:
        """The next Arrow batch; None when nothing is buffered. Raises what is wrong with what is there."""
        if self._batch is not None:
            self._ask_again()
        while not self._rows:
            if not self.chunks:
                return None
            self._decode_next(columns, rows_max, check_crcs)
        found = self._rows.popleft()
        self.position, self.position_epoch = found.next_offset, self._rows_epoch
        return found.batch

    def _decode_next(self, columns: tuple[str, ...], rows_max: int, check_crcs: bool) -> None:
        """Decodes as much of the first chunk as makes an Arrow batch; drops the chunk when it has no more."""
        from ottla.arrow.decoding import Decoder
        from ottla.arrow.survey import ReadBounds

        chunk = self.chunks[0]
        assert self.position is not None
        bounds = ReadBounds(first=self.position, rows_max=rows_max, check_crcs=check_crcs)
        try:
            found = Decoder(*self.tp, columns, bounds).step(chunk.buf, chunk.pos, chunk.end, chunk.aborted)
        except RecordError as error:
            raise self._damaged(error) from error
        chunk.pos = found.pos
        if found.ended or chunk.pos >= chunk.end:
            self.chunks.popleft()
        if found.rows:
            self._rows.extend(found.rows)
            self._rows_epoch = found.leader_epoch
        elif found.next_offset is not None:
            self._moved_to(found.next_offset, found.leader_epoch)

    def _ask_again(self) -> None:
        """What was decoded for another way of reading is dropped, and fetched once more."""
        assert self.position is not None
        self.seek(self.position, self.position_epoch)

    def _damaged(self, error: RecordError) -> CorruptRecords:
        assert self.position is not None
        return CorruptRecords(
            f"{self.tp}: the batch at offset {self.position} is damaged: {error}; seek past it to go on",
            self.tp,
            self.position,
        )
