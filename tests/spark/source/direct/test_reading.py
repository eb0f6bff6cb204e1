"""Direct reading beside the wire: which rows come out of files, which do not, and that they are the same rows."""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql.streaming.datasource import ReadAllAvailable
from tests.spark.source.direct.conftest import (
    RECORDS,
    copied,
    expected,
    fill,
    log_directory,
    rewrite,
    rows,
    rows_of,
    sealed,
    sealed_until,
    settings_for,
)

from ottla.client.admin.results import ConfigResource
from ottla.client.sync import Admin, Producer
from ottla.model import TopicPartition
from ottla.records.batch import LEADER_EPOCH_AT, iterate
from ottla.spark.source.columns import spark_schema
from ottla.spark.source.direct.reading import direct_reading
from ottla.spark.source.errors import DataLost
from ottla.spark.source.links import link
from ottla.spark.source.planning import batch_splits
from ottla.spark.source.splits import Range, Split
from ottla.spark.source.stream import stream_reader
from ottla.spark.source.tasks import read_split
from ottla.storage.log.indexes.offset_index import ENTRY_SIZE
from ottla.testing import InProcessBroker


def test_sealed_segments_come_out_of_files_and_the_rest_over_the_wire(
    broker: InProcessBroker, topic: str, copy: Path, said: list[str]
) -> None:
    until = sealed_until(copy, topic)
    assert 200 < until < RECORDS
    assert rows(settings_for(broker, topic, copy)) == expected(until)
    assert rows(settings_for(broker, topic, copy, minPartitions=7)) == expected(until)
    assert rows(settings_for(broker, topic, copy, **{"kafka.isolation.level": "read_committed"})) == expected(until)
    assert said == []


def test_every_range_of_offsets(broker: InProcessBroker, topic: str, copy: Path) -> None:
    settings, until = settings_for(broker, topic, copy), sealed_until(copy, topic)
    (whole,) = batch_splits(settings)
    for first, end in (
        (0, 1),
        (7, 8),
        (11, 112),
        (until - 1, until),
        (until - 1, until + 1),
        (until, RECORDS),
        (5, 299),
    ):
        split = Split(Range(whole.tp, first, end), whole.topic_id)
        assert rows(settings, [split]) == expected(until, first=first, until=end), (first, end)


def test_the_leaders_own_directory_is_found(broker: InProcessBroker, topic: str, said: list[str]) -> None:
    settings = settings_for(broker, topic)
    (split,) = batch_splits(settings)
    reading = direct_reading(link(settings.client), split, ())
    assert reading is not None
    assert reading.covers(0)
    first = reading.read(0)
    assert first is not None
    assert first.file == str(log_directory(broker) / f"{topic}-0" / f"{0:020}.log")
    reading.close()
    assert rows(settings) == expected(0)
    assert said == []


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_all_columns_of_all_codecs(broker: InProcessBroker, codec: str) -> None:
    name = f"codec-{codec}"
    broker.create_topic(name, configs={"internal.segment.bytes": "3000"})
    with Producer(bootstrap_servers=broker.bootstrap, compression_type=codec, batch_size=400) as producer:
        for number in range(200):
            producer.send(
                name,
                None if number % 4 == 0 else b"v%d" % number,
                key=None if number % 3 == 0 else b"k%d" % number,
                timestamp=1_700_000_000_000 + number * 7,
                headers=[("trace", b"\xff"), ("kind", None)] if number % 2 else None,
            )
    given = {"includeHeaders": True, "columns": None}
    direct = settings_for(broker, name, **given)
    wire = settings_for(broker, name, **given, **{"ottla.direct": False})
    (split,) = batch_splits(direct)
    reading = direct_reading(link(direct.client), split, ())
    assert reading is not None
    reading.close()

    def table(settings: Any) -> list[dict[str, Any]]:
        return [row for batch in read_split(settings, split) for row in batch.to_pylist()]

    assert table(direct) == table(wire)
    assert len(table(wire)) == 200


