"""Commits: how far the group has come, written down by the coordinator, as long as it takes this member for one.

All go over one connection in the order in which they were asked for. What a commit was refused for becomes an error
that says what to do; what passes by itself is asked again until the time is up. Others may have been sent meanwhile:
what one that was asked for later has committed is not undone, and counts as committed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from typing import Final

from ottla.client.admin.group_results import CommittedOffset
from ottla.client.consuming.group.membership import POLLED_TOO_LATE, Membership
from ottla.client.consuming.group.wire import NO_GENERATION
from ottla.client.errors import (
    BadAnswer,
    ClientClosed,
    CommitFailed,
    KafkaError,
    RebalanceInProgress,
    RequestTimedOut,
    TooManyCommits,
    error_of,
    settled,
)
from ottla.client.settings import ConsumerSettings
from ottla.client.wire.backoff import Backoff
from ottla.client.wire.cluster import Cluster
from ottla.client.wire.coordinator import Coordinator
from ottla.model import NO_EPOCH, ZERO_TOPIC_ID, ErrorCode, TopicPartition
from ottla.protocol.apis import ApiKey
from ottla.protocol.generated.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)

Offsets = Mapping[TopicPartition, CommittedOffset]
#: Called with what became of a commit: the offsets, and what they failed with.
OnCommitted = Callable[[Offsets, KafkaError | None], object]

#: Topics are named by their ids from this version on.
_BY_ID: Final = 10
_STATIC_SINCE: Final = 7
_EPOCHS_SINCE: Final = 6
#: Commits that wait for their answers; beyond it `commit_async` is refused.
PENDING_MAX: Final = 10_000

_TOO_LATE: Final = (
    "the offsets were not committed: more than max.poll.interval.ms ({interval} ms) passed between two polls, so this "
    "member was taken for hanging, left the group, and its partitions went to other members. Most likely the records "
    "of one poll take too long to process: raise max.poll.interval.ms, or lower max.poll.records ({records}) so that "
    "a poll brings less. The next poll joins the group again; what was not committed is read again"
)
_REBALANCED: Final = (
    "the offsets were not committed: the group has rebalanced without this member, and its partitions may belong to "
    "others now ({reason}). If that is because its records take too long to process, raise max.poll.interval.ms "
    "({interval} ms) or lower max.poll.records ({records}). The next poll joins the group again"
)
_GONE: Final[frozenset[int]] = frozenset({ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.UNKNOWN_TOPIC_ID})
_FENCED: Final = frozenset({ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.ILLEGAL_GENERATION})


class _Asked:
    """A commit, from the call until it is settled."""

    __slots__ = ("answered", "generation", "number", "offsets")

    def __init__(self, number: int, offsets: Offsets, generation: int) -> None:
        #: Rises with each that is asked for.
        self.number = number
        self.offsets = offsets
        #: In which it was asked for.
        self.generation = generation
        #: Set when the attempt that is written, if one is, has come to something.
        self.answered = asyncio.Event()


class Commits:
    def __init__(
        self,
        settings: ConsumerSettings,
        cluster: Cluster,
        coordinator: Coordinator,
        membership: Membership,
        backoff: Backoff,
        on_refused: Callable[[KafkaError], None],
        join_ends: Callable[[], bool],
        subscribed: Callable[[], bool],
        holds: Callable[[Iterable[TopicPartition]], bool],
    ) -> None:
        self._settings = settings
        self._cluster = cluster
        self._coordinator = coordinator
        self._membership = membership
        self._backoff = backoff
        #: Called with the fault that ends the membership.
        self._on_refused = on_refused
        #: Whether this member is joining, and that comes to an end.
        self._join_ends = join_ends
        #: Whether the consumer takes part in its group; otherwise it only leaves its offsets there.
        self._subscribed = subscribed
        #: Whether all of these are this member's. The coordinator knows generations, not who has what: a commit from
        #: before a rebalance that is tried again behind it could undo the next owner's.
        self._holds = holds
        #: Held from the choice of a connection until the request is written: that is what keeps the order.
        self._turn = asyncio.Lock()
        self._pending: set[asyncio.Task[None]] = set()
        #: Numbers of the last that was asked for, and of the newest that was ever written.
        self._last_number = 0
        self._newest_sent = 0
        #: Written, and not answered yet.
        self._unanswered: set[_Asked] = set()
        #: By partition, the number of the last one that is committed: as many as were ever this consumer's.
        self._committed: dict[TopicPartition, int] = {}

    # What callers use

    async def commit(self, offsets: Offsets, timeout_ms: float | None = None, *, pass_over_gone: bool = False) -> None:
        """Until they are committed; those that were handed to `later` before are settled first.

        A topic that is not there may come to be known to the broker yet, and is waited for, unless it is passed over.
        """
        if not offsets:
            return
        timeout = (self._settings.default_api_timeout_ms if timeout_ms is None else timeout_ms) / 1000
        last: KafkaError | None = None
        failures = 0
        asked = self._ask(offsets)
        try:
            async with asyncio.timeout(timeout):
                if self._pending:
                    await asyncio.wait(set(self._pending))
                while True:
                    try:
                        await self._attempt(asked, _GONE if pass_over_gone else frozenset())
                    except KafkaError as error:
                        if not self._passes(error):
                            raise
                        last = error
                    else:
                        return
                    failures += 1
                    await asyncio.sleep(self._backoff.pause_ms(failures) / 1000)
        except TimeoutError:
            raise last or RequestTimedOut(f"the commit was not answered within {timeout} s") from None

    def later(self, offsets: Offsets, then: OnCommitted | None = None) -> None:
        """Commits once, in the background; `then` hears what became of it."""
        if len(self._pending) >= PENDING_MAX:
            raise TooManyCommits(f"{PENDING_MAX} commits are unanswered: wait for some of them first")
        task = asyncio.get_running_loop().create_task(self._once(self._ask(dict(offsets)), then))
        self._pending.add(task)
        task.add_done_callback(self._pending.discard)
        if then is not None:
            call = then

            def ended(done: asyncio.Task[None]) -> None:
                if done.cancelled():  # by `close`: nobody knows whether the coordinator has heard of it
                    _told(call, offsets, ClientClosed("the consumer was closed before the commit was answered"))

            task.add_done_callback(ended)

    async def settle(self) -> None:
        """Until nothing that was handed to `later` is unanswered."""
        while self._pending:
            await asyncio.wait(set(self._pending))

    async def close(self) -> None:
        tasks = list(self._pending)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _ask(self, offsets: Offsets) -> _Asked:
        self._last_number += 1
        return _Asked(self._last_number, offsets, self._membership.generation)

    async def _once(self, asked: _Asked, then: OnCommitted | None) -> None:
        failed: KafkaError | None = None
        try:
            if asked.offsets:
                await self._attempt(asked)
        except KafkaError as error:
            failed = error
        if then is not None:
            _told(then, asked.offsets, failed)

    def _passes(self, error: KafkaError) -> bool:
        """Whether to try again. While this member itself is joining, the end of that is waited for."""
        if isinstance(error, RebalanceInProgress):
            return self._join_ends()
        return error.retriable

    # One attempt

    async def _attempt(self, asked: _Asked, passed_over: frozenset[int] = frozenset()) -> None:
        """Raises the only partition's error, or SomeFailed, or what kept all of it from being committed."""
        membership = self._membership
        try:
            async with self._turn:
                # Nothing newer is sent from here until the request is written.
                offsets = await self._left_to_commit(asked)
                if not offsets:
                    return
                connection = await self._coordinator.connection()
                generation = membership.generation
                if self._subscribed() and (
                    generation == NO_GENERATION or (generation != asked.generation and not self._holds(offsets))
                ):
                    raise self.not_committed()
                request, version = self._request(offsets, connection.version(ApiKey.OFFSET_COMMIT))
                if membership.instance_id is not None and generation != NO_GENERATION:
                    connection.version(ApiKey.OFFSET_COMMIT, at_least=_STATIC_SINCE)
                await connection.room(self._settings.request_timeout_ms)
                future = connection.send(request, OffsetCommitResponse, version, self._settings.request_timeout_ms)
                self._newest_sent = max(self._newest_sent, asked.number)
                self._unanswered.add(asked)
                asked.answered.clear()
            answer = await future
            done, errors = self._read(answer, request, version, offsets, passed_over)
            self._committed |= {tp: max(asked.number, self._committed.get(tp, 0)) for tp in done}
        except KafkaError as error:
            self._coordinator.blame(error)
            raise
        finally:
            self._unanswered.discard(asked)
            asked.answered.set()
        for refused in errors.values():
            self._look_at(refused, generation)
        settled(done | dict.fromkeys(asked.offsets.keys() - offsets.keys()), errors)

    async def _left_to_commit(self, asked: _Asked) -> Offsets:
        """Without partitions of which something newer is committed. Of what is under way that is waited for: if it is
        refused, this one is the last."""
        offsets = asked.offsets
        if asked.number > self._newest_sent:
            return offsets
        for newer in [each for each in self._unanswered if each.number > asked.number]:
            if not offsets.keys().isdisjoint(newer.offsets):
                await newer.answered.wait()
        committed = self._committed
        return {tp: offset for tp, offset in offsets.items() if committed.get(tp, 0) <= asked.number}

    def _read(
        self,
        answer: OffsetCommitResponse,
        request: OffsetCommitRequest,
        version: int,
        offsets: Offsets,
        passed_over: frozenset[int],
    ) -> tuple[dict[TopicPartition, None], dict[TopicPartition, KafkaError]]:
        """What is committed, and what is not."""
        group = self._membership.group_id
        names = {bytes(topic.topic_id): topic.name for topic in request.topics} if version >= _BY_ID else {}
        errors: dict[TopicPartition, KafkaError] = {
            tp: BadAnswer(f"group {group}: the coordinator said nothing about {tp}") for tp in offsets
        }
        done: dict[TopicPartition, None] = {}
        for topic in answer.topics:
            name = names.get(bytes(topic.topic_id), "") if version >= _BY_ID else topic.name
            for one in topic.partitions:
                tp = TopicPartition(name, one.partition_index)
                if errors.pop(tp, None) is None:
                    continue
                if one.error_code and one.error_code not in passed_over:
                    errors[tp] = error_of(one.error_code, about=str(tp))
                else:
                    done[tp] = None
        return done, errors

    def _request(self, offsets: Offsets, newest: int) -> tuple[OffsetCommitRequest, int]:
        membership = self._membership
        topics = self._cluster.metadata.topics
        by_name: dict[str, OffsetCommitRequestTopic] = {}
        version = newest
        for tp in offsets:
            known = topics.get(tp.topic)
            if known is None or known.topic_id == ZERO_TOPIC_ID:
                version = min(version, _BY_ID - 1)
        for tp, committed in offsets.items():
            topic = by_name.get(tp.topic)
            if topic is None:
                topic = by_name[tp.topic] = OffsetCommitRequestTopic(name=tp.topic)
                if version >= _BY_ID:
                    topic.topic_id = topics[tp.topic].topic_id
            topic.partitions.append(
                OffsetCommitRequestPartition(
                    partition_index=tp.partition,
                    committed_offset=committed.offset,
                    committed_leader_epoch=committed.leader_epoch if version >= _EPOCHS_SINCE else NO_EPOCH,
                    committed_metadata=committed.metadata,
                )
            )
        request = OffsetCommitRequest(group_id=membership.group_id, topics=list(by_name.values()))
        if self._subscribed():
            request.generation_id_or_member_epoch = membership.generation
            request.member_id = membership.member_id
            request.group_instance_id = membership.instance_id if version >= _STATIC_SINCE else None
        return request, version

    def _look_at(self, error: KafkaError, generation: int) -> None:
        """Errors that are about the member, not about a partition, speak for the whole commit."""
        membership = self._membership
        code = error.code
        if code in _FENCED:
            if not self._subscribed():
                raise CommitFailed(
                    f"the offsets were not committed: group {membership.group_id} has members, and this consumer, "
                    "whose partitions were assigned by hand, is none of them",
                    code=code,
                )
            # The answer to a JoinGroup may be on its way, with the next generation: that will say which member is out.
            if membership.is_joining or membership.generation not in {generation, NO_GENERATION}:
                raise RebalanceInProgress(
                    f"group {membership.group_id} has rebalanced during the commit: poll, then commit again"
                )
            if generation == membership.generation:
                self._on_refused(error)
            raise self.not_committed()
        if code is ErrorCode.REBALANCE_IN_PROGRESS:
            if not membership.is_joining:
                membership.want("a commit was answered that the group is rebalancing")
            raise RebalanceInProgress(f"group {membership.group_id} is rebalancing: poll, then commit again")
        if code is ErrorCode.FENCED_INSTANCE_ID:
            if self._subscribed():
                self._on_refused(error)
            raise error
        if code in {ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.REQUEST_TIMED_OUT}:
            self._coordinator.blame(error)
            raise error
        if code is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS or code is ErrorCode.GROUP_AUTHORIZATION_FAILED:
            raise error

    def not_committed(self) -> CommitFailed:
        """Why a member that is out cannot commit, and what to do about it."""
        because = self._membership.gone_because
        known = {"interval": self._settings.max_poll_interval_ms, "records": self._settings.max_poll_records}
        if because == POLLED_TOO_LATE:
            return CommitFailed(_TOO_LATE.format(**known))
        if because is None and self._membership.generation == NO_GENERATION:
            return CommitFailed(
                "the offsets were not committed: this consumer is no member of its group yet; poll first"
            )
        return CommitFailed(_REBALANCED.format(reason=because or "some were given to others", **known))


def _told(call: OnCommitted, offsets: Offsets, error: KafkaError | None) -> None:
    """A caller's mistake is not the commit's end."""
    try:
        call(offsets, error)
    except Exception as raised:
        context = {"message": "a call-back of commit_async raised", "exception": raised}
        asyncio.get_running_loop().call_exception_handler(context)
