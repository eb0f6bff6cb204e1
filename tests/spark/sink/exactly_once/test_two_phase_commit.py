"""A broker that offers Kafka's own two-phase commit (KIP-939): the sink does not use it, and writes all the same."""

from __future__ import annotations

from typing import Any

import pytest
from tests.client.proxy import Action, Pass, Proxy, Request
from tests.spark.sink.exactly_once.query import TASKS, Query, lines

from ottla.protocol.apis import ApiKey
from ottla.spark.sink.clients import KeptClients
from ottla.testing.in_process import InProcessBroker

#: The one that begins a transaction that stays prepared until it is ended by hand.
_VERSION = 6


@pytest.mark.ottla_topic(partitions=2)
def test_a_broker_that_offers_it_is_asked_as_any_other(
    ottla_broker: InProcessBroker, topic: str, worker: KeptClients
) -> None:
    """The ledger takes its place: without it nobody knows after a fence whether a task was committed."""
    asked: list[int] = []

    def offers(answer: Any) -> None:
        of_identities = next(one for one in answer.api_keys if one.api_key == ApiKey.INIT_PRODUCER_ID)
        of_identities.max_version = _VERSION

    def rule(request: Request) -> Action:
        if request.key == ApiKey.API_VERSIONS:
            return Pass(offers)
        if request.key == ApiKey.INIT_PRODUCER_ID:
            asked.append(request.version)
        return Pass()

    proxy = worker.thread.run(lambda: Proxy(ottla_broker.bootstrap, rule).__aenter__())
    query = Query(proxy.bootstrap, topic, worker)
    for batch in range(2):
        query.commit(batch, query.whole(batch))
    assert query.seen() == lines(0, 1)
    assert query.open() == []
    assert set(asked) == {_VERSION - 1}
    assert len(asked) == 2 * (TASKS + 1)
    worker.thread.run(lambda: proxy.__aexit__(None, None, None))
