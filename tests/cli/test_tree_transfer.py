"""`ottla tree dump` and `ottla tree load`: three brokers go from their own tree to another and back."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from confluent_kafka import Producer
from kazoo.client import KazooClient
from tools.ottla_server import TreeProcess, ottla_tree

from ottla.cli import faults
from ottla.client.sync import Consumer
from ottla.testing import Cluster, cluster
from tests.cli.conftest import Command

RECORDS = 200
ID = '{"version":"1","id":"x"}'


def produce(running: Cluster, number: int) -> None:
    """The next records; each is acknowledged by all in-sync replicas."""
    lost: list[object] = []
    producer = Producer({"bootstrap.servers": running.bootstrap, "enable.idempotence": True, "log_level": 0})
    for value in range(number * RECORDS, (number + 1) * RECORDS):
        producer.produce("orders", str(value).encode(), on_delivery=lambda error, _: error and lost.append(error))
    assert producer.flush(60) == 0
    assert lost == []


def check(running: Cluster, number: int) -> None:
    """What was acknowledged is there, once and in order, and every replica takes part."""
    running.until_in_sync("orders")
    with Consumer(bootstrap_servers=running.bootstrap, auto_offset_reset="earliest") as consumer:
        consumer.assign([("orders", 0)])
        found: list[int] = []
        while len(found) < (number + 1) * RECORDS:
            found += [int(record.value) for record in consumer.poll(timeout_ms=1000)]
    assert found == list(range((number + 1) * RECORDS))


@pytest.mark.slow
def test_three_brokers_move_to_another_tree_and_back(tmp_path: Path, in_process: Command) -> None:
    folder, file = str(tmp_path / "data.coordination"), str(tmp_path / "tree.json")
    with cluster(3, data=tmp_path) as running:
        running.create_topic("orders")
        produce(running, 0)
        running.kill_leader("orders")  # leader epochs, and versions of the state, that begin anew elsewhere
        produce(running, 1)
        check(running, 1)
        busy = in_process("tree", "dump", "--dir", folder)
        assert (busy.code, "in use by another process" in busy.err) == (faults.FAILED, True)
    assert in_process("tree", "dump", "--dir", folder, "--file", file).code == 0
    with ottla_tree(tmp_path / "elsewhere") as tree:
        loaded = in_process("tree", "load", "--zookeeper", tree.bootstrap, "--file", file)
        assert (loaded.code, loaded.err) == (0, "")
        assert "topics: 1" in loaded.out
        with cluster(3, data=tmp_path, zookeeper=tree.bootstrap) as running:
            check(running, 1)
            running.kill_leader("orders")
            produce(running, 2)
            check(running, 2)
            # While brokers live a dump is for looking at.
            live = in_process("tree", "dump", "--zookeeper", tree.bootstrap)
            assert live.code == 0
            assert "registered while this was made: 1, 2, 3" in live.err
            (tmp_path / "live.json").write_text(live.out)
        refused = in_process("tree", "load", "--dir", folder, "--file", str(tmp_path / "live.json"), "--replace")
        assert (refused.code, "brokers 1, 2, 3 are registered" in refused.err) == (faults.FAILED, True)
        stale = in_process("tree", "load", "--zookeeper", tree.bootstrap, "--file", file, "--replace")
        assert (stale.code, "the tree is further than the dump" in stale.err) == (faults.FAILED, True)
        assert in_process("tree", "dump", "--zookeeper", tree.bootstrap, "--file", file).code == 0
    assert in_process("tree", "load", "--dir", folder, "--file", file).code == faults.FAILED  # it is in use
    assert in_process("tree", "load", "--dir", folder, "--file", file, "--replace").code == 0
    with cluster(3, data=tmp_path) as running:
        check(running, 2)
        produce(running, 3)
        check(running, 3)


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> TreeProcess:
    return ottla_tree(tmp_path_factory.mktemp("transfer") / "tree")


def test_a_chroot_is_looked_for_and_made(tree: TreeProcess, tmp_path: Path, in_process: Command) -> None:
    dump = tmp_path / "tree.json"
    node = {"version": 0, "ephemeral_owner": 0}
    nodes = [
        {"path": "/cluster", "text": "", **node},
        {"path": "/cluster/id", "text": ID, **node},
    ]
    dump.write_text(json.dumps({"format": 1, "nodes": nodes}))
    with tree:
        missing = in_process("tree", "dump", "--zookeeper", f"{tree.bootstrap}/a/b")
        assert (missing.code, "there is no znode /a/b" in missing.err) == (faults.NOT_FOUND, True)
        assert in_process("tree", "load", "--zookeeper", f"{tree.bootstrap}/a/b", "--file", str(dump)).code == 0
        found = in_process("tree", "dump", "--zookeeper", f"{tree.bootstrap}/a/b")
        assert [one["path"] for one in json.loads(found.out)["nodes"]] == ["/", "/cluster", "/cluster/id"]


def test_a_dump_is_written_where_a_link_leads_and_is_as_private_as_the_last_one(
    tmp_path: Path, in_process: Command
) -> None:
    folder, given = str(tmp_path / "tree"), tmp_path / "given.json"
    node = {"version": 0, "ephemeral_owner": 0}
    nodes = [{"path": path, "text": text, **node} for path, text in (("/cluster", ""), ("/cluster/id", ID))]
    given.write_text(json.dumps({"format": 1, "nodes": nodes}))
    loaded = in_process("tree", "load", "--dir", folder, "--file", str(given))
    assert (loaded.code, loaded.err) == (0, "")
    kept, link = tmp_path / "kept.json", tmp_path / "tree.json"
    kept.write_text("of yesterday")
    kept.chmod(0o600)
    link.symlink_to(kept)
    assert in_process("tree", "dump", "--dir", folder, "--file", str(link)).code == 0
    assert (link.is_symlink(), kept.stat().st_mode & 0o777) == (True, 0o600)
    assert [one["path"] for one in json.loads(kept.read_text())["nodes"]] == ["/", "/cluster", "/cluster/id"]


@pytest.mark.parametrize(
    ("words", "code", "why"),
    [
        (["dump", "--dir", "{}/none"], faults.NOT_FOUND, "holds no tree"),
        (["dump"], faults.USAGE, "--zookeeper --dir is required"),
        (["dump", "--dir", "x", "--zookeeper", "y"], faults.USAGE, "not allowed with"),
        (["dump", "--zookeeper", "127.0.0.1:1"], faults.UNREACHABLE, "--zookeeper says where the tree is"),
        (["load", "--dir", "{}/b", "--file", "{}/none"], faults.NOT_FOUND, "No such file"),
        (["load", "--dir", "{}/b", "--file", "{}/text"], faults.FAILED, "is not what `ottla tree dump` writes"),
        (["load", "--dir", "{}/b", "--file", "{}/list"], faults.FAILED, "is not what `ottla tree dump` writes"),
        (["load", "--dir", "{}/b"], faults.USAGE, "--file"),
    ],
)
def test_what_goes_wrong_is_one_line(
    tmp_path: Path, in_process: Command, words: list[str], code: int, why: str
) -> None:
    (tmp_path / "text").write_text("not JSON")
    (tmp_path / "list").write_text("[]")
    ran = in_process("tree", *(word.replace("{}", str(tmp_path)) for word in words))
    assert (ran.code, ran.out) == (code, "")
    assert why in ran.err
    assert len(ran.err.splitlines()) == 1


def test_sessions_that_a_served_tree_left_keep_a_folder_from_being_written(tmp_path: Path, in_process: Command) -> None:
    """Their brokers may run on while the tree is stopped, and come back to it."""
    folder, file = tmp_path / "tree", tmp_path / "tree.json"
    serving = ottla_tree(folder)
    with serving:
        client = KazooClient(serving.bootstrap, timeout=60)
        client.start()
        try:
            client.create("/cluster/id", b'{"version":"1","id":"c1"}', makepath=True)
            client.create("/brokers/ids/1", b"{}", ephemeral=True, makepath=True)
            serving.stop()
        finally:
            client.stop()
            client.close()
    dumped = in_process("tree", "dump", "--dir", str(folder), "--file", str(file))
    assert (dumped.code, "registered while this was made: 1" in dumped.err) == (0, True)
    file.write_text(file.read_text().replace("/brokers/ids/1", "/brokers/ids1"))
    for _ in range(2):  # the first try has ended nothing
        refused = in_process("tree", "load", "--dir", str(folder), "--file", str(file), "--replace")
        assert (refused.code, "has 1 open session of other processes" in refused.err) == (faults.FAILED, True)
