"""A producer's id is to be had from any broker, and not every broker has one to give."""

from __future__ import annotations

from typing import Any

import pytest
from tests.client.proxy import Action, Pass, Proxy, Reply, Request
from tests.client.reading import read_all

from ottla.client.producing.producer import Producer
from ottla.model import ErrorCode
from ottla.protocol.apis import ApiKey
from ottla.protocol.generated.init_producer_id import InitProducerIdResponse
from ottla.protocol.generated.metadata import MetadataResponseBroker

#: No broker of the tests has this id: the second proxy is it.
OTHER = 77


@pytest.mark.timeout(120)
@pytest.mark.parametrize("error", [ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.NOT_CONTROLLER])
async def test_a_broker_without_ids_is_not_asked_again_while_there_is_another(
    bootstrap: str, topic: str, error: ErrorCode
) -> None:
    """It may be cut off from the controller, and lead the partition all the same."""
    addresses: list[tuple[str, int]] = []

    def told(answer: Any) -> None:
        (first,) = answer.brokers
        (first.host, first.port), (host, port) = addresses
        answer.brokers.append(MetadataResponseBroker(node_id=OTHER, host=host, port=port))

    def rule(gives_ids: bool) -> Any:
        def act(one: Request) -> Action:
            if one.key == ApiKey.METADATA:
                return Pass(told)
            if one.key == ApiKey.INIT_PRODUCER_ID and not gives_ids:
                return Reply(InitProducerIdResponse(error_code=error))
            return Pass()

        return act

    async with Proxy(bootstrap, rule(gives_ids=False)) as cut_off, Proxy(bootstrap, rule(gives_ids=True)) as other:
        addresses += [("127.0.0.1", cut_off.port), ("127.0.0.1", other.port)]
        async with Producer(bootstrap_servers=cut_off.bootstrap, delivery_timeout_ms=60_000) as producer:
            await producer.send_and_wait(topic, b"x")
        assert cut_off.count(ApiKey.INIT_PRODUCER_ID) >= 1
        assert other.count(ApiKey.INIT_PRODUCER_ID) == 1
    assert [record.value for record in await read_all(bootstrap, topic)] == [b"x"]