def test_a_stream_reads_files_too(broker: InProcessBroker, topic: str, copy: Path) -> None:
    options = {
        "kafka.bootstrap.servers": broker.bootstrap,
        "subscribe": topic,
        "startingOffsets": "earliest",
        "ottla.direct": "true",
        "ottla.direct.dirs": str(copy),
    }
    reader = stream_reader(spark_schema(("key", "offset", "value")), options)
    start = reader.initialOffset()
    end = reader.latestOffset(start, ReadAllAvailable())
    found = [row for split in reader.partitions(start, end) for batch in reader.read(split) for row in rows_of(batch)]
    assert found == expected(sealed_until(copy, topic))


# What is not trusted


def test_a_replica_that_went_another_way_is_not_read(
    broker: InProcessBroker, topic: str, copy: Path, said: list[str]
) -> None:
    """Its last batches are of a leader epoch that the leader never had."""

    def later(data: bytearray, pos: int, _: int) -> None:
        data[pos + LEADER_EPOCH_AT + 3] += 5

    rewrite(sealed(copy, topic)[-1], later)
    assert rows(settings_for(broker, topic, copy)) == expected(0)
    assert f"{copy}/{topic}-0 is not trusted: it has gone another way than its leader's log" in said[0]
    # What was written before is the same in both, and says so.
    settings = settings_for(broker, topic, copy)
    (whole,) = batch_splits(settings)
    sound = int(sealed(copy, topic)[-1].stem)
    assert rows(settings, [Split(Range(whole.tp, 0, sound), whole.topic_id)]) == expected(sound, until=sound)


def test_a_topic_that_was_made_again_is_another(broker: InProcessBroker, topic: str, copy: Path) -> None:
    broker.delete_topic(topic)
    broker.create_topic(topic, configs={"internal.segment.bytes": "1000"})
    fill(broker, topic, RECORDS)
    assert rows(settings_for(broker, topic, copy)) == expected(0)


def test_a_topic_that_is_deleted_after_planning_is_a_loss_as_over_the_wire(
    broker: InProcessBroker, topic: str, copy: Path
) -> None:
    settings = settings_for(broker, topic, copy)
    splits = batch_splits(settings)
    broker.delete_topic(topic)
    with pytest.raises(DataLost, match="the topic was deleted, or made again"):
        rows(settings, splits)


def test_what_is_not_committed_is_not_read(broker: InProcessBroker, topic: str, copy: Path, said: list[str]) -> None:
    settings = settings_for(broker, topic, copy)
    (whole,) = batch_splits(settings)
    split = Split(Range(whole.tp, 0, RECORDS + 1), whole.topic_id)
    assert direct_reading(link(settings.client), split, settings.direct_dirs) is None
    assert f"is committed up to offset {RECORDS} by now, and {RECORDS + 1} is wanted" in said[0]


def test_what_was_deleted_is_a_loss_though_files_have_it(broker: InProcessBroker, topic: str, copy: Path) -> None:
    strict = settings_for(broker, topic, copy)
    splits = batch_splits(strict)
    with Admin(bootstrap_servers=broker.bootstrap) as admin:
        admin.delete_records({TopicPartition(topic, 0): 37})
    with pytest.raises(DataLost, match=f"offsets 0 to 36 of {topic}-0 can no longer be read"):
        rows(strict, splits)
    # The first answer comes over the wire, as it says what is lost; then files go on.
    found = rows(settings_for(broker, topic, copy, failOnDataLoss=False), splits)
    assert [row[1:] for row in found] == [row[1:] for row in expected(0, first=37)]
    few = {"kafka.max.partition.fetch.bytes": 100}
    found = rows(settings_for(broker, topic, copy, failOnDataLoss=False, **few), splits)
    assert [row[1:] for row in found] == [row[1:] for row in expected(0, first=37)]
    assert {row[0] for row in found} == {"k", "F"}


