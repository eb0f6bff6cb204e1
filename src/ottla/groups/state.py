"""What all parts of one coordinator share: its groups, its timers, its journal."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final, TypeVar

from ottla import logs
from ottla.config.group import effective_groups_config
from ottla.config.slices import GroupsConfig
from ottla.coordinators.caller import Now
from ottla.coordinators.journal import Journal, JournalRecord, TransactionalProducer
from ottla.coordinators.long_work import Beside
from ottla.coordinators.timers import Timers
from ottla.groups.offsets.store import OffsetStore
from ottla.metadata.cache import MetadataCache
from ottla.model import ErrorCode, random_uuid, uuid_text
from ottla.ports.entropy import Entropy
from ottla.records.builder import BatchBuilder
from ottla.steps import Steps

if TYPE_CHECKING:
    from ottla.groups.group import Group

log_event = logs.logger("groups")

T = TypeVar("T")
#: Takes the answer to a request; called exactly once, at once or later.
Reply = Callable[[T], None]
#: How a write ended, in a coordinator's words.
Done = Callable[[ErrorCode], None]

#: Steps of a piece of work that follow one another: a millisecond or two. What happens to all members of a group
#: together takes no more of them for a hundred members.
STEPS_AT_ONCE_MAX: Final = 8
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
        "_beside",
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
        beside: Beside,
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
        self._beside = beside

    def settings_of(self, group_id: str) -> GroupsConfig:
        """With what is set for this group alone."""
        return effective_groups_config(self.metadata.group_config(group_id), self.settings())

    def write(
        self,
        records: Sequence[JournalRecord],
        now: Now,
        done: Done,
        built: BatchBuilder | None = None,
        producer: TransactionalProducer | None = None,
    ) -> ErrorCode:
        """Appends records. NONE: apply them now, and `done` is called with how it ended. An error: nothing happened."""
        if self.is_over:
            return ErrorCode.NOT_COORDINATOR
        if producer is not None:
            return self.journal.write(records, now.wall_ms, done, built, producer)
        return self.journal.write(records, now.wall_ms, done, built)

    def when_settled(self, call: Done) -> None:
        """Calls when all that was applied is committed, or has failed."""
        self.journal.when_settled(call)

    def do(self, steps: Steps[None]) -> None:
        """Begins at once, and has done beside everything else what does not end within a few steps."""
        for _ in range(STEPS_AT_ONCE_MAX):
            try:
                next(steps)
            except StopIteration:
                return
        self._beside(steps)

    def new_member_id(self, prefix: str) -> str:
        """`<client id or instance id>-<random UUID>`, as Kafka names members."""
        prefix = prefix[:_PREFIX_CHARACTERS_MAX]
        return f"{prefix}-{uuid_text(random_uuid(self.entropy.token(16)))}"


def replied(response: Steps[T], reply: Reply[T]) -> Steps[None]:
    """Makes an answer and gives it."""
    reply((yield from response))


def give(reply: Reply[T], response: T) -> None:
    """Gives one answer of many: a fault of ours in it must not cost the others theirs."""
    try:
        reply(response)
    except Exception as fault:
        log_event.error("an answer of a group could not be given", error="".join(traceback.format_exception(fault)))


def made_at_once(response: T) -> Steps[T]:
    """An answer that needs no steps, for a caller that takes steps."""
    yield from ()
    return response


def session_key(group_id: str, member_id: str) -> tuple[str, str, str]:
    """Of the timer that takes a silent member out of its group."""
    return ("session", group_id, member_id)
