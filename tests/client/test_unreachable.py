"""A cluster that is not reached is said in the log, once in a while, and that it is reached again too."""

from __future__ import annotations

import asyncio
import re
import socket
import threading
from collections.abc import Awaitable, Callable, Iterator

import pytest

from ottla import logs
from ottla.client.admin.admin import Admin
from ottla.client.consuming.consumer import Consumer
from ottla.client.errors import KafkaError, NoBrokerReached
from ottla.client.producing.producer import Producer
from ottla.model import TopicPartition
from tests.client.proxy import Cut, Pass, Proxy, Request

#: Pauses between attempts, so that the tests need not wait.
IMPATIENT = {
    "retry_backoff_ms": 2,
    "retry_backoff_max_ms": 10,
    "reconnect_backoff_ms": 1,
    "reconnect_backoff_max_ms": 5,
}


class Lines(list[str]):
    """What this thread has logged (brokers of other tests have theirs); a test can wait for a line."""

    def __init__(self) -> None:
        self._news = asyncio.Event()
        self._thread = threading.get_ident()

    def take(self, line: str) -> None:
        if threading.get_ident() != self._thread:
            return
        self.append(line)
        self._news.set()

    async def until(self, event: str) -> None:
        while not of(self, event):
            self._news.clear()
            await self._news.wait()


@pytest.fixture
def lines() -> Iterator[Lines]:
    found = Lines()
    before = logs.configure(sink=found.take)
    yield found
    logs.restore(before)


@pytest.fixture
def nobody() -> Iterator[str]:
    """An address where nothing listens, and nothing begins to while the test runs."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield f"127.0.0.1:{taken.getsockname()[1]}"


def of(lines: list[str], event: str) -> list[str]:
    return [line for line in lines if event in line]


async def unreached(call: Callable[[], Awaitable[object]]) -> NoBrokerReached:
    """What the call says of a cluster that is not reached; one that had no time to try even once says less."""
    while True:
        with pytest.raises(KafkaError) as caught:
            await call()
        if isinstance(caught.value, NoBrokerReached):
            return caught.value


async def test_a_producer_that_nobody_answers(lines: Lines, nobody: str) -> None:
    async with Producer(bootstrap_servers=nobody, max_block_ms=1_000, **IMPATIENT) as producer:
        assert "refused" in str(await unreached(lambda: producer.send("orders", b"x")))
    (line,) = of(lines, "no broker is reached")  # however often it was tried
    assert " WARN  client  no broker is reached" in line
    assert nobody in line
    assert "refused" in line


async def test_a_consumer_and_an_admin(lines: Lines, nobody: str) -> None:
    async with Consumer(bootstrap_servers=nobody, **IMPATIENT) as consumer:
        consumer.assign([TopicPartition("orders", 0)])
        assert await consumer.poll(timeout_ms=500) == []
        while not of(lines, "no broker is reached"):
            assert await consumer.poll(timeout_ms=500) == []
    assert len(of(lines, "no broker is reached")) == 1
    async with Admin(bootstrap_servers=nobody, default_api_timeout_ms=500, **IMPATIENT) as admin:
        assert "refused" in str(await unreached(admin.list_topics))
    assert len(of(lines, "no broker is reached")) == 2


async def test_a_broker_that_goes_and_comes_back(lines: Lines, bootstrap: str, topic: str) -> None:
    def gone(_: Request) -> Cut:
        return Cut()

    async with Proxy(bootstrap) as proxy, Consumer(bootstrap_servers=proxy.bootstrap, **IMPATIENT) as consumer:
        consumer.assign([TopicPartition(topic, 0)])
        assert await consumer.poll(timeout_ms=50) == []
        assert of(lines, "no broker is reached") == []
        proxy.rule = gone
        polling = asyncio.create_task(consumer.poll(timeout_ms=60_000))
        await lines.until("no broker is reached")
        proxy.rule = lambda _: Pass()
        await lines.until("a broker is reached again")
        polling.cancel()
    assert len(of(lines, "no broker is reached")) == 1
    assert len(of(lines, "a broker is reached again")) == 1


async def test_a_program_that_says_it_itself(lines: Lines, nobody: str) -> None:
    heard: list[NoBrokerReached | None] = []
    async with Admin(bootstrap_servers=nobody, default_api_timeout_ms=500, **IMPATIENT) as admin:
        admin.cluster.connections.on_unreached = heard.append
        await unreached(admin.list_topics)
    assert heard
    assert lines == []


async def test_the_cause_is_the_systems_own_word(nobody: str) -> None:
    port = nobody.rpartition(":")[2]
    for address, said in (
        (nobody, "Connection refused"),
        (f"localhost:{port}", "Connection refused"),  # perhaps two addresses
        (f"no-such-host.invalid:{port}", ".*(not known|resolution|No address)"),
    ):
        async with Admin(bootstrap_servers=address, default_api_timeout_ms=1_000, **IMPATIENT) as admin:
            words = str(await unreached(admin.list_topics))
            assert re.search(rf"reached: {address}: ({said})", words), words
            assert "Errno" not in words
