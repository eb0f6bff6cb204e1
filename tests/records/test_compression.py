"""The five codecs: round trips, their foreign dialects, damage and bombs."""

from __future__ import annotations

import contextlib
import gzip
import io
import struct
import subprocess
import sys
import threading
import tracemalloc
import zlib
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import cramjam
import lz4.frame
import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st
from tests.searches import examples

from ottla.records import compression, zstd_frame
from ottla.records.compression import GZIP, LZ4, NONE, SNAPPY, ZSTD, compress, decompress
from ottla.records.errors import CorruptBatch, CorruptBlock, DecompressionTooLarge, RecordError, UnsupportedCodec

PACKED = [GZIP, SNAPPY, LZ4, ZSTD]
TEXT = b"".join(b"line %d of a text that compresses; " % index for index in range(5000))  # 180 KB: several blocks

payloads = st.one_of(
    st.binary(max_size=300),
    st.builds(lambda part, times: part * times, st.binary(max_size=40), st.sampled_from([1, 1000, 5000])),
)


@given(st.sampled_from(range(5)), payloads)
def test_round_trip(codec: int, data: bytes) -> None:
    block = compress(codec, data)
    for kind in (bytes, bytearray, memoryview):
        assert bytes(decompress(codec, kind(block), len(data))) == data
        assert bytes(decompress(codec, compress(codec, kind(data)))) == data


@pytest.mark.parametrize("codec", PACKED)
def test_several_blocks(codec: int) -> None:
    block = compress(codec, TEXT)
    assert len(block) < len(TEXT) / 3
    assert bytes(decompress(codec, block, len(TEXT))) == TEXT


@pytest.mark.parametrize("codec", [GZIP, LZ4, ZSTD])
def test_every_level(codec: int) -> None:
    low, high, default = compression.LEVELS[codec]
    sizes = {}
    for level in (low, high, default, None):
        if level is not None:
            compression.check_level(codec, level)
        block = compress(codec, TEXT, level)
        assert bytes(decompress(codec, block)) == TEXT
        sizes[level] = len(block)
    assert sizes[high] < sizes[low]
    assert sizes[default] == sizes[None]
    for level in (high + 1, low - 1 if codec != GZIP else 0):
        with pytest.raises(ValueError, match="level"):
            compression.check_level(codec, level)


def test_codecs_without_levels() -> None:
    for codec in (NONE, SNAPPY):
        with pytest.raises(ValueError, match="no levels"):
            compression.check_level(codec, 1)


def test_names_are_kafkas() -> None:
    names = ["none", "gzip", "snappy", "lz4", "zstd"]
    assert [compression.codec_name(codec) for codec in range(5)] == names
    assert [compression.codec_id(name) for name in names] == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("codec", [5, 7, -1])
def test_unknown_codec(codec: int) -> None:
    for call in (compression.codec_name, lambda c: compress(c, b""), lambda c: decompress(c, b"", 1)):
        with pytest.raises(UnsupportedCodec):
            call(codec)
    with pytest.raises(UnsupportedCodec):
        compression.codec_id("brotli")


@pytest.mark.parametrize("codec", range(5))
def test_bound_is_exact(codec: int) -> None:
    for data in (b"x", bytes(40_000), TEXT):
        block = compress(codec, data)
        assert len(decompress(codec, block, len(data))) == len(data)
        with pytest.raises(DecompressionTooLarge):
            decompress(codec, block, len(data) - 1)


def _bomb(codec: int) -> bytes:
    zeros = bytes(1 << 20)
    if codec == GZIP:
        packer = zlib.compressobj(9, wbits=31)
        return b"".join(packer.compress(zeros) for _ in range(200)) + packer.flush()
    if codec == SNAPPY:
        block = compress(SNAPPY, zeros)
        return block[:16] + block[16:] * 200
    if codec == LZ4:
        with lz4.frame.LZ4FrameCompressor() as packer:
            return bytes(packer.begin() + b"".join(packer.compress(zeros) for _ in range(200)) + packer.flush())
    writer = zstandard.ZstdCompressor().compressobj()  # no content size in the frame
    return b"".join(writer.compress(zeros) for _ in range(200)) + writer.flush()


@pytest.mark.parametrize("codec", PACKED)
def test_bomb_costs_its_bound_and_not_its_size(codec: int) -> None:
    bomb = _bomb(codec)
    decompress(codec, compress(codec, b"warm"))
    tracemalloc.start()
    try:
        with pytest.raises(DecompressionTooLarge):
            decompress(codec, bomb, 4 << 20)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 32 << 20


def test_zstd_frame_that_claims_a_size_it_has_not() -> None:
    raw = bytearray(zstandard.ZstdCompressor().compress(bytes(100_000)))
    assert raw[4] >> 6 == 2  # four bytes of content size, behind the descriptor and no window
    struct.pack_into("<I", raw, 5, 2**31)
    with pytest.raises(RecordError):
        decompress(ZSTD, raw, 2**32)


