"""`ottla log dump`: every field, every kind of file, and an exit code that tells damage."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

import pytest
import yaml
from confluent_kafka import Producer

from ottla.cli import faults
from ottla.records.record import Record, encode_batch
from ottla.testing import broker as broker_in_process
from tests.cli.conftest import Command, Ran, run_minding_modes

#: Of the first record; the others are near, since a record of another year would begin a segment.
TIME_MS = 1531477349286
#: Long enough to be worth compressing: librdkafka sends what does not shrink as it is.
TWO_LINES = "two\n" + "lines" * 40
HEADERS: list[tuple[str, str | bytes | None]] = [("h", b"1"), ("n", None)]


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What a broker leaves behind: a topic with a plain batch and a compressed one."""
    folder = tmp_path_factory.mktemp("data")
    with broker_in_process(data=folder) as broker:
        broker.create_topic("test0", configs={"retention.ms": "-1"})
        common = {"bootstrap.servers": broker.bootstrap, "linger.ms": 1000}
        plain = Producer({**common, "acks": 1})
        plain.produce("test0", "message_5371", timestamp=TIME_MS)
        assert plain.flush(30) == 0
        packed = Producer({**common, "enable.idempotence": True, "compression.type": "zstd"})
        for number in range(2):
            value = b"\xff" if number else TWO_LINES
            packed.produce("test0", value, f"k{number}", headers=HEADERS, timestamp=TIME_MS + number)
        assert packed.flush(30) == 0
    return folder / "data"


@pytest.fixture
def segment(data: Path, tmp_path: Path) -> Path:
    """A copy of the segment, to be damaged."""
    copy = tmp_path / "00000000000000000000.log"
    copy.write_bytes((data / "test0-0" / copy.name).read_bytes())
    return copy


def test_a_line_has_every_field_of_the_classic_dump(in_process: Command, data: Path) -> None:
    ran = in_process("log", "dump", str(data / "test0-0" / "00000000000000000000.log"))
    assert ran.code == 0
    batch, record = ran.lines[1:3]
    assert re.fullmatch(
        r"baseOffset: 0 lastOffset: 0 count: 1 baseSequence: -1 lastSequence: -1 producerId: -1 producerEpoch: -1 "
        r"partitionLeaderEpoch: 0 isTransactional: false isControl: false position: 0 CreateTime: 1531477349286 "
        r"size: \d+ magic: 2 compresscodec: none crc: \d+ isvalid: true",
        batch,
    )
    assert record == (
        "| offset: 0 position: 0 CreateTime: 1531477349286 isvalid: true keysize: -1 valuesize: 12 magic: 2 "
        "compresscodec: none producerId: -1 producerEpoch: -1 sequence: -1 isTransactional: false headerKeys: [] "
        "payload: message_5371"
    )
    assert "compresscodec: zstd" in ran.lines[3]
    assert ran.lines[4].endswith("headerKeys: [h,n] key: k0 payload: two\\n" + "lines" * 40)
    assert ran.lines[5].endswith("key: k1 payload: \\xff")
    assert len(ran.lines) == 6


def test_kafkas_flags_are_understood(in_process: Command, data: Path) -> None:
    file = str(data / "test0-0" / "00000000000000000000.log")
    plain = in_process("log", "dump", file)
    assert (
        in_process("log", "dump", "--files", f"{file},{file}", "--print-data-log", "--deep-iteration").out
        == plain.out * 2
    )


def test_a_folder_stands_for_all_that_is_in_it(in_process: Command, data: Path) -> None:
    ran = in_process("log", "dump", str(data))
    assert (ran.code, ran.err) == (0, "")
    dumped = [os.path.basename(line.removeprefix("Dumping ")) for line in ran.lines if line.startswith("Dumping ")]
    assert {"meta.properties", "replication-offset-checkpoint", "leader-epoch-checkpoint", "partition.metadata"} <= set(
        dumped
    )
    assert {".log", ".index", ".timeindex", ".snapshot"} <= {os.path.splitext(name)[1] for name in dumped}
    assert "topic: test0 partition: 0 offset: 3" in ran.lines
    assert any(line.startswith("producerId: ") and " lastOffset: 2 " in line for line in ran.lines)


def test_json_is_an_object_a_line(in_process: Command, data: Path) -> None:
    ran = in_process("log", "dump", str(data), "-o", "json")
    entries = [json.loads(line) for line in ran.lines]
    records = [each for each in entries if each["kind"] == "record"]
    assert [each["payload"] for each in records] == ["message_5371", TWO_LINES, {"base64": "/w=="}]
    assert records[1]["headers"] == [["h", "1"], ["n", None]]
    assert {"batch", "record", "producer", "property", "epoch", "offset", "timeindex"} <= {
        each["kind"] for each in entries
    }


def test_yaml_is_one_list(in_process: Command, segment: Path) -> None:
    entries = yaml.safe_load(in_process("log", "dump", str(segment), "-o", "yaml", "--batches-only").out)
    assert [each["count"] for each in entries] == [1, 2]


def test_a_flipped_bit_is_found(in_process: Command, segment: Path) -> None:
    content = bytearray(segment.read_bytes())
    content[70] ^= 1
    segment.write_bytes(content)
    ran = in_process("log", "dump", str(segment))
    assert ran.code == faults.FAILED
    assert f"damage: {segment} at byte 0: the checksum of the batch at offset 0 is wrong" in ran.err.splitlines()
    assert "isvalid: false" in ran.lines[1]
    quiet = in_process("log", "dump", "--quiet", str(segment))
    assert (quiet.code, quiet.out, quiet.err) == (faults.FAILED, "", ran.err)
    told = [json.loads(line) for line in in_process("log", "dump", "--quiet", str(segment), "-o", "json").lines]
    assert [(each["kind"], each["damage"], each["position"]) for each in told] == [("finding", True, 0)]


