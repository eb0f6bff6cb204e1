"""The parts of a broker, made in the order in which they need each other; nothing of them runs yet.

    directories ─▶ replicas ─▶ housekeeping, cleaning
                      │
                      ├─▶ what controllers announce ─▶ this broker's controller ─▶ membership ─▶ the controller as
                      │                                                                          handlers ask it
                      ├─▶ rounds: waiters' deadlines, writes, journals of coordinators
                      └─▶ in-sync sets, fetchers ─▶ standing aside
                                        all of these ─▶ services, which is what handlers have

`Broker` runs them, and ends them in its own order.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ottla.broker.announcements import BrokerAnnouncements
from ottla.broker.cleaning import Cleaning
from ottla.broker.controller_access import ControllerAccess
from ottla.broker.group_partitions import GroupPartitions, journal_settings
from ottla.broker.handing_over import HandingOver
from ottla.broker.housekeeping import Housekeeping
from ottla.broker.isr_requests import IsrRequests
from ottla.broker.membership import Member, Membership
from ottla.broker.memory import BrokerMemory
from ottla.broker.reaching import BrokerReach
from ottla.broker.replica_reports import ReplicaReports
from ottla.broker.standing_aside import StandingAside
from ottla.broker.transaction_partitions import TransactionJournalSettings, TransactionPartitions
from ottla.config import Config, validate_topic_configs
from ottla.config.live import LiveConfig
from ottla.controller.controller import ClusterController
from ottla.controller.deciding.rules import ControllerSettings
from ottla.coordination.providers import BrokersTree
from ottla.handlers.calls.call import Services
from ottla.handlers.calls.checks import Checks
from ottla.handlers.calls.request_metrics import RequestMetrics
from ottla.handlers.calls.turns import Turns
from ottla.handlers.on_demand.groups import GroupsOnDemand
from ottla.handlers.on_demand.internal_topics import InternalTopics
from ottla.handlers.on_demand.producer_ids import ProducerIds
from ottla.handlers.on_demand.topics import TopicsOnDemand
from ottla.handlers.on_demand.transactions import TransactionsOnDemand
from ottla.handlers.transactions.markers import TransactionMarkers
from ottla.handlers.transactions.questions import TransactionQuestions
from ottla.interbroker.addresses import addresses_on
from ottla.interbroker.links import BrokerLinks
from ottla.metadata import Endpoint, MetadataCache, MetadataUpdate
from ottla.metadata.features import FinalizedFeatures
from ottla.metrics import Registry
from ottla.model import BrokerId
from ottla.ports import Ports
from ottla.replication.deadlines import Deadlines
from ottla.replication.fetching.fetchers import open_fetchers
from ottla.replication.journals import Journals
from ottla.replication.replicas import Replicas
from ottla.replication.roles import RoleListener
from ottla.replication.round import Round
from ottla.replication.throttles import ReplicationQuota
from ottla.replication.waiters import Waiters
from ottla.replication.writes import Writes
from ottla.security.authorizer import Authorizer
from ottla.security.policy import Policy
from ottla.security.quotas import Quotas
from ottla.server.listeners import Server, limits_of
from ottla.storage.directories.directories import LogDirectories

if TYPE_CHECKING:
    from ottla.groups.coordinator import GroupCoordinator
    from ottla.transactions.coordinator import TransactionCoordinator


@dataclass(frozen=True, slots=True, kw_only=True)
class Ground:
    """What a start has taken and learnt before it makes the parts."""

    config: Config
    ports: Ports
    registry: Registry
    metadata: MetadataCache
    authorizer: Authorizer
    quotas: Quotas
    broker_id: BrokerId
    cluster_id: str
    endpoints: tuple[Endpoint, ...]
    directories: LogDirectories
    server: Server
    #: Opens another session with the tree.
    open_tree: Callable[[], Awaitable[BrokersTree]]
    #: Is called with the reason when the broker can go on no more.
    give_up: Callable[[str], None]


class BrokerParts:
    def __init__(self, ground: Ground, tree: BrokersTree) -> None:
        self._ground = ground
        config, ports, broker_id, metadata = ground.config, ground.ports, ground.broker_id, ground.metadata
        clock, workers = ports.clock, ports.workers
        self._live = live = LiveConfig(config)
        self.replicas = self._make_replicas()
        self.housekeeping = Housekeeping(self.replicas, workers, clock, live)
        self.cleaning = Cleaning(
            self.replicas, workers, clock, ports.disk, live, metadata, self.housekeeping.remove_later
        )
        self.announced = BrokerAnnouncements(
            broker_id, clock, live, metadata, self.replicas, self._take_settings, self._topic_overrides
        )
        announcing_ms_max = config.replication.controller_socket_timeout_ms
        self.reach = BrokerReach(broker_id, config.server, self.announced, ports, announcing_ms_max)
        #: This broker's own, whether it is the active one or not.
        self.own_controller = ClusterController(
            tree,
            clock,
            ports.entropy,
            lambda found: self.reach.receiver(self.own_controller, found),
            self._controller_settings(),
            BrokerMemory(metadata),
        )
        self.features = FinalizedFeatures()
        self.membership = Membership(
            self._member(), ports, self.announced, metadata, self.features, self.own_controller, ground.open_tree
        )
        self.controller = ControllerAccess(self.membership, clock, config.replication.request_timeout_ms)
        self.groups = GroupsOnDemand(lambda: _group_coordinator(live, metadata, ports))
        self.producer_ids = ProducerIds(self.controller, broker_id)
        address_of = addresses_on(config.server.inter_broker_listener, metadata)
        self.transaction_links = BrokerLinks(address_of, ports, f"broker-{broker_id}-transactions")
        # Of their own: a marker is answered when it is replicated, and questions must not wait for that.
        self.marker_links = BrokerLinks(address_of, ports, f"broker-{broker_id}-transaction-markers")
        metadata.listen(self._brokers_changed)
        self.transactions = TransactionsOnDemand(self._transaction_coordinator)
        self.deadlines = Deadlines(self.replicas.waiters, clock)
        self.writes = Writes(self.replicas, lambda leader: self.handing_over.found_no_room(leader))
        self.round = Round(self.writes, self.deadlines.settle, clock, ground.give_up)
        self.journals = Journals(
            self.replicas,
            self.round,
            self.writes,
            workers,
            clock,
            lambda: journal_settings(live.current.groups.offsets),
        )
        self.questions = TransactionQuestions(
            broker_id,
            metadata,
            clock,
            self.round,
            lambda: live.current.transactions,
            self.transactions.get,
            lambda: self.transaction_links,
        )
        self.transaction_journals = Journals(
            self.replicas,
            self.round,
            self.writes,
            workers,
            clock,
            TransactionJournalSettings(live),
        )
        self.markers = TransactionMarkers(
            self.replicas,
            self.writes,
            self.round,
            clock,
            self.groups,
            lambda: live.current.replication.request_timeout_ms,
        )
        self.reports = ReplicaReports(self.controller, broker_id, ground.give_up)
        self.handing_over = HandingOver(broker_id, self.replicas, self.controller, self.reports, metadata, clock)
        self.replicas.isr_changes.lag_ms_max = config.replication.lag_time_ms_max
        self.isr_requests = IsrRequests(broker_id, self.replicas, self.controller, metadata, clock)
        self.fetchers = open_fetchers(broker_id, self.replicas, ports, live, metadata)
        self.standing_aside = StandingAside(
            self.replicas,
            self.fetchers,
            metadata,
            clock,
            lambda: self.membership.tree,
            lambda: live.current.replication.fetch_wait_ms_max,
        )
        # A coordinator of another kind takes its place here.
        coordinated: list[RoleListener] = [
            GroupPartitions(self.groups, self.journals),
            TransactionPartitions(self.transactions, self.transaction_journals),
        ]
        self.replicas.open(self.reports, [*coordinated, self.fetchers])
        self.services = self._make_services()

    def _make_replicas(self) -> Replicas:
        ground, live = self._ground, self._live
        clock, replication = ground.ports.clock, ground.config.replication
        replicas = Replicas(
            ground.broker_id,
            ground.directories,
            Waiters(),
            ground.ports.workers,
            clock,
            lambda removal: self.housekeeping.remove_folder_later(removal),
        )
        replicas.moves.quota = ReplicationQuota(
            clock,
            lambda: live.current.replication.alter_log_dirs_bytes_per_second_max,
            replication.alter_log_dirs_quota_samples,
            1000 * replication.alter_log_dirs_quota_sample_seconds,
        )
        return replicas

    def _controller_settings(self) -> ControllerSettings:
        config = self._ground.config
        return ControllerSettings(
            broker_id=self._ground.broker_id,
            num_partitions=config.broker.num_partitions,
            default_replication_factor=config.broker.default_replication_factor,
            delete_topics=config.broker.delete_topics,
            unclean_leader_election=config.log.unclean_leader_election,
            auto_leader_rebalance=config.replication.auto_leader_rebalance,
            leader_imbalance_check_interval_s=config.replication.leader_imbalance_check_interval_seconds,
            leader_imbalance_percentage=config.replication.leader_imbalance_percentage,
            check_topic_configs=lambda overrides: validate_topic_configs(overrides, self._live.current.log),
            check_broker_configs=self.announced.check_broker_configs,
            check_group_configs=self.announced.check_group_configs,
            # What was not flushed before a crash may be gone: a reader of it finds out by the new leader epoch.
            new_leader_epochs=not self._ground.directories.was_clean,
        )

    def _member(self) -> Member:
        ground = self._ground
        return Member(
            broker_id=ground.broker_id,
            cluster_id=ground.cluster_id,
            endpoints=ground.endpoints,
            rack=ground.config.broker.rack,
            controller_listener=ground.config.server.controller_listener,
            has_tree=not ground.config.coordination.zookeeper_connect,
        )

    def _make_services(self) -> Services:
        ground, clock = self._ground, self._ground.ports.clock
        return Services(
            broker_id=ground.broker_id,
            live=self._live,
            clock=clock,
            workers=ground.ports.workers,
            metadata=ground.metadata,
            features=self.features,
            replicas=self.replicas,
            controller=self.controller,
            own_controller=self.own_controller,
            announced=self.announced,
            authorizer=ground.authorizer,
            quotas=ground.quotas,
            policy=Policy(ground.authorizer, ground.quotas),
            producer_ids=self.producer_ids,
            groups_on_demand=self.groups,
            transactions_on_demand=self.transactions,
            internal_topics=InternalTopics(self.controller),
            topics_on_demand=TopicsOnDemand(self.controller, self._live),
            journals=self.journals,
            writes=self.writes,
            round=self.round,
            checks=Checks(ground.ports.workers, clock),
            metrics=RequestMetrics(ground.registry, self.replicas, clock),
            turns=Turns(clock),
            questions=self.questions,
            markers=self.markers,
            transaction_links=self.transaction_links,
        )

    def _take_settings(self, changed: Config) -> None:
        self._ground.server.take_limits(limits_of(changed.server))
        self._ground.directories.cordon(changed.storage.cordoned_log_dirs)
        self.fetchers.reconfigure()

    def _brokers_changed(self, update: MetadataUpdate) -> None:
        if update.whole or update.brokers is not None:
            self.transaction_links.look()
            self.marker_links.look()

    def _transaction_coordinator(self) -> TransactionCoordinator:
        from ottla.broker.transaction_markers import Markers
        from ottla.transactions.coordinator import TransactionCoordinator

        return TransactionCoordinator(
            lambda: self._live.current.transactions,
            self._ground.metadata,
            self._ground.ports.clock,
            self.producer_ids.ask,
            Markers(self.services, self.marker_links),
            lambda: self.features.transaction_version,
        )

    async def _topic_overrides(self, names: Sequence[str]) -> Mapping[str, Mapping[str, str]]:
        return await self.membership.topic_overrides(names)


def _group_coordinator(live: LiveConfig, metadata: MetadataCache, ports: Ports) -> GroupCoordinator:
    from ottla.groups.coordinator import GroupCoordinator

    return GroupCoordinator(lambda: live.current.groups, metadata, ports.clock, ports.entropy)
