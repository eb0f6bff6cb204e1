"""Log directories on a disk in memory, and the little that tests do with them."""

from __future__ import annotations

from random import Random

from ottla.config.log import LogConfig
from ottla.model import TopicPartition
from ottla.ports.disk import Disk
from ottla.ports.memory.clock import Timeline, VirtualClock
from ottla.ports.memory.disk import MemoryDisk
from ottla.ports.memory.entropy import SeededEntropy
from ottla.records.record import Record, decode_batch, encode_batch
from ottla.storage.directories.directories import LogDirectories
from ottla.storage.directories.events import DirectoryEvent, Severity
from ottla.storage.log.log import Log

A, B = "/data/a", "/data/b"
TP = TopicPartition("orders", 0)
TOPIC_ID = bytes(range(16))
CONFIG = LogConfig(segment_bytes=4096, index_interval_bytes=256)
NOW = 1_800_000_000_000


def memory_disk() -> MemoryDisk:
    return MemoryDisk(VirtualClock(Timeline()))


class World:
    """A broker's place on a disk, over several lives."""

    def __init__(self, disk: Disk | None = None, paths: tuple[str, ...] = (A, B), seed: int = 1) -> None:
        self.disk = disk or memory_disk()
        self.paths = paths
        self.entropy = SeededEntropy(seed)
        self.events: list[DirectoryEvent] = []
        #: Topics that are known; None stands for all.
        self.topics: set[str] | None = None
        self.topic_ids: dict[str, bytes] = {}
        self.identity = (1, "cluster-x")

    def open(self, **options: object) -> LogDirectories:
        self.events.clear()
        broker_id, cluster_id = self.identity
        return LogDirectories.open(
            self.disk,
            self.paths,
            broker_id=broker_id,
            cluster_id=cluster_id,
            config_for=self._config,
            topic_id_for=self.topic_ids.get,
            now_ms=NOW,
            entropy=self.entropy,
            on_event=self.events.append,
            **options,  # type: ignore[arg-type]
        )

    def _config(self, topic: str) -> LogConfig | None:
        return CONFIG if self.topics is None or topic in self.topics else None

    def crash(self, rng: Random) -> None:
        assert isinstance(self.disk, MemoryDisk)
        self.disk = self.disk.successor(rng)

    def kill(self) -> None:
        assert isinstance(self.disk, MemoryDisk)
        self.disk = self.disk.successor()

    def said(self, severity: Severity) -> list[str]:
        return [event.message for event in self.events if event.severity is severity]


def append(log: Log, count: int = 1, *, word: str = "r", leader_epoch: int = 0) -> None:
    """Appends batches of one record each, which say their offset."""
    for offset in range(log.end_offset, log.end_offset + count):
        batch = encode_batch(
            [Record(offset, NOW + offset, None, f"{word}{offset}".encode())],
            base_offset=offset,
            leader_epoch=leader_epoch,
        )
        log.stage_replica(memoryview(bytearray(batch)))
    log.write_staged()


def flush(log: Log) -> None:
    flush = log.prepare_flush()
    if flush is not None:
        flush.run()
        log.flushed(flush)


def values(log: Log) -> list[str]:
    """Everything in the log, checked for whole batches."""
    found = []
    offset = log.start_offset
    while offset < log.end_offset:
        for record in decode_batch(log.read(offset, 1, log.end_offset).read()):
            if record.offset >= offset:
                found.append(record.value.decode())
                offset = record.offset + 1
    return found


def expected(start: int, end: int, word: str = "r") -> list[str]:
    return [f"{word}{offset}" for offset in range(start, end)]


def copy_all(directories: LogDirectories, partition: TopicPartition = TP) -> None:
    move = directories.future(partition)
    assert move is not None
    while not move.is_level:
        move.copy_step(600)
