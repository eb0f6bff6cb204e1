"""What brings a file beside a log up to date: made on the loop, done by a worker or at once."""

from __future__ import annotations

from typing import NamedTuple, Protocol

from ottla.ports import Disk


class BesideWrite(Protocol):
    """What brings a file beside the log up to date."""

    @property
    def path(self) -> str: ...

    def run(self) -> None:
        """Blocks. Raises OSError, and may be done again."""
        ...


class IndexWrite(NamedTuple):
    """What a file beside the log is to hold from a position on: for a worker, or at once."""

    disk: Disk
    path: str
    data: bytes
    position: int

    def run(self) -> None:
        """Blocks. Raises OSError, and may be done again."""
        file = self.disk.open(self.path, create=True)
        try:
            if file.size() > self.position:
                file.truncate(self.position)
            if self.data:
                file.write(self.data, self.position)
        finally:
            file.close()
