"""A few kilobytes that unfold to millions of records, where the broker has to look at each of them."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from functools import cache

from bench.attacks.attack import Answer, Attack, Bound, Outcome, Victim
from bench.frames import produce
from bench.wire import create_topic
from ottla.protocol.generated.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from ottla.protocol.header import RequestHeader, encode_request
from ottla.records.builder import build_batch, encode_record
from ottla.records.compression import ZSTD
from ottla.records.record import Record, encode_batch

LIST_OFFSETS = 2
BOMBED, HONEST = "bombed", "honest"
CONNECTIONS = 16
RECORDS = 1_500_000
#: More than the broker looks at in its loop, and done in some ten milliseconds.
HONEST_RECORDS = 20_000
SECONDS = 12.0
#: For the honest clients' last answers.
LAST_SECONDS_MAX = 60.0


@cache
def bomb() -> bytes:
    """The same record over and over: all but the first have a wrong offset."""
    now = int(time.time() * 1000)
    return build_batch(
        encode_record(0, 0, b"k", None, ()) * RECORDS,
        count=RECORDS,
        last_offset_delta=RECORDS - 1,
        base_timestamp=now,
        max_timestamp=now,
        attributes=ZSTD,
    )


def honest_batch() -> bytes:
    now = int(time.time() * 1000)
    return encode_batch([Record(n, now + n, b"%d" % n, b"v") for n in range(HONEST_RECORDS)], compression=ZSTD)


class Clients:
    """Threads that send the same request until a time, and the longest wait among them."""

    def __init__(self, victim: Victim, ends: float) -> None:
        self._victim = victim
        self._ends = ends
        self._threads: list[threading.Thread] = []
        self.longest = 0.0
        self.answers: list[Answer] = []
        self.sent = 0
        self.failed: list[str] = []

    def start(self, frame: Callable[[], bytes], count: int = 1) -> None:
        for _ in range(count):
            thread = threading.Thread(target=self._work, args=(frame(),), daemon=True)
            self._threads.append(thread)
            thread.start()

    def _work(self, frame: bytes) -> None:
        try:
            with self._victim.connect() as client:
                while time.monotonic() < self._ends:
                    began = time.monotonic()
                    self.sent += len(frame)
                    self.answers.append(client.ask(frame))
                    self.longest = max(self.longest, time.monotonic() - began)
        except OSError as failed:
            self.failed.append(str(failed))

    def wait(self) -> None:
        for thread in self._threads:
            thread.join(LAST_SECONDS_MAX)


class Bombs(Attack):
    name = "bombs"
    sends = (
        f"{CONNECTIONS} connections of zstd batches that unfold to {RECORDS:,} records, to a compacted topic; others "
        f"produce {HONEST_RECORDS:,} records and look for offsets by time"
    )
    bound = Bound(memory_mb=None, honest_seconds=3)

    def prepare(self, victim: Victim) -> None:
        for topic in (BOMBED, HONEST):
            create_topic(victim.port, topic, cleanup_policy="compact", max_message_bytes="10000000")
        with victim.connect() as client:
            client.ask(produce(honest_batch(), topic=HONEST).request)
        bomb()

    def run(self, victim: Victim) -> Outcome:
        ends = time.monotonic() + SECONDS
        attackers, honest = Clients(victim, ends), Clients(victim, ends)
        attackers.start(lambda: produce(bomb(), topic=BOMBED).request, CONNECTIONS)
        honest.start(lambda: produce(honest_batch(), topic=HONEST).request)
        honest.start(_by_time)
        honest.wait()
        attackers.wait()
        bad = sum(count for answer in honest.answers for code, count in answer.codes().items() if code != "NONE")
        faults = [f"{bad} honest requests refused"] if bad else []
        if honest.failed:
            faults.append(f"honest clients: {honest.failed[0]}")
        return Outcome(
            sent=attackers.sent + honest.sent,
            said=f"{len(honest.answers)} honest requests, {len(attackers.answers)} bombs",
            answers=attackers.answers,
            honest_seconds=honest.longest,
            faults=faults,
        )


def _by_time() -> bytes:
    """The last records of the first batch: the whole of it has to be looked at."""
    partition = ListOffsetsPartition(partition_index=0, timestamp=int(time.time() * 1000) + HONEST_RECORDS // 2)
    message = ListOffsetsRequest(replica_id=-1, topics=[ListOffsetsTopic(name=HONEST, partitions=[partition])])
    header = RequestHeader(api_key=LIST_OFFSETS, api_version=5, correlation_id=1, client_id="honest")
    return encode_request(header, message)


def attacks() -> list[Attack]:
    return [Bombs()]
