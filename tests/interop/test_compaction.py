"""Compaction as Apache Kafka does it: the same log, cleaned by its cleaner and by ours, and what its tools say of ours.

Kafka writes the log, transactions among it; a copy of its folder is cleaned by ours, and the original by its own. Then
both must hold the same batches, but for the time at which a delete horizon was set. Each pass but the first goes over
what Kafka's pass before it left, when the horizons that one set have passed.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from random import Random
from typing import NamedTuple

import pytest
from confluent_kafka import IsolationLevel, Producer
from confluent_kafka import TopicPartition as KafkaPartition
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    OffsetSpec,
    ResourceType,
)
from tools.kafka_tools import KafkaTools

from ottla.config.log import LogConfig
from ottla.model import TopicPartition
from ottla.ports.real.disk import RealDisk
from ottla.records.batch import check_crc, iterate
from ottla.records.control import parse_control
from ottla.records.record import decode_batch
from ottla.steps import Steps
from ottla.storage.cleaner.job import PassLimits
from ottla.storage.cleaner.rounds import PassContext, PassResult, ThreadWorker, clean_log
from ottla.storage.formats import offset_checkpoint
from ottla.storage.log.opening.open_log import open_log
from tests.conftest import WatchServer
from tests.interop.broker import SMALL_INDEXES, Broker, kafka_broker
from tests.interop.clients import SECONDS_MAX, eventually
from tests.interop.conftest import create_topic
from tests.interop.test_segments import assert_no_complaint
from tests.storage.at_once import clean, dirt_of

pytestmark = [pytest.mark.java, pytest.mark.xdist_group("kafka-tools")]

TOPIC = "compacted"
TP = TopicPartition(TOPIC, 0)
SEGMENT_BYTES = 20_000
DELETE_RETENTION_MS = 500
BACKOFF_MS = 100
CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
CONFIG = LogConfig(
    segment_bytes=SEGMENT_BYTES,
    cleanup_policy=frozenset({"compact"}),
    delete_retention_ms=DELETE_RETENTION_MS,
    retention_ms=-1,
)


class Found(NamedTuple):
    """A batch without what may differ: the time of a delete horizon, and a compressor's own choices."""

    segment: int
    first_offset: int
    last_offset: int
    attributes: int
    max_timestamp: int
    producer: tuple[int, int, int]
    leader_epoch: int
    records: tuple[object, ...]


def batches_in(folder: Path) -> list[Found]:
    found = []
    for path in sorted(folder.glob("*.log")):
        data = path.read_bytes()
        for at, header in iterate(data, 0, len(data)):
            assert check_crc(data, at, header.size)
            records = decode_batch(data, at)
            found.append(
                Found(
                    int(path.stem),
                    header.base_offset,
                    header.last_offset,
                    header.attributes,
                    header.max_timestamp,
                    (header.producer_id, header.producer_epoch, header.base_sequence),
                    header.leader_epoch,
                    tuple((each.offset, each.timestamp, each.key, each.value, each.headers) for each in records),
                )
            )
    return found


class Stage(NamedTuple):
    """A folder before and after Kafka's cleaner went over it."""

    before: Path
    after: Path
    #: Kafka's checkpoint before the pass; -1 where there was none.
    cleaned_to: int
    #: Kafka's checkpoint after it.
    now_cleaned_to: int
    #: When it went over it, about.
    at_ms: int


