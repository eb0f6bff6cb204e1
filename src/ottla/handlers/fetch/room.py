"""How much of an answer to Fetch may stand in memory, and how many files it may hold open.

Records of small reads are copied into the answer, which saves a system call each; all others go from their segments to
the socket, and take no memory. Nobody knows when a client will take its answer, so what is copied has a bound for each
answer, for all that are made in one round, and for all that clients have left untaken (`UntakenAnswers`). Where there
is no room records go by file, however small they are. A file that is on its way out stays open, so that an answer has a
few of them only: what does not fit is for the client's next fetch, as if the client itself had asked for no more.

Files of deleted segments, and of those that were closed since too many are open, go with the last answer that holds
them. Where these come to be many (`may_hold_files`), further answers hold none: each brings what may be copied, or the
beginning of what is too large for that.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Protocol

from ottla.ports import Disk
from ottla.records.batch import LOG_OVERHEAD, batch_size
from ottla.storage.log.reader import Slice

#: Of a batch's length, which counts what is behind it.

#: From this size on a slice goes from the segment to the socket by sendfile.
SENDFILE_BYTES_MIN: Final = 32 * 1024
#: Records that one answer copies. Eight reads of the largest size that is copied at all: more are as good by sendfile.
COPIED_BYTES_MAX: Final = 256 * 1024
#: Records that all answers of one round copy: they stand in memory together until the round sends them.
COPIED_A_ROUND_MAX: Final = 8 * 1024 * 1024
#: Slices of one answer that go by sendfile. Two megabytes at least, where each is too large to be copied.
FILE_PIECES_MAX: Final = 64


#: Files that answers alone keep open, of all connections together. A quarter of what is kept back of the limit on open
#: files for storage at the least (`ports/real/descriptors.py`), half of which log directories use.
LINGERING_MAX: Final = 256


def may_hold_files(disk: Disk) -> bool:
    """Whether one more answer may hold files open."""
    return disk.lingering < LINGERING_MAX


class CutSlice(Slice):
    """One that is copied in place of being sent."""

    __slots__ = ()


class UntakenAnswers(Protocol):
    """The account of what clients have not taken of their answers."""

    @property
    def has_room(self) -> bool: ...

    def wait(self, resume: Callable[[], None]) -> None:
        """Calls once there is room again."""
        ...


class Room:
    """What is left of one answer's room, while its partitions are read."""

    __slots__ = ("_copied_left", "_cuts", "_pieces_left")

    def __init__(self, copied_max: int = COPIED_BYTES_MAX, *, holds_files: bool = True) -> None:
        self._copied_left = copied_max
        self._pieces_left = FILE_PIECES_MAX if holds_files else 0
        #: Whether the first slice is copied however large, up to where it is cut.
        self._cuts = copied_max > 0 and not holds_files

    def cut(self, found: Slice) -> Slice:
        """What of a slice goes into the answer: all of it, or where no file may be held and it is the first, as much as
        is copied. Its first batch is whole, however large. Raises OSError."""
        if not self._cuts:
            return found
        self._cuts = False
        if found.file is None or found.size < SENDFILE_BYTES_MIN:
            return found
        begun = found.file.read(LOG_OVERHEAD, found.position)
        first = batch_size(begun) if len(begun) == LOG_OVERHEAD else 0
        size = min(found.size, max(first, COPIED_BYTES_MAX))
        self._copied_left = 0
        return CutSlice(found.file, found.position, size)

    def copies(self, found: Slice) -> bool:
        """Whether the slice is to be copied, which is noted if so."""
        if isinstance(found, CutSlice):
            return True
        if found.size >= SENDFILE_BYTES_MIN or found.size > self._copied_left:
            return False
        self._copied_left -= found.size
        return True

    def sends(self) -> bool:
        """Whether one more slice may go by sendfile."""
        self._pieces_left -= 1
        return self._pieces_left >= 0
