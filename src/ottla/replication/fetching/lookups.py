"""Questions to a leader that are no fetches: where a leader epoch ended there, and which offsets it has.

The first is for leaders that do not say in their answers where logs part (before Fetch 12); newer ones are asked by the
fetch itself. The second is for a follower that asked for an offset which its leader does not have:

    the leader's log ends below this one     an unclean election: what goes beyond it is cut
    the leader's log begins behind this one  this one was away for long: it starts over at the leader's start
    neither                                  the leader's log has moved meanwhile: it is fetched again

They go over a connection of their own, many partitions in one request, one request at a time.
"""

from __future__ import annotations

import asyncio
import traceback
from collections.abc import Awaitable, Callable
from functools import partial
from itertools import islice
from typing import Final

from ottla import logs
from ottla.interbroker.links import LinkFault
from ottla.model import BrokerId, ErrorCode
from ottla.protocol.generated.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from ottla.protocol.generated.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from ottla.replication.fetching.asked_partitions import AskedPartitions
from ottla.replication.fetching.partition import FetchedPartition, FetchState
from ottla.replication.fetching.surroundings import Surroundings
from ottla.steps import is_stray
from ottla.storage.errors import StorageFault

log_event = logs.logger("replication")

#: Partitions of one request: some milliseconds for the two brokers.
PARTITIONS_MAX: Final = 500
LATEST: Final = -1
EARLIEST: Final = -2
#: OffsetForLeaderEpoch and ListOffsets: what is asked for needs no newer ones, and no older broker is followed.
_EPOCH_VERSIONS: Final = (2, 4)
_OFFSETS_VERSIONS: Final = (2, 7)
_OF_A_LEADER_EPOCH: Final = frozenset(
    {ErrorCode.FENCED_LEADER_EPOCH, ErrorCode.UNKNOWN_LEADER_EPOCH, ErrorCode.NOT_LEADER_OR_FOLLOWER}
)


