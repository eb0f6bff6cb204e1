"""Long frames: they are not copied where a copy takes long, and wait where there is no room for their answers."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from bench.wire import Wire
from tests.handlers.groups import find, group_broker
from tests.server.conftest import BrokerThread

from ottla.groups.classic.group import ClassicGroup
from ottla.handlers import join_group, list_groups
from ottla.model import ErrorCode
from ottla.protocol.generated.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from ottla.protocol.generated.list_groups import ListGroupsRequest, ListGroupsResponse
from ottla.protocol.header import PLAIN_FRAME_BYTES_MAX
from ottla.server.answer_memory import HELD_BYTES_MAX

JOIN_GROUP = 11
LONG = 6 << 20


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[BrokerThread]:
    with group_broker(tmp_path) as running:
        yield running


def test_a_long_join_is_not_copied_and_what_is_kept_of_it_is(
    broker: BrokerThread, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[object] = []
    handle = join_group.handle

    def noted(call: Any, request: JoinGroupRequest) -> Any:
        seen.extend(protocol.metadata for protocol in request.protocols)
        return handle(call, request)

    monkeypatch.setattr(join_group, "handle", noted)
    with broker.connect() as peer, Wire(broker.port) as wire:
        find(peer)
        request = JoinGroupRequest(
            group_id="long",
            session_timeout_ms=60_000,
            rebalance_timeout_ms=60_000,
            protocol_type="consumer",
            protocols=[JoinGroupRequestProtocol(name="range", metadata=b"m" * 1000)],
        )
        first = wire.call(JOIN_GROUP, 9, request)
        assert first.error_code == ErrorCode.MEMBER_ID_REQUIRED
        request.member_id = first.member_id
        # A tagged field of more than a megabyte is refused.
        request.unknown_tags = {1000 + number: bytes(LONG >> 4) for number in range(16)}
        assert wire.call(JOIN_GROUP, 9, request).error_code == ErrorCode.NONE
    assert isinstance(seen[-1], memoryview)

    def protocols(running: object) -> object:
        found = broker.broker.services.groups.shard_for("long")  # type: ignore[union-attr]
        group = found.groups["long"]  # type: ignore[union-attr]
        assert isinstance(group, ClassicGroup)
        (member,) = group.members.values()
        return member.protocols

    assert broker.look(protocols) == (("range", b"m" * 1000),)


def test_a_long_request_is_not_begun_while_there_is_no_room_for_its_answer(
    broker: BrokerThread, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun: list[int] = []
    handle = list_groups.handle

    def noted(call: Any, request: ListGroupsRequest) -> Any:
        begun.append(len(request.states_filter))
        return handle(call, request)

    monkeypatch.setattr(list_groups, "handle", noted)
    server = broker.broker._server
    assert server is not None
    memory = server.memory

    def fill(_: object) -> None:
        memory.bytes = HELD_BYTES_MAX

    def free(_: object) -> bool:
        memory.bytes = 0
        waits = bool(memory._waiting)
        memory._wake()
        return waits

    with broker.connect() as peer:
        broker.look(fill)
        peer.send(peer.frame(ListGroupsRequest(states_filter=["any"] * PLAIN_FRAME_BYTES_MAX), 5))
        while not broker.look(lambda _: bool(memory._waiting)):
            pass
        assert begun == []
        assert broker.look(free)
        assert peer.answer(ListGroupsResponse, 5)
        assert begun == [PLAIN_FRAME_BYTES_MAX]
