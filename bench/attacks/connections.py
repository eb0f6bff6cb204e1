"""Connections that do nothing, or next to nothing: each has a descriptor, and maybe a buffer."""

from __future__ import annotations

import select
import socket
import time
from contextlib import ExitStack, suppress

from bench.attacks.attack import MB, Attack, Bound, Outcome, Victim
from bench.attacks.probe import QUESTION
from bench.frames import TOPIC, batch, fetch, produce
from bench.wire import HOST, Wire, WireError, create_topic
from ottla.protocol.generated.create_topics import CreatableTopic, CreateTopicsRequest

CREATE_TOPICS = 19
IDLE = 1_500
LIMITS = (1_024, 8_192)
NEW_TOPICS = 20
ONE_BYTE = 4_000
ONE_BYTE_EACH_MAX = 4 << 10
PIPELINES, PIPELINED, PIPELINE_ROUNDS = 1_000, 500, 3
#: Of a client that has little room, and the shortest time that shows that it has none.
RECEIVE_BYTES = 2_048
SEND_SECONDS_MAX = 0.3
FETCHERS, FETCHES, FETCH_BYTES = 500, 50, 1 << 20
FETCHED_BATCHES, FETCHED_RECORDS = 20, 1_000
ASKERS, ASKED = 1_500, 8_000
#: For a connection to be taken, or not; and for the broker to notice what was sent.
CONNECT_SECONDS_MAX = 2.0
WRITE_SECONDS_MAX = 1.0
HONEST_SECONDS_MAX = 20.0
HOLD_SECONDS = 3.0


def crowd(stack: ExitStack, port: int, count: int, first: bytes = b"") -> list[socket.socket]:
    """As many connections as the broker takes."""
    opened = []
    for _ in range(count):
        try:
            connection = socket.create_connection((HOST, port), timeout=CONNECT_SECONDS_MAX)
            stack.enter_context(connection)
            if first:
                connection.sendall(first)
        except OSError:
            break
        opened.append(connection)
    return opened


class IdleCrowd(Attack):
    name = "descriptors"
    sends = (
        f"{IDLE:,} idle connections to a broker with a soft limit of {LIMITS[0]:,} files, then produces to new topics"
    )
    open_files = LIMITS
    bound = Bound(memory_mb=None)

    def run(self, victim: Victim) -> Outcome:
        outcome = Outcome()
        data = batch(1)
        with ExitStack() as stack:
            # A client that came before the crowd is to be served on.
            honest = stack.enter_context(Wire(victim.port, HONEST_SECONDS_MAX))
            opened = crowd(stack, victim.port, IDLE)
            written = 0
            try:
                for number in range(NEW_TOPICS):
                    written += _written(honest, f"new-{number}", data)
            except (OSError, WireError) as failed:
                outcome.faults.append(f"an honest client: {failed}")
            outcome.said = f"{len(opened):,} connections taken, {written} of {NEW_TOPICS} topics written"
            if written < NEW_TOPICS:
                outcome.faults.append("honest produces refused")
        return outcome


def _written(honest: Wire, topic: str, data: bytes) -> bool:
    """Whether a topic can be made and written to, by a client that tries again for a moment."""
    new = CreatableTopic(name=topic, num_partitions=1, replication_factor=1)
    honest.call(CREATE_TOPICS, 5, CreateTopicsRequest(topics=[new], timeout_ms=5_000))
    frame = produce(data, topic=topic)
    ends = time.monotonic() + WRITE_SECONDS_MAX
    while time.monotonic() < ends:
        answer = honest.exchange(frame.request)
        if not any(answer[frame.error_position - 4 :][:2]):
            return True
        time.sleep(0.05)
    return False


class OneByteCrowd(Attack):
    name = "one-byte"
    sends = f"{ONE_BYTE:,} connections that send one byte of a request"
    bound = Bound(memory_mb=ONE_BYTE * ONE_BYTE_EACH_MAX / MB)

    def run(self, victim: Victim) -> Outcome:
        with ExitStack() as stack:
            opened = crowd(stack, victim.port, ONE_BYTE, b"\0")
            time.sleep(HOLD_SECONDS)
        return Outcome(said=f"{len(opened):,} connections taken", sent=len(opened))


class Pipelines(Attack):
    name = "pipelines"
    sends = f"{PIPELINES:,} connections that send {PIPELINED} requests at once, {PIPELINE_ROUNDS} times, and read"
    # The others' turn comes after one of each: some requests of a thousand connections.
    bound = Bound(stall_ms=150, memory_mb=64)

    def run(self, victim: Victim) -> Outcome:
        got = 0
        with ExitStack() as stack, select.epoll() as ready:
            opened = {each.fileno(): each for each in crowd(stack, victim.port, PIPELINES)}
            for number, connection in opened.items():
                connection.setblocking(False)
                ready.register(number, select.EPOLLIN)
            for _ in range(PIPELINE_ROUNDS):
                for connection in opened.values():
                    with suppress(BlockingIOError):
                        connection.send(QUESTION * PIPELINED)
                ends = time.monotonic() + HOLD_SECONDS / 2
                while time.monotonic() < ends:
                    for number, _ in ready.poll(0.05, 200):
                        got += len(opened[number].recv(1 << 16))
        return Outcome(said=f"{got / MB:,.0f} MB of answers read")


class SlowTakers(Attack):
    """Each has little room for answers, and takes none out of it."""

    bound = Bound(stall_ms=150, memory_mb=64)

    def __init__(self, name: str, sends: str, count: int, requests: bytes) -> None:
        self.name = name
        self.sends = sends
        self._count = count
        self._requests = requests

    def prepare(self, victim: Victim) -> None:
        create_topic(victim.port, TOPIC)
        with Wire(victim.port) as wire:
            for _ in range(FETCHED_BATCHES):
                wire.exchange(produce(batch(FETCHED_RECORDS)).request)

    def run(self, victim: Victim) -> Outcome:
        sent = 0
        with ExitStack() as stack:
            for _ in range(self._count):
                connection = stack.enter_context(socket.socket())
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, RECEIVE_BYTES)
                connection.settimeout(CONNECT_SECONDS_MAX)
                connection.connect((HOST, victim.port))
                connection.settimeout(SEND_SECONDS_MAX)
                with suppress(OSError):
                    connection.sendall(self._requests)
                    sent += len(self._requests)
            time.sleep(HOLD_SECONDS)
        return Outcome(sent=sent)


def attacks() -> list[Attack]:
    pieces = fetch(FETCH_BYTES).request * FETCHES
    return [
        IdleCrowd(),
        OneByteCrowd(),
        Pipelines(),
        SlowTakers(
            "slow-fetches", f"{FETCHERS} connections that fetch {FETCHES} times 1 MB and never read", FETCHERS, pieces
        ),
        SlowTakers(
            "slow-answers",
            f"{ASKERS:,} connections that ask {ASKED:,} times for ApiVersions and never read",
            ASKERS,
            QUESTION * ASKED,
        ),
    ]
