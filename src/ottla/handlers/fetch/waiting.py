"""A fetch of some partitions, from its request to its answer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from ottla.handlers.fetch.asked import AskedPartition
from ottla.handlers.fetch.reading import FetchReader, PartitionRead
from ottla.handlers.fetch.sessions import NO_SESSION
from ottla.model import ErrorCode, TopicPartition
from ottla.protocol.hot.fetch import FetchRequest
from ottla.storage.log.cold_reads import MissingRead

if TYPE_CHECKING:
    from ottla.handlers.calls.peer import Peer
    from ottla.handlers.fetch.handler import FetchHandler


#: How long a follower waits for records that take a moved watermark along. Without them it is answered that alone:
#: at once, each write would cost every follower two fetches.
WATERMARK_NEWS_MS: Final = 5

#: Where a segment lies on the disk is found by one read of a worker, and its aborted transactions by another.
COLD_READS_MAX: Final = 4

#: What a fetch says of all that it has read, the id of its session, and an error of the request as a whole.
Answer = tuple[list[PartitionRead], int, ErrorCode]


class FetchWait:
    """One without a session."""

    __slots__ = (
        "asked",
        "began_ms",
        "client_id",
        "correlation",
        "handler",
        "is_hasty",
        "is_new",
        "max_bytes",
        "min_bytes",
        "peer",
        "reader",
        "reads_left",
        "version",
    )

    def __init__(
        self, handler: FetchHandler, peer: Peer, version: int, correlation: int, request: FetchRequest
    ) -> None:
        self.handler = handler
        self.peer = peer
        self.version = version
        self.correlation = correlation
        self.min_bytes = request.min_bytes
        self.max_bytes = min(request.max_bytes, handler.bytes_max)
        self.asked: list[AskedPartition] = []
        #: Whether its time was cut short, for news of a watermark.
        self.is_hasty = False
        #: Nothing was read for it yet.
        self.is_new = True
        #: How often workers may still read for it what its logs lack.
        self.reads_left = COLD_READS_MAX
        #: When its round began, where that has left it waiting.
        self.began_ms: int | None = None
        #: Known where quotas ask for it.
        self.client_id: str | None = None
        self.reader: FetchReader = handler.reader(peer, request, version)

    def partitions(self) -> list[TopicPartition]:
        return [read.tp for one in self.asked if not isinstance(read := self.reader.leader(one), ErrorCode)]

    def first_try(self) -> bool:
        """Answers at once where there is enough, an error, or nothing to wait for."""
        reads = self._read()
        if not self.asked or self.is_enough(reads):
            self.handler.settle(self, reads)
            return True
        return False

    def is_enough(self, reads: list[PartitionRead]) -> bool:
        return sum(read.size for read in reads) >= self.min_bytes or any(
            read.error or read.diverging or read.preferred >= 0 or read.missing for read in reads
        )

    def try_complete(self, now_ms: int) -> bool:
        if self._has_news():
            return self.first_try()
        if self.reader.is_follower and not self.is_hasty and self.reader.lags(self.asked):
            waiters = self.handler.services.replicas.waiters
            waiters.forget(self)
            self.is_hasty = True
            waiters.park(self, self.partitions(), now_ms + WATERMARK_NEWS_MS)
        return False

    def wait_ms(self, max_wait_ms: int) -> int:
        """How long it waits for more than there is."""
        if self.reader.is_follower and max_wait_ms > WATERMARK_NEWS_MS and self.reader.lags(self.asked):
            self.is_hasty = True
            return WATERMARK_NEWS_MS
        return max_wait_ms

    def _has_news(self) -> bool:
        """A cheap look before all partitions are read: reading takes twenty times as long."""
        reader = self.reader
        for one in self.asked:
            leader = reader.leader(one)
            if (
                isinstance(leader, ErrorCode)
                or reader.limit(leader) > one.fetch_offset
                or leader.fencing(one.current_leader_epoch) != ErrorCode.NONE
            ):
                return True
        return False

    def cancel(self) -> None:
        """Nobody waits for it any more."""
        self.handler.services.replicas.waiters.forget(self)

    def failed(self, fault: Exception) -> None:
        self.peer.abort()

    def expire(self, now_ms: int) -> None:
        self.answer_now()

    def cold_was_read(self, missing: Sequence[MissingRead]) -> None:
        """Workers have read for it what its logs lacked, if they could. A log may have changed meanwhile, or have been
        asked for something else by others."""
        self.reads_left -= 1
        self.reader.gives_up = self.reads_left == 0
        self.reader.were_read(missing)

    def go_on_warm(self, missing: Sequence[MissingRead]) -> None:
        self.cold_was_read(missing)
        if not self.first_try():
            self.answer_now()

    def answer_now(self) -> None:
        """Answers with what there is."""
        self.handler.settle(self, self._read())

    def _read(self) -> list[PartitionRead]:
        is_new = self.is_new
        reads = self.reader.read_all(self.asked, self.max_bytes, self.handler.room(), is_new=is_new)
        self.is_new = is_new and any(read.lacks for read in reads)
        return reads

    def answer(self, reads: list[PartitionRead]) -> Answer:
        """What is to be said of them. It is sent now."""
        return reads, NO_SESSION, ErrorCode.NONE

    def throttled(self) -> int:
        """The answer is to say nothing, for the client has had too much. The id of the session that goes on."""
        return NO_SESSION
