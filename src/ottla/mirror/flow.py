"""One direction between two clusters: reads the source as a member of a group, and gives each partition's copy its own.

The group (`ottla-mirror.A->B`, on the source) shares the partitions among all processes that run the flow; what it has
committed is how far the copy has come, so that Kafka's tools show the lag. Where a copy goes on is not read from there,
but from the target itself.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from hashlib import sha256
from typing import Any, Final, NamedTuple

from ottla.client.admin.admin import Admin
from ottla.client.consuming.consumer import Consumer
from ottla.client.consuming.group.listener import RebalanceListener
from ottla.client.errors import CommitFailed, KafkaError, NoOffset
from ottla.client.producing.producer import Producer
from ottla.client.wire.backoff import Backoff
from ottla.client.wire.listed_offset import EARLIEST, LATEST
from ottla.client.wire.offsets import READ_COMMITTED, READ_UNCOMMITTED, list_offsets
from ottla.client.wire.world import ClientPorts, real_world
from ottla.logs import logger
from ottla.mirror.groups import GroupFollower
from ottla.mirror.journal import Journal, compacted_topic
from ottla.mirror.partition import CopyWorld, PartitionCopy
from ottla.mirror.properties import FlowSettings
from ottla.mirror.record_forms import NONCE_END, OffsetSync
from ottla.mirror.topics import TopicFollower
from ottla.model import TopicPartition

#: Kafka hands out producer ids from 0 on, a thousand at a time: the upper half of all numbers is never reached.
_MIRRORS_IDS: Final = 1 << 62
#: How far copies have come is committed, and noted in the topics of syncs and of pairs, so often.
SYNC_SECONDS: Final = 1.0
NOTE_SECONDS: Final = 5.0
#: Topics that the target could not take are tried again after so long.
AGAIN_SECONDS: Final = 5.0
#: A member that gives partitions up waits so long for what is on its way: others would wait for it.
DRAIN_SECONDS_MAX: Final = 10.0
#: A wait for something to be fetched; then the group is attended to again.
POLL_MS: Final = 1_000
#: A fetch that waits for partitions whose copies are at the end holds up the others of its broker.
FETCH_WAIT_MS: Final = 100
#: New partitions are noticed as new topics are, but within a minute at least, as they carry a topic's new records.
METADATA_MS_MAX: Final = 60_000


class PartitionLag(NamedTuple):
    partition: TopicPartition
    #: Records of the source that are not copied, as far as offsets tell; None before it was fetched from.
    lag: int | None
    records: int
    bytes: int
    stopped: str | None


class Flow:
    def __init__(self, settings: FlowSettings, *, world: ClientPorts | None = None) -> None:
        self.settings = settings
        self.policy = settings.policy
        self.group = f"ottla-mirror.{settings.name}"
        self._world = world or real_world()
        self._log = logger("mirror").bind(flow=settings.name)
        self.copies: dict[TopicPartition, PartitionCopy] = {}
        self._tasks: dict[TopicPartition, asyncio.Task[None]] = {}
        #: Partitions that are being begun: their journals are read first.
        self._beginning: set[asyncio.Task[None]] = set()
        self._topics: dict[str, int] = {}
        #: Whether the group has said which partitions are this process's.
        self._assigned = False
        self._closing: list[Callable[[], Awaitable[None]]] = []
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
        try:
            await self._open()
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

    async def _open(self) -> None:
        settings, policy = self.settings, self.policy
        source_settings: dict[str, Any] = {
            "metadata.max.age.ms": METADATA_MS_MAX,
            "client.id": "ottla-mirror",
            "fetch.max.wait.ms": FETCH_WAIT_MS,
            **settings.source_consumer,
            "group.id": self.group,
            "enable.auto.commit": False,
            "allow.auto.create.topics": False,
        }
        begin_at = _begin_at(source_settings.pop("auto.offset.reset", "earliest"))
        named = {"client.id": "ottla-mirror"}
        self.reader = self._kept(Consumer(source_settings, world=self._world, auto_offset_reset="none"))
        self.source = self._kept(Admin({**named, **settings.source_admin}, world=self._world))
        self.target = self._kept(Admin({**named, **settings.target_admin}, world=self._world))
        # Records of the mirror's own topics are few, and are waited for.
        small = {"linger.ms": 0, "compression.type": "none"}
        producer_settings = {**named, **settings.target_producer, **small}
        self._producer = self._kept(Producer(producer_settings, world=self._world))
        journal_reader = self._kept(
            Consumer({**named, **settings.target_consumer}, world=self._world, auto_offset_reset="earliest")
        )
        self._syncs_producer = self._producer
        syncs_admin = self.target
        if settings.syncs_on_source:
            self._syncs_producer = self._kept(
                Producer({**named, **settings.source_producer, **small}, world=self._world)
            )
            syncs_admin = self.source
        self._syncs_topic = policy.offset_syncs_topic(policy.target if settings.syncs_on_source else policy.source)
        self._journal = Journal(
            policy.pairs_topic, journal_reader, self._producer, self.target, settings.syncs_replication
        )
        self._follower = TopicFollower(settings, self.source, self.target)
        self._groups = GroupFollower(
            settings, self.group, self.source, self.target, self._producer, lambda: self.copies
        )
        await self._journal.prepare()
        if settings.emits_syncs:
            await compacted_topic(syncs_admin, self._syncs_topic, settings.syncs_replication)
        if settings.checkpoints_s is not None:
            await compacted_topic(self.target, policy.checkpoints_topic, settings.checkpoints_replication)
        described = await self.source.describe_cluster()
        committed = self.reader.settings.isolation_level == "read_committed"
        backoff = Backoff(
            self.reader.settings.retry_backoff_ms, self.reader.settings.retry_backoff_max_ms, self._world.entropy
        )
        self._copy_world = CopyWorld(
            source=self.source.cluster,
            target=self.target.cluster,
            reader=_HeldReader(self.reader),
            producer_id=producer_id_of(described.cluster_id or policy.source),
            isolation=READ_COMMITTED if committed else READ_UNCOMMITTED,
            begin_at=begin_at,
            check_crcs=self.reader.settings.check_crcs,
            nonce=self._world.entropy.below(NONCE_END),
            follow=self._follower.follow,
            pause_ms=backoff.pause_ms,
        )

    def _kept(self, client: Any) -> Any:
        self._closing.append(client.close)
        return client

    async def _close(self) -> None:
        for task in self._beginning:
            task.cancel()
        closing, self._closing = self._closing, []
        # The reader first: it leaves the group, and gives the partitions up in order.
        for close in closing:
            try:
                await close()
            except KafkaError as error:
                self._log.warning("a client could not be closed in order", why=str(error))
        await self.give_up(list(self._tasks))

    # Reading

    async def _refresh_topics(self) -> None:
        topics = await self._follower.refresh()
        if topics != self._topics:
            gone = self._topics.keys() - topics.keys()
            if gone:
                self._log.warning("topics are not copied any more", topics=", ".join(sorted(gone)))
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
            try:
                fetched = await self.reader.poll_batches(timeout_ms=POLL_MS)
            except KafkaError as error:
                await self._reading_failed(error)
                continue
            copy = None if fetched is None else self.copies.get(fetched.partition)
            if fetched is not None and copy is not None and not copy.offer(fetched):
                self.reader.pause(fetched.partition)

    async def _reading_failed(self, error: KafkaError) -> None:
        copy = self.copies.get(getattr(error, "partition", None))  # type: ignore[arg-type]  # of some errors only
        if copy is not None and not isinstance(error, NoOffset):
            self.reader.pause(copy.tp)
            copy.source_failed(error)
            return
        self._log.warning_limited("the source cannot be read", why=str(error))
        await asyncio.sleep(self._copy_world.pause_ms(1) / 1000)

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
                journals = await self._journal.read(partitions)
                break
            except KafkaError as error:
                failures += 1
                self._log.warning_limited("the pairs cannot be read", why=str(error))
                await asyncio.sleep(self._copy_world.pause_ms(failures) / 1000)
        held = set(self.reader.assignment())
        for tp, journal in journals.items():
            if tp not in held or tp in self.copies:
                continue
            target = TopicPartition(self.policy.remote_topic(tp.topic), tp.partition)
            copy = self.copies[tp] = PartitionCopy(tp, target, journal, self._copy_world)
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
        await self._sync(partitions)
        await self.give_up(partitions)

    async def give_up(self, partitions: Sequence[TopicPartition]) -> None:
        for tp in partitions:
            copy = self.copies.pop(tp, None)
            if copy is not None:
                self.records_before += copy.records
                self.bytes_before += copy.bytes
                if copy.stopped is not None:
                    self.stopped.append(copy.stopped)
            task = self._tasks.pop(tp, None)
            if task is not None:
                task.cancel()
                await asyncio.gather(task, return_exceptions=True)

    # What is noted of how far the copies have come

    async def _sync(self, partitions: Sequence[TopicPartition] | None = None) -> None:
        chosen = self.copies if partitions is None else {tp: self.copies[tp] for tp in partitions if tp in self.copies}
        moved = {tp: copy for tp, copy in chosen.items() if copy.copied >= 0 and self._synced.get(tp) != copy.copied}
        if not moved:
            return
        self._synced |= {tp: copy.copied for tp, copy in moved.items()}
        try:
            await self.reader.commit({tp: copy.copied for tp, copy in moved.items()})
        except CommitFailed as error:  # the partitions are somebody else's by now, or are about to be
            self._log.debug("the group's offsets were not committed", why=str(error))
        if self.settings.emits_syncs:
            for tp, copy in moved.items():
                if copy.last is not None:
                    sync = OffsetSync(*tp, *copy.last)
                    await self._syncs_producer.send(self._syncs_topic, sync.value(), sync.key(), partition=0)

    async def _note(self) -> None:
        for copy in list(self.copies.values()):
            await copy.note_reached()
        if self._topics and self.reader.group_metadata().generation < 0:
            self._log.warning_limited("this process is no member of the group yet", group=self.group, interval_s=60.0)
        lags = self.lags()
        behind = [one.lag for one in lags if one.lag is not None]
        self._log.info(
            "mirrored",
            partitions=len(lags),
            records=sum(one.records for one in lags) + self.records_before,
            bytes=sum(one.bytes for one in lags) + self.bytes_before,
            lag=sum(behind),
            stopped=sum(one.stopped is not None for one in lags),
        )

    def lags(self) -> list[PartitionLag]:
        return [
            PartitionLag(tp, self._lag(tp, copy), copy.records, copy.bytes, copy.stopped)
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

    async def _end_at_ends(self) -> None:
        await self._reached_ends()
        raise _AllCopied

    async def _reached_ends(self) -> None:
        """Until each partition is copied to where it ended, by this process or by another, or is stopped."""
        assert self._ends is not None
        left = dict(self._ends)
        while left:
            for tp, end in list(left.items()):
                copy = self.copies.get(tp)
                if copy is not None and (copy.stopped is not None or copy.copied >= end):
                    del left[tp]
            await self._take_out_others(left)
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


class _AllCopied(Exception):
    pass


class _HeldReader:
    """The consumer, as one partition's copy sees it: what is held is not read on because there is room again."""

    def __init__(self, consumer: Consumer) -> None:
        self._consumer = consumer
        self._held: set[TopicPartition] = set()

    def go_on(self, tp: TopicPartition, offset: int) -> None:
        if tp in self._consumer.assignment():
            self._held.discard(tp)
            self._consumer.seek(tp, offset)
            self._consumer.resume(tp)

    def hold(self, tp: TopicPartition) -> None:
        self._held.add(tp)
        if tp in self._consumer.assignment():
            self._consumer.pause(tp)

    def release(self, tp: TopicPartition) -> None:
        if tp not in self._held and tp in self._consumer.paused():
            self._consumer.resume(tp)


class _Listener(RebalanceListener):
    def __init__(self, flow: Flow) -> None:
        self._flow = flow

    def on_assigned(self, partitions: Sequence[TopicPartition]) -> None:
        self._flow.begin(partitions)

    async def on_revoked(self, partitions: Sequence[TopicPartition]) -> None:
        await self._flow.end(partitions)

    async def on_lost(self, partitions: Sequence[TopicPartition]) -> None:
        await self._flow.give_up(partitions)


def producer_id_of(cluster_id: str) -> int:
    """Of all copies from a cluster, the same in every process: each goes on in the sequence of the one before."""
    return _MIRRORS_IDS | int(sha256(cluster_id.encode()).hexdigest()[:16], 16) >> 2


def _begin_at(reset: str) -> int:
    return LATEST if str(reset).strip().lower() == "latest" else EARLIEST
