"""The code of examples/notebook.ipynb, cell after cell, in a session that is there already; the file is a notebook."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.conftest import REPOSITORY

import ottla.spark
from ottla.client.sync import Admin
from ottla.testing import InProcessBroker

NOTEBOOK = json.loads((REPOSITORY / "examples" / "notebook.ipynb").read_text())
CODE = ["".join(cell["source"]) for cell in NOTEBOOK["cells"] if cell["cell_type"] == "code"]


def test_it_is_a_notebook_without_results() -> None:
    """Of format 4.5, as its schema has it."""
    assert (NOTEBOOK["nbformat"], NOTEBOOK["nbformat_minor"]) == (4, 5)
    fields = {"cell_type", "id", "metadata", "source"}
    for cell in NOTEBOOK["cells"]:
        more = {"execution_count", "outputs"} if cell["cell_type"] == "code" else set()
        assert set(cell) == fields | more
        assert (cell.get("outputs", []), cell.get("execution_count")) == ([], None)
    assert len({cell["id"] for cell in NOTEBOOK["cells"]}) == len(NOTEBOOK["cells"])


@pytest.mark.xdist_group("spark")
@pytest.mark.timeout(1200)  # a JVM starts, on a machine with other work
def test_its_cells_run(
    spark: Any, ottla_broker: InProcessBroker, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    space: dict[str, Any] = {}
    monkeypatch.setitem(vars(ottla.spark), "session", lambda: spark)
    monkeypatch.setattr(spark, "stop", lambda: None)  # others use it too
    for number, cell in enumerate(CODE):
        text = cell.replace("localhost:9092", ottla_broker.bootstrap)
        exec(compile(text, f"cell {number}", "exec"), space)
    assert sum(count for _, count in space["counts"]) == 1001
    assert set(space["found"]["customer"]) == {"ann", "bob", "cid", "dan"}
    assert "|     ann|" in capsys.readouterr().out
    with Admin(bootstrap_servers=ottla_broker.bootstrap) as admin:
        assert sum(one.offset for one in admin.list_group_offsets("notebook").values()) in {0, 1001}
