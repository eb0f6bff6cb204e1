"""Files that Kafka wrote: what is read from them, written again, gives the same bytes."""

from __future__ import annotations

from pathlib import Path

import pytest

from ottla.model import TopicPartition, topic_id_from_text
from ottla.ports.real.disk import RealDisk
from ottla.storage.formats import (
    clean_shutdown,
    epoch_checkpoint,
    meta_properties,
    offset_checkpoint,
    partition_metadata,
    producer_snapshot,
)
from ottla.storage.formats.names import FolderKind, parse_folder, parse_segment_file

DATA = Path(__file__).parent.parent / "golden" / "kafka" / "data"


@pytest.mark.parametrize("path", sorted(DATA.glob("*-offset-checkpoint")), ids=lambda path: path.name)
def test_offset_checkpoints(path):
    offsets = offset_checkpoint.decode(path.read_bytes())
    if path.stat().st_size:
        assert offset_checkpoint.encode(offsets) == path.read_bytes()
    else:
        assert offsets == {}


def test_offsets_are_as_kafka_left_them():
    offsets = offset_checkpoint.read(RealDisk(), str(DATA / offset_checkpoint.RECOVERY_POINTS))
    assert offsets[TopicPartition("golden", 0)] == 134
    assert offsets[TopicPartition("golden.with-dots_and-dashes", 1)] == 7
    assert len(offsets) == 6


@pytest.mark.parametrize("path", sorted(DATA.glob("*/leader-epoch-checkpoint")), ids=lambda path: path.parent.name)
def test_epoch_checkpoints(path):
    entries = epoch_checkpoint.decode(path.read_bytes())
    assert len(entries) == 1
    assert epoch_checkpoint.encode(entries) == path.read_bytes()


@pytest.mark.parametrize("path", sorted(DATA.glob("*/*.snapshot")), ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_producer_snapshots(path):
    assert producer_snapshot.encode(producer_snapshot.decode(path.read_bytes())) == path.read_bytes()


def test_an_open_transaction_stands_in_the_snapshot():
    entries = producer_snapshot.decode((DATA / "golden-0" / "00000000000000000134.snapshot").read_bytes())
    assert [entry.producer_id for entry in entries] == list(range(8))
    assert [entry.current_txn_first_offset for entry in entries] == [-1] * 7 + [132]


@pytest.mark.parametrize("path", sorted(DATA.glob("*/partition.metadata")), ids=lambda path: path.parent.name)
def test_partition_metadata(path):
    assert partition_metadata.encode(partition_metadata.decode(path.read_bytes())) == path.read_bytes()


def test_meta_properties():
    meta = meta_properties.read(RealDisk(), str(DATA / "meta.properties"))
    assert meta == meta_properties.MetaProperties(
        version=1,
        cluster_id="4L6g3nShT-eMCtK--X86sw",
        broker_id=1,
        directory_id=topic_id_from_text("k7wiWHFME1xqHgrxgT-rSQ"),
    )
    lines = (DATA / "meta.properties").read_text().splitlines()
    assert meta_properties.encode(meta).decode().splitlines() == sorted(line for line in lines if line[0] != "#")


def test_clean_shutdown_marker():
    data = (DATA / ".kafka_cleanshutdown").read_bytes()
    assert clean_shutdown.encode(clean_shutdown.decode(data)) == data


def test_names():
    folders = [parse_folder(path.name) for path in DATA.iterdir() if path.is_dir()]
    assert {folder.kind for folder in folders} == {FolderKind.CURRENT}
    assert TopicPartition("golden.with-dots_and-dashes", 1) in {folder.partition for folder in folders}
    numbered = [path.name for path in DATA.glob("*/0*")]
    assert None not in map(parse_segment_file, numbered)
