"""`ottla group import`: positions that consumers of Kafka 0.8 left in a tree are committed at the brokers."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
from tools.ottla_server import TreeProcess, ottla_tree

from ottla.cli import faults
from ottla.coordination.zookeeper.codes import OpCode
from ottla.coordination.zookeeper.messages import OPEN_TO_ALL, CreateRequest
from ottla.testing import InProcessBroker
from tests.cli.conftest import Command
from tests.coordination.served.wire import WireClient

#: As Kafka 0.8 writes it.
MEMBER = b'{"version":1,"subscription":{"orders":1},"pattern":"static","timestamp":"1400000000000"}'
CHROOT = "/kafka"


class OldTree:
    """The session that the ephemeral nodes of this test belong to ends with it."""

    def __init__(self, client: WireClient, group: str) -> None:
        self._client = client
        self._group = group

    def put(self, path: str, data: bytes, *, ephemeral: bool = False) -> None:
        names = f"{CHROOT}/consumers/{self._group}/{path}".split("/")
        for count in range(2, len(names)):
            self._create("/".join(names[:count]), b"", 0)
        self._create("/".join(names), data, int(ephemeral))

    def _create(self, path: str, data: bytes, flags: int) -> None:
        error = self._client.call(OpCode.CREATE, CreateRequest(path, data, OPEN_TO_ALL, flags)).header.error
        assert error in {0, -110}, "there is one such node"


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TreeProcess]:
    process = ottla_tree(tmp_path_factory.mktemp("import") / "tree")
    with process:
        yield process


@pytest.fixture
def group(request: pytest.FixtureRequest) -> str:
    return request.node.name.replace("_", "-")[:60]


@pytest.fixture
def old_tree(tree: TreeProcess, group: str) -> Iterator[OldTree]:
    with WireClient(tree.port, timeout_ms=60_000) as client:
        yield OldTree(client, group)


Import = Command


@pytest.fixture
def importing(in_process: Command, tree: TreeProcess, ottla_broker: InProcessBroker, group: str) -> Import:
    def run(*words: str) -> object:
        address = f"{tree.bootstrap}{CHROOT}"
        return in_process("group", "import", group, "--zookeeper", address, "-b", ottla_broker.bootstrap, *words)

    return run  # type: ignore[return-value]


def committed(in_process: Command, broker: InProcessBroker, group: str) -> dict[tuple[str, int], int]:
    ran = in_process("group", "describe", group, "-b", broker.bootstrap, "-o", "json")
    assert ran.code == 0, ran.err
    (told,) = json.loads(ran.out)
    return {
        (row["topic"], row["partition"]): row["current"] for row in told["partitions"] if row["current"] is not None
    }


def test_positions_are_shown_and_then_committed(
    in_process: Command, ottla_broker: InProcessBroker, old_tree: OldTree, importing: Import, group: str
) -> None:
    ottla_broker.create_topic("orders", partitions=2)
    old_tree.put("offsets/orders/0", b"17")
    old_tree.put("offsets/orders/1", b"4")
    ran = importing()
    assert ran.code == faults.NOT_CONFIRMED
    assert [line.split()[1:] for line in ran.lines[2:]] == [["orders", "0", "-", "17"], ["orders", "1", "-", "4"]]
    assert importing("--dry-run").code == 0
    ran = importing("--yes")
    assert (ran.code, ran.lines[-1]) == (0, "done")
    assert committed(in_process, ottla_broker, group) == {("orders", 0): 17, ("orders", 1): 4}
    # Once more, from where the group is now.
    assert [row["current"] for row in json.loads(importing("--dry-run", "-o", "json").out)] == [17, 4]


def test_a_group_with_consumers_in_it_is_refused_unless_forced(
    in_process: Command, ottla_broker: InProcessBroker, old_tree: OldTree, importing: Import, group: str
) -> None:
    ottla_broker.create_topic("live")
    consumer = f"{group}_host-1400000000000-0a1b2c3d"
    old_tree.put("offsets/live/0", b"3")
    old_tree.put(f"ids/{consumer}", MEMBER, ephemeral=True)
    old_tree.put("owners/live/0", f"{consumer}-0".encode(), ephemeral=True)
    ran = importing("--yes")
    assert ran.code == faults.FAILED
    assert f"consumers are in {group}: {consumer}, with 1 partition; stop them" in ran.err
    assert importing("--yes", "--force").code == 0
    assert committed(in_process, ottla_broker, group) == {("live", 0): 3}


def test_what_is_not_in_the_cluster_is_named_and_left_out(
    in_process: Command, ottla_broker: InProcessBroker, old_tree: OldTree, importing: Import, group: str
) -> None:
    ottla_broker.create_topic("shrunk")
    old_tree.put("offsets/shrunk/0", b"3")
    old_tree.put("offsets/shrunk/1", b"4")
    old_tree.put("offsets/gone/0", b"5")
    ran = importing("--yes")
    assert ran.code == faults.NOT_FOUND
    assert "left out, since they are not there: positions in gone, shrunk" in ran.err
    assert "left out: there is no such topic" in ran.out
    assert "left out: the topic has 1 partition\n" in ran.out
    assert committed(in_process, ottla_broker, group) == {("shrunk", 0): 3}


def test_nodes_that_are_no_positions_are_named(
    in_process: Command, ottla_broker: InProcessBroker, old_tree: OldTree, importing: Import, group: str
) -> None:
    ottla_broker.create_topic("odd", partitions=3)
    old_tree.put("offsets/odd/0", b"9223372036854775808")
    old_tree.put("offsets/odd/1", b"-1")
    old_tree.put("offsets/odd/2", b"2")
    old_tree.put("offsets/odd/x", b"2")
    ran = importing("--yes")
    assert ran.code == faults.FAILED
    for path in ("odd/0", "odd/1", "odd/x"):
        assert f"ottla: the znode /consumers/{group}/offsets/{path} is damaged" in ran.err
    assert committed(in_process, ottla_broker, group) == {("odd", 2): 2}


def test_a_group_that_the_tree_does_not_have_is_an_error(importing: Import, group: str) -> None:
    ran = importing("--yes")
    assert (ran.code, f"has no group {group}" in ran.err) == (faults.NOT_FOUND, True)


def test_all_groups_are_those_of_the_tree(
    in_process: Command, ottla_broker: InProcessBroker, tree: TreeProcess, old_tree: OldTree, group: str
) -> None:
    old_tree.put("offsets/none/0", b"1")
    words = ["group", "import", "--all-groups", "--dry-run", "--zookeeper", f"{tree.bootstrap}{CHROOT}", "--force"]
    ran = in_process(*words, "-b", ottla_broker.bootstrap, "-o", "json")
    assert group in {row["group"] for row in json.loads(ran.out)}
