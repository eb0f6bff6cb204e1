"""The examples of docs/spark.md run as they stand, one after the other, but for the address and the folders."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from tests.conftest import REPOSITORY

import ottla.spark
from ottla.client.sync import Admin
from ottla.spark.source.settings import _KNOWN, _PASSED_OVER
from ottla.testing import InProcessBroker

TEXT = (REPOSITORY / "docs" / "spark.md").read_text()
EXAMPLES = re.findall(r"^```python\n(.*?)^```", TEXT, re.DOTALL | re.MULTILINE)


def test_every_option_is_named() -> None:
    assert {name for name in _KNOWN if f"`{name}`" not in TEXT} == set()
    assert set(_PASSED_OVER) < set(_KNOWN)


@pytest.mark.timeout(600)  # a JVM starts, on a machine with other work
@pytest.mark.xdist_group("spark")
def test_the_examples(
    spark: Any,
    broker: InProcessBroker,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setitem(vars(ottla.spark), "session", lambda: spark)
    trackers: list[Any] = []
    track = ottla.spark.track
    monkeypatch.setitem(vars(ottla.spark), "track", lambda session: trackers.append(track(session)))
    program = "\n".join(EXAMPLES).replace("localhost:9092", broker.bootstrap).replace("/tmp/", f"{tmp_path}/")
    space: dict[str, Any] = {}
    try:
        exec(compile(program, "docs/spark.md", "exec"), space)
        # Printed after each other: what was read, in micro-batches of 400, and what the group has left to read.
        assert space["values"].count() == 1000
        assert sum(space["counts"].values()) >= 1000
        assert space["few"].count() == min(10, space["orders"].where("partition = 0").count())
        with Admin(bootstrap_servers=broker.bootstrap) as admin:
            assert sum(one.offset for one in admin.list_group_offsets("counting").values()) in {0, 1000}
    finally:
        for tracker in trackers:
            tracker.stop()
        spark.conf.unset("spark.sql.python.filterPushdown.enabled")
    assert capsys.readouterr().out
