"""The ends of transactions, as they stand in the log: reading them out of control batches."""

from __future__ import annotations

from ottla.records.batch import BatchHeader
from ottla.records.control import ControlType, parse_control, plain_marker
from ottla.records.errors import RecordError
from ottla.records.record import decode_batch
from ottla.storage.log.append import Origin
from ottla.storage.log.indexes.txn_index import AbortedTransaction
from ottla.storage.log.producers.producer_state import Marker, ProducerStates

#: A control batch has one record of a few bytes: a bound for a batch that claims more.
_MARKER_BYTES_MAX = 4096


def read_marker(batch: bytes | memoryview) -> Marker | None:
    """The end of a transaction that a control batch says; None for other types, and where the cleaner emptied it."""
    plain = plain_marker(batch)
    if plain is not None:
        return Marker(plain[1], plain[0] is ControlType.ABORT)
    try:
        for record in decode_batch(batch, 0, max_decompressed=_MARKER_BYTES_MAX, check_crcs=False):
            control = parse_control(record.key, record.value)
            if control.coordinator_epoch is not None:
                return Marker(control.coordinator_epoch, control.type is ControlType.ABORT)
    except RecordError:
        # Its checksum has been looked at elsewhere: a batch that says nothing readable ends nothing.
        return None
    return None


def apply_written(
    producers: ProducerStates, header: BatchHeader, batch: bytes | memoryview, now_ms: int
) -> AbortedTransaction | None:
    """Brings the state of producers up to a batch that is in the log already; nothing is refused any more."""
    if header.producer_id < 0:
        return None
    if not header.is_control:
        producers.stage(
            header.producer_id,
            header.producer_epoch,
            header.base_sequence,
            header.last_offset_delta,
            header.base_offset,
            header.max_timestamp,
            header.is_transactional,
            now_ms,
            Origin.REPLICATION,
        )
        return None
    marker = read_marker(batch)
    if marker is None:
        return None
    return producers.stage_marker(
        header.producer_id,
        header.producer_epoch,
        marker,
        header.base_offset,
        header.max_timestamp,
        now_ms,
        Origin.REPLICATION,
    )
