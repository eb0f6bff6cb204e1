"""The small files: checkpoints, `meta.properties`, `partition.metadata`, the clean-shutdown marker."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

from ottla.model import topic_id_text
from ottla.ports.disk import Disk
from ottla.storage.dump.entries import EpochEntry, Finding, OffsetEntry, PropertyEntry
from ottla.storage.formats import (
    clean_shutdown,
    epoch_checkpoint,
    meta_properties,
    offset_checkpoint,
    partition_metadata,
    tree_sign,
)
from ottla.storage.formats.errors import FormatError
from ottla.storage.formats.reading import properties_in

TextEntry = EpochEntry | OffsetEntry | PropertyEntry


def _offsets(data: bytes) -> list[TextEntry]:
    return [
        OffsetEntry(topic, partition, offset) for (topic, partition), offset in offset_checkpoint.decode(data).items()
    ]


def _epochs(data: bytes) -> list[TextEntry]:
    return [EpochEntry(epoch, start) for epoch, start in epoch_checkpoint.decode(data)]


def _meta(data: bytes) -> list[TextEntry]:
    meta_properties.decode(data)
    return [PropertyEntry(name, value) for name, value in properties_in(data).items()]


def _tree_sign(data: bytes) -> list[TextEntry]:
    tree_sign.decode(data)
    return [PropertyEntry(name, value) for name, value in properties_in(data).items()]


def _partition_metadata(data: bytes) -> list[TextEntry]:
    topic_id = partition_metadata.decode(data)
    return [PropertyEntry("version", "0"), PropertyEntry("topic_id", topic_id_text(topic_id))]


def _clean_shutdown(data: bytes) -> list[TextEntry]:
    return [PropertyEntry("brokerEpoch", str(clean_shutdown.decode(data)))]


#: Decoders by file name.
DECODERS: Final[dict[str, Callable[[bytes], list[TextEntry]]]] = {
    offset_checkpoint.RECOVERY_POINTS: _offsets,
    offset_checkpoint.LOG_STARTS: _offsets,
    offset_checkpoint.HIGH_WATERMARKS: _offsets,
    offset_checkpoint.CLEANER_OFFSETS: _offsets,
    epoch_checkpoint.FILE_NAME: _epochs,
    meta_properties.FILE_NAME: _meta,
    partition_metadata.FILE_NAME: _partition_metadata,
    clean_shutdown.FILE_NAME: _clean_shutdown,
    tree_sign.FILE_NAME: _tree_sign,
}


def dump_text(disk: Disk, path: str) -> Iterator[TextEntry | Finding]:
    try:
        yield from DECODERS[path.rpartition("/")[2]](disk.read_file(path))
    except FormatError as error:
        yield Finding(path, None, str(error))
