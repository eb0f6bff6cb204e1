"""`<topic>-<partition>.ottla-moved`: a replica is changing from one log directory to another at this moment.

Lies in the target directory while two renames in two directories make one step: the copy takes the partition's name,
and the original gives it up. If a crash comes between them, both folders carry the name, and this file says which one
counts: the copy, unless the original has grown beyond `endOffset` since. Kafka has no such file (it refuses to start in
that case) and does not look at files in a log directory that it does not know.
"""

from __future__ import annotations

from typing import Final

from ottla.model import TopicPartition
from ottla.storage.formats import json_marker
from ottla.storage.formats.errors import FormatError
from ottla.storage.formats.names import FolderKind, format_folder, parse_folder

SUFFIX: Final = ".ottla-moved"


def file_name(partition: TopicPartition) -> str:
    return format_folder(partition) + SUFFIX


def parse_name(name: str) -> TopicPartition | None:
    """The partition that the marker is about; None where the file is no marker."""
    if not name.endswith(SUFFIX):
        return None
    try:
        folder = parse_folder(name.removesuffix(SUFFIX))
    except FormatError:
        return None
    return folder.partition if folder.kind is FolderKind.CURRENT else None


def encode(end_offset: int) -> bytes:
    return json_marker.encode("endOffset", end_offset)


def decode(data: bytes) -> int:
    """The log end offset of both folders when the replica changed over."""
    content = json_marker.decode(data, "move marker")
    end_offset = content.get("endOffset")
    if type(end_offset) is not int or not 0 <= end_offset < 2**63:
        raise FormatError("the move marker has no end offset")
    return end_offset
