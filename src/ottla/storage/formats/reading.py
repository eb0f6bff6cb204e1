"""A small file of a log directory, read whole."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from ottla.ports.disk import Disk
from ottla.storage.formats.errors import FormatError

T = TypeVar("T")


def read_decoded(disk: Disk, path: str, decode: Callable[[bytes], T]) -> T | None:
    """None where there is no file; FormatError names the file."""
    try:
        data = disk.read_file(path)
    except FileNotFoundError:
        return None
    try:
        return decode(data)
    except FormatError as error:
        raise error.in_file(path) from error
