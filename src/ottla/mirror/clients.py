"""The clients of one flow in one process, the topics of its own that it needs, and what all of its copies share."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from hashlib import sha256
from typing import Any, Final, Self

from ottla.client.admin.admin import Admin
from ottla.client.consuming.assignment import FetchedBatches
from ottla.client.consuming.consumer import Consumer
from ottla.client.errors import KafkaError, NoOffset
from ottla.client.producing.producer import Producer
from ottla.client.wire.backoff import Backoff
from ottla.client.wire.listed_offset import EARLIEST, LATEST
from ottla.client.wire.offsets import READ_COMMITTED, READ_UNCOMMITTED
from ottla.client.wire.world import ClientPorts
from ottla.logs import logger
from ottla.mirror.copy_world import CopyWorld
from ottla.mirror.journal import Journal, compacted_topic
from ottla.mirror.pairs import Pair
from ottla.mirror.partition import PartitionCopy
from ottla.mirror.properties import FlowSettings
from ottla.mirror.record_forms import NONCE_END, OffsetSync
from ottla.mirror.topics import TopicFollower
from ottla.model import TopicPartition

#: Kafka hands out producer ids from 0 on, a thousand at a time: the upper half of all numbers is never reached.
_MIRRORS_IDS: Final = 1 << 62
#: A fetch that waits for partitions whose copies are at the end holds up the others of its broker.
FETCH_WAIT_MS: Final = 100
#: A wait for something to be fetched; then the group is attended to again.
POLL_MS: Final = 1_000
#: New partitions are noticed as new topics are, but within a minute at least, as they carry a topic's new records.
METADATA_MS_MAX: Final = 60_000


class FlowClients:
    """Made by `opened`, and closed by its caller."""

    reader: Consumer
    source: Admin
    target: Admin
    producer: Producer
    journal: Journal
    follower: TopicFollower
    copy_world: CopyWorld

    def __init__(self, settings: FlowSettings, world: ClientPorts) -> None:
        self.settings = settings
        self._world = world
        self._log = logger("mirror").bind(flow=settings.name)
        self._closing: list[Callable[[], Awaitable[None]]] = []

    @classmethod
    async def opened(cls, settings: FlowSettings, world: ClientPorts, *, group: str | None) -> Self:
        """With a group the reader is one of its members, and gets its partitions from it."""
        made = cls(settings, world)
        try:
            made._make(group)
            await made._prepare()
        except BaseException:
            await made.close()
            raise
        return made

    def _make(self, group: str | None) -> None:
        settings, world = self.settings, self._world
        source_settings: dict[str, Any] = {
            "metadata.max.age.ms": METADATA_MS_MAX,
            "client.id": "ottla-mirror",
            "fetch.max.wait.ms": FETCH_WAIT_MS,
            **settings.source_consumer,
            "enable.auto.commit": False,
            "allow.auto.create.topics": False,
        }
        if group is not None:
            source_settings["group.id"] = group
        self._reset = source_settings.pop("auto.offset.reset", "earliest").strip().lower()
        named = {"client.id": "ottla-mirror"}
        self.reader = self._kept(Consumer(source_settings, world=world, auto_offset_reset="none"))
        self.source = self._kept(Admin({**named, **settings.source_admin}, world=world))
        self.target = self._kept(Admin({**named, **settings.target_admin}, world=world))
        # Records of the mirror's own topics are few, and are waited for.
        small = {"linger.ms": 0, "compression.type": "none"}
        producer_settings = {**named, **settings.target_producer, **small}
        self.producer = self._kept(Producer(producer_settings, world=world))
        journal_reader = self._kept(
            Consumer({**named, **settings.target_consumer}, world=world, auto_offset_reset="earliest")
        )
        self._syncs_producer = self.producer
        self._syncs_admin = self.target
        if settings.syncs_on_source:
            self._syncs_producer = self._kept(Producer({**named, **settings.source_producer, **small}, world=world))
            self._syncs_admin = self.source
        policy = settings.policy
        self._syncs_topic = policy.offset_syncs_topic(policy.target if settings.syncs_on_source else policy.source)
        self.journal = Journal(
            policy.pairs_topic, journal_reader, self.producer, self.target, settings.syncs_replication
        )
        self.follower = TopicFollower(settings, self.source, self.target)

    async def _prepare(self) -> None:
        settings, policy = self.settings, self.settings.policy
        await self.journal.prepare()
        if settings.emits_syncs:
            await compacted_topic(self._syncs_admin, self._syncs_topic, settings.syncs_replication)
        if settings.checkpoints_s is not None:
            await compacted_topic(self.target, policy.checkpoints_topic, settings.checkpoints_replication)
        described = await self.source.describe_cluster()
        reading = self.reader.settings
        backoff = Backoff(reading.retry_backoff_ms, reading.retry_backoff_max_ms, self._world.entropy)
        self.copy_world = CopyWorld(
            source=self.source.cluster,
            target=self.target.cluster,
            reader=_HeldReader(self.reader),
            producer_id=producer_id_of(described.cluster_id or policy.source),
            isolation=READ_COMMITTED if reading.isolation_level == "read_committed" else READ_UNCOMMITTED,
            begin_at=LATEST if self._reset == "latest" else EARLIEST,
            passes_gaps=self._reset != "none",
            check_crcs=reading.check_crcs,
            nonce=self._world.entropy.below(NONCE_END),
            follow=self.follower.follow,
            pause_ms=backoff.pause_ms,
        )

    def copy_of(self, tp: TopicPartition) -> TopicPartition:
        return TopicPartition(self.settings.policy.remote_topic(tp.topic), tp.partition)

    async def feed(self, copies: Mapping[TopicPartition, PartitionCopy]) -> FetchedBatches | None:
        """Hands a copy what was fetched for it, if anything is within a second; returns that."""
        try:
            fetched = await self.reader.poll_batches(timeout_ms=POLL_MS)
        except KafkaError as error:
            await self._reading_failed(error, copies)
            return None
        copy = None if fetched is None else copies.get(fetched.partition)
        if fetched is not None and copy is not None and not copy.offer(fetched):
            self.reader.pause(fetched.partition)
        return fetched

    async def _reading_failed(self, error: KafkaError, copies: Mapping[TopicPartition, PartitionCopy]) -> None:
        copy = copies.get(getattr(error, "partition", None))  # type: ignore[arg-type]  # of some errors only
        if copy is not None and not isinstance(error, NoOffset):
            self.reader.pause(copy.tp)
            copy.source_failed(error)
            return
        self._log.warning_limited("the source cannot be read", why=str(error))
        await asyncio.sleep(self.copy_world.pause_ms(1) / 1000)

    async def write_sync(self, tp: TopicPartition, last: Pair) -> None:
        """Says for MirrorMaker 2's clients where the last record of a copy lies, if that is asked for."""
        if self.settings.emits_syncs:
            sync = OffsetSync(*tp, *last)
            await self._syncs_producer.send(self._syncs_topic, sync.value(), sync.key(), partition=0)

    def _kept(self, client: Any) -> Any:
        self._closing.append(client.close)
        return client

    async def close(self) -> None:
        closing, self._closing = self._closing, []
        # The reader first: it leaves the group, and gives the partitions up in order.
        for close in closing:
            try:
                await close()
            except KafkaError as error:
                self._log.warning("a client could not be closed in order", why=str(error))


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


def producer_id_of(cluster_id: str) -> int:
    """Of all copies from a cluster, the same in every process: each goes on in the sequence of the one before."""
    return _MIRRORS_IDS | int(sha256(cluster_id.encode()).hexdigest()[:16], 16) >> 2
