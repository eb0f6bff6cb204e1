"""A consumer in its group: leads it through a rebalance, and keeps apart what may happen at any time and what may not.

A rebalance runs as a task: look the topics up, let go of partitions, join, take partitions over. It waits for brokers
in the background, however short the caller's polls are. But what the caller would notice (a call-back, a partition that
comes or goes) must not happen while it works on what it polled: for each such step the task waits until somebody
polls, and the poll does it (`poll_steps.py`).

Eager: lets go of everything before it joins. Cooperative (all assignors must be): keeps everything, lets go of what the
assignment lacks, and joins once more so that others can have it.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from typing import Final

from ottla.client.consuming.group.assignors.chosen import chosen_assignors
from ottla.client.consuming.group.auto_commit import AutoCommit
from ottla.client.consuming.group.commits import Commits
from ottla.client.consuming.group.heartbeats import Heartbeats
from ottla.client.consuming.group.joining import JoinConversation, JoinResult
from ottla.client.consuming.group.leading import Leading
from ottla.client.consuming.group.leaving import leave
from ottla.client.consuming.group.listener import ASSIGNED, LOST, REVOKED, call_listener
from ottla.client.consuming.group.membership import (
    NO_MEMBER,
    POLLED_TOO_LATE,
    GroupMetadata,
    Membership,
    MembershipState,
)
from ottla.client.consuming.group.placing import Placing
from ottla.client.consuming.group.poll_steps import PollSteps
from ottla.client.consuming.group.poll_watch import PollWatch
from ottla.client.consuming.group.subscribed import SubscribedTopics
from ottla.client.consuming.group.wire import NO_GENERATION
from ottla.client.consuming.reading import RecordReading
from ottla.client.consuming.resets import Resets
from ottla.client.errors import AssignorFailed, FencedInstanceId, KafkaError
from ottla.client.settings import ConsumerSettings
from ottla.client.wire.backoff import Backoff
from ottla.client.wire.cluster import Cluster
from ottla.client.wire.coordinator import Coordinator
from ottla.logs import logger
from ottla.model import ErrorCode, TopicPartition

_LOG = logger("client")

#: How long a commit may hold up partitions that are to be given up, or the consumer's end.
_LAST_COMMIT_MS_MAX: Final = 30_000


class GroupMember:
    def __init__(
        self,
        settings: ConsumerSettings,
        cluster: Cluster,
        reading: RecordReading,
        resets: Resets,
        on_news: Callable[[], None],
        wake: Callable[[], None],
    ) -> None:
        assert settings.group_id is not None
        self._settings = settings
        self._cluster = cluster
        self._reading = reading
        #: Ends a poll's wait.
        self._on_news = on_news
        #: Has the fetcher look at what is assigned.
        self._wake = wake
        backoff = Backoff(settings.retry_backoff_ms, settings.retry_backoff_max_ms, cluster.world.entropy)
        assignors = chosen_assignors(settings.partition_assignment_strategy)
        self._cooperative = all(assignor.cooperative for assignor in assignors)
        self._membership = Membership(settings.group_id, settings.group_instance_id)
        self.coordinator = Coordinator(cluster, settings.group_id)
        self._subscribed = SubscribedTopics(settings, cluster, backoff, self._matches_others)
        self._leading = Leading(cluster, settings.group_id, self._want_topics)
        self._heartbeats = Heartbeats(
            settings, self.coordinator, self._membership, backoff, self._refused, self._on_news
        )
        self._joining = JoinConversation(
            settings, self.coordinator, self._membership, assignors, self._leading, self._heartbeats, backoff
        )
        self.commits = Commits(
            settings,
            cluster,
            self.coordinator,
            self._membership,
            backoff,
            self._refused,
            self._join_ends,
            lambda: self.subscribed,
            lambda partitions: all(tp in reading.assigned for tp in partitions),
        )
        self.placing = Placing(settings, cluster, self.coordinator, backoff, resets, reading, self._placed)
        self.auto_commit = AutoCommit(settings, self.commits, reading, self._may_commit)
        self.watch = PollWatch(settings.max_poll_interval_ms, self._hangs)
        self._listener: object = None
        #: Topics whose metadata is kept for the group.
        self._wanted: frozenset[str] = frozenset()
        self._rebalancing: asyncio.Task[None] | None = None
        self._steps = PollSteps(on_news)
        self._leaving: set[asyncio.Task[None]] = set()
        #: Raised by every poll.
        self._fatal: KafkaError | None = None
        cluster.on_change.append(self._cluster_changed)

    # What is subscribed to

    @property
    def subscribed(self) -> bool:
        return self._subscribed.active

    def subscription(self) -> frozenset[str]:
        return self._subscribed.topics

    def subscribe(self, topics: Iterable[str], listener: object) -> None:
        self._subscribed.choose(topics)
        self._reading.want(self._subscribed.topics.__contains__)
        self._cluster.auto_create = self._settings.allow_auto_create_topics
        self._listener = listener
        self._membership.want("the subscription changed" if self._membership.member_id else "")
        self._on_news()

    def subscribe_pattern(self, pattern: str | re.Pattern[str], listener: object) -> None:
        self._subscribed.match(pattern)
        self._reading.want(re.compile(pattern).fullmatch)
        self._cluster.auto_create = False  # a topic that matched and was deleted must not come back for having matched
        self._listener = listener
        self._membership.want("the subscription changed" if self._membership.member_id else "")
        self._on_news()

    def metadata(self) -> GroupMetadata:
        return self._membership.identity

    @property
    def is_member(self) -> bool:
        return self._membership.is_member

    @property
    def _last_commit_ms_max(self) -> int:
        return min(_LAST_COMMIT_MS_MAX, self._settings.default_api_timeout_ms)

    def stand_alone(self) -> None:
        self._membership.stand_alone()

    # What a poll does for the group

    def due(self, now: float) -> bool:
        """Whether there is anything to attend to. Cheap, and may be called from another thread."""
        return self._steps.due or self._fatal is not None or self.auto_commit.due(now) or self._is_to_join

    @property
    def _is_to_join(self) -> bool:
        return self._membership.rejoin is not None and self._rebalancing is None and self.subscribed

    def goes_on(self) -> bool:
        """The caller takes the next record of what it has: a sign of life. False where it must attend first."""
        now = self.watch.touch()
        return not self.due(now)

    async def attend(self) -> None:
        """At the beginning of a poll: what a rebalance waits for, what went wrong, commits. Waits for no broker."""
        await self._steps.finish()
        self._steps.raise_fault()
        if self._is_to_join and self._fatal is None:
            self.watch.start()
            self._rebalancing = asyncio.get_running_loop().create_task(self._rebalance())
            self._rebalancing.add_done_callback(self._rebalanced)
        if self.subscribed and not self.is_member:
            self._reading.hold(self._reading.assigned)  # others may have them: `on_lost` is called a poll later
        await self._steps.run()
        if self._fatal is not None:
            if self._reading.assigned:
                await self._steps.perform(lambda: self._let_go(list(self._reading.assigned)))
            raise self._fatal
        self.auto_commit.look()

    # The rebalance

    async def _rebalance(self) -> None:
        topics = await self._subscribed.known()
        self._want_topics()
        await self._let_go_before_joining(topics)
        owned = list(self._reading.assigned)
        joined = await self._joining.join(self.subscription, owned)
        if joined is not None:
            await self._take_over(joined)

    def _rebalanced(self, task: asyncio.Task[None]) -> None:
        if self._rebalancing is task:
            self._rebalancing = None
        error = None if task.cancelled() else task.exception()
        if isinstance(error, FencedInstanceId):
            self._refused(error)
        elif isinstance(error, AssignorFailed):
            # A member that cannot lead must not keep the others waiting.
            self._leave_soon("its assignor failed")
            self._put_out("its assignor failed", forget_member=True)
            self._steps.fault = error
        elif isinstance(error, Exception):
            self._membership.want("joining failed")
            self._steps.fault = error
        self._on_news()

    async def _let_go_before_joining(self, topics: frozenset[str]) -> None:
        owned = list(self._reading.assigned)
        if self._cooperative and self._membership.generation != NO_GENERATION:
            owned = [tp for tp in owned if tp.topic not in topics]
        await self._give_up(owned)

    async def _give_up(self, partitions: Sequence[TopicPartition]) -> None:
        """Commits how far they were read and calls the listener: these partitions go."""
        if not partitions:
            return

        async def hold() -> None:
            self._reading.hold(partitions)

        if self.auto_commit.enabled and self._membership.generation != NO_GENERATION:
            await self._steps.in_poll(hold)
            await self._commit_last(partitions)
        await self._steps.in_poll(lambda: self._let_go(partitions))

    async def _commit_last(self, partitions: Iterable[TopicPartition]) -> None:
        """A commit that fails is a pity, not a reason to keep the partitions: some records are read twice.

        Those that nobody waits for are settled within its time.
        """
        positions = self._reading.positions(partitions)
        try:
            await self.commits.commit(positions, self._last_commit_ms_max, pass_over_gone=True)
        except KafkaError as error:
            _LOG.warning("offsets were not committed", group=self._settings.group_id, error=error)

    async def _let_go(self, partitions: Sequence[TopicPartition]) -> None:
        self._reading.hold(partitions)
        what = LOST if self._membership.generation == NO_GENERATION else REVOKED
        try:
            await call_listener(self._listener, what, partitions)
        finally:
            self._reading.drop(partitions)

    async def _take_over(self, joined: JoinResult) -> None:
        topics = self._subscribed.topics
        mine = [tp for tp in joined.assignment.partitions if tp.topic in topics]
        keeps = set(mine)
        taken = [tp for tp in self._reading.assigned if tp not in keeps]
        if taken:
            await self._give_up(taken)
            self._membership.want("partitions were given up for others")

        async def apply() -> None:
            if self._membership.generation != joined.generation:
                return  # was put out meanwhile: the next rebalance says what is lost
            new = self._reading.replace(mine, self.placing.fresh)
            self._want_topics()
            self.auto_commit.begin()
            # Both may be the caller's own code: what one raises keeps neither the other nor the records away.
            try:
                joined.assignor.assigned(joined.assignment, joined.generation)
            finally:
                try:
                    await call_listener(self._listener, ASSIGNED, new)
                finally:
                    self._wake()

        await self._steps.in_poll(apply)

    # What may happen at any time

    def _join_ends(self) -> bool:
        """Whether a join is under way that has an end. One that was called off has none, unless only its answer is
        missed: the leader shares the partitions out, and the group goes on with this member in it."""
        membership = self._membership
        is_shared_out = membership.state is MembershipState.SYNCING and not membership.is_leader
        return membership.is_joining and (self._rebalancing is not None or is_shared_out)

    def _may_commit(self) -> bool:
        membership = self._membership
        return not self.subscribed or (membership.generation != NO_GENERATION and not membership.is_joining)

    def _matches_others(self) -> None:
        self._want_topics()
        self._membership.want("the pattern matches other topics")
        self._on_news()

    def _placed(self) -> None:
        self._on_news()
        self._wake()

    def _want_topics(self) -> None:
        wanted = self._subscribed.topics | self._leading.topics
        self._cluster.forget(self._wanted - wanted)
        self._cluster.want(wanted)
        self._wanted = wanted
        metadata = self._cluster.metadata
        if any(topic not in metadata.topics and topic not in metadata.errors for topic in wanted):
            self._cluster.request_update()

    def _cluster_changed(self) -> None:
        if not self.subscribed:
            return
        fault = self._subscribed.look()
        if fault is not None:
            self._steps.fault = fault
        if self._membership.is_leader and self._leading.changed():
            self._membership.want("topics of the group have other partitions")
        self._on_news()

    def _refused(self, error: KafkaError) -> None:
        """The coordinator does not take this consumer for a member any more."""
        if error.code in {ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.ILLEGAL_GENERATION}:
            self._put_out(
                "the coordinator has put this member out", forget_member=error.code is ErrorCode.UNKNOWN_MEMBER_ID
            )
        else:
            self._stop_rebalancing()
            self._put_out("the coordinator has refused this member", forget_member=True)
            if error.code is ErrorCode.FENCED_INSTANCE_ID:
                self._fatal = error
            else:
                self._steps.fault = error
        self._on_news()

    def _hangs(self) -> None:
        if not self.subscribed:
            return
        if self._membership.member_id == NO_MEMBER:
            self.watch.start()  # it may become a member yet, with nobody there who polls
            return
        _LOG.warning(
            "nobody has polled for longer than max.poll.interval.ms: this member leaves its group. If the records of "
            "one poll take that long, raise that interval, or lower max.poll.records",
            group=self._settings.group_id,
            member=self._membership.member_id,
            max_poll_interval_ms=self._settings.max_poll_interval_ms,
        )
        self._stop_rebalancing()
        self._leave_soon(POLLED_TOO_LATE)
        self._put_out(POLLED_TOO_LATE, forget_member=self._membership.instance_id is None)

    def _put_out(self, reason: str, *, forget_member: bool) -> None:
        self._heartbeats.stop()
        self._leading.end()
        self._membership.out(reason, forget_member=forget_member)

    def _leave_soon(self, reason: str) -> None:
        """Static members stay: that they come back as the same is what they are for."""
        membership = self._membership
        if membership.instance_id is None and membership.member_id != NO_MEMBER:
            task = asyncio.get_running_loop().create_task(
                leave(self._settings, self.coordinator, membership.member_id, reason)
            )
            self._leaving.add(task)
            task.add_done_callback(self._leaving.discard)

    def _stop_rebalancing(self) -> None:
        if self._rebalancing is not None:
            self._rebalancing.cancel()
            self._rebalancing = None
        self._steps.forget()

    # The end

    async def end(self, reason: str, *, commit: bool = True) -> None:
        """Unsubscribes and leaves. What the listener raises is raised when all is done."""
        self._stop_rebalancing()
        self.watch.stop()
        try:
            await self._steps.finish(within=True)
            if commit and self.auto_commit.enabled and self._reading.assigned and self._may_commit_last():
                self._reading.hold(self._reading.assigned)
                await self._commit_last(self._reading.assigned)
            elif commit:
                await self._settle_commits()
            owned = list(self._reading.assigned)
            if self.subscribed and owned:
                await self._steps.perform(lambda: self._let_go(owned))
        except asyncio.CancelledError:
            self._go_on()
            raise
        if self.subscribed:
            self._leave_soon(reason)
            self._heartbeats.stop()
            self._leading.end()
            self._subscribed.end()
            self._cluster.auto_create = self._settings.allow_auto_create_topics
            self._membership.left()
            self._want_topics()
            self._fatal = None
        if self._leaving:
            await asyncio.wait(set(self._leaving))
        self._steps.raise_fault()

    def _go_on(self) -> None:
        """Its end was cancelled before it left: the next poll reads on, as a member if it was one. What the call-back
        under way lets go of comes back with the rebalance."""
        for one in self._reading.assigned.values():
            one.held = False
        if self.subscribed:
            self.watch.start()
            self._membership.want("its end was cancelled")

    async def _settle_commits(self) -> None:
        """Those that nobody waits for: behind the end they would be refused, or given up."""
        with suppress(TimeoutError):
            async with asyncio.timeout(self._last_commit_ms_max / 1000):
                await self.commits.settle()

    def _may_commit_last(self) -> bool:
        return not self.subscribed or self._membership.generation != NO_GENERATION

    async def close(self) -> None:
        """Stops what still runs; `end` comes before it."""
        self._stop_rebalancing()
        self.watch.stop()
        self._heartbeats.stop()
        self._subscribed.end()
        await self.placing.close()
        await self.commits.close()
        await self.coordinator.close()
