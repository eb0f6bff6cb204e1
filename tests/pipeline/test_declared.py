"""`--engine sdp`: a file under Spark Declarative Pipelines, and what that engine lacks."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from pathlib import Path

import pyarrow.dataset
import pytest
from tests.conftest import REPOSITORY
from tests.pipeline.conftest import Pipeline
from tests.spark.conftest import needs_java
from tests.spark.processes import descendants, end_all, listening

from ottla.cli import faults
from ottla.cli.main import main
from ottla.pipeline.declared import check_declared
from ottla.pipeline.errors import BadDefinition
from ottla.pipeline.loading import load

SECONDS_MAX = 900.0
HEAD = "from ottla.pipeline import *\nfrom pyspark.sql import functions as F\n"
FILE = """
@table
def raw():
    return read_topic("TOPIC")

@view
def decoded():
    schema = "id INT, customer STRING, amount DOUBLE"
    return read_stream("raw").select(F.from_json(F.col("value").cast("string"), schema).alias("it")).select("it.*")

@table
def orders():
    return read_stream("decoded").where("amount > 0")

@table
def totals():
    return read("orders").groupBy("customer").agg(F.sum("amount").alias("amount"))

@sink(topic="TOPIC-large")
def large():
    return read_stream("orders").where("amount >= 10").selectExpr("customer AS key", "to_json(struct(*)) AS value")
"""


@pytest.mark.parametrize(
    ("rule", "lacking"),
    [
        ('@table\n@expect("a", "id > 0")', "expectations"),
        ('@table(keys=["id"])', "keys"),
        ('@table(retain="1d")', "retain"),
        ('@table(format="delta")', 'format="delta"'),
    ],
)
def test_what_the_engine_lacks_is_refused_by_its_name(rule: str, lacking: str, tmp_path: Path) -> None:
    file = tmp_path / "shop.py"
    file.write_text(f'{HEAD}{rule}\ndef orders():\n    return read_topic("orders")\n')
    said = rf"table orders \(line \d\) has {re.escape(lacking)}, which Spark Declarative Pipelines do not have"
    with pytest.raises(BadDefinition, match=said):
        check_declared(load(str(file)))


def test_it_ends_where_there_is_no_more(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "shop.py"
    file.write_text(HEAD + FILE)
    assert main(["pipeline", "run", str(file), "--engine", "sdp", "-b", "localhost:9"]) == faults.USAGE
    assert "--engine sdp reads what is there and ends: say --mode catch-up" in capsys.readouterr().err


@needs_java
@pytest.mark.slow
@pytest.mark.xdist_group("spark")
@pytest.mark.timeout(3600)
def test_the_same_file_under_declarative_pipelines(pipeline: Pipeline) -> None:
    """Two runs; nobody else's machine can connect to them."""
    pipeline.define(FILE)
    pipeline.broker.create_topic(f"{pipeline.topic}-large", partitions=1)
    pipeline.send({"id": 1, "customer": "a", "amount": 10}, {"id": 2, "customer": "b", "amount": -1})
    addresses = run(pipeline)
    assert {one.split()[0] for one in addresses} == {"127.0.0.1"}, addresses
    pipeline.send({"id": 3, "customer": "a", "amount": 2.5}, {"id": 4, "customer": "b", "amount": 11})
    run(pipeline)
    warehouse = Path(pipeline.places.folder) / "sdp" / "warehouse"

    def rows(table: str, *columns: str) -> list[tuple[object, ...]]:
        found = pyarrow.dataset.dataset(warehouse / table, format="parquet", exclude_invalid_files=True)
        return sorted(tuple(row[name] for name in columns) for row in found.to_table().to_pylist())

    assert len(rows("raw", "topic", "partition", "offset")) == 4
    assert rows("orders", "id", "amount") == [(1, 10.0), (3, 2.5), (4, 11.0)]
    assert rows("totals", "customer", "amount") == [("a", 12.5), ("b", 11.0)]
    assert sorted(one.key for one in pipeline.records(f"{pipeline.topic}-large") if one.key) == [b"a", b"b"]


def run(pipeline: Pipeline) -> set[str]:
    """Once, to the end; the addresses that its processes listened on meanwhile."""
    words = ["pipeline", "run", str(pipeline.path), "--folder", pipeline.places.folder, "-b", pipeline.broker.bootstrap]
    log = pipeline.folder / "sdp.txt"
    with log.open("wb") as out:
        process = subprocess.Popen(
            [sys.executable, "-m", "ottla", *words, "--engine", "sdp", "--mode", "catch-up", "--master", "local[2]"],
            stdout=out,
            stderr=out,
            stdin=subprocess.DEVNULL,
            env={**os.environ, "PYTHONPATH": str(REPOSITORY / "src")},
            cwd=pipeline.folder,
        )
    addresses: set[str] = set()
    give_up = time.monotonic() + SECONDS_MAX
    try:
        while process.poll() is None:
            assert time.monotonic() < give_up, log.read_text()
            addresses |= listening([process.pid, *descendants(process.pid)])
            time.sleep(0.2)
    finally:
        end_all(process.pid)
    assert process.returncode == 0, log.read_text()
    return addresses
