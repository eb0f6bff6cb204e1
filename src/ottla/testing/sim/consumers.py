"""Members of a group of the newer protocol (KIP-848): they report to their coordinator, which shares partitions out.

One request does it all: a heartbeat joins, says what the member has, and is answered with what it is to have. A
partition that is to go to another member is given up first, and the next heartbeat says so; only then may the
coordinator give it away. What each member was answered goes into an `OwnershipHistory` (`commits.py`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from random import Random
from typing import Any, Final

from ottla.model import ErrorCode, TopicPartition
from ottla.protocol.generated.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest, TopicPartitions
from ottla.protocol.generated.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from ottla.protocol.generated.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from ottla.testing.sim.commits import CommitHistory, OwnershipHistory, SentCommit
from ottla.testing.sim.history import HistoryFault
from ottla.testing.sim.members import AGAIN, GroupRefusal, coordinator_of
from ottla.testing.sim.routing import ClusterClient
from ottla.testing.sim.wire import Unreachable

#: The epochs of a member that joins, and of one that leaves.
_JOINS: Final = 0
_LEAVES: Final = -1
#: The member has lost everything, and joins anew.
_LOST: Final = frozenset({ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_MEMBER_EPOCH})
_BEAT_S: Final = 1.0
_REBALANCE_MS: Final = 3_000
#: Versions with member epochs, and names instead of topic ids.
_HEARTBEAT, _COMMIT, _OFFSETS = 1, 9, 9


class Consumer:
    """Joins, takes what it is given, commits rising positions of it, and goes on until it is cancelled."""

    def __init__(
        self,
        client: ClusterClient,
        group: str,
        topics: Sequence[str],
        commits: CommitHistory,
        ownership: OwnershipHistory,
        random: Random,
    ) -> None:
        self._client = client
        self._group = group
        self._topics = list(topics)
        self._commits = commits
        self._ownership = ownership
        self._random = random
        self._coordinator: int | None = None
        self._joined = 0
        self._id = self._new_id()
        self._epoch = _JOINS
        #: What it has, as it knows.
        self.assigned: set[TopicPartition] = set()
        #: Of that, what it has for certain, since a coordinator that nobody had replaced has said so.
        self._held: set[TopicPartition] = set()
        #: Whether the next heartbeat says everything, since an answer may be missing; and whether it says what it has.
        self._says_all = True
        self._gave_up = False
        self._position = 0

    def _new_id(self) -> str:
        """Members choose their ids themselves."""
        self._joined += 1
        return f"{self._client.name}-{self._joined}"

    async def run(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            try:
                await self._heartbeat()
                beat = loop.time()
                while True:
                    await asyncio.sleep(self._random.uniform(0.05, 0.5))
                    if self._gave_up or loop.time() - beat > _BEAT_S:
                        beat = loop.time()
                        await self._heartbeat()
                    await self._work()
            except Unreachable:
                self._coordinator, self._says_all = None, True
                await asyncio.sleep(self._random.uniform(0.05, 0.3))
            except GroupRefusal as refusal:
                self._says_all = True
                if refusal.error in AGAIN:
                    self._coordinator = None
                elif refusal.error in _LOST:
                    self._lose_all()
                elif refusal.error != ErrorCode.STALE_MEMBER_EPOCH:  # its next heartbeat says the newer one
                    raise HistoryFault(f"{self._id}: {refusal}") from refusal
                await asyncio.sleep(self._random.uniform(0.01, 0.2))

    async def _work(self) -> None:
        if not self.assigned:
            return
        tp = self._random.choice(sorted(self.assigned))
        await self._commit(tp, self._epoch)
        if self._random.random() < 0.02:
            await self._commit_late(tp)
        if self._random.random() < 0.01:
            await self._leave()

    def _lose_all(self) -> None:
        self._epoch = _JOINS
        self.assigned.clear()
        self._held.clear()

    # Heartbeats

    async def _heartbeat(self) -> None:
        asked_at = await self._as_of()
        says_all, has = self._says_all or self._epoch == _JOINS, sorted(self.assigned)
        request = ConsumerGroupHeartbeatRequest(
            group_id=self._group,
            member_id=self._id,
            member_epoch=self._epoch,
            rebalance_timeout_ms=_REBALANCE_MS if says_all else -1,
            subscribed_topic_names=self._topics if says_all else None,
            topic_partitions=self._named(has) if says_all or self._gave_up else None,
        )
        sent_at = asyncio.get_running_loop().time()
        answer = await self._ask(request, _HEARTBEAT)
        _check("heartbeat", answer.error_code)
        is_certain = asked_at >= sent_at
        if is_certain:
            for tp in has:
                if tp in self._held:
                    self._ownership.kept(self._group, tp, self._id, sent_at)
        self._says_all = self._gave_up = False
        self._epoch = answer.member_epoch
        if answer.assignment is not None:
            await self._take(answer.assignment.topic_partitions)
        self._ownership.note_answer(self._group, self._id, self._epoch, sorted(self.assigned))
        now = asyncio.get_running_loop().time()
        if is_certain and await self._as_of() >= now:
            for tp in sorted(self.assigned - self._held):
                self._ownership.given_to(self._group, tp, self._id, now)
            self._held = set(self.assigned)
        if gained := sorted(self.assigned.difference(has)):
            await self._look_back(self._random.choice(gained))

    async def _take(self, given: Sequence[TopicPartitions]) -> None:
        """What it is to have from now on; what it is to have no more it gives up at once."""
        if not all(bytes(topic.topic_id) in self._client.topic_ids.values() for topic in given):
            await self._client.refresh()
        names = {topic_id: name for name, topic_id in self._client.topic_ids.items()}
        if unknown := [topic.topic_id for topic in given if bytes(topic.topic_id) not in names]:
            raise Unreachable(f"the names of {unknown} are not known yet")
        wanted = {
            TopicPartition(names[bytes(topic.topic_id)], number) for topic in given for number in topic.partitions
        }
        self._gave_up = not self.assigned <= wanted
        self.assigned = wanted
        self._held &= wanted

    def _named(self, partitions: Sequence[TopicPartition]) -> list[TopicPartitions]:
        by_topic: dict[str, list[int]] = {}
        for tp in partitions:
            by_topic.setdefault(tp.topic, []).append(tp.partition)
        ids = self._client.topic_ids
        return [TopicPartitions(topic_id=ids[topic], partitions=numbers) for topic, numbers in by_topic.items()]

    async def _leave(self) -> None:
        """And comes back as another member."""
        request = ConsumerGroupHeartbeatRequest(group_id=self._group, member_id=self._id, member_epoch=_LEAVES)
        self._lose_all()
        self._id = self._new_id()
        _check("leave", (await self._ask(request, _HEARTBEAT)).error_code)
        await self._heartbeat()

    # Positions

    async def _look_back(self, tp: TopicPartition) -> None:
        """As a consumer does that begins with a partition: it goes on from the position that was committed last."""
        asked_at = await self._as_of()
        topics = [OffsetFetchRequestTopics(name=tp.topic, partition_indexes=[tp.partition])]
        asked = OffsetFetchRequestGroup(
            group_id=self._group, member_id=self._id, member_epoch=self._epoch, topics=topics
        )
        (answer,) = (await self._ask(OffsetFetchRequest(groups=[asked]), _OFFSETS)).groups
        _check("look back", answer.error_code)
        asked_at = min(asked_at, await self._as_of())
        self._commits.check(self._group, tp, int(answer.topics[0].partitions[0].committed_offset), asked_at)

    async def _commit_late(self, tp: TopicPartition) -> None:
        """As a request that was on its way while the member's epoch rose: good for what it has had for so long."""
        if self._epoch <= 1:
            return
        try:
            await self._commit(tp, self._epoch - 1)
        except GroupRefusal as refusal:
            if refusal.error != ErrorCode.STALE_MEMBER_EPOCH:
                raise

    async def _commit(self, tp: TopicPartition, epoch: int) -> None:
        loop = asyncio.get_running_loop()
        self._position += 1
        position = self._position * 1_000 + self._random.randrange(1_000)
        member, sent = self._id, loop.time()
        part = OffsetCommitRequestPartition(partition_index=tp.partition, committed_offset=position)
        request = OffsetCommitRequest(
            group_id=self._group,
            generation_id_or_member_epoch=epoch,
            member_id=member,
            topics=[OffsetCommitRequestTopic(name=tp.topic, partitions=[part])],
        )
        self._commits.send(self._group, tp, position)

        def note(acknowledged_at: float | None) -> None:
            self._commits.note(
                self._group, tp, SentCommit(member, epoch, position, sent, acknowledged_at, by_epoch=True)
            )

        try:
            answer = await self._ask(request, _COMMIT)
        except (Unreachable, asyncio.CancelledError):
            note(None)
            raise
        error = answer.topics[0].partitions[0].error_code
        if error == ErrorCode.NONE:
            note(loop.time())
            self._ownership.committed(self._group, tp, member, epoch)
        elif error in AGAIN:
            note(None)
        else:
            self._commits.refused(self._group, tp, position)
        _check("commit", error)

    # The coordinator

    async def _ask(self, message: Any, version: int) -> Any:
        return await self._client.broker(await self._asked()).ask(message, version)

    async def _asked(self) -> int:
        if self._coordinator is None:
            self._coordinator = await coordinator_of(self._client, self._group)
        return self._coordinator

    async def _as_of(self) -> float:
        """From when an answer is that its coordinator gives now."""
        coordinator = await self._asked()
        return self._commits.as_of(self._group, coordinator, asyncio.get_running_loop().time())


def _check(what: str, number: int) -> None:
    if number != ErrorCode.NONE:
        raise GroupRefusal(what, ErrorCode(number))
