"""The cluster's JSON against what Apache Kafka 3.9.1 wrote into a real ZooKeeper, and against damage."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import hypothesis.strategies as st
import pytest
from hypothesis import given
from tests.searches import examples

from ottla.coordination import notifications, znode_json, znodes
from ottla.coordination.znode_json import PIECE_CHARACTERS, DamagedZnode
from ottla.metadata import Endpoint
from ottla.model import ZERO_TOPIC_ID, BrokerId, Epoch, TopicPartition, topic_id_from_text
from ottla.steps import PIECE

# Read with a client from the tree of a Kafka 3.9.1 broker, in ZooKeeper mode, that had made two topics.
BROKER = (
    b'{"features":{},"listener_security_protocol_map":{"PLAINTEXT":"PLAINTEXT"},'
    b'"endpoints":["PLAINTEXT://127.0.0.1:23092"],"rack":"r1","jmx_port":-1,"port":23092,"host":"127.0.0.1",'
    b'"version":5,"timestamp":"1795257467392"}'
)
TOPIC = (
    b'{"partitions":{"0":[1],"1":[1]},"topic_id":"gf4U0uiLT_S_rrKHSCmwug","adding_replicas":{},'
    b'"removing_replicas":{},"version":3}'
)
STATE = b'{"controller_epoch":1,"leader":1,"version":1,"leader_epoch":0,"isr":[1]}'
CONTROLLER = b'{"version":2,"brokerid":1,"timestamp":"1795257467468","kraftControllerEpoch":-1}'
CONFIG = b'{"version":1,"config":{"cleanup.policy":"compact","retention.ms":"100000"}}'
CLUSTER_ID = b'{"version":"1","id":"f1QaDVOrQkOTImXhFnZACg"}'
PRODUCER_IDS = b'{"version":1,"broker":1,"block_start":"0","block_end":"999"}'

TOPIC_ID = topic_id_from_text("gf4U0uiLT_S_rrKHSCmwug")
ONE = (BrokerId(1),)


@pytest.mark.parametrize(
    ("data", "value", "encode", "decode"),
    [
        (
            BROKER,
            znodes.BrokerRegistration((Endpoint("PLAINTEXT", "PLAINTEXT", "127.0.0.1", 23092),), "r1", 1795257467392),
            znodes.encode_broker,
            znodes.decode_broker,
        ),
        (
            TOPIC,
            znodes.TopicAssignment(TOPIC_ID, {0: ONE, 1: ONE}, {}, {}),
            znodes.encode_topic,
            znodes.decode_topic,
        ),
        (
            STATE,
            znodes.LeaderAndIsr(Epoch(1), BrokerId(1), Epoch(0), ONE),
            znodes.encode_state,
            znodes.decode_state,
        ),
        (
            CONTROLLER,
            znodes.ControllerRegistration(BrokerId(1), 1795257467468),
            znodes.encode_controller,
            znodes.decode_controller,
        ),
        (
            CONFIG,
            {"cleanup.policy": "compact", "retention.ms": "100000"},
            znodes.encode_config,
            znodes.decode_config,
        ),
        (CLUSTER_ID, "f1QaDVOrQkOTImXhFnZACg", znodes.encode_cluster_id, znodes.decode_cluster_id),
        (
            PRODUCER_IDS,
            znodes.ProducerIdBlock(BrokerId(1), 0, 999),
            znodes.encode_producer_ids,
            znodes.decode_producer_ids,
        ),
        (b"17", 17, znodes.encode_epoch, znodes.decode_epoch),
    ],
    ids=["broker", "topic", "state", "controller", "config", "cluster-id", "producer-ids", "epoch"],
)
def test_kafkas_bytes_are_read_and_written(
    data: bytes, value: Any, encode: Callable[[Any], bytes], decode: Callable[[str, bytes], Any]
) -> None:
    assert decode("/path", data) == value
    assert encode(value) == data


def test_a_broker_with_several_listeners() -> None:
    registration = znodes.BrokerRegistration(
        (Endpoint("CLIENTS", "SSL", "::1", 9093), Endpoint("INSIDE", "PLAINTEXT", "broker", 9092)), None, 5
    )
    data = znodes.encode_broker(registration)
    assert znodes.decode_broker("/b", data) == registration
    value = json.loads(data)
    assert value["endpoints"] == ["CLIENTS://[::1]:9093", "INSIDE://broker:9092"]
    # Old clients get the one that needs nothing.
    assert (value["host"], value["port"]) == ("broker", 9092)
    secure = registration._replace(endpoints=registration.endpoints[:1])
    value = json.loads(znodes.encode_broker(secure))
    assert (value["host"], value["port"]) == (None, -1)


def test_registrations_of_older_brokers() -> None:
    data = b'{"version":2,"host":"h","port":9092,"jmx_port":9999,"timestamp":"22","endpoints":["SSL://h:9093"]}'
    assert znodes.decode_broker("/b", data).endpoints == (Endpoint("SSL", "SSL", "h", 9093),)
    with pytest.raises(DamagedZnode, match="older"):
        znodes.decode_broker("/b", b'{"version":1,"host":"h","port":9092,"jmx_port":9999,"timestamp":"22"}')


def test_topics_of_older_brokers_and_topics_on_the_move() -> None:
    old = znodes.decode_topic("/t", b'{"version":1,"partitions":{"10":[1,2],"2":[2,1]}}')
    assert old == znodes.TopicAssignment(
        ZERO_TOPIC_ID, {2: (BrokerId(2), BrokerId(1)), 10: (BrokerId(1), BrokerId(2))}, {}, {}
    )
    assert list(old.replicas) == [2, 10]
    assert b"topic_id" not in znodes.encode_topic(old)
    moving = old._replace(topic_id=TOPIC_ID, adding={2: ONE}, removing={2: (BrokerId(2),)})
    assert znodes.decode_topic("/t", znodes.encode_topic(moving)) == moving


def decoded_in_steps(monkeypatch: pytest.MonkeyPatch, data: bytes) -> tuple[znodes.TopicAssignment, list[int]]:
    """And how many characters of JSON each step has decoded."""
    steps = [0]
    loads = json.loads

    def counting(text: str) -> Any:
        steps[-1] += len(text)
        return loads(text)

    monkeypatch.setattr(json, "loads", counting)
    work = znodes.decoding_topic("/t", data)
    while True:
        try:
            next(work)
        except StopIteration as end:
            return end.value, steps
        steps.append(0)


def test_a_large_topic_is_decoded_in_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    replicas = {number: (BrokerId(number % 3), BrokerId(7)) for number in range(3_000)}
    adding = {number: (BrokerId(8),) for number in range(1_000)}
    large = znodes.TopicAssignment(TOPIC_ID, replicas, adding, {1: ONE})
    found, steps = decoded_in_steps(monkeypatch, znodes.encode_topic(large))
    assert found == large
    assert max(steps) < 2 * PIECE_CHARACTERS
    # Of what was decoded at most so many members are looked at in one step.
    assert len(steps) > 4_000 // PIECE


MANY = ",".join(f'"{number}":[1,2]' for number in range(1_000))


@pytest.mark.parametrize(
    "text",
    [
        f'{{ "version": 1, "partitions":{{ {MANY} }} }}',
        f'{{"partitions" : {{{MANY}}}}}',
        f'{{"partitions":{{{MANY.replace(",", ", ")}}}}}',
        f'{{"partitions":{{{MANY},"0":[3]}}}}',
        f'{{"partitions":{{{MANY}}},"partitions":{{"0":[1]}}}}',
        f'{{"partitions":{{"0":[1]}},"partitions":{{{MANY}}}}}',
        f'{{"of":{{"partitions":{{{MANY}}}}},"partitions":{{"0":[1]}}}}',
        f'{{"of":{{"partitions":{{{MANY}}}}}}}',
        f'{{"partitions":{{{MANY},}}}}',
        f'{{"partitions":{{{MANY}}}',
        f'{{"partitions":{{{MANY}}}}}}}',
        f'{{"partitions":{{{MANY},"a],":[1]}}}}',
        f'{{"partitions":{{{MANY},"1000":[[1],"2",[3]]}}}}',
        f'{{"partitions":{{{MANY},"1000":["}}"]}}}}',
        f'[{{"partitions":{{{MANY}}}}}]',
        f'{{"partitions":{{{MANY}}},"of":"<taken out>"}}',
        f'{{"adding_replicas":{{{MANY}}}}}',
    ],
)
def test_a_large_topic_says_the_same_in_steps_however_it_is_written(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    def outcome() -> object:
        try:
            return znodes.decode_topic("/t", text.encode())
        except DamagedZnode as damaged:
            return str(damaged)

    in_steps = outcome()
    monkeypatch.setattr(znode_json, "PIECE_CHARACTERS", len(text))
    assert outcome() == in_steps


def test_a_large_topic_that_is_no_text_is_damaged() -> None:
    with pytest.raises(DamagedZnode):
        znodes.decode_topic("/t", f'{{"partitions":{{{MANY}}},"of":"'.encode() + b'\xff"}')


def test_an_empty_config_node_has_no_overrides() -> None:
    assert znodes.decode_config("/c", b"") == {}
    assert znodes.decode_config("/c", b'{"version":1,"config":{}}') == {}
    assert znodes.encode_config({}) == b'{"version":1,"config":{}}'


def test_paths() -> None:
    assert znodes.state_path("orders", 7) == "/brokers/topics/orders/partitions/7/state"
    assert znodes.partition_path("orders", 7) == "/brokers/topics/orders/partitions/7"
    assert znodes.broker_config_path("<default>") == "/config/brokers/<default>"
    assert znodes.delete_topic_path("a.b") == "/admin/delete_topics/a.b"
    for path in znodes.PERSISTENT_PATHS:
        parent = path.rpartition("/")[0]
        assert not parent or znodes.PERSISTENT_PATHS.index(parent) < znodes.PERSISTENT_PATHS.index(path)


def test_notifications() -> None:
    partitions = [TopicPartition("a", 0), TopicPartition("b", 3)]
    data = notifications.encode_partitions(partitions)
    assert data == b'{"version":1,"partitions":[{"topic":"a","partition":0},{"topic":"b","partition":3}]}'
    assert notifications.decode_partitions("/n", data) == partitions
    data = notifications.encode_log_dir_failure(4)
    assert data == b'{"version":1,"broker":4,"event":1}'
    assert notifications.decode_log_dir_failure("/n", data) == 4
    data = notifications.encode_config_change("topics/a")
    assert data == b'{"version":2,"entity_path":"topics/a"}'
    assert notifications.decode_config_change("/n", data) == "topics/a"


DECODERS: list[tuple[Callable[[str, bytes], Any], bytes]] = [
    (znodes.decode_broker, BROKER),
    (znodes.decode_topic, TOPIC),
    (znodes.decode_state, STATE),
    (znodes.decode_controller, CONTROLLER),
    (znodes.decode_config, CONFIG),
    (znodes.decode_cluster_id, CLUSTER_ID),
    (znodes.decode_producer_ids, PRODUCER_IDS),
    (znodes.decode_epoch, b"17"),
    (notifications.decode_partitions, b'{"version":1,"partitions":[{"topic":"a","partition":0}]}'),
    (notifications.decode_log_dir_failure, b'{"version":1,"broker":4,"event":1}'),
    (notifications.decode_config_change, b'{"version":2,"entity_path":"topics/a"}'),
]
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=3), inner, max_size=2),
    max_leaves=4,
)


@pytest.mark.parametrize(("decode", "good"), DECODERS, ids=lambda one: getattr(one, "__name__", ""))
@examples(60)
@given(draw=st.data())
def test_damage_is_told_by_its_path_and_raises_nothing_else(
    decode: Callable[[str, bytes], Any], good: bytes, draw: st.DataObject
) -> None:
    value = json.loads(good)
    if isinstance(value, dict) and draw.draw(st.booleans()):
        key = draw.draw(st.sampled_from(sorted(value)))
        value[key] = draw.draw(values)
        if isinstance(value[key], dict):
            value[key]["0"] = draw.draw(values)
        data = json.dumps(value).encode()
    else:
        noise = bytearray(good)
        noise[draw.draw(st.integers(0, len(good) - 1))] = draw.draw(st.integers(0, 255))
        data = bytes(noise[: draw.draw(st.integers(0, len(good)))]) + draw.draw(st.binary(max_size=3))
    try:
        decode("/the/path", data)
    except DamagedZnode as damaged:
        assert "/the/path" in str(damaged)  # noqa: PT017
