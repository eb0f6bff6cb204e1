"""The cluster's znodes: where each thing stands, and its JSON, as Kafka 3.9 writes them.

Kafka reads these nodes by key and ignores what it does not know; so does this. Anything else that is not as it should
be raises `DamagedZnode` with the path in it, since a tree that was changed by hand must not be guessed at.
docs/formats/znodes.md shows each node.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple
from urllib.parse import quote, unquote

from ottla.coordination.notifications import CONFIG_CHANGES, ISR_CHANGES, LOG_DIR_EVENTS
from ottla.coordination.znode_json import (
    FAULTS,
    DamagedZnode,
    broker_ids,
    decode_object,
    decoding_object,
    encode_object,
    integer,
    require,
    text_of,
    words,
)
from ottla.metadata.updates import DEFAULT_BROKER, Endpoint
from ottla.model import (
    ZERO_TOPIC_ID,
    BrokerId,
    Epoch,
    TopicId,
    topic_id_from_text,
    topic_id_text,
)
from ottla.steps import Steps, at_once, pieces

BROKER_IDS: Final = "/brokers/ids"
BROKER_SEQUENCE: Final = "/brokers/seqid"
TOPICS: Final = "/brokers/topics"
CONTROLLER: Final = "/controller"
CONTROLLER_EPOCH: Final = "/controller_epoch"
CLUSTER_ID: Final = "/cluster/id"
DELETE_TOPICS: Final = "/admin/delete_topics"
PRODUCER_ID_BLOCK: Final = "/latest_producer_id_block"
TOPIC_CONFIGS: Final = "/config/topics"
BROKER_CONFIGS: Final = "/config/brokers"
GROUP_CONFIGS: Final = "/config/groups"
FEATURE: Final = "/feature"
#: What Kafka 3.9 writes there: feature versions are on, and none is finalized.
FEATURE_DATA: Final = b'{"features":{},"version":2,"status":1}'

#: Nodes that every broker expects to find, parents first. Kafka makes the same at its start.
PERSISTENT_PATHS: Final = (
    "/consumers",
    "/brokers",
    BROKER_IDS,
    TOPICS,
    BROKER_SEQUENCE,
    "/config",
    CONFIG_CHANGES,
    TOPIC_CONFIGS,
    "/config/clients",
    "/config/users",
    BROKER_CONFIGS,
    "/config/ips",
    GROUP_CONFIGS,
    "/admin",
    DELETE_TOPICS,
    "/cluster",
    ISR_CHANGES,
    PRODUCER_ID_BLOCK,
    LOG_DIR_EVENTS,
)


# Paths.


def broker_path(broker_id: int) -> str:
    return f"{BROKER_IDS}/{broker_id}"


def topic_path(topic: str) -> str:
    return f"{TOPICS}/{topic}"


def partitions_path(topic: str) -> str:
    return f"{TOPICS}/{topic}/partitions"


def partition_path(topic: str, partition: int) -> str:
    return f"{TOPICS}/{topic}/partitions/{partition}"


def state_path(topic: str, partition: int) -> str:
    return f"{TOPICS}/{topic}/partitions/{partition}/state"


def topic_config_path(topic: str) -> str:
    return f"{TOPIC_CONFIGS}/{topic}"


def broker_config_path(broker: str) -> str:
    """Of a broker id as text, or of DEFAULT_BROKER."""
    assert broker == DEFAULT_BROKER or broker.isdigit(), broker
    return f"{BROKER_CONFIGS}/{broker}"


def group_config_path(group: str) -> str:
    """A group may be named anything: its name is written as Kafka writes those of users and clients."""
    return f"{GROUP_CONFIGS}/{sanitized(group)}"


def sanitized(name: str) -> str:
    """As Kafka's `Sanitizer`: what Java's encoder of forms lets stand, but for the asterisk and the blank.

    Names that consist of dots are no names of znodes: there the dots are encoded as well.
    """
    text = quote(name, safe="").replace("~", "%7E")
    return text if text.strip(".") else text.replace(".", "%2E")


def entity_name(node: str) -> str:
    """The reverse of `sanitized`."""
    return unquote(node)


def delete_topic_path(topic: str) -> str:
    return f"{DELETE_TOPICS}/{topic}"


# /brokers/ids/<id>


class BrokerRegistration(NamedTuple):
    endpoints: tuple[Endpoint, ...]
    rack: str | None = None
    timestamp_ms: int = 0
    jmx_port: int = -1


def encode_broker(registration: BrokerRegistration) -> bytes:
    # Old clients read one host and port: those of the first plaintext endpoint, or none.
    plain = next((end for end in registration.endpoints if end.security_protocol == "PLAINTEXT"), None)
    value: dict[str, Any] = {
        "features": {},
        "listener_security_protocol_map": {end.listener: end.security_protocol for end in registration.endpoints},
        "endpoints": [_endpoint_text(end) for end in registration.endpoints],
    }
    if registration.rack is not None:
        value["rack"] = registration.rack
    value |= {
        "jmx_port": registration.jmx_port,
        "port": plain.port if plain else -1,
        "host": plain.host if plain else None,
        "version": 5,
        "timestamp": str(registration.timestamp_ms),
    }
    return encode_object(value)


def decode_broker(path: str, data: bytes) -> BrokerRegistration:
    value = decode_object(path, data)
    try:
        require(integer(value["version"]) >= 2, "its version is older than this reads")
        protocols = value.get("listener_security_protocol_map", {})
        endpoints = tuple(_endpoint(text_of(text), protocols) for text in value["endpoints"])
        rack = value.get("rack")
        return BrokerRegistration(
            endpoints,
            None if rack is None else text_of(rack),
            int(value.get("timestamp", 0)),
            integer(value.get("jmx_port", -1)),
        )
    except FAULTS as fault:
        raise DamagedZnode(path, words(fault)) from fault


def _endpoint_text(endpoint: Endpoint) -> str:
    host = f"[{endpoint.host}]" if ":" in endpoint.host else endpoint.host
    return f"{endpoint.listener}://{host}:{endpoint.port}"


def _endpoint(text: str, protocols: Mapping[str, str]) -> Endpoint:
    listener, found, address = text.partition("://")
    host, colon, port = address.rpartition(":")
    if not found or not colon:
        raise ValueError(f"{text!r} is not an endpoint")
    # A listener of an older registration is named after its protocol.
    return Endpoint(listener, text_of(protocols.get(listener, listener)), host.strip("[]"), int(port))


# /brokers/topics/<topic>

_PARTITION_MAPS: Final = ("partitions", "adding_replicas", "removing_replicas")


class TopicAssignment(NamedTuple):
    #: ZERO_TOPIC_ID in a topic that was made before there were ids.
    topic_id: TopicId
    #: Partition -> replicas, the preferred leader first. In order of the partitions.
    replicas: dict[int, tuple[BrokerId, ...]]
    adding: dict[int, tuple[BrokerId, ...]]
    removing: dict[int, tuple[BrokerId, ...]]


def encode_topic(assignment: TopicAssignment) -> bytes:
    return at_once(encoding_topic(assignment))


def encoding_topic(assignment: TopicAssignment) -> Steps[bytes]:
    """The same in steps: a topic may have a hundred thousand partitions, and json makes one piece of them."""
    replicas = yield from _keyed(assignment.replicas)
    adding = yield from _keyed(assignment.adding)
    removing = yield from _keyed(assignment.removing)
    topic_id = "" if assignment.topic_id == ZERO_TOPIC_ID else f'"topic_id":"{topic_id_text(assignment.topic_id)}",'
    return (
        f'{{"partitions":{replicas},{topic_id}"adding_replicas":{adding},"removing_replicas":{removing},"version":3}}'
    ).encode()


def decode_topic(path: str, data: bytes) -> TopicAssignment:
    return at_once(decoding_topic(path, data))


def decoding_topic(path: str, data: bytes) -> Steps[TopicAssignment]:
    """The same in steps."""
    value = yield from decoding_object(path, data, _PARTITION_MAPS)
    try:
        text = value.get("topic_id")
        replicas = yield from _partition_map(value["partitions"])
        adding = yield from _partition_map(value.get("adding_replicas", {}))
        removing = yield from _partition_map(value.get("removing_replicas", {}))
        topic_id = ZERO_TOPIC_ID if text is None else topic_id_from_text(text_of(text))
    except FAULTS as fault:
        raise DamagedZnode(path, words(fault)) from fault
    return TopicAssignment(topic_id, replicas, adding, removing)


def _keyed(partitions: Mapping[int, Sequence[int]]) -> Steps[str]:
    texts: list[str] = []
    for piece in pieces(partitions.items()):
        texts += [f'"{partition}":[{",".join(map(str, replicas))}]' for partition, replicas in piece]
        yield
    return f"{{{','.join(texts)}}}"


def _partition_map(value: Mapping[str, Any]) -> Steps[dict[int, tuple[BrokerId, ...]]]:
    found: dict[int, tuple[BrokerId, ...]] = {}
    highest, in_order = -1, True
    for piece in pieces(value.items()):
        for text, replicas in piece:
            partition = int(text)
            require(partition >= 0, "a partition is numbered below zero")
            found[partition] = broker_ids(replicas)
            in_order = in_order and partition > highest
            highest = partition
        if len(value) > len(piece):
            yield
    # Kafka writes them in the order of a hash table.
    return found if in_order else {partition: found[partition] for partition in sorted(found)}


# /brokers/topics/<topic>/partitions/<partition>/state


class LeaderAndIsr(NamedTuple):
    controller_epoch: Epoch
    leader: BrokerId
    leader_epoch: Epoch
    isr: tuple[BrokerId, ...]


def encode_state(state: LeaderAndIsr) -> bytes:
    # Written by the thousand when a large topic is made: six times quicker than through json.
    isr = ",".join(map(str, state.isr))
    return (
        f'{{"controller_epoch":{state.controller_epoch},"leader":{state.leader},"version":1,'
        f'"leader_epoch":{state.leader_epoch},"isr":[{isr}]}}'
    ).encode()


def decode_state(path: str, data: bytes) -> LeaderAndIsr:
    value = decode_object(path, data)
    try:
        return LeaderAndIsr(
            Epoch(integer(value["controller_epoch"])),
            BrokerId(integer(value["leader"])),
            Epoch(integer(value["leader_epoch"])),
            broker_ids(value["isr"]),
        )
    except FAULTS as fault:
        raise DamagedZnode(path, words(fault)) from fault


# /controller and /controller_epoch


class ControllerRegistration(NamedTuple):
    broker_id: BrokerId
    timestamp_ms: int


def encode_controller(registration: ControllerRegistration) -> bytes:
    return encode_object(
        {
            "version": 2,
            "brokerid": registration.broker_id,
            "timestamp": str(registration.timestamp_ms),
            "kraftControllerEpoch": -1,
        }
    )


def decode_controller(path: str, data: bytes) -> ControllerRegistration:
    value = decode_object(path, data)
    try:
        return ControllerRegistration(BrokerId(integer(value["brokerid"])), int(value["timestamp"]))
    except FAULTS as fault:
        raise DamagedZnode(path, words(fault)) from fault


def encode_epoch(epoch: int) -> bytes:
    return str(epoch).encode()


def decode_epoch(path: str, data: bytes) -> Epoch:
    try:
        return Epoch(int(data))
    except ValueError as fault:
        raise DamagedZnode(path, f"{data[:40]!r} is not a number") from fault


# /config/<type>/<name>


def encode_config(overrides: Mapping[str, str]) -> bytes:
    return encode_object({"version": 1, "config": dict(overrides)})


def decode_config(path: str, data: bytes) -> dict[str, str]:
    if not data:
        return {}
    value = decode_object(path, data)
    try:
        return {key: text_of(text) for key, text in value.get("config", {}).items()}
    except FAULTS as fault:
        raise DamagedZnode(path, words(fault)) from fault


# /cluster/id, /latest_producer_id_block


def encode_cluster_id(cluster_id: str) -> bytes:
    return encode_object({"version": "1", "id": cluster_id})


def decode_cluster_id(path: str, data: bytes) -> str:
    value = decode_object(path, data)
    try:
        return text_of(value["id"])
    except FAULTS as fault:
        raise DamagedZnode(path, words(fault)) from fault


def encode_features(levels: Mapping[str, int]) -> bytes:
    return encode_object({"features": dict(levels), "version": 2, "status": 1})


def decode_features(path: str, data: bytes) -> dict[str, int]:
    """The highest level of each feature, as Kafka from 3.3 on writes them; before, each was a range."""
    value = decode_object(path, data)
    try:
        if integer(value["status"]) == 0:
            return {}  # feature versions are off
        if integer(value["version"]) == 1:
            ranges = dict(value["features"])
            return {text_of(name): integer(levels["max_version_level"]) for name, levels in ranges.items()}
        return {text_of(name): integer(level) for name, level in dict(value["features"]).items()}
    except FAULTS as fault:
        raise DamagedZnode(path, words(fault)) from fault


class ProducerIdBlock(NamedTuple):
    broker_id: BrokerId
    first: int
    #: The last id of the block itself.
    last: int


def encode_producer_ids(block: ProducerIdBlock) -> bytes:
    return encode_object(
        {"version": 1, "broker": block.broker_id, "block_start": str(block.first), "block_end": str(block.last)}
    )


def decode_producer_ids(path: str, data: bytes) -> ProducerIdBlock:
    value = decode_object(path, data)
    try:
        block = ProducerIdBlock(BrokerId(integer(value["broker"])), int(value["block_start"]), int(value["block_end"]))
        require(0 <= block.first <= block.last, "it is not a block of ids")
    except FAULTS as fault:
        raise DamagedZnode(path, words(fault)) from fault
    return block
