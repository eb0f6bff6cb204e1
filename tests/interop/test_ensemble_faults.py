"""Three brokers of ours over a real ensemble of three, while its servers and they are killed, paused and lost."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka.admin import NewTopic
from tools.kafka_jars import BROKER_39
from tools.zookeeper_server import ZooKeeperEnsemble

from tests.conftest import found_jars
from tests.failing_syncs import failing_syncs
from tests.interop.ensemble_brokers import OURS, PARTITIONS, SECONDS_MAX, EnsembleBrokers, Load, until

#: Of a broker: an ensemble with short ticks grants it. Longer than what a busy machine keeps a broker from its turn.
SESSION_MS = 4000


@pytest.fixture
def ensemble(tmp_path: Path) -> Iterator[ZooKeeperEnsemble]:
    found_jars(BROKER_39)
    with ZooKeeperEnsemble(tmp_path / "zookeeper") as made:
        yield made


@pytest.mark.java
@pytest.mark.slow
@pytest.mark.timeout(400)
def test_nothing_is_lost_whatever_the_ensemble_does(ensemble: ZooKeeperEnsemble, tmp_path: Path) -> None:
    cluster = EnsembleBrokers(tmp_path, f"{ensemble.connect}/ottla", dict.fromkeys((1, 2, 3), OURS), SESSION_MS)
    load = Load()
    try:
        cluster.start()
        cluster.create()
        with load.to(cluster.bootstrap):
            until(cluster.is_whole, "all are in sync")
            load.goes_on()
            # The leader of the ensemble: an election there, and no session ends.
            led = ensemble.leader()
            led.kill()
            load.goes_on()
            ensemble.start()
            # No majority: leaders lead on. A follower's death now keeps the in-sync set as it is, so nothing is
            # acknowledged that it does not have; with the ensemble back, the cluster goes on without it.
            lost = ensemble.servers[:2]
            for server in lost:
                server.kill()
            load.goes_on()
            victim = next(number for number in cluster.brokers if number != cluster.controller())
            cluster.brokers[victim].kill()
            load.stands_still(2)
            for server in lost:
                server.launch()
            load.goes_on()
            cluster.brokers[victim].launch()
            until(cluster.is_whole, "the killed broker is in sync again")
            # A session that ends while its broker lives: another leads, and the broker comes back as another life.
            led_by = cluster.until_led()
            other = next(number for number in cluster.brokers if number != led_by)
            os.kill(cluster.brokers[led_by].pid, signal.SIGSTOP)
            # Another may have led by then already, if the preferred leaders were elected a moment ago.
            until(lambda: led_by not in cluster.living(asked=other), "its session has ended")
            until(lambda: cluster.leader(asked=other) not in (-1, led_by), "another broker leads")
            load.goes_on()
            os.kill(cluster.brokers[led_by].pid, signal.SIGCONT)
            until(cluster.is_whole, "the paused broker is in sync again")
            log = cluster.brokers[led_by].log
            until(lambda: "the broker is registered again" in log.read_text(), "it has said so")
            # Everything of one machine at once.
            number = cluster.until_led()
            cluster.brokers[number].kill()
            ensemble.servers[number - 1].kill()
            load.goes_on()
            ensemble.start()
            cluster.brokers[number].launch()
            until(cluster.is_whole, "the machine is back")
        load.check(cluster.bootstrap)
        until(cluster.are_equal, "the logs are equal")
    finally:
        cluster.end()


@pytest.mark.java
@pytest.mark.slow
@pytest.mark.timeout(400)
def test_an_ensemble_whose_disks_are_slow_ends_no_session(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found_jars(BROKER_39)
    # Each write to the tree then waits for two disks of three: as long as half a session.
    marker = failing_syncs(tmp_path, monkeypatch, tmp_path / "zookeeper", slow_ms=SESSION_MS // 2)
    with ZooKeeperEnsemble(tmp_path / "zookeeper") as ensemble:
        cluster = EnsembleBrokers(tmp_path, f"{ensemble.connect}/ottla", dict.fromkeys((1, 2, 3), OURS), SESSION_MS)
        load = Load()
        try:
            cluster.start()
            cluster.create()
            with load.to(cluster.bootstrap):
                until(cluster.is_whole, "all are in sync")
                led = [cluster.leader(number) for number in range(PARTITIONS)]
                load.goes_on()
                marker.touch()
                # A change takes its time, and is made: in the tree first, then at the brokers.
                (made,) = cluster.admin.create_topics([NewTopic("made-slowly", 3, 3)]).values()
                made.result(SECONDS_MAX)
                load.goes_on()
                marker.unlink()
                load.goes_on()
                assert cluster.is_whole()
                assert [cluster.leader(number) for number in range(PARTITIONS)] == led
            load.check(cluster.bootstrap)
            for broker in cluster.brokers.values():
                text = broker.log.read_text()
                assert "the broker is registered again" not in text
                assert "no longer the controller" not in text
        finally:
            cluster.end()
