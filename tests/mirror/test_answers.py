"""Answers of the target's brokers that come late, out of order, or not at all."""

from __future__ import annotations

import asyncio
from typing import Any

from ottla.mirror.flow import Flow
from ottla.model import TopicPartition
from ottla.protocol.generated.produce import ProduceResponse
from tests.mirror.flows import Clusters, contents, create, mirroring, produce, records_of, until


class SilentOnce:
    """The target's connections: the first batch of a copy reaches its broker, and is not answered.

    So it is where its leader stands still, and another one has the batch from it and takes what follows.
    """

    def __init__(self, flow: Flow) -> None:
        self._connections = flow._clients.copy_world.target.connections
        self._open = self._connections.open
        self._connections.open = self.open  # type: ignore[method-assign]
        self.unanswered: list[asyncio.Future[ProduceResponse]] = []

    def open(self, *place: Any) -> Any:
        connection = self._open(*place)
        return connection if connection is None or self.unanswered else _Silent(self, connection)


class _Silent:
    def __init__(self, connections: SilentOnce, connection: Any) -> None:
        self._connections = connections
        self._connection = connection

    def __getattr__(self, name: str) -> Any:
        return getattr(self._connection, name)

    def send(self, *request: Any) -> asyncio.Future[ProduceResponse]:
        answer: asyncio.Future[ProduceResponse] = self._connection.send(*request)
        if request[1] is not ProduceResponse:
            return answer
        never: asyncio.Future[ProduceResponse] = asyncio.get_running_loop().create_future()
        self._connections.unanswered.append(never)
        return never


async def test_a_leader_that_answers_while_the_one_before_it_is_silent_meets_no_stranger(
    clusters: Clusters,
) -> None:
    await create(clusters.source, "silent")
    tp = TopicPartition("silent", 0)
    async with mirroring(clusters, topics="silent") as flow:
        await until(lambda: tp in flow.copies and flow.copies[tp].copied == 0, "placed")
        target = SilentOnce(flow)
        await produce(clusters.source, "silent", [b"%0100d" % n for n in range(50)])
        await until(lambda: flow.copies[tp].end == 50 or flow.copies[tp].stopped, "copied on")
        assert flow.copies[tp].stopped is None
        assert len(target.unanswered) == 1
    original = await records_of(clusters.source, "silent")
    assert contents(await records_of(clusters.target, "A.silent")) == contents(original)
