"""A log's leader epochs, read when they are first asked for: at a start, those of most logs never are.

What is known before they are read is the leader epoch that this broker has begun itself. It is entered when they are.
"""

from __future__ import annotations

from ottla.storage.log.epochs import EpochCache
from ottla.storage.log.opening.loading import load_epochs
from ottla.storage.log.places import Places


class LeaderEpochs:
    __slots__ = ("_cache", "_own", "_places")

    def __init__(self, places: Places, loaded: EpochCache | None) -> None:
        self._places = places
        #: None until it is read. Its leader epochs begin below the log's end, but for one that has no record yet, and
        #: the first one begins at the log's start at the earliest.
        self._cache = loaded
        #: The leader epoch that began last and the log's end then, for when the leader epochs before it are read.
        self._own: tuple[int, int] | None = None

    @property
    def cache(self) -> EpochCache:
        cache = self._cache
        if cache is None:
            places = self._places
            with places.naming_faults():
                cache = self._cache = load_epochs(places.around, places.segments)
            cache.drop_unused(places.end_offset)
            cache.truncate_from_start(places.start_offset)
            if self._own is not None:
                cache.begin(*self._own)
        return cache

    def begin(self, epoch: int) -> None:
        """This broker leads from here on. Reads nothing."""
        end_offset = self._places.end_offset
        self._own = (epoch, end_offset)
        if self._cache is not None:
            self._cache.begin(epoch, end_offset)

    @property
    def are_new(self) -> bool:
        """Whether the file beside the log is to be written."""
        return self._cache is not None and self._cache.dirty

    def must_be_written(self) -> None:
        if self._cache is not None:
            self._cache.must_be_written()

    def start_moved(self) -> None:
        """The log begins later. Of an empty log nothing is read for that."""
        places = self._places
        if self._cache is not None or places.segments[0].size or len(places.segments) > 1:
            self.cache.truncate_from_start(places.start_offset)

    def cut_at(self, offset: int) -> None:
        """The log has been cut."""
        self.cache.truncate_from_end(offset)
