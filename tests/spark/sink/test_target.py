"""The sink's options: what is refused is refused by name, before anything is written."""

from __future__ import annotations

import pickle

import pytest

from ottla.spark.options import OptionError
from ottla.spark.sink.target import checked_target

EXACTLY_ONCE_OPTIONS = {"ottla.exactlyOnce": "true", "ottla.query": "orders"}
GIVEN = {"kafka.bootstrap.servers": "localhost:9092", "topic": "orders"}


def test_what_is_passed_on_and_what_is_passed_over() -> None:
    target = checked_target(
        {**GIVEN, "kafka.Linger.ms": "7", "checkpointLocation": "/c", "includeHeaders": "true", "startingOffsets": "x"},
        streaming=True,
    )
    assert target.topic == "orders"
    assert target.settings == {"bootstrap.servers": "localhost:9092", "linger.ms": "7", "batch.size": "131072"}
    assert target.client_settings == {"bootstrap.servers": "localhost:9092"}
    assert target.query is None
    assert pickle.loads(pickle.dumps(target)) == target


def test_a_batch_size_of_the_users_stays() -> None:
    assert checked_target({**GIVEN, "kafka.batch.size": "99"}, streaming=False).settings["batch.size"] == "99"


@pytest.mark.parametrize(
    ("more", "text"),
    [
        ({"ottla.exactlyOnce": "true"}, "ottla.exactlyOnce needs ottla.query"),
        ({"kafka.transactional.id": "t"}, "kafka.transactional.id cannot be set"),
        ({"kafka.enable.idempotence": "false", **EXACTLY_ONCE_OPTIONS}, "needs kafka.enable.idempotence"),
        ({"ottla.exactlyOnce": "perhaps"}, "ottla.exactlyOnce must be true or false"),
        ({"ottla.qeury": "a"}, "did you mean ottla.query"),
        ({"ottla.direct": "true"}, "there is no option ottla.direct"),
        ({"ottla.query": ""}, "ottla.query must be a name"),
        ({"ottla.query": "a/b"}, "without a slash"),
        ({"ottla.query": "n" * 250}, "1 to 249"),
        ({"ottla.query": "a\nb"}, "printable"),
        ({"ottla.query": "a", "kafka.acks": "1"}, "needs kafka.acks=all"),
        ({"kafka.ssl.truststore.location": "/t"}, "ssl.truststore.location"),
        ({"kafka.security.protocol": "SSL"}, "security.protocol SSL is not there yet"),
        ({"kafka.acks": "2"}, "acks must be from -1 to 1"),
        ({"kafka.key.serializer": "x"}, "Kafka option 'key.serializer' is not supported as keys are serialized"),
        ({"kafka.value.serializer": "x"}, "Kafka option 'value.serializer' is not supported as values are serialized"),
        ({"kafka.partitioner": "sticky"}, "kafka.partitioner"),
        ({"topic": ""}, "topic: no topic can have this name: the empty string"),
        ({"topic": "a b"}, "topic: no topic can have this name: 'a b' contains"),
        ({"kafka.bootstrap.servers": ""}, "kafka.bootstrap.servers is missing"),
        ({"kafka.bootstrap.servers": "nowhere"}, "no host:port"),
    ],
)
def test_options_that_cannot_be(more: dict[str, str], text: str) -> None:
    with pytest.raises(OptionError) as caught:
        checked_target({**GIVEN, **more}, streaming=True)
    assert text in str(caught.value)


def test_only_streams_have_a_query() -> None:
    with pytest.raises(OptionError, match=r"ottla\.query is for streams"):
        checked_target({**GIVEN, "ottla.query": "a"}, streaming=False)
    with pytest.raises(OptionError, match=r"ottla\.exactlyOnce is for streams"):
        checked_target({**GIVEN, "ottla.exactlyOnce": "true"}, streaming=False)


def test_exactly_once() -> None:
    target = checked_target({**GIVEN, **EXACTLY_ONCE_OPTIONS}, streaming=True)
    assert (target.exactly_once, target.query) == (True, "orders")
    assert not checked_target({**GIVEN, "ottla.query": "orders"}, streaming=True).exactly_once
