"""Connections that a process keeps between its tasks."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator

import pytest
from tools.server_process import free_port

import ottla.testing
from ottla.client.errors import NoBrokerReached
from ottla.client.wire.cluster import Cluster
from ottla.spark.source import links
from ottla.spark.source.links import LINKS_MAX, Link, close_links, link
from ottla.testing import InProcessBroker


@pytest.fixture(scope="module")
def broker() -> Iterator[InProcessBroker]:
    with ottla.testing.broker() as running:
        yield running


@pytest.fixture(autouse=True)
def _all_closed() -> Iterator[None]:
    close_links()
    yield
    close_links()


async def connections(cluster: Cluster) -> int:
    await cluster.updated()
    return len([one for one in cluster.connections._there.values() if not one.closed])


def test_a_link_is_found_again_and_has_one_connection(broker: InProcessBroker) -> None:
    settings = {"bootstrap.servers": broker.bootstrap}
    assert link(settings).run(connections) == 1
    assert link(dict(settings)).run(connections) == 1
    assert link(settings) is link(dict(settings))
    assert link(settings) is not link({**settings, "isolation.level": "read_committed"})


def test_where_nobody_answers_the_option_is_named() -> None:
    settings = {"bootstrap.servers": f"127.0.0.1:{free_port()}", "default.api.timeout.ms": "200"}
    with pytest.raises(
        NoBrokerReached, match=r"Connection refused: are these the brokers.* kafka\.bootstrap\.servers$"
    ):
        link(settings).run(connections)


def test_so_many_are_kept(broker: InProcessBroker) -> None:
    every = [{"bootstrap.servers": broker.bootstrap, "client.id": str(number)} for number in range(LINKS_MAX + 1)]
    kept = [link(settings) for settings in every]
    assert link(every[1]) is kept[1]
    assert link(every[0]) is not kept[0]


def test_what_nobody_uses_is_closed_and_made_again(broker: InProcessBroker, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(links, "IDLE_SECONDS_MAX", 0.0)
    found = Link({"bootstrap.servers": broker.bootstrap})

    async def closed() -> None:
        while found.connected:  # noqa: ASYNC110 - the timer that closes it says so to nobody
            await asyncio.sleep(0)

    try:
        assert found.run(connections) == 1
        found._thread.run(closed)
        assert found.run(connections) == 1
    finally:
        found.close()


def test_a_fork_makes_its_own(broker: InProcessBroker) -> None:
    settings = {"bootstrap.servers": broker.bootstrap}
    before = link(settings)
    assert before.run(connections) == 1
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        worked = 0
        try:
            worked = int(link(settings) is not before and link(settings).run(connections) == 1)
        finally:
            os.write(writing, bytes([worked]))
            os._exit(0)
    assert os.read(reading, 1) == b"\x01"
    assert os.waitpid(child, 0)[1] == 0
    assert before.run(connections) == 1
