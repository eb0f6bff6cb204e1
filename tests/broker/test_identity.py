"""Whose directories are these: a new broker gets an id, a broker that lost its id does not get another one."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from tests.handlers.frames import batch, fetch, produce, values
from tests.server.conftest import BrokerThread

from ottla.model import ErrorCode
from ottla.storage.directories.errors import LostIdentity, MisplacedTree


def meta(path: Path) -> dict[str, str]:
    lines = (path / "meta.properties").read_text().splitlines()
    return dict(line.split("=", 1) for line in lines if not line.startswith("#"))


@pytest.fixture
def used(tmp_path: Path) -> Path:
    """The folder of a broker that has stopped, 1001 by its own count, with a record in each of two partitions."""
    with BrokerThread(str(tmp_path)) as running, running.connect() as peer:
        assert running.look(lambda broker: broker.broker_id) == 1001
        running.create_topic("t", 2)
        for partition in range(2):
            assert produce(peer, batch(b"kept"), partition=partition).error_code == ErrorCode.NONE
    return tmp_path


def serves(folder: Path, log_dirs: str = "", **properties: str) -> None:
    """The broker starts as the one it was, and has what it had."""
    settings = {name.replace("_", "."): value for name, value in properties.items()}
    settings |= {"log.dirs": log_dirs} if log_dirs else {}
    with BrokerThread(str(folder), **settings) as running, running.connect() as peer:
        assert running.look(lambda broker: broker.broker_id) == 1001
        for partition in range(2):
            assert values(fetch(peer, 0, partition=partition))[0] == b"kept"
            assert produce(peer, batch(b"more"), partition=partition).error_code == ErrorCode.NONE


def test_a_fresh_directory_of_an_existing_broker_gets_its_identity(used: Path) -> None:
    before = meta(used / "logs")
    serves(used, f"{used}/logs,{used}/more")
    made = meta(used / "more")
    assert made.pop("directory.id") != before.pop("directory.id")
    assert made == before
    serves(used, f"{used}/logs,{used}/more")


def test_a_fresh_directory_before_that_of_the_tree_does_not_begin_a_new_tree(used: Path) -> None:
    both = f"{used}/more,{used}/logs"
    with pytest.raises(MisplacedTree, match=f"name {used}/logs first, or rename {used}/logs.coordination to"):
        serves(used, both)
    assert not (used / "more.coordination").exists()
    (used / "logs.coordination").rename(used / "more.coordination")
    serves(used, both)


def test_what_the_refusal_advises_works(used: Path) -> None:
    before = meta(used / "logs")
    (used / "logs" / "meta.properties").write_text("")
    with pytest.raises(LostIdentity, match=r"names no broker; the tree's topics lie on broker 1001: .*broker\.id=1001"):
        serves(used)
    serves(used, broker_id="1001")
    made = meta(used / "logs")
    assert made.pop("directory.id") != before.pop("directory.id")
    assert made == before
    serves(used)


def test_a_directory_that_is_gone_beside_its_tree_is_not_made_anew(used: Path) -> None:
    """A disk that is not mounted looks like this."""
    (used / "logs").rename(used / "elsewhere")
    with pytest.raises(LostIdentity, match=r"logs/meta\.properties is not there; the tree's topics lie on broker 1001"):
        serves(used)
    assert not (used / "logs").exists()
    (used / "elsewhere").rename(used / "logs")
    serves(used)


@pytest.mark.parametrize("content", [None, "", "hello world\n"])
def test_partitions_without_a_tree_and_without_an_id_are_nobodys(used: Path, content: str | None) -> None:
    shutil.rmtree(used / "logs.coordination")
    file = used / "logs" / "meta.properties"
    file.unlink()
    if content is not None:
        file.write_text(content)
    with pytest.raises(LostIdentity, match=f"there are partitions in {used}/logs: restore the file"):
        serves(used)
    serves(used, broker_id="1001")


def test_an_emptied_file_in_one_of_two_directories_is_filled_in_with_a_warning(
    used: Path, log_lines: list[str]
) -> None:
    both = f"{used}/logs,{used}/more"
    with BrokerThread(str(used), **{"log.dirs": both}) as running:
        running.create_topic("u", 4)
    before = meta(used / "more")
    (used / "more" / "meta.properties").write_text("")
    log_lines.clear()
    serves(used, both)
    warned = [line for line in log_lines if "WARN" in line and f"{used}/more/meta.properties names no broker" in line]
    assert len(warned) == 1, log_lines
    assert meta(used / "more")["broker.id"] == before["broker.id"]


def test_another_id_over_the_trees_topics_is_warned_of(used: Path, log_lines: list[str]) -> None:
    shutil.rmtree(used / "logs")
    log_lines.clear()
    with BrokerThread(str(used), **{"broker.id": "7"}):
        pass
    said = "no partition of any topic in the tree lies on this broker"
    assert sum(f"{said} id=7 brokers=1001" in line for line in log_lines) == 1, log_lines
    log_lines.clear()
    with BrokerThread(str(used / "new"), **{"broker.id": "7"}) as running:
        running.create_topic("t")
    assert not [line for line in log_lines if said in line]


CLUSTER = "5L6g3nShT-eMCtK--X86sw"


def test_a_new_broker_takes_the_number_and_the_cluster_that_it_is_given(tmp_path: Path) -> None:
    given = {"ottla.new.broker.id": "1", "ottla.new.cluster.id": CLUSTER}
    with BrokerThread(str(tmp_path), **given) as running:
        assert running.look(lambda broker: broker.broker_id) == 1
    made = meta(tmp_path / "logs")
    assert (made["broker.id"], made["cluster.id"]) == ("1", CLUSTER)
    with BrokerThread(str(tmp_path)) as running:  # with data the number is theirs
        assert running.look(lambda broker: broker.broker_id) == 1


def test_a_broker_with_data_keeps_its_number_and_its_cluster(used: Path) -> None:
    before = meta(used / "logs")
    serves(used, ottla_new_broker_id="1", ottla_new_cluster_id=CLUSTER)
    assert meta(used / "logs") == before


def test_a_number_that_is_configured_comes_before_a_new_one(tmp_path: Path) -> None:
    with BrokerThread(str(tmp_path), **{"broker.id": "7", "ottla.new.broker.id": "1"}) as running:
        assert running.look(lambda broker: broker.broker_id) == 7
