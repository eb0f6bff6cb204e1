"""What a Produce request is refused for before a log looks at its batches.

A transactional batch belongs to a transactional id that its writer may use. Kafka fails the whole request where one
comes without: a transaction that no coordinator knows of would hold up readers of committed records for ever.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from ottla.handlers.transactions.verifying import RefusedByCoordinator
from ottla.model import ErrorCode
from ottla.records.batch import (
    COMPRESSION_MASK,
    HEADER_SIZE,
    LOW_ATTRIBUTES_AT,
    MAGIC,
    MAGIC_AT,
    TRANSACTIONAL,
    batch_size,
)
from ottla.records.compression import ZSTD
from ottla.records.errors import RecordError
from ottla.records.validate import ZSTD_PRODUCE_VERSION, produced_batch
from ottla.storage.errors import AppendRefused

_UNSEEN: Final = frozenset({ErrorCode.CORRUPT_MESSAGE, ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.RECORD_LIST_TOO_LARGE})


def is_transactional(records: memoryview) -> bool:
    """Whether the first batch is whole, and of a transaction."""
    if len(records) < HEADER_SIZE or records[MAGIC_AT] != MAGIC or not records[LOW_ATTRIBUTES_AT] & TRANSACTIONAL:
        return False
    return batch_size(records) <= len(records)


def any_transactional(view: memoryview, topics: Iterable[tuple[str | bytes, Sequence[tuple[int, int, int]]]]) -> bool:
    """Whether a parsed request carries a transactional batch."""
    return any(is_transactional(view[start:end]) for _, partitions in topics for _, start, end in partitions)


def has_zstd(records: memoryview) -> bool:
    return len(records) >= HEADER_SIZE and records[LOW_ATTRIBUTES_AT] & COMPRESSION_MASK == ZSTD


def refused_in(version: int, records: memoryview) -> tuple[ErrorCode, str] | None:
    """Why a batch may not come in a request of this version, if its version is why."""
    if version >= ZSTD_PRODUCE_VERSION or not has_zstd(records):
        return None
    try:
        produced_batch(records, 0, len(records), api_version=version)
    except RecordError as error:
        return error.error_code, error.message
    return None


def is_refused_unseen(refused: AppendRefused) -> bool:
    """Whether Kafka would have answered before it looked at the log: then the answer leaves the log's start out."""
    return refused.is_no_batch or refused.error in _UNSEEN or isinstance(refused, RefusedByCoordinator)


def is_to_be_parsed(version: int, records: memoryview) -> bool:
    """Whether a batch in a request that was recognised is one that the request's fields decide about."""
    return is_transactional(records) or (version < ZSTD_PRODUCE_VERSION and has_zstd(records))
