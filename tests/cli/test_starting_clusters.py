"""`ottla up -n` that cannot start: one line with the cause and the next step, and nothing is left behind."""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from ottla.cli import faults
from tests.cli.conftest import Command, run_process

#: Of documentation (RFC 5737): no machine has it.
NOWHERE = "192.0.2.1"


@pytest.fixture
def taken() -> Iterator[int]:
    with socket.socket() as holder:
        holder.bind(("127.0.0.1", 0))
        holder.listen()
        yield holder.getsockname()[1]


def refused(data: Path, *words: str) -> tuple[int, str]:
    """The exit code and the one line; nothing was started, so that nothing is there."""
    ran = run_process(("up", "-n", "3", "--data", str(data / "data"), *words))
    assert ran.out == ""
    assert os.listdir(data) == []
    (line,) = ran.err.splitlines()
    return ran.code, line


def test_the_port_is_in_use(tmp_path: Path, taken: int) -> None:
    code, said = refused(tmp_path, "--port", str(taken))
    assert code == 1
    what, _, step = said.partition("; ")
    assert what == f"ottla: cannot listen on 127.0.0.1:{taken}: Address already in use"
    assert step == "choose another port with --port N, or --port 0 for a free one"


@pytest.mark.parametrize("port", ["0", "9092"])
def test_an_address_that_this_host_has_not(tmp_path: Path, port: str) -> None:
    code, said = refused(tmp_path, "--host", NOWHERE, "--port", port)
    assert code == 1
    assert f"cannot listen on {NOWHERE}:{port}: Cannot assign requested address" in said
    assert "--host" in said


def test_an_address_that_is_mistyped(tmp_path: Path) -> None:
    """Python's resolver does not even ask for one with two dots in a row."""
    code, said = refused(tmp_path, "--host", "127.0.0..1", "--port", "0")
    assert (code, said.partition(";")[0]) == (1, "ottla: cannot listen on 127.0.0..1:0: Name or service not known")


def test_a_property_is_bad(tmp_path: Path) -> None:
    code, said = refused(tmp_path, "--port", "0", "--set", "num.partitions=x")
    assert (code, said) == (1, "ottla: Invalid value x for configuration num.partitions: Not a number of type INT")


@pytest.mark.parametrize(
    "given",
    [
        "broker.id=7",
        "listeners=PLAINTEXT://127.0.0.1:19092",
        "advertised.listeners=PLAINTEXT://host.docker.internal:19092",
        "ottla.metrics.port=9404",
        "port=19092",
        "log.dir=/tmp/elsewhere",
    ],
)
def test_what_each_broker_has_of_its_own_is_not_passed_over(in_process: Command, tmp_path: Path, given: str) -> None:
    ran = in_process("up", "-n", "3", "--data", str(tmp_path / "data"), "--set", given)
    assert (ran.code, ran.out, os.listdir(tmp_path)) == (faults.USAGE, "", [])
    assert ran.err.startswith(f"ottla: --set {given.partition('=')[0]}: each of several brokers has its own")


@pytest.mark.parametrize(("address", "said"), [("", "names no server"), ("zk:many", "'many' is no port")])
def test_an_address_of_the_tree_that_cannot_be_meant(tmp_path: Path, address: str, said: str) -> None:
    code, line = refused(tmp_path, "--port", "0", "--zookeeper", address)
    assert code == 2
    assert said in line


def test_two_log_directories_of_one_broker(tmp_path: Path) -> None:
    """A cluster of two would have one broker, and nobody would be told."""
    for name in ("data", "data-2"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "meta.properties").write_text("version=0\nbroker.id=1\n")
    ran = run_process(("up", "-n", "2", "--port", "0", "--data", str(tmp_path)))
    assert (ran.code, ran.out) == (1, "")
    assert ran.err.splitlines()[-1].startswith("ottla: two of the log directories are broker 1's")


@pytest.mark.parametrize("form", ["text", "json"])
def test_the_folder_cannot_be_used(tmp_path: Path, form: str) -> None:
    """What a process says at its end is said once more at the end of all, and not in the name of both."""
    (tmp_path / "file").write_text("")
    more = ("--json-logs",) if form == "json" else ()
    ran = run_process(("up", "-n", "2", "--port", "0", "--data", str(tmp_path / "file" / "data"), *more))
    assert (ran.code, ran.out) == (1, "")
    if form == "json":
        assert any("Not a directory" in json.dumps(json.loads(line)) for line in ran.err.splitlines())
    else:
        assert ran.err.splitlines()[-1].startswith("ottla: the tree cannot use ")
