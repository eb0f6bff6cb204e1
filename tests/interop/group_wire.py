"""Group requests word by word, and their answers as text that two brokers can be compared by.

What differs from run to run (member ids, topic ids, ports) is replaced by names, and epochs are counted from the first
that is seen. The sentences of error messages are left out, being a broker's own. Lists are sorted: Kafka keeps them in
hash tables.
"""

from __future__ import annotations

import re
import socket
import struct
import time
from collections.abc import Callable
from typing import Any

from ottla.model import ErrorCode
from ottla.protocol.apis import api
from ottla.protocol.generated.describe_groups import DescribeGroupsRequest
from ottla.protocol.generated.find_coordinator import FindCoordinatorRequest
from ottla.protocol.generated.metadata import MetadataRequest, MetadataRequestTopic
from ottla.protocol.header import RequestHeader, decode_response_header, encode_request
from ottla.protocol.message import Message, Structure
from tests.interop.clients import SECONDS_MAX

#: More than anyone is told to wait in a conversation.
WAIT_SECONDS_MAX = 60.0

_UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}|(?<=-)[A-Za-z0-9_-]{22}(?![\w-])")
#: Of no interest: quotas are another subject, and each broker's sentences are its own.
_LEFT_OUT = frozenset({"throttle_time_ms", "unknown_tags", "authorized_operations", "error_message"})


#: Kafka's groups of the newer protocol begin with 2, others might with 1.
_EPOCHS = frozenset({"member_epoch", "group_epoch", "assignment_epoch"})


class ConnectionEnded(Exception):
    """The broker closed the connection instead of answering."""


class Peer:
    """One connection. Answers come in the order of the requests."""

    def __init__(self, bootstrap: str, client_id: str) -> None:
        host, _, port = bootstrap.rpartition(":")
        self.client_id = client_id
        self._socket = socket.create_connection((host, int(port)), timeout=WAIT_SECONDS_MAX)
        self._correlation = 0
        self._asked: list[tuple[int, int]] = []

    def send(self, message: Message, version: int) -> None:
        self._correlation += 1
        key = message.API_KEY
        header = RequestHeader(
            api_key=key, api_version=version, correlation_id=self._correlation, client_id=self.client_id
        )
        self._asked.append((key, version))
        self._socket.sendall(encode_request(header, message))

    def send_raw(self, key: int, version: int, header_rest: bytes, body: bytes) -> None:
        """A request that no encoder would make; ``header_rest`` is what follows the correlation id."""
        self._correlation += 1
        frame = struct.pack(">hhi", key, version, self._correlation) + header_rest + body
        self._asked.append((key, version))
        self._socket.sendall(struct.pack(">i", len(frame)) + frame)

    def answer(self) -> Any:
        key, version = self._asked.pop(0)
        (size,) = struct.unpack(">i", self._receive(4))
        frame = self._receive(size)
        _, _, position = decode_response_header(frame, key, version)
        response, end = api(key).response_type().decode(frame, version, position)
        assert end == len(frame), f"{len(frame) - end} bytes behind an answer"
        return response

    def ask(self, message: Message, version: int) -> Any:
        self.send(message, version)
        return self.answer()

    def _receive(self, size: int) -> bytes:
        received = b""
        while len(received) < size:
            try:
                piece = self._socket.recv(size - len(received))
            except ConnectionResetError:
                piece = b""
            if not piece:
                raise ConnectionEnded
            received += piece
        return received

    def close(self) -> None:
        self._socket.close()


def wait_for_coordinator(peer: Peer, group: str) -> None:
    """The first question of all creates the offsets topic, and loading it takes a moment."""
    deadline = time.monotonic() + SECONDS_MAX
    look = DescribeGroupsRequest(groups=[group])
    while True:
        found = peer.ask(FindCoordinatorRequest(coordinator_keys=[group]), 4)
        if found.coordinators[0].error_code == 0 and peer.ask(look, 4).groups[0].error_code == 0:
            return
        assert time.monotonic() < deadline, found
        time.sleep(0.01)


