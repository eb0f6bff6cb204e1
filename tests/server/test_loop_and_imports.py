"""The loop imports nothing while it serves: what an API needs is brought by a worker when it is first asked for."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.server.conftest import BrokerThread

from ottla.handlers.calls import loading
from ottla.handlers.routes import ROUTES
from ottla.protocol.apis import api
from ottla.protocol.generated.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from ottla.protocol.generated.find_coordinator import FindCoordinatorRequest
from ottla.protocol.header import RequestHeader, encode_request
from ottla.protocol.message import Message

REPOSITORY = Path(__file__).parents[2]
#: The first that is asked: its topic's leader makes a group coordinator.
COORDINATOR = FindCoordinatorRequest(key_type=0, coordinator_keys=["group"])
API_VERSIONS = 18
#: Ends the broker's part in its cluster.
CONTROLLED_SHUTDOWN = 7
#: A tenth of a millisecond each.
SHORT = {"ottla.config.definitions.topic", "ottla.broker.transaction_markers", "encodings.utf_16_le"}
WITH_EXPRESSION = ConsumerGroupHeartbeatRequest(
    group_id="group", member_id="member", member_epoch=0, rebalance_timeout_ms=1000, subscribed_topic_regex="a.*b"
)


def frame(message: Message) -> str:
    version = ROUTES[message.API_KEY].version_max
    header = RequestHeader(api_key=message.API_KEY, api_version=version, correlation_id=1, client_id="test")
    return encode_request(header, message).hex()


def test_no_api_has_the_loop_import_anything(tmp_path: Path) -> None:
    messages = [COORDINATOR]
    messages += [api(key).request_type()() for key in ROUTES if key != CONTROLLED_SHUTDOWN]
    messages += [WITH_EXPRESSION]
    ended = subprocess.run(
        [sys.executable, "-m", "tests.server.watched_imports", str(tmp_path)],
        input="\n".join(map(frame, messages)),
        capture_output=True,
        text=True,
        cwd=REPOSITORY,
        check=False,
    )
    asked = [line.split() for line in ended.stdout.splitlines()]
    assert len(asked) == len(messages), ended.stderr
    assert [line for line in asked if not SHORT.issuperset(line[2:])] == []
    assert sum(line[1] == "answered" for line in asked) > len(ROUTES) * 3 // 4


def test_what_every_client_asks_first_waits_for_no_worker(
    make_broker: Callable[..., BrokerThread], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Behind a crowd a worker that imports has the interpreter for moments only: the first client waited up to 13 s."""
    monkeypatch.setattr(loading, "_LOADED", set())
    with make_broker():
        assert loading.is_loaded(API_VERSIONS)
