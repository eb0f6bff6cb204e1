"""What `ottla log dump` shows: on files of Kafka's the same as Kafka's own tool; and damage, without ever failing."""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.searches import examples

from ottla.ports.real.disk import RealDisk
from ottla.records.batch import patch_crc
from ottla.records.record import Record, encode_batch
from ottla.storage.dump import Finding, check_file, dump_file, dump_lines, fields, files_of, kind_of, line_of
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
    files = [file for file in files_of(DISK, str(DATA)) if isinstance(file, str)]
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


def test_a_file_that_cannot_be_read_is_unread_and_not_damaged(tmp_path):
    (tmp_path / "leader-epoch-checkpoint").mkdir()
    os.mkfifo(tmp_path / "meta.properties")
    for name, reason in (
        ("00000000000000000000.log", "No such file or directory"),
        ("leader-epoch-checkpoint", "Is a directory"),
        ("meta.properties", "it is no file"),
    ):
        path = str(tmp_path / name)
        assert dumped(tmp_path / name) == [Finding(path, None, reason, is_damage=False, is_unread=True)]


def test_an_index_is_not_damaged_where_the_log_beside_it_cannot_be_read(segment):
    segment.unlink()
    os.mkfifo(segment)
    for suffix in (".index", ".timeindex"):
        (found,) = findings(segment.with_suffix(suffix))
        assert (found.is_damage, found.is_unread) == (False, False)
        assert found.message == "the log file beside it cannot be read (it is no file), so it is not checked with it"


def batches_of(*counts: int, first: int = 0) -> list[bytearray]:
    """Batches that follow each other, with so many records each."""
    made, offset = [], first
    for count in counts:
        records = [Record(offset + n, 1_700_000_000_000, None, b"x") for n in range(count)]
        made.append(bytearray(encode_batch(records, base_offset=offset, leader_epoch=1)))
        offset += count
    return made


def moved(batch: bytearray, offset: int) -> None:
    batch[:8] = offset.to_bytes(8, "big")


@pytest.mark.parametrize("count", [1, 3])
@pytest.mark.parametrize("at", range(8))
@pytest.mark.parametrize("byte", range(8))
def test_a_flipped_byte_in_a_base_offset_names_this_batch_and_no_other(tmp_path, count, at, byte):
    batches = batches_of(*[count] * 8, first=100)
    position = sum(map(len, batches[:at]))
    batches[at][byte] ^= 0x41
    file = tmp_path / "00000000000000000100.log"
    file.write_bytes(b"".join(batches))
    # Behind it the next segment begins, without which nobody can tell a last batch's place.
    following = tmp_path / f"{100 + 8 * count:020}.log"
    following.write_bytes(b"")
    assert [(each.position, each.is_damage) for each in findings(file)] == [(position, True)]
    assert [(each.position, each.is_damage) for each in quietly(file)] == [(position, True)]


def test_two_batches_that_moved_up_are_named_and_not_those_behind_them(tmp_path):
    batches = batches_of(2, 2, 2, 2, 2, 2, 2)
    moved(batches[2], 2_000)
    moved(batches[3], 3_000)
    file = tmp_path / "00000000000000000000.log"
    file.write_bytes(b"".join(batches))
    size = len(batches[0])
    assert [each.position for each in findings(file)] == [2 * size, 3 * size]


def test_offsets_that_go_on_from_lower_ones_are_one_fault_a_batch(tmp_path):
    """A file whose end is another's: where most batches agree is the truth."""
    file = tmp_path / "00000000000000000000.log"
    file.write_bytes(b"".join([*batches_of(*[1] * 20, first=50), *batches_of(1, 1, first=10)]))
    assert len(damage(file)) == 2


@pytest.mark.parametrize("epoch", [0, 2, 7 << 24])
def test_a_leader_epoch_that_goes_back_names_the_batch_that_is_out_of_line(tmp_path, epoch):
    batches = batches_of(*[1] * 8)
    position = sum(map(len, batches[:4]))
    batches[4][12:16] = epoch.to_bytes(4, "big")
    file = tmp_path / "00000000000000000000.log"
    file.write_bytes(b"".join(batches))
    assert [each.position for each in findings(file)] == [position]
    assert "leader epoch" in damage(file)[0]


# Quietly: what is found is the same, whatever is shown


def quietly(path: Path) -> list[Finding]:
    return list(check_file(DISK, str(path)))


@examples(150)
@given(data=st.data())
def test_a_check_finds_what_a_dump_finds(tmp_path_factory, data):
    content = bytearray((DATA / "golden-0" / KINDS[0]).read_bytes())
    for _ in range(data.draw(st.integers(0, 3))):
        content[data.draw(st.integers(0, len(content) - 1))] ^= data.draw(st.integers(1, 255))
    # Checksums that are right again, so that what lies behind them is looked at.
    if data.draw(st.booleans()):
        position = 0
        while 0 <= position < len(content) - 61:
            length = int.from_bytes(content[position + 8 : position + 12], "big", signed=True)
            if not 49 <= length <= len(content) - position:
                break
            patch_crc(memoryview(content)[position : position + length + 12], 0)
            position += length + 12
    folder = tmp_path_factory.mktemp("check", numbered=True)
    file = folder / KINDS[0]
    file.write_bytes(content)
    assert quietly(file) == findings(file)


def test_a_check_says_how_far_it_is(tmp_path):
    file = tmp_path / "00000000000000000000.log"
    file.write_bytes(b"".join(batches_of(*[100] * 3000)))
    seen: list[int] = []
    assert list(check_file(DISK, str(file), passed=seen.append)) == []
    assert sum(seen) == file.stat().st_size
    assert len(seen) > 1


@pytest.mark.parametrize("name", sorted(path.name for path in (DATA / "golden-0").iterdir()))
def test_lines_are_those_of_the_entries(name):
    """The lines of a log are made a batch at a time."""
    path = DATA / "golden-0" / name
    by_entry = "".join(line_of(entry) for entry in dumped(path) if not isinstance(entry, Finding))
    assert "".join(line for line in dump_lines(DISK, str(path)) if isinstance(line, str)) == by_entry


def test_an_unknown_file_is_said_to_be_unknown(tmp_path):
    (tmp_path / "notes.txt").write_text("hello")
    assert [finding.is_damage for finding in findings(tmp_path / "notes.txt")] == [False]


def test_work_suffixes_do_not_hide_a_files_kind():
    assert kind_of("/x/00000000000000000000.timeindex.deleted") == ".timeindex"
    assert kind_of("copy.log") == ".log"
    assert kind_of("/x/00000000000000000000.log.tmp") is None


# Any bytes


@pytest.mark.parametrize("name", KINDS)
@examples(40)
@given(data=st.binary(max_size=300))
def test_any_bytes_are_shown_or_found(tmp_path_factory, name, data):
    path = tmp_path_factory.mktemp("any", numbered=True) / name
    path.write_bytes(data)
    dumped(path)


@examples(150)
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
