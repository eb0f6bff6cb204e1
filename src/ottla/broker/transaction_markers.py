"""How markers of transactions get to brokers: to this one by a call, to all others by requests over links."""

from __future__ import annotations

from ottla.handlers.calls.call import Services
from ottla.handlers.write_txn_markers import write_markers
from ottla.model import BrokerId
from ottla.protocol.generated.write_txn_markers import WriteTxnMarkersRequest, WriteTxnMarkersResponse

#: With what the transaction's version is, which brokers of Kafka before 4.2 do not ask for.
_VERSION = 2
_VERSION_MIN = 1


class Markers:
    """Implements `MarkerWriter`."""

    def __init__(self, services: Services) -> None:
        self._services = services

    async def write(self, broker: BrokerId, request: WriteTxnMarkersRequest) -> WriteTxnMarkersResponse:
        services = self._services
        if broker == services.broker_id:
            return await write_markers(services, request)
        answer = await services.transaction_links.to(broker).call(
            request,
            _VERSION,
            timeout_ms=services.config.replication.request_timeout_ms,
            at_least=_VERSION_MIN,
        )
        assert isinstance(answer, WriteTxnMarkersResponse)
        return answer
