"""What a type checker makes of our names: those that do not exist are refused, and fixtures have their types."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[2]

#: A program of somebody else; a line that ends in a comment "no" is to be refused, and no other.
PROGRAM = """
import ottla.client
import ottla.client.sync
import ottla.testing
from ottla.client import Consumer, Producer
from ottla.client import Prodcer  # no
from ottla.client.sync import Admn  # no
from ottla.testing import AsyncBroker, InProcessBroker
from ottla.testing import Broker  # no
from ottla.client import Admin, errors
from ottla.testing import Cluster, ConfigError, CoordinationError, DirectoryError, StartFault, StillBehind
from ottla.testing import StillBehnd  # no


def test_orders(ottla_broker: InProcessBroker, ottla_own_broker: InProcessBroker, topic: str) -> None:
    ottla_broker.create_topic("orders", partitions=3, configs={"retention.ms": "-1"})
    ottla_broker.create_topic("orders", partitions="3")  # no
    ottla_broker.creat_topic("orders")  # no
    address: str = ottla_broker.bootstrap
    ottla_own_broker.advance("8d")
    with ottla.testing.broker(properties={"num.partitions": "3"}) as broker:
        names: list[str] = broker.topics()
    with ottla.testing.broker(propertys={}) as broker:  # no
        pass
    ottla.testing.brokr()  # no
    with ottla.testing.cluster(3, properties={"min.insync.replicas": "2"}) as cluster:
        led: int = cluster.kill_leader("orders", 0)
        cluster.kill("1")  # no
    ottla.testing.cluster(3, properties={"min.insync.replicas": 2})  # no
    ottla.testing.cluster(n="3")  # no
    ottla.client.Producr  # no
    ottla.client.sync.Producr  # no
    with ottla.client.sync.Producer(bootstrap_servers=address) as producer:
        offset: int = producer.send_and_wait(topic, b"x", headers=[("a", b"1")], timeout=1).offset
        producer.send(topic, b"x", headers={"a": b"1"})  # no
        producer.send(topic, b"x", timestamp="now")  # no


def test_of_a_cluster(ottla_cluster: Cluster) -> None:
    ottla_cluster.cut(1, 2)
    ottla_cluster.cutt(1, 2)  # no


async def awaited() -> None:
    async with Admin(bootstrap_servers="localhost:9092") as admin:
        try:
            await admin.create_topic("orders", partitions=3)
        except errors.TopicAlreadyExists as error:
            code: int = error.code
        except errors.TopicAlreadyExist:  # no
            pass
        await admin.create_topic("orders", partitions="3")  # no
    async with ottla.testing.async_broker() as broker:
        await broker.restart()
        broker.restrt()  # no
    async with Producer(bootstrap_servers="localhost:9092") as producer:
        await producer.send("orders", b"x", headers=(("a", "1"),))  # no
    async with Consumer(bootstrap_servers="localhost:9092") as consumer:
        consumer.assign([("orders", 0)])
        offset: str = (await consumer.poll())[0].offset  # no
"""


@pytest.mark.timeout(600)
def test_mypy_refuses_what_does_not_exist(tmp_path: Path) -> None:
    file = tmp_path / "theirs.py"
    file.write_text(PROGRAM)
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", str(file)],
        capture_output=True,
        text=True,
        check=False,
        cwd=REPOSITORY,  # whose cache knows the package already, where it was checked before
    )
    refused = {int(number) for number in re.findall(r"theirs\.py:(\d+): error", done.stdout)}
    wanted = {number for number, line in enumerate(PROGRAM.splitlines(), 1) if line.endswith("# no")}
    assert refused == wanted, done.stdout