def test_another_clusters_directory(broker: InProcessBroker, topic: str, copy: Path, said: list[str]) -> None:
    meta = copy / "meta.properties"
    meta.write_text(re.sub("cluster.id=.*", "cluster.id=other", meta.read_text()))
    assert rows(settings_for(broker, topic, copy)) == expected(0)
    assert "belongs to cluster other" in said[0]


def test_compaction_makes_replicas_differ(broker: InProcessBroker, topic: str, copy: Path, said: list[str]) -> None:
    until = sealed_until(copy, topic)
    meta = copy / "meta.properties"
    text = meta.read_text()
    meta.write_text(text.replace("broker.id=1", "broker.id=77"))
    assert meta.read_text() != text
    assert rows(settings_for(broker, topic, copy)) == expected(until)
    with Admin(bootstrap_servers=broker.bootstrap) as admin:
        admin.alter_configs({ConfigResource.topic(topic): {"cleanup.policy": "compact"}})
    assert rows(settings_for(broker, topic, copy)) == expected(0)
    assert "is not the leader's" in said[0]
    meta.write_text(text)
    assert rows(settings_for(broker, topic, copy)) == expected(until)


# Files that change, go, or cannot be read


def test_no_directory_here_is_said_once(broker: InProcessBroker, topic: str, tmp_path: Path, said: list[str]) -> None:
    settings = settings_for(broker, topic, tmp_path / "elsewhere", minPartitions=4)
    assert rows(settings) == expected(0)
    assert len(said) == 1
    assert f"{tmp_path}/elsewhere/meta.properties: No such file or directory" in said[0]


def test_a_file_that_is_no_file(broker: InProcessBroker, topic: str, copy: Path, said: list[str]) -> None:
    pipe = sealed(copy, topic)[1]
    pipe.unlink()
    os.mkfifo(pipe)
    assert rows(settings_for(broker, topic, copy)) == expected(int(pipe.stem))
    assert f"{pipe.name} is no file" in said[0]


def test_a_damaged_batch_is_read_over_the_wire(
    broker: InProcessBroker, topic: str, copy: Path, said: list[str]
) -> None:
    file = sealed(copy, topic)[2]
    data = bytearray(file.read_bytes())
    (_, _), (pos, header), *_ = iterate(bytes(data), 0, len(data))
    data[pos + header.size - 1] ^= 1
    file.write_bytes(data)
    assert rows(settings_for(broker, topic, copy)) == expected(header.base_offset)
    assert f"{file} is damaged at offset {header.base_offset} or soon behind it" in said[0]
    assert "checksum" in said[0]


def test_damage_before_the_first_offset_that_is_wanted_gives_no_row_that_is_not(
    broker: InProcessBroker, topic: str, copy: Path, said: list[str]
) -> None:
    """A file is looked through from somewhere before the offset: here from its beginning, since it has no index."""
    file = sealed(copy, topic)[2]
    file.with_suffix(".index").unlink()
    data = bytearray(file.read_bytes())
    (_, _), (pos, header), (_, wanted), *_ = iterate(bytes(data), 0, len(data))
    data[pos + header.size - 1] ^= 1
    file.write_bytes(data)
    settings, first = settings_for(broker, topic, copy), wanted.base_offset
    (whole,) = batch_splits(settings)
    split = Split(Range(whole.tp, first, first + 3), whole.topic_id)
    assert rows(settings, [split]) == expected(0, first=first, until=first + 3)
    assert f"{file} is damaged at offset {header.base_offset} or soon behind it" in said[0]


@pytest.mark.parametrize("length", [-1, 0, 7, 2**30])
def test_a_length_that_cannot_be(broker: InProcessBroker, topic: str, copy: Path, said: list[str], length: int) -> None:
    file = sealed(copy, topic)[2]
    data = bytearray(file.read_bytes())
    (_, _), (pos, header), *_ = iterate(bytes(data), 0, len(data))
    data[pos + 8 : pos + 12] = length.to_bytes(4, "big", signed=True)
    file.write_bytes(data)
    found = rows(settings_for(broker, topic, copy))
    assert [row[1:] for row in found] == [row[1:] for row in expected(0)]
    assert {origin for origin, offset, _ in found if offset >= header.base_offset} == {"k"}
    assert str(file) in said[0]


