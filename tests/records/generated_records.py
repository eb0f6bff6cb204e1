"""Records and batches at random, for the property tests of this folder."""

from __future__ import annotations

from hypothesis import strategies as st

from ottla.records.batch import CREATE_TIME, LOG_APPEND_TIME
from ottla.records.compression import NAMES
from ottla.records.record import Record, encode_batch

NOW = 1_764_000_000_000
INT32_MAX = 2**31 - 1
INT64_MAX = 2**63 - 1

#: Lengths on both sides of where a varint grows (64, 8192) without making every example large.
small_bytes = st.one_of(
    st.binary(max_size=80),
    st.builds(
        lambda byte, size: bytes([byte]) * size, st.integers(0, 255), st.sampled_from([63, 64, 8191, 8192, 9000])
    ),
)
headers = st.lists(st.tuples(st.text(max_size=8), st.none() | st.binary(max_size=70)), max_size=3).map(tuple)
timestamps = st.one_of(
    st.integers(NOW - 100, NOW + 100), st.integers(NOW - 10**10, NOW + 10**10), st.sampled_from([-1, 0, 2**62])
)
codecs = st.sampled_from(sorted(NAMES))


@st.composite
def record_lists(draw: st.DrawFn, *, gaps: bool = True, base: int | None = None) -> list[Record]:
    offset = draw(st.integers(0, 2**40)) if base is None else base
    records = []
    for _ in range(draw(st.integers(1, 12))):
        key, value = draw(st.none() | small_bytes), draw(st.none() | small_bytes)
        records.append(Record(offset, draw(timestamps), key, value, draw(headers)))
        offset += draw(st.sampled_from([1, 1, 1, 2, 64, 9000])) if gaps else 1
    return records


@st.composite
def batches(draw: st.DrawFn) -> bytes:
    """A whole batch of any kind that `encode_batch` makes."""
    records = draw(record_lists())
    return encode_batch(
        records,
        base_offset=records[0].offset,
        compression=draw(codecs),
        timestamp_type=draw(st.sampled_from([CREATE_TIME, LOG_APPEND_TIME])),
        producer_id=draw(st.integers(-1, INT64_MAX)),
        producer_epoch=draw(st.integers(-1, 32767)),
        base_sequence=draw(st.integers(-1, INT32_MAX)),
        leader_epoch=draw(st.integers(-1, INT32_MAX)),
        transactional=draw(st.booleans()),
        control=draw(st.booleans()),
    )
