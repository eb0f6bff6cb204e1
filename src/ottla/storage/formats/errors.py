"""What every decoder of this package raises."""

from __future__ import annotations


class FormatError(Exception):
    """The bytes are not what the format says; the message names the file where it is known."""

    def in_file(self, path: str) -> FormatError:
        """The same complaint with the file's name in front."""
        return FormatError(f"{path}: {self}")
