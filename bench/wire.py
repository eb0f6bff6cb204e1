"""The few questions that a benchmark asks a broker itself, one at a time over one blocking connection."""

from __future__ import annotations

import contextlib
import socket
import struct
import time
from collections.abc import Sequence
from typing import Any

from ottla.model import ErrorCode
from ottla.protocol.apis import api
from ottla.protocol.generated.create_topics import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest
from ottla.protocol.generated.delete_topics import DeleteTopicsRequest
from ottla.protocol.generated.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from ottla.protocol.generated.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from ottla.protocol.header import RequestHeader, decode_response_header, encode_request
from ottla.protocol.message import Message

HOST = "127.0.0.1"
_CREATE_TOPICS, _DELETE_TOPICS, _LIST_OFFSETS = 19, 20, 2
_INCREMENTAL_ALTER_CONFIGS = 44
_LATEST = -1
_SET = 0
_OF_A_TOPIC = 2
ANSWER_SECONDS_MAX = 60.0

#: Frames are built once and replayed: their timestamps would soon be older than the default retention allows.
UNLIMITED = {"retention.ms": "-1", "retention.bytes": "-1"}


class WireError(Exception):
    """A broker closed the connection, or answered with an error."""


class Wire:
    """A context manager: a connection that sends one request and waits for its answer."""

    def __init__(self, port: int, seconds: float = ANSWER_SECONDS_MAX) -> None:
        self._socket = socket.create_connection((HOST, port), timeout=seconds)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def __enter__(self) -> Wire:  # noqa: PYI034 - never subclassed
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()

    def call(self, key: int, version: int, message: Message) -> Any:
        """The decoded answer to one request."""
        header = RequestHeader(api_key=key, api_version=version, correlation_id=1, client_id="bench")
        answer = self.exchange(encode_request(header, message))
        _, _, start = decode_response_header(answer, key, version)
        return api(key).response_type().decode(answer, version, start)[0]

    def call_all(self, key: int, version: int, messages: Sequence[Message]) -> list[Any]:
        """The same for requests that are all sent before the first answer is read."""
        header = RequestHeader(api_key=key, api_version=version, correlation_id=1, client_id="bench")
        self._socket.sendall(b"".join(encode_request(header, message) for message in messages))
        found = []
        for _ in messages:
            (size,) = struct.unpack(">i", self._receive(4))
            answer = self._receive(size)
            _, _, start = decode_response_header(answer, key, version)
            found.append(api(key).response_type().decode(answer, version, start)[0])
        return found

    def exchange(self, frame: bytes) -> bytes:
        """Sends a whole frame; returns the answer without its length."""
        self._socket.sendall(frame)
        (size,) = struct.unpack(">i", self._receive(4))
        return self._receive(size)

    def _receive(self, size: int) -> bytes:
        whole = bytearray(size)
        view = memoryview(whole)
        while view:
            got = self._socket.recv_into(view)
            if not got:
                raise WireError("the server closed the connection")
            view = view[got:]
        return bytes(whole)


def fresh_topic(port: int, name: str) -> None:
    """An empty topic of one partition in place of the one that has the name, if any."""
    delete_topic(port, name)
    create_topic(port, name)


def create_topic(port: int, name: str, partitions: int = 1, **config: str) -> None:
    """Creates a topic without retention and waits until each of its partitions can be used."""
    settings = {**UNLIMITED, **{key.replace("_", "."): value for key, value in config.items()}}
    topic = CreatableTopic(
        name=name,
        num_partitions=partitions,
        replication_factor=1,
        configs=[CreatableTopicConfig(name=key, value=value) for key, value in settings.items()],
    )
    request = CreateTopicsRequest(topics=[topic], timeout_ms=60_000)
    deadline = time.monotonic() + ANSWER_SECONDS_MAX
    while True:
        with Wire(port) as wire:
            answer = wire.call(_CREATE_TOPICS, 5, request).topics[0]
        if answer.error_code == ErrorCode.NONE:
            break
        # A topic of this name may still be on its way out.
        if answer.error_code != ErrorCode.TOPIC_ALREADY_EXISTS or time.monotonic() > deadline:
            raise WireError(f"CreateTopics: error {answer.error_code}, {answer.error_message}")
        time.sleep(0.05)
    wait_for_offsets(port, name, partitions, deadline)


def set_topic(port: int, name: str, **config: str) -> None:
    """Changes settings of a topic, and leaves the others."""
    changes = [AlterableConfig(name=key, config_operation=_SET, value=value) for key, value in config.items()]
    resource = AlterConfigsResource(resource_type=_OF_A_TOPIC, resource_name=name, configs=changes)
    with Wire(port) as wire:
        request = IncrementalAlterConfigsRequest(resources=[resource])
        answer = wire.call(_INCREMENTAL_ALTER_CONFIGS, 1, request).responses[0]
    if answer.error_code != ErrorCode.NONE:
        raise WireError(f"IncrementalAlterConfigs: error {answer.error_code}, {answer.error_message}")


def delete_topic(port: int, name: str) -> None:
    """Deletes a topic; one that does not exist is no error."""
    with Wire(port) as wire:
        answer = wire.call(_DELETE_TOPICS, 3, DeleteTopicsRequest(topic_names=[name], timeout_ms=60_000)).responses[0]
    if answer.error_code not in {ErrorCode.NONE, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}:
        raise WireError(f"DeleteTopics: error {answer.error_code}")


def wait_for_offsets(port: int, topic: str, partitions: int, deadline: float, offset: int | None = None) -> None:
    """Until every partition has a leader that says where it ends, which is ``offset`` if one is given.

    It asks for all partitions in each question: a server that opens them one by one as they are named has to do so.
    """
    while True:
        with contextlib.suppress(OSError, WireError):
            ends = end_offsets(port, topic, partitions)
            if ends is not None:
                if offset is not None and set(ends) != {offset}:
                    raise WireError(f"{topic} ends at {sorted(set(ends))[:5]} and not at {offset}")
                return
        if time.monotonic() > deadline:
            raise TimeoutError(f"{topic} with its {partitions} partitions did not come up")
        time.sleep(0.002)


def end_offsets(port: int, topic: str, partitions: int) -> list[int] | None:
    """The end of each partition, or nothing as long as one of them answers with an error."""
    asked = [ListOffsetsPartition(partition_index=number, timestamp=_LATEST) for number in range(partitions)]
    request = ListOffsetsRequest(replica_id=-1, topics=[ListOffsetsTopic(name=topic, partitions=asked)])
    with Wire(port) as wire:
        answered = wire.call(_LIST_OFFSETS, 5, request).topics[0].partitions
    if any(partition.error_code for partition in answered):
        return None
    return [partition.offset for partition in sorted(answered, key=lambda one: one.partition_index)]
