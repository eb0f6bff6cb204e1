"""Produced batches, good and bad in every way we know, with what Apache Kafka's broker answers to each.

The answers stand in golden-verdicts.txt, as `name: error code and indexes of refused records`; `golden_batches` writes
them. Where our broker means to answer otherwise, `DIFFERENT` says so, and docs/formats/batch-checks.md why.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import cramjam
from tests.records.generated_records import NOW

from ottla.records import batch
from ottla.records.batch import CREATE_TIME, LOG_APPEND_TIME
from ottla.records.builder import build_batch
from ottla.records.compression import NAMES, SNAPPY, compress
from ottla.records.record import Record, encode_batch
from ottla.records.validate import NO_BOUND_MS, AppendRules

GOLDEN = Path(__file__).parent / "golden-verdicts.txt"
HOUR_MS = 3_600_000
MAX_BYTES = 1000


class Case(NamedTuple):
    name: str
    raw: bytes
    rules: AppendRules
    api_version: int = 9

    @property
    def line(self) -> str:
        """As the oracle's `verdict` reads it."""
        rules = self.rules
        words = (str(rules.compacted).lower(), rules.timestamp_type, rules.before_max_ms, rules.after_max_ms)
        more = (NOW, rules.max_message_bytes, self.api_version, "-", self.raw.hex() or ".")
        return " ".join(map(str, words + more))


TOPICS = {
    "plain": AppendRules(MAX_BYTES, after_max_ms=HOUR_MS),
    "compacted": AppendRules(MAX_BYTES, compacted=True, before_max_ms=NO_BOUND_MS, after_max_ms=HOUR_MS),
    "bounded": AppendRules(MAX_BYTES, timestamp_type=CREATE_TIME, before_max_ms=1000, after_max_ms=HOUR_MS),
    "append-time": AppendRules(MAX_BYTES, timestamp_type=LOG_APPEND_TIME, after_max_ms=HOUR_MS),
}

#: Case name -> our answer in a topic where it is not Kafka's.
DIFFERENT: dict[str, str] = {
    # Header checks trust what only a walk over the records could refute.
    **{
        f"{topic}/{name}": "NONE"
        for topic in ("plain", "append-time")
        for name in (
            "gzip block",
            "lz4 block",
            "zstd block",
            "snappy block",
            "short gzip",
            "short lz4",
            "short snappy",
            "short zstd",
            "count above, gzip",
            "count below, gzip",
            "same offsets, gzip",
            "key length, gzip",
            "key length",
            "headers",
            "trailing block, zstd",
        )
    },
    "plain/late behind the header's back": "NONE",
    "plain/latest time too high": "INVALID_TIMESTAMP",
    "compacted/latest time too high": "INVALID_TIMESTAMP",
    "bounded/latest time too high": "INVALID_TIMESTAMP",
    # Kafka stores these with the offsets that they claim, or fails to.
    "compacted/same offsets": "INVALID_RECORD",
    "bounded/same offsets": "INVALID_RECORD",
    "compacted/same offsets, gzip": "INVALID_RECORD",
    "bounded/same offsets, gzip": "INVALID_RECORD",
    # Kafka's gzip reader passes over what follows its stream.
    "compacted/trailing block, gzip": "UNKNOWN_SERVER_ERROR",
    "bounded/trailing block, gzip": "UNKNOWN_SERVER_ERROR",
}


def cases() -> list[Case]:
    found = [
        Case(f"{topic}/{name}", raw, rules)
        for topic, rules in TOPICS.items()
        for name, raw in (_headers() | _bodies()).items()
    ]
    small = encode_batch(_three())
    found.append(Case("size at the limit", small, TOPICS["plain"]._replace(max_message_bytes=len(small))))
    found.append(Case("size above the limit", small, TOPICS["plain"]._replace(max_message_bytes=len(small) - 1)))
    found.extend(
        Case(f"zstd in version {v}", encode_batch(_three(), compression=4), TOPICS["plain"], v) for v in (3, 6, 7)
    )
    return found


def kafka_answers() -> dict[str, str]:
    """By case name: the error's name, and the refused records if any."""
    return dict(_pairs(GOLDEN.read_text().splitlines()))


def _pairs(lines: list[str]) -> Iterator[tuple[str, str]]:
    for line in lines:
        name, _, answer = line.rpartition(": ")
        yield name, answer


def write_golden(answers: list[str]) -> None:
    GOLDEN.write_text("".join(f"{case.name}: {brief(a)}\n" for case, a in zip(cases(), answers, strict=True)))


def brief(answer: str) -> str:
    """The oracle's answer without the stored bytes of an accepted batch."""
    code, _, rest = answer.partition(" ")
    return code if code == "NONE" or rest == "-" else f"{code} {rest}"


def _three(key: bytes | None = b"k") -> list[Record]:
    return [Record(index, NOW + index, key, b"v") for index in range(3)]


def _patched(raw: bytes, position: int, form: str, value: int) -> bytes:
    changed = bytearray(raw)
    struct.pack_into(form, changed, position, value)
    batch.patch_crc(changed, 0)
    return bytes(changed)


def _counted(raw: bytes, count: int) -> bytes:
    return _patched(_patched(raw, batch.COUNT_AT, ">i", count), batch.LAST_OFFSET_DELTA_AT, ">i", count - 1)


