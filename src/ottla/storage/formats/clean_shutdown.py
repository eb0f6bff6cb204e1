"""`.kafka_cleanshutdown`: this log directory was left with everything on the medium.

JSON with the broker's epoch at that time (-1 where there was none). Versions of Kafka before 3.8 leave it empty, and
Kafka takes any such file for a clean stop, whatever is in it: only the epoch is lost with a damaged one.
"""

from __future__ import annotations

import json
from typing import Final

from ottla.ports.disk import Disk
from ottla.storage.formats.atomic_write import write_atomically
from ottla.storage.formats.errors import FormatError
from ottla.storage.formats.names import CLEAN_SHUTDOWN as FILE_NAME

__all__ = ["FILE_NAME", "NO_BROKER_EPOCH", "decode", "encode", "write"]

NO_BROKER_EPOCH: Final = -1
#: More than any marker has: JSON parsing of hostile depth or digits is not even tried.
_BYTES_MAX: Final = 1024


def encode(broker_epoch: int = NO_BROKER_EPOCH) -> bytes:
    return json.dumps({"version": 0, "brokerEpoch": broker_epoch}, separators=(",", ":")).encode("ascii")


def decode(data: bytes) -> int:
    """The broker epoch; -1 for the empty file of older versions."""
    if not data:
        return NO_BROKER_EPOCH
    if len(data) > _BYTES_MAX:
        raise FormatError(f"the clean shutdown marker has {len(data)} bytes")
    try:
        content = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise FormatError("the clean shutdown marker is not JSON") from error
    if not isinstance(content, dict) or content.get("version") != 0:
        raise FormatError("the clean shutdown marker does not have version 0")
    epoch = content.get("brokerEpoch")
    if type(epoch) is not int or not -1 <= epoch < 2**63:
        raise FormatError("the clean shutdown marker has no broker epoch")
    return epoch


def write(disk: Disk, path: str, broker_epoch: int = NO_BROKER_EPOCH) -> None:
    write_atomically(disk, path, encode(broker_epoch))
