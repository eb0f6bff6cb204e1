"""The controller hears of each change of replicas, in order and though it fails at first."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from ottla.broker.replica_reports import ReplicaReports
from ottla.model import BrokerId, ErrorCode, TopicPartition
from ottla.ports.memory import memory_ports

A, B, C = (TopicPartition("t", number) for number in range(3))
OURS = BrokerId(7)


class Hearing:
    """Stands where the controller does: `outcomes` are of its next answers, and then it takes everything."""

    def __init__(self, *outcomes: BaseException | ErrorCode) -> None:
        self.outcomes = list(outcomes)
        self.heard: list[tuple[str, list[TopicPartition]]] = []
        self.asked = 0

    async def _hear(self, what: str, partitions: Sequence[TopicPartition]) -> ErrorCode:
        self.asked += 1
        await asyncio.sleep(0)
        outcome = self.outcomes.pop(0) if self.outcomes else ErrorCode.NONE
        if isinstance(outcome, BaseException):
            raise outcome
        if outcome == ErrorCode.NONE:
            self.heard.append((what, list(partitions)))
        return outcome

    async def replicas_failed(self, broker_id: BrokerId, partitions: Sequence[TopicPartition]) -> ErrorCode:
        assert broker_id == OURS
        return await self._hear("failed", partitions)

    async def replicas_recovered(self, broker_id: BrokerId, partitions: Sequence[TopicPartition]) -> ErrorCode:
        assert broker_id == OURS
        return await self._hear("made", partitions)


def hear(hearing: Hearing, *calls: tuple[str, Sequence[TopicPartition]], seconds: float = 100) -> list[Any]:
    loop = memory_ports(seed=1, shuffle=False).loop
    reports = ReplicaReports(hearing, OURS, lambda _: None)  # type: ignore[arg-type]

    async def work() -> None:
        for what, partitions in calls:
            getattr(reports, f"replicas_{what}")(partitions)
            await asyncio.sleep(0)
        await asyncio.sleep(seconds)
        reports.close()
        reports.replicas_failed([C])
        await asyncio.sleep(0)
        assert asyncio.all_tasks() == {asyncio.current_task()}

    loop.run_until_complete(work())
    return hearing.heard


def test_reports_come_in_their_order() -> None:
    assert hear(Hearing(), ("failed", [A, B]), ("made", [A]), ("failed", [C])) == [
        ("failed", [A, B]),
        ("made", [A]),
        ("failed", [C]),
    ]


def test_a_report_that_failed_comes_again_with_those_that_came_meanwhile() -> None:
    hearing = Hearing(ValueError("planted"), asyncio.CancelledError(), ErrorCode.REQUEST_TIMED_OUT)
    assert hear(hearing, ("failed", [A]), ("failed", [B]), ("made", [C]), ("made", [C])) == [
        ("failed", [A, B]),
        ("made", [C]),
    ]
    assert hearing.asked == 5


def test_the_pauses_grow_until_the_stop() -> None:
    hearing = Hearing(*[ValueError("planted") for _ in range(1000)])
    assert hear(hearing, ("failed", [A]), seconds=3600) == []
    assert 50 < hearing.asked < 75
