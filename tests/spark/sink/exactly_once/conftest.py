"""A query on the broker that is shared, and the process that runs its tasks."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.spark.sink.exactly_once.query import Query

from ottla.client.sync.loop_thread import LoopThread
from ottla.spark.sink.clients import KeptClients
from ottla.testing.in_process import InProcessBroker


@pytest.fixture
def worker() -> Iterator[KeptClients]:
    made = KeptClients(LoopThread("test"))
    yield made
    made.close()


@pytest.fixture
def query(ottla_broker: InProcessBroker, topic: str, worker: KeptClients) -> Query:
    return Query(ottla_broker.bootstrap, topic, worker)
