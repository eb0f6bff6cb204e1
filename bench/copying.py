"""One copy of a topic's only partition: ``python -m bench.copying mirror|plain SOURCE TARGET TOPIC RECORDS``.

Prints the seconds from where the copy knows its place to the last acknowledgement, and the seconds of processor time
that the process used meanwhile. The plain copy fetches and produces batches by the same client, as wide and with as
much on its way as the mirror, and sets nothing but their offset: it computes no checksum and keeps no pairs.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Coroutine
from typing import Any

from bench.python_clients import Stopwatch
from ottla.client import Consumer, TopicPartition
from ottla.client.admin.admin import Admin
from ottla.client.wire.connections import DATA
from ottla.mirror.flow import Flow
from ottla.mirror.partition import IN_FLIGHT_BYTES_MAX
from ottla.mirror.properties import parse_mirrors
from ottla.protocol.apis import ApiKey
from ottla.protocol.generated.produce import PartitionProduceData, ProduceRequest, ProduceResponse, TopicProduceData
from ottla.records.batch import iterate

#: Produce names topics by their names up to this version.
_BY_NAME_MAX = 12
_LOOK_SECONDS = 0.002
_OFFSET_BYTES = 8


def copy_of(topic: str) -> str:
    return f"A.{topic}"


async def _mirror(source: str, target: str, topic: str, records: int) -> None:
    properties = {
        "clusters": "A, B",
        "A.bootstrap.servers": source,
        "B.bootstrap.servers": target,
        "A->B.enabled": "true",
        "topics": topic,
        "replication.factor": "1",
        "offset-syncs.topic.replication.factor": "1",
        "checkpoints.topic.replication.factor": "1",
    }
    flow = Flow(parse_mirrors(properties).flows[0])
    running = asyncio.ensure_future(flow.run())
    tp = TopicPartition(topic, 0)

    async def copied(offset: int) -> None:
        while (tp not in flow.copies or flow.copies[tp].copied < offset) and not running.done():  # noqa: ASYNC110 - a copy calls nobody
            await asyncio.sleep(_LOOK_SECONDS)

    await copied(0)
    watch = Stopwatch()
    await copied(records)
    watch.end()
    running.cancel()
    await asyncio.wait([running])
    if flow.stopped or not running.cancelled():
        raise SystemExit(f"not copied: {flow.stopped or running.exception()}")


async def _plain(source: str, target: str, topic: str, records: int) -> None:
    tp, copy = TopicPartition(topic, 0), copy_of(topic)
    async with (
        Consumer(bootstrap_servers=source, auto_offset_reset="earliest") as reader,
        Admin(bootstrap_servers=target) as admin,
    ):
        await admin.create_topic(copy, 1, 1)
        await admin.cluster.topic(copy)
        leader = admin.cluster.metadata.leader(copy, 0)
        assert leader is not None
        connection = await admin.cluster.connections.to(leader.leader, DATA)
        version = connection.version(ApiKey.PRODUCE, at_most=_BY_NAME_MAX)
        timeout_ms = admin.cluster.settings.request_timeout_ms
        on_wire: dict[asyncio.Future[ProduceResponse], int] = {}
        reader.assign([tp])
        await reader.position(tp)
        watch, done = Stopwatch(), 0
        while done < records:
            fetched = await reader.poll_batches()
            assert fetched is not None
            for pos, header in iterate(fetched.records, fetched.begin, fetched.end):
                while sum(on_wire.values()) + header.size > IN_FLIGHT_BYTES_MAX and on_wire:
                    await _answered(on_wire)
                if not connection.sendable:
                    await connection.room(timeout_ms)
                batch = bytearray(fetched.records[pos : pos + header.size])
                batch[:_OFFSET_BYTES] = bytes(_OFFSET_BYTES)  # as producers must
                data = [
                    TopicProduceData(
                        name=copy, partition_data=[PartitionProduceData(index=0, records=memoryview(batch))]
                    )
                ]
                request = ProduceRequest(acks=-1, timeout_ms=timeout_ms, topic_data=data)
                on_wire[connection.send(request, ProduceResponse, version, timeout_ms)] = header.size
            done = fetched.next_position
        while on_wire:
            await _answered(on_wire)
        watch.end()


async def _answered(on_wire: dict[asyncio.Future[ProduceResponse], int]) -> None:
    """Waits for the oldest."""
    future = next(iter(on_wire))
    answer = await future
    del on_wire[future]
    told = answer.responses[0].partition_responses[0]
    if told.error_code:
        raise SystemExit(f"not taken: error {told.error_code}, {told.error_message}")


#: By the word of the command line.
PROGRAMS: dict[str, Callable[[str, str, str, int], Coroutine[Any, Any, None]]] = {"mirror": _mirror, "plain": _plain}

if __name__ == "__main__":
    way, source_port, target_port, name, count = sys.argv[1:]
    asyncio.run(PROGRAMS[way](f"127.0.0.1:{source_port}", f"127.0.0.1:{target_port}", name, int(count)))
