"""Whole conversations with the transaction coordinator: each answer is what Apache Kafka said to the same request."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from confluent_kafka.admin import AdminClient

from tests.conftest import WatchServer
from tests.interop.broker import Broker
from tests.interop.conftest import create_topic, new_broker
from tests.interop.transaction_answers import PROPERTIES, SCENARIOS, TOPIC, converse, recorded


@pytest.fixture(scope="module")
def asked(tmp_path_factory: pytest.TempPathFactory, watch_server: WatchServer) -> Iterator[Broker]:
    broker = new_broker(tmp_path_factory.mktemp("transaction-broker"), PROPERTIES)
    with watch_server(broker.server), broker.server:
        create_topic(AdminClient({"bootstrap.servers": broker.bootstrap, "log_level": 0}), TOPIC, partitions=3)
        yield broker


def test_every_conversation_is_recorded() -> None:
    assert list(recorded()) == list(SCENARIOS)


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_answers_are_kafkas(asked: Broker, scenario: str) -> None:
    assert converse(asked.bootstrap, scenario) == recorded()[scenario]
