"""A broker inside the test's process: it serves, keeps its data over a restart, and leaves nothing behind."""

from __future__ import annotations

import asyncio
import os
import resource
import subprocess
import sys
import threading
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.admin import AdminClient
from tools.server_process import answers_metadata

from ottla import testing
from ottla.broker.broker import StartFault
from ottla.broker.membership import Membership
from ottla.client.admin.results import ConfigResource
from ottla.client.errors import BadArgument, TopicAlreadyExists, UnknownTopicOrPartition
from ottla.client.sync import Admin
from ottla.config import ConfigError
from ottla.controller.controller import ClusterController
from ottla.local_cluster.free_ports import free_port
from ottla.model import TopicPartition
from ottla.storage.directories.errors import DirectoryError
from ottla.testing import addresses


def broker_threads() -> set[threading.Thread]:
    return {thread for thread in threading.enumerate() if thread.name == "ottla-broker"}


def topics_seen_by_a_client(bootstrap: str) -> set[str]:
    return set(AdminClient({"bootstrap.servers": bootstrap}).list_topics(timeout=60).topics)


def test_a_client_finds_the_topic_that_was_created() -> None:
    with testing.broker() as broker:
        broker.create_topic("orders", partitions=3, configs={"retention.ms": "-1"})
        metadata = AdminClient({"bootstrap.servers": broker.bootstrap}).list_topics(timeout=60)
        assert len(metadata.topics["orders"].partitions) == 3
        assert broker.topics() == ["orders"]


def test_a_group_does_not_wait_and_the_broker_is_number_one() -> None:
    """As in Kafka's images: three seconds for each new group are much in a test."""
    with testing.broker() as broker, Admin(bootstrap_servers=broker.bootstrap) as admin:
        (node,) = admin.describe_cluster().brokers
        assert node.id == 1
        this = ConfigResource.broker(1)
        name = "group.initial.rebalance.delay.ms"
        assert admin.describe_configs([this], names=[name])[this][name].value == "0"
    own = {name: "7", "broker.id": "5"}
    with testing.broker(properties=own) as broker, Admin(bootstrap_servers=broker.bootstrap) as admin:
        this = ConfigResource.broker(5)
        assert admin.describe_configs([this], names=[name])[this][name].value == "7"


def test_a_refusal_is_the_error_that_an_admin_client_gets() -> None:
    with testing.broker() as broker:
        broker.create_topic("orders")
        with pytest.raises(TopicAlreadyExists):
            broker.create_topic("orders")
        with pytest.raises(UnknownTopicOrPartition):
            broker.delete_topic("no-such-topic")


def test_arguments_that_cannot_be_meant_are_named() -> None:
    given: Any
    for given, said in (
        (
            {"num.partitions": 3},
            "properties: the value of num.partitions must be a str, as in Kafka's files, not an int",
        ),
        (
            {"log.cleaner.enable": False},
            "the value of log.cleaner.enable must be a str, as in Kafka's files, not a bool",
        ),
        ([("num.partitions", "3")], "properties must be a mapping of names to values, not a list"),
    ):
        with pytest.raises(BadArgument, match=said):
            testing.broker(properties=given)
    with testing.broker() as broker:
        for words, said in (
            ({"name": None}, "topic must be a str, not None"),
            ({"name": "t", "partitions": "3"}, "partitions must be an int, not a str"),
            (
                {"name": "t", "configs": {"retention.ms": 5}},
                r"the value of retention\.ms must be a str or None, not an int",
            ),
        ):
            given = words
            with pytest.raises(BadArgument, match=said):
                broker.create_topic(**given)
        given = None
        with pytest.raises(BadArgument, match="topic must be a str, not None"):
            broker.delete_topic(given)
        given = 5
        with pytest.raises(ValueError, match='time is moved by "8d", "90m" or a timedelta, not by 5'):
            broker.advance(given)
        with pytest.raises(BadArgument, match="lag must be an int, not a str"):
            broker.wait_for_lag("g", "0")  # type: ignore[arg-type]
        assert broker.topics() == []


