"""What `lane.c`, `followed.c` and `dumped.c` know of frames and batches is what `protocol/` and `records/` say."""

from __future__ import annotations

import re
from pathlib import Path

import ottla.native
from ottla.handlers.produce.lanes import LANE_FRAME_BYTES_MAX
from ottla.protocol import fields
from ottla.protocol.generated.catalogue import ApiKey
from ottla.protocol.hot import produce_template
from ottla.records import batch, plain, record
from ottla.records.compression import NAMES, UNFOLDS_MAX
from ottla.server.connection import SLOTS_MAX
from ottla.storage.dump.rising_order import OUT_OF_LINE_MAX

SOURCE = Path(ottla.native.__file__).with_name("lane.c").read_text()
OF_FOLLOWERS = Path(ottla.native.__file__).with_name("followed.c").read_text()
OF_DUMPS = Path(ottla.native.__file__).with_name("dumped.c").read_text()
#: Bounds of its own, which nothing outside knows.
OWN = {"PY_SSIZE_T_CLEAN", "Py_LIMITED_API", "MSG_NOSIGNAL", "PROCESSOR_HAS_CRC32C", "crc32c_by_processor"} | {
    "ANSWER_MAX",
    "KEPT_MAX",
    "TAKEN",
    *("PUT", "WORDS_MAX", "TEXT_MIN", "TEXT_ENOUGH", "DIGITS_MAX"),
}


def defined(source: str = SOURCE) -> dict[str, str]:
    return {name: " ".join(text.split("/*")[0].split()) for name, text in re.findall(r"#define (\w+)(.*)", source)}


def expected() -> dict[str, int]:
    key_and_version = fields.INT16.size * 2
    names = (
        *("LENGTH_AT", "LEADER_EPOCH_AT", "MAGIC_AT", "CRC_AT", "ATTRIBUTES_AT", "LAST_OFFSET_DELTA_AT"),
        *("MAX_TIMESTAMP_AT", "PRODUCER_ID_AT", "PRODUCER_EPOCH_AT", "BASE_SEQUENCE_AT", "COUNT_AT"),
        *("HEADER_SIZE", "LOG_OVERHEAD", "MAGIC", "CODEC_MAX"),
    )
    return {name: getattr(batch, name) for name in names} | {
        "LENGTH_BYTES": fields.LENGTH_BYTES,
        "KEY_VERSION_AT": fields.LENGTH_BYTES,
        "KEY_VERSION_BYTES": key_and_version,
        "REQUEST_CORRELATION_AT": fields.LENGTH_BYTES + key_and_version,
        "FIXED_HEAD": fields.REQUEST_HEAD_BYTES,
        "CORRELATION_AT": fields.CORRELATION_AT,
        "LOG_START_BEHIND": produce_template.LOG_START_BEHIND,
        "COUNTED_RECORDS_MAX": plain.COUNTED_RECORDS_MAX,
        "RECORD_BYTES_MIN": record.RECORD_BYTES_MIN,
        "PLAIN_SIZE_MIN": plain.PLAIN_SIZE_MIN,
        "FRAME_MAX": LANE_FRAME_BYTES_MAX,
        "WAITING_MAX": SLOTS_MAX,
    }


def test_its_numbers_are_those_of_python() -> None:
    found = {name: text for name, text in defined().items() if name not in OWN}
    texts = {name: str(number) for name, number in expected().items()}
    texts["PLAIN_SIZE_MIN"] = "(HEADER_SIZE + RECORD_BYTES_MIN)"
    assert found == texts
    assert expected()["PLAIN_SIZE_MIN"] == batch.HEADER_SIZE + record.RECORD_BYTES_MIN


def test_what_a_codec_unfolds_to() -> None:
    (numbers,) = re.findall(r"unfolds_max\[CODEC_MAX \+ 1\] = \{([^}]*)\}", SOURCE)
    assert [int(number) for number in numbers.split(",")] == list(UNFOLDS_MAX[: batch.CODEC_MAX + 1])


def test_what_it_takes_for_granted() -> None:
    # Attributes are compared with the codecs, and a version's first bytes with Produce's key.
    assert set(plain.PLAIN_ATTRIBUTES) == set(range(batch.CODEC_MAX + 1))
    assert ApiKey.PRODUCE == 0
    assert batch.BASE_OFFSET_AT == 0


def test_numbers_of_what_followers_fetch() -> None:
    found = {name: int(text, 0) for name, text in defined(OF_FOLLOWERS).items() if name not in OWN}
    assert found == {name: getattr(batch, name) for name in found}
    assert batch.BASE_OFFSET_AT == 0


def test_numbers_of_what_is_dumped() -> None:
    found = {name: int(text.strip("()"), 0) for name, text in defined(OF_DUMPS).items() if name not in OWN}
    assert found.pop("OUT_OF_LINE_MAX") == OUT_OF_LINE_MAX
    (names,) = re.findall(r"codec_names\[CODEC_MAX \+ 1\] = \{([^}]*)\}", OF_DUMPS)
    assert [name.strip().strip('"') for name in names.split(",")] == [NAMES[codec] for codec in sorted(NAMES)]
    assert found == {name: getattr(batch, name) for name in found}


def test_no_place_is_written_as_a_number() -> None:
    for source in (SOURCE, OF_FOLLOWERS):
        body = source[source.index("static int64_t read64") :]
        body = body[body.index("\n}\n") :]
        assert re.findall(r"\b(?:frame|batch|answer) \+ \d+|\b(?:frame|batch|answer)\[\d+\]", body) == []