class Lookups:
    def __init__(
        self, leader: BrokerId, partitions: AskedPartitions, around: Surroundings, on_done: Callable[[], None]
    ) -> None:
        self._leader = leader
        self._partitions = partitions
        self._around = around
        #: Called when partitions may be fetched again.
        self._on_done = on_done
        self._of_epochs: dict[FetchedPartition, None] = {}
        self._of_ranges: dict[FetchedPartition, None] = {}
        self._task: asyncio.Task[None] | None = None
        self._closed = False

    def ask_epoch(self, one: FetchedPartition) -> None:
        """Where the last leader epoch of this log ended in its leader's."""
        self._begin(one, self._of_epochs)

    def ask_range(self, one: FetchedPartition) -> None:
        """Which offsets the leader has."""
        self._begin(one, self._of_ranges)

    def _begin(self, one: FetchedPartition, line: dict[FetchedPartition, None]) -> None:
        one.state = FetchState.LOOKING_UP
        self._partitions.touch(one)
        line[one] = None
        if self._task is None and not self._closed:
            self._task = asyncio.get_running_loop().create_task(self._work())

    def forget(self, one: FetchedPartition) -> None:
        self._of_epochs.pop(one, None)
        self._of_ranges.pop(one, None)

    def close(self) -> None:
        self._closed = True
        if self._task is not None:
            self._task.cancel()

    async def _work(self) -> None:
        try:
            while self._of_epochs or self._of_ranges:
                await self._look_up(_taken(self._of_epochs), self._epochs)
                await self._look_up(_taken(self._of_ranges), self._ranges)
                self._on_done()
        finally:
            self._task = None

    async def _look_up(
        self, some: list[FetchedPartition], ask: Callable[[list[FetchedPartition]], Awaitable[None]]
    ) -> None:
        if not some:
            return
        try:
            await ask(some)
        except LinkFault as fault:
            log_event.warning_limited("a leader was not asked", key=str(self._leader), leader=self._leader, why=fault)
        except (Exception, asyncio.CancelledError) as fault:
            if isinstance(fault, asyncio.CancelledError) and not is_stray(fault):
                raise
            log_event.error(
                "what a leader was asked could not be used",
                leader=self._leader,
                error="".join(traceback.format_exception(fault)),
            )
        for one in some:
            # Of what went wrong: it is asked again.
            if self._is_awaited(one) and one not in self._of_epochs and one not in self._of_ranges:
                self._partitions.back_off(one)

    def _is_awaited(self, one: FetchedPartition) -> bool:
        return one.is_current and one.state is FetchState.LOOKING_UP and not self._closed

    # -- where a leader epoch ended

    async def _epochs(self, some: list[FetchedPartition]) -> None:
        asked: dict[tuple[str, int], tuple[FetchedPartition, int]] = {}
        topics: dict[str, OffsetForLeaderTopic] = {}
        for one in some:
            if not self._is_awaited(one):
                continue
            try:
                epoch = one.last_epoch
            except StorageFault as fault:
                self._partitions.storage_failed(one, fault)
                continue
            if epoch < 0:
                self._go_on(one)  # nothing is here that could part
                continue
            asked[one.tp] = (one, epoch)
            topic = topics.setdefault(one.tp.topic, OffsetForLeaderTopic(topic=one.tp.topic))
            topic.partitions.append(
                OffsetForLeaderPartition(
                    partition=one.tp.partition, current_leader_epoch=one.follower.epoch, leader_epoch=epoch
                )
            )
        if not asked:
            return
        request = OffsetForLeaderEpochRequest(replica_id=self._around.broker_id, topics=list(topics.values()))
        low, high = _EPOCH_VERSIONS
        answer = await self._call(request, high, low)
        assert isinstance(answer, OffsetForLeaderEpochResponse)
        for found in answer.topics:
            for each in found.partitions:
                known = asked.get((found.topic, each.partition))
                if known is not None and self._is_awaited(known[0]):
                    self._cut(*known, each.error_code, each.leader_epoch, each.end_offset)

    def _cut(self, one: FetchedPartition, asked: int, error: int, epoch: int, end: int) -> None:
        if error != ErrorCode.NONE:
            self._failed(one, error)
            return
        before = one.follower.log.end_offset

        def cut(after: int) -> None:
            if after != before:
                log_event.info(
                    "a follower's log was cut to what its leader has",
                    partition=one.tp,
                    **{"from": before, "to": after},
                )
                self._around.replicas.waiters.changed(one.tp)
            if epoch == asked or epoch < 0 or after == before:
                self._go_on(one)
            else:
                # What is left may part from the leader's in an earlier leader epoch (KIP-279).
                self.ask_epoch(one)

        # A log that was not cut may not be fetched for: its leader is asked again.
        self._partitions.cut(one, one.follower.cutting_to_leader(epoch, end), cut, again=partial(self.ask_epoch, one))

    # -- which offsets there are

    async def _ranges(self, some: list[FetchedPartition]) -> None:
        ends = await self._offsets(some, LATEST)
        beyond: list[FetchedPartition] = []
        for one, end in ends.items():
            if end < one.follower.log.end_offset:
                self._cut_to_end(one, end)
            else:
                beyond.append(one)
        if not beyond:
            return
        for one, start in (await self._offsets(beyond, EARLIEST)).items():
            self._start_over(one, start)

    async def _offsets(self, some: list[FetchedPartition], timestamp: int) -> dict[FetchedPartition, int]:
        """The leader's last or first offsets, of those that are still awaited and have no error."""
        asked: dict[tuple[str, int], FetchedPartition] = {one.tp: one for one in some if self._is_awaited(one)}
        if not asked:
            return {}
        topics: dict[str, ListOffsetsTopic] = {}
        for (name, number), one in asked.items():
            topic = topics.setdefault(name, ListOffsetsTopic(name=name))
            topic.partitions.append(
                ListOffsetsPartition(
                    partition_index=number, current_leader_epoch=one.follower.epoch, timestamp=timestamp
                )
            )
        request = ListOffsetsRequest(replica_id=self._around.broker_id, topics=list(topics.values()))
        low, high = _OFFSETS_VERSIONS
        answer = await self._call(request, high, low)
        assert isinstance(answer, ListOffsetsResponse)
        offsets: dict[FetchedPartition, int] = {}
        for found in answer.topics:
            for each in found.partitions:
                known = asked.get((found.name, each.partition_index))
                if known is None or not self._is_awaited(known):
                    continue
                if each.error_code != ErrorCode.NONE:
                    self._failed(known, each.error_code)
                elif each.offset >= 0:
                    offsets[known] = each.offset
        return offsets

    def _cut_to_end(self, one: FetchedPartition, leader_end: int) -> None:
        """A replica that had less was elected: what it does not have is given up, as it was by the election."""
        follower = one.follower
        before = follower.log.end_offset

        def cut(after: int) -> None:
            log_event.warning(
                "a follower's log goes beyond its leader's, and was cut",
                partition=one.tp,
                **{"from": before, "to": after},
            )
            if after > leader_end:
                self._partitions.back_off(one)
            else:
                self._around.replicas.waiters.changed(one.tp)
                self._go_on(one)

        try:
            cutting = follower.cutting_to_leader(one.last_epoch, leader_end)
        except StorageFault as fault:
            self._partitions.storage_failed(one, fault)
            return
        self._partitions.cut(one, cutting, cut)

    def _start_over(self, one: FetchedPartition, leader_start: int) -> None:
        follower = one.follower
        if leader_start <= follower.log.end_offset:
            # The leader has the offset now, or answers the same again: behind a pause.
            self._partitions.wait_longer(one)
            return
        log_event.warning(
            "a follower's log ends before its leader's begins, and starts over there",
            partition=one.tp,
            ended=follower.log.end_offset,
            begins=leader_start,
        )

        def begun(_: int) -> None:
            self._around.replicas.waiters.changed(one.tp)
            self._go_on(one)

        self._partitions.cut(one, follower.starting_over(leader_start), begun)

    # -- both

    async def _call(
        self, request: OffsetForLeaderEpochRequest | ListOffsetsRequest, newest: int, oldest: int
    ) -> object:
        link = self._around.questions.to(self._leader)
        timeout_ms = self._around.config.socket_timeout_ms
        return await link.call(request, newest, at_least=oldest, timeout_ms=timeout_ms)

    def _failed(self, one: FetchedPartition, error: int) -> None:
        if error in _OF_A_LEADER_EPOCH:
            self._partitions.wait_for_news(one)
        else:
            self._partitions.wait_longer(one)

    def _go_on(self, one: FetchedPartition) -> None:
        one.state = FetchState.FETCHING
        one.failures = 0
        self._partitions.touch(one)


def _taken(line: dict[FetchedPartition, None]) -> list[FetchedPartition]:
    some = list(islice(line, PARTITIONS_MAX))
    for one in some:
        del line[one]
    return some
