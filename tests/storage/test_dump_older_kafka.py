"""Segments of Kafka 0.8 to 0.10, and of 0.7, as `ottla log dump` shows them, and what it says of damaged ones."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest
from tests.records.generated_records import NOW
from tests.records.test_first_messages import entry
from tests.records.test_old_messages import message, written

from ottla.ports.real.disk import RealDisk
from ottla.records.compression import GZIP, LZ4, SNAPPY, compress
from ottla.records.record import Record, encode_batch
from ottla.storage.dump import Finding, check_file, dump_file, dump_lines, files_of
from ottla.storage.dump.entries import RecordEntry

DISK = RealDisk()
#: What Apache Kafka 4.3.1's DumpLogSegments says of the messages of `mixed`; the compressed ones unfold below them.
KAFKAS_LINES = """\
offset: 0 position: 0 NoTimestampType: -1 size: 33 magic: 0 compresscodec: none crc: 3582861217 isvalid: true
offset: 1 position: 33 NoTimestampType: -1 size: 32 magic: 0 compresscodec: none crc: 2800896157 isvalid: true
offset: 2 position: 65 NoTimestampType: -1 size: 28 magic: 0 compresscodec: none crc: 3057896042 isvalid: true
offset: 3 position: 93 NoTimestampType: -1 size: 26 magic: 0 compresscodec: none crc: 3817498742 isvalid: true
offset: 4 position: 119 CreateTime: 1764000000000 size: 41 magic: 1 compresscodec: none crc: 1867073004 isvalid: true
offset: 5 position: 160 CreateTime: 1764000000001 size: 40 magic: 1 compresscodec: none crc: 140893057 isvalid: true
offset: 6 position: 200 CreateTime: 1764000000002 size: 36 magic: 1 compresscodec: none crc: 3408561695 isvalid: true
offset: 7 position: 236 CreateTime: 1764000000003 size: 34 magic: 1 compresscodec: none crc: 1295193250 isvalid: true
"""


def segment(folder: Path, data: bytes, offset: int = 0, kind: str = "log") -> Path:
    path = folder / f"{offset:020d}.{kind}"
    path.write_bytes(data)
    return path


def lines(path: Path) -> list[str]:
    return [line for line in dump_lines(DISK, str(path)) if isinstance(line, str)]


def findings(path: Path) -> list[Finding]:
    """The same by either way."""
    found = [one for one in dump_file(DISK, str(path)) if isinstance(one, Finding)]
    assert list(check_file(DISK, str(path))) == found
    assert [one for one in dump_lines(DISK, str(path)) if isinstance(one, Finding)] == found
    return found


def records(path: Path) -> list[RecordEntry]:
    return [one for one in dump_file(DISK, str(path)) if isinstance(one, RecordEntry)]


def test_messages_are_shown_as_by_kafkas_tool(tmp_path: Path) -> None:
    path = segment(tmp_path, written(0) + written(1, first=4))
    assert [line for line in lines(path) if line.startswith("offset")] == KAFKAS_LINES.splitlines(keepends=True)
    assert lines(path)[1] == (
        "| offset: 0 position: 0 NoTimestampType: -1 isvalid: true keysize: 2 valuesize: 5 magic: 0 "
        "compresscodec: none key: k1 payload: first\n"
    )
    assert findings(path) == []


def test_messages_of_both_formats_and_batches_may_follow_each_other(tmp_path: Path) -> None:
    """As in a log that was upgraded twice."""
    batch = encode_batch([Record(20, NOW, b"k", b"new")], base_offset=20)
    data = written(0) + written(0, GZIP, 4) + written(1, SNAPPY, 8) + written(1, LZ4, 12) + written(1, 0, 16) + batch
    path = segment(tmp_path, data)
    assert findings(path) == []
    found = records(path)
    assert [one.offset for one in found] == list(range(21))
    assert [one.magic for one in found] == [0] * 8 + [1] * 12 + [2]
    assert {one.compression for one in found} == {"none", "gzip", "snappy", "lz4"}


def test_indexes_of_such_segments_are_no_damage(tmp_path: Path) -> None:
    """Brokers of that time wrote the first offset of what they appended at once, of a wrapper too."""
    plain = written(1)
    segment(tmp_path, plain + written(1, GZIP, 4))
    index = segment(tmp_path, struct.pack(">iiii", 2, 81, 4, len(plain)), kind="index")
    times = segment(tmp_path, struct.pack(">qi", NOW + 3, 3), kind="timeindex")
    assert findings(times) == []
    assert findings(index) == []
    index.write_bytes(struct.pack(">ii", 2, 70))
    assert "no batch of the log begins" in findings(index)[0].message


@pytest.mark.parametrize(
    ("damaged", "position", "words"),
    [
        (lambda data: data[:-3], 56, "are left"),
        (lambda data: data[:69], 56, "13 bytes are left"),
        (lambda data: data[:46] + b"X" + data[47:], 0, "checksum of the message at offset 0 is wrong"),
        (lambda data: data[:26] + b"\x7f" + data[27:], 0, "its key has"),
        (lambda data: message(offset=9) + data, 35, "offset 0 stands where 10 or more is due"),
        (lambda data: data + message(offset=2, attributes=GZIP, value=b"?"), 125, "cannot be read: a gzip block"),
        (lambda data: data + message(offset=0, attributes=GZIP, value=compress(GZIP, data)), 125, "record -1 has no"),
    ],
)
def test_damage_is_named_with_its_position(tmp_path: Path, damaged: object, position: int, words: str) -> None:
    data = message(offset=0, value=b"a value of some length") + message(offset=1, value=bytes(35))
    path = segment(tmp_path, damaged(data))  # type: ignore[operator]
    found = [one for one in findings(path) if words in one.message]
    assert [(one.position, one.is_damage) for one in found] == [(position, True)]


def test_zeros_behind_the_last_message_are_room(tmp_path: Path) -> None:
    (note,) = findings(segment(tmp_path, written(1) + bytes(1000)))
    assert not note.is_damage


def test_a_file_of_kafka_0_7(tmp_path: Path) -> None:
    packed = entry(compress(GZIP, entry(b"two") + entry(b"three")), magic=1, codec=GZIP)
    data = entry(b"one") + packed
    path = segment(tmp_path, data, 100, "kafka")
    segment(tmp_path, entry(b"four"), 100 + len(data), "kafka")
    assert [(one.offset, one.value) for one in records(path)] == [(100, b"one"), (112, b"two"), (112, b"three")]
    assert lines(path)[0] == (
        "offset: 100 position: 0 NoTimestampType: -1 size: 12 magic: 0 compresscodec: none crc: 2053932785 "
        "isvalid: true\n"
    )
    assert lines(path)[1].endswith(" keysize: -1 valuesize: 3 magic: 0 compresscodec: none payload: one\n")
    assert findings(path) == []
    assert [Path(str(each)).name for each in files_of(DISK, str(tmp_path))] == [
        f"{100:020d}.kafka",
        f"{100 + len(data):020d}.kafka",
    ]


@pytest.mark.parametrize(
    ("data", "position", "words"),
    [
        (entry(b"one") + entry(b"two")[:-1], 12, "it has 8 bytes, and 7 are left"),
        (entry(b"one") + b"\0\0", 12, "2 bytes are left, and a length has 4"),
        (entry(b"one") + struct.pack(">i", 2**31 - 1) + b"x" * 9, 12, "is more than"),
        (entry(b"one") + struct.pack(">i", 3) + b"x" * 9, 12, "its length 3 is less than 5"),
        (entry(b"one")[:-1] + b"E" + entry(b"two"), 0, "checksum of the message at offset 0 is wrong"),
        (entry(b"one") + entry(b"?", magic=1, codec=GZIP), 12, "cannot be read: a gzip block"),
    ],
)
def test_damage_in_a_file_of_kafka_0_7(tmp_path: Path, data: bytes, position: int, words: str) -> None:
    (found,) = findings(segment(tmp_path, data, kind="kafka"))
    assert (found.position, found.is_damage) == (position, True)
    assert words in found.message


def test_a_file_of_kafka_0_7_ends_where_the_next_begins(tmp_path: Path) -> None:
    path = segment(tmp_path, entry(b"one"), kind="kafka")
    segment(tmp_path, entry(b"two"), 24, "kafka")
    (found,) = findings(path)
    assert found.message == "the file ends at offset 12, and the next one begins at 24"
