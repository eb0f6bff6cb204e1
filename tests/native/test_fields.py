"""What compiled code knows of frames, batches and records is what `protocol/` and `records/` say."""

from __future__ import annotations

import re
from enum import IntEnum
from pathlib import Path

import pytest

import ottla.native
from ottla.formats import json_programs
from ottla.formats.avro import programs as avro_programs
from ottla.formats.protobuf import programs as protobuf_programs
from ottla.handlers.fetch.memo import REMEMBERED_BYTES_MAX
from ottla.handlers.produce.lanes import LANE_FRAME_BYTES_MAX
from ottla.protocol import fields
from ottla.protocol.generated.catalogue import ApiKey
from ottla.protocol.hot import fetch_template, produce_template
from ottla.records import batch, plain, record
from ottla.records.compression import NAMES, UNFOLDS_MAX
from ottla.server.buffers import FIRST_READ_BYTES
from ottla.server.connection import SLOTS_MAX
from ottla.storage.dump.rising_order import OUT_OF_LINE_MAX

NATIVE = Path(ottla.native.__file__).parent
SOURCES = sorted(NATIVE.glob("*.c"))
#: Numbers that stand in a header, and so in no other file.
SHARED = ("batch_fields.h", "columns_of_rows.h", "frames.h", "iso_times.h", "sending.h", "varints.h")
#: Such a place or size, as a number of its own.
PLACE = re.compile(r"(?<![>.])\b(?:at|frame|batch|header|answer) \+ \d+\b|\b(?:frame|batch|header|answer)\[\d+\]")


def source(name: str) -> str:
    return (NATIVE / name).read_text()


def defined(name: str) -> dict[str, str]:
    """What a file defines as a number, or as a simple expression."""
    found = re.findall(r"#define (\w+)(?: +(.+))?$", source(name), re.MULTILINE)
    return {key: " ".join(text.split("/*")[0].split()) for key, text in found if text}


def number(text: str) -> int:
    return int(text.strip("()"), 0)


def test_a_batch_s_header() -> None:
    found = defined("batch_fields.h")
    assert found.pop("LENGTH_MIN") == "(HEADER_SIZE - LOG_OVERHEAD)"
    assert batch.LENGTH_MIN == batch.HEADER_SIZE - batch.LOG_OVERHEAD
    assert {key: number(text) for key, text in found.items()} == {key: getattr(batch, key) for key in found}
    assert batch.BASE_OFFSET_AT == 0


def test_frames() -> None:
    found = defined("frames.h")
    key_and_version = fields.INT16.size * 2
    assert {key: found[key] for key in found if key != "TAKEN"} == {
        "LENGTH_BYTES": str(fields.LENGTH_BYTES),
        "KEY_VERSION_AT": str(fields.LENGTH_BYTES),
        "KEY_VERSION_BYTES": str(key_and_version),
        "REQUEST_CORRELATION_AT": str(fields.LENGTH_BYTES + key_and_version),
        "FIXED_HEAD": str(fields.REQUEST_HEAD_BYTES),
        "CORRELATION_AT": str(fields.CORRELATION_AT),
        "CORRELATION_END": str(fields.CORRELATION_END),
    }


def test_records() -> None:
    assert number(defined("varints.h")["RECORD_BYTES_MIN"]) == record.RECORD_BYTES_MIN


def test_a_lane_s_numbers() -> None:
    found = defined("lane.c")
    expected = {
        "LOG_START_BEHIND": produce_template.LOG_START_BEHIND,
        "COUNTED_RECORDS_MAX": plain.COUNTED_RECORDS_MAX,
        "FRAME_MAX": LANE_FRAME_BYTES_MAX,
        "WAITING_MAX": SLOTS_MAX,
    }
    assert {key: number(found[key]) for key in expected} == expected
    assert found["PLAIN_SIZE_MIN"] == "(HEADER_SIZE + RECORD_BYTES_MIN)"
    assert plain.PLAIN_SIZE_MIN == batch.HEADER_SIZE + record.RECORD_BYTES_MIN


def test_a_fetch_lane_s_numbers() -> None:
    found = defined("fetch_lane.c")
    assert number(found["FETCH"]) == ApiKey.FETCH
    assert number(found["OFFSET_BYTES"]) == fetch_template.OFFSET_BYTES
    assert number(found["REMEMBERED_MAX"]) == REMEMBERED_BYTES_MAX
    assert found["ANSWER_MAX"] == "(64 * 1024)"
    assert FIRST_READ_BYTES == 64 * 1024


def test_what_a_codec_unfolds_to() -> None:
    (numbers,) = re.findall(r"unfolds_max\[CODEC_MAX \+ 1\] = \{([^}]*)\}", source("lane.c"))
    assert [int(one) for one in numbers.split(",")] == list(UNFOLDS_MAX[: batch.CODEC_MAX + 1])


def test_what_lanes_take_for_granted() -> None:
    # Attributes are compared with the codecs, and a version's first bytes with Produce's key.
    assert set(plain.PLAIN_ATTRIBUTES) == set(range(batch.CODEC_MAX + 1))
    assert ApiKey.PRODUCE == 0


def test_numbers_of_what_is_dumped() -> None:
    assert number(defined("dumped.c")["OUT_OF_LINE_MAX"]) == OUT_OF_LINE_MAX
    (names,) = re.findall(r"codec_names\[CODEC_MAX \+ 1\] = \{([^}]*)\}", source("dumped.c"))
    assert [name.strip().strip('"') for name in names.split(",")] == [NAMES[codec] for codec in sorted(NAMES)]


@pytest.mark.parametrize(
    ("name", "kinds"),
    [("avro.c", avro_programs.Kind), ("json.c", json_programs.Kind), ("protobuf.c", protobuf_programs.Kind)],
)
def test_kinds_of_nodes(name: str, kinds: type[IntEnum]) -> None:
    (text,) = re.findall(r"enum Kind \{(.*?)\};", source(name), re.DOTALL)
    names = [one.split()[0] for one in re.sub(r"/\*.*?\*/", "", text, flags=re.DOTALL).split(",")]
    assert names == [*kinds.__members__, "KINDS"]
    assert [*kinds] == [*range(len(kinds))]


def test_what_a_header_defines_is_defined_nowhere_else() -> None:
    shared = {name for header in SHARED for name in defined(header)}
    for path in SOURCES:
        again = shared & set(defined(path.name))
        assert again == set(), path.name


def test_no_place_is_written_as_a_number() -> None:
    for path in SOURCES:
        if '#include "batch_fields.h"' in path.read_text():
            assert PLACE.findall(path.read_text()) == [], path.name
