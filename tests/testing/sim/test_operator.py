"""What an operator finds in the end: a topic whose leader moves at that moment is looked at again, others are said."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from ottla.model import ErrorCode
from ottla.protocol.generated.metadata import (
    MetadataResponse,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from ottla.testing.sim.history import HistoryFault
from ottla.testing.sim.operator import OperatedTopic, Operator
from ottla.testing.sim.wire import Client, Unreachable


class Electing:
    """A broker that knows one topic, of which nobody leads a partition just now."""

    name = "electing"

    def __init__(self, error: ErrorCode) -> None:
        self._error = error

    async def leader_of(self, tp: Any) -> int:
        raise AssertionError(tp)

    def epoch_of(self, tp: Any) -> int:
        raise AssertionError(tp)

    def forget(self, tp: Any) -> None:
        raise AssertionError(tp)

    def broker(self, broker: int) -> Client:
        raise AssertionError(broker)

    async def ask(self, message: Any, version: int) -> Any:
        partition = MetadataResponsePartition(error_code=self._error, partition_index=0, leader_id=-1)
        return MetadataResponse(topics=[MetadataResponseTopic(name="x", partitions=[partition])])

    async def ask_leader(self, tp: Any, message: Any, version: int) -> Any:
        raise AssertionError(tp)


@pytest.mark.parametrize(
    ("error", "raised"),
    [(ErrorCode.LEADER_NOT_AVAILABLE, Unreachable), (ErrorCode.KAFKA_STORAGE_ERROR, HistoryFault)],
)
def test_an_election_is_waited_for_and_a_fault_is_none(error: ErrorCode, raised: type[Exception]) -> None:
    client = Electing(error)
    operator = Operator(client)
    operator.topics["x"] = OperatedTopic(1)
    with pytest.raises(raised, match="x is not served"):
        asyncio.run(operator.check(client))
