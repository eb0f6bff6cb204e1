"""Answers that nobody reads, and sessions of partitions that do not exist."""

from __future__ import annotations

import os
import socket
import struct
import time
from contextlib import ExitStack

from bench.attacks.attack import Attack, Bound, Outcome, Victim
from bench.attacks.long_frames import repeated
from bench.frames import produce
from bench.wire import HOST, Wire, create_topic
from ottla.protocol.generated.fetch import FetchPartition, FetchRequest, FetchTopic
from ottla.protocol.header import RequestHeader, encode_request
from ottla.records.record import Record, encode_batch

FETCH, FETCH_VERSION = 1, 12
TOPIC = "read"
READERS = 40
PARTITIONS = 1_850
#: Of one partition: what is below 32 KiB is copied into the answer, what is above is sent from its file.
READ_BYTES = 30_000
#: The attackers take nothing from the broker but what the kernel already has.
RECEIVE_BUFFER_BYTES = 4_096
HOLD_SECONDS = 10.0
PRODUCED_AT_ONCE = 200
#: All answers that are in memory at once, and what the machinery around them takes.
ANSWERS_MB_MAX = 128

SESSION_PARTITIONS = 500_000
INCREMENTAL = 5
SESSION_MAKERS, SESSION_OF, SESSION_SECONDS = 50, 1_000, 8.0


def one_large_record() -> bytes:
    return encode_batch([Record(0, int(time.time() * 1000), None, os.urandom(READ_BYTES - 200))])


def asking(partitions: list[int]) -> bytes:
    asked = [
        FetchPartition(partition=number, fetch_offset=0, partition_max_bytes=READ_BYTES + 2_000)
        for number in partitions
    ]
    message = FetchRequest(
        max_wait_ms=500, min_bytes=1, max_bytes=2**31 - 1, topics=[FetchTopic(topic=TOPIC, partitions=asked)]
    )
    return encode_request(
        RequestHeader(api_key=FETCH, api_version=FETCH_VERSION, correlation_id=1, client_id="attack"), message
    )


class Unread(Attack):
    """Many connections ask for as much as an answer may hold, and read none of it."""

    bound = Bound(memory_mb=ANSWERS_MB_MAX)

    def __init__(self, name: str, sends: str, partitions: list[int]) -> None:
        self.name = name
        self.sends = sends
        self._partitions = partitions

    def prepare(self, victim: Victim) -> None:
        distinct = sorted(set(self._partitions))
        create_topic(victim.port, TOPIC, len(distinct))
        data = one_large_record()
        with Wire(victim.port) as wire:
            for first in range(0, len(distinct), PRODUCED_AT_ONCE):
                some = range(first, min(first + PRODUCED_AT_ONCE, len(distinct)))
                wire.exchange(produce(data, topic=TOPIC, partitions=some).request)

    def run(self, victim: Victim) -> Outcome:
        frame = asking(self._partitions)
        with ExitStack() as stack:
            for _ in range(READERS):
                reader = stack.enter_context(socket.socket())
                # Before it connects: the window that it announces follows from it.
                reader.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, RECEIVE_BUFFER_BYTES)
                reader.settimeout(victim.seconds_max)
                reader.connect((HOST, victim.port))
                reader.sendall(frame)
            time.sleep(HOLD_SECONDS)
        return Outcome(sent=READERS * len(frame), said="nobody has read it")


class MadeUpSession(Attack):
    name = "session"
    sends = f"a fetch session of {SESSION_PARTITIONS:,} partitions that there are not, then {INCREMENTAL} empty fetches"

    def prepare(self, victim: Victim) -> None:
        def message(partitions: list[FetchPartition]) -> FetchRequest:
            return FetchRequest(
                max_wait_ms=0,
                min_bytes=1,
                session_epoch=0,
                topics=[FetchTopic(topic="no-such", partitions=partitions)],
            )

        def elements(first: int, how_many: int) -> list[FetchPartition]:
            return [
                FetchPartition(partition=number, fetch_offset=0, partition_max_bytes=1)
                for number in range(first, first + how_many)
            ]

        self._frame = repeated(FETCH, FETCH_VERSION, message, elements, count_max=SESSION_PARTITIONS)

    def run(self, victim: Victim) -> Outcome:
        outcome = Outcome(sent=len(self._frame))
        with victim.connect() as attacker:
            first = attacker.ask(self._frame)
            # Correlation id, tags, throttle time, error, session id.
            _, _, _, error, session = struct.unpack_from(">ibihi", first.raw) if first.raw else (0, 0, 0, 0, 0)
            outcome.said = f"error {error}" if error else f"a session: {session != 0}"
            header = RequestHeader(api_key=FETCH, api_version=FETCH_VERSION, correlation_id=1, client_id="attack")
            longest = 0.0
            for epoch in range(1, INCREMENTAL + 1):
                message = FetchRequest(max_wait_ms=0, min_bytes=1, session_id=session, session_epoch=epoch)
                frame = encode_request(header, message)
                began = time.monotonic()
                outcome.answers.append(attacker.ask(frame))
                outcome.sent += len(frame)
                longest = max(longest, time.monotonic() - began)
            outcome.said += f", {longest:.2f} s for an empty fetch"
        return outcome


class NewSessions(Attack):
    name = "session-new"
    sends = (
        f"{SESSION_MAKERS} connections that make a fetch session of {SESSION_OF:,} partitions, and another, for"
        f" {SESSION_SECONDS:g} s"
    )
    # All sessions together have 100,000 partitions at the most, which take some 80 MB; as much again is in progress.
    bound = Bound(memory_mb=160)

    def prepare(self, victim: Victim) -> None:
        create_topic(victim.port, TOPIC, SESSION_OF)

    def run(self, victim: Victim) -> Outcome:
        partitions = [
            FetchPartition(partition=number, fetch_offset=0, partition_max_bytes=1) for number in range(SESSION_OF)
        ]
        message = FetchRequest(
            max_wait_ms=0, min_bytes=0, session_epoch=0, topics=[FetchTopic(topic=TOPIC, partitions=partitions)]
        )
        header = RequestHeader(api_key=FETCH, api_version=FETCH_VERSION, correlation_id=1, client_id="attack")
        frame = encode_request(header, message)
        made = asked = 0
        with ExitStack() as stack:
            makers = [stack.enter_context(victim.connect()) for _ in range(SESSION_MAKERS)]
            ends = time.monotonic() + SESSION_SECONDS
            while time.monotonic() < ends:
                for maker in makers:
                    maker.send(frame)
                for maker in makers:
                    answer = maker.answer_to(frame)
                    # Correlation id, tags, throttle time, error, session id.
                    made += struct.unpack_from(">ibihi", answer.raw)[4] != 0
                    asked += 1
        return Outcome(sent=0, said=f"{asked:,} answers, {made:,} sessions")


def attacks() -> list[Attack]:
    return [
        Unread(
            "fetch-same",
            f"{READERS} connections that ask for one partition {PARTITIONS:,} times in a Fetch and never read",
            [0] * PARTITIONS,
        ),
        Unread(
            "fetch-many",
            f"{READERS} connections that ask for {PARTITIONS:,} partitions in a Fetch and never read",
            list(range(PARTITIONS)),
        ),
        MadeUpSession(),
        NewSessions(),
    ]
