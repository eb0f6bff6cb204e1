"""The pairs of all partitions of a flow, in a compacted topic of the target.

A pair is written, and acknowledged, before the first record behind it goes out. So whatever ends a mirror, the
target's end and the pairs in the topic say together which source record comes next: nothing is read again to find
out, and it does not matter what compaction or retention have taken from the source meanwhile.

A partition's pairs are kept in pages, by number. A page's key names its writer as well: the mirror that takes a
partition over claims a number above all that it has seen, reads what there is, and writes all pairs anew under it, page
0 last; then the older writer's pages go. So what a former writer still writes (its process may have been stopped for an
hour) replaces nothing, and pages without a page 0 are those of a writer that did not get far.

A writer that has recorded new pairs looks whether a later one has claimed the partition by then, before it sends the
records behind them: the later one may not have read these pairs.

    claim, read   record a pair, read: is there a later claim?   yes: Overtaken, and nothing is sent by that pair
                                                                 no: the later one's claim, and its read, are to come
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from random import Random
from typing import Final, NamedTuple

from ottla.client.admin.admin import Admin
from ottla.client.admin.having import have_topic
from ottla.client.admin.results import ConfigResource, NewTopic
from ottla.client.consuming.consumer import Consumer
from ottla.client.errors import KafkaError, RequestTimedOut
from ottla.client.producing.producer import Producer
from ottla.client.records import ConsumerRecord
from ottla.logs import logger
from ottla.mirror.faults import Overtaken, PairsWouldVanish
from ottla.mirror.pairs import OffsetPairs, Pair
from ottla.mirror.record_forms import PAGE_PAIRS_MAX, BadRecord, Page, PageKey, decode_page, decode_page_key
from ottla.model import ZERO_TOPIC_ID, TopicPartition

log_event = logger("mirror")
#: How long a read waits for the records that the topic's end has promised.
READ_MS_MAX: Final = 60_000
#: The page by which a writer claims its number, until it has a page 0.
CLAIM_PAGE: Final = -1
_CLAIM: Final = Page(bytes(ZERO_TOPIC_ID), bytes(ZERO_TOPIC_ID), 0, ())
#: Of one writer, where others take the same numbers.
CLAIMS_MAX: Final = 10
#: Two that took the same number would take the next one together as well. So each waits first, by chance, and for up to
#: twice as long each time.
CLAIM_AGAIN_S: Final = 0.01
#: Settings of a topic whose newest records for each key are all that counts.
COMPACTED: Final = {"cleanup.policy": "compact"}


class RecordedPairs(NamedTuple):
    """What the topic says of one partition."""

    source_id: bytes
    target_id: bytes
    pairs: OffsetPairs
    #: The target had so much when the last page was written.
    reached: int


class Journal:
    """Of one flow; safe to use for several partitions at once."""

    def __init__(self, topic: str, reader: Consumer, producer: Producer, admin: Admin, replication: int) -> None:
        self.topic = topic
        self._reader = reader
        self._producer = producer
        self._admin = admin
        self._replication = replication
        self._place = TopicPartition(topic, 0)
        self._reading = asyncio.Lock()
        #: Partitions that the next pass over the topic is for, and that pass.
        self._asked: set[TopicPartition] = set()
        self._next_pass: asyncio.Task[dict[TopicPartition, PartitionJournal]] | None = None
        #: What the topic has of the partitions that were read, by all below `_read_to`.
        self._keys: dict[TopicPartition, set[PageKey]] = {}
        self._read_to = 0

    async def prepare(self) -> None:
        """Raises PairsWouldVanish where somebody else has made the topic otherwise."""
        if await compacted_topic(self._admin, self.topic, self._replication):
            return
        resource = ConfigResource.topic(self.topic)
        (name, wanted), *_ = COMPACTED.items()
        policy = (await self._admin.describe_configs([resource], names=[name]))[resource][name].value
        if policy != wanted:
            raise PairsWouldVanish(
                f"{self.topic} has {name}={policy}, so that pairs would vanish, and no copy could be gone on with: "
                f"set it to {wanted}"
            )

    async def read(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, PartitionJournal]:
        """A journal for each partition, with what was recorded.

        All callers that ask while the topic is being read share the next pass over it.
        """
        wanted = set(partitions)
        self._asked |= wanted
        if self._next_pass is None:
            self._next_pass = asyncio.get_running_loop().create_task(self._pass())
            self._next_pass.add_done_callback(lambda done: done.cancelled() or done.exception())  # perhaps nobody asks
        found = await asyncio.shield(self._next_pass)
        return {tp: found[tp] for tp in wanted}

    async def _pass(self) -> dict[TopicPartition, PartitionJournal]:
        async with self._reading:
            pages: dict[TopicPartition, dict[PageKey, Page]] = {tp: {} for tp in self._asked}
            self._asked, self._next_pass = set(), None
            reader = self._reader
            reader.assign([self._place])
            reader.seek_to_beginning(self._place)
            end = (await reader.end_offsets([self._place]))[self._place]
            while await reader.position(self._place) < end:
                for record in await reader.poll(timeout_ms=READ_MS_MAX):
                    self._take(record.key, record.value, pages)
                    self._note(record)
            self._keys |= {tp: set(found) for tp, found in pages.items()}
            self._read_to = await reader.position(self._place)  # less than before, where the topic was made again
        return {tp: PartitionJournal(self, tp, found) for tp, found in pages.items()}

    async def keys(self, tp: TopicPartition, offset: int) -> set[PageKey]:
        """What the topic has of a partition that was read before; with the record at this offset, and perhaps more."""
        async with self._reading:
            reader = self._reader
            if self._read_to <= offset and await reader.position(self._place) != self._read_to:
                reader.seek(self._place, self._read_to)  # a pass before this one did not come to its end
            while self._read_to <= offset:
                records = await reader.poll(timeout_ms=READ_MS_MAX)
                if not records:
                    raise RequestTimedOut(f"{self.topic} was to have a record at {offset}")
                for record in records:
                    self._note(record)
            return self._keys[tp]

    def _note(self, record: ConsumerRecord) -> None:
        if record.offset < self._read_to:
            return
        self._read_to = record.offset + 1
        try:
            key = decode_page_key(record.key or b"")
        except BadRecord:
            return
        keys = self._keys.get(TopicPartition(key.topic, key.partition), set())
        if record.value is None:
            keys.discard(key)
        else:
            keys.add(key)

    def _take(
        self, raw_key: bytes | None, value: bytes | None, pages: dict[TopicPartition, dict[PageKey, Page]]
    ) -> None:
        try:
            key = decode_page_key(raw_key or b"")
            found = pages.get(TopicPartition(key.topic, key.partition))
            if found is None:
                return
            found.pop(key, None)
            if value is not None:
                found[key] = decode_page(value)  # behind all that were written before
        except BadRecord as error:
            log_event.warning_limited("a record of the pairs' topic cannot be read", topic=self.topic, why=str(error))

    async def write(self, records: Iterable[tuple[PageKey, Page | None]]) -> int:
        """Waits until all are acknowledged; returns the last one's offset."""
        deliveries = [
            await self._producer.send(self.topic, None if page is None else page.encoded(), key.encoded(), partition=0)
            for key, page in records
        ]
        await self._producer.flush()
        return max([(await delivery).offset for delivery in deliveries])


