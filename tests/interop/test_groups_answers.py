"""Whole conversations with a coordinator, each answer compared with Apache Kafka's to the same requests."""

from __future__ import annotations

import pytest
from confluent_kafka.admin import AdminClient

from tests.interop.broker import Broker
from tests.interop.conftest import create_topic
from tests.interop.group_answers import SCENARIOS, converse, recorded


@pytest.fixture(scope="module")
def talked_of(group_admin: AdminClient) -> str:
    create_topic(group_admin, "answers", partitions=2)
    return "answers"


def test_every_conversation_is_recorded() -> None:
    assert list(recorded()) == list(SCENARIOS)


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_answers_are_kafkas(group_broker: Broker, talked_of: str, scenario: str) -> None:
    assert converse(group_broker.bootstrap, scenario, talked_of) == recorded()[scenario]
