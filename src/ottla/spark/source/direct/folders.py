"""A partition's folder in a log directory, held open.

Files are opened through the folder's descriptor: a folder that is renamed, since the partition was deleted or moved to
another directory, stays the one that was checked, and one that takes over its name is not read for it.
"""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from typing import Final

from ottla.model import TopicPartition
from ottla.storage.formats import meta_properties, partition_metadata
from ottla.storage.formats.errors import FormatError
from ottla.storage.formats.names import LOG, format_folder, format_segment_file, parse_segment_file

#: Of the small files that say whose a folder is.
_SMALL_FILE_BYTES_MAX: Final = 64 * 1024
#: A pipe or a device under a file's name is not waited for.
_READ: Final = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK


class NotThere(Exception):
    """A directory that does not have the partition, or cannot be read."""


class Folder:
    def __init__(self, path: str, fd: int, broker_id: int | None) -> None:
        self.path = path
        #: Whose directory it stands in.
        self.broker_id = broker_id
        self._fd = fd

    def sealed(self) -> list[int]:
        """The base offsets of the segments that do not grow any more, rising: all but the newest."""
        files = (parse_segment_file(name) for name in os.listdir(self._fd))
        return sorted(file.offset for file in files if file is not None and file.kind == LOG and not file.suffix)[:-1]

    def open(self, base: int, kind: str) -> int:
        """A descriptor of one of a segment's files; raises OSError."""
        return _opened(format_segment_file(base, kind), self._fd)

    def name(self, base: int, kind: str) -> str:
        return f"{self.path}/{format_segment_file(base, kind)}"

    def close(self) -> None:
        os.close(self._fd)


def open_folder(directory: str, tp: TopicPartition, topic_id: bytes, cluster_id: str | None) -> Folder:
    """The partition's folder, if the log directory is this cluster's and the folder this topic's; raises NotThere."""
    path = f"{directory}/{format_folder(tp)}"
    try:
        meta = meta_properties.decode(_read(f"{directory}/{meta_properties.FILE_NAME}"))
        fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError as error:
        raise NotThere(_said(error)) from error
    except FormatError as error:
        raise NotThere(f"{directory}: {error}") from error
    try:
        _check_cluster(directory, meta.cluster_id, cluster_id)
        _check_topic(path, fd, topic_id)
    except BaseException:
        os.close(fd)
        raise
    return Folder(path, fd, meta.broker_id)


def _check_cluster(directory: str, found: str | None, wanted: str | None) -> None:
    if wanted is not None and found not in {None, wanted}:
        raise NotThere(f"{directory} belongs to cluster {found}, and {wanted} is read")


def _check_topic(path: str, fd: int, topic_id: bytes) -> None:
    try:
        found = partition_metadata.decode(_read(partition_metadata.FILE_NAME, fd))
    except OSError as error:
        raise NotThere(f"{path}: {_said(error)}") from error
    except FormatError as error:
        raise NotThere(f"{path}: {error}") from error
    if found != topic_id:
        raise NotThere(f"{path} is of another topic with this name, which was deleted or set aside")


def _opened(name: str, folder: int | None = None) -> int:
    fd = os.open(name, _READ, dir_fd=folder)
    if stat.S_ISREG(os.fstat(fd).st_mode):
        return fd
    os.close(fd)
    raise OSError(f"{name} is no file")


def _read(name: str, folder: int | None = None) -> bytes:
    fd = _opened(name, folder)
    try:
        return os.read(fd, _SMALL_FILE_BYTES_MAX)
    finally:
        with suppress(OSError):
            os.close(fd)


def _said(error: OSError) -> str:
    return f"{error.filename}: {error.strerror}" if error.filename and error.strerror else str(error)
