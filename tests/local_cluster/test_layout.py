"""Which folders, ids and ports the brokers of a cluster on one host get, also at their next start."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from ottla import java_properties
from ottla.config import Config
from ottla.local_cluster.free_ports import bound, free_port, kernels_first
from ottla.local_cluster.layout import BrokerPlan, Wishes, planned, tree_directory, write

HOST = "127.0.0.1"


def wishes(tmp_path: Path, port: int = 0, **names: object) -> Wishes:
    given = {"brokers": 3, "properties": {}, **names}
    return Wishes(first_log_dir=f"{tmp_path}/data", host=HOST, port=port, **given)  # type: ignore[arg-type]


def plans(tmp_path: Path, port: int = 0, **names: object) -> list[BrokerPlan]:
    return list(planned(wishes(tmp_path, port, **names), f"{HOST}:2181"))


def ports(made: list[BrokerPlan]) -> list[int]:
    return [int(plan.properties["listeners"].rpartition(":")[2]) for plan in made]


@pytest.fixture
def taken() -> Iterator[int]:
    with socket.socket() as holder:
        holder.bind((HOST, 0))
        holder.listen()
        yield holder.getsockname()[1]


def test_brokers_are_numbered_and_have_folders_of_their_own(tmp_path: Path) -> None:
    made = plans(tmp_path)
    assert [plan.id for plan in made] == [1, 2, 3]
    assert [plan.properties["log.dirs"] for plan in made] == [
        f"{tmp_path}/data",
        f"{tmp_path}/data-2",
        f"{tmp_path}/data-3",
    ]
    assert {plan.properties["zookeeper.connect"] for plan in made} == {f"{HOST}:2181"}
    assert {plan.properties["min.insync.replicas"] for plan in made} == {"2"}
    assert tree_directory(f"{tmp_path}/data") == f"{tmp_path}/data.coordination"
    assert len(set(ports(made))) == 3


def test_what_one_broker_has_left_is_one_of_the_cluster_under_its_id(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "meta.properties").write_text("version=0\nbroker.id=2\ncluster.id=x\n")
    assert [plan.id for plan in plans(tmp_path)] == [2, 1, 3]
    (tmp_path / "data" / "meta.properties").write_text("version=0\nbroker.id=1001\n")
    assert [plan.id for plan in plans(tmp_path)] == [1001, 1, 2]
    (tmp_path / "data-3").mkdir()
    (tmp_path / "data-3" / "meta.properties").write_text("broker.id=1\n")
    assert [plan.id for plan in plans(tmp_path)] == [1001, 2, 1]


def test_a_damaged_file_leaves_the_fault_to_the_broker(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "meta.properties").write_bytes(b"broker.id=\\u00\xff\xff")
    assert [plan.id for plan in plans(tmp_path)] == [1, 2, 3]


def test_ports_stay_from_start_to_start(tmp_path: Path) -> None:
    first = plans(tmp_path)
    for plan in first:
        write(plan)
    assert ports(plans(tmp_path))[1:] == ports(first)[1:]


def test_a_port_is_none_that_the_kernel_gives_away(tmp_path: Path) -> None:
    """A broker that is away for a moment finds it again, though connections are made meanwhile."""
    assert all(port < kernels_first() for port in ports(plans(tmp_path)))


def test_a_port_that_somebody_is_about_to_listen_on_is_not_free(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its socket is bound and does not listen yet: either of them could bind it once more."""
    with socket.socket() as holder:
        holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        chosen = free_port(HOST)
        monkeypatch.setattr("ottla.local_cluster.free_ports._FIRST", chosen)
        monkeypatch.setattr("ottla.local_cluster.free_ports.kernels_first", lambda: chosen + 1)
        assert free_port(HOST) == chosen
        holder.bind((HOST, chosen))
        assert free_port(HOST) != chosen


def test_a_port_that_is_taken_is_left_out(tmp_path: Path, taken: int) -> None:
    made = plans(tmp_path, taken - 1)
    assert ports(made)[0] == taken - 1
    assert taken not in ports(made)
    assert bound(HOST, taken) == 0


def test_a_property_file_says_what_a_broker_is_started_with(tmp_path: Path) -> None:
    for plan in plans(tmp_path, properties={"num.partitions": "7"}, metrics_port=9_000):
        write(plan)
        said = java_properties.decode(Path(plan.config_path).read_text(encoding="latin-1"))
        assert said == dict(plan.properties)
        assert said["num.partitions"] == "7"
        words = plan.command_words()
        assert words[:3] == ["broker", "--config", plan.config_path]
        assert f"broker.id={plan.id}" in words
    assert said["ottla.metrics.port"] == "9002"


def test_a_property_file_is_the_old_one_or_the_new_one(tmp_path: Path) -> None:
    """A crash leaves no half of it, in which the next start would not find the port."""
    before, after = plans(tmp_path)[1], plans(tmp_path, properties={"num.partitions": "7"})[1]
    write(before)
    path = Path(before.config_path)
    with path.open("rb") as old:
        write(after)
        assert java_properties.decode(old.read().decode("latin-1")) == dict(before.properties)
    assert java_properties.decode(path.read_text(encoding="latin-1")) == dict(after.properties)
    assert [one.name for one in path.parent.iterdir()] == [path.name]


def metrics_ports(made: list[BrokerPlan]) -> list[int]:
    return [int(plan.properties["ottla.metrics.port"]) for plan in made]


def five_free_ports() -> int:
    """The first of them."""
    while True:
        first = free_port(HOST)
        if all(bound(HOST, port) for port in range(first, first + 5)):
            return first


@pytest.mark.parametrize("metrics_behind", [-2, -1, 1])
def test_metrics_are_served_where_no_broker_listens(tmp_path: Path, metrics_behind: int) -> None:
    """As by `ottla up -n 3 --metrics-port 9090`, beside the port 9092."""
    port = five_free_ports() + 2
    made = plans(tmp_path, port, metrics_port=port + metrics_behind)
    assert (ports(made)[0], metrics_ports(made)[0]) == (port, port + metrics_behind)
    assert len({*ports(made), *metrics_ports(made)}) == 6


def test_a_port_for_metrics_that_is_taken_is_left_out(tmp_path: Path, taken: int) -> None:
    made = metrics_ports(plans(tmp_path, metrics_port=taken - 1))
    assert made[0] == taken - 1
    assert taken not in made
    assert metrics_ports(plans(tmp_path, metrics_port=0)) == [0, 0, 0]


def test_nobody_is_warned_of_properties_that_nobody_set(tmp_path: Path) -> None:
    """A broker says what of its file has no effect: what stands there for its own sake is no news to anybody."""
    for plan in plans(tmp_path, properties={"share.coordinator.state.topic.min.isr": "1"}):
        config = Config.parse(plan.properties)
        assert (config.warnings, config.without_effect) == ((), ("share.coordinator.state.topic.min.isr",))
        assert plan.properties["offsets.topic.replication.factor"] == "3"


def test_a_broker_waits_longer_for_a_tree_of_ours_than_its_session_lasts(tmp_path: Path) -> None:
    """Many processes that start at once on few processors need seconds; a death is noticed sooner."""
    for plan in plans(tmp_path):
        coordination = Config.parse(plan.properties).coordination
        assert coordination.session_timeout_ms == 1_500
        assert coordination.connection_timeout_ms == 18_000
