"""Partitions of one broker on a disk in memory, whose roles a test gives and takes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ottla.config.log import LogConfig
from ottla.metadata import PartitionState
from ottla.model import BrokerId, Epoch, ErrorCode, TopicId, TopicPartition
from ottla.ports.memory import memory_ports
from ottla.replication.follower import Follower
from ottla.replication.leader import Leader
from ottla.replication.replicas import Replicas
from ottla.replication.roles import RoleListener
from ottla.replication.waiters import Waiters
from ottla.storage.directories.directories import LogDirectories
from ottla.storage.directories.events import DirectoryEvent
from ottla.storage.directories.removal import FolderRemoval

TP = TopicPartition("t", 0)
NOW = 1_800_000_000_000
DIRECTORIES = ("/data/a", "/data/b")
US, OTHER = 1, 2


class RolesWorld:
    """One broker. Also the last of the listeners to roles: `told` is what it heard, in order. And the owner of the replicas."""

    #: This broker's id.
    us = US

    def __init__(self, config: LogConfig | None = None, listeners: Sequence[RoleListener] = ()) -> None:
        self.ports = memory_ports(seed=5, shuffle=False)
        self.config = config or LogConfig()
        self.told: list[tuple[str, int]] = []
        self.events: list[DirectoryEvent] = []
        self.listeners = listeners
        #: Whether a start gives the replicas their owner.
        self.owned = True
        self.failed: list[TopicPartition] = []
        self.made: list[TopicPartition] = []
        self.lost: list[str] = []
        #: Folders that are to go.
        self.removed: list[FolderRemoval] = []
        self.start()

    def start(self) -> None:
        self.events.clear()
        directories = LogDirectories.open(
            self.ports.disk,
            DIRECTORIES,
            broker_id=self.us,
            cluster_id="c",
            config_for=lambda _: self.config,
            now_ms=NOW,
            entropy=self.ports.entropy,
            on_event=self.events.append,
        )
        self.replicas = Replicas(
            self.us, directories, Waiters(), self.ports.workers, self.ports.clock, self.removed.append
        )
        if self.owned:
            self.replicas.open(self, [*self.listeners, self])

    def replicas_failed(self, partitions: Sequence[TopicPartition]) -> None:
        self.failed += partitions

    def replicas_made(self, partitions: Sequence[TopicPartition]) -> None:
        self.made += partitions

    def no_directory_left(self, reason: str) -> None:
        self.lost.append(reason)

    def stop(self) -> None:
        self.replicas.directories.close(self.replicas.high_watermarks())

    def became_leader(self, leader: Leader) -> None:
        self.told.append(("leads", leader.epoch))

    def became_follower(self, follower: Follower) -> None:
        self.told.append(("follows", follower.epoch))

    def resigned(self, tp: TopicPartition) -> None:
        assert tp.topic == TP.topic
        self.told.append(("resigned", -1))

    def role(self, epoch: int, leader: int = US, **options: Any) -> ErrorCode:
        return self.replicas.apply([self.state(epoch, leader, **options)], lambda _: self.config)[TP]

    @staticmethod
    def state(
        epoch: int,
        leader: int = US,
        *,
        replicas: tuple[int, ...] = (US,),
        isr: tuple[int, ...] | None = None,
        is_new: bool = True,
        partition: int = TP.partition,
        partition_epoch: int = 0,
        controller_epoch: int = 1,
        topic_id: bytes = bytes(range(16)),
    ) -> PartitionState:
        return PartitionState(
            topic=TP.topic,
            partition=partition,
            topic_id=TopicId(topic_id),
            controller_epoch=Epoch(controller_epoch),
            leader=BrokerId(leader),
            leader_epoch=Epoch(epoch),
            isr=tuple(BrokerId(each) for each in (replicas if isr is None else isr)),
            replicas=tuple(BrokerId(each) for each in replicas),
            partition_epoch=partition_epoch,
            is_new=is_new,
        )

    @property
    def leader(self) -> Leader:
        return self.replicas.leaders[TP]

    @property
    def follower(self) -> Follower:
        return self.replicas.followers[TP]