class CompactingKafka:
    """An Apache Kafka whose cleaner works when it is told to."""

    def __init__(self, folder: Path, jars: Path) -> None:
        self.broker: Broker = kafka_broker(
            folder / "kafka",
            jars,
            {
                **SMALL_INDEXES,
                "log.cleaner.backoff.ms": str(BACKOFF_MS),
                "transaction.state.log.num.partitions": "1",
                "transaction.state.log.replication.factor": "1",
                "transaction.state.log.min.isr": "1",
            },
        )
        self._copies = folder

    def create(self) -> None:
        create_topic(
            self.admin(),
            TOPIC,
            cleanup_policy="compact",
            internal_segment_bytes=str(SEGMENT_BYTES),
            delete_retention_ms=str(DELETE_RETENTION_MS),
            min_cleanable_dirty_ratio="1.0",
            file_delete_delay_ms="0",
        )

    def admin(self) -> AdminClient:
        return AdminClient({"bootstrap.servers": self.broker.bootstrap})

    def set_ratio(self, ratio: str) -> None:
        entry = ConfigEntry("min.cleanable.dirty.ratio", ratio, incremental_operation=AlterConfigOpType.SET)
        resource = ConfigResource(ResourceType.TOPIC, TOPIC, incremental_configs=[entry])
        admin = self.admin()  # it must outlive its answer
        admin.incremental_alter_configs([resource])[resource].result(SECONDS_MAX)

    def checkpoint(self) -> int:
        path = self.broker.partition_folder(TOPIC).parent / offset_checkpoint.CLEANER_OFFSETS
        data = path.read_bytes() if path.exists() else b""
        return offset_checkpoint.decode(data).get(TP, -1) if data else -1

    def copy(self, name: str) -> Path:
        """Its folder while it runs: nobody writes, and sealed segments are as they stay.

        Of the active segment only the log is taken: its indexes are full of room for more until Kafka closes them.
        """
        folder = self.broker.partition_folder(TOPIC)
        eventually(self._is_decided)
        eventually(lambda: not [path for path in folder.iterdir() if path.suffix in {".deleted", ".cleaned", ".swap"}])
        copied = Path(shutil.copytree(folder, self._copies / name))
        for kind in (".index", ".timeindex"):
            (copied / f"{active_of(copied):020d}{kind}").unlink(missing_ok=True)
        return copied

    def _is_decided(self) -> bool:
        """Whether all transactions have their markers, which come some time after the answer to a commit."""
        asked = {KafkaPartition(TOPIC, 0): OffsetSpec.latest()}
        ends = []
        for level in (IsolationLevel.READ_UNCOMMITTED, IsolationLevel.READ_COMMITTED):
            admin = self.admin()  # it must outlive its answer
            (found,) = admin.list_offsets(asked, isolation_level=level).values()
            ends.append(found.result(SECONDS_MAX).offset)
        return ends[0] == ends[1]

    def _rests(self) -> bool:
        """Whether nothing has changed while the cleaner could have looked three times."""
        before = self._looks()
        time.sleep(3 * BACKOFF_MS / 1000)
        return before == self._looks()

    def _looks(self) -> list[tuple[str, int, int]]:
        files = self.broker.partition_folder(TOPIC).iterdir()
        with suppress(FileNotFoundError):  # one went meanwhile
            return sorted((file.name, (said := file.stat()).st_size, said.st_mtime_ns) for file in files)
        return []

    def clean(self, number: int) -> Stage:
        before, cleaned_to = self.copy(f"before-{number}"), self.checkpoint()
        at_ms = int(time.time() * 1000)
        self.set_ratio("0.0")
        eventually(lambda: self.checkpoint() >= active_of(before))
        self.set_ratio("1.0")
        eventually(self._rests)  # it may hear of that after it has begun to look once more
        return Stage(before, self.copy(f"after-{number}"), cleaned_to, self.checkpoint(), at_ms)


def active_of(folder: Path) -> int:
    """The base offset of the segment that is written to."""
    return max(int(path.stem) for path in folder.glob("*.log"))


