"""A read that would wait for the disk goes through a worker, and the answer is the same."""

from __future__ import annotations

import os
import socket
import struct
import threading
import time
from collections.abc import Callable

import pytest
from tests.handlers.frames import batch, fetch, fetch_request, produce, values
from tests.server.conftest import SECONDS_MAX, BrokerThread
from tests.server.test_connections import until

from ottla.handlers.fetch import reading
from ottla.handlers.fetch.reading import PartitionRead
from ottla.protocol.generated.delete_topics import DeleteTopicsRequest, DeleteTopicsResponse
from ottla.protocol.generated.fetch import FetchResponse
from ottla.storage.log.cold_reads import MissingPlace, Warming

Make = Callable[..., BrokerThread]


def drop_from_memory(path: str) -> None:
    descriptor = os.open(path, os.O_RDWR)
    try:
        os.fsync(descriptor)
        os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
    finally:
        os.close(descriptor)


@pytest.mark.skipif(not hasattr(os, "RWF_NOWAIT"), reason="only Linux tells what is in memory")
def test_a_cold_segment_is_read_by_a_worker(make_broker: Make) -> None:
    with make_broker(log_segment_bytes=str(1 << 20)) as running, running.connect() as peer:
        running.create_topic("t")
        written = [b"%02d" % n * 200_000 for n in range(12)]
        for value in written:
            assert produce(peer, batch(value)).error_code == 0
        (log,) = running.look(lambda broker: broker.logs())
        sealed = [segment.path() for segment in running.look(lambda _: list(log.segments))[:-1]]
        assert len(sealed) >= 3
        # Whoever looks whether the system let a file go may bring it back by that: so it is tried until it is seen.
        deadline = time.monotonic() + 60
        while running.look(lambda broker: broker.services.metrics.cold_reads.value) == 0:  # type: ignore[union-attr]
            assert time.monotonic() < deadline, "the file system keeps the file in memory"
            for path in sealed:
                drop_from_memory(path)
            found: list[bytes | None] = []
            while len(found) < len(written):
                found += values(fetch(peer, len(found), partition_max_bytes=1 << 20, max_bytes=50 << 20))
            assert found == written


def test_what_is_warm_is_held_while_a_worker_reads_the_rest(make_broker: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another topic of the same fetch is deleted meanwhile: the client has its answer all the same."""
    reads, may_read = threading.Event(), threading.Event()

    def slow(_: Warming) -> None:
        reads.set()
        assert may_read.wait(SECONDS_MAX)

    monkeypatch.setattr(Warming, "run", slow)
    monkeypatch.setattr(PartitionRead, "is_cold", property(lambda read: read.asked.topic == "cold"))
    value = b"v" * 300_000
    with make_broker(log_segment_delete_delay_ms="0") as running, running.connect() as peer:
        for name in ("cold", "warm"):
            running.create_topic(name)
            assert produce(peer, batch(value), topic=name).error_code == 0
        request = fetch_request(topic="cold")
        request.topics += fetch_request(topic="warm").topics
        peer.send(peer.frame(request, 11))
        try:
            assert reads.wait(SECONDS_MAX)
            with running.connect() as other:
                deleted = other.ask(
                    DeleteTopicsRequest(topic_names=["warm"], timeout_ms=60_000), 5, DeleteTopicsResponse
                )
                assert [each.error_code for each in deleted.responses] == [0]
            deadline = time.monotonic() + SECONDS_MAX
            while len(running.look(lambda broker: list(broker.logs()))) > 1:
                assert time.monotonic() < deadline, "the log stays"
        finally:
            may_read.set()
        answer = peer.answer(FetchResponse, 11)
        assert [values(topic.partitions[0]) for topic in answer.responses] == [[value], [value]]


@pytest.mark.parametrize("lacks", [False, True])
def test_a_client_that_goes_while_a_worker_reads_leaves_nothing_behind(
    make_broker: Make, monkeypatch: pytest.MonkeyPatch, lacks: bool
) -> None:
    """What a fetch watches that was to open a session is watched no more: nobody else would take it away."""
    reads, may_read = threading.Event(), threading.Event()

    def slow(_: object) -> None:
        reads.set()
        assert may_read.wait(SECONDS_MAX)

    monkeypatch.setattr(Warming, "run", slow)
    monkeypatch.setattr(PartitionRead, "is_cold", True)
    monkeypatch.setattr(MissingPlace, "run", slow)
    if lacks:
        monkeypatch.setattr(reading, "missing_place", lambda log, offset, end: MissingPlace(log, []))
    with make_broker() as running:
        running.create_topic("t", 2)
        with running.connect() as peer:
            assert produce(peer, batch(b"v" * 300_000)).error_code == 0
            request = fetch_request(session_epoch=0)
            request.topics += fetch_request(partition=1).topics
            peer.send(peer.frame(request, 11))
            try:
                assert reads.wait(SECONDS_MAX)
                assert running.look(lambda broker: broker.services.replicas.waiters.watched_count) == 2  # type: ignore[union-attr]
                # A reset, which ends it at once: one that only sends no more is still answered.
                peer.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                peer.socket.close()
                until(lambda: running.look(lambda broker: broker.connection_count) == 0)
            finally:
                may_read.set()
        until(lambda: running.look(lambda broker: broker.services.replicas.waiters.watched_count) == 0)  # type: ignore[union-attr]
