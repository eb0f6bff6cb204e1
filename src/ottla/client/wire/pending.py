"""A request that waits for its answer, and how the answer is read."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from ottla.model import ErrorCode
from ottla.protocol.apis import ApiKey
from ottla.protocol.fields import INT16
from ottla.protocol.header import decode_response_header
from ottla.protocol.message import Message


class PendingRequest:
    """A request that waits for its answer."""

    __slots__ = ("answer_to", "api_key", "correlation_id", "deadline", "response_type", "version")

    def __init__(
        self,
        api_key: int,
        version: int,
        correlation_id: int,
        response_type: type[Message] | None,
        answer_to: asyncio.Future[Any] | Callable[[bytes | memoryview], None],
        deadline: float,
    ) -> None:
        self.api_key = api_key
        self.version = version
        self.correlation_id = correlation_id
        self.response_type = response_type
        #: Gets the decoded answer; what is called instead gets the frame as it was received.
        self.answer_to = answer_to
        #: In the loop's own time.
        self.deadline = deadline


def decoded(frame: bytes | memoryview, pending: PendingRequest) -> Message:
    """The answer in a frame; raises DecodeError."""
    _, _, pos = decode_response_header(frame, pending.api_key, pending.version)
    version = pending.version
    if pending.api_key == ApiKey.API_VERSIONS and len(frame) >= pos + 2:
        (error,) = INT16.unpack_from(frame, pos)
        if error == ErrorCode.UNSUPPORTED_VERSION:
            version = 0  # a broker that does not know the version answers in the one that all can read
    assert pending.response_type is not None
    answer, _ = pending.response_type.decode(frame, version, pos)
    return answer
