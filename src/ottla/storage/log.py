"""One partition's log: appends at its end, reads from anywhere in it.

A round of the network stages batches and then writes them, once a log: `stage` checks a batch, gives it its offsets and
stamps them into the caller's buffer; `write_staged` hands all of the round's buffers to the file in one call. Nothing is
visible before it is written. `discard_staged` takes back what was not.

    start_offset <= recovery_point <= end_offset <= next_offset        (a start moved by DeleteRecords may pass the
                                                                        recovery point: nothing below it matters)

Everything runs on the loop's thread and never waits, except the disk itself for a read or a write. What blocks longer
comes back as an object whose `run` a worker calls: `Flush`, `Removal`.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable
from struct import Struct
from typing import Final, NamedTuple

from crc32c import crc32c

from ottla.config import LogConfig
from ottla.model import ZERO_TOPIC_ID, ErrorCode, TopicId, TopicPartition
from ottla.ports import Disk
from ottla.records.batch import HEADER, HEADER_SIZE, LEADER_EPOCH_AT, LOG_OVERHEAD
from ottla.storage import flushing, retention, staging, time_lookup, truncation
from ottla.storage.append import Appended, Origin, examine, rules_of, usual_attributes
from ottla.storage.epochs import EpochCache
from ottla.storage.errors import AppendRefused, BadBatch, CorruptLog, OffsetOutOfRange, StorageFault
from ottla.storage.flush import Flush
from ottla.storage.log_loading import create_segment, load, load_epochs
from ottla.storage.open_files import OpenFiles
from ottla.storage.producer_state import ActiveProducer, ProducerStates
from ottla.storage.reader import EMPTY, Slice
from ottla.storage.recent_batches import RecentBatches
from ottla.storage.recovery import RecoveryReport
from ottla.storage.retention import Removal
from ottla.storage.segment import Segment, Surroundings
from ottla.storage.snapshots import Snapshots, replay
from ottla.storage.time_lookup import TimestampOffset