def test_restart_keeps_port_and_data() -> None:
    with testing.broker() as broker:
        broker.create_topic("kept")
        before = broker.bootstrap
        broker.restart()
        assert broker.bootstrap == before
        assert topics_seen_by_a_client(before) == {"kept"}


def test_stop_frees_the_port_and_a_second_stop_does_nothing() -> None:
    with testing.broker() as broker:
        broker.stop()
        assert not broker.is_running
        assert not answers_metadata(broker.port)
        broker.stop()


def test_a_temporary_folder_goes_with_the_broker() -> None:
    before = broker_threads()
    with testing.broker() as broker:
        data = broker.data
        assert os.path.isdir(data)
        assert len(broker_threads() - before) == 1
    assert not os.path.exists(data)
    assert broker_threads() == before


def test_a_folder_that_was_given_stays(tmp_path: Path) -> None:
    with testing.broker(data=tmp_path) as broker:
        broker.create_topic("kept")
    with testing.broker(data=tmp_path) as again:
        assert again.topics() == ["kept"]


def test_two_brokers_at_once_have_nothing_in_common() -> None:
    with testing.broker() as one, testing.broker() as other:
        one.create_topic("only-here")
        assert one.port != other.port
        assert other.topics() == []


def test_a_fault_at_start_is_raised_and_nothing_is_left(tmp_path: Path) -> None:
    with testing.broker(data=tmp_path) as broker:
        before = broker_threads()
        with pytest.raises(StartFault, match="Address already in use"), testing.broker(port=broker.port):
            pass
        with pytest.raises(ConfigError, match=r"num\.partitions"), testing.broker(properties={"num.partitions": "x"}):
            pass
        assert broker_threads() == before
    (tmp_path / "data" / "meta.properties").write_text("version=one\n")
    with pytest.raises(DirectoryError), testing.broker(data=tmp_path):
        pass


def test_a_port_that_somebody_took_since_it_was_chosen_is_chosen_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    with testing.broker() as first:
        taken = [first.port, first.port]
        monkeypatch.setattr(addresses, "free_port", lambda host: taken.pop() if taken else free_port(host))
        with testing.broker() as second:
            assert not taken
            assert second.port != first.port
            before = second.port
            second.restart()
            assert second.port == before


