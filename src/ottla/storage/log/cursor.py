"""One reader's way through a log: what it has just read shows where the next batch lies, so that nobody looks it up.

The place is noted with the log's other places, where any reader that goes on from there finds it. In all other cases,
and where the log has changed meanwhile, the log is asked.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ottla.records.batch import HEADER_SIZE, LENGTH_MIN, LOG_OVERHEAD, MAGIC, header_fields

if TYPE_CHECKING:
    from ottla.storage.log.log import Log

#: Of a header what says how far its batch goes.
_EXTENT: Final = header_fields("base_offset", "length", "magic", "last_offset_delta").unpack_from


class Cursor:
    __slots__ = ("_first_size", "_known", "_log", "_next_offset", "_places", "_remember", "position", "segment")

    def __init__(self, log: Log) -> None:
        self._log = log
        self._places = log.places
        self._known = log.places.known
        self._remember = log.places.remember
        #: Where the last `find` began.
        self.segment = log.active
        self.position = 0
        #: Bytes of the first batch there, and the offset behind it.
        self._first_size = 0
        self._next_offset = 0

    def find(self, offset: int, max_bytes: int, limit_offset: int) -> int:
        """How many bytes a read gets, from `position` of `segment` on; -1 where it might wait for the disk to find out.
        It raises what `Log.read` raises."""
        places = self._places
        spot = self._known(offset)
        if spot is None or not spot[2] or limit_offset != places.end_offset or offset < places.start_offset:
            if self._log.is_far(offset, limit_offset):
                return -1
            size = self._log.read(offset, max_bytes, limit_offset).size
            spot = places.find(offset) if size else None
            if spot is None:
                return 0
            self.segment, self.position, self._first_size, self._next_offset = spot
            return size
        self.segment, self.position, self._first_size, self._next_offset = spot
        size = self.segment.size - self.position
        if size > max_bytes:
            return max(max_bytes, self._first_size)
        return size

    def has_read(self, data: bytearray, at: int, size: int) -> None:
        """`size` bytes from `position` on stand in `data` at `at`: perhaps with the header of the second batch."""
        within = self._first_size
        if within + HEADER_SIZE > size:
            return
        base, length, magic, delta = _EXTENT(data, at + within)
        segment, position = self.segment, self.position + within
        if LENGTH_MIN <= length <= segment.size - position - LOG_OVERHEAD and magic == MAGIC and base | delta >= 0:
            self._remember(self._next_offset, (segment, position, length + LOG_OVERHEAD, base + delta + 1))
