"""What can be wrong with a format's name, its schema, its registry, or one record."""

from __future__ import annotations


class FormatError(ValueError):
    """The root of all that this room raises."""


class BadSpec(FormatError):
    """A format, a setting or a schema that cannot be meant: the message names it."""


class LibraryMissing(ImportError):
    """What a format is read with is not installed; the message says what to install."""


class BadRecord(FormatError):
    """Bytes that are no value of their schema. In a column it is a text beside a null, and never more."""


class BadValue(FormatError):
    """A value that its schema cannot hold; in a column `row` says which."""

    def __init__(self, message: str, row: int | None = None) -> None:
        super().__init__(message if row is None else f"row {row}: {message}")
        self.message = message
        self.row = row


class RegistryError(FormatError):
    """What was asked of a schema registry failed; the message names where it was asked, and for what."""


class RegistryUnreachable(RegistryError):
    """The registry is away, or too slow, or has a fault of its own: the same question may be answered later."""


class SchemaNotFound(RegistryError):
    """The registry has no such id, subject or version."""


class SchemaRefused(RegistryError):
    """The registry does not take the schema: it is none, or not compatible with the subject's others."""