def _headers() -> dict[str, bytes]:
    good = encode_batch(_three())
    producer = encode_batch(_three(), producer_id=5, producer_epoch=0, base_sequence=0)
    attributes = {"control": 0x20, "delete horizon": 0x40, "ninth bit": 0x100, "sign": -0x8000, "append time": 8}
    found = {
        "good": good,
        "good producer": producer,
        "producer without sequence": _patched(producer, batch.BASE_SEQUENCE_AT, ">i", -1),
        "producer -2": _patched(producer, batch.PRODUCER_ID_AT, ">q", -2),
        "nothing": b"",
        "header cut": good[:50],
        "cut": good[:-1],
        "some bytes behind": good + b"abc",
        "partial batch behind": good + good[:30],
        "zeros behind": good + bytes(20),
        "two batches": good + good,
        "checksum": good[:-2] + b"w\0",
        "base offset": _patched(good, 0, ">q", 5),
        "count alone above": _patched(good, batch.COUNT_AT, ">i", 4),
        "count alone below": _patched(good, batch.COUNT_AT, ">i", 2),
        "count above": _counted(good, 4),
        "count below": _counted(good, 2),
        "count of one": _counted(good, 1),
        "count of millions": _counted(good, 10**6),
        "no records": build_batch(b"", count=0, last_offset_delta=0, base_timestamp=NOW, max_timestamp=NOW),
        "no offsets": build_batch(b"", count=0, last_offset_delta=-1, base_timestamp=NOW, max_timestamp=NOW),
        "offsets with gaps": encode_batch([Record(0, NOW, b"k", b"v"), Record(5, NOW, b"k", b"v")]),
        "latest time too high": _patched(good, batch.MAX_TIMESTAMP_AT, ">q", NOW + HOUR_MS + 1),
    }
    found |= {f"magic {magic}": good[:16] + bytes([magic & 255]) + good[17:] for magic in (-1, 0, 1, 3)}
    found |= {f"codec {codec}": _patched(good, batch.ATTRIBUTES_AT, ">h", codec) for codec in (5, 6, 7)}
    found |= {f"attributes, {n}": _patched(good, batch.ATTRIBUTES_AT, ">h", bits) for n, bits in attributes.items()}
    found |= {f"length {n}": good[:8] + struct.pack(">i", n) + good[12:] for n in (-1, 0, 13, 40, 10**9)}
    return found


def _bodies() -> dict[str, bytes]:
    good = encode_batch(_three())
    records = good[batch.HEADER_SIZE :]
    times = {"": (NOW, NOW + HOUR_MS), "early ": (NOW, NOW - 1001), "late ": (NOW, NOW + HOUR_MS + 1), "no ": (-1, -1)}
    found = {f"{n}time": encode_batch([Record(i, t, b"k", b"v") for i, t in enumerate(ts)]) for n, ts in times.items()}
    found["early time, late key"] = encode_batch([Record(0, NOW - 2000, b"k", b""), Record(1, NOW, None, b"")])
    found["no key"] = encode_batch([Record(0, NOW, b"k", b""), Record(1, NOW, None, b""), Record(2, NOW, None, b"")])
    found["no key, late"] = encode_batch([Record(0, NOW, b"k", b""), Record(1, NOW + HOUR_MS + 1, None, b"")])
    found["no key, another late"] = encode_batch([Record(0, NOW, None, b""), Record(1, NOW + HOUR_MS + 1, b"", b"")])
    found["no time, append time"] = _patched(found["no time"], batch.ATTRIBUTES_AT, ">h", 8)
    found["late time, append time"] = _patched(found["late time"], batch.ATTRIBUTES_AT, ">h", 8)
    found["early time, append time"] = _patched(
        encode_batch([Record(0, NOW - 2000, b"k", b"v")]), batch.ATTRIBUTES_AT, ">h", 8
    )
    found["late behind the header's back"] = _patched(found["late time"], batch.MAX_TIMESTAMP_AT, ">q", NOW)
    gaps = [Record(0, NOW, b"k", b"v"), Record(5, NOW, b"k", b"v")]
    found["same offsets"] = _counted(encode_batch(gaps), 2)
    found["same offsets, gzip"] = _counted(encode_batch(gaps, compression=1), 2)
    found["record of no length"] = _with_records(b"\x01" + records[1:])
    found["record too long"] = _with_records(b"\x14" + records[1:])
    found["key length"] = _with_records(records[:4] + b"\x7e" + records[5:])
    found["key length, gzip"] = _with_records(compress(1, records[:4] + b"\x7e" + records[5:]), 1)
    found["headers"] = _with_records(records[:8] + b"\x02" + records[9:])
    for codec, name in NAMES.items():
        if codec:
            packed = encode_batch(_three(), compression=codec)
            found[f"good {name}"] = packed
            found[f"{name} block"] = _patched(good, batch.ATTRIBUTES_AT, ">h", codec)
            found[f"short {name}"] = _with_records(compress(codec, records)[:-3], codec)
    found["good snappy, raw"] = _with_records(bytes(cramjam.snappy.compress_raw(records)), SNAPPY)
    packed = encode_batch(_three(), compression=1)
    found["count above, gzip"], found["count below, gzip"] = _counted(packed, 4), _counted(packed, 2)
    found["trailing block, gzip"] = _with_records(compress(1, records) + b"abcdefgh", 1)
    found["trailing block, zstd"] = _with_records(compress(4, records) + b"abcdefgh", 4)
    return found


def _with_records(records: bytes, codec: int = 0) -> bytes:
    """Three records by the header, whatever they are, compressed already."""
    good = bytearray(encode_batch(_three())[: batch.HEADER_SIZE]) + records
    struct.pack_into(">i", good, batch.LENGTH_AT, len(good) - batch.LOG_OVERHEAD)
    return _patched(bytes(good), batch.ATTRIBUTES_AT, ">h", codec)
