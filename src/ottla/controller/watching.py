"""Watches over what others write into the tree: each part that has changed is looked at in a turn of its own.

There is one watch a part, one a broker and one a topic; partitions have none. A watch is called once, so a look begins
with leaving it anew. What changes while its look waits in the queue is seen by that look, and no second one is queued.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final

from ottla.controller.core import log
from ottla.controller.deciding.refusal import Refusal
from ottla.controller.turns.answers import AnswerTurns
from ottla.controller.turns.brokers import BrokerTurns
from ottla.controller.turns.leaders import LeaderTurns
from ottla.controller.turns.reassigning import ReassignmentTurns
from ottla.controller.turns.tree_changes import TreeTurns
from ottla.coordination.interface import EventType, WatchEvent
from ottla.coordination.znodes import TOPICS

#: What is looked at beside brokers and topics, in this order where several are due at once.
_OTHERS: Final = ("deletions", "reassignments", "elections", "isr_changes", "log_dir_events", "config_changes")

Turn = Callable[[], Awaitable[None]]


class TreeWatcher:
    def __init__(
        self,
        brokers: BrokerTurns,
        tree: TreeTurns,
        leaders: LeaderTurns,
        reassignments: ReassignmentTurns,
        answers: AnswerTurns,
        add: Callable[[Turn], bool],
        run: Callable[[Turn], Awaitable[None]],
        try_again_later: Callable[[], None],
    ) -> None:
        """`add` puts an event into the queue, and says whether it could; `run` has a turn; what fails comes again."""
        self._brokers = brokers
        self._tree = tree
        self._leaders = leaders
        self._reassignments = reassignments
        self._answers = answers
        self._add = add
        self._run = run
        self._try_again_later = try_again_later
        #: Parts whose look stands in the queue.
        self._due: set[str] = set()
        #: Parts whose look has failed.
        self._missed: set[str] = set()
        self._changed_topics: set[str] = set()
        self._looks: dict[str, Turn] = {
            "brokers": self._look_at_brokers,
            "topics": self._look_at_topics,
            "assignments": self._look_at_assignments,
            "deletions": self._look_at_deletions,
            "reassignments": self._look_at_reassignments,
            "elections": self._look_at_elections,
            "isr_changes": self._look_at_isr_changes,
            "log_dir_events": self._look_at_log_dir_events,
            "config_changes": self._look_at_config_changes,
        }
        brokers.broker_watch = self._on_brokers
        brokers.topic_watch = self._on_topics

    def begin(self) -> None:
        """Brokers and topics were read with their watches; the others are looked at for the first time."""
        for part in _OTHERS:
            self._look_later(part)

    def try_again(self) -> None:
        missed, self._missed = self._missed, set()
        for part in sorted(missed):
            self._look_later(part)

    # Watches. Each is the same object every time, so that none is left twice.

    def _on_brokers(self, _: WatchEvent) -> None:
        self._look_later("brokers")

    def _on_topics(self, event: WatchEvent) -> None:
        if event.path == TOPICS:
            self._look_later("topics")
        elif event.type is EventType.NODE_DELETED:
            # Where it was made again since, it is another topic.
            self._tree.watched.discard(event.path.rpartition("/")[2])
            self._look_later("topics")
        else:
            self._changed_topics.add(event.path.rpartition("/")[2])
            self._look_later("assignments")

    def _on_deletions(self, _: WatchEvent) -> None:
        self._look_later("deletions")

    def _on_reassignments(self, _: WatchEvent) -> None:
        self._look_later("reassignments")

    def _on_elections(self, _: WatchEvent) -> None:
        self._look_later("elections")

    def _on_isr_changes(self, _: WatchEvent) -> None:
        self._look_later("isr_changes")

    def _on_log_dir_events(self, _: WatchEvent) -> None:
        self._look_later("log_dir_events")

    def _on_config_changes(self, _: WatchEvent) -> None:
        self._look_later("config_changes")

    # Looks.

    def _look_later(self, part: str) -> None:
        if part not in self._due:
            if self._add(lambda: self._look(part)):
                self._due.add(part)
            else:
                self._not_seen_to(part)

    async def _look(self, part: str) -> None:
        self._due.discard(part)
        try:
            await self._run(self._looks[part])
        except Refusal as refusal:
            log.warning("changes in the tree were not seen to", part=part, fault=refusal.message)
            self._not_seen_to(part)
        except BaseException:
            # Cancelled in its middle: its watch may not be left, and nothing else would look there again.
            self._not_seen_to(part)
            raise

    def _not_seen_to(self, part: str) -> None:
        self._missed.add(part)
        self._try_again_later()

    async def _look_at_brokers(self) -> None:
        await self._brokers.brokers_changed()

    async def _look_at_topics(self) -> None:
        await self._tree.topics(self._on_topics, self._on_topics)
        await self._reassignments.tidy()

    async def _look_at_assignments(self) -> None:
        names, self._changed_topics = self._changed_topics, set()
        try:
            await self._tree.assignments(sorted(names), self._on_topics)
        except BaseException:
            self._changed_topics |= names
            raise

    async def _look_at_deletions(self) -> None:
        await self._tree.deletions(self._on_deletions)
        await self._reassignments.tidy()

    async def _look_at_reassignments(self) -> None:
        await self._reassignments.found(self._on_reassignments)

    async def _look_at_elections(self) -> None:
        await self._leaders.found(self._on_elections)

    async def _look_at_isr_changes(self) -> None:
        if await self._tree.isr_changes(self._on_isr_changes):
            self._look_later("isr_changes")

    async def _look_at_log_dir_events(self) -> None:
        if await self._tree.log_dir_events(self._on_log_dir_events):
            self._look_later("log_dir_events")

    async def _look_at_config_changes(self) -> None:
        if await self._tree.config_changes(self._on_config_changes):
            await self._answers.elect_leaderless()
