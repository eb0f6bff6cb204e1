"""`coordination.ottla`, in each log directory: that there is a coordination tree, which one, and how far it has been.

The tree has its own folder, which can be lost while the logs stay: a start that finds none then has to tell a first
start from a loss. Kafka has no such file, and does not look at files in a log directory that it does not know.
docs/formats/tree-sign.md has the layout.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from ottla import java_properties
from ottla.ports.disk import Disk
from ottla.ports.whole_files import write_atomically
from ottla.storage.formats.errors import FormatError
from ottla.storage.formats.reading import properties_in, read_decoded

FILE_NAME: Final = "coordination.ottla"
_VERSION: Final = "0"
#: Of what is read; a path and four numbers are far below it.
BYTES_MAX: Final = 16 * 1024
_NUMBER_MAX: Final = 2**63 - 1


class TreeSign(NamedTuple):
    #: The tree's folder, as it was named when this was written: for messages only.
    tree: str
    cluster_id: str
    #: When the tree was given its cluster id. It tells the tree from a later one of the same cluster.
    created_ms: int
    #: A transaction that was durable when this was written: the tree has never been behind it since.
    zxid: int


def encode(sign: TreeSign) -> bytes:
    return java_properties.encode(
        {
            "cluster.id": sign.cluster_id,
            "created.ms": str(sign.created_ms),
            "tree": sign.tree,
            "version": _VERSION,
            "zxid": str(sign.zxid),
        }
    )


def decode(data: bytes) -> TreeSign:
    if len(data) > BYTES_MAX:
        raise FormatError(f"{FILE_NAME} has {len(data)} bytes")
    pairs = properties_in(data)
    if pairs.get("version") != _VERSION:
        raise FormatError(f"{FILE_NAME} does not have version {_VERSION}")
    try:
        tree, cluster_id = pairs["tree"], pairs["cluster.id"]
        created_ms, zxid = _number(pairs["created.ms"]), _number(pairs["zxid"])
    except KeyError as missing:
        raise FormatError(f"{FILE_NAME} lacks {missing.args[0]}") from missing
    return TreeSign(tree, cluster_id, created_ms, zxid)


def read(disk: Disk, path: str) -> TreeSign | None:
    """None where there is no file; FormatError names the file."""
    return read_decoded(disk, path, decode)


def write(disk: Disk, path: str, sign: TreeSign) -> None:
    write_atomically(disk, path, encode(sign))


def _number(word: str) -> int:
    if not (word.isascii() and word.isdigit() and len(word) <= 19) or int(word) > _NUMBER_MAX:
        raise FormatError(f"{word[:40]!r} is not a number from 0 to {_NUMBER_MAX}")
    return int(word)
