"""Members of a group as real consumers are: they join, share partitions, commit positions, and find their coordinator.

These speak the classic protocol; `consumers.py` has those of the newer one. What they are answered is kept in a
`CommitHistory` (`commits.py`).
"""

from __future__ import annotations

import asyncio
from random import Random
from typing import Any, Final

from ottla.model import ErrorCode, TopicPartition
from ottla.protocol.generated.find_coordinator import FindCoordinatorRequest
from ottla.protocol.generated.heartbeat import HeartbeatRequest
from ottla.protocol.generated.join_group import JoinGroupRequest, JoinGroupRequestProtocol
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
from ottla.protocol.generated.sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from ottla.testing.sim.commits import CommitHistory, SentCommit
from ottla.testing.sim.history import HistoryFault
from ottla.testing.sim.routing import ClusterClient
from ottla.testing.sim.wire import Unreachable

#: The coordinator is another one, is being loaded, or could not store it: the same is asked again.
AGAIN: Final = frozenset(
    {
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.REQUEST_TIMED_OUT,
        ErrorCode.NOT_ENOUGH_REPLICAS,
        ErrorCode.LEADER_NOT_AVAILABLE,
    }
)
#: Whose coordinator is looked for.
OF_GROUPS: Final = 0
OF_TRANSACTIONS: Final = 1
#: The member is to join anew.
_REJOIN: Final = frozenset({ErrorCode.ILLEGAL_GENERATION, ErrorCode.REBALANCE_IN_PROGRESS, ErrorCode.UNKNOWN_MEMBER_ID})


class GroupRefusal(Exception):
    """The group's coordinator refused, with an error that a member acts on."""

    def __init__(self, what: str, error: ErrorCode) -> None:
        super().__init__(f"{what}: {error.name}")
        self.error = error


