"""Reads a property file that the command line names."""

from __future__ import annotations

from ottla.cli.faults import FAILED, NOT_FOUND, CommandFault
from ottla.config.files import FILE_BYTES_MAX, PropertyFileError, parse_properties


def read_properties(path: str) -> dict[str, str]:
    try:
        with open(path, "rb") as file:
            data = file.read(FILE_BYTES_MAX + 1)
    except OSError as error:
        code = NOT_FOUND if isinstance(error, FileNotFoundError) else FAILED
        raise CommandFault(f"cannot read {path}: {error.strerror or error}", code) from error
    try:
        return parse_properties(data)
    except PropertyFileError as error:
        raise CommandFault(f"{path}, {error}") from error
