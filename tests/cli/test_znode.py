"""`ottla znode` against a served tree: what is there, what is not, and a tree that is not."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator

import pytest
from tools.server_process import free_port

from tests.cli.conftest import Command, environment


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("tree")
    command = [sys.executable, "-m", "ottla", "tree", "--dir", str(folder), "--listen", "127.0.0.1:0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, env=environment(), text=True) as process:
        assert process.stdout is not None
        yield process.stdout.readline().split()[-1]
        process.terminate()


def test_the_root_and_a_znode(tree: str, in_process: Command) -> None:
    listed = in_process("znode", "ls", "--zookeeper", tree, "-o", "json")
    assert isinstance(json.loads(listed.out), list)
    got = in_process("znode", "get", "/", "--zookeeper", tree, "-o", "json")
    assert json.loads(got.out)["stat"]["version"] == 0


def test_what_is_not_there(tree: str, in_process: Command) -> None:
    ran = in_process("znode", "get", "/none", "--zookeeper", tree)
    assert (ran.code, ran.err.count("no znode /none")) == (3, 1)
    assert in_process("znode", "ls", "none", "--zookeeper", tree).code == 3


def test_a_tree_that_is_not_there(in_process: Command) -> None:
    ran = in_process("znode", "ls", "/", "--zookeeper", f"127.0.0.1:{free_port()}")
    assert ran.code == 4
    assert len(ran.err.splitlines()) == 1