class Writers:
    """librdkafka's: one without idempotence for each codec, two with it, and three with transactions."""

    def __init__(self, bootstrap: str, rng: Random) -> None:
        self._rng = rng
        self._written = 0
        self._plain = [self._producer(bootstrap, codec, idempotent=False) for codec in CODECS]
        self._idempotent = [self._producer(bootstrap, codec, idempotent=True) for codec in ("none", "zstd")]
        self._transactional = [
            self._producer(bootstrap, codec, idempotent=True, name=f"writer-{number}")
            for number, codec in enumerate(("none", "gzip", "lz4"))
        ]
        for producer in self._transactional:
            producer.init_transactions(SECONDS_MAX)
        # One that falls silent: its last batch is superseded soon, and proves its sequence number all the same.
        once = self._producer(bootstrap, "none", idempotent=True)
        once.produce(TOPIC, b"once", b"key-0", 0)
        assert once.flush(SECONDS_MAX) == 0

    @staticmethod
    def _producer(bootstrap: str, codec: str, *, idempotent: bool, name: str = "") -> Producer:
        settings: dict[str, object] = {
            "bootstrap.servers": bootstrap,
            "compression.type": codec,
            "linger.ms": 100,
            "enable.idempotence": idempotent,
            "log_level": 0,
        }
        return Producer({**settings, "transactional.id": name} if name else settings)

    def write(self, count: int) -> None:
        """Batches of all sizes; half of the transactions are aborted."""
        rng = self._rng
        for _ in range(count):
            kind = rng.choice(["plain", "idempotent", "commit", "abort"])
            if kind in {"plain", "idempotent"}:
                self._produce(rng.choice(self._plain if kind == "plain" else self._idempotent), kind)
                continue
            producer = rng.choice(self._transactional)
            producer.begin_transaction()
            self._produce(producer, kind)
            if kind == "commit":
                producer.commit_transaction(SECONDS_MAX)
            else:
                producer.abort_transaction(SECONDS_MAX)

    def _produce(self, producer: Producer, kind: str) -> None:
        rng = self._rng
        self._written += 1
        for _ in range(rng.choice([1, 5, 60])):
            key = b"key-%d" % rng.randrange(60)
            text = b"%s %d " % (kind.encode(), self._written) + rng.randbytes(60).hex().encode()
            value = None if rng.random() < 0.15 else text
            headers = [("h", b"x")] if rng.random() < 0.2 else None
            producer.produce(TOPIC, value, key, 0, headers=headers)
            if rng.random() < 0.1:
                producer.flush(SECONDS_MAX)
        assert producer.flush(SECONDS_MAX) == 0


def last_horizon_ms(folder: Path) -> int:
    horizons = [0]
    for path in folder.glob("*.log"):
        data = path.read_bytes()
        horizons += [header.delete_horizon_ms or 0 for _, header in iterate(data, 0, len(data))]
    return max(horizons)


@pytest.fixture(scope="module")
def stages(
    tmp_path_factory: pytest.TempPathFactory, kafka_jars: Path, watch_server: WatchServer
) -> Iterator[list[Stage]]:
    """Three passes of Kafka's cleaner, the later ones when the horizons of the one before have passed.

    Before the last one its writers begin anew: those with transactions then have another epoch.
    """
    kafka = CompactingKafka(tmp_path_factory.mktemp("compacting"), kafka_jars)
    rng = Random(11)
    with watch_server(kafka.broker.server), kafka.broker.server:
        kafka.create()
        writers = Writers(kafka.broker.bootstrap, rng)
        found: list[Stage] = []
        for number, count in enumerate((30, 15, 15)):
            if number == 2:
                writers = Writers(kafka.broker.bootstrap, rng)
            writers.write(count)
            if found:
                passed_ms = last_horizon_ms(found[-1].after)
                eventually(lambda until_ms=passed_ms: time.time() * 1000 > until_ms)  # type: ignore[misc]
            found.append(kafka.clean(number))
        yield found


def nothing_to_write() -> Steps[None]:
    return None
    yield


def clean_copy(stage: Stage, into: Path) -> tuple[Path, PassResult]:
    """Our cleaner over what Kafka's was given."""
    folder = Path(shutil.copytree(stage.before, into / "ours"))
    disk, warnings = RealDisk(), list[str]()
    log = open_log(
        disk,
        str(folder),
        TP,
        CONFIG,
        now_ms=stage.at_ms,
        clean=False,
        recovery_point=active_of(folder),
        cleaned_to=stage.cleaned_to,
        on_warning=warnings.append,
    )
    unstable = log.first_unstable_offset
    dirt = dirt_of(log, log.end_offset if unstable is None else unstable, stage.at_ms)
    removals: list[Callable[[], None]] = []
    surrounding = PassContext(
        worker=ThreadWorker(disk),
        limits=PassLimits(memory_bytes=1 << 20, load_factor=0.9, buffer_bytes=65536, bytes_per_second=1e300),
        wall_ms=lambda: stage.at_ms,
        is_current=lambda _: True,
        checkpointing=lambda _: nothing_to_write(),
        remove_later=lambda _, removal: removals.append(removal.run),
    )
    outcome = clean(clean_log(log, dirt, surrounding))
    for remove in removals:
        remove()
    log.close()
    assert warnings == []
    return folder, outcome


