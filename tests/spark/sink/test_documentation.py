"""The examples in docs/spark-writing.md run as they stand, but for address, session and checkpoint."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from tests.spark.sink.conftest import Read

from ottla.formats import decoder
from ottla.spark.sink.encoding import AS, FORMAT_SETTINGS
from ottla.spark.sink.target import EXACTLY_ONCE, QUERY
from ottla.testing.in_process import InProcessBroker

#: A session takes seconds to start, and minutes where many tests share the machine.
pytestmark = [pytest.mark.xdist_group("spark"), pytest.mark.timeout(1200)]

TEXT = (Path(__file__).resolve().parents[3] / "docs" / "spark-writing.md").read_text()


@pytest.mark.slow
def test_the_examples(spark: Any, ottla_broker: InProcessBroker, tmp_path: Path, read: Read) -> None:
    program = "\n".join(re.findall(r"^```python\n(.*?)^```", TEXT, re.DOTALL | re.MULTILINE))
    program = program.replace("localhost:9092", ottla_broker.bootstrap).replace("/tmp/", f"{tmp_path}/")
    names: dict[str, Any] = {}
    exec(program, names)
    assert names["spark"] is spark
    assert len(read("orders")) == 1000
    assert sorted(one.value or b"" for one in read("orders-large")) == sorted(b"ORDER %d" % n for n in range(1000))
    assert len(read("orders-once")) == 1000
    totals = decoder("avro:registry", schema_registry_url=f"{tmp_path}/schemas", topic="totals")
    values = [totals.decode_one(one.value or b"") for one in read("totals")]
    assert {one["customer"]: one["orders"] for one in values} == {f"customer {n}": 14 + (n < 2) for n in range(7)}


def test_every_option_is_named() -> None:
    known = (QUERY, EXACTLY_ONCE, f"key{AS}", f"value{AS}", *FORMAT_SETTINGS)
    assert {name for name in known if f"`{name}`" not in TEXT} == set()
