"""`recovery-point-offset-checkpoint` and its kin: one offset for each partition of a log directory.

Four files have this form, one each per log directory: recovery points, log start offsets, high watermarks
(`replication-offset-checkpoint`) and how far the cleaner has come. An entry is `topic partition offset`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from ottla.model import TopicPartition
from ottla.ports.disk import Disk
from ottla.ports.whole_files import write_atomically
from ottla.storage.formats.errors import FormatError
from ottla.storage.formats.reading import read_decoded
from ottla.storage.formats.text_checkpoint import decode_lines, encode_lines, parse_number

RECOVERY_POINTS: Final = "recovery-point-offset-checkpoint"
LOG_STARTS: Final = "log-start-offset-checkpoint"
HIGH_WATERMARKS: Final = "replication-offset-checkpoint"
CLEANER_OFFSETS: Final = "cleaner-offset-checkpoint"

_PARTITION_MAX: Final = 2**31 - 1


def encode(offsets: Mapping[TopicPartition, int]) -> bytes:
    return encode_lines(f"{topic} {partition} {offset}" for (topic, partition), offset in offsets.items())


def decode(data: bytes) -> dict[TopicPartition, int]:
    offsets: dict[TopicPartition, int] = {}
    for topic, partition, offset in decode_lines(data, 3):
        tp = TopicPartition(topic, parse_number(partition, "partition", _PARTITION_MAX))
        if tp in offsets:
            raise FormatError(f"partition {tp} stands twice in the checkpoint")
        offsets[tp] = parse_number(offset, "offset")
    return offsets


def read(disk: Disk, path: str) -> dict[TopicPartition, int]:
    """The checkpoint, empty where there is no file; FormatError names the file."""
    found = read_decoded(disk, path, decode)
    return {} if found is None else found


def write(disk: Disk, path: str, offsets: Mapping[TopicPartition, int]) -> None:
    write_atomically(disk, path, encode(offsets))
