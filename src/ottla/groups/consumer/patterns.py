"""Regular expressions that members subscribed with, and the topics that match them.

They are RE2's, which promises to match in linear time whatever a client sends. A topic matches as a whole. What an
expression stands for is remembered, shared between groups, and looked at again when topics come or go: only new names
are matched then.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING, Final

from ottla.groups.consumer.decision import Refused
from ottla.metadata.cache import MetadataCache
from ottla.model import INTERNAL_TOPICS, ErrorCode

if TYPE_CHECKING:
    import re2

#: Expressions that are remembered, over all groups of a shard; the one that was not used for longest goes first.
_REMEMBERED_MAX: Final = 256
#: RE2's memory for one expression; one that needs more is refused.
_PATTERN_BYTES_MAX: Final = 1 << 20


class _Matches:
    __slots__ = ("names_version", "pattern", "topics")

    def __init__(self, pattern: re2._Regexp[str]) -> None:
        self.pattern = pattern
        self.names_version = -1
        self.topics: frozenset[str] = frozenset()


class TopicPatterns:
    def __init__(self, metadata: MetadataCache) -> None:
        self._metadata = metadata
        self._generation = -1
        self._names: frozenset[str] = frozenset()
        #: Names that came with the last change, and the version before it.
        self._added: frozenset[str] = frozenset()
        self._names_version = 0
        self._remembered: OrderedDict[str, _Matches] = OrderedDict()

    @property
    def names_version(self) -> int:
        """Rises when a topic was created or deleted."""
        if self._metadata.generation != self._generation:
            self._generation = self._metadata.generation
            names = frozenset(self._metadata.topics) - INTERNAL_TOPICS
            if names != self._names:
                self._added = names - self._names
                self._names = names
                self._names_version += 1
        return self._names_version

    def check(self, pattern: str) -> None:
        """Refuses what is no expression."""
        self._matches(pattern)

    def topics(self, pattern: str) -> frozenset[str]:
        version = self.names_version
        matches = self._matches(pattern)
        if matches.names_version != version:
            fullmatch = matches.pattern.fullmatch
            if matches.names_version == version - 1 and version > 1:
                found = matches.topics & self._names
                found |= {name for name in self._added if fullmatch(name)}
            else:
                found = frozenset(name for name in self._names if fullmatch(name))
            matches.topics = found
            matches.names_version = version
        return matches.topics

    def _matches(self, pattern: str) -> _Matches:
        matches = self._remembered.get(pattern)
        if matches is None:
            matches = self._remembered[pattern] = _Matches(_compiled(pattern))
            if len(self._remembered) > _REMEMBERED_MAX:
                self._remembered.popitem(last=False)
        else:
            self._remembered.move_to_end(pattern)
        return matches


def _compiled(pattern: str) -> re2._Regexp[str]:
    import re2  # a native library that few brokers ever need: 20 ms of start-up

    options = re2.Options()
    options.log_errors = False
    options.max_mem = _PATTERN_BYTES_MAX
    try:
        return re2.compile(pattern, options)
    except re2.error as fault:
        said = fault.args[0] if fault.args else fault
        reason = said.decode(errors="replace") if isinstance(said, bytes) else str(said)
        raise Refused(
            ErrorCode.INVALID_REGULAR_EXPRESSION, f"`{pattern}` is no regular expression: {reason}"
        ) from fault
