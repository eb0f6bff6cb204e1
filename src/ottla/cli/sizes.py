"""Bytes as people read them: 1536 is 1.5 KiB."""

from __future__ import annotations


class ReadableSize(int):
    """A number to a table, so that it stands to the right."""

    def __str__(self) -> str:
        return human(int(self))


def human(size: int) -> str:
    number = float(size)
    for unit in ("B", "KiB", "MiB", "GiB", "TiB"):
        if number < 1024:
            return f"{size} B" if unit == "B" else f"{number:.1f} {unit}"
        number /= 1024
    return f"{number:.1f} PiB"
