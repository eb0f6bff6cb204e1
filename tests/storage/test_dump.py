"""What `ottla log dump` shows: on files of Kafka's the same as Kafka's own tool; and damage, without ever failing."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ottla.ports.real.disk import RealDisk
from ottla.storage.dump import Finding, dump_file, fields, files_of, kind_of
from ottla.storage.dump.entries import BatchEntry, OffsetIndexEntry, RecordEntry, TimeIndexEntry

GOLDEN = Path(__file__).parent / "golden" / "kafka"
DATA = GOLDEN / "data"
DISK = RealDisk()

KINDS = [
    "00000000000000000000.log",
    "00000000000000000000.index",
    "00000000000000000000.timeindex",
    "00000000000000000000.txnindex",
    "00000000000000000000.snapshot",
    "leader-epoch-checkpoint",
    "recovery-point-offset-checkpoint",
    "meta.properties",
    "partition.metadata",
    ".kafka_cleanshutdown",
]


def dumped(path: Path, **options: bool) -> list:
    return list(dump_file(DISK, str(path), **options))


def findings(path: Path) -> list[Finding]:
    return [entry for entry in dumped(path) if isinstance(entry, Finding)]


def damage(path: Path) -> list[str]:
    return [finding.message for finding in findings(path) if finding.is_damage]


@pytest.fixture
def segment(tmp_path: Path) -> Path:
    """A copy of the partition that has everything in it; the value is its first log file."""
    shutil.copytree(DATA / "golden-0", tmp_path / "golden-0")
    return tmp_path / "golden-0" / "00000000000000000000.log"


# Files that Kafka wrote


def kafka_text() -> dict[str, list[dict[str, str]]]:
    """Kafka's own dump as one dictionary of words a line, by file."""
    files: dict[str, list[dict[str, str]]] = {}
    lines: list[dict[str, str]] = []
    for line in (GOLDEN / "dump" / "golden-and-compacted.txt").read_text().splitlines():
        if line.startswith("Dumping "):
            lines = files.setdefault(line.removeprefix("Dumping ").strip(), [])
        elif ": " in line and not line.startswith("Log starting"):
            words = re.findall(r"(\w+): (\S*)", line.removeprefix("| "))
            lines.append({name.lower(): value for name, value in words})
    return files


def our_words(entry: object) -> dict[str, str]:
    words = {}
    for name, value in fields(entry):  # type: ignore[arg-type]
        if name in {"currentTxnFirstOffset", "deleteHorizonMs"}:
            text = "OptionalLong.empty" if value is None else f"OptionalLong[{value}]"
        elif isinstance(value, bool):
            text = str(value).lower()
        elif isinstance(value, list):
            text = f"[{','.join(value)}]"
        elif isinstance(value, bytes):
            text = value.decode()
        else:
            text = str(value)
        words[name.lower()] = text
    return words


@pytest.mark.parametrize("name", sorted(kafka_text()))
def test_every_field_that_kafkas_tool_prints_is_the_same(name):
    theirs = kafka_text()[name]
    ours = [our_words(entry) for entry in dumped(DATA / name)]
    assert len(ours) == len(theirs)
    for our, their in zip(ours, theirs, strict=True):
        their.pop("timestamp", None) if "lasttimestamp" in their else None  # the same figure under a second name
        assert {key: our.get(key) for key in their} == their


def test_nothing_is_found_in_a_directory_that_kafka_left_clean():
    files = files_of(DISK, str(DATA))
    assert len(files) > 30
    assert [finding for file in files for finding in findings(Path(file))] == []


def test_a_record_has_all_the_fields_of_the_sample_line():
    record = next(entry for entry in dumped(DATA / "golden-0" / KINDS[0]) if isinstance(entry, RecordEntry))
    assert fields(record) == [
        ("offset", 0),
        ("position", 0),
        ("CreateTime", 1531477349286),
        ("isvalid", True),
        ("keysize", -1),
        ("valuesize", 12),
        ("magic", 2),
        ("compresscodec", "none"),
        ("producerId", -1),
        ("producerEpoch", -1),
        ("sequence", -1),
        ("isTransactional", False),
        ("headerKeys", []),
        ("payload", b"message_0..."),
    ]


def test_records_can_be_left_out():
    kinds = {type(entry) for entry in dumped(DATA / "golden-0" / KINDS[0], records=False)}
    assert kinds == {BatchEntry}


# Damage


def test_a_flipped_bit_in_a_batch_is_found_and_the_others_are_still_shown(segment):
    data = bytearray(segment.read_bytes())
    data[150] ^= 1
    segment.write_bytes(data)
    entries = dumped(segment)
    assert damage(segment) == ["the checksum of the batch at offset 0 is wrong"]
    batches = [entry for entry in entries if isinstance(entry, BatchEntry)]
    assert [batch.is_valid for batch in batches] == [False] + [True] * (len(batches) - 1)
    assert min(entry.offset for entry in entries if isinstance(entry, RecordEntry)) == 5


def test_a_torn_tail_is_found(segment):
    segment.write_bytes(segment.read_bytes()[:-10])
    assert len(damage(segment)) == 1
    assert "bytes are not looked at" in damage(segment)[0]


def test_preallocated_room_is_no_damage(segment):
    segment.write_bytes(segment.read_bytes() + bytes(4096))
    assert damage(segment) == []
    assert "4096 bytes of zeros" in str(findings(segment)[0])


