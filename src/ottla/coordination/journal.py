"""The journal: every transaction, in frames, each made durable before anything in it is acknowledged.

One frame is one group commit: all transactions that waited while the disk was busy with the frame before. Since a
frame is only begun when the one before it is durable, what a crash can damage is the last frame and nothing else. That
tells the two kinds of damage apart: bytes that are no frame, with no frame behind them, are a torn tail that nobody was
ever answered for, and are cut; with a frame behind them, they are damage of what was acknowledged, and the start is
refused. docs/formats/coordination-journal.md has the layout.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Final, NamedTuple

from ottla.coordination.codec import CodecFault, Txn, decode_txn
from ottla.ports.disk import Disk, File
from ottla.records.checksum import crc32c

FILE_MAGIC: Final = b"OttlaZj1"
#: Magic, the first zxid that the file may hold, CRC-32C of both.
_FILE_HEADER: Final = struct.Struct(">8sQI")
FILE_HEADER_SIZE: Final = _FILE_HEADER.size

FRAME_MAGIC: Final = b"\xa7OZf"
#: Magic, length of the body, CRC-32C of the body.
_FRAME: Final = struct.Struct(">4sII")
#: First zxid, number of transactions; they follow.
_BODY: Final = struct.Struct(">QI")
#: A group commit is cut before it gets longer; one request carries at most 1 MB.
FRAME_BYTES_MAX: Final = 64 * 1024 * 1024


class Frame(NamedTuple):
    first_zxid: int
    txns: list[Txn]
    #: Where the next frame starts.
    end: int


class JournalFault(Exception):
    """Bytes that are not a frame, where one should be."""


class JournalContents(NamedTuple):
    frames: list[Frame]
    #: The end of the last good frame; 0 when not even the header is good.
    good_size: int
    #: What is wrong behind `good_size`, or None when the file ends there.
    fault: str | None
    #: What is wrong cannot be the end of an unfinished write: a good frame lies somewhere behind it.
    damaged_below_tail: bool


def encode_header(first_zxid: int) -> bytes:
    body = FILE_MAGIC + first_zxid.to_bytes(8, "big")
    return body + crc32c(body).to_bytes(4, "big")


def encode_frame(first_zxid: int, txns: Sequence[bytes]) -> bytes:
    body = _BODY.pack(first_zxid, len(txns)) + b"".join(txns)
    assert len(body) <= FRAME_BYTES_MAX
    return _FRAME.pack(FRAME_MAGIC, len(body), crc32c(body)) + body


def decode_frame(buffer: bytes, position: int) -> Frame:
    """The frame at `position`. Raises JournalFault and nothing else."""
    left = len(buffer) - position
    if left < _FRAME.size:
        raise JournalFault(f"{left} bytes are too few for a frame")
    magic, length, checksum = _FRAME.unpack_from(buffer, position)
    if magic != FRAME_MAGIC:
        raise JournalFault("no frame starts here")
    start = position + _FRAME.size
    if not _BODY.size <= length <= min(FRAME_BYTES_MAX, len(buffer) - start):
        raise JournalFault(f"a frame of {length} bytes where {len(buffer) - start} are left")
    end = start + length
    body = buffer[start:end]
    if crc32c(body) != checksum:
        raise JournalFault("the checksum of a frame is wrong")
    first_zxid, count = _BODY.unpack_from(body)
    at = _BODY.size
    txns: list[Txn] = []
    try:
        for _ in range(count):
            txn, at = decode_txn(body, at)
            txns.append(txn)
    except CodecFault as fault:
        raise JournalFault(str(fault)) from fault
    if at != length:
        raise JournalFault(f"{length - at} bytes behind the transactions of a frame")
    return Frame(first_zxid, txns, end)


def read_contents(buffer: bytes, first_zxid: int) -> JournalContents:
    """All that a journal file holds. Raises nothing, on any bytes."""
    if buffer[:FILE_HEADER_SIZE] != encode_header(first_zxid):
        # The header is durable before the first frame is written: with anything behind it, it was good once.
        return JournalContents([], 0, "the file header is wrong", len(buffer) > FILE_HEADER_SIZE)
    frames: list[Frame] = []
    position = FILE_HEADER_SIZE
    while position < len(buffer):
        try:
            frame = decode_frame(buffer, position)
        except JournalFault as fault:
            return JournalContents(frames, position, str(fault), _frame_behind(buffer, position + 1))
        frames.append(frame)
        position = frame.end
    return JournalContents(frames, position, None, damaged_below_tail=False)


def _frame_behind(buffer: bytes, position: int) -> bool:
    """Whether a good frame starts anywhere from `position` on."""
    while (position := buffer.find(FRAME_MAGIC, position)) >= 0:
        try:
            decode_frame(buffer, position)
        except JournalFault:
            position += 1
        else:
            return True
    return False


class JournalFile:
    """The journal file that is being written. Appending is the loop's; syncing a worker's."""

    def __init__(self, disk: Disk, path: str, first_zxid: int, file: File, size: int) -> None:
        self._disk = disk
        self._file = file
        self.path = path
        self.first_zxid = first_zxid
        #: Up to here the file is as it should be; an append that fails is cut back to it.
        self.size = size

    @classmethod
    def create(cls, disk: Disk, path: str, first_zxid: int) -> JournalFile:
        """A new file, or one again whose header never got whole. Not durable until `sync_new`."""
        file = disk.open(path, create=True)
        try:
            file.truncate(0)
            header = encode_header(first_zxid)
            file.append([header])
        except OSError:
            file.close()
            raise
        return cls(disk, path, first_zxid, file, len(header))

    @classmethod
    def reopen(cls, disk: Disk, path: str, first_zxid: int, good_size: int) -> JournalFile:
        """Goes on behind the last good frame; what follows it is cut.

        All of it is written once more: where the life before ended with a sync that failed, the system shows pages that
        it takes for clean, and no later sync would bring them to the medium.
        """
        file = disk.open(path)
        try:
            if file.size() != good_size:
                file.truncate(good_size)
            file.write(file.read(good_size, 0), 0)
            file.sync()
        except OSError:
            file.close()
            raise
        return cls(disk, path, first_zxid, file, good_size)

    def append(self, frame: bytes) -> None:
        """Raises OSError, and may then have written a part: the caller calls `cut`."""
        self._file.append([frame])
        self.size += len(frame)

    def cut(self) -> None:
        """After an append that failed: back to what was good. Where this fails too, the journal is lost."""
        self._file.truncate(self.size)

    def sync(self) -> None:
        self._file.sync()

    def sync_new(self, directory: str) -> None:
        """Makes a created file durable, its name included."""
        self._file.sync()
        self._disk.sync_directory(directory)

    def close(self) -> None:
        self._file.close()
