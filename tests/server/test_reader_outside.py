"""Another process reads a partition's folder while the broker writes to it and rolls its segments."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from tests.handlers.frames import batch, produce
from tests.server.conftest import BrokerThread

BATCHES = 3000
#: Reads until the offset that it is given, and says what it has seen.
READER = """
import sys, time
from ottla.ports.real.disk import RealDisk
from ottla.records.record import decode_batch
from ottla.storage.log.reader import LogReader

reader, offset, end, calls = LogReader(RealDisk(), sys.argv[1]), 0, int(sys.argv[2]), 0
print("reads", flush=True)
until = time.monotonic() + 300
while offset < end and time.monotonic() < until:
    calls += 1
    for stored in reader.batches(offset):
        assert stored.header.base_offset == offset, (stored.header.base_offset, offset)
        (record,) = decode_batch(bytes(stored.data))
        assert record.value.rstrip(b".") == b"%d" % offset, record
        offset = stored.header.next_offset
    time.sleep(0.002)
print(offset, calls, flush=True)
"""


def test_another_process_follows_a_log_that_is_written_to(make_broker: Callable[..., BrokerThread]) -> None:
    with make_broker() as running, running.connect() as peer:
        running.create_topic("t", index_interval_bytes="0", segment_index_bytes="1024")
        folder = Path(running.look(lambda broker: broker.logs()[0].directory))
        with subprocess.Popen(
            [sys.executable, "-c", READER, str(folder), str(BATCHES)], stdout=subprocess.PIPE, text=True
        ) as reader:
            try:
                assert reader.stdout is not None
                assert reader.stdout.readline() == "reads\n"
                for number in range(BATCHES):
                    answer = produce(peer, batch((b"%d" % number).ljust(100, b".")), topic="t")
                    assert (answer.error_code, answer.base_offset) == (0, number)
                offset, calls = reader.stdout.readline().split()
                assert int(offset) == BATCHES
                # It did read beside the broker, and not once at the end.
                assert int(calls) > 3
                assert reader.wait(60) == 0
            finally:
                reader.kill()
        assert len(list(folder.glob("*.log"))) > 5
