"""The memory that a task takes is that of its pieces, and not of its topic: ten times the records, and no more of it.

Each size is read in a process of its own, as Spark's workers are, whose peak is what counts.
"""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

import ottla.testing
from ottla.client.producing.producer import Producer
from ottla.testing import InProcessBroker

#: Records of 1,000 bytes.
MB = 1000
#: For a reader: what one more fetch and what the allocator keeps take, and little beside the tenfold topic.
MORE_MB_MAX = 64

READING = """
import sys
from pathlib import Path
from ottla.spark.source.planning import batch_splits
from ottla.spark.source.settings import source_settings
from ottla.spark.source.tasks import read_split
bootstrap, topic, direct = sys.argv[1:]
options = {"kafka.bootstrap.servers": bootstrap, "subscribe": topic, "ottla.direct": direct}
settings = source_settings(options, stream=False)
rows = sum(batch.num_rows for split in batch_splits(settings) for batch in read_split(settings, split))
# Not what getrusage says: that counts what the process was before it began this program.
print(rows, next(line.split()[1] for line in Path("/proc/self/status").read_text().splitlines() if "VmHWM" in line))
"""


@pytest.fixture(scope="module")
def broker() -> Iterator[InProcessBroker]:
    with ottla.testing.broker() as running:
        yield running


def fill(broker: InProcessBroker, topic: str, megabytes: int) -> None:
    broker.create_topic(topic, configs={"segment.bytes": "16777216"})
    table = pa.table({"value": pa.array([b"x" * MB] * 10_000, pa.binary())})

    async def work() -> None:
        async with Producer(bootstrap_servers=broker.bootstrap) as producer:
            for _ in range(megabytes // 10):
                await producer.send_arrow(table, topic)

    asyncio.run(work())


def peak_mb(broker: InProcessBroker, topic: str, direct: str, rows: int) -> int:
    done = subprocess.run(
        [sys.executable, "-c", READING, broker.bootstrap, topic, direct], capture_output=True, text=True, check=True
    )
    found, peak_kb = map(int, done.stdout.split())
    assert found == rows
    return peak_kb // 1024


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="only Linux keeps a process's peak there")
@pytest.mark.timeout(1200)
def test_memory_does_not_grow_with_the_topic(broker: InProcessBroker) -> None:
    fill(broker, "small", 100)
    fill(broker, "large", 1000)
    for direct in ("false", "true"):
        small = peak_mb(broker, "small", direct, 100 * MB)
        large = peak_mb(broker, "large", direct, 1000 * MB)
        print(f"direct={direct}: 100 MB {small} MB, 1,000 MB {large} MB")
        assert large <= small + MORE_MB_MAX
