"""How a controller in this process reaches the brokers: its own by a call, all others by requests."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ottla.broker.announcements import BrokerAnnouncements
from ottla.config.slices import ServerConfig
from ottla.controller.announcing.in_process import InProcessReceiver
from ottla.controller.announcing.origin import Origin
from ottla.controller.announcing.receiver import Receiver
from ottla.controller.controller import ClusterController
from ottla.metadata import BrokerEndpoints
from ottla.model import BrokerId
from ottla.ports import Ports

if TYPE_CHECKING:
    from ottla.interbroker.links import BrokerAddress, BrokerLinks


class BrokerReach:
    def __init__(
        self,
        broker_id: BrokerId,
        server: ServerConfig,
        announced: BrokerAnnouncements,
        ports: Ports,
        answer_ms_max: int,
    ) -> None:
        self._broker_id = broker_id
        self._server = server
        self._announced = announced
        self._ports = ports
        #: How long a broker may take over an announcement.
        self._answer_ms_max = answer_ms_max
        #: One link a broker, which nothing else is sent on. None while this broker has announced to no other.
        self._links: BrokerLinks | None = None
        #: As the present controller knows them.
        self._brokers: dict[BrokerId, BrokerEndpoints] = {}

    def receiver(self, controller: ClusterController, broker: BrokerEndpoints) -> Receiver:
        """Of one registration of a broker, under one epoch of the controller."""
        origin = Origin(self._broker_id, controller.context.controller_epoch, broker.epoch)
        if broker.id == self._broker_id:
            return InProcessReceiver(self._announced, origin, self._announced.make_logs)
        # A broker that is alone starts without what it takes to send requests.
        from ottla.controller.announcing.remote import RemoteReceiver
        from ottla.interbroker.links import BrokerLinks

        if self._links is None:
            self._links = BrokerLinks(self._address_of, self._ports, f"broker-{self._broker_id}-controller")
        self._brokers[broker.id] = broker
        listener = self._server.inter_broker_listener
        link, now_ms = self._links.to(broker.id), self._ports.clock.monotonic_ms
        return RemoteReceiver(link, origin, listener, now_ms, self._answer_ms_max)

    def _address_of(self, broker: BrokerId) -> BrokerAddress | None:
        """On the controllers' listener where the broker has one, else on the one that brokers use among themselves."""
        from ottla.interbroker.links import BrokerAddress

        found = self._brokers.get(broker)
        if found is None:
            return None
        endpoint = found.endpoint(self._server.controller_listener) or found.endpoint(
            self._server.inter_broker_listener
        )
        return None if endpoint is None else BrokerAddress(endpoint.host, endpoint.port, found.epoch)

    def close(self) -> None:
        if self._links is not None:
            self._links.close()
