"""Where a producer's identity comes from: InitProducerId, asked of any broker until one gives an id."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from ottla.client.errors import ClientClosed, KafkaError, error_of
from ottla.client.producing.sequences import Identities, ProducerIdentity
from ottla.client.wire.backoff import Backoff
from ottla.client.wire.cluster import Cluster
from ottla.protocol.generated.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from ottla.records.batch import INT32_MAX


class IdentitySource:
    def __init__(
        self,
        identities: Identities,
        cluster: Cluster,
        backoff: Backoff,
        on_identity: Callable[[], None],
        on_refusal: Callable[[KafkaError], None],
    ) -> None:
        self._identities = identities
        self._cluster = cluster
        self._backoff = backoff
        self._on_identity = on_identity
        #: Called when there will be none: the producer cannot go on.
        self._on_refusal = on_refusal
        self._asking: asyncio.Task[None] | None = None
        #: Why there is none yet.
        self.fault: KafkaError | None = None

    def ready(self) -> bool:
        """Whether there is an identity; begins to ask for one where there is not."""
        if self._identities.current is not None:
            return True
        if self._asking is None:
            self._asking = asyncio.get_running_loop().create_task(self._ask())
        return False

    async def close(self) -> None:
        if self._asking is not None:
            self._asking.cancel()
            await asyncio.gather(self._asking, return_exceptions=True)

    async def _ask(self) -> None:
        request = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=INT32_MAX)
        failures = 0
        try:
            while True:
                try:
                    connection = await self._cluster.any_connection()
                    answer = await connection.ask(
                        request, InitProducerIdResponse, timeout_ms=self._cluster.settings.request_timeout_ms
                    )
                    if not answer.error_code:
                        self._identities.current = ProducerIdentity(answer.producer_id, answer.producer_epoch)
                        self.fault = None
                        return
                    self.fault = error_of(answer.error_code, about="the producer's id")
                    # It may be cut off from the controller, which gives out the ids: another one may have some.
                    self._cluster.knew_nobody(connection)
                except ClientClosed:
                    return
                except KafkaError as fault:
                    self.fault = fault
                if not self.fault.retriable:
                    self._on_refusal(self.fault)
                    return
                failures += 1
                await asyncio.sleep(self._backoff.pause_ms(failures) / 1000)
        finally:
            self._asking = None
            self._on_identity()