@pytest.mark.parametrize("number", range(3))
def test_our_cleaner_leaves_the_batches_that_kafkas_leaves(stages: list[Stage], number: int, tmp_path: Path) -> None:
    stage = stages[number]
    folder, outcome = clean_copy(stage, tmp_path)
    ours, theirs = batches_in(folder), batches_in(stage.after)
    before = batches_in(stage.before)
    active = active_of(stage.before)
    assert len(before) > len(theirs) > 10
    assert [each for each in ours if each.segment < active] == [each for each in theirs if each.segment < active]
    assert ours == theirs
    assert outcome.cleaned_to == stage.now_cleaned_to
    assert sorted(path.name for path in folder.glob("*.txnindex") if path.stat().st_size) == sorted(
        path.name for path in stage.after.glob("*.txnindex") if path.stat().st_size
    )
    for path in folder.glob("*.txnindex"):
        assert path.read_bytes() == (stage.after / path.name).read_bytes()


def test_the_stages_have_what_they_are_to_show(stages: list[Stage]) -> None:
    """Aborted data, markers, horizons, tombstones that went, and emptied batches."""
    first, second, third = (batches_in(stage.after) for stage in stages)
    raw = batches_in(stages[0].before)
    kinds = {parse_control(*each.records[0][2:4]).type for each in raw if each.attributes & 0x20}  # type: ignore[index]
    assert len(kinds) == 2
    assert any(each.attributes & 0x40 and not each.attributes & 0x20 for each in first), "tombstones with a horizon"
    assert any(each.attributes & 0x40 and each.attributes & 0x20 for each in second), "markers with a horizon"
    assert any(not each.records for each in first), "emptied batches"

    def markers(batches: list[Found]) -> set[int]:
        return {each.first_offset for each in batches if each.attributes & 0x20 and each.records}

    assert markers(first) - markers(third), "markers that went"

    def tombstones(batches: list[Found]) -> set[int]:
        return {
            record[0]  # type: ignore[index]
            for each in batches
            for record in each.records
            if not each.attributes & 0x20 and record[3] is None  # type: ignore[index]
        }

    assert tombstones(first) - tombstones(second), "tombstones that went"


@pytest.mark.parametrize("number", range(3))
def test_kafkas_dump_tool_finds_nothing_wrong_with_ours(
    stages: list[Stage], number: int, tmp_path: Path, kafka_tools: KafkaTools
) -> None:
    folder, _ = clean_copy(stages[number], tmp_path)
    segments = sorted(path for path in folder.glob("*.log") if path.stat().st_size)
    everything = ",".join(str(path) for path in segments)
    said = kafka_tools.run("DumpLogSegments", "--files", everything, "--deep-iteration", "--print-data-log").checked()
    assert_no_complaint(said)
    assert said.count("isvalid: true") == len(batches_in(folder))
    assert "isvalid: false" not in said
    indexes = [path.with_suffix(kind) for path in segments for kind in (".index", ".timeindex")]
    for check in ([], ["--index-sanity-check"], ["--verify-index-only"]):
        files = ",".join(str(path) for path in indexes)
        said = kafka_tools.run("DumpLogSegments", "--files", files, *check).checked()
        assert_no_complaint(said)
        assert said.count("Dumping ") == len(indexes)
    for path in folder.glob("*.txnindex"):
        assert_no_complaint(kafka_tools.run("DumpLogSegments", "--files", str(path)).checked())
