"""Two Kafka 3.9 brokers and one of ours in a cluster, the reverse, and how one kind takes the place of the other."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tools.kafka_jars import BROKER_39
from tools.ottla_server import ottla_tree
from tools.zookeeper_server import ZooKeeperEnsemble

from tests.conftest import found_jars
from tests.interop.ensemble_brokers import KAFKA, OURS, EnsembleBrokers, Load, until

# A JVM for each of Kafka's brokers: the small case of this is in test_mixed_cluster.py.
pytestmark = [pytest.mark.java, pytest.mark.slow, pytest.mark.timeout(900)]


@contextmanager
def tree_at(folder: Path, where: str) -> Iterator[str]:
    found_jars(BROKER_39)
    if where == "ensemble":
        with ZooKeeperEnsemble(folder / "zookeeper") as ensemble:
            yield ensemble.connect
    else:
        with ottla_tree(folder / "tree") as tree:
            yield tree.bootstrap


@pytest.mark.parametrize("where", ["ensemble", "our-tree"])
@pytest.mark.parametrize("kinds", [(OURS, OURS, KAFKA), (KAFKA, KAFKA, OURS)], ids=["two-ours", "two-kafka"])
def test_logs_are_equal_after_kills(tmp_path: Path, where: str, kinds: tuple[str, str, str]) -> None:
    """Whoever is the controller is killed, four times; both kinds have been it in the end."""
    load = Load()
    with tree_at(tmp_path, where) as zookeeper:
        cluster = EnsembleBrokers(tmp_path, zookeeper, dict(enumerate(kinds, 1)))
        try:
            # Who is alone of its kind: where brokers of ours run for it beside Kafka's, these hardly ever win.
            cluster.start(first=len(kinds))
            cluster.create()
            controllers = {cluster.controller()}
            with load.to(cluster.bootstrap):
                until(cluster.is_whole, "all are in sync")
                until(cluster.are_led_by_both, "both kinds lead")
                load.goes_on()
                for _ in range(4):
                    number = cluster.controller()
                    cluster.brokers[number].kill()
                    load.goes_on()
                    cluster.brokers[number].launch()
                    until(cluster.is_whole, f"broker {number} is in sync again")
                    controllers.add(cluster.controller())
                # Whoever was killed follows what the others lead, and leads again what is its own.
                until(cluster.are_led_by_both, "both kinds lead again")
                load.goes_on()
            assert {cluster.kinds[number] for number in controllers} == {OURS, KAFKA}
            load.check(cluster.bootstrap)
            until(cluster.are_equal, "the logs are equal byte for byte")
        finally:
            cluster.end()


@pytest.mark.parametrize("before", [KAFKA, OURS], ids=["kafka-to-ours", "ours-to-kafka"])
def test_one_kind_takes_the_place_of_the_other_under_load(tmp_path: Path, before: str) -> None:
    """One broker after the other, over the log directory that the other kind has left."""
    after = OURS if before == KAFKA else KAFKA
    load = Load()
    with tree_at(tmp_path, "ensemble") as zookeeper:
        cluster = EnsembleBrokers(tmp_path, zookeeper, dict.fromkeys((1, 2, 3), before))
        try:
            cluster.start()
            cluster.create()
            with load.to(cluster.bootstrap):
                until(cluster.is_whole, "all are in sync")
                for number in (1, 2, 3):
                    load.goes_on()
                    cluster.replace(number, after)
                    until(cluster.is_whole, f"broker {number} is in sync again")
                load.goes_on()
            load.check(cluster.bootstrap)
            until(cluster.are_equal, "the logs are equal byte for byte")
        finally:
            cluster.end()
