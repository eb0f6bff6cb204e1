"""A log directory that Kafka wrote, opened, used and left by us."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from tests.storage.directory_world import World, append

from ottla.model import TopicPartition, topic_id_from_text
from ottla.ports.real.disk import RealDisk
from ottla.records.record import decode_batch
from ottla.storage.directories.errors import DirectoryLocked
from ottla.storage.dump import dump_file
from ottla.storage.dump.entries import RecordEntry

GOLDEN = TopicPartition("golden", 0)
DATA = Path(__file__).parents[1] / "golden" / "kafka" / "data"


@pytest.fixture
def world(tmp_path):
    shutil.copytree(DATA, tmp_path / "data")
    world = World(RealDisk(), (str(tmp_path / "data"),))
    world.identity = (1, "4L6g3nShT-eMCtK--X86sw")
    return world


def records(log, start):
    """(offset, timestamp, key, value, headers) of every record from `start` on."""
    found = []
    offset = start
    while offset < log.end_offset:
        piece = log.read(offset, 1, log.end_offset).read()
        batch = decode_batch(piece)
        found += [record for record in batch if record.offset >= offset]
        offset = batch[-1].offset + 1
    return found


def check_contents(directories):
    log = directories.get(GOLDEN)
    assert (log.start_offset, log.end_offset) == (3, 134)
    assert directories.high_watermark(GOLDEN) == 134
    assert log.topic_id == topic_id_from_text("hFET9OPPToCM_pGhkw0fDg")
    assert log.epochs.latest == 0
    assert log.first_unstable_offset == 132
    assert log.aborted_transactions(0, 134) == [(5, 110), (6, 118)]
    assert {producer.producer_id for producer in log.describe_producers()} == set(range(8))
    assert len(directories.logs) == 6
    dumped = [
        entry
        for file in sorted((DATA / "golden-0").glob("*.log"))
        for entry in dump_file(RealDisk(), str(file))
        if isinstance(entry, RecordEntry) and entry.offset >= 3
    ]
    assert [(record.offset, record.timestamp, record.key, record.value) for record in records(log, 3)] == [
        (entry.offset, entry.timestamp, entry.key, entry.value) for entry in dumped
    ]
    assert len(dumped) == 131


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_it_opens_without_a_word(world):
    directories = world.open()
    check_contents(directories)
    assert directories.get(GOLDEN).epochs.entries() == [(0, 3)]
    assert world.events == []


def test_leaving_it_unchanged_leaves_kafkas_bytes(world):
    directories = world.open()
    check_contents(directories)
    directories.close({tp: log.end_offset for tp, log in directories.logs.items()}, broker_epoch=11)
    ours, theirs = contents(Path(world.paths[0])), contents(DATA)
    del ours[".lock"]
    assert ours.keys() == theirs.keys()
    for name, data in theirs.items():
        if name.endswith("-offset-checkpoint"):
            assert sorted(ours[name].split(b"\n")) == sorted(data.split(b"\n"))
        else:
            assert ours[name] == data, name


def test_a_directory_that_kafka_left_hard_gives_the_same(world):
    folder = Path(world.paths[0])
    (folder / ".kafka_cleanshutdown").unlink()
    for name in ("recovery-point-offset-checkpoint", "golden-0/00000000000000000134.snapshot"):
        (folder / name).unlink()
    for index in folder.glob("golden-0/*117.*index"):
        index.write_bytes(index.read_bytes() + bytes(4800))
    check_contents(world.open())
    assert world.events == []


def test_it_can_be_written_on(world):
    directories = world.open()
    append(directories.get(GOLDEN), 3)
    directories.close({GOLDEN: 137})
    again = world.open()
    assert world.events == []
    assert [record.value for record in records(again.get(GOLDEN), 134)] == [b"r134", b"r135", b"r136"]


def test_two_brokers_cannot_share_it(world):
    world.open()
    with pytest.raises(DirectoryLocked):
        world.open()
