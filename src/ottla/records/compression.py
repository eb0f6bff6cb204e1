"""Kafka's five codecs, with decompression that stops at a bound.

A batch's records are compressed as one block. gzip, lz4 (frame format) and zstd are their ordinary streams; snappy is
`snappy.py`'s framing. A few bytes can unfold to gigabytes, so every reader is given the most that it may produce and
works towards it in steps: what a bomb costs is the bound, never its claim.

Libraries are imported at first use: a broker that stores what it gets needs none of them.
"""

from __future__ import annotations

import threading
import zlib
from typing import TYPE_CHECKING, Any, Final

from ottla.records import snappy, zstd_frame
from ottla.records.batch import Readable
from ottla.records.errors import CorruptBlock, DecompressionTooLarge, UnsupportedCodec

if TYPE_CHECKING:
    from collections.abc import Callable

    import zstandard

    #: Of a context, bytes, and how many may come out: what came, how many were taken, and whether the frame ended.
    _Lz4Step = Callable[[Any, Readable, int], tuple[bytes, int, bool]]

NONE: Final = 0
GZIP: Final = 1
SNAPPY: Final = 2
LZ4: Final = 3
ZSTD: Final = 4

NAMES: Final = {NONE: "none", GZIP: "gzip", SNAPPY: "snappy", LZ4: "lz4", ZSTD: "zstd"}
CODECS: Final = {name: codec for codec, name in NAMES.items()}

#: The levels of Kafka's compression.<codec>.level: the least, the most, and what is meant where none is given.
LEVELS: Final = {GZIP: (1, 9, -1), LZ4: (1, 17, 9), ZSTD: (-131072, 22, 3)}

#: What decoders accept where the caller does not say. A batch of the default max.message.bytes at a ratio of 128.
DECOMPRESSED_BYTES_MAX: Final = 128 * 1024 * 1024

#: To how many bytes one byte of a block can unfold, by the codec's format; of the three that are none, to nothing.
#: gzip: two bits, one for a length and one for a distance, stand for 258 bytes. snappy: three bytes stand for 64. lz4:
#: each further byte of a match's length stands for 255. zstd: a block of four bytes stands for 128 KiB.
UNFOLDS_MAX: Final = (1, 1032, 22, 255, 32768, 0, 0, 0)

#: First step of a streamed decompression; each further one is twice as long, so that a large block takes few.
_STEP_BYTES: Final = 128 * 1024
#: A zstd frame whose blocks cannot unfold to more is read in one step.
_ONE_STEP_BYTES: Final = 1024 * 1024
#: First step into each further member of a gzip block: what a step reads beyond its member is copied.
_MEMBER_STEP_BYTES: Final = 1024
_GZIP_WINDOW: Final = 31  # zlib's name for its largest window (15) inside a gzip header (16)
#: liblz4 knows high-compression levels 3 to 12; its level 0 is the fast compressor.
_LZ4_FAST: Final = 0
_LZ4_LEVEL_MIN: Final = 3
_LZ4_LEVEL_MAX: Final = 12


class _Zstd(threading.local):
    """To make a context takes longer than to work on most batches, so that each thread keeps one."""

    def __init__(self) -> None:
        self._reader: zstandard.ZstdDecompressor | None = None
        self._writer: zstandard.ZstdCompressor | None = None
        self._level = 0

    def reader(self) -> zstandard.ZstdDecompressor:
        if self._reader is None:
            import zstandard

            self._reader = zstandard.ZstdDecompressor(max_window_size=zstd_frame.WINDOW_BYTES_MAX)
        return self._reader

    def writer(self, level: int) -> zstandard.ZstdCompressor:
        if self._writer is None or self._level != level:
            import zstandard

            self._writer, self._level = zstandard.ZstdCompressor(level=level), level
        return self._writer


class _Lz4(threading.local):
    """The same of lz4's readers. A context in which a frame has ended is ready for the next; any other is dropped."""

    def __init__(self) -> None:
        #: What decompresses a piece, and its context.
        self._reader: tuple[_Lz4Step, Any] | None = None

    def decompress(self, data: Readable, max_size: int) -> tuple[bytes, Readable]:
        """What the first frame unfolds to, and what stands behind it."""
        reader, self._reader = self._reader, None
        if reader is None:
            import lz4.frame

            reader = lz4.frame.decompress_chunk, lz4.frame.create_decompression_context()
        step, context = reader
        # The library allocates a whole step before it knows what will come: the first is a guess at a usual ratio.
        size = 4 * len(data)
        size = max(size, _STEP_BYTES)
        # One byte beyond the bound tells a block that fits from one that goes on.
        part, taken, ended = step(context, data, size if size <= max_size else max_size + 1)
        parts = [part]
        rest, budget = data[taken:], max_size - len(part)
        while not ended and budget >= 0:
            if not part and not (taken and rest):
                raise CorruptBlock("an lz4 frame ends in its middle")
            size *= 2
            part, taken, ended = step(context, rest, min(size, budget + 1))
            parts.append(part)
            rest = rest[taken:]
            budget -= len(part)
        if budget < 0:
            raise _too_large(max_size)
        self._reader = reader
        return parts[0] if len(parts) == 1 else b"".join(parts), rest


_zstd: Final = _Zstd()
_lz4: Final = _Lz4()


def codec_id(name: str) -> int:
    """The number of a codec that is named as in Kafka's compression.type; raises UnsupportedCodec."""
    codec = CODECS.get(name)
    if codec is None:
        raise UnsupportedCodec(f"unknown compression codec {name!r}: known are {', '.join(CODECS)}")
    return codec


