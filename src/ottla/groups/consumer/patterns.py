"""Regular expressions that members subscribed with, and the topics that match them.

They are RE2's, which promises to match in linear time whatever a client sends: linear in the name times the size of the
compiled program, which nested repeats make a thousand times the size of the expression. So the program has a bound,
and an expression is matched in steps (`ottla.steps`), once for all groups of this broker. What it stands for is
remembered, and looked at again when topics come or go: only new names are matched then.

    resolve -> steps, a few names each -> known, for one version of the topics' names

A decision takes what is known. What is not known yet it leaves as it was; a later heartbeat finds more.
"""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final, NamedTuple

from ottla.groups.consumer.decision import RequestRefused
from ottla.metadata.cache import MetadataCache
from ottla.model import INTERNAL_TOPICS, ErrorCode
from ottla.steps import PIECE, Steps

if TYPE_CHECKING:
    import re2

#: Expressions that are remembered, over all groups of a broker; the one that was not used for longest goes first.
REMEMBERED_MAX: Final = 128
#: RE2's memory for one expression, program and states: 32 MiB for all that are remembered.
PATTERN_BYTES_MAX: Final = 256 * 1024
#: Of an expression: two hundred topics one beside the other fit, and it is compiled within five milliseconds.
EXPRESSION_LENGTH_MAX: Final = 4_096
#: RE2's instructions for one expression. Each takes some three nanoseconds a character: a name of 249 characters, the
#: longest, takes four milliseconds at the most.
PROGRAM_SIZE_MAX: Final = 5_000
#: Repetitions that an expression counts, all together: each makes one instruction at least, and takes time before RE2
#: finds that the program becomes too large.
REPETITIONS_MAX: Final = PROGRAM_SIZE_MAX
#: `\\p{...}` takes a hundred microseconds each to compile, and no topic's name has a letter beyond ASCII.
UNICODE_CLASSES_MAX: Final = 32
#: Different ones in one group, whose members hold all of them at the same time.
EXPRESSIONS_OF_A_GROUP_MAX: Final = 64
#: Instructions times characters that make one step: about ten microseconds.
_WORK_OF_A_STEP: Final = 4_096

_COUNTED: Final = re.compile(r"\{(\d{1,9})(?:,(\d{0,9}))?\}")
_UNICODE_CLASS: Final = re.compile(r"\\[pP]")
#: What RE2 reads otherwise, or more slowly, where a character is a byte.
_NEEDS_UNICODE: Final = re.compile(r"\\[pPx]|[^\x00-\x7f]")


class KnownTopics(NamedTuple):
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
        self.known: KnownTopics | None = None
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
        self.known = KnownTopics(frozenset(found), version)


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

    def known(self, pattern: str) -> KnownTopics | None:
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
    import re2  # a native library that few brokers ever need: 20 ms of start-up

    _check_cost(pattern)
    options = re2.Options()
    options.log_errors = False
    options.max_mem = PATTERN_BYTES_MAX
    options.never_capture = True
    if _NEEDS_UNICODE.search(pattern) is None:
        # Names of topics are ASCII. A dot is one instruction then, and not nine.
        options.encoding = re2.Options.Encoding.LATIN1
    try:
        compiled = re2.compile(pattern.encode(), options)
    except re2.error as fault:
        said = fault.args[0] if fault.args else fault
        reason = said.decode(errors="replace") if isinstance(said, bytes) else str(said)
        raise _refused(pattern, reason) from fault
    if compiled.programsize > PROGRAM_SIZE_MAX:
        raise _refused(pattern, "pattern too large")
    return compiled


def _check_cost(pattern: str) -> None:
    """What takes long before RE2 itself finds that it is too much."""
    if len(pattern) > EXPRESSION_LENGTH_MAX:
        raise _refused(f"{pattern[:100]}...", f"it has more than {EXPRESSION_LENGTH_MAX} characters")
    if sum(int(most or least) for least, most in _COUNTED.findall(pattern)) > REPETITIONS_MAX:
        raise _refused(pattern, f"it counts more than {REPETITIONS_MAX} repetitions")
    if len(_UNICODE_CLASS.findall(pattern)) > UNICODE_CLASSES_MAX:
        raise _refused(pattern, f"it has more than {UNICODE_CLASSES_MAX} classes of Unicode")


def _refused(pattern: str, reason: str) -> RequestRefused:
    return RequestRefused(ErrorCode.INVALID_REGULAR_EXPRESSION, f"`{pattern}` is no regular expression: {reason}")
