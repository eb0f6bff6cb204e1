"""What all parts of one coordinator share: its groups, its timers, its journal."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Final, TypeVar

from ottla.config.group import effective_groups_config
from ottla.config.slices import GroupsConfig
from ottla.groups.caller import Now
from ottla.groups.journal import Journal, JournalRecord
from ottla.groups.offsets.store import OffsetStore
from ottla.groups.timers import Timers
from ottla.metadata.cache import MetadataCache
from ottla.model import ErrorCode, random_uuid, uuid_text
from ottla.ports.entropy import Entropy

if TYPE_CHECKING:
    from ottla.groups.group import Group

T = TypeVar("T")
#: Takes the answer to a request; called exactly once, at once or later.
Reply = Callable[[T], None]
#: How a write ended, in a coordinator's words.
Done = Callable[[ErrorCode], None]


#: Answers of one rebalance that are given without a pause.
ANSWERS_AT_ONCE_MAX: Final = 100
_OUTBOX: Final = "answers"
#: Of a member's id: with the rest of it it still is a string that fits in a message, in four bytes a character.
_PREFIX_CHARACTERS_MAX: Final = 8_000


class Counts:
    """What happened since the broker started, in all of its shards; for metrics."""

    __slots__ = ("commits", "deletions", "expired", "rebalances")

    def __init__(self) -> None:
        #: Offsets that were committed.
        self.commits = 0
        #: Offsets that were deleted by administrators, and with topics and groups.
        self.deletions = 0
        self.expired = 0
        #: Completed ones, of classic groups.
        self.rebalances = 0


class ShardState:
    """One partition of the offsets topic, as long as this broker coordinates its groups."""

    __slots__ = (
        "_outbox",
        "counts",
        "entropy",
        "groups",
        "is_over",
        "journal",
        "metadata",
        "offsets",
        "partition",
        "settings",
        "timers",
    )

    def __init__(
        self,
        partition: int,
        journal: Journal,
        settings: Callable[[], GroupsConfig],
        metadata: MetadataCache,
        entropy: Entropy,
        counts: Counts,
    ) -> None:
        self.partition = partition
        self.journal = journal
        #: Given up: another state of the same partition may be loaded from the same journal, and would miss what is
        #: written from here. Work in steps may find that in its middle.
        self.is_over = False
        #: Asked each time: settings may change.
        self.settings = settings
        self.metadata = metadata
        self.entropy = entropy
        self.timers = Timers()
        #: Of both kinds, by id.
        self.groups: dict[str, Group] = {}
        self.offsets = OffsetStore()
        self.counts = counts
        # Answers of one rebalance that are still to be given.
        self._outbox: deque[Callable[[], None]] = deque()

    def settings_of(self, group_id: str) -> GroupsConfig:
        """With what is set for this group alone."""
        return effective_groups_config(self.metadata.group_config(group_id), self.settings())

    def write(self, records: Sequence[JournalRecord], now: Now, done: Done) -> ErrorCode:
        """Appends records. NONE: apply them now, and `done` is called with how it ended. An error: nothing happened."""
        if self.is_over:
            return ErrorCode.NOT_COORDINATOR
        return self.journal.write(records, now.wall_ms, done)

    def when_settled(self, call: Done) -> None:
        """Calls when all that was applied is committed, or has failed."""
        self.journal.when_settled(call)

    def answer_all(self, answers: Iterable[Callable[[], None]], now: Now) -> None:
        """Gives many answers, a hundred a turn: a thousand at once would hold up everybody else for tens of ms."""
        self._outbox.extend(answers)
        if _OUTBOX not in self.timers:
            self._answer_some(now)

    def answer_rest(self) -> None:
        while self._outbox:
            self._outbox.popleft()()

    def _answer_some(self, now: Now) -> None:
        for _ in range(min(ANSWERS_AT_ONCE_MAX, len(self._outbox))):
            self._outbox.popleft()()
        if self._outbox:
            self.timers.set(_OUTBOX, now.monotonic_ms + 1, self._answer_some)

    def new_member_id(self, prefix: str) -> str:
        """`<client id or instance id>-<random UUID>`, as Kafka names members."""
        prefix = prefix[:_PREFIX_CHARACTERS_MAX]
        return f"{prefix}-{uuid_text(random_uuid(self.entropy.token(16)))}"
