"""A bound on the files and indexes that one log directory keeps open.

Segments open their files when they are needed. When too many are open the longest unused ones close, found by second
chance: use sets a flag, which costs the hot path one store, and the search clears it. Each opening looks at a few, or
ten thousand that may not close would be looked at for each; so the bound is passed by some. A segment with unsynced
bytes stays open, since a write error is certain to reach only those that had the file open; so active segments that
are never flushed may exceed the bound.

Where the system has no descriptor left, half of them close at once, and what was to be opened is tried again.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Final, Protocol, TypeVar

from ottla.storage.errors import has_no_descriptor

T = TypeVar("T")

FILES_MAX: Final = 512
#: Open ones that are looked at when another one opens.
LOOKED_AT_MAX: Final = 16


class Closable(Protocol):
    #: Set with each use, cleared by the search.
    used: bool

    @property
    def is_open(self) -> bool: ...

    @property
    def is_clean(self) -> bool: ...

    def release_files(self) -> None:
        """Closes the file and forgets what can be loaded again."""
        ...


class OpenFiles:
    __slots__ = ("_open", "limit")

    def __init__(self, limit: int = FILES_MAX) -> None:
        self.limit = limit
        self._open: deque[Closable] = deque()

    def __len__(self) -> int:
        return len(self._open)

    def opened(self, segment: Closable) -> None:
        """Notes an open segment and closes others while there are too many."""
        self._open.append(segment)
        if len(self._open) <= self.limit:
            return
        for _ in range(LOOKED_AT_MAX):
            if len(self._open) <= self.limit:
                return
            oldest = self._open.popleft()
            if not oldest.is_open:
                continue
            if oldest is segment or oldest.used or not oldest.is_clean:
                oldest.used = False
                self._open.append(oldest)
            else:
                oldest.release_files()

    def opening(self, opens: Callable[[], T]) -> T:
        """What opens a file, once more if it got no descriptor and others could be closed for it."""
        try:
            return opens()
        except OSError as error:
            if not has_no_descriptor(error) or not self.close_half():
                raise
        return opens()

    def close_half(self) -> bool:
        """Closes the half that was opened first, as far as it may be; whether there was any."""
        closable = [each for each in self._open if each.is_open and each.is_clean]
        closed = closable[: (len(closable) + 1) // 2]
        for each in closed:
            each.release_files()
        self._open = deque(each for each in self._open if each.is_open)
        return bool(closed)
