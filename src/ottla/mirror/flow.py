"""One direction between two clusters: reads the source as a member of a group, and gives each partition's copy its own.

The group (`ottla-mirror.A->B`, on the source) shares the partitions among all processes that run the flow; what it has
committed is how far the copy has come, so that Kafka's tools show the lag. Where a copy goes on is not read from there,
but from the target itself.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, Final, NamedTuple

from ottla.client.consuming.group.listener import RebalanceListener
from ottla.client.errors import CommitFailed, KafkaError, UnknownTopicOrPartition
from ottla.client.wire.listed_offset import LATEST
from ottla.client.wire.offsets import list_offsets
from ottla.client.wire.world import ClientPorts, real_world
from ottla.logs import logger
from ottla.mirror.clients import POLL_MS, FlowClients
from ottla.mirror.faults import UNKNOWN_MAX, deleted
from ottla.mirror.groups import GroupFollower
from ottla.mirror.partition import PartitionCopy
from ottla.mirror.properties import FlowSettings
from ottla.model import TopicPartition

#: How far copies have come is committed, and noted in the topics of syncs and of pairs, so often.
SYNC_SECONDS: Final = 1.0
NOTE_SECONDS: Final = 5.0
#: Topics that the target could not take are tried again after so long.
AGAIN_SECONDS: Final = 5.0
#: A flow that is to end looks so often whether topics were deleted that nothing is heard of.
ASK_SECONDS: Final = 1.0
#: A member that gives partitions up waits so long for what is on its way: others would wait for it.
DRAIN_SECONDS_MAX: Final = 10.0


class PartitionLag(NamedTuple):
    partition: TopicPartition
    #: Records of the source that are not copied, as far as offsets show; None before it was fetched from.
    lag: int | None
    records: int
    bytes: int
    #: Offsets that the source removed before they were copied.
    missed: int
    stopped: str | None


def lag_sum(lags: Sequence[PartitionLag]) -> tuple[int | None, int]:
    """The sum of those that are known, None where none is; and how many are not, which the sum lacks."""
    known = [one.lag for one in lags if one.lag is not None]
    return sum(known) if known or not lags else None, len(lags) - len(known)


class Flow:
    def __init__(self, settings: FlowSettings, *, world: ClientPorts | None = None) -> None:
        self.settings = settings
        self.policy = settings.policy
        self.group = settings.own_group
        self._world = world or real_world()
        self._log = logger("mirror").bind(flow=settings.name)
        self.copies: dict[TopicPartition, PartitionCopy] = {}
        self._tasks: dict[TopicPartition, asyncio.Task[None]] = {}
        #: Partitions that are being begun: their journals are read first.
        self._beginning: set[asyncio.Task[None]] = set()
        self._topics: dict[str, int] = {}
        #: Whether the group has said which partitions are this process's.
        self._assigned = False
        #: How far the copies have come that this process has, as it was last committed.
        self._synced: dict[TopicPartition, int] = {}
        #: Whether the topics are found, and what is called then.
        self.started = False
        self.on_started: Callable[[], object] = lambda: None
        #: Why partitions were stopped that this process has had.
        self.stopped: list[str] = []
        #: Copied by partitions that this process has given up since.
        self.records_before = self.bytes_before = 0
        #: What ends a flow that is to end where the source ended when it began; None: it never does.
        self._ends: dict[TopicPartition, int] | None = None

    # Its life

    async def run(self, *, exit_at_end: bool = False) -> None:
        """Until it is cancelled; with `exit_at_end` until all is copied that is there now."""
        self._clients = await FlowClients.opened(self.settings, self._world, group=self.group)
        try:
            self._take_clients(self._clients)
            await self._refresh_topics()
            if exit_at_end:
                await self._look_up_ends()
            self.started = True
            self.on_started()
            if self.settings.sync_configs_s is not None:
                await self._tried(self._follower.sync_configs)
            async with asyncio.TaskGroup() as group:
                for seconds, work in self._regular():
                    group.create_task(self._every(seconds, work))
                reading = group.create_task(self._read())
                if exit_at_end:
                    group.create_task(self._end_at_ends())
                await reading
        except* _AllCopied:
            pass
        finally:
            await self._close()

    def _regular(self) -> list[tuple[float, Callable[[], Coroutine[Any, Any, Any]]]]:
        settings = self.settings
        wanted: list[tuple[float | None, Callable[[], Coroutine[Any, Any, Any]]]] = [
            (settings.refresh_topics_s, self._refresh_topics),
            (settings.sync_configs_s, self._follower.sync_configs),
            (settings.checkpoints_s, self._groups.checkpoint),
            (settings.sync_groups_s, self._groups.commit),
            (SYNC_SECONDS, self._sync),
            (NOTE_SECONDS, self._note),
        ]
        return [(seconds, work) for seconds, work in wanted if seconds is not None]

    async def _every(self, seconds: float, work: Callable[[], Coroutine[Any, Any, Any]]) -> None:
        while True:
            soon = work == self._refresh_topics and self._follower.incomplete
            await asyncio.sleep(min(seconds, AGAIN_SECONDS) if soon else seconds)
            await self._tried(work)

    async def _tried(self, work: Callable[[], Coroutine[Any, Any, Any]]) -> None:
        try:
            await work()
        except KafkaError as error:
            what = work.__name__.strip("_").replace("_", " ")
            self._log.warning_limited("this could not be done, and is tried again", what, what=what, why=str(error))

    def _take_clients(self, clients: FlowClients) -> None:
        self.reader, self.source = clients.reader, clients.source
        self._copy_world, self._follower = clients.copy_world, clients.follower
        self._groups = GroupFollower(
            self.settings, self.group, clients.source, clients.target, clients.producer, lambda: self.copies
        )

    async def _close(self) -> None:
        for task in self._beginning:
            task.cancel()
        await self._clients.close()
        await self.give_up(list(self._tasks))

    # Reading

    async def _refresh_topics(self) -> None:
        topics = await self._follower.refresh()
        if topics != self._topics:
            gone = self._topics.keys() - topics.keys()
            if gone:
                self._log.warning("topics are not copied any more", topics=", ".join(sorted(gone)))
                self.source.cluster.forget(gone)
            grown = any(topics[name] != count for name, count in self._topics.items() if name in topics)
            new_names = topics.keys() != self._topics.keys()
            self._topics = topics
            if new_names and topics:
                self.reader.subscribe(sorted(topics), listener=_Listener(self))
            elif new_names:
                await self.reader.unsubscribe()
            if grown:
                self.reader.cluster.request_update()

    async def _read(self) -> None:
        while True:
            if not self._topics:
                await asyncio.sleep(POLL_MS / 1000)
                continue
            await self._clients.feed(self.copies)

    def begin(self, partitions: Sequence[TopicPartition]) -> None:
        """The group gave this process these partitions, or has none for it."""
        self._assigned = True
        for tp in partitions:
            self.reader.seek(tp, 0)
        self.reader.pause(*partitions)
        if partitions:
            task = asyncio.get_running_loop().create_task(self._begin(partitions))
            self._beginning.add(task)
            task.add_done_callback(self._beginning.discard)

    async def _begin(self, partitions: Sequence[TopicPartition]) -> None:
        failures = 0
        while True:
            try:
                journals = await self._clients.journal.read(partitions)
                break
            except KafkaError as error:
                failures += 1
                self._log.warning_limited("the pairs cannot be read", why=str(error))
                await asyncio.sleep(self._copy_world.pause_ms(failures) / 1000)
        held = set(self.reader.assignment())
        for tp, journal in journals.items():
            if tp not in held or tp in self.copies:
                continue
            copy = self.copies[tp] = PartitionCopy(tp, self._clients.copy_of(tp), journal, self._copy_world)
            self._tasks[tp] = asyncio.get_running_loop().create_task(self._watched(copy))

    async def _watched(self, copy: PartitionCopy) -> None:
        try:
            await copy.run()
        except asyncio.CancelledError:
            raise
        except Exception as error:  # a fault of ours ends this partition, by name, and no other
            copy.stopped = f"{type(error).__name__}: {error}"
            self._copy_world.reader.hold(copy.tp)
            self._log.error("a partition is not copied any more: a fault of the mirror", partition=copy.tp, fault=error)

    async def end(self, partitions: Sequence[TopicPartition]) -> None:
        """Another process gets these partitions: what is on its way arrives first, within bounds."""
        waited = 0.0
        while waited < DRAIN_SECONDS_MAX and any(
            tp in self.copies and not self.copies[tp].drained and self.copies[tp].stopped is None for tp in partitions
        ):
            await asyncio.sleep(0.02)
            waited += 0.02
        try:
            await self._sync(partitions)
        except KafkaError as error:  # the next one looks at the copy, and not at what was committed
            self._log.warning("the group's offsets were not committed", why=str(error))
        finally:
            await self.give_up(partitions)

    async def give_up(self, partitions: Sequence[TopicPartition]) -> None:
        for tp in partitions:
            self._synced.pop(tp, None)
            copy = self.copies.pop(tp, None)
            if copy is not None:
                self.records_before += copy.records
                self.bytes_before += copy.bytes
                if copy.stopped is not None and copy.stopped not in self.stopped:  # it may have been here before
                    self.stopped.append(copy.stopped)
            task = self._tasks.pop(tp, None)
            if task is not None:
                task.cancel()
                await asyncio.gather(task, return_exceptions=True)
            if tp.topic not in self._topics:  # the copy has asked for it until now
                self.source.cluster.forget([tp.topic])

    # What is noted of how far the copies have come

    async def _sync(self, partitions: Sequence[TopicPartition] | None = None) -> None:
        chosen = self.copies if partitions is None else {tp: self.copies[tp] for tp in partitions if tp in self.copies}
        moved = {tp: copy for tp, copy in chosen.items() if copy.copied >= 0 and self._synced.get(tp) != copy.copied}
        if not moved:
            return
        places = {tp: copy.copied for tp, copy in moved.items()}
        try:
            await self.reader.commit(places)
        except CommitFailed as error:  # the partitions are somebody else's by now, or are about to be
            self._log.debug("the group's offsets were not committed", why=str(error))
            places = {}  # where one of them stays, it is committed by the next call
        for tp, copy in moved.items():
            if copy.last is not None:
                await self._clients.write_sync(tp, copy.last)
        self._synced |= {tp: place for tp, place in places.items() if self.copies.get(tp) is moved[tp]}

    async def _note(self) -> None:
        for copy in list(self.copies.values()):
            await self._tried(copy.note_reached)  # one that cannot be recorded keeps no other from it
        if self._topics and not self.reader.is_member:
            self._log.warning_limited("this process is no member of the group yet", group=self.group, interval_s=60.0)
        lags = self.lags()
        lag, unknown = lag_sum(lags)
        self._log.info(
            "mirrored",
            partitions=len(lags),
            records=sum(one.records for one in lags) + self.records_before,
            bytes=sum(one.bytes for one in lags) + self.bytes_before,
            lag=lag,
            lag_unknown=unknown,
            stopped=sum(one.stopped is not None for one in lags),
        )

    def lags(self) -> list[PartitionLag]:
        return [
            PartitionLag(tp, self._lag(tp, copy), copy.records, copy.bytes, copy.missed, copy.stopped)
            for tp, copy in self.copies.items()
        ]

    def _lag(self, tp: TopicPartition, copy: PartitionCopy) -> int | None:
        try:
            end = self.reader.high_watermark(tp)
        except (KafkaError, ValueError):
            return None
        return None if end is None or copy.copied < 0 else max(0, end - copy.copied)

    # Its end

    async def _look_up_ends(self) -> None:
        places = [TopicPartition(name, number) for name, count in self._topics.items() for number in range(count)]
        found = await list_offsets(
            self.source.cluster, dict.fromkeys(places, LATEST), isolation_level=self._copy_world.isolation
        )
        self._ends = {tp: one.offset for tp, one in found.items()}
        self.stopped += self._follower.refused.values()

    async def _end_at_ends(self) -> None:
        await self._reached_ends()
        raise _AllCopied

    async def _reached_ends(self) -> None:
        """Until each partition is copied to where it ended, by this process or by another, or is stopped."""
        assert self._ends is not None
        left = dict(self._ends)
        unknown: Counter[str] = Counter()
        asked = 0.0
        while left:
            for tp, end in list(left.items()):
                copy = self.copies.get(tp)
                if copy is not None and (copy.stopped is not None or copy.copied >= end):
                    del left[tp]
            await self._take_out_others(left)
            if (now := asyncio.get_running_loop().time()) >= asked + ASK_SECONDS:
                asked = now
                await self._take_out_deleted(left, unknown)
            await asyncio.sleep(0.05)
        await self._sync()
        await self._note()
        if self.settings.checkpoints_s is not None:
            await self._groups.checkpoint()
        if self.settings.sync_groups_s is not None:
            await self._groups.commit()

    async def _take_out_others(self, left: dict[TopicPartition, int]) -> None:
        """Those that other processes have, and have copied so far by what the group has committed."""
        mine = set(self.reader.assignment())
        others = [tp for tp in left if tp not in mine]
        if not others or not self._topics or not self._assigned:
            return
        for tp, place in (await self.reader.committed(others)).items():
            if place is not None and place.offset >= left[tp] and tp not in self.copies:
                del left[tp]

    async def _take_out_deleted(self, left: dict[TopicPartition, int], unknown: Counter[str]) -> None:
        """Those that no process can copy any more."""
        for topic in {tp.topic for tp in left if tp not in self.copies or self.copies[tp].unknown}:
            try:
                await self.source.describe_topic(topic)
                del unknown[topic]
            except UnknownTopicOrPartition:
                unknown[topic] += 1
            except KafkaError as error:
                self._log.warning_limited("the source cannot be asked for a topic", topic, topic=topic, why=str(error))
        for tp in [tp for tp in left if unknown[tp.topic] >= UNKNOWN_MAX]:
            self.stopped.append(deleted(tp, left.pop(tp)))
            self._log.error("a partition is not copied any more", partition=tp, why=self.stopped[-1])


class _AllCopied(Exception):
    pass


class _Listener(RebalanceListener):
    def __init__(self, flow: Flow) -> None:
        self._flow = flow

    def on_assigned(self, partitions: Sequence[TopicPartition]) -> None:
        self._flow.begin(partitions)

    async def on_revoked(self, partitions: Sequence[TopicPartition]) -> None:
        await self._flow.end(partitions)

    async def on_lost(self, partitions: Sequence[TopicPartition]) -> None:
        await self._flow.give_up(partitions)
