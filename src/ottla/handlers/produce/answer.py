"""Answers to Produce."""

from __future__ import annotations

from typing import NamedTuple

from ottla.protocol.hot.produce import encode_produce_response


class PartitionAnswer(NamedTuple):
    """What one partition's part of the answer says, in the wire's order."""

    partition: int
    error: int
    base_offset: int = -1
    append_time_ms: int = -1
    log_start_offset: int = -1
    record_errors: tuple[tuple[int, str | None], ...] = ()
    message: str | None = None


#: Name or id of a topic, and its partitions' answers.
TopicAnswer = tuple[str | bytes, list[PartitionAnswer]]


def encode_answer(version: int, correlation: int, topics: list[TopicAnswer], throttle_ms: int) -> bytes:
    """A whole frame."""
    return encode_produce_response(version, topics, throttle_ms, correlation_id=correlation)
