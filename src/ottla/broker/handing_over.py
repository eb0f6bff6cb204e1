"""What a leader does whose disk is full while others that are in sync may have room: it lets one of them lead.

    leads ──an append finds no room──▶ the controller hears of it ──▶ another leads ──a while later──▶ follows it
                                            └── it cannot hear: leads on, and refuses what it has no room for

To the controller it is a replica that has failed, and is back a moment later: it leaves the in-sync set, the next one
is elected, and it comes back into the set when it has room for what it lacks. So nobody leads who cannot write, unless
nobody else is in sync, or all others are full too: then reads go on here, and writes when there is room.
"""

from __future__ import annotations

import asyncio
from typing import Final

from ottla import logs
from ottla.controller.interface import Controller
from ottla.metadata import MetadataCache
from ottla.model import BrokerId, ErrorCode, TopicPartition
from ottla.ports import Clock
from ottla.replication.leader import Leader
from ottla.replication.replicas import Replicas
from ottla.replication.roles import ReplicaOwner
from ottla.steps import Steps, pieces

log_event = logs.logger("replication")

#: What is refused meanwhile goes with the next ones: the controller asks about all replicas of this broker each time.
_GATHERED_S: Final = 0.05
#: By then another one leads, or nobody can: the controller has heard of it, or is away.
_DECIDED_S: Final = 2.0
#: Where nothing was written here since the last time, the other disks may be as full: leaders would go round and round.
_AGAIN_MS: Final = 60_000
#: Each change of role takes some ten microseconds.
_PARTITIONS_A_STEP: Final = 4


class HandingOver:
    def __init__(
        self,
        broker_id: BrokerId,
        replicas: Replicas,
        controller: Controller,
        reports: ReplicaOwner,
        metadata: MetadataCache,
        clock: Clock,
    ) -> None:
        self._broker_id = broker_id
        self._replicas = replicas
        self._controller = controller
        self._reports = reports
        self._metadata = metadata
        self._clock = clock
        #: Of which an append has found no room.
        self._wanted: dict[TopicPartition, None] = {}
        #: When and where their logs ended, by the monotonic clock, as far as that is not long ago.
        self._gave_way: dict[TopicPartition, tuple[int, int]] = {}
        self._task: asyncio.Task[None] | None = None
        self._closed = False

    def found_no_room(self, leader: Leader) -> None:
        """In the midst of a round, whose requests are answered as they are."""
        if len(leader.isr.members) > 1 and leader.tp not in self._replicas.giving_way and not self._closed:
            self._wanted[leader.tp] = None
            if self._task is None:
                self._task = asyncio.ensure_future(self._run())

    def close(self) -> None:
        self._closed = True
        if self._task is not None:
            self._task.cancel()

    async def _run(self) -> None:
        try:
            while self._wanted:
                await asyncio.sleep(_GATHERED_S)
                wanted, self._wanted = list(self._wanted), {}
                long_ago = self._clock.monotonic_ms() - _AGAIN_MS
                self._gave_way = {tp: known for tp, known in self._gave_way.items() if known[0] > long_ago}
                await self._hand_over([tp for tp in wanted if self._may_be_led_elsewhere(tp)])
        except Exception as fault:
            log_event.error("partitions that there is no room for could not be given to others", fault=repr(fault))
        finally:
            self._task = None

    def _may_be_led_elsewhere(self, tp: TopicPartition) -> bool:
        leader = self._replicas.leaders.get(tp)
        if leader is None or len(leader.isr.members) < 2:
            return False
        gave_way = self._gave_way.get(tp)
        return gave_way is None or gave_way[1] != leader.log.end_offset

    async def _hand_over(self, partitions: list[TopicPartition]) -> None:
        if not partitions:
            return
        replicas = self._replicas
        log_event.warning(
            "the disk is full: other in-sync replicas are to lead", partitions=len(partitions), first=partitions[0]
        )
        now_ms = self._clock.monotonic_ms()
        tried = {tp: (now_ms, replicas.leaders[tp].log.end_offset) for tp in partitions}
        replicas.giving_way.update(partitions)
        try:
            if await self._controller.replicas_failed(self._broker_id, partitions) is ErrorCode.NONE:
                self._gave_way |= tried
                await replicas.change_apart(self._stand_aside(partitions))
            await asyncio.sleep(_DECIDED_S)
        finally:
            replicas.giving_way.difference_update(partitions)
            # Which of them this broker follows, and which it leads after all, it hears upon this.
            self._reports.replicas_made([tp for tp in partitions if tp in replicas.leaders or tp in replicas.followers])

    def _stand_aside(self, partitions: list[TopicPartition]) -> Steps[None]:
        for piece in pieces(partitions, _PARTITIONS_A_STEP):
            for tp in piece:
                self._replicas.stand_aside(tp)
            self._metadata.derived.clear()
            self._replicas.waiters.settle_outside(self._clock.monotonic_ms())
            yield
