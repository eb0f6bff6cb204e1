"""Logs with keys, passes over them in this process, and what is then in them."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import NamedTuple

from tests.storage.at_once import clean, dirt_of
from tests.storage.log_world import NOW, World, memory_disk, read_batches

from ottla import steps
from ottla.config.log import LogConfig
from ottla.ports.disk import Disk
from ottla.records.batch import BatchHeader, check_crc, iterate
from ottla.records.record import Record, decode_batch, encode_batch
from ottla.storage.cleaner.dirt import Dirt
from ottla.storage.cleaner.job import PassLimits
from ottla.storage.cleaner.rounds import PassContext, PassResult, Steps, ThreadWorker, clean_log
from ottla.storage.log.append import AppendResult
from ottla.storage.log.log import Log
from ottla.storage.log.retention import Removal

#: Segments of a few batches; tombstones stay for a second.
COMPACTED = LogConfig(
    segment_bytes=600,
    index_interval_bytes=100,
    retention_ms=-1,
    cleanup_policy=frozenset({"compact"}),
    delete_retention_ms=1000,
    file_delete_delay_ms=0,
)
LIMITS = PassLimits(memory_bytes=1 << 20, load_factor=0.9, buffer_bytes=4096, bytes_per_second=1e300)


class Kept(NamedTuple):
    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None


class Cleaner:
    """What a broker is around a log's passes."""

    def __init__(self, world: World, limits: PassLimits = LIMITS) -> None:
        self.world = world
        self.limits = limits
        self.now_ms = NOW
        self.removals: list[Removal] = []
        #: What the checkpoint file says.
        self.cleaned_to = -1
        self.is_current = True
        self.is_moving = False

    def surrounding(self) -> PassContext:
        return PassContext(
            worker=ThreadWorker(self.world.disk),
            limits=self.limits,
            wall_ms=lambda: self.now_ms,
            is_current=lambda _: self.is_current,
            checkpointing=self._checkpointing,
            remove_later=lambda _, removal: self.removals.append(removal),
            is_moving=lambda _: self.is_moving,
        )

    def _checkpointing(self, log: Log) -> steps.Steps[Callable[[], None]]:
        cleaned_to = log.cleaned_to

        def write() -> None:
            self.cleaned_to = cleaned_to

        yield
        return write

    def dirt(self, log: Log, stable_offset: int | None = None) -> Dirt:
        stable = log.first_unstable_offset
        if stable_offset is None:
            stable_offset = log.end_offset if stable is None else stable
        return dirt_of(log, stable_offset, self.now_ms)

    def steps(self, log: Log) -> Steps:
        return clean_log(log, self.dirt(log), self.surrounding())

    def clean(self, log: Log) -> PassResult:
        """A pass to its end, over what is on the medium."""
        self.world.flush(log)
        return clean(self.steps(log))

    def remove(self) -> None:
        for removal in self.removals:
            removal.run()
        self.removals.clear()


def compacted_world(disk: Disk | None = None, config: LogConfig = COMPACTED) -> World:
    return World(disk or memory_disk(), config)


def keyed(
    *pairs: tuple[bytes | None, bytes | None],
    timestamp: int = NOW,
    compression: int = 0,
    producer: tuple[int, int, int] = (-1, -1, -1),
    transactional: bool = False,
) -> memoryview:
    """A client's batch of keys and values."""
    records = [Record(number, timestamp + number, key, value) for number, (key, value) in enumerate(pairs)]
    encoded = encode_batch(
        records,
        compression=compression,
        producer_id=producer[0],
        producer_epoch=producer[1],
        base_sequence=producer[2],
        transactional=transactional,
    )
    return memoryview(bytearray(encoded))


def put_keyed(log: Log, *pairs: tuple[bytes | None, bytes | None], **fields: object) -> AppendResult:
    appended = log.stage(keyed(*pairs, **fields), leader_epoch=0, now_ms=NOW)  # type: ignore[arg-type]
    log.write_staged()
    return appended


def batches_of(log: Log) -> list[tuple[BatchHeader, bytes]]:
    """Every batch of every segment, as it lies there."""
    found: list[tuple[BatchHeader, bytes]] = []
    for segment in log.segments:
        data = segment.file.read(segment.size, 0)
        for at, header in iterate(data, 0, len(data)):
            assert check_crc(data, at, header.size)
            assert header.base_offset >= segment.base_offset
            found.append((header, data[at : at + header.size]))
    offsets = [(header.base_offset, header.last_offset) for header, _ in found]
    assert all(before[1] < after[0] for before, after in pairwise(offsets)), offsets
    return found


def records_of(log: Log) -> list[Kept]:
    return [
        Kept(record.offset, record.timestamp, record.key, record.value)
        for header, data in batches_of(log)
        if not header.is_control
        for record in decode_batch(data)
    ]


def fetched(log: Log, max_bytes: int = 300) -> list[Kept]:
    """The same as consumers get it, fetch by fetch."""
    return [
        Kept(record.offset, record.timestamp, record.key, record.value)
        for header, data in read_batches(log, log.start_offset, max_bytes=max_bytes)
        if not header.is_control
        for record in decode_batch(bytes(data))
    ]


def newest(records: list[Kept]) -> dict[bytes, bytes]:
    """What a reader of the whole log ends up with."""
    table: dict[bytes, bytes] = {}
    for record in records:
        assert record.key is not None
        if record.value is None:
            table.pop(record.key, None)
        else:
            table[record.key] = record.value
    return table