def test_snappy_block_that_claims_a_size_it_cannot_have() -> None:
    for claim in (b"\xff\xff\xff\x07", b"\xff\xff\xff\xff\x0f", b"\xff\xff\xff\xff\xff"):
        with pytest.raises(CorruptBatch):
            decompress(SNAPPY, claim + b"\x00a", 2**40)


@pytest.mark.parametrize("codec", PACKED)
def test_every_cut_is_corrupt(codec: int) -> None:
    block = compress(codec, TEXT[:3000])
    for size in range(len(block)):
        try:
            got = bytes(decompress(codec, block[:size]))
        except CorruptBatch:
            continue
        assert codec == SNAPPY, "only snappy's frame has no end mark"
        assert size == 16
        assert got == b""


@pytest.mark.parametrize("codec", PACKED)
def test_bytes_behind_a_block_are_corrupt(codec: int) -> None:
    for extra in (b"\x01", b"abcdefgh", bytes(20)):
        with pytest.raises(CorruptBatch):
            decompress(codec, compress(codec, TEXT) + extra)


@pytest.mark.parametrize("codec", [GZIP, SNAPPY, ZSTD])
def test_streams_one_behind_the_other_are_one_as_in_java(codec: int) -> None:
    both = compress(codec, b"first") + compress(codec, b"second")
    assert bytes(decompress(codec, both)) == b"firstsecond"
    with pytest.raises(DecompressionTooLarge):
        decompress(codec, both, 10)


