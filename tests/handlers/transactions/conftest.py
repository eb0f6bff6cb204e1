"""A broker that is quick with transactions, and clients of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from tests.handlers.transactional import TransactionalClient
from tests.server.conftest import BrokerThread, Peer

PROPERTIES = {
    "offsets.topic.replication.factor": "1",
    "offsets.topic.num.partitions": "2",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "transaction.state.log.num.partitions": "2",
    "group.initial.rebalance.delay.ms": "0",
}


def transactional_broker(folder: Any, **properties: str) -> BrokerThread:
    named = {key.replace("_", "."): value for key, value in properties.items()}
    return BrokerThread(str(folder), **{**PROPERTIES, **named})


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerThread]:
    # What one test leaves open is not ended in the middle of another one, however long all of them take.
    rarely = {"transaction_abort_timed_out_transaction_cleanup_interval_ms": "3600000"}
    with transactional_broker(tmp_path_factory.mktemp("broker"), **rarely) as broker:
        yield broker


@pytest.fixture
def peer(running: BrokerThread) -> Iterator[Peer]:
    with running.connect() as client:
        yield client


@pytest.fixture
def topic(running: BrokerThread, request: pytest.FixtureRequest) -> str:
    name = "".join(c if c.isalnum() else "-" for c in request.node.name)
    running.create_topic(name, 2)
    return name


@pytest.fixture
def begun(peer: Peer, request: pytest.FixtureRequest) -> Callable[..., TransactionalClient]:
    """Makes a client that has its producer id."""

    def make(version: int = 0, on: Peer | None = None) -> TransactionalClient:
        client = TransactionalClient(on or peer, request.node.name, version)
        client.init()
        return client

    return make