def test_a_torn_end_is_found(in_process: Command, segment: Path) -> None:
    content = segment.read_bytes()
    segment.write_bytes(content[:-7])
    assert in_process("log", "dump", "--quiet", str(segment)).code == faults.FAILED


def test_room_that_was_not_used_is_no_damage(in_process: Command, segment: Path) -> None:
    segment.write_bytes(segment.read_bytes() + bytes(4096))
    ran = in_process("log", "dump", str(segment))
    assert ran.code == 0
    assert ran.err.startswith("note: ")


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("replication-offset-checkpoint", b"0\n2\na 0 5\n"),
        ("leader-epoch-checkpoint", b"0\n1\nzero 0\n"),
        ("meta.properties", b"version=9\n"),
        ("00000000000000000005.snapshot", b"\x00\x01garbage"),
        ("00000000000000000005.timeindex", b"\x00" * 7),
        ("00000000000000000005.txnindex", b"\xff" * 34),
    ],
)
def test_damage_in_other_files_is_found(in_process: Command, tmp_path: Path, name: str, content: bytes) -> None:
    (tmp_path / name).write_bytes(content)
    ran = in_process("log", "dump", str(tmp_path / name))
    assert ran.code == faults.FAILED
    assert f"damage: {tmp_path / name}" in ran.err


def test_a_file_of_no_known_kind_does_not_pass_for_sound(in_process: Command, segment: Path) -> None:
    other = segment.with_name("notes.txt")
    other.write_text("")
    said = f"ottla: not looked at, since no file of a log directory has such a name: {other}\n"
    for words in (("--quiet", str(other)), (str(other),)):
        assert in_process("log", "dump", *words) == Ran(code=faults.USAGE, out="", err=said)
    ran = in_process("log", "dump", str(other), str(segment))
    assert (ran.code, ran.err, len(ran.lines)) == (faults.USAGE, said, 6)
    segment.write_bytes(segment.read_bytes()[:-7])
    assert in_process("log", "dump", "--quiet", str(other), str(segment)).code == faults.FAILED


def test_what_others_call_a_log_is_passed_over_below_folders(in_process: Command, segment: Path) -> None:
    folder = segment.parent / "deeper"
    folder.mkdir()
    (folder / "npm-debug.log").write_text("0 info it worked if it ends with ok\n")
    ran = in_process("log", "dump", str(segment.parent))
    assert (ran.code, ran.err, len(ran.lines)) == (0, "", 6)
    copy = segment.with_name("copy.log")  # a file that is named is what it is called
    copy.write_bytes(segment.read_bytes())
    assert len(in_process("log", "dump", str(copy)).lines) == 6


def test_what_is_not_there(in_process: Command, tmp_path: Path) -> None:
    ran = in_process("log", "dump", str(tmp_path / "none.log"))
    assert (ran.code, ran.err) == (faults.NOT_FOUND, f"ottla: there is no file or folder {tmp_path}/none.log\n")
    assert in_process("log", "dump", str(tmp_path)).code == faults.NOT_FOUND


def test_a_file_that_cannot_be_read_is_not_damaged(in_process: Command, segment: Path) -> None:
    os.mkfifo(segment.with_name("00000000000000000005.log"))
    for words in ((str(segment.parent),), ("--quiet", str(segment.parent))):
        ran = in_process("log", "dump", *words)
        assert (ran.code, ran.err) == (
            faults.USAGE,
            f"ottla: cannot read {segment.parent}/00000000000000000005.log: it is no file\n",
        )
    segment.write_bytes(segment.read_bytes()[:-7])
    ran = in_process("log", "dump", "--quiet", str(segment.parent))
    assert ran.code == faults.FAILED
    assert ran.err.splitlines()[-1] == "ottla: 1 fault was found in 2 files"


def test_a_folder_that_cannot_be_read_is_named_and_the_others_are_shown(segment: Path) -> None:
    closed = segment.parent / "closed"
    closed.mkdir(mode=0o111)
    ran = run_minding_modes("log", "dump", "-o", "json", str(segment.parent))
    assert (ran.code, ran.err) == (faults.USAGE, f"ottla: cannot read {closed}: Permission denied\n")
    assert len(ran.lines) == 5
    ran = run_minding_modes("log", "dump", str(closed))
    assert (ran.code, ran.out, ran.err) == (faults.USAGE, "", f"ottla: cannot read {closed}: Permission denied\n")


def test_a_flipped_byte_in_a_base_offset_names_one_batch(in_process: Command, tmp_path: Path) -> None:
    batches = [bytearray(encode_batch([Record(n, TIME_MS, None, b"x")], base_offset=n)) for n in range(9)]
    batches[2][6] ^= 1
    file = tmp_path / "00000000000000000000.log"
    file.write_bytes(b"".join(batches))
    position = len(batches[0]) * 2
    ran = in_process("log", "dump", "--quiet", str(file))
    assert ran.code == faults.FAILED
    assert ran.err.splitlines() == [
        f"damage: {file} at byte {position}: offset 258 has no place between 1 and 3",
        "ottla: 1 fault was found in 1 file",
    ]