class PartitionJournal:
    """What is recorded of one partition, and the way to record more."""

    def __init__(self, journal: Journal, tp: TopicPartition, found: dict[PageKey, Page]) -> None:
        self._journal = journal
        self._tp = tp
        #: Keys that the topic may have of this partition.
        self._keys = set(found)
        self._writer = max((key.writer for key in found), default=0)
        self._nonce = 0
        #: A copy records its pairs, and how far it has come: one after the other, or an older page would come last.
        self._saving = asyncio.Lock()
        #: How many pairs are recorded under this writer, the last of them, and how many were forgotten; None before it
        #: has written any.
        self._saved: tuple[int, Pair, int] | None = None
        #: What else is recorded with them: the two topics' ids, and how far the copy had come.
        self._noted: tuple[bytes, bytes, int] | None = None
        #: Whether the number is this writer's, and nothing is recorded under it yet.
        self._claimed = False
        #: The number and the nonce under which this writer last knew all pairs; None before it had any.
        self._own: tuple[int, int] | None = None
        self.recorded = _complete(found)

    @property
    def is_mine(self) -> bool:
        """Whether the pairs are recorded under this writer."""
        return self._saved is not None

    async def claim(self, *, nonce: int) -> None:
        """Takes the partition over, and reads what others have recorded of it until then. Raises KafkaError."""
        async with self._saving:
            await self._claim(nonce)
            self._own = (self._writer, nonce)

    async def _claim(self, nonce: int) -> None:
        self._saved, self._claimed, self._nonce = None, False, nonce
        chance = Random(nonce)
        for tried in range(CLAIMS_MAX):
            self._writer += 1
            offset = await self._journal.write([(self._key(CLAIM_PAGE), _CLAIM)])
            read = (await self._journal.read([self._tp]))[self._tp]
            self._keys = set(await self._journal.keys(self._tp, offset))
            if not self._overtaken_by(self._keys):
                self.recorded = read.recorded
                self._claimed = True
                return
            self._writer = max(key.writer for key in self._keys)
            await asyncio.sleep(chance.random() * CLAIM_AGAIN_S * 2**tried)
        raise Overtaken(f"{self._tp}: others claim it as well")

    def _overtaken_by(self, keys: Iterable[PageKey]) -> bool:
        return any(key.writer >= self._writer and key.nonce != self._nonce for key in keys)

    async def save(self, source_id: bytes, target_id: bytes, pairs: OffsetPairs, reached: int, *, nonce: int) -> None:
        """Records all that is new since the last time; with another nonce, or other pairs, everything anew.

        Raises Overtaken where a later writer may not know of what was added.
        """
        async with self._saving:
            await self._save(source_id, target_id, pairs, reached, nonce)

    async def _save(self, source_id: bytes, target_id: bytes, pairs: OffsetPairs, reached: int, nonce: int) -> None:
        saved = self._saved
        goes_on = (
            saved is not None
            and nonce == self._nonce
            and saved[2] == pairs.forgotten
            and len(pairs) >= saved[0]
            and pairs[saved[0] - 1] == saved[1]
        )
        if saved is not None and goes_on:
            if len(pairs) == saved[0] and self._noted == (source_id, target_id, reached):
                return
            begin = (saved[0] - 1) // PAGE_PAIRS_MAX
        else:
            await self._renew(nonce)
            begin = 0
        self._saved, self._claimed = None, False  # until it is acknowledged
        count, forgotten = len(pairs), pairs.forgotten
        last = pairs[count - 1]
        pages = {
            self._key(number): Page(
                source_id,
                target_id,
                reached,
                pairs.between(number * PAGE_PAIRS_MAX, (number + 1) * PAGE_PAIRS_MAX),
            )
            for number in range(begin, -(-count // PAGE_PAIRS_MAX))
        }
        self._keys |= set(pages)
        first = pages.pop(self._key(0), None)
        offset = -1
        if pages:
            offset = await self._journal.write(pages.items())
        if first is not None:
            offset = await self._journal.write([(self._key(0), first)])
        if saved != (count, last, forgotten) and self._overtaken_by(await self._journal.keys(self._tp, offset)):
            raise Overtaken(f"{self._tp}: another has taken it over")
        self._saved, self._noted = (count, last, forgotten), (source_id, target_id, reached)
        gone = [
            key
            for key in self._keys
            if (key.writer, key.nonce) != (self._writer, self._nonce) or key.page == CLAIM_PAGE
        ]
        if gone:
            await self._journal.write((key, None) for key in gone)
            self._keys.difference_update(gone)

    async def _renew(self, nonce: int) -> None:
        """A number under which nothing is recorded. Raises Overtaken where another has one above the last of this."""
        if self._claimed and nonce == self._nonce:
            return
        former = self._own
        await self._claim(nonce)
        self.recorded = None  # what was added since is not in it
        if former is not None and any(
            key.writer >= former[0] and key.nonce not in {former[1], nonce} for key in self._keys
        ):
            self._claimed = False
            raise Overtaken(f"{self._tp}: another has taken it over")
        self._own = (self._writer, nonce)

    def _key(self, page: int) -> PageKey:
        return PageKey(*self._tp, self._writer, self._nonce, page)


def _complete(found: dict[PageKey, Page]) -> RecordedPairs | None:
    """The pages of the latest writer that has a page 0, one behind the other. `found` is in the order of writing.

    Of writers that took the same number it is the one that wrote last: the others did not go on.
    """
    begun = {(key.writer, key.nonce) for key in found if key.page == 0}
    if not begun:
        return None
    number = max(writer for writer, _ in begun)
    latest = [(key.writer, key.nonce) for key in found if key.writer == number and (number, key.nonce) in begun][-1]
    pages = [found[key] for key in sorted(found) if (key.writer, key.nonce) == latest]
    pairs = OffsetPairs(pair for page in pages for pair in page.pairs)
    return RecordedPairs(pages[-1].source_id, pages[-1].target_id, pairs, max(page.reached for page in pages))


async def compacted_topic(admin: Admin, topic: str, replication: int) -> bool:
    """Has a compacted topic of one partition there; whether it was made here."""
    try:
        is_new = await have_topic(admin, NewTopic(topic, 1, replication, dict(COMPACTED)))
    except KafkaError as error:
        log_event.error("a topic of the mirror could not be created", topic=topic, why=str(error))
        raise
    if is_new:
        log_event.info("a topic of the mirror was created", topic=topic)
    return is_new
