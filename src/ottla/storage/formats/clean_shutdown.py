"""`.kafka_cleanshutdown`: this log directory was left with everything on the medium.

JSON with the broker's epoch at that time (-1 where there was none). Versions of Kafka before 3.8 leave it empty, and
Kafka takes any such file for a clean stop, whatever is in it: only the epoch is lost with a damaged one.
"""

from __future__ import annotations

from typing import Final

from ottla.ports.disk import Disk
from ottla.ports.whole_files import write_atomically
from ottla.storage.formats import json_marker
from ottla.storage.formats.errors import FormatError
from ottla.storage.formats.names import CLEAN_SHUTDOWN as FILE_NAME

__all__ = ["FILE_NAME", "NO_BROKER_EPOCH", "decode", "encode", "write"]

NO_BROKER_EPOCH: Final = -1


def encode(broker_epoch: int = NO_BROKER_EPOCH) -> bytes:
    return json_marker.encode("brokerEpoch", broker_epoch)


def decode(data: bytes) -> int:
    """The broker epoch; -1 for the empty file of older versions."""
    if not data:
        return NO_BROKER_EPOCH
    content = json_marker.decode(data, "clean shutdown marker")
    epoch = content.get("brokerEpoch")
    if type(epoch) is not int or not -1 <= epoch < 2**63:
        raise FormatError("the clean shutdown marker has no broker epoch")
    return epoch


def write(disk: Disk, path: str, broker_epoch: int = NO_BROKER_EPOCH) -> None:
    write_atomically(disk, path, encode(broker_epoch))
