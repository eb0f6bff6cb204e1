"""Damaged batches, read by compiled code and in Python: the same rows, then the same error or none.

python -m tests.arrow.mutated_batches ROUNDS [SEED]
"""

from __future__ import annotations

import sys
from random import Random
from typing import NamedTuple

import pyarrow as pa
from tests.arrow.batch_shapes import in_python, some_log
from tests.records.test_old_messages import FORMS, written

from ottla.arrow.decoding import decode
from ottla.arrow.schema import COLUMNS, schema_of
from ottla.arrow.survey import ReadBounds
from ottla.records.batch import HEADER_SIZE, iterate, patch_crc
from ottla.records.errors import RecordError

BYTES = (0, 1, 2, 0x7E, 0x7F, 0x80, 0xFE, 0xFF)
#: A log is damaged so many times before the next one is made.
DAMAGES = 50


def damaged(raw: bytes, chance: Random) -> bytes:
    """A few bytes changed, in headers as often as elsewhere; and, mostly, checksums that match all the same."""
    places = [(pos, header.size) for pos, header in iterate(raw, 0, len(raw))]
    changed = bytearray(raw)
    for _ in range(chance.choice((1, 1, 1, 2, 5))):
        pos, size = chance.choice(places)
        within = min(size, HEADER_SIZE + 40) if chance.randrange(3) else size
        at = pos + chance.randrange(HEADER_SIZE if not chance.randrange(3) else within)
        changed[at] = chance.choice((*BYTES, chance.randrange(256), changed[at] ^ 1 << chance.randrange(8)))
    if chance.randrange(10):
        for pos, size in places:
            if int.from_bytes(changed[pos + 8 : pos + 12], "big") == size - 12:
                patch_crc(changed, pos)
    if not chance.randrange(8):
        del changed[chance.randrange(len(changed)) :]
    return bytes(changed)


class Asked(NamedTuple):
    """What is to be read of a damaged log."""

    columns: tuple[str, ...]
    bounds: ReadBounds
    aborted: tuple[tuple[int, int], ...] | None


def some_question(raw: bytes, chance: Random) -> Asked:
    """All of the log, or in equal parts some columns, a slice of the offsets, and less than what is committed of it."""
    headers = [header for _, header in iterate(raw, 0, len(raw))]
    edges = [edge for header in headers for edge in (header.base_offset, header.next_offset)]
    columns = tuple(chance.sample(COLUMNS, chance.randrange(1, len(COLUMNS)))) if chance.randrange(2) else COLUMNS
    first, until = ReadBounds().first, ReadBounds().until
    if chance.randrange(2):
        first = max(0, chance.choice(edges) + chance.choice((-1, 0, 1, 2)))
    if chance.randrange(2):
        until = max(0, chance.choice(edges) + chance.choice((-1, 0, 1, 2)))
    bounds = ReadBounds(
        first=first,
        until=until,
        rows_max=chance.choice((1, 3, 1000)),
        bytes_max=chance.choice((1, 500, 20_000, ReadBounds().bytes_max)),
        check_crcs=bool(chance.randrange(5)),
    )
    hidden = [(header.base_offset, header.producer_id) for header in headers if header.producer_id >= 0]
    aborted = tuple(chance.sample(hidden, chance.randrange(len(hidden) + 1))) if chance.randrange(2) else None
    return Asked(columns, bounds, aborted)


def outcome(raw: bytes, asked: Asked) -> tuple[pa.Table, str]:
    """What is read, and what is then said, if anything is."""
    batches: list[pa.RecordBatch] = []
    said = ""
    columns, bounds, aborted = asked
    try:
        for batch in decode(raw, topic="t", partition=3, columns=columns, bounds=bounds, aborted=aborted):
            batch.validate(full=True)
            batches.append(batch)
    except RecordError as error:
        said = f"{type(error).__name__}: {error}"
    return pa.Table.from_batches(batches, schema_of(columns)), said


def check(rounds: int, seed: int) -> int:
    """How many of the damaged logs said something. Raises AssertionError where the two ways differ."""
    faults = 0
    raw = b""
    for number in range(rounds):
        chance = Random(f"{seed}-{number}")
        if number % DAMAGES == 0:
            raw = some_log(chance, chance.randrange(1, 5))
        bad = damaged(raw, chance)
        if not chance.randrange(20):
            bad += written(*chance.choice(FORMS)) + raw
        asked = some_question(raw, chance)
        found = outcome(bad, asked)
        with in_python():
            expected = outcome(bad, asked)
        same = found[1] == expected[1] and found[0].equals(expected[0])
        assert same, f"seed {seed}, round {number}, {asked}: {found[1]!r}, not {expected[1]!r}: {bad.hex()}"
        faults += bool(expected[1])
    return faults


if __name__ == "__main__":
    asked = [int(word) for word in sys.argv[1:]] or [1000]
    said = check(*asked) if len(asked) > 1 else check(asked[0], 1)
    print(f"{asked[0]} damaged logs, {said} with an error")
