"""Reading over the wire: a reader that is refused because the leader has moved looks for it again."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from ottla.model import ErrorCode, TopicPartition
from ottla.protocol.generated.fetch import FetchableTopicResponse, FetchResponse, PartitionData
from ottla.protocol.generated.list_offsets import (
    ListOffsetsPartitionResponse,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from ottla.testing.sim.reader import ReadFault, read_all
from ottla.testing.sim.wire import Client

TP = TopicPartition("t", 0)


class Replaced:
    """A broker that leads a partition until its end has been asked for, or that never did."""

    name = "replaced"

    def __init__(self, *, answers_end: bool) -> None:
        self.answers_end = answers_end
        self.forgotten: list[TopicPartition] = []

    async def leader_of(self, tp: TopicPartition) -> int:
        return 1

    def epoch_of(self, tp: TopicPartition) -> int:
        return 4

    def forget(self, tp: TopicPartition) -> None:
        self.forgotten.append(tp)

    def broker(self, broker: int) -> Client:
        raise AssertionError("nobody asks for it")

    async def ask(self, message: Any, version: int) -> Any:
        raise AssertionError("nobody asks just anybody")

    async def ask_leader(self, tp: TopicPartition, message: Any, version: int) -> Any:
        refused = ErrorCode.NOT_LEADER_OR_FOLLOWER
        if type(message).__name__ == "FetchRequest":
            read = PartitionData(partition_index=0, error_code=refused)
            return FetchResponse(responses=[FetchableTopicResponse(topic="t", partitions=[read])])
        end = ListOffsetsPartitionResponse(error_code=ErrorCode.NONE if self.answers_end else refused, offset=5)
        return ListOffsetsResponse(topics=[ListOffsetsTopicResponse(name="t", partitions=[end])])


@pytest.mark.parametrize("answers_end", [False, True])
def test_a_leader_that_has_moved_is_looked_up_again(answers_end: bool) -> None:
    client = Replaced(answers_end=answers_end)
    with pytest.raises(ReadFault):
        asyncio.run(read_all(client, TP))
    assert client.forgotten == [TP]
