"""What DescribeLogDirs answers about a log directory."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from ottla.model import TopicPartition
from ottla.steps import Steps, pieces
from ottla.storage.directories.directory import LogDirectory
from ottla.storage.directories.moving import FutureLog

#: Kafka's number for sizes that are not known.
UNKNOWN_BYTES = -1


class ReplicaStatus(NamedTuple):
    partition: TopicPartition
    size_bytes: int
    #: For a copy: how far it is behind the replica in use. For that one: how far it is behind the high watermark.
    offset_lag: int
    is_future: bool


class DirectoryStatus(NamedTuple):
    path: str
    #: Why it is offline; None while it works.
    failure: str | None
    is_cordoned: bool
    total_bytes: int
    usable_bytes: int
    replicas: list[ReplicaStatus]


def describe_directory(
    directory: LogDirectory, moves: Mapping[TopicPartition, FutureLog], high_watermarks: Mapping[TopicPartition, int]
) -> Steps[DirectoryStatus]:
    if not directory.is_online:
        return DirectoryStatus(directory.path, directory.failure, directory.cordoned, UNKNOWN_BYTES, UNKNOWN_BYTES, [])
    replicas: list[ReplicaStatus] = []
    for piece in pieces(list(directory.logs.items())):
        replicas += [
            ReplicaStatus(tp, log.size, max(high_watermarks.get(tp, 0) - log.end_offset, 0), is_future=False)
            for tp, log in piece
        ]
        yield
    replicas += [
        ReplicaStatus(tp, log.size, moves[tp].lag if tp in moves else 0, is_future=True)
        for tp, (_, log) in directory.futures.items()
    ]
    try:
        total, usable = directory.disk.total_bytes(directory.path), directory.disk.free_bytes(directory.path)
    except OSError:
        # A directory that cannot even say this is about to fail; the operation that meets it decides.
        total = usable = UNKNOWN_BYTES
    return DirectoryStatus(directory.path, None, directory.cordoned, total, usable, replicas)