@pytest.mark.parametrize("content", [b"", b"abc" * 3, bytes(range(256)) * 40], ids=["empty", "short", "long"])
def test_gzip_reads_each_of_many_members_once(content: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    """What stands behind a member was copied for each: a megabyte of empty ones was gigabytes."""
    given_bytes = 0
    made = zlib.decompressobj

    class Counted:
        def __init__(self, wbits: int) -> None:
            self._member = made(wbits)

        def decompress(self, data: bytes, most: int) -> bytes:
            nonlocal given_bytes
            given_bytes += len(data)
            return self._member.decompress(data, most)

        def __getattr__(self, name: str) -> object:
            return getattr(self._member, name)

    monkeypatch.setattr(zlib, "decompressobj", Counted)
    member = zlib.compress(content, wbits=31)
    count = 200_000 // len(member)
    block = member * count
    assert bytes(decompress(GZIP, block)) == content * count
    assert given_bytes <= len(block) + 1100 * count + 3 * len(block)
    for cut in (1, len(member) - 1):
        with pytest.raises(CorruptBlock, match="ends in its middle"):
            decompress(GZIP, block[:-cut])


def test_snappy_without_a_frame() -> None:
    raw = bytes(cramjam.snappy.compress_raw(TEXT))
    assert bytes(decompress(SNAPPY, raw)) == TEXT
    with pytest.raises(DecompressionTooLarge):
        decompress(SNAPPY, raw, len(TEXT) - 1)


@pytest.mark.parametrize(
    "options",
    [
        {"block_linked": True},
        {"content_checksum": True, "block_checksum": True},
        {"store_size": False},
        {"block_size": lz4.frame.BLOCKSIZE_MAX4MB},
    ],
)
def test_lz4_frames_of_other_writers(options: dict[str, int]) -> None:
    assert bytes(decompress(LZ4, lz4.frame.compress(TEXT, **options))) == TEXT


@pytest.mark.parametrize("checksum", [False, True])
def test_a_damaged_lz4_frame_harms_none_behind_it(checksum: bool) -> None:
    """The context that reads frames is kept from block to block."""
    text = TEXT[:300]
    good = lz4.frame.compress(text, content_checksum=checksum)
    for at in range(len(good)):
        flipped = bytearray(good)
        flipped[at] ^= 1 << at % 8
        for damaged in (good[:at], bytes(flipped), good + good[:at], good[:at] + good):
            try:
                alone = lz4.frame.LZ4FrameDecompressor()
                expected = alone.decompress(damaged, 1000)
                is_whole = alone.eof and not alone.unused_data
            except RuntimeError:
                is_whole = False
            if is_whole:
                assert bytes(decompress(LZ4, damaged, 1000)) == expected
            else:
                with pytest.raises(RecordError):
                    decompress(LZ4, damaged, 1000)
            with pytest.raises(DecompressionTooLarge):
                decompress(LZ4, good, len(text) - 1)
            assert bytes(decompress(LZ4, good, len(text))) == text


def test_lz4_frames_are_those_that_java_can_read() -> None:
    info = lz4.frame.get_frame_info(compress(LZ4, TEXT))
    assert not info["block_linked"]
    assert info["block_size_id"] == lz4.frame.BLOCKSIZE_MAX64KB


def _zstd_streamed() -> bytes:
    out = io.BytesIO()
    with zstandard.ZstdCompressor().stream_writer(out, closefd=False) as writer:
        writer.write(TEXT)
    return out.getvalue()


ZSTD_FORMS: dict[str, Callable[[], bytes]] = {
    "streamed": _zstd_streamed,
    "checksum": lambda: zstandard.ZstdCompressor(write_checksum=True).compress(TEXT),
    "level 22": lambda: zstandard.ZstdCompressor(level=22).compress(TEXT),
    "fast": lambda: zstandard.ZstdCompressor(level=-5).compress(TEXT),
    "skippable": lambda: b"\x53\x2a\x4d\x18\x03\0\0\0abc" + zstandard.ZstdCompressor().compress(TEXT),
}


@pytest.mark.parametrize("form", ZSTD_FORMS)
def test_zstd_frames_of_other_writers(form: str) -> None:
    raw = ZSTD_FORMS[form]()
    assert zstd_frame.size_bound(raw) >= len(TEXT)
    assert bytes(decompress(ZSTD, raw, len(TEXT))) == TEXT


@pytest.mark.parametrize("size", [0, 1, 255, 256, 257, 65_535, 65_792, 131_072, 131_073, 300_000])
def test_zstd_size_bound_at_the_edges_of_its_fields(size: int) -> None:
    for data in (bytes(size), TEXT[:size]):
        raw = zstandard.ZstdCompressor().compress(data)
        assert zstd_frame.size_bound(raw) == len(data)
        assert bytes(decompress(ZSTD, raw, len(data))) == data


def test_gzip_of_the_standard_library() -> None:
    assert bytes(decompress(GZIP, gzip.compress(TEXT))) == TEXT
    assert gzip.decompress(compress(GZIP, TEXT)) == TEXT


@examples(300)
@given(st.sampled_from(PACKED), st.data())
def test_damaged_blocks_raise_record_errors_only(codec: int, data: st.DataObject) -> None:
    block = bytearray(compress(codec, data.draw(payloads)))
    for _ in range(data.draw(st.integers(0, 4))):
        place = data.draw(st.integers(0, len(block) - 1))
        block[place] = data.draw(st.integers(0, 255))
    block += data.draw(st.binary(max_size=5))
    with contextlib.suppress(RecordError):
        assert len(decompress(codec, block, 1 << 20)) <= 1 << 20


@examples(300)
@given(
    st.sampled_from(PACKED),
    st.binary(max_size=60),
    st.sampled_from([b"", b"\x82SNAPPY\0\0\0\0\1\0\0\0\1", b"\x28\xb5\x2f\xfd"]),
)
def test_random_bytes_raise_record_errors_only(codec: int, data: bytes, magic: bytes) -> None:
    with contextlib.suppress(RecordError):
        decompress(codec, magic + data, 1 << 20)


def test_no_compression_library_is_loaded_before_it_is_used() -> None:
    code = (
        "import sys, ottla.records.record, ottla.records.scan, ottla.records.validate, ottla.records.rewrite\n"
        "print([name for name in ('lz4', 'zstandard', 'cramjam', 'lz4.frame') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize("codec", [LZ4, ZSTD])
def test_a_thread_makes_one_context_for_all_its_blocks(codec: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """A new one for each batch of 16 KB costs two thirds of the time."""
    made: list[int] = []
    module, name = {
        LZ4: (lz4.frame, "create_decompression_context"),
        ZSTD: (zstandard, "ZstdDecompressor"),
    }[codec]
    usual = getattr(module, name)

    def counted(**options: int) -> object:
        made.append(threading.get_ident())
        return usual(**options)

    monkeypatch.setattr(module, name, counted)
    blocks = [compress(codec, b"%d" % number * size) for number, size in enumerate((1, 100, 900_000, 2_000_000))]
    for count in (1, 2):
        with ThreadPoolExecutor(1) as pool:  # a thread that has none yet
            assert all(pool.map(lambda block: len(decompress(codec, block)) > 0, blocks))
        assert len(made) == count


def test_a_kept_zstd_context_forgets_what_it_has_seen() -> None:
    """One context is kept for each thread: neither a corrupt block nor a bomb is in the way of the next one."""
    good = [bytes([number]) * 5_000 * (number + 1) for number in range(8)]

    def turn(number: int) -> bool:
        block = compress(ZSTD, good[number % 8], 1 + number % 3)
        for bad in (block[: len(block) // 2], block[:6] + b"\xff" * 20, bytes(block) + b"rest"):
            with pytest.raises(CorruptBlock):
                decompress(ZSTD, bad)
        with pytest.raises(DecompressionTooLarge):
            decompress(ZSTD, block, 100)
        return bytes(decompress(ZSTD, block)) == good[number % 8]

    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(turn, range(200)))
