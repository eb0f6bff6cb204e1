"""What all fetchers of a broker have in common."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from ottla.config.live import LiveConfig
from ottla.config.slices import ReplicationConfig
from ottla.interbroker.links import AddressOf, BrokerLinks
from ottla.metadata.doubts import LeaderDoubts
from ottla.model import BrokerId
from ottla.ports import Ports
from ottla.replication.replicas import Replicas
from ottla.replication.throttles import ReplicationQuota


class Surroundings(NamedTuple):
    broker_id: BrokerId
    #: Of this broker's registration, as far as it knows that; -1 where it does not.
    broker_epoch: Callable[[], int]
    replicas: Replicas
    address_of: AddressOf
    #: For questions that are no fetches: they do not wait behind one that its leader keeps.
    questions: BrokerLinks
    ports: Ports
    #: Heard of how leaders are reached.
    doubts: LeaderDoubts
    live: LiveConfig
    #: Of what throttled replicas fetch here.
    quota: ReplicationQuota

    @property
    def config(self) -> ReplicationConfig:
        return self.live.current.replication

    def now_ms(self) -> int:
        return self.ports.clock.monotonic_ms()
