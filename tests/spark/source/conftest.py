"""A broker in the test's process for a file of tests, and topics with records in them."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator

import pytest

import ottla.testing
from ottla.client.sync import Producer
from ottla.spark.source.links import close_links
from ottla.testing import InProcessBroker

#: Called with a broker, a topic and a number of records: a third of them to each partition in turn, numbered.
Fill = Callable[..., None]


@pytest.fixture(scope="module")
def broker() -> Iterator[InProcessBroker]:
    # Some records are of years ago, and a look half a minute after the start would take them.
    with ottla.testing.broker(properties={"log.retention.ms": "-1"}) as running:
        yield running
        close_links()


_numbers = itertools.count()


@pytest.fixture
def topic(broker: InProcessBroker) -> str:
    """A fresh topic of three partitions."""
    name = f"orders-{next(_numbers)}"
    broker.create_topic(name, partitions=3)
    return name


@pytest.fixture
def fill() -> Fill:
    def filled(bootstrap: str, topic: str, count: int, *, partitions: int = 3, first: int = 0) -> None:
        with Producer(bootstrap_servers=bootstrap) as producer:
            for number in range(first, first + count):
                partition = number % partitions
                producer.send(topic, b"%d" % number, key=b"k%d" % (number % 7), partition=partition)

    return filled
