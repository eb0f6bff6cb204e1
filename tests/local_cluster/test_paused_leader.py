"""A leader that was paused while another was elected, and wakes with a request in its socket: it acknowledges nothing
with acks=all, since that would not count."""

from __future__ import annotations

import asyncio

import ottla.testing
from ottla.client.sync import Consumer
from ottla.client.wire.dialling import connect
from ottla.client.wire.world import real_world
from ottla.model import ErrorCode
from ottla.protocol.generated.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from ottla.records.record import Record, encode_batch
from ottla.testing.processes import Cluster

TOPIC = "paused"


def request(value: bytes, timeout_ms: int) -> ProduceRequest:
    batch = encode_batch([Record(0, 1_000, None, value)])
    data = [TopicProduceData(name=TOPIC, partition_data=[PartitionProduceData(index=0, records=batch)])]
    return ProduceRequest(acks=-1, timeout_ms=timeout_ms, topic_data=data)


async def ask(cluster: Cluster, leader: int) -> tuple[int, int]:
    """What the leader answers before its pause, and what it answers when it wakes."""
    host, _, port = cluster.addresses[leader].rpartition(":")
    connection = await connect(real_world(), host, int(port), client_id="asking", setup_timeout_ms=60_000)
    before = await connection.ask(request(b"before", 60_000), ProduceResponse, timeout_ms=120_000, at_most=9)
    await asyncio.to_thread(cluster.pause, leader)
    asleep = request(b"asleep", 10_000)
    asked = asyncio.ensure_future(connection.ask(asleep, ProduceResponse, timeout_ms=120_000, at_most=9))
    others = [broker for broker in cluster.addresses if broker != leader]

    def is_replaced() -> bool:
        """As each of the others says: the new leader has taken its role then, and fetches from the old one no more."""
        return all(cluster.leader(TOPIC, asked=[other]) not in (-1, leader) for other in others)

    await asyncio.to_thread(cluster.until, is_replaced)
    await asyncio.to_thread(cluster.resume, leader)
    behind = await asked
    connection.abandon(RuntimeError("done"))  # type: ignore[arg-type]
    return (
        before.responses[0].partition_responses[0].error_code,
        behind.responses[0].partition_responses[0].error_code,
    )


def test_what_a_paused_leader_answers_when_it_wakes_is_true() -> None:
    with ottla.testing.cluster(3) as cluster:
        cluster.create_topic(TOPIC)
        before, behind = asyncio.run(ask(cluster, cluster.until_led(TOPIC)))
        assert before == ErrorCode.NONE
        assert behind in (
            ErrorCode.NOT_LEADER_OR_FOLLOWER,
            ErrorCode.REQUEST_TIMED_OUT,
            ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
        )
        cluster.until_in_sync(TOPIC)
        with Consumer(bootstrap_servers=cluster.bootstrap, auto_offset_reset="earliest") as consumer:
            consumer.assign([(TOPIC, 0)])
            (record,) = consumer.poll(timeout_ms=60_000)
            assert record.value == b"before"
            assert consumer.end_offsets([(TOPIC, 0)]) == {(TOPIC, 0): 1}
