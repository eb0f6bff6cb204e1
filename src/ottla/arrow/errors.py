"""What can be wrong beside what `records` finds wrong with a batch."""

from __future__ import annotations

from ottla.records.errors import RecordError


class ArrowMissing(ImportError):
    """pyarrow is not installed."""


class UnrepresentableTime(RecordError):
    """A record whose time in milliseconds is no 64-bit number of microseconds, 292,000 years from now or before."""


class BadColumns(ValueError):
    """A table that cannot be records: a missing or an unknown column, or one of another type."""


class BadRow(ValueError):
    """A row that cannot be a record."""

    def __init__(self, row: int, message: str) -> None:
        super().__init__(f"row {row}: {message}")
        self.row = row
        self.message = message


class RowTooLarge(BadRow):
    """A row whose record alone is over `max.request.size`."""

    def __init__(self, row: int, size: int, limit: int) -> None:
        super().__init__(row, f"a record of {size} bytes is over max.request.size, {limit}")
        self.size = size
        self.limit = limit