def test_an_index_that_is_damaged_or_gone(broker: InProcessBroker, topic: str, copy: Path) -> None:
    for number, index in enumerate(sorted((copy / f"{topic}-0").glob("*.index"))):
        if index.stat().st_size < 2 * ENTRY_SIZE:
            continue  # the last ones are written some time after the log
        if number % 4 == 0:
            index.unlink()
        elif number % 4 == 1:
            index.write_bytes(b"\xff" * 64)
        elif number % 4 == 2:  # within a batch
            index.write_bytes(b"\0\0\0\1\0\0\0\7")
        else:  # a batch, but a later one than it says: what lies between would be left out
            entries = index.read_bytes()
            index.write_bytes(b"\0\0\0\1" + entries[-4:])
    until = sealed_until(copy, topic)
    assert rows(settings_for(broker, topic, copy)) == expected(until)
    (whole,) = batch_splits(settings_for(broker, topic, copy))
    for first in range(until):
        split = Split(Range(whole.tp, first, first + 2), whole.topic_id)
        assert rows(settings_for(broker, topic, copy), [split]) == expected(until, first=first, until=first + 2)


def test_a_file_that_was_cut(broker: InProcessBroker, topic: str, copy: Path) -> None:
    file = sealed(copy, topic)[3]
    os.truncate(file, file.stat().st_size - 3)
    found = rows(settings_for(broker, topic, copy))
    assert [row[1:] for row in found] == [row[1:] for row in expected(0)]
    # All before it came out of files.
    assert {origin for origin, offset, _ in found if offset < int(file.stem)} == {"F"}


def test_a_segment_without_a_name_for_now_is_no_gap(broker: InProcessBroker, topic: str, copy: Path) -> None:
    """As while the cleaner puts one in the place of others: what it holds comes over the wire."""
    file = sealed(copy, topic)[3]
    file.rename(file.with_suffix(".log.swap"))
    few = {"kafka.max.partition.fetch.bytes": 100}
    found = rows(settings_for(broker, topic, copy, **few))
    assert [row[1:] for row in found] == [row[1:] for row in expected(0)]
    until = sealed_until(copy, topic)
    after = int(sealed(copy, topic)[3].stem)
    assert {row[0] for row in found if int(file.stem) <= row[1] < after} == {"k"}
    assert {row[0] for row in found if after + 10 <= row[1] < until} == {"F"}


def test_gaps_that_compaction_left(broker: InProcessBroker, topic: str, copy: Path) -> None:
    """Within a segment a gap is one; at the end of one the leader is asked."""
    files = sealed(copy, topic)
    left_out: set[int] = set()
    for file, which in ((files[1], 1), (files[4], -1)):
        data = file.read_bytes()
        batches = list(iterate(data, 0, len(data)))
        pos, header = batches[which]
        file.write_bytes(data[:pos] + data[pos + header.size :])
        if which == 1:
            left_out |= set(range(header.base_offset, header.next_offset))
    found = rows(settings_for(broker, topic, copy))
    assert [row[1] for row in found] == [offset for offset in range(RECORDS) if offset not in left_out]


def test_a_segment_that_is_replaced_while_it_is_read(broker: InProcessBroker, tmp_path: Path, said: list[str]) -> None:
    """One segment of several pieces: what was begun is read to its end, from the file that was opened."""
    name = "large"
    broker.create_topic(name, configs={"segment.bytes": "4000000"})
    with Producer(bootstrap_servers=broker.bootstrap, batch_size=100_000) as producer:
        for number in range(70):
            producer.send(name, b"%d" % number, key=b"k" * 100_000)
    copy = copied(broker, name, tmp_path / "copy")
    file = sealed(copy, name)[0]
    until = sealed_until(copy, name)
    assert file.stat().st_size > 3_000_000
    settings = settings_for(broker, name, copy)
    (split,) = batch_splits(settings)

    batches = read_split(settings, split)
    found = rows_of(next(batches))
    assert found[-1][1] < until - 1
    other = file.with_name("other")
    other.write_bytes(b"")
    other.rename(file)
    found += [row for batch in batches for row in rows_of(batch)]
    assert found == expected(until, until=70)

    # Cut while it is read: the rest comes over the wire, and each row once.
    shutil.rmtree(copy)
    copied(broker, name, copy)
    batches = read_split(settings, split)
    found = rows_of(next(batches))
    os.truncate(file, 1_500_000)
    found += [row for batch in batches for row in rows_of(batch)]
    assert [row[1:] for row in found] == [row[1:] for row in expected(0, until=70)]
    assert found[-1][0] == "k"


