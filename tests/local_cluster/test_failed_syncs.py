"""An fsync that fails, in real processes: at a leader, at a follower, at the tree. Nothing acknowledged is lost."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Self

import pytest

import ottla.testing
from ottla.client.admin.results import NewTopic
from ottla.client.errors import KafkaError, TopicAlreadyExists
from ottla.client.sync import Admin, Consumer, Producer
from ottla.testing.histories import ClientHistory
from ottla.testing.processes import Cluster
from tests.failing_syncs import failing_syncs

TOPIC = "synced"
PARTITION = (TOPIC, 0)
SECONDS_MAX = 120.0
#: Between two records.
PAUSE_S = 0.005


class Load:
    """An idempotent producer that goes on until it is stopped, and notes what became of each record."""

    def __init__(self, cluster: Cluster, history: ClientHistory) -> None:
        self._cluster = cluster
        self._history = history
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self.acknowledged = 0
        self.fault: BaseException | None = None

    def _run(self) -> None:
        try:
            bootstrap = self._cluster.bootstrap
            with Producer(bootstrap_servers=bootstrap, acks="all", delivery_timeout_ms=90_000) as producer:
                number = 0
                while not self._stop.wait(PAUSE_S):
                    value = f"v-{number}"
                    self._history.sent("v", PARTITION, value)
                    number += 1
                    # One at a time: an answer that is missing shows at once.
                    offset = producer.send(TOPIC, value.encode(), partition=0).result(SECONDS_MAX).offset
                    self._history.acknowledged("v", PARTITION, value, offset)
                    self.acknowledged += 1
        except BaseException as fault:
            self.fault = fault

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def until_more(self, records: int) -> None:
        wanted = self.acknowledged + records
        self._cluster.until(lambda: self.fault is not None or self.acknowledged >= wanted)
        assert self.fault is None


def read_all(cluster: Cluster) -> Iterator[tuple[int, str]]:
    with Consumer(bootstrap_servers=cluster.bootstrap, auto_offset_reset="earliest") as consumer:
        consumer.assign([PARTITION])
        end = consumer.end_offsets([PARTITION])[PARTITION]
        while consumer.position(PARTITION) < end:
            for record in consumer.poll(timeout_ms=1_000):
                assert record.value is not None
                yield record.offset, record.value.decode()


def followed(cluster: Cluster) -> tuple[int, int, int]:
    """A topic that the second broker leads."""
    first, second, third = cluster.addresses
    with Admin(bootstrap_servers=cluster.bootstrap) as admin:
        admin.create_topics([NewTopic(TOPIC, assignments={0: [second, first, third]})])
    cluster.until_heard(TOPIC)
    return first, second, third


@pytest.mark.slow
def test_a_leader_whose_sync_fails_acknowledges_nothing_more(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = tmp_path / "cluster"
    data.mkdir()
    # Which broker has it is known when the cluster runs: the second one has this folder.
    marker = failing_syncs(tmp_path, monkeypatch, data / "data-2")
    history = ClientHistory()
    properties = {"log.flush.interval.messages": "1"}
    with ottla.testing.cluster(3, data=data, properties=properties) as cluster:
        _, second, _ = followed(cluster)
        with Load(cluster, history) as load:
            load.until_more(20)
            assert cluster.leader(TOPIC) == second
            marker.touch()
            cluster.until(lambda: cluster.until_led(TOPIC) != second)
            load.until_more(50)
            assert any("directory" in line and "offline" in line for line in cluster.log if f"broker {second}" in line)
            marker.unlink()
            # Its supervisor starts it again, until that works.
            cluster.until_in_sync(TOPIC)
            load.until_more(20)
        assert load.fault is None
        history.ended(PARTITION, list(read_all(cluster)))
    assert not history.faults()
    assert history.acknowledged_count == history.sent_count >= 90


@pytest.mark.slow
def test_a_follower_whose_sync_fails_vouches_for_nothing_more(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It leaves the in-sync replicas with its broker, whom the others go on without."""
    data = tmp_path / "cluster"
    data.mkdir()
    marker = failing_syncs(tmp_path, monkeypatch, data / "data-3")
    history = ClientHistory()
    properties = {"log.flush.interval.messages": "1", "min.insync.replicas": "2"}
    with ottla.testing.cluster(3, data=data, properties=properties) as cluster:
        first, second, third = followed(cluster)
        with Load(cluster, history) as load:
            load.until_more(20)
            marker.touch()
            cluster.until(lambda: set(cluster.isrs(TOPIC)[0]) == {first, second})
            load.until_more(50)
            assert cluster.leader(TOPIC) == second
            assert any("directory" in line and "offline" in line for line in cluster.log if f"broker {third}" in line)
            marker.unlink()
            cluster.until_in_sync(TOPIC)
            load.until_more(20)
        assert load.fault is None
        # What it has, it has: it alone is asked.
        cluster.kill(first)
        cluster.kill(second)
        history.ended(PARTITION, list(read_all(cluster)))
    assert not history.faults()
    assert history.acknowledged_count == history.sent_count >= 90


@pytest.mark.slow
def test_a_tree_whose_sync_fails_acknowledges_no_change_and_stops_no_record(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its process ends, and is started again until its disk works: leaders lead meanwhile."""
    data = tmp_path / "cluster"
    data.mkdir()
    marker = failing_syncs(tmp_path, monkeypatch, data / "data.coordination")
    history = ClientHistory()
    with ottla.testing.cluster(3, data=data) as cluster:
        _, second, _ = followed(cluster)
        made = {TOPIC}
        with (
            Load(cluster, history) as load,
            Admin(bootstrap_servers=cluster.bootstrap, request_timeout_ms=3_000) as admin,
        ):
            load.until_more(20)
            marker.touch()
            with pytest.raises(KafkaError):
                admin.create_topics([NewTopic("refused", 1)], timeout_ms=2_000)
            load.until_more(100)
            assert cluster.leader(TOPIC) == second
            marker.unlink()

            def is_made() -> bool:
                try:
                    admin.create_topics([NewTopic("later", 1)], timeout_ms=2_000)
                except TopicAlreadyExists:
                    return True  # an answer was lost
                except KafkaError:
                    return False
                return True

            cluster.until(is_made)
            made.add("later")
            load.until_more(20)
        assert load.fault is None
        history.ended(PARTITION, list(read_all(cluster)))
        # What was acknowledged is there after another life of all of them.
        cluster.kill_all()
        cluster.start()
        with Admin(bootstrap_servers=cluster.bootstrap) as admin:
            cluster.until(lambda: made <= set(admin.list_topics()))
    assert not history.faults()
    assert history.acknowledged_count == history.sent_count
