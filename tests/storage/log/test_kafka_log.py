"""Against Apache Kafka: our log opens what Kafka wrote, makes the same indexes from it, and Kafka's tool reads ours."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from tests.storage.at_once import of_largest_timestamp
from tests.storage.log_world import NOW, World, append, batch, marker, read_all
from tools.kafka_tools import KafkaTools

from ottla.config.log import LogConfig
from ottla.model import TopicPartition
from ottla.ports.real.disk import RealDisk
from ottla.storage.log.append import Origin
from ottla.storage.log.log import Log
from ottla.storage.log.opening.open_log import open_log

GOLDEN = Path(__file__).parents[1] / "golden" / "kafka" / "data"
FOLDERS = sorted(folder.name for folder in GOLDEN.iterdir() if folder.is_dir())
#: What the directory was written with.
INTERVALS = {"golden-0": 300}
#: What its checkpoint says: records below were deleted.
STARTS = {"golden-0": 3}


def copied(name: str, target: Path, *kinds: str) -> Path:
    folder = target / name
    folder.mkdir()
    for file in (GOLDEN / name).iterdir():
        if not kinds or file.suffix in kinds:
            shutil.copy(file, folder)
    return folder


def opened(folder: Path, warnings: list[str], *, clean: bool) -> Log:
    topic, _, partition = folder.name.rpartition("-")
    config = LogConfig(index_interval_bytes=INTERVALS.get(folder.name, 4096), cleanup_policy=frozenset({"compact"}))
    return open_log(
        RealDisk(),
        str(folder),
        TopicPartition(topic, int(partition)),
        config,
        now_ms=NOW,
        clean=clean,
        start_offset=STARTS.get(folder.name, 0),
        on_warning=warnings.append,
    )


@pytest.mark.parametrize("name", FOLDERS)
def test_a_log_of_kafkas_opens_as_it_is(name: str, tmp_path: Path) -> None:
    warnings: list[str] = []
    log = opened(copied(name, tmp_path), warnings, clean=True)
    assert read_all(log)
    assert log.end_offset == max(log.snapshots.offsets)
    assert of_largest_timestamp(log) is not None
    log.describe_producers()
    log.close()
    assert warnings == []


@pytest.mark.parametrize("name", FOLDERS)
def test_from_the_batches_alone_come_kafkas_own_files(name: str, tmp_path: Path) -> None:
    warnings: list[str] = []
    folder = copied(name, tmp_path, ".log")
    opened(folder, warnings, clean=False).close()
    assert warnings == []
    made = {file.name: file.read_bytes() for file in folder.iterdir()}
    for file in (GOLDEN / name).iterdir():
        if file.suffix in {".index", ".timeindex", ".txnindex"} or file.name == "leader-epoch-checkpoint":
            assert made[file.name] == file.read_bytes(), file.name


def test_producers_from_the_batches_are_those_of_kafkas_snapshot(tmp_path: Path) -> None:
    warnings: list[str] = []
    theirs = opened(copied("golden-0", tmp_path), warnings, clean=True)
    (tmp_path / "again").mkdir()
    ours = opened(copied("golden-0", tmp_path / "again", ".log"), warnings, clean=False)
    assert sorted(ours.describe_producers()) == sorted(theirs.describe_producers()) != []
    assert ours.first_unstable_offset == theirs.first_unstable_offset
    assert ours.aborted_transactions(0, 10_000) == theirs.aborted_transactions(0, 10_000) != []


@pytest.fixture(scope="module")
def our_log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Many segments, all codecs, several leader epochs, idempotent and transactional producers; closed."""
    folder = tmp_path_factory.mktemp("ours") / "orders-0"
    folder.mkdir()
    config = LogConfig(segment_bytes=40_000, index_interval_bytes=1000, retention_ms=-1)
    world = World(RealDisk(), config, str(folder))
    log = world.open()
    for number in range(200):
        append(log, b"%d" % number * 30, epoch=number // 50, timestamp=NOW + number * (-1) ** (number // 9))
        values = [b"v%d" % number * 9] * (1 + number % 7)
        compressed = batch(*values, timestamp=NOW + 5 * number, compression=number % 5)
        log.stage(compressed, leader_epoch=number // 50, now_ms=NOW)
        log.stage(batch(b"t" * 50, producer=(7, 0, number), transactional=True), leader_epoch=number // 50, now_ms=NOW)
        if number % 10 == 9:
            log.stage(
                marker(7, 0, aborts=number % 20 == 9), leader_epoch=number // 50, now_ms=NOW, origin=Origin.COORDINATOR
            )
        log.write_staged()
    log.close()
    return folder


@pytest.mark.java
@pytest.mark.xdist_group("kafka-tools")
@pytest.mark.parametrize("check", ["--index-sanity-check", "--verify-index-only", "--deep-iteration"])
def test_kafkas_tool_finds_nothing_wrong_with_ours(our_log: Path, kafka_tools: KafkaTools, check: str) -> None:
    files = [file for file in sorted(our_log.iterdir()) if file.suffix in {".log", ".index", ".timeindex"}]
    assert len([file for file in files if file.suffix == ".log"]) > 2
    said = kafka_tools.run("DumpLogSegments", "--files", ",".join(map(str, files)), check).checked()
    for complaint in ("mismatch", "corrupt", "xception", "out of order", "non-consecutive", "isvalid: false"):
        assert complaint not in said
    if check == "--index-sanity-check":
        assert said.count("passed sanity check") + said.count("is empty") == len(
            [file for file in files if file.suffix != ".log"]
        )


@pytest.mark.java
@pytest.mark.xdist_group("kafka-tools")
def test_kafkas_tool_reads_our_snapshots_and_aborted_transactions(our_log: Path, kafka_tools: KafkaTools) -> None:
    files = [file for file in sorted(our_log.iterdir()) if file.suffix in {".snapshot", ".txnindex"}]
    assert len({file.suffix for file in files}) == 2
    said = kafka_tools.run("DumpLogSegments", "--files", ",".join(map(str, files))).checked()
    assert said.count("producerId: 7") >= len(files)
    assert "lastStableOffset" in said
