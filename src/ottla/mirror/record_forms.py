"""Bytes of the records that mirrors keep in topics of their own (docs/formats/mirror-topics.md).

Offset syncs and checkpoints are MirrorMaker 2's, so that its tools and clients read them. A page of pairs is ours.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Final, NamedTuple

from ottla.mirror.pairs import Pair

_INT16: Final = struct.Struct(">h")
_INT32: Final = struct.Struct(">i")
_TWO_INT64: Final = struct.Struct(">qq")
_PAGE_HEAD: Final = struct.Struct(">h16s16sqi")
_PAGE_KEY_TAIL: Final = struct.Struct(">iqQi")

CHECKPOINT_VERSION: Final = 0
PAGE_VERSION: Final = 0
#: Above every nonce of a page's key.
NONCE_END: Final = 1 << 64
#: Pairs of one record: 4 KB, which are written again with each pair that is added to the last page.
PAGE_PAIRS_MAX: Final = 256


class BadRecord(Exception):
    """A record of such a topic that is none."""


class OffsetSync(NamedTuple):
    """The record at `upstream` of the source lies at `downstream` of the target."""

    topic: str
    partition: int
    upstream: int
    downstream: int

    def key(self) -> bytes:
        return _text(self.topic) + _INT32.pack(self.partition)

    def value(self) -> bytes:
        return _TWO_INT64.pack(self.upstream, self.downstream)


class Checkpoint(NamedTuple):
    """Where a group goes on in the target's topic."""

    group: str
    topic: str
    partition: int
    upstream: int
    downstream: int
    metadata: str

    def key(self) -> bytes:
        return _text(self.group) + _text(self.topic) + _INT32.pack(self.partition)

    def value(self) -> bytes:
        offsets = _TWO_INT64.pack(self.upstream, self.downstream)
        return _INT16.pack(CHECKPOINT_VERSION) + offsets + _text(self.metadata)


class PageKey(NamedTuple):
    """Whose pairs: of a source partition, by one of its writers."""

    topic: str
    partition: int
    #: Rises from one writer of the partition to the next.
    writer: int
    #: Two writers that took the same number are kept apart by it.
    nonce: int
    page: int

    def encoded(self) -> bytes:
        return _INT16.pack(PAGE_VERSION) + _text(self.topic) + _PAGE_KEY_TAIL.pack(*self[1:])


class Page(NamedTuple):
    source_id: bytes
    target_id: bytes
    #: The copy ended there when this was written: it never ends before it again.
    reached: int
    pairs: Sequence[Pair]

    def encoded(self) -> bytes:
        head = _PAGE_HEAD.pack(PAGE_VERSION, self.source_id, self.target_id, self.reached, len(self.pairs))
        return head + b"".join(_TWO_INT64.pack(*pair) for pair in self.pairs)


def decode_page_key(data: bytes) -> PageKey:
    try:
        (version,) = _INT16.unpack_from(data)
        topic, at = _read_text(data, _INT16.size)
        key = PageKey(topic, *_PAGE_KEY_TAIL.unpack_from(data, at))
    except (struct.error, UnicodeDecodeError) as error:
        raise BadRecord(f"no key of a page of pairs: {error}") from None
    if version != PAGE_VERSION or at + _PAGE_KEY_TAIL.size != len(data):
        raise BadRecord(f"no key of a page of pairs of version {PAGE_VERSION}")
    return key


def decode_page(data: bytes) -> Page:
    try:
        version, source_id, target_id, reached, count = _PAGE_HEAD.unpack_from(data)
    except struct.error as error:
        raise BadRecord(f"no page of pairs: {error}") from None
    if version != PAGE_VERSION or not 0 <= count <= PAGE_PAIRS_MAX:
        raise BadRecord(f"no page of pairs of version {PAGE_VERSION}")
    if len(data) != _PAGE_HEAD.size + count * _TWO_INT64.size:
        raise BadRecord(f"a page of {count} pairs has not {len(data)} bytes")
    return Page(source_id, target_id, reached, [Pair(*one) for one in _TWO_INT64.iter_unpack(data[_PAGE_HEAD.size :])])


def _text(text: str) -> bytes:
    """Kafka's STRING."""
    raw = text.encode()
    return _INT16.pack(len(raw)) + raw


def _read_text(data: bytes, at: int) -> tuple[str, int]:
    (length,) = _INT16.unpack_from(data, at)
    end = at + _INT16.size + length
    if length < 0 or end > len(data):
        raise BadRecord("a text goes beyond its record")
    return data[at + _INT16.size : end].decode(), end
