"""Questions of a few bytes whose answers are long, and one record for which thousands wait."""

from __future__ import annotations

import select
import socket
import time
from collections.abc import Callable
from contextlib import ExitStack, suppress

from bench.attacks.attack import MB, Attack, Bound, Outcome, Victim
from bench.attacks.connections import CONNECT_SECONDS_MAX, RECEIVE_BYTES, crowd
from bench.frames import TOPIC, batch, produce
from bench.wire import HOST, Wire, create_topic
from ottla.protocol.generated.create_topics import CreatableTopic, CreateTopicsRequest
from ottla.protocol.generated.describe_log_dirs import DescribeLogDirsRequest
from ottla.protocol.generated.fetch import FetchPartition, FetchRequest, FetchTopic
from ottla.protocol.generated.metadata import MetadataRequest
from ottla.protocol.header import RequestHeader, encode_request
from ottla.protocol.message import Message

FETCH, METADATA, CREATE_TOPICS, DESCRIBE_LOG_DIRS = 1, 3, 19, 35
TOPICS, PARTITIONS, MANY_PARTITIONS = 1_000, 5, 3_000
READERS, NEVER_READERS, WAITERS = 100, 3_000, 1_000
ASK_SECONDS, HOLD_SECONDS = 5.0, 5.0
WAIT_MS, WOKEN_SECONDS_MAX = 30_000, 20.0


def request(key: int, version: int, message: Message) -> bytes:
    return encode_request(
        RequestHeader(api_key=key, api_version=version, correlation_id=1, client_id="attack"), message
    )


def waiting_fetch(wait_ms: int = WAIT_MS) -> bytes:
    part = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1 << 20)
    message = FetchRequest(max_wait_ms=wait_ms, min_bytes=1, topics=[FetchTopic(topic=TOPIC, partitions=[part])])
    return request(FETCH, 12, message)


def many_topics(port: int) -> None:
    new = [CreatableTopic(name=f"t{n}", num_partitions=PARTITIONS, replication_factor=1) for n in range(TOPICS)]
    with Wire(port) as wire:
        wire.call(CREATE_TOPICS, 5, CreateTopicsRequest(topics=new, timeout_ms=60_000))


def many_partitions(port: int) -> None:
    create_topic(port, TOPIC, MANY_PARTITIONS)


class Readers(Attack):
    name = "all-metadata"
    sends = f"{READERS} connections that ask for the metadata of {TOPICS:,} topics, read, and ask again"
    bound = Bound(memory_mb=64)

    def prepare(self, victim: Victim) -> None:
        many_topics(victim.port)

    def run(self, victim: Victim) -> Outcome:
        frame, got = request(METADATA, 9, MetadataRequest(topics=None)), 0
        with ExitStack() as stack, select.epoll() as ready:
            opened = {each.fileno(): each for each in crowd(stack, victim.port, READERS, frame)}
            #: What is missing of each answer; less than nothing where its length is not known.
            missing = dict.fromkeys(opened, -1)
            for number in opened:
                ready.register(number, select.EPOLLIN)
            ends = time.monotonic() + ASK_SECONDS
            while time.monotonic() < ends:
                for number, _ in ready.poll(0.05, READERS):
                    data = opened[number].recv(1 << 18)
                    if missing[number] < 0:
                        missing[number] = 4 + int.from_bytes(data[:4], "big")
                    missing[number] -= len(data)
                    if not missing[number]:
                        missing[number] = -1
                        opened[number].sendall(frame)
                        got += 1
        return Outcome(said=f"{got:,} answers read")


class NeverReaders(Attack):
    """Each has little room, and takes nothing out of it."""

    def __init__(self, name: str, sends: str, frame: bytes, before: Callable[[int], None]) -> None:
        self.name, self.sends = name, sends
        self._frame, self._before = frame, before
        # A turn of each of the crowd. What answers may hold together, and as much again for what they are made from.
        # Answers that wait (64 MB), and as much again in what is begun: each of thousands has gathered some kilobytes
        # when the room ends.
        self.bound = Bound(stall_ms=150, memory_mb=160)

    def prepare(self, victim: Victim) -> None:
        self._before(victim.port)

    def run(self, victim: Victim) -> Outcome:
        with ExitStack() as stack:
            for _ in range(NEVER_READERS):
                connection = stack.enter_context(socket.socket())
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, RECEIVE_BYTES)
                connection.settimeout(CONNECT_SECONDS_MAX)
                with suppress(OSError):
                    connection.connect((HOST, victim.port))
                    connection.sendall(self._frame)
            time.sleep(HOLD_SECONDS)
        return Outcome(sent=NEVER_READERS * len(self._frame))


class Woken(Attack):
    name = "woken"
    sends = f"{WAITERS:,} fetches that wait for one partition, and one record"
    bound = Bound(memory_mb=WAITERS * (64 << 10) / MB)

    def prepare(self, victim: Victim) -> None:
        create_topic(victim.port, TOPIC)

    def run(self, victim: Victim) -> Outcome:
        frame = waiting_fetch()
        with ExitStack() as stack, select.epoll() as ready:
            opened = {each.fileno(): each for each in crowd(stack, victim.port, WAITERS, frame)}
            for number in opened:
                ready.register(number, select.EPOLLIN)
            time.sleep(1)
            with Wire(victim.port) as wire:
                wire.exchange(produce(batch(1)).request)
            woken, ends = 0, time.monotonic() + WOKEN_SECONDS_MAX
            while woken < len(opened) and time.monotonic() < ends:
                for number, _ in ready.poll(0.05, WAITERS):
                    ready.unregister(number)
                    woken += 1
        outcome = Outcome(said=f"{woken:,} of {len(opened):,} woken", sent=len(frame) * WAITERS)
        if woken < len(opened):
            outcome.faults.append("not all are answered")
        return outcome


def attacks() -> list[Attack]:
    return [
        Readers(),
        NeverReaders(
            "unread-metadata",
            f"{NEVER_READERS:,} connections that ask for the metadata of {TOPICS:,} topics and never read",
            request(METADATA, 9, MetadataRequest(topics=None)),
            many_topics,
        ),
        NeverReaders(
            "unread-log-dirs",
            f"{NEVER_READERS:,} connections that ask for the log directories of {MANY_PARTITIONS:,} partitions"
            " and never read",
            request(DESCRIBE_LOG_DIRS, 2, DescribeLogDirsRequest(topics=None)),
            many_partitions,
        ),
        Woken(),
    ]
