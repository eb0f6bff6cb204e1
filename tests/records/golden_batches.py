"""The batches that Apache Kafka's own classes wrote (java/BatchOracle.java), and what Kafka read from them.

python -m tests.records.golden_batches    writes them again, with the jars that tools.kafka_jars finds
"""

from __future__ import annotations

import shutil
import subprocess
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest
from crc32c import crc32c
from tools.java import java_command
from tools.kafka_jars import classpath

from ottla.records.record import Record

HERE = Path(__file__).parent
GOLDEN = HERE / "golden-batches.txt"
PROGRAM = HERE / "java" / "BatchOracle.java"
ORACLE_SECONDS_MAX = 120
#: Kafka writes longer values as their length and checksum.
_BRIEF_BYTES = 1000


class GoldenBatch(NamedTuple):
    name: str
    raw: bytes
    #: As printed: offset, timestamp, key, value, headers.
    records: tuple[str, ...]


@cache
def golden_batches() -> dict[str, GoldenBatch]:
    return {batch.name: batch for batch in _parse(GOLDEN.read_text())}


def _parse(text: str) -> list[GoldenBatch]:
    found: list[GoldenBatch] = []
    name, raw, records = "", b"", list[str]()
    for line in text.splitlines():
        kind, _, rest = line.partition(" ")
        if kind == "batch":
            name, _, hexadecimal = rest.partition(" ")
            raw, records = bytes.fromhex(hexadecimal), []
        elif kind == "record":
            records.append(rest)
        else:
            assert line == f"end {len(records)}"
            found.append(GoldenBatch(name, raw, tuple(records)))
    return found


def printed(record: Record) -> str:
    """A record in the words of the oracle."""
    headers = "".join(f" {in_hex(name.encode())}={in_hex(value)}" for name, value in record.headers)
    return f"{record.offset} {record.timestamp} {in_hex(record.key)} {_briefly(record.value)}{headers}"


def _briefly(value: bytes | None) -> str:
    return in_hex(value) if value is None or len(value) <= _BRIEF_BYTES else f"#{len(value)}:{crc32c(value)}"


def in_hex(raw: bytes | None) -> str:
    return "-" if raw is None else raw.hex() or "."


def ask_kafka(jars: Path, mode: str, lines: list[str]) -> list[str]:
    """What the oracle prints for `lines`; its classes are those in `jars`."""
    if shutil.which("java") is None:
        pytest.skip("java is not installed: Kafka's own classes cannot be asked")
    command = java_command(classpath(jars), str(PROGRAM), mode)
    done = subprocess.run(
        command,
        input="".join(line + "\n" for line in lines),
        capture_output=True,
        text=True,
        timeout=ORACLE_SECONDS_MAX,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


if __name__ == "__main__":
    from tests.records import verdict_cases
    from tools.kafka_jars import KAFKA, jars

    found = jars(KAFKA)
    GOLDEN.write_text("".join(line + "\n" for line in ask_kafka(found, "golden", [])))
    verdict_cases.write_golden(ask_kafka(found, "verdict", [case.line for case in verdict_cases.cases()]))