@contextmanager
def no_descriptor_left() -> Iterator[None]:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    lowest_free = os.dup(0)
    os.close(lowest_free)
    resource.setrlimit(resource.RLIMIT_NOFILE, (lowest_free, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_where_no_descriptor_is_left_for_its_loop_a_start_says_so_at_once() -> None:
    broker = testing.broker()
    with no_descriptor_left(), pytest.raises(OSError, match="Too many open files"), broker:
        pass
    with broker:
        assert broker.topics() == []


@pytest.fixture
def slow_to_stop(monkeypatch: pytest.MonkeyPatch) -> threading.Event:
    """In the middle of a stop the broker has to wait for half a second; set once it does."""
    stop, begun = ClusterController.stop, threading.Event()

    async def slow(controller: ClusterController) -> None:
        begun.set()
        await asyncio.sleep(0.5)
        await stop(controller)

    monkeypatch.setattr(ClusterController, "stop", slow)
    return begun


def test_a_start_that_is_cancelled_gives_back_what_it_took(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, slow_to_stop: threading.Event
) -> None:
    waits = threading.Event()

    async def never(_: Membership) -> None:
        waits.set()
        await asyncio.Event().wait()

    async def used() -> None:
        async with testing.async_broker(data=tmp_path):
            pass

    async def scenario() -> None:
        using = asyncio.ensure_future(used())
        assert await asyncio.to_thread(waits.wait, 60)
        using.cancel()
        with pytest.raises(asyncio.CancelledError):
            await using

    before = broker_threads()
    with monkeypatch.context() as patch:
        patch.setattr(Membership, "informed", never)
        asyncio.run(scenario())
    assert slow_to_stop.is_set()
    assert broker_threads() == before
    with testing.broker(data=tmp_path) as again:  # which finds the folder locked by nobody
        assert again.topics() == []


def test_a_stop_that_is_cancelled_comes_to_its_end(tmp_path: Path, slow_to_stop: threading.Event) -> None:
    async def scenario() -> None:
        async with testing.async_broker(data=tmp_path) as broker:
            await broker.create_topic("kept")
            stopping = asyncio.ensure_future(broker.stop())
            assert await asyncio.to_thread(slow_to_stop.wait, 60)
            stopping.cancel()
            with pytest.raises(asyncio.CancelledError):
                await stopping

    before = broker_threads()
    asyncio.run(scenario())
    assert broker_threads() == before
    with testing.broker(data=tmp_path) as again:
        assert again.topics() == ["kept"]


def test_a_group_may_be_waited_for_without_end() -> None:
    with testing.broker() as broker:
        broker.create_topic("read")
        with Admin(bootstrap_servers=broker.bootstrap) as admin:
            admin.alter_group_offsets("readers", {TopicPartition("read", 0): 0})
        broker.wait_for_lag("readers", timeout=float("inf"))


@pytest.mark.parametrize(
    ("listener", "reached_at"),
    [
        ("PLAINTEXT://[::1]:0", "[::1]:9092"),
        ("PLAINTEXT://192.0.2.7:0", "192.0.2.7:9092"),
        ("PLAINTEXT://127.0.0.2:9092", "127.0.0.2:9092"),
        (" PLAINTEXT://0.0.0.0:0 ,OTHER://[::1]:0", "127.0.0.1:9092"),
        ("PLAINTEXT://[::]:0", "127.0.0.1:9092"),
        ("PLAINTEXT://:0", "127.0.0.1:9092"),
        ("PLAINTEXT://localhost:0", "127.0.0.1:9092"),
    ],
)
def test_clients_are_sent_to_where_the_first_listener_is(listener: str, reached_at: str) -> None:
    found = addresses.Addresses({"listeners": listener})
    names = ["PLAINTEXT", "OTHER"][: listener.count(",") + 1]
    found.learn(names, ["what-is-shown:9092", "other:9093"][: len(names)])
    assert found.bootstrap == reached_at


def test_metrics_are_served_where_a_port_is_named() -> None:
    with testing.broker(properties={"ottla.metrics.port": "0"}) as broker:
        broker.create_topic("counted", partitions=2)
        with urllib.request.urlopen(f"http://{broker.metrics_address}/metrics", timeout=60) as answer:
            assert 'kafka_topic_partitions{topic="counted"} 2' in answer.read().decode().splitlines()
        with urllib.request.urlopen(f"http://{broker.metrics_address}/ready", timeout=60) as answer:
            assert answer.read() == b"ready\n"


def test_on_a_loop_of_its_caller() -> None:
    async def scenario() -> None:
        async with testing.async_broker() as broker:
            await broker.create_topic("orders", partitions=2)
            seen = await asyncio.to_thread(topics_seen_by_a_client, broker.bootstrap)
            assert seen == {"orders"}
            await broker.restart()
            assert broker.topics() == ["orders"]
            await broker.delete_topic("orders")
            assert broker.topics() == []

    asyncio.run(scenario())


def test_the_package_and_the_plugin_load_nothing_of_the_broker() -> None:
    """Each pytest start in each project pays for what these two import."""
    code = (
        "import sys, ottla.testing, ottla.testing.pytest_plugin;"
        "print(sorted(name for name in sys.modules if name.startswith('ottla')))"
    )
    seen = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert seen.stdout.strip() == "['ottla', 'ottla.testing', 'ottla.testing.pytest_plugin']"
