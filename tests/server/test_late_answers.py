"""Answers that are known only after their handler has ended: a long one is encoded in steps, as any other is."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from bench.wire import Wire
from tests.server.conftest import BrokerThread

from ottla.handlers import consumer_group_describe
from ottla.handlers.calls.call import Call
from ottla.handlers.calls.later import Later
from ottla.protocol.generated.consumer_group_describe import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
    DescribedGroup,
)
from ottla.server import dispatch
from ottla.steps import Steps

DESCRIBE = 69
MANY = 20_000


def late(call: Call, request: ConsumerGroupDescribeRequest) -> Later:
    """Known at once where the request names a group, and otherwise in one of the next turns."""
    answer = Later()
    response: object = ConsumerGroupDescribeResponse(groups=[DescribedGroup(group_id="g")] * MANY)
    if request.include_authorized_operations:
        response = made_in_steps(response)
    if request.group_ids:
        answer.set(response)
    else:
        asyncio.get_running_loop().call_later(0.001, answer.set, response)
    return answer


def late_in_steps(call: Call, request: ConsumerGroupDescribeRequest) -> Steps[Later]:
    yield
    return late(call, request)


def made_in_steps(response: object) -> Steps[object]:
    yield
    return response


@pytest.mark.parametrize("group_ids", [["at once"], []], ids=["at-once", "later"])
@pytest.mark.parametrize(
    ("handle", "made"),
    [(late_in_steps, False), (late_in_steps, True), (late, True)],
    ids=["handled-in-steps", "both", "made-in-steps"],
)
def test_a_long_answer_that_comes_late_is_encoded_in_steps(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, group_ids: list[str], handle: Any, made: bool
) -> None:
    encoded_whole: list[int] = []
    encode = dispatch.encode_response

    def noted(key: int, *rest: Any) -> bytes:
        encoded_whole.append(key)
        return encode(key, *rest)

    monkeypatch.setattr(consumer_group_describe, "handle", handle)
    monkeypatch.setattr(dispatch, "encode_response", noted)
    with BrokerThread(str(tmp_path)) as running, Wire(running.port) as wire:
        for _ in range(2):
            request = ConsumerGroupDescribeRequest(group_ids=group_ids, include_authorized_operations=made)
            answer = wire.call(DESCRIBE, 1, request)
            assert len(answer.groups) == MANY
    assert DESCRIBE not in encoded_whole