def codec_name(codec: int) -> str:
    name = NAMES.get(codec)
    if name is None:
        raise UnsupportedCodec(f"unknown compression codec {codec}")
    return name


def check_level(codec: int, level: int) -> None:
    """Raises ValueError for a level that Kafka's option for this codec refuses."""
    if codec not in LEVELS:
        raise ValueError(f"codec {codec_name(codec)} has no levels")
    low, high, default = LEVELS[codec]
    if level != default and not low <= level <= high:
        raise ValueError(f"compression level {level} of {codec_name(codec)} must be {default} or from {low} to {high}")


def compress(codec: int, data: Readable, level: int | None = None) -> bytes:
    """`data` as one block. A level is used by gzip, lz4 and zstd and must be one that `check_level` accepts."""
    if codec == NONE:
        return bytes(data)
    writer = _WRITERS.get(codec)
    if writer is None:
        raise UnsupportedCodec(f"unknown compression codec {codec}")
    return writer(data, level)


def decompress(codec: int, data: Readable, max_size: int = DECOMPRESSED_BYTES_MAX) -> bytes | memoryview:
    """The reverse: all of `data` must be one whole block, and what comes out at most `max_size` bytes.

    Uncompressed data comes back as a view of what was given.
    """
    if codec == NONE:
        if len(data) > max_size:
            raise DecompressionTooLarge(f"{len(data)} bytes of records exceed the bound of {max_size}")
        return memoryview(data)
    reader = _READERS.get(codec)
    if reader is None:
        raise UnsupportedCodec(f"unknown compression codec {codec}")
    return reader(data, max_size)


def _compress_gzip(data: Readable, level: int | None) -> bytes:
    return zlib.compress(data, -1 if level is None else level, wbits=_GZIP_WINDOW)


def _compress_snappy(data: Readable, _level: int | None) -> bytes:
    return snappy.compress(data)


def _compress_lz4(data: Readable, level: int | None) -> bytes:
    import lz4.frame

    # Kafka's default, 9, is its fast compressor; any other level is lz4's high compression.
    fast = level is None or level == LEVELS[LZ4][2]
    # Java's reader knows independent blocks only.
    return bytes(
        lz4.frame.compress(
            data,
            compression_level=_LZ4_FAST if fast else min(max(level or 0, _LZ4_LEVEL_MIN), _LZ4_LEVEL_MAX),
            block_size=lz4.frame.BLOCKSIZE_MAX64KB,
            block_linked=False,
            store_size=False,
        )
    )


def _compress_zstd(data: Readable, level: int | None) -> bytes:
    return _zstd.writer(LEVELS[ZSTD][2] if level is None else level).compress(data)


def _decompress_gzip(data: Readable, max_size: int) -> bytes:
    parts: list[bytes] = []
    budget, pos, end = max_size, 0, len(data)
    #: Most blocks are one member.
    step = end
    try:
        while True:  # a gzip stream may consist of several members, as Java's reader accepts
            member = zlib.decompressobj(_GZIP_WINDOW)
            while not member.eof:
                if pos >= end:
                    raise CorruptBlock("a gzip block ends in its middle")
                # One byte beyond the bound tells a block that fits from one that goes on.
                part = member.decompress(data[pos : pos + step], budget + 1)
                budget -= len(part)
                if budget < 0:
                    raise _too_large(max_size)
                parts.append(part)
                pos, step = min(pos + step, end), step * 2
            pos -= len(member.unused_data)
            if pos == end:
                return parts[0] if len(parts) == 1 else b"".join(parts)
            step = _MEMBER_STEP_BYTES
    except zlib.error as error:
        raise CorruptBlock(f"gzip: {error}") from error


def _decompress_lz4(data: Readable, max_size: int) -> bytes:
    try:
        unfolded, rest = _lz4.decompress(data, max_size)
    except (RuntimeError, ValueError) as error:
        raise CorruptBlock(f"lz4: {error}") from error
    if rest:
        raise CorruptBlock(f"{len(rest)} bytes follow an lz4 frame")
    return unfolded


def _decompress_snappy(data: Readable, max_size: int) -> bytes | memoryview:
    return snappy.decompress(data, max_size)


def _decompress_zstd(data: Readable, max_size: int) -> bytes:
    import zstandard

    # The library's readers end quietly at a cut frame, so the frames' own chain of blocks is walked first.
    size = zstd_frame.size_bound(data)
    reader = _zstd.reader()
    try:
        if size <= min(max_size, _ONE_STEP_BYTES):
            with reader.stream_reader(data, read_across_frames=True) as stream:
                return stream.read(size + 1)
        parts: list[bytes] = []
        total = 0
        with reader.stream_reader(data, read_across_frames=True) as stream:
            while part := stream.read(min(_STEP_BYTES, max_size - total + 1)):
                parts.append(part)
                total += len(part)
                if total > max_size:
                    raise _too_large(max_size)
        return b"".join(parts)
    except zstandard.ZstdError as error:
        raise CorruptBlock(f"zstd: {error}") from error


def _too_large(max_size: int) -> DecompressionTooLarge:
    return DecompressionTooLarge(f"the records decompress to more than the bound of {max_size} bytes")


_WRITERS: Final[dict[int, Callable[[Readable, int | None], bytes]]] = {
    GZIP: _compress_gzip,
    SNAPPY: _compress_snappy,
    LZ4: _compress_lz4,
    ZSTD: _compress_zstd,
}
_READERS: Final[dict[int, Callable[[Readable, int], bytes | memoryview]]] = {
    GZIP: _decompress_gzip,
    SNAPPY: _decompress_snappy,
    LZ4: _decompress_lz4,
    ZSTD: _decompress_zstd,
}