def test_what_is_sealed_meanwhile_was_not_vouched_for(broker: InProcessBroker, topic: str, copy: Path) -> None:
    until = sealed_until(copy, topic)
    settings = settings_for(broker, topic, copy)
    (split,) = batch_splits(settings)
    batches = read_split(settings, split)
    found = rows_of(next(batches))
    (copy / f"{topic}-0" / f"{RECORDS:020}.log").write_bytes(b"")  # the segment that grew grows no more
    found += [row for batch in batches for row in rows_of(batch)]
    assert found == expected(until)


def test_what_a_cleaned_segment_has_beyond_was_not_vouched_for(broker: InProcessBroker, topic: str, copy: Path) -> None:
    """The cleaner has made one segment of the last two."""
    until = sealed_until(copy, topic)
    settings = settings_for(broker, topic, copy)
    (split,) = batch_splits(settings)
    batches = read_split(settings, split)
    found = rows_of(next(batches))
    last, growing = sealed(copy, topic)[-1], copy / f"{topic}-0" / f"{until:020}.log"
    last.write_bytes(last.read_bytes() + growing.read_bytes())
    growing.rename(growing.with_name(f"{RECORDS:020}.log"))
    found += [row for batch in batches for row in rows_of(batch)]
    assert found == expected(until)


def test_a_folder_that_moves_while_it_is_read(broker: InProcessBroker, topic: str, copy: Path) -> None:
    settings = settings_for(broker, topic, copy)
    (split,) = batch_splits(settings)
    batches = read_split(settings, split)
    found = rows_of(next(batches))
    folder = copy / f"{topic}-0"
    folder.rename(copy / f"{topic}-0.{'0' * 32}-delete")
    shutil.copytree(copy / f"{topic}-0.{'0' * 32}-delete", folder)
    for file in folder.glob("*.log"):
        file.write_bytes(b"of another topic")
    found += [row for batch in batches for row in rows_of(batch)]
    assert found == expected(sealed_until(copy, topic))


def test_a_folder_that_goes_while_it_is_read(broker: InProcessBroker, topic: str, copy: Path) -> None:
    settings = settings_for(broker, topic, copy)
    (split,) = batch_splits(settings)
    batches = read_split(settings, split)
    found = rows_of(next(batches))
    shutil.rmtree(copy / f"{topic}-0")
    found += [row for batch in batches for row in rows_of(batch)]
    assert [row[1:] for row in found] == [row[1:] for row in expected(0)]
    assert found[-1][0] == "k"


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="only Linux shows what is open")
def test_no_descriptor_is_left_open(broker: InProcessBroker, topic: str, copy: Path) -> None:
    def open_files() -> list[str]:
        links = (f"/proc/self/fd/{name}" for name in os.listdir("/proc/self/fd"))
        return [os.readlink(link) for link in links if os.path.islink(link) and str(copy) in os.readlink(link)]

    settings = settings_for(broker, topic, copy, minPartitions=5)
    rows(settings)
    batches = read_split(settings, batch_splits(settings)[0])
    next(batches)
    assert open_files()
    batches.close()  # type: ignore[attr-defined]
    assert open_files() == []
    sealed(copy, topic)[0].write_bytes(b"x" * 100)
    rows(settings)
    assert open_files() == []
