"""A disk that is full at one follower alone, at the leader alone, or at the tree alone.

They are small file systems in memory, where that may be."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

import ottla.testing
from ottla.client.admin.results import NewTopic
from ottla.client.errors import KafkaError, TopicAlreadyExists
from ottla.client.sync import Admin, Producer
from ottla.testing.processes import Cluster

TOPIC = "full"
RECORD = b"x" * 50_000
SECONDS_MAX = 60.0

Mount = Callable[[Path, str], None]


@pytest.fixture
def mount() -> Iterator[Mount]:
    """Mounts a file system of this size, or changes its size."""
    mounted: list[Path] = []

    def work(folder: Path, size: str) -> None:
        folder.mkdir(exist_ok=True)
        option = f"remount,size={size}" if folder in mounted else f"size={size}"
        made = subprocess.run(
            ["mount", "-t", "tmpfs", "-o", option, "tmpfs", str(folder)], capture_output=True, check=False
        )
        if made.returncode:
            pytest.skip("nothing may be mounted here")
        mounted.append(folder)

    yield work
    for folder in set(mounted):
        subprocess.run(["umount", "-l", str(folder)], check=False, capture_output=True)


def produce(cluster: Cluster, count: int) -> None:
    with Producer(bootstrap_servers=cluster.bootstrap, acks="all", delivery_timeout_ms=120_000) as producer:
        for delivery in [producer.send(TOPIC, RECORD) for _ in range(count)]:
            delivery.result(120)


def room(folder: Path) -> int:
    found = os.statvfs(folder)
    return found.f_bavail * found.f_frsize


def fill(path: Path) -> None:
    with path.open("wb", buffering=0) as file, suppress(OSError):
        while file.write(bytes(512)):
            pass


def test_a_follower_whose_disk_is_full_leaves_and_comes_back_with_room(tmp_path: Path, mount: Mount) -> None:
    mount(tmp_path / "data-2", "16m")
    with ottla.testing.cluster(3, data=tmp_path, properties={"replica.lag.time.max.ms": "2000"}) as cluster:
        first, second, third = cluster.addresses
        with Admin(bootstrap_servers=cluster.bootstrap) as admin:
            admin.create_topics([NewTopic(TOPIC, assignments={0: [first, second, third]})])
        cluster.until_heard(TOPIC)
        produce(cluster, 500)
        cluster.until(lambda: set(cluster.isrs(TOPIC)[0]) == {first, third})
        produce(cluster, 20)
        mount(tmp_path / "data-2", "256m")
        cluster.until_in_sync(TOPIC)
        produce(cluster, 20)


def test_a_leader_whose_disk_is_full_gives_way_and_comes_back_with_room(tmp_path: Path, mount: Mount) -> None:
    """Its followers have room: one of them leads, and no producer sees an error."""
    mount(tmp_path / "data-2", "16m")
    with ottla.testing.cluster(3, data=tmp_path) as cluster:
        first, second, third = cluster.addresses
        with Admin(bootstrap_servers=cluster.bootstrap) as admin:
            admin.create_topics([NewTopic(TOPIC, assignments={0: [second, first, third]})])
        cluster.until_heard(TOPIC)
        with Producer(bootstrap_servers=cluster.bootstrap, acks="all", delivery_timeout_ms=120_000) as producer:
            sent = [producer.send(TOPIC, b"%d" % number + RECORD) for number in range(500)]
            offsets = [delivery.result(120).offset for delivery in sent]
        assert offsets == list(range(500))
        cluster.until(lambda: set(cluster.isrs(TOPIC)[0]) == {first, third})
        mount(tmp_path / "data-2", "256m")
        cluster.until_in_sync(TOPIC)


def test_a_tree_whose_disk_is_full_stops_changes_and_no_records(tmp_path: Path, mount: Mount) -> None:
    tree = tmp_path / "data.coordination"
    mount(tree, "4m")
    # Of a full disk no session is to end, and of a machine with other work neither.
    with ottla.testing.cluster(3, data=tmp_path, properties={"zookeeper.session.timeout.ms": "10000"}) as cluster:
        cluster.create_topic(TOPIC)
        produce(cluster, 5)
        filler = tree / "filler"
        fill(filler)
        with Admin(bootstrap_servers=cluster.bootstrap, request_timeout_ms=3_000) as admin, pytest.raises(KafkaError):
            admin.create_topics([NewTopic("later", 3)], timeout_ms=2_000)
        produce(cluster, 20)
        filler.unlink()

        def is_made() -> bool:
            try:
                cluster.create_topic("afterwards")
            except TopicAlreadyExists:
                return True  # an answer was lost
            except KafkaError:
                return False
            return True

        cluster.until(is_made, SECONDS_MAX)
        assert not [line for line in cluster.log if "sessions were not heard of" in line]
