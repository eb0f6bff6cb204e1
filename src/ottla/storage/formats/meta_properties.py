"""`meta.properties`: which broker of which cluster a log directory belongs to.

Version 0 (ZooKeeper mode) has `broker.id` and `cluster.id`; version 1 has `node.id`, `directory.id` and `cluster.id`.
The syntax is that of Java's Properties; keys that we do not know are kept as they are, so that a newer Kafka that wrote
them finds them again.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from ottla import java_properties
from ottla.model import topic_id_from_text, topic_id_text
from ottla.ports.disk import Disk
from ottla.ports.whole_files import write_atomically
from ottla.storage.formats.errors import FormatError
from ottla.storage.formats.names import META_PROPERTIES as FILE_NAME
from ottla.storage.formats.reading import properties_in, read_decoded

__all__ = ["FILE_NAME", "MetaProperties", "decode", "encode", "read", "write"]

_VERSION: Final = "version"
_CLUSTER: Final = "cluster.id"
_BROKER: Final = "broker.id"
_NODE: Final = "node.id"
_DIRECTORY: Final = "directory.id"
_ID_MAX: Final = 2**31 - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class MetaProperties:
    version: int
    cluster_id: str | None = None
    #: `broker.id` of version 0, `node.id` of version 1.
    broker_id: int | None = None
    #: Sixteen bytes; only Kafka 3.7 and later write it.
    directory_id: bytes | None = None
    #: What else the file holds.
    others: dict[str, str] = field(default_factory=dict)


def encode(meta: MetaProperties) -> bytes:
    pairs = dict(meta.others)
    pairs[_VERSION] = str(meta.version)
    if meta.cluster_id is not None:
        pairs[_CLUSTER] = meta.cluster_id
    if meta.broker_id is not None:
        pairs[_BROKER if meta.version == 0 else _NODE] = str(meta.broker_id)
    if meta.directory_id is not None:
        pairs[_DIRECTORY] = topic_id_text(meta.directory_id)
    return java_properties.encode(dict(sorted(pairs.items())))


def decode(data: bytes) -> MetaProperties:
    pairs = properties_in(data)
    # Kafka takes a file without a version for version 0.
    version = _number(pairs.pop(_VERSION, "0"), _VERSION)
    if version not in (0, 1):
        raise FormatError(f"meta.properties has version {version}, and only versions 0 and 1 are known")
    id_key = _BROKER if version == 0 else _NODE
    broker_id = _number(pairs.pop(id_key), id_key) if id_key in pairs else None
    directory_id = None
    if _DIRECTORY in pairs:
        text = pairs.pop(_DIRECTORY)
        try:
            directory_id = topic_id_from_text(text)
        except ValueError as error:
            raise FormatError(f"directory.id {text[:60]!r} is not the base64 form of a UUID") from error
    cluster_id = pairs.pop(_CLUSTER, None)
    if version == 1 and (broker_id is None or cluster_id is None):
        raise FormatError(f"meta.properties of version 1 lacks {_NODE if broker_id is None else _CLUSTER}")
    return MetaProperties(
        version=version, cluster_id=cluster_id, broker_id=broker_id, directory_id=directory_id, others=pairs
    )


def read(disk: Disk, path: str) -> MetaProperties | None:
    """None where there is no file yet; FormatError names the file."""
    return read_decoded(disk, path, decode)


def write(disk: Disk, path: str, meta: MetaProperties) -> None:
    write_atomically(disk, path, encode(meta))


def _number(word: str, key: str) -> int:
    if not (word.isascii() and word.isdigit() and len(word) <= 10) or int(word) > _ID_MAX:
        raise FormatError(f"{key} {word[:40]!r} is not a number from 0 to {_ID_MAX}")
    return int(word)
