"""`partition.metadata`: the id of the topic that a partition's folder belongs to.

Two lines, `version: 0` and `topic_id: <URL-safe base64>`. A topic that is deleted and created again under its name has
another id, so a folder left from the first life is recognised.
"""

from __future__ import annotations

import re
from typing import Final

from ottla.model import ZERO_TOPIC_ID, TopicId, topic_id_from_text, topic_id_text
from ottla.ports.disk import Disk
from ottla.ports.whole_files import write_atomically
from ottla.storage.formats.errors import FormatError
from ottla.storage.formats.names import PARTITION_METADATA as FILE_NAME

__all__ = ["FILE_NAME", "decode", "encode", "read", "write", "write_unsynced"]

_FORM: Final = re.compile(rb"version:[ \t]+(\d{1,5})\r?\ntopic_id:[ \t]+([A-Za-z0-9_-]{22})\s*")


def encode(topic_id: bytes) -> bytes:
    return f"version: 0\ntopic_id: {topic_id_text(topic_id)}".encode("ascii")


def decode(data: bytes) -> TopicId:
    match = _FORM.fullmatch(data)
    if match is None:
        raise FormatError("partition.metadata does not have a version and a topic_id")
    if int(match[1]) != 0:
        raise FormatError(f"partition.metadata has version {int(match[1])}, and only version 0 is known")
    topic_id = topic_id_from_text(match[2].decode("ascii"))
    if topic_id == ZERO_TOPIC_ID:
        raise FormatError("partition.metadata has the topic id zero, which no topic has")
    return topic_id


def read(disk: Disk, path: str) -> TopicId:
    """The topic's id; FileNotFoundError where there is no file, FormatError naming it where it is damaged."""
    try:
        return decode(disk.read_file(path))
    except FormatError as error:
        raise error.in_file(path) from error


def write_unsynced(disk: Disk, path: str, topic_id: bytes) -> None:
    """For a new folder: no fsync a partition. A crash may tear it; it is then written again, since the id is known."""
    file = disk.open(path, create=True)
    try:
        if file.size():
            file.truncate(0)
        file.append([encode(topic_id)])
    finally:
        file.close()


def write(disk: Disk, path: str, topic_id: bytes) -> None:
    write_atomically(disk, path, encode(topic_id))