class Conversation:
    """Several peers and one broker; ``lines`` is what was asked and answered."""

    def __init__(self, bootstrap: str, topic: str, run: str) -> None:
        self.bootstrap = bootstrap
        self.topic = topic
        self.group = f"group-{run}"
        self.lines: list[str] = []
        self._names = {self.group: "<group>", topic: "<topic>"}
        self._peers: dict[str, Peer] = {}
        self._epochs_from: int | None = None
        metadata = MetadataRequest(topics=[MetadataRequestTopic(name=topic)], allow_auto_topic_creation=False)
        wait_for_coordinator(self.peer("onlooker"), self.group)
        self.topic_id: bytes = self.peer("onlooker").ask(metadata, 12).topics[0].topic_id

    def peer(self, name: str) -> Peer:
        if name not in self._peers:
            self._peers[name] = Peer(self.bootstrap, name)
        return self._peers[name]

    def forget(self, name: str) -> None:
        """The next request of this peer goes over a new connection."""
        self._peers.pop(name).close()

    def close(self) -> None:
        for peer in self._peers.values():
            peer.close()

    def call(self, secret: str, name: str) -> str:
        """From now on ``secret`` stands as ``name`` in the text."""
        if secret:
            self._names.setdefault(secret, f"<{name}>")
        return secret

    # Asking

    def ask(self, peer: str, what: str, message: Message, version: int) -> Any:
        self.send(peer, message, version)
        return self.answer(peer, what)

    def send(self, peer: str, message: Message, version: int) -> None:
        self.peer(peer).send(message, version)

    def answer(self, peer: str, what: str) -> Any:
        try:
            response = self.peer(peer).answer()
        except ConnectionEnded:
            self.forget(peer)
            self.lines.append(f"{peer}, {what}: the connection is closed")
            return None
        except TimeoutError:
            said = "\n".join(self.lines)
            raise AssertionError(f"{peer} waits for an answer: {what}\n{said}") from None
        # A new member's id is told before the answer is written down.
        told = getattr(response, "member_id", None)
        if told:
            self.call(told, f"{peer}'s id" if f"<{peer}'s id>" not in self._names.values() else f"{peer}'s new id")
        self.lines.append(f"{peer}, {what}: {self._written(response)}")
        return response

    def repeat_until(
        self, peer: str, what: str, message: Message, version: int, condition: Callable[[Any], bool]
    ) -> Any:
        """Asks the same until the answer is as wanted; only that one is written down."""
        deadline = time.monotonic() + SECONDS_MAX
        while not condition(told := self.peer(peer).ask(message, version)):
            assert time.monotonic() < deadline, f"{what} never came: {told}\n" + "\n".join(self.lines)
            time.sleep(0.02)
        self.lines.append(f"{peer}, {what}: {self._written(told)}")
        return told

    def note(self, what: str) -> None:
        self.lines.append(what)

    def wait_until(self, what: str, condition: Callable[[Any], bool]) -> Any:
        """Until DescribeGroups says so of the classic group."""
        deadline = time.monotonic() + SECONDS_MAX
        while True:
            described = self.peer("onlooker").ask(DescribeGroupsRequest(groups=[self.group]), 4).groups[0]
            if condition(described):
                return described
            assert time.monotonic() < deadline, f"{what} never came: {described}\n" + "\n".join(self.lines)
            time.sleep(0.005)

    def wait_for_state(self, state: str, members: int) -> None:
        self.wait_until(state, lambda group: group.group_state == state and len(group.members) == members)

    # Writing down

    def _written(self, value: Any) -> str:
        if isinstance(value, Structure):
            fields = [
                f"{name}={self._field(name, getattr(value, name))}" for name in value.__slots__ if name not in _LEFT_OUT
            ]
            return f"({' '.join(fields)})"
        if isinstance(value, list):
            return "[" + ", ".join(sorted(map(self._written, value))) + "]"
        if isinstance(value, (bytes, bytearray, memoryview)):
            raw = bytes(value)
            return "<topic id>" if raw == self.topic_id and any(raw) else (raw.hex() or "''")
        return self._renamed(repr(value))

    def _field(self, name: str, value: Any) -> str:
        if name == "error_code":
            return ErrorCode(value).name
        if name in _EPOCHS and value > 0:
            if self._epochs_from is None:
                self._epochs_from = value
            return f"first+{value - self._epochs_from}"
        if name in {"port", "node_id"} and value >= 0:
            return "<ours>"
        return self._written(value)

    def _renamed(self, text: str) -> str:
        for secret in sorted(self._names, key=len, reverse=True):
            text = text.replace(secret, self._names[secret])
        return _UUID.sub("<uuid>", text)
