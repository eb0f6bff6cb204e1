"""A read that would wait for the disk goes through a worker, and the answer is the same."""

from __future__ import annotations

import os
import time
from collections.abc import Callable

import pytest
from tests.handlers.frames import batch, fetch, produce, values
from tests.server.conftest import BrokerThread

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
