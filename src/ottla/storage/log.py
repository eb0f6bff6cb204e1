"""One partition's log: appends at its end, reads from anywhere in it.

A round of the network stages batches and then writes them, once a log: `stage` checks a batch, gives it its offsets and
stamps them into the caller's buffer; `write_staged` hands all of the round's buffers to the file in one call. Nothing is
visible before it is written, and `discard_staged` takes back what was not.

    start_offset <= end_offset <= next_offset        recovery_point <= end_offset

Everything runs on the loop's thread and never waits, except for the disk's own reads and writes. What blocks longer
comes back as an object whose `run` a worker calls: `Flush`, `Removal`.
"""

from __future__ import annotations

from collections.abc import Callable
from struct import Struct
from typing import Final, NamedTuple

from crc32c import crc32c

from ottla.config import LogConfig
from ottla.model import ZERO_TOPIC_ID, TopicId, TopicPartition
from ottla.ports import Disk
from ottla.records.batch import HEADER, HEADER_SIZE, LEADER_EPOCH_AT, LOG_OVERHEAD
from ottla.records.validate import COUNTED_RECORDS_MAX
from ottla.storage import flush as flushes
from ottla.storage import replica_append, retention, rolling, time_lookup, truncation
from ottla.storage.append import Appended, Origin, examine, rules_of, usual_attributes
from ottla.storage.epochs import EpochCache
from ottla.storage.errors import BadBatch, CorruptLog, OffsetOutOfRange, StorageFault
from ottla.storage.flush import Flush
from ottla.storage.log_loading import Loaded, load, load_epochs, load_producers
from ottla.storage.markers import read_marker
from ottla.storage.open_files import OpenFiles
from ottla.storage.places import Places
from ottla.storage.producer_state import ActiveProducer, ProducerStates
from ottla.storage.reader import EMPTY, Slice
from ottla.storage.retention import Removal
from ottla.storage.segment import Segment, Surroundings
from ottla.storage.time_lookup import TimestampOffset
from ottla.storage.txn_index import AbortedTransaction

_UNPACK: Final = HEADER.unpack_from
_PACK_OFFSET: Final = Struct(">q").pack_into
_PACK_EPOCH: Final = Struct(">i").pack_into
_NO_EPOCH_YET: Final = -2
PRODUCER_EXPIRATION_MS: Final = 24 * 60 * 60 * 1000


class SegmentInfo(NamedTuple):
    base_offset: int
    size: int
    path: str


class Log:
    __slots__ = (
        "_attributes", "_epochs", "_flush", "_future_ms", "_producers", "_rules", "_size_max", "_staged",
        "_staged_aborted", "_staged_batches", "_staged_end", "_staged_epochs", "_leader_epoch", "around", "config",
        "dirty_since_ms", "end_offset", "generation", "limits", "names_changed", "next_offset", "opened_ms", "places",
        "producer_expiration_ms", "recovery", "recovery_point", "roll_offset", "roll_size", "roll_timestamp", "segments",
        "size", "snapshots", "start_offset", "topic_id", "touched", "tp", "unsynced", "unsynced_paths",
    )  # fmt: skip

    def __init__(self, around: Surroundings, tp: TopicPartition, config: LogConfig, loaded: Loaded, now_ms: int) -> None:
        self.around = around
        self.tp = tp
        #: Known to whoever reads partition.metadata.
        self.topic_id: TopicId = ZERO_TOPIC_ID
        self.segments: list[Segment] = loaded.segments
