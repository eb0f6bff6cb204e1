"""The partitions of a fetch that are looked at when they have changed, and not before.

A fetch session may have ten thousand partitions, of which some have news at a time; and so may a fetch that waits. Each
partition of such a set is in one of two states, and goes from one to the other as often as it likes:

    marked    it may have news: it is new, its request or the partition itself has changed, records are left to be
              read, or its error is to be said again
    at rest   its client knows all there is to know

A look reads those that are marked, in their order. Whatever it has looked at it watches from then on
(`replication/waiters.py`): a change marks it again, and wakes the fetch that waits.

An error is said with every answer, as Kafka does it, with one exception: that a topic or a partition is unknown is said
once, and again when the client asks for it anew. A client that made up a hundred thousand of them would have a hundred
thousand answers each time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import count
from operator import attrgetter
from typing import Final

from ottla.handlers.fetch.asked import AskedPartition, Key
from ottla.handlers.fetch.reading import READS_A_STEP, FetchReader, PartitionRead, let_go
from ottla.handlers.fetch.room import Room
from ottla.model import ErrorCode, TopicPartition
from ottla.replication.waiters import Waiters, Watched
from ottla.steps import Steps, pieces

#: Said once, not with every answer.
_SAID_ONCE: Final = frozenset((ErrorCode.UNKNOWN_TOPIC_ID, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION))
#: So many are brought into their order by sorting, in a third of a millisecond; for more, all partitions are gone
#: through in steps.
_SORTED_MAX: Final = 1024
_BY_PLACE: Final = attrgetter("place")


class WatchedPartition:
    """One partition of a set, and what its client knows of it."""

    __slots__ = (
        *("asked", "error", "has_changed", "high_watermark", "is_new", "key", "log_start_offset", "place"),
        *("stands_at", "within"),
    )

    def __init__(self, within: WatchedPartitions, key: Key, asked: AskedPartition, place: int) -> None:
        #: The set; None once it has left that.
        self.within: WatchedPartitions | None = within
        self.key = key
        self.asked = asked
        #: Nothing was read yet for what it asks for.
        self.is_new = True
        #: Partitions are answered in the order of these numbers.
        self.place = place
        #: What the client was last answered. -1 behind an error: whatever comes behind that is news.
        self.high_watermark = -1
        self.log_start_offset = -1
        #: None where it has not asked since: it is answered anew.
        self.error: ErrorCode | None = None
        #: Where its watcher stands.
        self.stands_at: Watched | None = None
        #: Since it was last looked at.
        self.has_changed = False

    def changed(self) -> None:
        self.has_changed = True
        within = self.within
        if within is None or not within.stays or not isinstance(self.stands_at, TopicPartition):
            self.stands_at = None
        if within is not None:
            within.mark(self)

    def is_news(self, read: PartitionRead) -> bool:
        """Whether an answer has to carry this."""
        if read.size or read.missing is not None or read.diverging is not None or read.preferred >= 0:
            return True
        if read.error != ErrorCode.NONE:
            return read.error not in _SAID_ONCE or read.error != self.error
        return self.is_behind(read)

    def is_behind(self, read: PartitionRead) -> bool:
        """Whether the client knows another high watermark or log start than this."""
        return read.high_watermark != self.high_watermark or read.log_start_offset != self.log_start_offset

    def answered(self, read: PartitionRead) -> None:
        """The client is answered this."""
        self.error = read.error
        failed = read.error != ErrorCode.NONE or read.diverging is not None
        self.high_watermark = -1 if failed else read.high_watermark
        self.log_start_offset = read.log_start_offset


class WatchedPartitions:
    def __init__(self, waiters: Waiters, *, stays: bool = False) -> None:
        self._waiters = waiters
        #: Watches its partitions as long as it has them, where each look would else have to begin anew.
        self.stays = stays
        #: In the order of their places.
        self._partitions: dict[Key, WatchedPartition] = {}
        self._marked: dict[WatchedPartition, None] = {}
        self._places = count()
        #: Called with each mark, by the fetch that waits.
        self.on_mark: Callable[[], None] | None = None

    def __len__(self) -> int:
        return len(self._partitions)

    @property
    def asked(self) -> list[AskedPartition]:
        return [each.asked for each in self._partitions.values()]

    @property
    def marked_count(self) -> int:
        return len(self._marked)

    # -- what the client asks for

    def take(self, asked: AskedPartition) -> None:
        """A partition that the client asks for, or asks for differently. One that is known keeps its place."""
        key = asked[:2]
        known = self._partitions.get(key)
        if known is None:
            # The same object says where it is watched, unless the client knows its topic by an id.
            key = TopicPartition(asked.topic, asked.partition) if isinstance(asked.topic, str) else key
            known = self._partitions[key] = WatchedPartition(self, key, asked, next(self._places))
        else:
            known.asked = asked
            known.is_new = True
            known.error = None
        self._marked[known] = None

    def of(self, key: Key) -> WatchedPartition | None:
        return self._partitions.get(key)

    def has_other_news(self, each: WatchedPartition) -> bool:
        """Whether another partition than this one is marked."""
        return len(self._marked) > (each in self._marked)

    def goes_on(self, each: WatchedPartition, asked: AskedPartition) -> None:
        """The client asks for the next records of a partition that it knows; they are looked at now."""
        each.asked = asked
        each.error = None
        each.is_new = each.has_changed = False

    def looked_at(self, each: WatchedPartition, *, is_news: bool) -> None:
        """A partition was looked at, and nothing of it is answered now."""
        each.has_changed = False
        if is_news:
            self._marked[each] = None
        else:
            self._marked.pop(each, None)

    def sent_records(self, each: WatchedPartition) -> None:
        """The client is answered records of it: the others come first then, and it is looked at again."""
        each.has_changed = False
        self._marked[each] = None
        if len(self._partitions) > 1:
            each.place = next(self._places)
            del self._partitions[each.key]
            self._partitions[each.key] = each

    def take_steps(self, asked: Iterable[AskedPartition]) -> Steps[None]:
        for some in pieces(asked):
            for each in some:
                self.take(each)
            yield

    def forget(self, key: Key) -> None:
        known = self._partitions.pop(key, None)
        if known is not None:
            self._leave(known)

    def close_steps(self) -> Steps[None]:
        """Forgets all of them."""
        partitions = self._partitions
        while partitions:
            for _ in range(min(64, len(partitions))):
                self._leave(partitions.popitem()[1])
            yield

    def _leave(self, gone: WatchedPartition) -> None:
        gone.within = None
        self._marked.pop(gone, None)
        if gone.stands_at is not None:
            if self.stays and isinstance(gone.stands_at, TopicPartition):
                self._waiters.stand_no_more(gone.stands_at, gone)
            else:
                self._waiters.unwatch(gone.stands_at, gone)
            gone.stands_at = None

    # -- looks

    def mark(self, changed: WatchedPartition) -> None:
        self._marked[changed] = None
        if self.on_mark is not None:
            self.on_mark()

    def look(
        self, reader: FetchReader, max_bytes: int, room: Room, *, full: bool, in_steps: bool = False
    ) -> Steps[list[PartitionRead]]:
        """Reads what is marked, and returns what is news of it; for a full answer, all that it has read.

        Reads in steps hold their files open, and have to be let go.
        """
        reads: list[PartitionRead] = []
        try:
            yield from self._look(reads, reader, max_bytes, room, full=full, in_steps=in_steps)
        except BaseException:
            let_go(reads)
            raise
        return reads

    def _look(
        self, reads: list[PartitionRead], reader: FetchReader, max_bytes: int, room: Room, *, full: bool, in_steps: bool
    ) -> Steps[None]:
        reader.begins_try()
        left, whole_first_batch = max_bytes, True
        for done, each in enumerate((yield from self._in_order()), 1):
            if each.within is self:
                # Before it is read: what changes behind that is not to be missed.
                self._watch(each, reader)
                is_new, each.is_new = each.is_new, False
                read = reader.read(each.asked, left, whole_first_batch=whole_first_batch, is_new=is_new)
                # One that could not be looked at yet does not count.
                each.is_new = is_new and read.lacks
                # A follower's offset may have moved the high watermark, which called the watcher and which this read
                # has seen: it goes on watching for what comes behind.
                self._watch(each, reader)
                if read.size:
                    left = read.fit(room, left)
                    whole_first_batch = False
                    if in_steps:
                        read.keep()
                is_news = full or each.is_news(read)
                if is_news:
                    reads.append(read)
                # Reading may itself change the partition: what a follower asks for moves its watermark. Then nobody
                # watches it any more, and it is looked at again.
                if (full or not is_news) and each.stands_at is not None and not _is_left(each, read, reader):
                    self._marked.pop(each, None)
            if not done % READS_A_STEP:
                yield

    def is_behind(self, reads: Iterable[PartitionRead]) -> bool:
        """Whether there is news for the client in these besides records."""
        for read in reads:
            each = self._partitions.get(read.asked[:2])
            if each is not None and each.is_behind(read):
                return True
        return False

    def read_steps(self, reader: FetchReader, max_bytes: int, room: Room) -> Steps[list[PartitionRead]]:
        """All of them, for a full answer. They hold their files open, and have to be let go."""
        return (yield from reader.read_steps(self.asked, max_bytes, room))

    def answer(self, read: PartitionRead, reader: FetchReader, *, moves: bool) -> None:
        """The client is answered this. With `moves`, one with records goes to the end: the others come first then."""
        each = self._partitions.get(read.asked[:2])
        if each is None or each.asked is not read.asked:
            return
        each.answered(read)
        if moves and read.size:
            each.place = next(self._places)
            del self._partitions[each.key]
            self._partitions[each.key] = each
        # Where its watcher was called since, there may be more news than what was read.
        if not each.has_changed and not _is_left(each, read, reader):
            self._marked.pop(each, None)

    def _in_order(self) -> Steps[list[WatchedPartition]]:
        marked = self._marked
        if len(marked) <= _SORTED_MAX:
            return sorted(marked, key=_BY_PLACE)
        found: list[WatchedPartition] = []
        for some in pieces(list(self._partitions.values()), 256):
            found += [each for each in some if each in marked]
            yield
        return found

    def _watch(self, each: WatchedPartition, reader: FetchReader) -> None:
        each.has_changed = False
        if each.stands_at is None:
            topic, partition = each.key
            if isinstance(topic, str):
                each.stands_at = each.key if isinstance(each.key, TopicPartition) else TopicPartition(topic, partition)
            else:
                name = reader.topic_name(topic)
                each.stands_at = topic if name is None else TopicPartition(name, partition)
            if self.stays and isinstance(each.stands_at, TopicPartition):
                self._waiters.stand(each.stands_at, each)
            else:
                self._waiters.watch(each.stands_at, each)


def _is_left(each: WatchedPartition, read: PartitionRead, reader: FetchReader) -> bool:
    """Whether the partition stays marked behind a look: there are records to read, or an error to say again."""
    if read.lacks:
        return True
    if read.error != ErrorCode.NONE:
        return read.error not in _SAID_ONCE
    if read.diverging is not None or read.preferred >= 0 or read.leader is None:
        return True
    return reader.limit(read.leader) > each.asked.fetch_offset
