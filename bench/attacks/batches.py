"""Batches that claim more records than they hold, and segments that are rolled while many producers are known."""

from __future__ import annotations

import struct
import time
import zlib
from collections import Counter
from pathlib import Path

from bench.attacks.attack import Attack, Attacker, Bound, Outcome, Victim
from bench.frames import produce
from bench.wire import create_topic
from ottla.records.batch import HEADER, HEADER_SIZE, INT32_MAX, LOG_OVERHEAD, MAGIC, PRODUCER_ID_AT, patch_crc
from ottla.records.compression import GZIP
from ottla.records.record import Record, encode_batch

TOPIC = "claimed"
BATCHES = 300
BATCH_BYTES = 73
PRODUCERS = 50_000
#: Requests that are under way at once while the producers are invented.
DEPTH = 200
#: A few for the log itself: what it has beside its segments, a snapshot, an index.
FILES_MAX = 60
ROLLS = 60
SEGMENT_BYTES = 1 << 20
_INT64 = struct.Struct(">q")


def claiming(count: int) -> bytes:
    """A batch whose header speaks of `count` records, with a few bytes of gzip behind it."""
    now = int(time.time() * 1000)
    block = zlib.compress(b"", wbits=31)[: BATCH_BYTES - HEADER_SIZE]
    length = BATCH_BYTES - LOG_OVERHEAD
    header = HEADER.pack(0, length, -1, MAGIC, 0, GZIP, count - 1, now, now, -1, -1, -1, count)
    whole = bytearray(header + block)
    patch_crc(whole, 0)
    return bytes(whole)


def invent_producers(attacker: Attacker, count: int) -> None:
    """One batch of each, so that the broker knows as many."""
    now = int(time.time() * 1000)
    batch = bytearray(encode_batch([Record(0, now, None, b"v")], producer_id=1, producer_epoch=0, base_sequence=0))
    frame = bytearray(produce(bytes(batch), topic=TOPIC).request)
    start = frame.index(batch)
    for first in range(0, count, DEPTH):
        sent = []
        for number in range(first, min(first + DEPTH, count)):
            _INT64.pack_into(batch, PRODUCER_ID_AT, 1_000_000 + number)
            patch_crc(batch, 0)
            frame[start : start + len(batch)] = batch
            sent.append(bytes(frame))
        attacker.send(b"".join(sent))
        for one in sent:
            attacker.answer_to(one)


def files(folder: Path) -> int:
    return sum(1 for _ in folder.rglob("*.*"))


class Claims(Attack):
    """Each takes the offset two billion further, so that the next needs a segment of its own."""

    def __init__(self, name: str, producers: int) -> None:
        self.name = name
        self.sends = f"{BATCHES} gzip batches of {BATCH_BYTES} bytes that claim 2^31-1 records" + (
            f", with {producers:,} invented producer ids" if producers else ""
        )
        self._producers = producers

    def prepare(self, victim: Victim) -> None:
        create_topic(victim.port, TOPIC)
        with victim.connect() as attacker:
            invent_producers(attacker, self._producers)

    def run(self, victim: Victim) -> Outcome:
        outcome = Outcome()
        frame = produce(claiming(INT32_MAX), topic=TOPIC).request
        before = files(victim.data)
        with victim.connect() as attacker:
            for _ in range(BATCHES):
                outcome.sent += len(frame)
                outcome.answers.append(attacker.ask(frame))
        made = files(victim.data) - before
        outcome.said = f"{made:,} files made"
        codes = sum((answer.codes() for answer in outcome.answers), Counter[str]())
        if codes["NONE"]:
            outcome.faults.append(f"{codes['NONE']} taken")
        if made > FILES_MAX:
            outcome.faults.append("files")
        return outcome


class Rolls(Attack):
    """What rolls a segment honestly, at the rate of the attacker's own bytes."""

    name = "rolls"
    sends = f"{ROLLS} batches that fill a segment each, with {PRODUCERS:,} invented producer ids"
    bound = Bound(memory_mb=64)

    def prepare(self, victim: Victim) -> None:
        create_topic(victim.port, TOPIC, segment_bytes=str(SEGMENT_BYTES), max_message_bytes=str(2 * SEGMENT_BYTES))
        with victim.connect() as attacker:
            invent_producers(attacker, PRODUCERS)

    def run(self, victim: Victim) -> Outcome:
        outcome = Outcome()
        now = int(time.time() * 1000)
        full = encode_batch([Record(0, now, None, bytes(SEGMENT_BYTES - 200))])
        frame = produce(full, topic=TOPIC).request
        with victim.connect() as attacker:
            for _ in range(ROLLS):
                outcome.sent += len(frame)
                outcome.answers.append(attacker.ask(frame))
        return outcome


class ManyLogs(Attack):
    """A batch for each of many partitions in one request: where each costs the disk something, they add up."""

    def __init__(self, name: str, sends: str, partitions: int, requests: int, **settings: str) -> None:
        self.name = name
        self.sends = sends
        self._partitions = partitions
        self._requests = requests
        self._settings = settings

    def prepare(self, victim: Victim) -> None:
        create_topic(victim.port, TOPIC, self._partitions, **self._settings)

    def run(self, victim: Victim) -> Outcome:
        outcome = Outcome()
        now = int(time.time() * 1000)
        with victim.connect() as attacker:
            for number in range(self._requests):
                batch = encode_batch([Record(0, now + 10 * number, None, b"v")])
                frame = produce(batch, topic=TOPIC, partitions=range(self._partitions)).request
                outcome.sent += len(frame)
                outcome.answers.append(attacker.ask(frame))
        return outcome


def attacks() -> list[Attack]:
    return [
        Claims("claims", 0),
        Claims("claims-producers", PRODUCERS),
        Rolls(),
        ManyLogs(
            "roll-each", "requests of 250 batches that each roll a segment (segment.ms=1)", 250, 12, segment_ms="1"
        ),
        ManyLogs("flush-each", "requests of 1,000 batches that are each flushed", 1_000, 5, flush_messages="1"),
    ]
