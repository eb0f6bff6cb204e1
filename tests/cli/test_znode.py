"""`ottla znode`: what is in a tree, shown to people and to programs."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
from tools.ottla_server import TreeProcess, ottla_tree

from ottla.cli import faults
from ottla.cli.main import main
from ottla.coordination.zookeeper.codes import OpCode
from ottla.coordination.zookeeper.messages import OPEN_TO_ALL, CreateRequest
from tests.coordination.served.wire import WireClient

NODES = {"/brokers": b"", "/brokers/ids": b"", "/brokers/ids/1": '{"host":"größe"}'.encode(), "/binary": b"\xff\0"}


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TreeProcess]:
    process = ottla_tree(tmp_path_factory.mktemp("znode") / "tree")
    with process, WireClient(process.port, timeout_ms=60_000) as client:
        for path, data in NODES.items():
            flags = 1 if path.endswith("/1") else 0
            assert client.call(OpCode.CREATE, CreateRequest(path, data, OPEN_TO_ALL, flags)).header.error == 0
        yield process


def test_children_are_named(tree: TreeProcess, capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["znode", "ls", "--zookeeper", tree.bootstrap]) == 0
    out, err = capfd.readouterr()
    assert [line.split()[0] for line in out.splitlines()] == ["PATH", "/binary", "/brokers"]
    assert err == ""
    assert main(["znode", "ls", "-r", "--zookeeper", tree.bootstrap, "-o", "json"]) == 0
    rows = json.loads(capfd.readouterr().out)
    assert [row["path"] for row in rows] == sorted(NODES)
    assert [row["owner"] is None for row in rows] == [True, True, True, False]


def test_a_path_behind_the_address_is_put_before_all_others(
    tree: TreeProcess, capfd: pytest.CaptureFixture[str]
) -> None:
    assert main(["znode", "ls", "/ids", "--zookeeper", f"{tree.bootstrap}/brokers"]) == 0
    assert "/brokers/ids/1" in capfd.readouterr().out
    # It is not made where it is missing.
    assert main(["znode", "ls", "--zookeeper", f"{tree.bootstrap}/none"]) == faults.NOT_FOUND
    assert main(["znode", "get", "/none", "--zookeeper", tree.bootstrap]) == faults.NOT_FOUND


def test_data_is_printed_as_it_is(tree: TreeProcess, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    assert main(["znode", "get", "/binary", "--zookeeper", tree.bootstrap]) == 0
    assert capfdbinary.readouterr().out == b"\xff\0\n"
    assert main(["znode", "get", "/binary", "--zookeeper", tree.bootstrap, "-o", "json"]) == 0
    assert json.loads(capfdbinary.readouterr().out)["base64"] == "/wA="
    assert main(["znode", "get", "/brokers/ids/1", "--zookeeper", tree.bootstrap, "-o", "yaml"]) == 0
    assert "größe" in capfdbinary.readouterr().out.decode()


@pytest.mark.parametrize(
    ("arguments", "code", "why"),
    [
        (["get", "/none"], faults.NOT_FOUND, "there is no znode /none"),
        (["ls", "none"], faults.USAGE, "it must start with /"),
        (["ls", "--zookeeper", "nobody:x"], faults.USAGE, "is no port"),
        (
            ["ls", "--zookeeper", "127.0.0.1:1"],
            faults.UNREACHABLE,
            "(Connection refused); --zookeeper says where the tree is",
        ),
    ],
)
def test_what_goes_wrong_is_one_line(
    tree: TreeProcess, capfd: pytest.CaptureFixture[str], arguments: list[str], code: int, why: str
) -> None:
    given = arguments if "--zookeeper" in arguments else [*arguments, "--zookeeper", tree.bootstrap]
    assert main(["znode", *given]) == code
    out, err = capfd.readouterr()
    assert out == ""
    assert why in err
    assert len(err.splitlines()) == 1
