"""Small files of a log directory, read whole."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from ottla import java_properties
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


def properties_in(data: bytes) -> dict[str, str]:
    """Names and values of one in Java's syntax, in ISO-8859-1 as Java writes it: no bytes are undecodable."""
    try:
        return java_properties.decode(data.decode("iso-8859-1"))
    except java_properties.BadEscape as fault:
        raise FormatError(str(fault)) from None
