"""`reassign` and `elect` on a cluster of one broker: what is named and is not there, and what has nothing to do."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ottla.cli import faults
from tests.cli.conftest import Command


def moves(folder: Path, topic: str, partition: int = 0, broker: int = 1) -> str:
    path = folder / "moves.json"
    one = {"topic": topic, "partition": partition, "replicas": [broker]}
    path.write_text(json.dumps({"version": 1, "partitions": [one]}))
    return str(path)


def test_a_plan_that_moves_nothing_is_carried_out(ottla: Command, topic: str, tmp_path: Path) -> None:
    """As whoever types the two lines of the page has it on a cluster that is even already."""
    planned = ottla("reassign", "plan", topic)
    assert (planned.code, json.loads(planned.out)["partitions"]) == (0, [])
    path = tmp_path / "moves.json"
    path.write_text(planned.out)
    ran = ottla("reassign", "run", "--file", str(path), "--yes")
    assert (ran.code, ran.out, ran.err) == (0, f"{path} names no partition: nothing has to be moved\n", "")
    assert json.loads(ottla("reassign", "run", "--file", str(path), "--yes", "-o", "json").out) == []
    assert json.loads(ottla("reassign", "cancel", "--all", "-o", "json").out) == []
    assert ottla("reassign", "cancel", "--all").out == "no partition is on its way\n"


@pytest.mark.parametrize("words", [("--yes",), ()])
def test_what_is_not_there_is_said_before_anything_is_planned(
    ottla: Command, topic: str, tmp_path: Path, words: tuple[str, ...]
) -> None:
    def refused(path: str) -> str:
        ran = ottla("reassign", "run", "--file", path, *words)
        assert (ran.code, ran.out) == (faults.NOT_FOUND, "")
        return ran.err

    assert f"{topic} has 1 partition, and no 7" in refused(moves(tmp_path, topic, partition=7))
    assert "there is no broker 9 now; there are: 1" in refused(moves(tmp_path, topic, broker=9))
    assert "there is no such topic" in refused(moves(tmp_path, "none-of-these"))
    assert "No such file" in refused(str(tmp_path / "none.json"))


def test_a_plan_for_brokers_that_are_not_there(ottla: Command, topic: str) -> None:
    ran = ottla("reassign", "plan", topic, "--broker-list", "1,9,8")
    assert (ran.code, ran.out) == (faults.NOT_FOUND, "")
    assert "there is no broker 9, 8 now; there are: 1" in ran.err
    for text in ("", "1,x", "9" * 5000, "-1"):
        ran = ottla("reassign", "plan", topic, f"--broker-list={text}")
        assert ran.code == faults.USAGE
        assert "is not made of brokers' ids" in ran.err


def test_partitions_that_are_not_there(ottla: Command, topic: str) -> None:
    for kind in ("--preferred", "--unclean"):
        ran = ottla("elect", kind, "--topic", f"{topic}:0,9")
        assert (ran.code, ran.out) == (faults.NOT_FOUND, "")
        assert f"{topic} has 1 partition, and no 9" in ran.err
        assert ottla("elect", kind, "--topic", f"{topic}:{'9' * 5000}").code == faults.USAGE
        assert ottla("elect", kind, "--topic", "no name").code == faults.USAGE
    ran = ottla("why", topic, "9")
    assert (ran.code, ran.err) == (faults.NOT_FOUND, f"ottla: {topic} has 1 partition, and no 9\n")
    for partition in ("x", "-1", "9" * 5000):
        assert ottla("why", topic, "--", partition).code == faults.USAGE
    assert ottla("why", "no name", "0").code == faults.USAGE


def test_where_nobody_lacks_a_leader(ottla: Command, topic: str) -> None:
    assert ottla("elect", "--preferred", "--all").out == "each partition has its preferred leader\n"
    for words in (("--all",), ("--topic", topic), ("--all", "--yes")):
        ran = ottla("elect", "--unclean", *words)
        assert (ran.code, ran.out) == (0, "each partition has a leader\n")
        assert json.loads(ottla("elect", "--unclean", *words, "-o", "json").out) == []
