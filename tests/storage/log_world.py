"""One log on a disk in memory, and batches to put into it."""

from __future__ import annotations

from random import Random

from ottla.config.log import LogConfig
from ottla.model import TopicPartition
from ottla.ports.disk import Disk
from ottla.ports.memory.clock import Timeline, VirtualClock
from ottla.ports.memory.disk import MemoryDisk
from ottla.records.batch import BatchHeader, iterate
from ottla.records.control import ControlType, control_batch
from ottla.records.record import Record, decode_batch, encode_batch
from ottla.storage.log.append import AppendResult, Origin
from ottla.storage.log.log import Log
from ottla.storage.log.opening.open_log import open_log
from ottla.storage.log.rolling import LogReading, is_unread

TP = TopicPartition("orders", 0)
FOLDER = "/data/orders-0"
NOW = 1_800_000_000_000
#: Small segments and a dense index, so that a few batches meet every boundary.
SMALL = LogConfig(segment_bytes=2000, index_interval_bytes=200, retention_ms=-1)


def memory_disk(capacity_bytes: int = 1 << 40) -> MemoryDisk:
    disk = MemoryDisk(VirtualClock(Timeline()), capacity_bytes=capacity_bytes)
    disk.make_directory(FOLDER)
    disk.sync_directory("/data")
    disk.sync_directory("/")
    return disk


def batch(
    *values: bytes,
    timestamp: int = NOW,
    key: bytes | None = None,
    producer: tuple[int, int, int] = (-1, -1, -1),
    transactional: bool = False,
    compression: int = 0,
    base_offset: int = 0,
    leader_epoch: int = -1,
) -> memoryview:
    """A client's batch; `producer` is id, epoch and first sequence."""
    records = [Record(base_offset + number, timestamp + number, key, value, ()) for number, value in enumerate(values)]
    encoded = encode_batch(
        records,
        base_offset=base_offset,
        producer_id=producer[0],
        producer_epoch=producer[1],
        base_sequence=producer[2],
        transactional=transactional,
        compression=compression,
        leader_epoch=leader_epoch,
    )
    return memoryview(bytearray(encoded))


def marker(producer_id: int, epoch: int, *, aborts: bool, coordinator_epoch: int = 0) -> memoryview:
    kind = ControlType.ABORT if aborts else ControlType.COMMIT
    encoded = control_batch(
        kind, timestamp=NOW, producer_id=producer_id, producer_epoch=epoch, coordinator_epoch=coordinator_epoch
    )
    return memoryview(bytearray(encoded))


class World:
    """A log over several lives of its process."""

    def __init__(self, disk: Disk | None = None, config: LogConfig = SMALL, folder: str = FOLDER) -> None:
        self.disk = disk or memory_disk()
        self.config = config
        self.folder = folder
        self.warnings: list[str] = []
        self.recovery_point = 0
        self.start_offset = 0
        #: As the cleaner's checkpoint says.
        self.cleaned_to = -1

    def open(self, *, clean: bool = True, now_ms: int = NOW) -> Log:
        self.warnings.clear()
        return open_log(
            self.disk,
            self.folder,
            TP,
            self.config,
            now_ms=now_ms,
            clean=clean,
            recovery_point=self.recovery_point,
            start_offset=self.start_offset,
            cleaned_to=self.cleaned_to,
            on_warning=self.warnings.append,
        )

    def flush(self, log: Log) -> None:
        flush = log.prepare_flush()
        if flush is not None:
            flush.run()
            log.flushed(flush)
        self.recovery_point = log.recovery_point

    def close(self, log: Log) -> None:
        log.close()
        self.recovery_point = log.recovery_point
        self.start_offset = log.start_offset

    def crash(self, rng: Random) -> None:
        assert isinstance(self.disk, MemoryDisk)
        self.disk.crash(rng)

    def path(self, name: str) -> str:
        return f"{self.folder}/{name}"


def read_first(log: Log) -> None:
    """What a broker has a worker read before the first append behind a start."""
    if log.staging.rolls_apart and is_unread(log.staging):
        reading = LogReading(log.staging)
        reading.run()
        reading.finish()


def append(log: Log, *values: bytes, epoch: int = 0, timestamp: int = NOW) -> AppendResult:
    """Appends one batch and writes it."""
    read_first(log)
    appended = log.stage(batch(*values, timestamp=timestamp), leader_epoch=epoch, now_ms=NOW)
    log.write_staged()
    return appended


def put(log: Log, records: memoryview, *, origin: Origin = Origin.CLIENT, now_ms: int = NOW) -> AppendResult:
    appended = log.stage(records, leader_epoch=0, now_ms=now_ms, origin=origin)
    log.write_staged()
    return appended


def read_batches(
    log: Log, offset: int | None = None, limit: int | None = None, max_bytes: int = 500
) -> list[tuple[BatchHeader, memoryview]]:
    """All batches from an offset on, as a consumer gets them: fetch by fetch, dropping a cut last batch."""
    found: list[tuple[BatchHeader, memoryview]] = []
    at = log.start_offset if offset is None else offset
    end = log.end_offset if limit is None else limit
    while at < end:
        data = memoryview(log.read(at, max_bytes, end).read())
        headers = list(iterate(data, 0, len(data)))
        if not headers:
            return found
        for position, header in headers:
            if header.last_offset >= at:
                found.append((header, data[position : position + header.size]))
        at = headers[-1][1].next_offset
    return found


def read_all(log: Log, offset: int | None = None, max_bytes: int = 500) -> list[tuple[int, bytes]]:
    """Offset and value of every record from an offset on."""
    start = log.start_offset if offset is None else offset
    records = [record for _, data in read_batches(log, offset, None, max_bytes) for record in decode_batch(data, 0)]
    return [(record.offset, bytes(record.value or b"")) for record in records if record.offset >= start]
