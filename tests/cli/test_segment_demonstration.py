"""The demonstration that tutorials give: segments of 107,370 bytes, so that one sees them split, and the dump of one.

`log.segment.bytes=107370` in `server.properties`, records `message_0`, `message_1`, ... one by one, then the two
commands that show a segment's records and its index. Kafka 4 refuses that size; Kafka 3.9 and Ottla take it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest
from tools.ottla_server import ottla_broker

from ottla.client.sync import Admin, Producer
from tests.cli.conftest import Command
from tests.conftest import WatchServer

#: As they stand in it.
PROPERTIES = {
    "log.retention.hours": "168",
    "log.segment.bytes": "107370",
    "log.retention.check.interval.ms": "300000",
    "log.cleaner.enable": "false",
    "min.insync.replicas": "1",
}
#: A batch of one such record takes some 80 bytes: so many make four segments.
RECORDS = 5_000


@pytest.fixture(scope="module")
def partition(tmp_path_factory: pytest.TempPathFactory, watch_server: WatchServer) -> Iterator[Path]:
    """The folder of a partition that was filled so, beside a broker that runs."""
    data = tmp_path_factory.mktemp("demonstration")
    with watch_server(ottla_broker(data, properties=PROPERTIES)) as server, server:
        with Admin(bootstrap_servers=server.bootstrap) as admin:
            admin.create_topic("test", 1)
        # A batch each, as a producer sends them that waits for each.
        with Producer(bootstrap_servers=server.bootstrap, linger_ms=0, batch_size=0) as producer:
            for number in range(RECORDS):
                producer.send("test", b"message_%d" % number)
        (log,) = data.rglob("test-0/00000000000000000000.log")
        yield log.parent


def names(partition: Path, ending: str) -> list[str]:
    return sorted(path.name for path in partition.glob(f"*.{ending}"))


def test_the_log_is_split_and_named_by_offsets(partition: Path, in_process: Command) -> None:
    logs = names(partition, "log")
    assert len(logs) >= 4
    assert {name.replace(".index", ".log") for name in names(partition, "index")} >= set(logs[:-1])
    assert all(path.stat().st_size <= 107_370 for path in partition.glob("*.log"))
    for earlier, later in pairwise(logs):
        shown = in_process("log", "dump", "--files", str(partition / earlier), "--print-data-log")
        assert shown.code == 0
        last = re.findall(r"^\| offset: (\d+) ", shown.out, re.MULTILINE)[-1]
        assert later == f"{int(last) + 1:020}.log"


def test_a_records_line_has_the_fields_that_are_explained(partition: Path, in_process: Command) -> None:
    shown = in_process("log", "dump", "--files", str(partition / "00000000000000000000.log"), "--print-data-log").out
    for field in ("position", "CreateTime", "isvalid", "magic", "compresscodec", "producerId", "producerEpoch"):
        assert f"{field}: " in shown, field
    assert re.search(
        r"^\| offset: 1234 position: \d+ CreateTime: \d+ isvalid: true keysize: -1 valuesize: 12 magic: 2 "
        r"compresscodec: none producerId: \d+ producerEpoch: \d+ sequence: 1234 isTransactional: false "
        r"headerKeys: \[\] payload: message_1234$",
        shown,
        re.MULTILINE,
    ), shown[:2000]


def test_an_index_leads_to_the_record(partition: Path, in_process: Command) -> None:
    """From an offset to the greatest entry not above it, and from that position on through the log."""
    index = in_process("log", "dump", "--files", str(partition / "00000000000000000000.index"), "--print-data-log")
    assert index.code == 0
    entries = [(int(offset), int(at)) for offset, at in re.findall(r"offset: (\d+) position: (\d+)", index.out)]
    assert len(entries) > 10
    offset, position = max(entry for entry in entries if entry[0] <= 537)
    log = in_process("log", "dump", "--files", str(partition / "00000000000000000000.log"), "--print-data-log").out
    at = {int(last): int(where) for last, where in re.findall(r"lastOffset: (\d+) .*? position: (\d+) ", log)}
    assert at[offset] == position