def test_offsets_that_go_back_are_found(segment):
    data = segment.read_bytes()
    segment.write_bytes(data + data[:156])
    assert damage(segment) == ["offset 0 stands where 109 or more is due"]


def test_a_batch_before_its_files_name_is_found(segment):
    other = segment.with_name("00000000000000000050.log")
    segment.rename(other)
    assert "offset 0 stands where 50 or more is due" in damage(other)


def test_an_index_entry_that_points_into_a_batch_is_found(segment):
    index = segment.with_suffix(".index")
    data = bytearray(index.read_bytes())
    data[7] ^= 1
    index.write_bytes(data)
    assert damage(index) == ["offset 28 points to 392, where no batch of the log begins"]


def test_index_entries_that_do_not_rise_are_found(segment):
    index = segment.with_suffix(".index")
    data = index.read_bytes()
    index.write_bytes(data[:16] + data[:8])
    assert damage(index) == ["offset 28 at 393 follows 48 at 716"]


def test_an_index_of_full_size_is_no_damage(segment):
    for suffix in (".index", ".timeindex"):
        index = segment.with_suffix(suffix)
        index.write_bytes(index.read_bytes() + bytes(12000))
        assert damage(index) == []
        assert "zeros" in str(findings(index)[0])


def test_half_an_index_entry_is_found(segment):
    index = segment.with_suffix(".index")
    index.write_bytes(index.read_bytes() + b"\x01")
    assert damage(index) == ["1 bytes are left, and an entry has 8"]


def test_a_wrong_timestamp_in_the_time_index_is_found(segment):
    index = segment.with_suffix(".timeindex")
    data = bytearray(index.read_bytes())
    data[7] ^= 1
    index.write_bytes(data)
    assert len(damage(index)) == 1
    assert "in the log that is 1531477349566" in damage(index)[0]


def test_a_time_index_beyond_the_log_is_found(segment):
    index = segment.with_suffix(".timeindex")
    index.write_bytes(index.read_bytes() + (1531477360000).to_bytes(8, "big") + (5000).to_bytes(4, "big"))
    assert damage(index) == ["offset 5000 is not in the log"]


def test_an_index_without_its_log_is_shown_unchecked(segment):
    segment.unlink()
    index = segment.with_suffix(".index")
    assert damage(index) == []
    assert sum(isinstance(entry, OffsetIndexEntry) for entry in dumped(index)) == 8
    assert sum(isinstance(entry, TimeIndexEntry) for entry in dumped(segment.with_suffix(".timeindex"))) == 8


def test_an_aborted_transaction_that_ends_before_it_begins_is_found(segment):
    index = segment.with_name("00000000000000000109.txnindex")
    data = bytearray(index.read_bytes())
    data[17], data[25] = data[25], data[17]
    index.write_bytes(data)
    assert damage(index) == ["the transaction from 114 to 110 is no range of offsets"]


def test_a_snapshot_that_knows_the_future_is_found(segment):
    early = segment.with_name("00000000000000000050.snapshot")
    segment.with_name("00000000000000000109.snapshot").rename(early)
    assert "producer 4 wrote offset 104 after this snapshot" in damage(early)


def test_a_missing_file_is_a_finding(tmp_path):
    assert damage(tmp_path / "00000000000000000000.log") == ["it cannot be read: No such file or directory"]


def test_a_folder_in_place_of_a_file_is_a_finding(tmp_path):
    (tmp_path / "leader-epoch-checkpoint").mkdir()
    assert len(damage(tmp_path / "leader-epoch-checkpoint")) == 1


def test_an_unknown_file_is_said_to_be_unknown(tmp_path):
    (tmp_path / "notes.txt").write_text("hello")
    assert [finding.is_damage for finding in findings(tmp_path / "notes.txt")] == [False]


def test_work_suffixes_do_not_hide_a_files_kind():
    assert kind_of("/x/00000000000000000000.timeindex.deleted") == ".timeindex"
    assert kind_of("copy.log") == ".log"
    assert kind_of("/x/00000000000000000000.log.tmp") is None


# Any bytes


@pytest.mark.parametrize("name", KINDS)
@settings(max_examples=40, deadline=None)
@given(data=st.binary(max_size=300))
def test_any_bytes_are_shown_or_found(tmp_path_factory, name, data):
    path = tmp_path_factory.mktemp("any", numbered=True) / name
    path.write_bytes(data)
    dumped(path)


@settings(max_examples=150, deadline=None)
@given(data=st.data())
def test_no_flipped_bit_of_a_segment_makes_a_dump_fail(tmp_path_factory, data):
    source = DATA / "golden-0"
    files = sorted(file for file in source.iterdir() if file.stat().st_size)
    victim = data.draw(st.sampled_from(files))
    folder = tmp_path_factory.mktemp("flip", numbered=True)
    for file in files:
        shutil.copyfile(file, folder / file.name)
    damaged = bytearray(victim.read_bytes())
    bit = data.draw(st.integers(0, 8 * len(damaged) - 1))
    damaged[bit // 8] ^= 1 << bit % 8
    (folder / victim.name).write_bytes(damaged)
    found = [message for file in files for message in damage(folder / file.name)]
    # Only the snapshot has a checksum over all of it: an index entry may still point into the right batch.
    if victim.suffix == ".snapshot":
        assert found
