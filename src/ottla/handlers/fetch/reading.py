"""Reading for a fetch: one partition after the other, within the request's and each partition's limit.

The first batch of the first partition that has anything is returned whole, however large, or a consumer with small
limits could never pass it. What is read is a slice of a segment; its bytes are touched only when the answer is made.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from ottla import logs
from ottla.handlers.calls.call import Services
from ottla.handlers.calls.peer import Peer
from ottla.handlers.fetch.asked import AskedPartition
from ottla.handlers.fetch.room import Room
from ottla.handlers.fetch.selector import preferred_replica, selects_by_rack
from ottla.model import BrokerId, ErrorCode, TopicPartition
from ottla.ports import File
from ottla.protocol.hot.fetch import FetchRequest
from ottla.replication.follower import Follower
from ottla.replication.isr_progress import Beat
from ottla.replication.leader import Leader
from ottla.security.authorizer import CLUSTER_NAME, Operation, Resource
from ottla.steps import Steps
from ottla.storage.errors import OffsetOutsideLog, StorageFault
from ottla.storage.log.cold_reads import (
    MissingRead,
    is_warm,
    lacks_producers,
    missing_aborted,
    missing_place,
    missing_producers,
)
from ottla.storage.log.log import Log
from ottla.storage.log.reader import Slice

log_event = logs.logger("handlers")

READ_UNCOMMITTED: Final = 0
READ_COMMITTED: Final = 1
#: What an ordinary consumer gives as its replica id; a follower gives its broker id.
CONSUMER: Final = -1
#: Earlier versions say no rack, and cannot be sent to another replica.
_RACK_SINCE: Final = 11
#: Each takes some five microseconds.
READS_A_STEP: Final = 8
#: Partitions that workers read for one try of a fetch; the others find nothing yet. What stands for one meanwhile takes
#: a kilobyte, and thousands of clients may fetch thousands of them.
COLD_A_TRY_MAX: Final = 16


class PartitionRead:
    """What one partition of a fetch is answered with."""

    __slots__ = (
        "_kept",
        "aborted",
        "asked",
        "diverging",
        "error",
        "high_watermark",
        "is_copied",
        "lacks",
        "last_stable_offset",
        "leader",
        "log_start_offset",
        "missing",
        "of_leader",
        "preferred",
        "records",
        "slice",
    )

    def __init__(self, asked: AskedPartition, error: ErrorCode = ErrorCode.NONE) -> None:
        self.asked = asked
        self.error = error
        self.high_watermark = -1
        self.last_stable_offset = -1
        self.log_start_offset = -1
        #: The leader that was read, also where it had to refuse.
        self.leader: Leader | Follower | None = None
        #: The same for a follower, whose records lie above the watermark too: they are its while it leads.
        self.of_leader: Leader | None = None
        #: The replica that the consumer is to read from; -1: this one.
        self.preferred = -1
        self.slice: Slice | None = None
        #: Whether the log could not be looked into, since something of it is not in memory: there is no slice then.
        self.lacks = False
        #: What a worker is to read for that; None where others of this fetch come first, or nothing has helped.
        self.missing: MissingRead | None = None
        #: The slice's file, while it is held open.
        self._kept: File | None = None
        #: Whether the slice's bytes are copied into the answer, and these bytes.
        self.is_copied = False
        self.records = b""
        #: Transactions among the records that were aborted; None where the client did not ask for committed reads.
        self.aborted: list[tuple[int, int]] | None = None
        #: (epoch, end offset) where the reader's log parts from this one.
        self.diverging: tuple[int, int] | None = None

    @property
    def is_cold(self) -> bool:
        return (
            self.slice is not None
            and self.slice.size > 0
            and self.leader is not None
            and not is_warm(self.leader.log, self.slice)
        )

    def fit(self, room: Room, left: int) -> int:
        """Takes up the answer's room for what was found, or leaves it for the client's next fetch. How many bytes of
        records the answer may still have, of `left`."""
        assert self.slice is not None
        try:
            self.slice = room.cut(self.slice)
        except OSError as fault:
            self.refuse(fault)
            return left
        if room.copies(self.slice):
            self.is_copied = True
        elif not room.sends():
            self.slice = None
            return 0
        return max(0, left - self.size)

    def keep(self) -> None:
        """Holds the file open until `let_go`: retention may take the segment away between two steps."""
        if self.slice is not None and self.slice.file is not None:
            self.slice.file.lease()
            self._kept = self.slice.file

    def let_go(self) -> None:
        kept, self._kept = self._kept, None
        if kept is not None:
            kept.release()

    def load(self) -> None:
        """Reads what is copied, while a fault of the disk can still be answered as this partition's."""
        if self.slice is None or not self.is_copied:
            return
        if self.of_leader is not None and not self.of_leader.present.active:
            # Its log may have been cut between two steps, and have another leader's records at their place.
            self.error = ErrorCode.NOT_LEADER_OR_FOLLOWER
            self.high_watermark = self.last_stable_offset = self.log_start_offset = -1
            self.slice = None
            return
        try:
            self.records = self.slice.read()
        except OSError as fault:
            self.refuse(fault)

    def refuse(self, fault: Exception) -> None:
        self.error = ErrorCode.KAFKA_STORAGE_ERROR
        self.high_watermark = self.last_stable_offset = self.log_start_offset = -1
        self.slice = None
        tp = None if self.leader is None else self.leader.tp
        log_event.warning_limited("a partition could not be read", key=str(tp), partition=tp, reason=fault)

    @property
    def size(self) -> int:
        return 0 if self.slice is None else self.slice.size


