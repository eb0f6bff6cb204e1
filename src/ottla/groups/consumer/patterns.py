"""Regular expressions that members subscribed with, and the topics that match them.

They are RE2's, which promises to match in linear time whatever a client sends: linear in the name times the size of the
compiled program, which nested repeats make a thousand times the size of the expression. So the program has a bound,
and an expression is matched in steps (`ottla.steps`), once for all groups of this broker. What it stands for is
remembered, and looked at again when topics come or go: only new names are matched then.

    resolve -> steps, a few names each -> known, for one version of the topics' names

A decision takes what is known. What is not known yet it leaves as it was; a later heartbeat finds more.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final, NamedTuple

from ottla.coordinators.expressions import BadExpression, compiled
from ottla.groups.consumer.decision import RequestRefused
from ottla.metadata.cache import MetadataCache
from ottla.model import INTERNAL_TOPICS, ErrorCode
from ottla.steps import PIECE, Steps

if TYPE_CHECKING:
    import re2

#: Expressions that are remembered, over all groups of a broker: 32 MiB of RE2's memory. The one that was not used for
#: longest goes first.
REMEMBERED_MAX: Final = 128
#: Different ones in one group, whose members hold all of them at the same time.
EXPRESSIONS_OF_A_GROUP_MAX: Final = 64
#: Instructions times characters that make one step: about ten microseconds.
_WORK_OF_A_STEP: Final = 4_096


class MatchedTopics(NamedTuple):
    topics: frozenset[str]
    #: Of the topics' names.
    version: int


class _Expression:
    """One expression, and how far it was matched."""

    __slots__ = ("known", "pattern", "refusal", "search", "seen")

    def __init__(self, pattern: str) -> None:
        self.pattern: re2._Regexp[bytes] | None = None
        #: Why it is none, or none that is taken.
        self.refusal: RequestRefused | None = None
        try:
            self.pattern = _compiled(pattern)
        except RequestRefused as refusal:
            self.refusal = refusal
        #: None before it was matched with all names once.
        self.known: MatchedTopics | None = None
        #: The names that `known` was found among.
        self.seen: frozenset[str] = frozenset()
        #: What is under way. A caller that waits for it takes its next step, several in turn if need be.
        self.search: Iterator[None] | None = None

    def begin(self, names: frozenset[str], version: int) -> Iterator[None]:
        assert self.pattern is not None
        fullmatch, size = self.pattern.fullmatch, self.pattern.programsize
        found = set() if self.known is None else set(self.known.topics & names)
        work, count = 0, 0
        for name in names - self.seen:
            if fullmatch(name.encode()):
                found.add(name)
            work += size * len(name)
            count += 1
            while work >= _WORK_OF_A_STEP or count == PIECE:
                work, count = max(0, work - _WORK_OF_A_STEP), 0
                yield
        self.seen = names
        self.known = MatchedTopics(frozenset(found), version)


class TopicPatterns:
    def __init__(self, metadata: MetadataCache) -> None:
        self._metadata = metadata
        self._generation = -1
        self._names: frozenset[str] = frozenset()
        self._names_version = 0
        self._remembered: OrderedDict[str, _Expression] = OrderedDict()

    @property
    def names_version(self) -> int:
        """Rises when a topic was created or deleted."""
        if self._metadata.generation != self._generation:
            self._generation = self._metadata.generation
            names = frozenset(self._metadata.topics) - INTERNAL_TOPICS
            if names != self._names:
                self._names = names
                self._names_version += 1
        return self._names_version

    def check(self, pattern: str) -> None:
        """Refuses what is no expression, or too costly a one."""
        if (refusal := self._expression(pattern).refusal) is not None:
            raise RequestRefused(refusal.error, refusal.message)

    def resolve(self, pattern: str) -> Steps[None]:
        """Matches the names of this moment; what is refused is passed over."""
        expression = self._expression(pattern)
        if expression.refusal is not None:
            return
        version = self.names_version
        while expression.known is None or expression.known.version < version:
            if expression.search is None:
                expression.search = expression.begin(self._names, self._names_version)
            try:
                next(expression.search)
            except StopIteration:
                expression.search = None
            else:
                yield

    def known(self, pattern: str) -> MatchedTopics | None:
        """What was found when it was last matched with all names, which may have been other names than those of now."""
        expression = self._remembered.get(pattern)
        return None if expression is None else expression.known

    def is_refused(self, pattern: str) -> bool:
        """A coordinator of another kind may have stored what this one refuses: its topics stay as they are stored."""
        expression = self._remembered.get(pattern)
        return expression is not None and expression.refusal is not None

    def _expression(self, pattern: str) -> _Expression:
        expression = self._remembered.get(pattern)
        if expression is None:
            expression = self._remembered[pattern] = _Expression(pattern)
            if len(self._remembered) > REMEMBERED_MAX:
                self._remembered.popitem(last=False)
        else:
            self._remembered.move_to_end(pattern)
        return expression


def _compiled(pattern: str) -> re2._Regexp[bytes]:
    try:
        return compiled(pattern, is_ascii=True)  # as names of topics are
    except BadExpression as fault:
        raise RequestRefused(ErrorCode.INVALID_REGULAR_EXPRESSION, str(fault)) from fault
