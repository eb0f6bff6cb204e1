"""The example of docs/shop.md on two real clusters: its commands as they stand, but for ports and folders."""

from __future__ import annotations

import asyncio
import json
import re
import shlex
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.client.reading import read_all
from tests.conftest import REPOSITORY
from tests.mirror.test_page import shell
from tests.shell import settings
from tools.server_process import free_port

from ottla.cli import faults
from ottla.cli.main import main
from ottla.pipeline.tables.reading import read_table

__all__ = ["shell"]  # a fixture

pytestmark = [pytest.mark.xdist_group("spark"), pytest.mark.timeout(1200)]

SHOP = REPOSITORY / "examples" / "shop"
PAGE = (REPOSITORY / "docs" / "shop.md").read_text()
LINES = re.findall(r"^    ((?:ottla|sed) .*)$", PAGE, re.MULTILINE)
STARTS = [line for line in LINES if line.startswith("ottla up")]
#: The page's own ports, of the two clusters.
PORTS = ("9092", "9192")
SECONDS_MAX = 300


def test_every_file_of_the_example_is_on_the_page() -> None:
    named = "\n".join(LINES)
    assert {file.name for file in SHOP.iterdir() if file.name not in named and file.suffix != ".ipynb"} == set()


class Shop:
    """A copy of the example's folder, and its two clusters."""

    def __init__(self, folder: Path, shell: dict[str, str], session: Any) -> None:
        self.folder = folder
        self.spark = session
        self._shell = shell
        self._ports = {port: str(free_port()) for port in PORTS}

    def of_this_test(self, text: str) -> str:
        for said, meant in self._ports.items():
            text = text.replace(f"localhost:{said}", f"localhost:{meant}").replace(f"--port {said}", f"--port {meant}")
        return text.replace("/tmp/", f"{self.folder}/")

    def started(self, line: str) -> subprocess.Popen[str]:
        words = ["bash", "-c", f"exec {self.of_this_test(line)}"]
        cluster = subprocess.Popen(
            words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=self._shell, cwd=self.folder
        )
        assert cluster.stdout is not None
        assert cluster.stdout.readline().startswith("Ottla is listening on 127.0.0.1:")
        return cluster

    def run(self, line: str) -> str:
        """One of the page's lines; what it has printed. A pipeline runs in this process, which has a session."""
        line = self.of_this_test(line)
        if line.startswith("ottla pipeline"):
            assert main(shlex.split(line)[1:]) == faults.OK, line
            return ""
        done = subprocess.run(
            ["bash", "-c", line],
            capture_output=True,
            text=True,
            timeout=SECONDS_MAX,
            check=False,
            env=self._shell,
            cwd=self.folder,
        )
        assert done.returncode == 0, (line, done.stderr)
        return done.stdout

    def rows(self, table: str, *columns: str) -> list[tuple[Any, ...]]:
        frame = read_table(self.spark, str(self.folder / "shop-data" / "tables" / table))
        return sorted((tuple(row) for row in frame.selectExpr(*columns).collect()), key=repr)

    def records(self, port: str, topic: str) -> list[Any]:
        found = asyncio.run(read_all(f"127.0.0.1:{self._ports[port]}", topic))
        return [(one.timestamp, one.key, one.value, one.headers) for one in found]


@pytest.fixture
def shop(
    spark: Any, shell: dict[str, str], kept_settings: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Shop]:
    folder = tmp_path / "shop"
    shutil.copytree(SHOP, folder)
    made = Shop(folder, shell, spark)
    properties = folder / "mm2.properties"
    properties.write_text(made.of_this_test(properties.read_text()))
    monkeypatch.chdir(folder)
    for name in settings("KAFKA_", "OTTLA_"):
        monkeypatch.delenv(name)
    running: list[subprocess.Popen[str]] = []
    try:
        running.extend(map(made.started, STARTS))
        yield made
    finally:
        for cluster in running:
            cluster.terminate()
            cluster.communicate(timeout=SECONDS_MAX)


@pytest.mark.slow
def test_the_whole_example(shop: Shop, capsys: pytest.CaptureFixture[str]) -> None:
    assert len(STARTS) == len(PORTS)
    printed = {}
    mended = LINES.index(next(line for line in LINES if line.startswith("sed")))
    for line in LINES[:mended]:
        if line not in STARTS:
            printed[line] = shop.run(line)

    assert shop.rows("records", "count(*)", "count(distinct topic)") == [(11, 2)]
    assert shop.rows("orders", "id", "amount") == [(1, 12.5), (2, 30.0), (4, 7.0), (5, 3.0)]
    assert shop.rows("clicks", "count(*)") == [(5,)]
    assert shop.rows("sold", "id", "page") == [(1, "/books"), (2, "/books"), (2, "/toys"), (4, "/toys")]
    sales = [(10, "/books", 2, 42.5), (10, "/toys", 1, 30.0), (11, "/toys", 1, 7.0)]
    assert shop.rows("sales", "hour(window.start)", "page", "orders", "amount") == sales

    # Both topics of dead letters, and the gold rows, are on both clusters, as they were written.
    east, west = PORTS
    (letter,) = shop.records(east, "orders-dlq")
    assert json.loads(letter[2])["id"] == 3
    assert dict(letter[3])["ottla.dlq.rule"] == b"positive amount"
    assert [one[2] for one in shop.records(east, "clicks-dlq")] == [b"this is no click"]
    written = [json.loads(one[2]) for one in shop.records(east, "sales")]
    assert {(one["page"], one["orders"], one["amount"]) for one in written} == {one[1:] for one in sales}
    for topic, count in {"orders": 5, "clicks": 6, "sales": 3, "orders-dlq": 1, "clicks-dlq": 1}.items():
        original = shop.records(east, topic)
        assert len(original) == count, topic
        assert sorted(shop.records(west, f"east.{topic}"), key=repr) == sorted(original, key=repr)
    described = next(text for line, text in printed.items() if line.startswith("ottla group describe"))
    assert "east.orders" in described
    assert "east.clicks" in described

    for line in LINES[mended:]:
        shop.run(line)
    assert shop.rows("orders", "id") == [(1,), (2,), (3,), (4,), (5,)]
    changed = [(10, "/books", 3, 41.5), *sales[1:]]
    assert shop.rows("sales", "hour(window.start)", "page", "orders", "amount") == changed
    assert "orders: 1 dead letter sent (positive amount: 1)" in capsys.readouterr().out
