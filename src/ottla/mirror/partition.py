"""One partition's copy: where it goes on, what of it is on its way, and what the target's answers mean.

A copy writes with a producer id that only this flow has, and with the target's offsets as sequence numbers. So a target
takes a batch if it goes on where the log ends, and no other: `append if the end is E`. A mirror that sends the same
batch a second time (after a lost connection; or a mirror that was stopped for an hour, took itself for the owner when
it woke, and sent what it had at hand) is answered that it is a duplicate, or refused with OUT_OF_ORDER_SEQUENCE_NUMBER,
and nothing is written. No lease is needed for that; the group's is there to share the work.

    place -> copy -> (anything unexpected) -> place again
                 \\-> stopped, by name, where only a person can say how it goes on

To place is to ask the target where it ends, and the pairs which source record comes there. Then the last record of the
copy is compared with the source's record that it is a copy of, where that is still there: truncated logs, topics that
were made again and records of others are found by that, and stop the copy.
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import Final

from ottla.client.consuming.assignment import FetchedBatches
from ottla.client.errors import KafkaError, NotLeaderOrFollower, UnknownTopicOrPartition, error_of
from ottla.client.wire.listed_offset import EARLIEST, LATEST
from ottla.client.wire.metadata import error_code
from ottla.client.wire.offsets import list_offsets
from ottla.logs import logger
from ottla.mirror.batches import Preparation, ReadyBatch
from ottla.mirror.comparing import check_last, check_sent
from ottla.mirror.copy_world import CopyWorld
from ottla.mirror.faults import CopyStopped, LostRecords, StrangeRecords
from ottla.mirror.journal import PartitionJournal
from ottla.mirror.pairs import OffsetPairs, Pair
from ottla.mirror.sending import send, sendable_connection
from ottla.model import ZERO_TOPIC_ID, ErrorCode, TopicPartition
from ottla.protocol.generated.produce import PartitionProduceResponse, ProduceResponse
from ottla.records.errors import RecordError

log_event = logger("mirror")
#: Of one partition, unanswered: what a round trip of 20 ms takes at 400 MB/s.
IN_FLIGHT_BYTES_MAX: Final = 8 << 20
#: Fetched answers that wait to be copied; above it the partition is not read.
FETCHED_MAX: Final = 2
#: Prepared in one turn of the loop: a tenth of a millisecond, or some where batches are unpacked.
TURN_BYTES: Final = 128 << 10
#: Refused by what the batch is: it would be refused again.
_FINAL: Final = frozenset(
    {
        ErrorCode.MESSAGE_TOO_LARGE,
        ErrorCode.RECORD_LIST_TOO_LARGE,
        ErrorCode.INVALID_RECORD,
        ErrorCode.INVALID_TIMESTAMP,
        ErrorCode.UNSUPPORTED_COMPRESSION_TYPE,
        ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT,
        ErrorCode.INVALID_REQUIRED_ACKS,
    }
)


class PartitionCopy:
    def __init__(self, tp: TopicPartition, target: TopicPartition, journal: PartitionJournal, world: CopyWorld) -> None:
        self.tp = tp
        self.target = target
        self._journal = journal
        self._world = world
        self.pairs = OffsetPairs()
        self.source_id = self.target_id = bytes(ZERO_TOPIC_ID)
        #: Below it the source is copied; -1 before the copy was placed, and where it was deleted, before it is again.
        self.copied = -1
        #: Where the copy ends. Both by what is acknowledged.
        self.end = 0
        #: The last record that was acknowledged, in the source and in the target.
        self.last: Pair | None = None
        #: How often in a row the source was asked for the topic, and did not know it.
        self.unknown = 0
        #: Why the copy does not go on; None while it does.
        self.stopped: str | None = None
        self.records = self.bytes = 0
        #: Offsets that the source removed before they were copied.
        self.missed = 0
        #: Behind all that was sent: `copied <= _read`, `end <= _next`.
        self._read = self._next = 0
        #: Where the next fetched batches must go on: what was fetched before a place does not count.
        self._asked = -1
        self._fetched: deque[FetchedBatches] = deque()
        self._on_wire: deque[ReadyBatch] = deque()
        self._on_wire_bytes = 0
        #: The first that was sent before the copy was last placed and was not acknowledged: perhaps it is there.
        self._unsure: ReadyBatch | None = None
        self._fault: Exception | None = None
        self._news = asyncio.Event()
        self._failures = 0
        #: Whether the target sets the times of its records, as the last look at it said.
        self._stamped = False
        #: Where a copy began that was deleted since, for the next one to begin there as well.
        self._began_at: int | None = None
        #: Rises with each place, so that answers to what was sent before say nothing.
        self._placed = 0

    # What the flow calls

    def offer(self, fetched: FetchedBatches) -> bool:
        """Takes what was fetched; False where no more is to be fetched now."""
        if fetched.position == self._asked:
            self._asked = fetched.next_position
            self._fetched.append(fetched)
            self._news.set()
        return len(self._fetched) < FETCHED_MAX

    def source_failed(self, error: KafkaError) -> None:
        """The source could not be read where the copy stands: its place is looked up again."""
        self._fail(error)

    @property
    def drained(self) -> bool:
        """Whether all that was offered is acknowledged."""
        return self.copied == self._asked

    async def run(self) -> None:
        """Until it is cancelled, or stops for good."""
        reader = self._world.reader
        while self.stopped is None:
            try:
                await self._place()
                reader.go_on(self.tp, self._read)
                await self._copy()
            except CopyStopped as stop:
                self.stopped = str(stop)
            except RecordError as error:
                self.stopped = f"{self.tp} at offset {self._read}: the source has what cannot be read: {error}"
            except KafkaError as error:
                if error.code in _FINAL:
                    self.stopped = f"{self.target}: the target refuses what follows {self.copied} of {self.tp}: {error}"
                else:
                    await self._pause(error)
        reader.hold(self.tp)
        log_event.error("a partition is not copied any more", partition=self.tp, why=self.stopped)

    async def _pause(self, error: KafkaError) -> None:
        self._world.reader.hold(self.tp)
        self._failures += 1
        log_event.warning_limited("a partition is placed again", str(self.tp), partition=self.tp, why=str(error))
        self._world.target.request_update()
        await asyncio.sleep(self._world.pause_ms(self._failures) / 1000)

    # Place

    async def _place(self) -> None:
        """Finds out where both sides stand. Raises CopyStopped where they do not fit."""
        self._placed += 1
        if self._unsure is None and self._on_wire:
            self._unsure = self._on_wire[0]
        self._on_wire.clear()
        self._on_wire_bytes = 0
        self._fetched.clear()
        self._fault = None
        await self._look_up_ids()
        taken = not self._journal.is_mine
        if taken:
            await self._take_over()
        begin, end = await self._limits_of_target()
        if end != self.end and not taken:  # another may have gone on with it
            await self._take_over()
            begin, end = await self._limits_of_target()
        source = self._source_at(end)
        if source is None:
            source = await self._begin(end)
        else:
            stamped = await check_last(self._world, self.tp, self.target, self.pairs, begin, end)
            if stamped is not None:
                self._stamped = stamped
            if self._unsure is not None:
                await check_sent(self._world, self.tp, self.target, self.pairs, end, self._unsure)
            source = await self._within_source(source, end)
        self._unsure = None
        self._read = self.copied = self._asked = source
        self._next = self.end = end

    async def _look_up_ids(self) -> None:
        """The topics of both sides, and whether they are those that the pairs are about."""
        await asyncio.gather(self._world.source.updated(), self._world.target.updated())
        try:
            await self._world.follow(self.tp.topic)
            source = await self._world.source.topic(self.tp.topic)
        except UnknownTopicOrPartition:
            self.unknown += 1
            raise
        self.unknown = 0
        target = await self._world.target.topic(self.target.topic)
        if self.target.partition >= len(target.partitions):
            self._world.target.request_update()
            raise UnknownTopicOrPartition(f"{self.target} is not there yet")
        recorded = self._journal.recorded
        if recorded is not None and not len(self.pairs):
            self.pairs, self.end = recorded.pairs, recorded.reached
            self.source_id, self.target_id = recorded.source_id, recorded.target_id
        self._journal.recorded = None
        if len(self.pairs) and differ(self.target_id, target.topic_id):
            log_event.warning("the copy was deleted and is made again, from the beginning", partition=self.target)
            # Of another topic, or with its first pairs forgotten, it says nothing of where that was.
            known = not differ(self.source_id, source.topic_id) and not self.pairs[0].target
            self._began_at = self.pairs[0].source if known else 0
            self.pairs, self.end, self.copied = OffsetPairs(), 0, -1
            self._unsure = None
        if len(self.pairs):
            self._check_source(self.source_id, source.topic_id)
        self.source_id, self.target_id = bytes(source.topic_id), bytes(target.topic_id)

    def _check_source(self, copied: bytes, now: bytes) -> None:
        if differ(copied, now):
            raise LostRecords(
                f"{self.tp} was deleted and made again since it was copied: delete {self.target.topic} on the target, "
                "and the new topic is copied from its beginning"
            )

    async def _take_over(self) -> None:
        """From here on no other passes a gap that is not among the pairs that were read.

        So those say what an end means that is looked up after this. It may be that of another that has claimed the
        partition since: that is noticed before anything is sent, when the pairs are recorded.
        """
        await self._journal.claim(nonce=self._world.nonce)
        recorded, self._journal.recorded = self._journal.recorded, None
        if recorded is not None and not differ(recorded.target_id, self.target_id):
            self._check_source(recorded.source_id, self.source_id)
            self.pairs, self.end = recorded.pairs, max(self.end, recorded.reached)

    async def _limits_of_target(self) -> tuple[int, int]:
        begin, end = [
            (await list_offsets(self._world.target, {self.target: code}))[self.target].offset
            for code in (EARLIEST, LATEST)
        ]
        return begin, end

    def _source_at(self, end: int) -> int | None:
        """The source offset that comes to lie at the target's end; None where nothing was ever copied."""
        if not len(self.pairs):
            return None
        if end < self.end:
            raise LostRecords(
                f"{self.target} ends at {end}, and ended at {self.end} before: records of the copy were lost. Delete "
                "the topic, and it is copied again"
            )
        found = self.pairs.source_of(end)
        if found is None:
            raise LostRecords(f"{self.target} ends at {end}, before everything that was copied: {self.pairs[0]}")
        return found

    async def _begin(self, end: int) -> int:
        if end:
            raise StrangeRecords(
                f"{self.target} ends at {end}, and no pair says that the mirror has written any of that: delete the "
                "topic, or leave it out by topics.exclude"
            )
        begin_at = self._world.begin_at if self._began_at is None else EARLIEST
        listed = await list_offsets(self._world.source, {self.tp: begin_at}, isolation_level=self._world.isolation)
        source = max(listed[self.tp].offset, self._began_at or 0)
        self.pairs = OffsetPairs([Pair(source, end)])
        self.end = end
        await self._record()
        self._began_at = None
        return source

    async def _within_source(self, source: int, end: int) -> int:
        """The place in the source, moved where retention has gone past it."""
        limits = {code: await list_offsets(self._world.source, {self.tp: code}) for code in (EARLIEST, LATEST)}
        begin, last = (limits[code][self.tp].offset for code in (EARLIEST, LATEST))
        if source > last:
            raise LostRecords(
                f"{self.tp} ends at {last}, but was copied up to {source}: it lost records that the copy has. Delete "
                f"{self.target.topic} on the target, and it is copied again"
            )
        if source < begin:
            if not self._world.passes_gaps:
                raise LostRecords(
                    f"{self.tp} begins at {begin} now, and was copied up to {source}: what lies between was removed at "
                    "the source. With auto.offset.reset = earliest the copy goes on behind it"
                )
            log_event.warning(
                "records were removed at the source before they were copied",
                partition=self.tp,
                first=source,
                behind=begin,
            )
        place = max(source, begin)
        if self.pairs.add(Pair(place, end)) or not self._journal.is_mine:
            await self._record()
        self.missed += place - source  # once: from here on the pairs lead behind it
        return place

    async def _record(self) -> None:
        await self._journal.save(self.source_id, self.target_id, self.pairs, self.end, nonce=self._world.nonce)

    async def note_reached(self) -> None:
        """Records how far the copy has come, for the next one to know what must be there."""
        self._look_at_target()
        if self.copied >= 0 and self.stopped is None and self._journal.is_mine:
            await self._record()

    def _look_at_target(self) -> None:
        """A copy whose topic was deleted is placed again though nothing is to be sent to it."""
        there = self._world.target.metadata.topics.get(self.target.topic)
        if self.copied >= 0 and (there is None or differ(there.topic_id, self.target_id)):
            self._fail(UnknownTopicOrPartition(f"{self.target.topic} was deleted, or made again"))

    # Copy

    async def _copy(self) -> None:
        while True:
            fetched = await self._next_fetched()
            known = self._world.source.metadata.topics.get(self.tp.topic)
            if differ(fetched.topic_id, self.source_id) or (
                known is not None and differ(known.topic_id, self.source_id)  # a source too old to fetch by id
            ):
                raise NotLeaderOrFollower(f"{self.tp} was deleted and made again")  # to place says what that means
            preparation = Preparation(
                self._world.producer_id,
                self._read,
                self._next,
                fetched.aborted,
                check_crcs=self._world.check_crcs,
            )
            pos = pause_at = fetched.begin
            while pos < fetched.end:
                pos = preparation.take(fetched.records, pos)
                if pos > pause_at + TURN_BYTES:
                    pause_at = pos
                    await asyncio.sleep(0)
            behind = [*(pair.target for pair in preparation.pairs[1:]), preparation.target]
            added = sum(map(self.pairs.add, preparation.pairs, behind))
            read = max(preparation.source, fetched.next_position)
            if self._passes_over(read, preparation.target):
                added += self.pairs.add(Pair(read, preparation.target))
            if added:
                await self._record()  # before anything goes out that they speak of
            for batch in preparation.batches:
                await self._send(batch)
            self._read = read
            self._settle()

    def _passes_over(self, read: int, target: int) -> bool:
        """Whether what was read ends in offsets that are not copied, as markers are, and no pair leads behind them.

        Without one they would count as missed where the source has removed them when the copy is placed again.
        """
        following = self.pairs.source_of(target)
        return following is not None and following < read

    async def _next_fetched(self) -> FetchedBatches:
        while True:
            if self._fault is not None:
                raise self._fault
            if self._fetched:
                self._world.reader.release(self.tp)
                return self._fetched.popleft()
            self._news.clear()
            await self._news.wait()

    async def _send(self, batch: ReadyBatch) -> None:
        while self._on_wire and self._on_wire_bytes + len(batch.data) > IN_FLIGHT_BYTES_MAX and self._fault is None:
            self._news.clear()
            await self._news.wait()
        connection = await sendable_connection(self._world.target, self.target)
        if self._fault is not None:
            raise self._fault
        future = send(self._world.target, connection, self.target, self.target_id, batch.data)
        self._on_wire.append(batch)
        self._on_wire_bytes += len(batch.data)
        self._next = batch.target_end
        placed = self._placed
        future.add_done_callback(lambda done: self._answered(done, batch, placed))

    def _answered(self, future: asyncio.Future[ProduceResponse], batch: ReadyBatch, placed: int) -> None:
        if placed != self._placed or future.cancelled():
            return
        error = future.exception()
        if error is not None:
            self._fail(error)
            return
        try:
            told = future.result().responses[0].partition_responses[0]
        except IndexError:
            self._fail(NotLeaderOrFollower(f"the answer says nothing about {self.target}"))
            return
        code = error_code(told.error_code)
        if code is not ErrorCode.NONE:
            self._fail(error_of(told.error_code, told.error_message, about=str(self.target)))
        elif batch is not self._on_wire[0]:
            # One leader answers in order. This one may have the batches before it from another that never answered.
            self._fail(NotLeaderOrFollower(f"{self.target}: a new leader has answered before the one before it"))
        elif told.base_offset > batch.target:
            self._fail(
                StrangeRecords(
                    f"{self.target}: a batch for offset {batch.target} came to lie at {told.base_offset}, so somebody "
                    "else writes there. A copy has one writer: delete the topic, and it is copied again"
                )
            )
        elif told.base_offset != batch.target or self._was_there(told):
            # It was written before, alone or as part of what was sent then: to place finds out what is there.
            self._fail(NotLeaderOrFollower(f"{self.target}: the batch at {batch.target} was there already"))
        elif self._fault is None:
            self._acknowledged(batch)

    def _was_there(self, told: PartitionProduceResponse) -> bool:
        """Whether the answer is that to a duplicate, which has the time of what is there.

        A batch of as many records may have other records: of another mirror that was stopped with them at hand, which
        the source has lost since. Where the target sets times itself every answer has one, and nothing can be told.
        """
        return told.log_append_time_ms >= 0 and not self._stamped

    def _acknowledged(self, batch: ReadyBatch) -> None:
        self._on_wire.popleft()
        self._on_wire_bytes -= len(batch.data)
        self.end = batch.target_end
        self.copied = batch.source_end
        self.last = Pair(batch.last_source, batch.target_end - 1)
        self.records += batch.records
        self.bytes += len(batch.data)
        self._failures = 0
        self._settle()
        self._news.set()

    def _settle(self) -> None:
        """Where nothing is on its way, what was passed over counts as copied as well."""
        if not self._on_wire:
            self.copied = max(self.copied, self._read)

    def _fail(self, error: BaseException) -> None:
        if self._fault is None and isinstance(error, Exception):
            self._fault = error
        self._news.set()


def differ(one: bytes, other: bytes) -> bool:
    """Of the ids of topics; a broker too old to say says nothing against it."""
    return one != other and ZERO_TOPIC_ID not in {one, other}
