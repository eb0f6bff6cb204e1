"""How markers of transactions get to brokers: to this one by a call, to all others by requests over links."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from ottla.coordinators.journal import EndMarker
from ottla.handlers.calls.call import Services
from ottla.handlers.write_txn_markers import write_markers
from ottla.interbroker.links import BrokerLinks
from ottla.model import BrokerId, TopicPartition
from ottla.protocol.generated.write_txn_markers import WriteTxnMarkersRequest, WriteTxnMarkersResponse
from ottla.transactions.markers import Marked

#: With what the transaction's version is, which brokers of Kafka before 4.2 do not ask for.
_VERSION: Final = 2
_VERSION_MIN: Final = 1


class Markers:
    """Implements `MarkerWriter`."""

    def __init__(self, services: Services, links: BrokerLinks) -> None:
        self.broker_id = BrokerId(services.broker_id)
        self._services = services
        self._links = links

    def write_here(self, end: EndMarker, partitions: Sequence[TopicPartition], marked: Marked) -> None:
        self._services.markers.write_soon(end, partitions, marked)

    async def write(self, broker: BrokerId, request: WriteTxnMarkersRequest) -> WriteTxnMarkersResponse:
        services = self._services
        if broker == self.broker_id:
            return await write_markers(services, request)
        answer = await self._links.to(broker).call(
            request,
            _VERSION,
            timeout_ms=services.config.replication.request_timeout_ms,
            at_least=_VERSION_MIN,
        )
        assert isinstance(answer, WriteTxnMarkersResponse)
        return answer
