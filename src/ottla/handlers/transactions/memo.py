"""The last AddPartitionsToTxn and the last EndTxn of a connection: what is kept of them, to recognise their likes.

A client of the classic protocol sends the same bytes for each of its transactions that writes to the same partitions.
Of a first request only the bytes are kept; what they say, and the answer to them, is found out when they come again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ottla.protocol.fields import CORRELATION_AT, CORRELATION_END, INT32, REQUEST_FIELDS_BYTES

if TYPE_CHECKING:
    from ottla.transactions.asked import EndAsked, ProducerPartitions

#: A longer request is not remembered. One of this size names an id and some partitions.
REMEMBERED_BYTES_MAX: Final = 512

_pack_correlation: Final = INT32.pack


class TransactionMemo:
    __slots__ = (
        "_before",
        "_behind",
        "adds",
        "ends",
        "policy",
        "seen_generation",
        "size",
        "tail",
        "version",
    )

    def __init__(self, frame: bytes, version: int) -> None:
        self.version = version
        self.size = len(frame)
        #: All that stands behind the correlation id.
        self.tail = frame[REQUEST_FIELDS_BYTES:]
        #: What it asks for: one of the two once it came again and was allowed.
        self.adds: ProducerPartitions | None = None
        self.ends: EndAsked | None = None
        #: The number of the policy that allowed it, or under which it was looked at in vain.
        self.policy = -1
        #: The last of the metadata under which the partitions were there, or it was looked at in vain.
        self.seen_generation = -1
        self._before = self._behind = b""

    def is_like(self, data: bytearray, start: int, end: int, version: int) -> bool:
        return (
            end - start == self.size
            and version == self.version
            and data[start + REQUEST_FIELDS_BYTES : end] == self.tail
        )

    def answered_with(self, answer: bytes) -> None:
        """What is answered where all is well, as it was encoded for some correlation id."""
        self._before, self._behind = answer[:CORRELATION_AT], answer[CORRELATION_END:]

    def answer(self, correlation: int) -> bytes:
        return self._before + _pack_correlation(correlation) + self._behind


class TransactionMemos:
    """Of one connection."""

    __slots__ = ("adds", "ends")

    def __init__(self) -> None:
        self.adds: TransactionMemo | None = None
        self.ends: TransactionMemo | None = None
