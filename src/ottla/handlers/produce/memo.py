"""A Produce that is sent again and again with another batch: its constant parts, and its answer but for the numbers.

Everything before the batch is remembered, and what stands behind it: a request that is like it needs no parsing. One
that is also of the same size needs not even its batch's length read.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Final

from ottla.handlers.calls.peer import Peer
from ottla.handlers.produce.rules import has_zstd
from ottla.handlers.transactions.verifying import ProducedTransaction
from ottla.protocol.fields import INT32, REQUEST_FIELDS_BYTES
from ottla.protocol.hot.produce_template import FLEXIBLE, AnswerTemplate
from ottla.protocol.primitives import find_compact_length, uvarint_size
from ottla.records.batch import TRANSACTIONAL
from ottla.records.validate import ZSTD_PRODUCE_VERSION
from ottla.replication.leader import Leader

if TYPE_CHECKING:
    from ottla.native.lane import Lane, Run

#: What is remembered of a request at the most: a client id, a topic and a few numbers take a tenth of it.
REMEMBERED_BYTES_MAX: Final = 1024
#: A local name: it is looked up for each request.
_FIXED_HEAD: Final = REQUEST_FIELDS_BYTES
_LENGTH_BYTES: Final = INT32.size


class ProduceMemo:
    __slots__ = (
        "_head",
        "_prefix",
        "_size",
        "_template",
        "_trailer",
        "acks",
        "fill",
        "is_in_lanes",
        "leader",
        "log",
        "policy",
        "records_at",
        "records_end",
        "stage",
        "timeout_ms",
        "topic",
        "transaction",
        "version",
    )

    def __init__(
        self,
        version: int,
        prefix: bytes,
        trailer: bytes,
        acks: int,
        timeout_ms: int,
        leader: Leader,
        topic: str | bytes,
        policy: int,
        transaction: ProducedTransaction | None = None,
    ) -> None:
        self.version = version
        #: What the request says of the transaction of its batch; None where it was outside of any.
        self.transaction = transaction
        #: Whether a lane was opened for it, where there can be one.
        self.is_in_lanes = False
        #: The number of the policy that allowed it.
        self.policy = policy
        self.acks = acks
        self.timeout_ms = timeout_ms
        self.leader = leader
        self.topic = topic
        self.log = leader.log
        staging = leader.log.staging
        self.stage = staging.stage_plain if transaction is None else staging.stage_in_transaction
        if version < ZSTD_PRODUCE_VERSION:
            self.stage = partial(_stage_without_zstd, self.stage)
        self._template = AnswerTemplate(version, topic, leader.tp.partition)
        self.fill = self._template.fill
        #: Where the batch of the last request that was alike lies, from its frame's start.
        self.records_at = self.records_end = 0
        self._prefix = prefix
        self._trailer = trailer
        #: That request's size, and its prefix with the batch's length behind it.
        self._size = 0
        self._head = b""

    def is_like(self, data: bytearray, start: int, end: int) -> bool:
        """Whether a frame differs from the remembered one in its batch only; `records_at` and `records_end` are then
        those of this frame."""
        if (
            end - start == self._size
            and data[start + _FIXED_HEAD : start + self.records_at] == self._head
            and data[start + self.records_end : end] == self._trailer
        ):
            return True
        at = start + _FIXED_HEAD + len(self._prefix)
        if at >= end or data[start + _FIXED_HEAD : at] != self._prefix:
            return False
        if self.version >= FLEXIBLE:
            length, at = find_compact_length(data, at, end)
        else:
            length = INT32.unpack_from(data, at)[0] if at + _LENGTH_BYTES <= end else -1
            at += _LENGTH_BYTES
        records_end = at + length
        if length <= 0 or records_end > end or data[records_end:end] != self._trailer:
            return False
        self.records_at, self.records_end = at - start, records_end - start
        self._size = end - start
        self._head = bytes(data[start + _FIXED_HEAD : at])
        return True

    def stage_first(self, records: memoryview, leader_epoch: int, now_ms: int) -> int:
        """As `stage`, for the first batch of a transaction whose coordinator has answered for it."""
        if self.version < ZSTD_PRODUCE_VERSION and has_zstd(records):
            return -1
        return self.log.staging.stage_plain(records, leader_epoch, now_ms, TRANSACTIONAL)

    def lane(self, run: Run, fd: int, peer: Peer) -> Lane | None:
        """What recognises the same requests and is compiled; None where they are too long for it, or too
        old to carry every codec that it lets pass."""
        if self.version < ZSTD_PRODUCE_VERSION:
            return None
        flexible, template = self.version >= FLEXIBLE, self._template
        try:
            return run.lane(
                fd,
                (peer, self),
                self.version,
                flexible,
                self._prefix,
                self._trailer,
                template.whole,
                template.offset_at,
                template.has_log_start,
                max(0, self.timeout_ms),
                self.transaction is not None,
            )
        except ValueError:
            return None


def _stage_without_zstd(
    stage: Callable[[memoryview, int, int], int], records: memoryview, leader_epoch: int, now_ms: int
) -> int:
    """For versions that may not carry every codec."""
    return -1 if has_zstd(records) else stage(records, leader_epoch, now_ms)


def remember(
    data: bytearray,
    start: int,
    end: int,
    version: int,
    records_start: int,
    records_end: int,
    acks: int,
    timeout_ms: int,
    leader: Leader,
    topic: str | bytes,
    policy: int,
    transaction: ProducedTransaction | None = None,
) -> ProduceMemo | None:
    """A memo of the request from `start` to `end`, which has one batch from `records_start` to `records_end`.

    None where there is too much around the batch: connections are many, and each would keep it.
    """
    if end - start - (records_end - records_start) > REMEMBERED_BYTES_MAX:
        return None
    length_bytes = _LENGTH_BYTES if version < FLEXIBLE else uvarint_size(records_end - records_start + 1)
    prefix = bytes(data[start + _FIXED_HEAD : records_start - length_bytes])
    trailer = bytes(data[records_end:end])
    return ProduceMemo(version, prefix, trailer, acks, timeout_ms, leader, topic, policy, transaction)