def let_go(reads: Iterable[PartitionRead]) -> None:
    for read in reads:
        read.let_go()


class FetchReader:
    """One kind of reader: a consumer with its isolation level, or a follower."""

    __slots__ = (
        *("_committed", "_is_refused", "_rack", "_reads_followers", "_services", "beat", "is_follower"),
        *("_cold_left", "_unreadable", "gives_up", "replica_epoch", "replica_id"),
    )

    def __init__(self, services: Services, request: FetchRequest, version: int, listener: str) -> None:
        self._services = services
        self.replica_id = request.replica_id
        #: The registration that a follower fetches under; -1 before version 15.
        self.replica_epoch = request.replica_epoch
        #: Tools for debugging give -2, which makes them no followers.
        self.is_follower = request.replica_id >= 0
        self._committed = request.isolation_level == READ_COMMITTED
        #: Clients that say they are followers would commit what no replica has: where brokers have a listener of their
        #: own, followers come by that.
        server = services.config.server
        self._is_refused = self.is_follower and len(server.listeners) > 1 and listener != server.inter_broker_listener
        #: A consumer that can be sent to another replica (version 11) may read there, where the configuration wants it.
        self._reads_followers = request.replica_id == CONSUMER and version >= _RACK_SINCE and selects_by_rack(services)
        self._rack = request.rack_id if self._reads_followers else ""
        #: Whether workers have read in vain as often as they may: it finds no records then, and the client asks again.
        self.gives_up = False
        #: How many more partitions this try may have read by workers.
        self._cold_left = COLD_A_TRY_MAX
        #: What workers could not read for it, and why: that is answered.
        self._unreadable: dict[Log, StorageFault] = {}
        #: Of a follower's session.
        self.beat: Beat | None = None

    def were_read(self, missing: Iterable[MissingRead]) -> None:
        """Workers have read these, or could not."""
        self._unreadable = {each.log: each.fault for each in missing if each.fault is not None}

    def begins_try(self) -> None:
        """All partitions are looked at, from the first on."""
        self._cold_left = COLD_A_TRY_MAX

    @property
    def chooses(self) -> bool:
        """Whether it is looked up each time where to read."""
        return bool(self._rack)

    def read_all(
        self, asked: Iterable[AskedPartition], max_bytes: int, room: Room, *, is_new: bool = False
    ) -> list[PartitionRead]:
        """`is_new`: for the first time for this request. A follower's offset counts once."""
        self.begins_try()
        reads = []
        left = max_bytes
        whole_first_batch = True
        for one in asked:
            read = self.read(one, left, whole_first_batch=whole_first_batch, is_new=is_new)
            if read.size:
                left = read.fit(room, left)
                whole_first_batch = False
            reads.append(read)
        return reads

    def read_steps(
        self, asked: Iterable[AskedPartition], max_bytes: int, room: Room, *, is_new: bool = False
    ) -> Steps[list[PartitionRead]]:
        """The same in steps. The reads hold their files open, and have to be let go."""
        self.begins_try()
        reads: list[PartitionRead] = []
        left, whole_first_batch = max_bytes, True
        try:
            for done, one in enumerate(asked, 1):
                read = self.read(one, left, whole_first_batch=whole_first_batch, is_new=is_new)
                reads.append(read)
                if read.size:
                    left = read.fit(room, left)
                    whole_first_batch = False
                    read.keep()
                if not done % READS_A_STEP:
                    yield
        except BaseException:
            let_go(reads)
            raise
        return reads

    def topic_name(self, topic_id: bytes) -> str | None:
        return self._services.metadata.topic_name(topic_id)

    def read(
        self, asked: AskedPartition, max_bytes: int, *, whole_first_batch: bool, is_new: bool = False
    ) -> PartitionRead:
        leader = self.leader(asked)
        if isinstance(leader, ErrorCode):
            return PartitionRead(asked, leader)
        if asked.max_bytes < 0 or max_bytes < 0:
            return PartitionRead(asked, ErrorCode.UNKNOWN_SERVER_ERROR)
        read = PartitionRead(asked, leader.fencing(asked.current_leader_epoch))
        read.leader = leader
        if read.error != ErrorCode.NONE:
            return read
        try:
            if self._rack and isinstance(leader, Leader) and self._is_sent_away(read, leader):
                return read
            self._read(read, leader, max_bytes, whole_first_batch=whole_first_batch)
            if self.is_follower and isinstance(leader, Leader):
                self._of_follower(read, leader, is_new=is_new)
        except OffsetOutsideLog:
            # With none of the log's offsets, as Kafka answers.
            return PartitionRead(asked, ErrorCode.OFFSET_OUT_OF_RANGE)
        except StorageFault as fault:
            read.refuse(fault)
        return read

    def _of_follower(self, read: PartitionRead, leader: Leader, *, is_new: bool) -> None:
        """A follower that asks for an offset has everything below it, which may commit what others wait for.

        It counts where the read itself was in order: in this leader epoch, from a log that is the beginning of this
        one, within its bounds. What was committed by it, it is answered.
        """
        read.of_leader = leader
        if is_new and read.diverging is None and not read.lacks:
            self._services.replicas.follower_fetched(
                *(leader, self.replica_id, read.asked.fetch_offset, self.replica_epoch, self.beat),
                log_start=read.asked.log_start_offset,
            )
            self._note_offsets(read, leader)

    def _is_sent_away(self, read: PartitionRead, leader: Leader) -> bool:
        """Whether the consumer has a replica that is nearer. It is answered no records then."""
        read.preferred = preferred_replica(self._services, leader, self._rack, read.asked.fetch_offset)
        if read.preferred < 0:
            return False
        self._note_offsets(read, leader)
        return True

    @staticmethod
    def _note_offsets(read: PartitionRead, leader: Leader | Follower) -> None:
        read.high_watermark = leader.high_watermark
        read.last_stable_offset = leader.last_stable_offset
        read.log_start_offset = leader.log.start_offset

    def _holds_back(self, leader: Leader | Follower) -> bool:
        """Whether this is a follower that is throttled."""
        if not (self.is_follower and leader.log.config.leader_throttled_replicas and isinstance(leader, Leader)):
            return False
        return self._services.replicas.throttle.holds_back(leader, self.replica_id)

    def _read(self, read: PartitionRead, leader: Leader | Follower, max_bytes: int, *, whole_first_batch: bool) -> None:
        """Raises OffsetOutOfRange and StorageFault."""
        asked, log = read.asked, leader.log
        if self._unreadable and (fault := self._unreadable.get(log)) is not None:
            raise fault
        if self._lacks(read, missing_producers(log)):
            read.high_watermark, read.log_start_offset = leader.high_watermark, log.start_offset
            return
        self._note_offsets(read, leader)
        if asked.last_fetched_epoch >= 0 and self._diverges(read, leader):
            return
        limit = max(0, min(asked.max_bytes, max_bytes))
        if (not limit and not whole_first_batch) or self._holds_back(leader):
            # It has no records, but its offset counts: nothing beyond the log may be believed.
            if not log.start_offset <= asked.fetch_offset <= log.end_offset:
                raise OffsetOutsideLog(asked.fetch_offset, log.start_offset, log.end_offset)
            return
        end = self.limit(leader)
        if self._lacks(read, missing_place(log, asked.fetch_offset, end)):
            return
        read.slice = log.read(asked.fetch_offset, limit, end, whole_first_batch=whole_first_batch)
        if self._committed and not self.is_follower:
            if self._lacks(read, missing_aborted(log, asked.fetch_offset, read.slice, read.last_stable_offset)):
                read.slice = None
                return
            read.aborted = log.aborted_in(asked.fetch_offset, read.slice, read.last_stable_offset)

    def _lacks(self, read: PartitionRead, missing: MissingRead | None) -> bool:
        """Whether it has no records to give, since workers are to read something first."""
        read.lacks = missing is not None
        if read.lacks and not self.gives_up and self._cold_left:
            self._cold_left -= 1
            read.missing = missing
        return read.lacks

    def lags(self, asked: Iterable[AskedPartition]) -> bool:
        """Whether this follower was last answered an older watermark than there is."""
        for one in asked:
            leader = self.leader(one)
            if isinstance(leader, Leader):
                follower = leader.isr.followers.get(self.replica_id)
                if follower is not None and follower.answered_watermark < leader.high_watermark:
                    return True
        return False

    def answered(self, reads: Iterable[PartitionRead]) -> None:
        """This follower is answered these."""
        for read in reads:
            if isinstance(read.leader, Leader) and read.error == ErrorCode.NONE:
                follower = read.leader.isr.followers.get(self.replica_id)
                if follower is not None:
                    follower.answered_watermark = read.high_watermark

    def limit(self, leader: Leader | Follower) -> int:
        """Where this reader's view of the log ends."""
        if self.is_follower:
            return leader.log.end_offset
        if self._committed and not lacks_producers(leader.log):
            return leader.last_stable_offset
        return leader.high_watermark

    def leader(self, asked: AskedPartition) -> Leader | Follower | ErrorCode:
        """Who is read: the leader, or a follower where this reader may read from followers."""
        if self._is_refused:
            return ErrorCode.TOPIC_AUTHORIZATION_FAILED
        name = asked.topic
        if isinstance(name, bytes):
            known = self._services.metadata.topic_name(name)
            if known is None:
                return ErrorCode.UNKNOWN_TOPIC_ID
            name = known
        tp = TopicPartition(name, asked.partition)
        leader = self._services.replicas.leaders.get(tp)
        if leader is None:
            if self.is_follower:
                self._services.replicas.sought(tp, self.replica_id, asked.current_leader_epoch)
            follower = self._services.replicas.followers.get(tp) if self._reads_followers else None
            return follower if follower is not None else self._services.replicas.why_not_leader(tp)
        # Only a broker that holds a replica may say how far that replica is: the high watermark rests on it.
        if self.is_follower and not self.is_replica(leader):
            return self._why_no_replica(leader, asked.current_leader_epoch)
        return leader

    def _why_no_replica(self, leader: Leader, current_leader_epoch: int) -> ErrorCode:
        """Who knows the leader's epoch may have been made a follower that this broker has yet to hear of."""
        if error := leader.fencing(current_leader_epoch):
            return error
        if current_leader_epoch < 0 or self.replica_id in leader.isr.followers:
            return ErrorCode.NOT_LEADER_OR_FOLLOWER
        return ErrorCode.UNKNOWN_LEADER_EPOCH

    def is_replica(self, leader: Leader) -> bool:
        """Whether the follower is assigned, and has not registered again since it sent this (KIP-903)."""
        if self.replica_id not in leader.isr.followers:
            return False
        broker = self._services.metadata.brokers.get(BrokerId(self.replica_id))
        return self.replica_epoch < 0 or broker is None or self.replica_epoch >= broker.epoch

    def _diverges(self, read: PartitionRead, leader: Leader | Follower) -> bool:
        """Whether what the reader has is not the beginning of this log (KIP-595)."""
        asked = read.asked
        found = leader.log.epochs.end_offset_for(asked.last_fetched_epoch, leader.log.end_offset)
        if found is None:
            raise OffsetOutsideLog(asked.fetch_offset, leader.log.start_offset, leader.log.end_offset)
        epoch, end_offset = found
        if epoch < asked.last_fetched_epoch or end_offset < asked.fetch_offset:
            read.diverging = (epoch, end_offset)
            return True
        return False


class CheckedReader(FetchReader):
    """A reader where an authorizer has a say: consumers may read topics, followers act for the cluster.

    It is asked at each read: its mind may change while a fetch waits.
    """

    __slots__ = ("_peer",)

    def __init__(self, services: Services, request: FetchRequest, version: int, peer: Peer) -> None:
        super().__init__(services, request, version, peer.listener_name)
        self._peer = peer

    def leader(self, asked: AskedPartition) -> Leader | Follower | ErrorCode:
        name = self._services.metadata.topic_name(asked.topic) if isinstance(asked.topic, bytes) else asked.topic
        if name is not None and not self._may_read(name):
            return ErrorCode.TOPIC_AUTHORIZATION_FAILED
        return super().leader(asked)

    def _may_read(self, topic: str) -> bool:
        peer, allowed = self._peer, self._services.authorizer.allowed
        if self.replica_id >= 0:
            return allowed(peer.principal, peer.host, Operation.CLUSTER_ACTION, Resource.CLUSTER, CLUSTER_NAME)
        return allowed(peer.principal, peer.host, Operation.READ, Resource.TOPIC, topic)
