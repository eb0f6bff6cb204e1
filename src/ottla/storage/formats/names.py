"""Names of folders and files in a log directory.

A partition lives in `<topic>-<partition>`. While it is deleted, moved or left behind by a metadata change its folder
carries a unique id and a suffix: `<topic>-<partition>.<uuid>-delete`, `-future`, `-stray`. Topic names contain dots and
dashes themselves, so a name is read from its end.

File systems stop at 255 bytes. For `-delete` and `-stray`, where nobody needs the topic back, the topic is cut to fit;
a `-future` folder must keep it, so a topic that long cannot be moved (Kafka has the same limit).
"""

from __future__ import annotations

import re
from enum import Enum
from typing import Final, NamedTuple

from ottla.model import TopicPartition, topic_name_fault
from ottla.storage.formats.errors import FormatError

NAME_BYTES_MAX: Final = 255

LOG: Final = ".log"
INDEX: Final = ".index"
TIME_INDEX: Final = ".timeindex"
TXN_INDEX: Final = ".txnindex"
SNAPSHOT: Final = ".snapshot"
#: A segment of Kafka 0.7 and before, which is read and never written.
FIRST_LOG: Final = ".kafka"
#: Work in progress: to be removed, being written by the cleaner, and about to take the place of others.
DELETED: Final = ".deleted"
CLEANED: Final = ".cleaned"
SWAP: Final = ".swap"

PARTITION_METADATA: Final = "partition.metadata"
META_PROPERTIES: Final = "meta.properties"
LOCK: Final = ".lock"
CLEAN_SHUTDOWN: Final = ".kafka_cleanshutdown"

_OFFSET_DIGITS: Final = 20
_OFFSET_MAX: Final = 2**63 - 1
_PARTITION_MAX: Final = 2**31 - 1
#: Deletion and stray folders may carry a cut topic name, even an empty one.
_MARKED: Final = re.compile(r"(.*)-(\d{1,10})\.([0-9a-zA-Z]+)(-delete|-future|-stray)", re.ASCII | re.DOTALL)
_PLAIN: Final = re.compile(r"(.+)-(\d{1,10})", re.ASCII | re.DOTALL)
_FIRST_SEGMENT: Final = re.compile(r"(\d{20})\.kafka", re.ASCII)
_SEGMENT: Final = re.compile(
    r"(\d{20})(\.log|\.index|\.timeindex|\.txnindex|\.snapshot)((?:\.deleted|\.cleaned|\.swap)?)", re.ASCII
)


class FolderKind(Enum):
    """What a folder is for; the value is its suffix."""

    CURRENT = ""
    DELETE = "-delete"
    FUTURE = "-future"
    STRAY = "-stray"


class FolderName(NamedTuple):
    #: With a topic name that may have been cut in `-delete` and `-stray`.
    partition: TopicPartition
    kind: FolderKind
    #: The unique id behind the dot, empty in a current folder.
    unique: str


class SegmentFileName(NamedTuple):
    offset: int
    #: `.log`, `.index`, ...
    kind: str
    #: `.deleted`, `.cleaned`, `.swap` or nothing.
    suffix: str


def parse_folder(name: str) -> FolderName:
    marked = _MARKED.fullmatch(name)
    if marked:
        topic, digits, unique, suffix = marked.groups()
        kind = FolderKind(suffix)
    else:
        plain = _PLAIN.fullmatch(name)
        if not plain:
            raise FormatError(f"the folder name {name[:80]!r} is not of the form topic-partition")
        topic, digits = plain.groups()
        unique, kind = "", FolderKind.CURRENT
    cut = kind in (FolderKind.DELETE, FolderKind.STRAY)
    fault = topic_name_fault(topic) if topic or not cut else None
    partition = int(digits)
    if partition > _PARTITION_MAX or str(partition) != digits:
        fault = f"{digits} is not a partition number"
    if fault:
        raise FormatError(f"the folder name {name[:80]!r} is not of the form topic-partition: {fault}")
    return FolderName(TopicPartition(topic, partition), kind, unique)


def format_folder(partition: TopicPartition, kind: FolderKind = FolderKind.CURRENT, unique: str = "") -> str:
    """The folder's name; FormatError where it would be longer than a file system allows."""
    assert (kind is FolderKind.CURRENT) == (not unique), "exactly the marked folders carry an id"
    topic, number = partition
    tail = f"-{number}.{unique}{kind.value}" if unique else f"-{number}"
    if kind in (FolderKind.DELETE, FolderKind.STRAY):
        topic = topic[: NAME_BYTES_MAX - len(tail)]
    if len(topic) + len(tail) > NAME_BYTES_MAX:
        raise FormatError(
            f"the folder name {topic[:40]}...{tail} would have {len(topic) + len(tail)} characters, "
            f"and file systems allow {NAME_BYTES_MAX}"
        )
    return topic + tail


def parse_segment_file(name: str) -> SegmentFileName | None:
    """Offset, kind and work suffix of one of a partition's numbered files; None for any other name."""
    match = _SEGMENT.fullmatch(name)
    if match is None or (offset := int(match[1])) > _OFFSET_MAX:
        return None
    return SegmentFileName(offset, match[2], match[3])


def parse_first_segment_file(name: str) -> int | None:
    """The address of its first byte, of a segment of Kafka 0.7; None for any other name."""
    match = _FIRST_SEGMENT.fullmatch(name)
    return int(match[1]) if match is not None and int(match[1]) <= _OFFSET_MAX else None


def format_segment_file(offset: int, kind: str, suffix: str = "") -> str:
    assert 0 <= offset <= _OFFSET_MAX
    return f"{offset:0{_OFFSET_DIGITS}d}{kind}{suffix}"
