"""A topic of many small segments, and copies of its log directory that give themselves away.

In a copy every key begins with F instead of k, its checksums are right again, and nothing else differs. So each row
that is read says whether it came out of the copy or over the wire.
"""

from __future__ import annotations

import itertools
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from ottla import logs
from ottla.client.sync import Producer
from ottla.records.batch import HEADER_SIZE, iterate, patch_crc
from ottla.spark.source.planning import batch_splits
from ottla.spark.source.settings import SourceSettings, source_settings
from ottla.spark.source.splits import Split
from ottla.spark.source.tasks import read_split
from ottla.testing import InProcessBroker

RECORDS = 300
_numbers = itertools.count()

#: Where a row came from ("F": out of the copy, "k": over the wire), its offset, and its number.
Row = tuple[str, int, int]


@pytest.fixture
def topic(broker: InProcessBroker) -> str:
    """One partition with numbered records, two or three of them to a batch and some ten to a segment."""
    name = f"segments-{next(_numbers)}"
    broker.create_topic(name, configs={"internal.segment.bytes": "1000", "index.interval.bytes": "100"})
    fill(broker, name, RECORDS)
    return name


def fill(broker: InProcessBroker, topic: str, count: int, *, first: int = 0, **settings: Any) -> None:
    with Producer(bootstrap_servers=broker.bootstrap, **{"batch_size": 100, "linger_ms": 100, **settings}) as producer:
        for number in range(first, first + count):
            producer.send(topic, b"%d" % number, key=b"k%d" % number, partition=0)


def log_directory(broker: InProcessBroker) -> Path:
    (found,) = Path(broker.data).rglob("meta.properties")
    return found.parent


@pytest.fixture
def copy(broker: InProcessBroker, topic: str, tmp_path: Path) -> Path:
    """A copy of the log directory that gives itself away."""
    return copied(broker, topic, tmp_path / "copy")


def copied(broker: InProcessBroker, topic: str, to: Path) -> Path:
    return copied_from(log_directory(broker), topic, to)


def copied_from(directory: Path, topic: str, to: Path) -> Path:
    to.mkdir(exist_ok=True)
    shutil.copy(directory / "meta.properties", to)
    (to / f"{topic}-0").mkdir()
    # Not what else the broker may be about to remove, as producers' snapshots.
    for pattern in ("*.log", "*.index", "partition.metadata"):
        for file in (directory / f"{topic}-0").glob(pattern):
            shutil.copy(file, to / f"{topic}-0")
    for file in (to / f"{topic}-0").glob("*.log"):
        rewrite(file, _giving_itself_away)
    return to


def rewrite(file: Path, change: Callable[[bytearray, int, int], None]) -> None:
    """Each batch of a file changed in place: the buffer, its position and its size."""
    data = bytearray(file.read_bytes())
    for pos, header in iterate(bytes(data), 0, len(data)):
        change(data, pos, header.size)
    file.write_bytes(data)


def _giving_itself_away(data: bytearray, pos: int, size: int) -> None:
    data[pos + HEADER_SIZE : pos + size] = data[pos + HEADER_SIZE : pos + size].replace(b"k", b"F")
    patch_crc(data, pos)


def sealed(copy: Path, topic: str) -> list[Path]:
    return sorted((copy / f"{topic}-0").glob("*.log"))[:-1]


def sealed_until(copy: Path, topic: str) -> int:
    """The first offset that is in no sealed segment."""
    return int(max((copy / f"{topic}-0").glob("*.log")).stem)


def settings_for(broker: InProcessBroker, topic: str, directory: Path | None = None, **options: Any) -> SourceSettings:
    given: dict[str, Any] = {"kafka.bootstrap.servers": broker.bootstrap, "subscribe": topic, "ottla.direct": True}
    if directory is not None:
        given["ottla.direct.dirs"] = str(directory)
    return source_settings({**given, "columns": "key,value,offset", **options}, stream=False)


def rows(settings: SourceSettings, splits: list[Split] | None = None) -> list[Row]:
    return [
        row
        for split in (batch_splits(settings) if splits is None else splits)
        for batch in read_split(settings, split)
        for row in rows_of(batch)
    ]


def rows_of(batch: Any) -> list[Row]:
    columns = (batch.column(name).to_pylist() for name in ("key", "offset", "value"))
    return [(key.decode()[0], offset, int(value)) for key, offset, value in zip(*columns, strict=True)]


def expected(files_until: int, *, first: int = 0, until: int = RECORDS) -> list[Row]:
    """All rows, those below an offset out of files."""
    return [("F" if number < files_until else "k", number, number) for number in range(first, until)]


@pytest.fixture
def said() -> Iterator[list[str]]:
    """What the source logs meanwhile."""
    lines: list[str] = []

    def take(line: str) -> None:
        if " spark " in line:
            lines.append(line)

    before = logs.configure(sink=take)
    yield lines
    logs.restore(before)
