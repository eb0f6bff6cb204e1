"""One request on its way through a handler: who sent it, in which version, and the broker's parts to serve it with."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol

from ottla.config import Config
from ottla.config.live import LiveConfig
from ottla.controller.announcing.announced import AnnouncedBroker
from ottla.controller.interface import Controller
from ottla.handlers.calls.checks import Checks
from ottla.handlers.calls.request_metrics import RequestMetrics
from ottla.handlers.calls.turns import Turns
from ottla.handlers.on_demand.groups import GroupsOnDemand
from ottla.handlers.on_demand.internal_topics import InternalTopics
from ottla.handlers.on_demand.topics import TopicsOnDemand
from ottla.handlers.on_demand.transactions import TransactionsOnDemand
from ottla.handlers.transactions.markers import TransactionMarkers
from ottla.handlers.transactions.questions import TransactionQuestions
from ottla.interbroker.links import BrokerLinks
from ottla.metadata import MetadataCache
from ottla.metadata.features import FinalizedFeatures
from ottla.model import BrokerId, TopicId
from ottla.ports import Clock, Workers
from ottla.replication.journals import Journals
from ottla.replication.replicas import Replicas
from ottla.replication.round import Round
from ottla.replication.writes import Writes
from ottla.security.authorizer import CLUSTER_NAME, Authorizer, Operation, Resource, authorized_operations
from ottla.security.policy import Policy
from ottla.security.principal import Principal
from ottla.security.quotas import Quotas, Use

if TYPE_CHECKING:
    from ottla.groups.coordinator import GroupCoordinator
    from ottla.handlers.on_demand.producer_ids import ProducerIds
    from ottla.transactions.coordinator import TransactionCoordinator


class OwnController(Controller, Protocol):
    """The controller in this process."""

    @property
    def active(self) -> bool:
        """Whether it decides: one broker's does. The others answer NOT_CONTROLLER."""
        ...

    def topic_name(self, topic_id: TopicId) -> str | None:
        """As it knows the cluster, which this broker itself may hear of later."""
        ...

    def broker_epoch(self, broker: BrokerId) -> int | None:
        """Of its registration, as the controller knows it; None where the broker does not live."""
        ...


class Services(NamedTuple):
    """The broker's parts, as handlers use them."""

    broker_id: int
    live: LiveConfig
    clock: Clock
    workers: Workers
    metadata: MetadataCache
    features: FinalizedFeatures
    replicas: Replicas
    #: The active one, wherever it is.
    controller: Controller
    #: The one here, for requests that other brokers send to it.
    own_controller: OwnController
    #: This broker, for requests that other brokers' controllers send to it.
    announced: AnnouncedBroker
    authorizer: Authorizer
    quotas: Quotas
    policy: Policy
    producer_ids: ProducerIds
    groups_on_demand: GroupsOnDemand
    transactions_on_demand: TransactionsOnDemand
    internal_topics: InternalTopics
    topics_on_demand: TopicsOnDemand
    journals: Journals
    writes: Writes
    round: Round
    checks: Checks
    metrics: RequestMetrics
    turns: Turns
    questions: TransactionQuestions
    markers: TransactionMarkers
    #: To other brokers, for what transactions ask of them.
    transaction_links: BrokerLinks

    @property
    def config(self) -> Config:
        return self.live.current

    @property
    def groups(self) -> GroupCoordinator:
        return self.groups_on_demand.get()

    @property
    def transactions(self) -> TransactionCoordinator:
        return self.transactions_on_demand.get()


class Call(NamedTuple):
    services: Services
    version: int
    correlation_id: int
    client_id: str | None
    principal: Principal
    host: str
    #: The name of the listener: a client learns the endpoints of the listener that it came by.
    listener: str
    now_ms: int
    #: By which connections are told apart, and nothing more; None where it came by none.
    connection: object = None

    def allowed(self, operation: Operation, resource: Resource, name: str) -> bool:
        authorizer = self.services.authorizer
        return authorizer.allows_all or authorizer.allowed(self.principal, self.host, operation, resource, name)

    def allowed_on_cluster(self, operation: Operation) -> bool:
        return self.allowed(operation, Resource.CLUSTER, CLUSTER_NAME)

    def allowed_on_topic(self, operation: Operation, topic: str) -> bool:
        return self.allowed(operation, Resource.TOPIC, topic)

    def authorized_operations(self, resource: Resource, name: str) -> int:
        return authorized_operations(self.services.authorizer, self.principal, self.host, resource, name)

    def throttle_ms(self, use: Use = Use.REQUEST_TIME, amount: float = 0.0) -> int:
        """How long the client is to hold back after this request: for its time, and for what else it used."""
        quotas = self.services.quotas
        if quotas.unlimited:
            return 0
        held_ms = quotas.throttle_ms(self.principal, self.client_id, Use.REQUEST_TIME, 0.0, self.now_ms)
        if use is Use.REQUEST_TIME:
            return held_ms
        return max(held_ms, quotas.throttle_ms(self.principal, self.client_id, use, amount, self.now_ms))