class Member:
    """Joins, commits rising positions of what it is given, and goes on until it is cancelled."""

    def __init__(
        self,
        client: ClusterClient,
        group: str,
        partitions: list[TopicPartition],
        history: CommitHistory,
        random: Random,
    ) -> None:
        self.name = client.name
        self._client = client
        self._group = group
        self._partitions = partitions
        self._history = history
        self._random = random
        self._coordinator: int | None = None
        self._id = ""
        self._generation = -1
        self._assigned: list[TopicPartition] = []
        self._position = 0
        self.generations = 0

    async def run(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            try:
                await self._join()
                beat = loop.time()
                while True:
                    await asyncio.sleep(self._random.uniform(0.05, 0.5))
                    if loop.time() - beat > 1.0:
                        beat = loop.time()
                        await self._heartbeat()
                    if self._assigned:
                        await self._commit(self._random.choice(self._assigned), self._generation)
                    if self._assigned and self._random.random() < 0.02:
                        await self._commit_late(self._random.choice(self._assigned))
            except Unreachable:
                self._coordinator = None
                await asyncio.sleep(self._random.uniform(0.05, 0.3))
            except GroupRefusal as refusal:
                if refusal.error in AGAIN:
                    self._coordinator = None
                elif refusal.error == ErrorCode.UNKNOWN_MEMBER_ID:
                    self._id = ""
                elif refusal.error not in _REJOIN:
                    raise HistoryFault(f"{self.name}: {refusal}") from refusal
                await asyncio.sleep(self._random.uniform(0.01, 0.2))

    async def _ask(self, message: Any, version: int) -> Any:
        if self._coordinator is None:
            self._coordinator = await coordinator_of(self._client, self._group)
        return await self._client.broker(self._coordinator).ask(message, version)

    def _check(self, what: str, number: int) -> None:
        if number != ErrorCode.NONE:
            raise GroupRefusal(what, ErrorCode(number))

    async def _join(self) -> None:
        protocol = JoinGroupRequestProtocol(name="range", metadata=b"")
        while True:
            request = JoinGroupRequest(
                group_id=self._group,
                session_timeout_ms=6_000,
                rebalance_timeout_ms=3_000,
                member_id=self._id,
                protocol_type="consumer",
                protocols=[protocol],
            )
            joined = await self._ask(request, 5)
            if joined.error_code != ErrorCode.MEMBER_ID_REQUIRED:
                break
            self._id = joined.member_id
        self._check("join", joined.error_code)
        self._id, self._generation = joined.member_id, joined.generation_id
        assignments = self._divide(joined) if joined.leader == self._id else []
        sync = SyncGroupRequest(
            group_id=self._group, generation_id=self._generation, member_id=self._id, assignments=assignments
        )
        synced = await self._ask(sync, 3)
        self._check("sync", synced.error_code)
        numbers = bytes(synced.assignment)
        self._assigned = [self._partitions[number] for number in numbers]
        await self._look_back()
        self.generations += 1
        self._history.generations += 1

    async def _look_back(self) -> None:
        """As a consumer does that begins with a partition: it goes on from the position that was committed last."""
        if not self._assigned:
            return
        tp = self._random.choice(self._assigned)
        asked_at = self._as_of()
        topics = [OffsetFetchRequestTopics(name=tp.topic, partition_indexes=[tp.partition])]
        request = OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id=self._group, topics=topics)])
        (answer,) = (await self._ask(request, 8)).groups
        self._check("look back", answer.error_code)
        asked_at = min(asked_at, self._as_of())
        self._history.check(self._group, tp, int(answer.topics[0].partitions[0].committed_offset), asked_at)

    def _as_of(self) -> float:
        """From when an answer is that its coordinator gives now."""
        now = asyncio.get_running_loop().time()
        return now if self._coordinator is None else self._history.as_of(self._group, self._coordinator, now)

    def _divide(self, joined: Any) -> list[SyncGroupRequestAssignment]:
        """A byte a partition is all that these members need to understand one another."""
        members = sorted(member.member_id for member in joined.members)
        shares: dict[str, bytearray] = {member: bytearray() for member in members}
        for number in range(len(self._partitions)):
            shares[members[number % len(members)]].append(number)
        return [SyncGroupRequestAssignment(member_id=each, assignment=bytes(shares[each])) for each in members]

    async def _heartbeat(self) -> None:
        request = HeartbeatRequest(group_id=self._group, generation_id=self._generation, member_id=self._id)
        self._check("heartbeat", (await self._ask(request, 3)).error_code)

    async def _commit_late(self, tp: TopicPartition) -> None:
        """As a request of the generation before that was on its way for long."""
        if self._generation <= 1:
            return
        try:
            await self._commit(tp, self._generation - 1)
        except GroupRefusal as refusal:
            if refusal.error != ErrorCode.ILLEGAL_GENERATION:
                raise

    async def _commit(self, tp: TopicPartition, generation: int) -> None:
        loop = asyncio.get_running_loop()
        self._position += 1
        position = self._position * 1_000 + self._random.randrange(1_000)
        sent = loop.time()
        part = OffsetCommitRequestPartition(partition_index=tp.partition, committed_offset=position)
        request = OffsetCommitRequest(
            group_id=self._group,
            generation_id_or_member_epoch=generation,
            member_id=self._id,
            topics=[OffsetCommitRequestTopic(name=tp.topic, partitions=[part])],
        )

        self._history.send(self._group, tp, position)

        def note(acknowledged_at: float | None) -> None:
            commit = SentCommit(self.name, generation, position, sent, acknowledged_at)
            self._history.note(self._group, tp, commit)

        try:
            answer = await self._ask(request, 7)
        except (Unreachable, asyncio.CancelledError):
            note(None)
            raise
        error = answer.topics[0].partitions[0].error_code
        if error == ErrorCode.NONE:
            note(loop.time())
        elif error in AGAIN:
            note(None)
        else:
            self._history.refused(self._group, tp, position)
        self._check("commit", error)


async def coordinator_of(client: ClusterClient, key: str, kind: int = OF_GROUPS) -> int:
    """Of a group, or of a transactional id. Raises Unreachable and GroupRefusal."""
    answer = await client.ask(FindCoordinatorRequest(key=key, key_type=kind), 3)
    if answer.error_code != ErrorCode.NONE:
        raise GroupRefusal("find the coordinator", ErrorCode(answer.error_code))
    await client.refresh()
    return int(answer.node_id)


async def committed(client: ClusterClient, group: str, tp: TopicPartition) -> int:
    """Raises Unreachable and GroupRefusal."""
    topics = [OffsetFetchRequestTopics(name=tp.topic, partition_indexes=[tp.partition])]
    request = OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id=group, topics=topics)])
    coordinator = await coordinator_of(client, group)
    (answer,) = (await client.broker(coordinator).ask(request, 8)).groups
    if answer.error_code != ErrorCode.NONE:
        raise GroupRefusal("fetch the offset", ErrorCode(answer.error_code))
    return int(answer.topics[0].partitions[0].committed_offset)
