"""The seeds' reordering: with more than one request in flight, a retried one lands behind its successor.

"First send message 1, then message 2. The server answers message 1 with a fault and takes message 2; when message 1 is
then sent again, the messages are in the wrong order." Its cures: at most one request in flight, or idempotence.
"""

from __future__ import annotations

from typing import Any

import pytest
from tests.client.proxy import Action, Cut, Pass, Proxy, Reply, Request, Rule, produce_refusal
from tests.client.reading import values_of

from ottla.client.producing.producer import Producer
from ottla.model import ErrorCode
from ottla.protocol.apis import ApiKey


def first_attempt_fails(proxy: Proxy, how: str, *, warm: bool) -> Rule:
    def rule(request: Request) -> Action:
        if request.key == ApiKey.PRODUCE and proxy.count(ApiKey.PRODUCE) == (2 if warm else 1):
            if how == "cut":
                return Cut()
            return Reply(produce_refusal(request, ErrorCode.NOT_ENOUGH_REPLICAS))
        return Pass()

    return rule


async def order_in_the_log(
    bootstrap: str, topic: str, how: str = "refusal", *, warm: bool = True, **settings: Any
) -> list[bytes]:
    """Sends two batches, of which the first one's first attempt fails; `warm`: to a broker that knows the producer."""
    async with Proxy(bootstrap) as proxy:
        proxy.rule = first_attempt_fails(proxy, how, warm=warm)
        # A batch.size of 0 makes each record a batch.
        async with Producer(bootstrap_servers=proxy.bootstrap, batch_size=0, linger_ms=0, **settings) as producer:
            await producer.partitions_for(topic)
            if warm:
                await producer.send_and_wait(topic, b"warm")
            first = await producer.send(topic, b"first")
            second = await producer.send(topic, b"second")
            await first
            await second
    return [value for value in await values_of(bootstrap, topic) if value != b"warm"]


async def test_a_retry_overtaken_by_its_successor_without_idempotence(bootstrap: str, topic: str) -> None:
    order = await order_in_the_log(bootstrap, topic, enable_idempotence=False, max_in_flight_requests_per_connection=5)
    assert order == [b"second", b"first"]


async def test_one_request_in_flight_keeps_the_order(bootstrap: str, topic: str) -> None:
    order = await order_in_the_log(bootstrap, topic, enable_idempotence=False, max_in_flight_requests_per_connection=1)
    assert order == [b"first", b"second"]


@pytest.mark.parametrize("warm", [True, False])
@pytest.mark.parametrize("how", ["refusal", "cut"])
async def test_idempotence_keeps_the_order_with_five_in_flight(
    bootstrap: str, topic: str, how: str, warm: bool
) -> None:
    order = await order_in_the_log(
        bootstrap, topic, how, warm=warm, enable_idempotence=True, max_in_flight_requests_per_connection=5
    )
    assert order == [b"first", b"second"]


async def test_both_requests_were_in_flight_together(bootstrap: str, topic: str) -> None:
    """What the tests above rest on: the second request does not wait for the first one's answer."""
    async with Proxy(bootstrap) as proxy:
        produced: list[bytes] = []

        def rule(request: Request) -> Action:
            if request.key == ApiKey.PRODUCE:
                produced.append(request.frame)
            return Pass()

        proxy.rule = rule
        async with Producer(bootstrap_servers=proxy.bootstrap, batch_size=0, linger_ms=0) as producer:
            await producer.partitions_for(topic)
            await producer.send_and_wait(topic, b"warm")
            deliveries = [await producer.send(topic, b"%d" % n) for n in range(5)]
            assert not any(delivery.done() for delivery in deliveries)
            await producer.flush()
            assert [(await delivery).offset for delivery in deliveries] == [1, 2, 3, 4, 5]
    assert len(produced) == 6
