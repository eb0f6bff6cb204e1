"""Where brokers reach each other, as their metadata says it."""

from __future__ import annotations

from ottla.interbroker.links import AddressOf, BrokerAddress
from ottla.metadata import MetadataCache
from ottla.model import BrokerId


def addresses_on(listener: str, metadata: MetadataCache) -> AddressOf:
    """On the listener that brokers use among themselves."""

    def address_of(broker: BrokerId) -> BrokerAddress | None:
        known = metadata.brokers.get(broker)
        endpoint = None if known is None else known.endpoint(listener)
        return None if known is None or endpoint is None else BrokerAddress(endpoint.host, endpoint.port, known.epoch)

    return address_of
