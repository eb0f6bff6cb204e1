"""What a topic holds, read from its beginning to its end."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from ottla.client.consuming.consumer import Consumer
from ottla.client.records import ConsumerRecord


async def eventually(check: Callable[[], Awaitable[bool]]) -> None:
    """Until something has come about: in a cluster, brokers hear of a change after it was answered."""
    while not await check():  # noqa: ASYNC110 - nothing tells when
        await asyncio.sleep(0.002)


async def read_all(bootstrap: str, topic: str, **settings: Any) -> list[ConsumerRecord]:
    """Every record that is there now, partition by partition as they come."""
    async with Consumer(bootstrap_servers=bootstrap, auto_offset_reset="earliest", **settings) as consumer:
        partitions = await consumer.partitions_for(topic)
        ends = await consumer.end_offsets(partitions)
        consumer.assign(partitions)
        records: list[ConsumerRecord] = []
        while any([await consumer.position(tp) < end for tp, end in ends.items()]):
            records += await consumer.poll()
        return records


async def values_of(bootstrap: str, topic: str, partition: int | None = None) -> list[bytes]:
    return [one.value for one in await read_all(bootstrap, topic) if partition in {None, one.partition}]
