"""Bytes of the records in mirrors' own topics, against bytes that were written down from the formats' pages."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.mirror.pairs import Pair
from ottla.mirror.record_forms import (
    NONCE_END,
    PAGE_PAIRS_MAX,
    BadRecord,
    Checkpoint,
    OffsetSync,
    Page,
    PageKey,
    decode_page,
    decode_page_key,
)

OFFSETS = st.integers(0, 2**63 - 1)


def test_an_offset_sync_is_mirrormakers() -> None:
    sync = OffsetSync("orders", 3, 258, 257)
    assert sync.key() == b"\0\6orders\0\0\0\3"
    assert sync.value() == bytes(6) + b"\1\2" + bytes(6) + b"\1\1"


def test_a_checkpoint_is_mirrormakers() -> None:
    checkpoint = Checkpoint("billing", "A.orders", 3, 258, 257, "seen")
    assert checkpoint.key() == b"\0\7billing\0\x08A.orders\0\0\0\3"
    assert checkpoint.value() == b"\0\0" + bytes(6) + b"\1\2" + bytes(6) + b"\1\1" + b"\0\4seen"


@given(
    st.text(max_size=20), st.integers(0, 2**31 - 1), OFFSETS, st.integers(0, NONCE_END - 1), st.integers(0, 2**31 - 1)
)
def test_a_pages_key_is_read_as_it_was_written(topic: str, partition: int, writer: int, nonce: int, page: int) -> None:
    key = PageKey(topic, partition, writer, nonce, page)
    assert decode_page_key(key.encoded()) == key


@given(
    st.binary(min_size=16, max_size=16),
    st.binary(min_size=16, max_size=16),
    OFFSETS,
    st.lists(st.builds(Pair, OFFSETS, OFFSETS), max_size=PAGE_PAIRS_MAX),
)
def test_a_page_is_read_as_it_was_written(source: bytes, target: bytes, reached: int, pairs: list[Pair]) -> None:
    page = Page(source, target, reached, pairs)
    assert decode_page(page.encoded()) == page


@given(st.binary(max_size=80))
def test_other_bytes_are_refused_by_one_error(data: bytes) -> None:
    for decode in (decode_page, decode_page_key):
        try:
            decode(data)
        except BadRecord:
            continue


@pytest.mark.parametrize("cut", [1, 4, 40])
def test_a_page_that_was_cut_is_refused(cut: int) -> None:
    data = Page(bytes(16), bytes(16), 5, [Pair(0, 0), Pair(7, 3)]).encoded()
    with pytest.raises(BadRecord):
        decode_page(data[:-cut])
