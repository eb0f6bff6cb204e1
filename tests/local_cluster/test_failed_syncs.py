"""An fsync that fails, in real processes: its broker leaves at once, others lead, and nothing acknowledged is lost."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Self

import pytest

import ottla.testing
from ottla.client.admin.results import NewTopic
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


@pytest.mark.slow
def test_a_leader_whose_sync_fails_acknowledges_nothing_more(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = tmp_path / "cluster"
    data.mkdir()
    # Which broker has it is known when the cluster runs: the second one has this folder.
    marker = failing_syncs(tmp_path, monkeypatch, data / "data-2")
    history = ClientHistory()
    properties = {"log.flush.interval.messages": "1"}
    with ottla.testing.cluster(3, data=data, properties=properties) as cluster:
        first, second, third = cluster.addresses
        with Admin(bootstrap_servers=cluster.bootstrap) as admin:
            admin.create_topics([NewTopic(TOPIC, assignments={0: [second, first, third]})])
        cluster.until_heard(TOPIC)
        with Load(cluster, history) as load:
            load.until_more(20)
            assert cluster.leader(TOPIC) == second
            marker.touch()
            cluster.until(lambda: cluster.until_led(TOPIC) != second)
            load.until_more(50)
            assert any("directory" in line and "offline" in line for line in cluster.log if f"broker {second}" in line)
            marker.unlink()
            # Its supervisor starts it again, until that works.
            cluster.until(lambda: len(cluster.isrs(TOPIC)[0]) == 3)
            load.until_more(20)
        assert load.fault is None
        history.ended(PARTITION, list(read_all(cluster)))
    assert not history.faults()
    assert history.acknowledged_count == history.sent_count >= 90
