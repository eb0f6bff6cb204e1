"""The controller's own broker, which is called and not asked: what its answers mean."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Sequence

from ottla.controller.announcing.announced import Refused
from ottla.controller.announcing.in_process import InProcessReceiver
from ottla.controller.announcing.origin import Origin
from ottla.controller.deciding.orders import ReplicaStop
from ottla.metadata import MetadataUpdate, PartitionState
from ottla.model import BrokerId, Epoch, ErrorCode, TopicPartition

ORIGIN = Origin(BrokerId(1), Epoch(7), 4321)
LATE, FULL = TopicPartition("t", 0), TopicPartition("t", 1)


class Answering:
    """A broker that knows a newer state of one partition, and cannot open the log of another."""

    def check(self, origin: Origin) -> ErrorCode:
        return ErrorCode.NONE

    async def take_roles(self, origin: Origin, states: Sequence[PartitionState]) -> Refused:
        return {LATE: ErrorCode.STALE_CONTROLLER_EPOCH, FULL: ErrorCode.KAFKA_STORAGE_ERROR}

    async def take_metadata(
        self,
        origin: Origin,
        update: MetadataUpdate,
        *,
        all_topics: Collection[str] | None = None,
        informs: bool = False,
    ) -> ErrorCode:
        return ErrorCode.NONE

    async def stop_replicas(self, origin: Origin, stops: Sequence[ReplicaStop]) -> Refused:
        return {}


def test_a_role_that_the_broker_knows_a_newer_state_of_has_not_failed() -> None:
    """The answer to its AlterPartition may be ahead of what was announced before: the replica serves."""

    async def make_logs(_: Sequence[PartitionState]) -> bool:
        return True

    failed = asyncio.run(InProcessReceiver(Answering(), ORIGIN, make_logs).on_leader_and_isr([]))
    assert failed == {FULL: ErrorCode.KAFKA_STORAGE_ERROR}
