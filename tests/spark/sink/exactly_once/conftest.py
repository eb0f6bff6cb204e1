"""A query on the broker that is shared."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.spark.sink.exactly_once.query import Query

from ottla.client.sync.loop_thread import LoopThread
from ottla.testing.in_process import InProcessBroker


@pytest.fixture
def thread() -> Iterator[LoopThread]:
    made = LoopThread("test")
    yield made
    made.end()


@pytest.fixture
def query(ottla_broker: InProcessBroker, topic: str, thread: LoopThread) -> Query:
    return Query(ottla_broker.bootstrap, topic, thread)
