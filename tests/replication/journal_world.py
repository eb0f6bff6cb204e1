"""A leader of one partition on a disk in memory, its journal, and the round that a broker would run."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

from ottla.config.log import LogConfig
from ottla.metadata import PartitionState
from ottla.model import OFFSETS_TOPIC, BrokerId, Epoch, ErrorCode, TopicId, TopicPartition
from ottla.ports.memory import MemoryPorts, memory_ports
from ottla.records.record import decode_batch
from ottla.replication.journal import PartitionJournal
from ottla.replication.journals import Journals, JournalSettings
from ottla.replication.leader import Leader
from ottla.replication.replicas import Replicas
from ottla.replication.round import Round
from ottla.replication.waiters import Waiters
from ottla.replication.writes import Writes
from ottla.storage.directories.directories import LogDirectories

T = TypeVar("T")

TP = TopicPartition(OFFSETS_TOPIC, 3)
NOW = 1_800_000_000_000
DIRECTORIES = ("/data/a", "/data/b")
CONFIG = LogConfig(cleanup_policy=frozenset({"compact"}))


class JournalWorld:
    def __init__(
        self, config: LogConfig = CONFIG, replicas: tuple[int, ...] = (1,), ports: MemoryPorts | None = None
    ) -> None:
        self.ports = ports or memory_ports(seed=5, shuffle=False)
        self.config = config
        self.settings = JournalSettings(commit_timeout_ms=5000, load_bytes_max=1 << 20, compression=0)
        self.lost: list[TopicPartition] = []
        self.told: list[tuple[str, ErrorCode]] = []
        directories = LogDirectories.open(
            self.ports.disk,
            DIRECTORIES,
            broker_id=1,
            cluster_id="c",
            config_for=lambda _: self.config,
            topic_id_for=lambda _: None,
            now_ms=NOW,
            entropy=self.ports.entropy,
            on_event=lambda _: None,
        )
        self.replicas = Replicas(1, directories, Waiters(), self.ports.workers, self.ports.clock, lambda _: None)
        clock = self.ports.clock
        self.broken: list[str] = []
        self.writes = Writes(self.replicas, lambda leader: None)
        self.this_round = Round(self.writes, self._settle, clock, self.broken.append)
        self.journals = Journals(
            self.replicas, self.this_round, self.writes, self.ports.workers, clock, lambda: self.settings
        )
        self.this_round.join(self.journals)
        self.replicas.open(self, [self])
        self.lead(epoch=0, replicas=replicas)

    def next_life(self) -> JournalWorld:
        """The same broker behind a clean stop: nothing of its logs is in memory."""
        self.replicas.directories.close(self.replicas.high_watermarks())
        return JournalWorld(self.config, ports=self.ports)

    # -- as a listener to roles

    def became_leader(self, leader: Leader) -> None:
        self.journal: PartitionJournal = self.journals.open(leader, self)

    def became_follower(self, follower: object) -> None:
        pass

    def resigned(self, tp: TopicPartition) -> None:
        self.journals.close(tp)

    # -- as the owner of the journals, and of the replicas

    def journal_lost(self, tp: TopicPartition) -> None:
        self.lost.append(tp)

    def replicas_failed(self, partitions: Sequence[TopicPartition]) -> None: ...

    def replicas_made(self, partitions: Sequence[TopicPartition]) -> None: ...

    def no_directory_left(self, reason: str) -> None: ...

    # -- what a controller and a network would do

    def lead(
        self, epoch: int, replicas: tuple[int, ...] = (1,), leader: int = 1, isr: tuple[int, ...] | None = None
    ) -> None:
        ids = tuple(BrokerId(each) for each in replicas)
        state = PartitionState(
            topic=TP.topic,
            partition=TP.partition,
            topic_id=TopicId(bytes(range(16))),
            controller_epoch=Epoch(1),
            leader=BrokerId(leader),
            leader_epoch=Epoch(epoch),
            isr=ids if isr is None else tuple(BrokerId(each) for each in isr),
            replicas=ids,
            partition_epoch=0,
            is_new=True,
        )
        self.replicas.apply([state], lambda _: self.config)

    @property
    def leader(self) -> Leader:
        return self.replicas.leaders[TP]

    @contextmanager
    def round(self) -> Iterator[None]:
        self.this_round.begin()
        yield
        if self.ports.loop.is_running():
            self.this_round.end()
        else:
            self.run(self._end_round())

    async def _end_round(self) -> None:
        """And those behind it, for what waited until its log had another segment."""
        self.this_round.end()
        while self.replicas.files.is_rolling:
            await self.replicas.files.rolls_end()
            await asyncio.sleep(0)

    def _settle(self) -> None:
        self.replicas.waiters.settle(self.ports.clock.monotonic_ms())

    def empty_round(self) -> None:
        with self.round():
            pass

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        asyncio.set_event_loop(self.ports.loop)
        return self.ports.loop.run_until_complete(work)

    # -- what a coordinator would do

    def write(self, name: str, *records: tuple[bytes, bytes | None]) -> ErrorCode:
        """Writes under a name, by which the outcome is noted in `told`."""
        return self.journal.write(records, NOW, lambda error: self.told.append((name, error)))

    def settled(self, name: str) -> None:
        self.journal.when_settled(lambda error: self.told.append((name, error)))

    def told_names(self) -> list[str]:
        assert all(error == ErrorCode.NONE for _, error in self.told), self.told
        return [name for name, _ in self.told]

    async def pieces(self) -> list[bytes]:
        return [piece async for piece in self.journal.replay()]

    def batches(self) -> list[list[tuple[bytes | None, bytes | None]]]:
        """Keys and values that are replayed, batch by batch."""
        found = []
        for piece in self.run(self.pieces()):
            at = 0
            while at < len(piece):
                size = 12 + int.from_bytes(piece[at + 8 : at + 12], "big")
                found.append([(record.key, record.value) for record in decode_batch(piece[at : at + size])])
                at += size
        return found
