"""A broker's life: open the tree, take the directories, join the cluster, take on the roles, answer clients; and all
of it backwards.

The order matters in both directions. At start the ports are taken first, since a registration names them; what a
controller announces is served from the registration on, and a client's request once this broker knows the cluster. At
stop others take the leaderships over first; no connection is left before the logs are flushed, and the marker of a
clean stop is written last.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Final, TypeVar

from ottla import __version__, logs
from ottla.broker.adopting import warn_of_kept
from ottla.broker.announcements import BrokerAnnouncements, sound_log_config
from ottla.broker.cleaning import Cleaning
from ottla.broker.controller_access import ControllerAccess
from ottla.broker.group_partitions import GroupPartitions, journal_settings
from ottla.broker.housekeeping import Housekeeping
from ottla.broker.identity import coordination_directory, learn_identity, warn_if_stranger
from ottla.broker.isr_requests import IsrRequests
from ottla.broker.leaving import hand_over
from ottla.broker.membership import Member, Membership
from ottla.broker.reaching import BrokerReach
from ottla.broker.replica_reports import ReplicaReports
from ottla.broker.session_counts import SessionCounts
from ottla.broker.tree_signs import TreeSigns
from ottla.config import Config, LogConfig
from ottla.config.live import LiveConfig
from ottla.controller.controller import ClusterController
from ottla.controller.deciding.context import ClusterContext
from ottla.controller.deciding.rules import ControllerSettings
from ottla.controller.loading import load_topics
from ottla.coordination.errors import ConnectionLoss, CoordinationError, SessionExpired
from ottla.coordination.providers import BrokersTree, Opening, open_tree
from ottla.handlers.calls.call import Services
from ottla.handlers.calls.checks import Checks
from ottla.handlers.calls.request_metrics import RequestMetrics
from ottla.handlers.calls.turns import Turns
from ottla.handlers.fetch.handler import FetchHandler
from ottla.handlers.on_demand.groups import GroupsOnDemand
from ottla.handlers.on_demand.offsets_topic import OffsetsTopic
from ottla.handlers.on_demand.producer_ids import ProducerIds
from ottla.handlers.on_demand.topics import TopicsOnDemand
from ottla.handlers.produce.handler import ProduceHandler
from ottla.metadata import Endpoint, MetadataCache, MetadataUpdate
from ottla.metadata.history import PartitionHistory
from ottla.metrics import Registry
from ottla.model import BrokerId
from ottla.native import compiled_run
from ottla.ports import Ports
from ottla.replication.deadlines import Deadlines
from ottla.replication.fetching.fetchers import Fetchers, open_fetchers
from ottla.replication.journal import Journals
from ottla.replication.replicas import Replicas
from ottla.replication.round import Round
from ottla.replication.throttles import ReplicationQuota
from ottla.replication.waiters import Waiters
from ottla.replication.writes import Writes
from ottla.security.authorizer import AllowAll, Authorizer
from ottla.security.policy import Policy
from ottla.security.quotas import NoQuotas, Quotas
from ottla.server.dispatch import Dispatcher
from ottla.server.holding import HeldRequests
from ottla.server.listeners import ServedListener, Server, limits_of
from ottla.storage.directories.directories import LogDirectories
from ottla.storage.directories.events import DirectoryEvent, Severity
from ottla.storage.log.log import Log

if TYPE_CHECKING:
    from ottla.groups.coordinator import GroupCoordinator

log_event = logs.logger("server")

#: Opens another session with the broker's tree.
Reopen = Callable[[], Awaitable[BrokersTree]]
T = TypeVar("T")

#: Requests in progress at stop get this long to end.
_DRAIN_S: Final = 5.0


class StartFault(Exception):
    """The broker cannot start as it is configured; the message is one line that says what to do."""


class PortTaken(StartFault):
    """A listener has no port to listen on."""


class Broker:
    def __init__(
        self,
        config: Config,
        ports: Ports,
        registry: Registry | None = None,
        host_name: str = "localhost",
        authorizer: Authorizer | None = None,
        quotas: Quotas | None = None,
        on_lost: Callable[[str], None] | None = None,
    ) -> None:
        """`on_lost` is called once when the broker can go on no more, with the reason: its owner is to stop it.

        Without it that stands in the log, and in `lost`.
        """
        self.config = config
        self.ports = ports
        self.registry = registry if registry is not None else Registry()
        self._host_name = host_name
        self._authorizer = authorizer if authorizer is not None else AllowAll()
        self._quotas = quotas if quotas is not None else NoQuotas()
        #: For metrics.
        self.session_counts = SessionCounts()
        self.metadata = MetadataCache()
        self.metadata.history = PartitionHistory(ports.clock.wall_ms)
        self.broker_id = BrokerId(-1)
        #: Name, host and port of each listener once it listens, as clients are answered.
        self.endpoints: list[Endpoint] = []
        #: HOST:PORT of each listener: where it listens, whatever is advertised.
        self.listening_on: list[str] = []
        self._coordination: BrokersTree | None = None
        self._membership: Membership | None = None
        self._controller: ClusterController | None = None
        self._announced: BrokerAnnouncements | None = None
        self._reach: BrokerReach | None = None
        self._signs: TreeSigns | None = None
        self._directories: LogDirectories | None = None
        self._server: Server | None = None
        self._dispatcher: Dispatcher | None = None
        self._deadlines: Deadlines | None = None
        self._housekeeping: Housekeeping | None = None
        self.cleaning: Cleaning | None = None
        self.services: Services | None = None
        self._on_lost = on_lost
        #: Why the broker can go on no more.
        self.lost: str | None = None
        self._started = False
        self._stopping = False
        #: Whether a stop has others lead this broker's partitions first: not where the whole cluster stops.
        self.hands_over = True
        self._reports: ReplicaReports | None = None
        self._isr_requests: IsrRequests | None = None
        self.fetchers: Fetchers | None = None

    @property
    def controller(self) -> ClusterController | None:
        """This broker's own, whether it is the active one or not."""
        return self._controller

    @property
    def connection_count(self) -> int:
        return 0 if self._server is None else self._server.connection_count

    @property
    def stage(self) -> str:
        """Of its life: "starting" until clients are served, "stopping" from the first step of the stop on."""
        if self._stopping:
            return "stopping"
        return "ready" if self._started else "starting"

    def logs(self) -> list[Log]:
        return [] if self._directories is None else list(self._directories.logs.values())

    def outgoing_bytes(self) -> int:
        """Bytes of answers that are made and that their clients have not taken."""
        return 0 if self._server is None else self._server.outgoing_bytes()

    def resting_ms(self) -> int:
        return 0 if self._server is None else self._server.resting_ms()

    # -- start

    async def start(self) -> None:
        """Serves when it returns. On a fault everything taken so far is given back."""
        try:
            await self._start()
        except BaseException:
            await self.stop()
            raise

    async def _start(self) -> None:
        for warning in self.config.warnings:
            log_event.warning(warning)
        if self.config.without_effect:
            log_event.info("properties without effect here", names=", ".join(self.config.without_effect))
        ports = self.ports
        folder = coordination_directory(ports.disk, self.config.storage.log_dirs)
        signs = self._signs = TreeSigns(ports, self.config.storage.log_dirs, folder)
        self._coordination = await self._open_tree(folder, signs)

        async def reopen() -> BrokersTree:
            return await self._open_tree(folder, signs)

        cluster, topics = await self._in_a_session(self._learn_cluster, reopen)
        directories = self._directories = self._open_directories(cluster, topics)
        await self._in_a_session(lambda tree: signs.keep(tree, lambda: directories.online_paths), reopen)
        coordination = self._coordination
        assert coordination is not None
        self._server = server = self._make_server()
        self.endpoints = self._listen(server)
        self.metadata.apply(MetadataUpdate(controller_epoch=self.metadata.controller_epoch, cluster_id=cluster))
        self.services = services = self._assemble(coordination, cluster, reopen, directories)
        membership, keeping = self._membership, self._housekeeping
        assert membership is not None
        assert keeping is not None
        self._dispatcher = dispatcher = Dispatcher(
            services,
            ProduceHandler(services),
            FetchHandler(services, ports.entropy, server.memory, ports.disk),
            server.memory,
        )
        await membership.join(coordination)
        held = HeldRequests(dispatcher)
        server.open(held)
        await membership.stand_at_first()
        await membership.informed()
        self._end_of_start(self._coordination, directories)
        await services.replicas.flush_found()
        server.go_on(dispatcher)
        held.release()
        keeping.start()
        assert self.cleaning is not None
        self.cleaning.start()
        services.replicas.moves.resume()
        for removal in directories.removals:
            keeping.remove_folder_later(removal)
        directories.removals.clear()
        self._started = True
        compiled = "no" if compiled_run() is None else "yes"
        log_event.info("broker started", id=self.broker_id, cluster=cluster, version=__version__, compiled=compiled)

    def _end_of_start(self, tree: BrokersTree, directories: LogDirectories) -> None:
        """What the start wrote is in the tree, or waits for room; until then nothing is appended under its epochs."""
        tree.start_ends()
        if not tree.is_behind:
            return
        log_event.error("the disk is full: reads are served, writes are refused until there is room")
        held = list(directories.logs.values())
        for log in held:
            log.staging.hold_back(tree.place)

        def caught_up() -> None:
            for log in held:
                log.staging.go_on()

        tree.when_caught_up(caught_up)

    async def _open_tree(self, directory: str, signs: TreeSigns) -> BrokersTree:
        try:
            return await open_tree(Opening(self.config.coordination, self.ports, directory, signs.check))
        except OSError as error:
            if error.filename is None:  # writes do not know their file's name
                error.filename = directory
            raise

    async def _learn_cluster(self, tree: BrokersTree) -> tuple[str, ClusterContext]:
        """Its id, and its topics, as the tree has them."""
        assert self._signs is not None
        self.broker_id, cluster = await learn_identity(tree, self.ports, self.config, self._signs)
        topics = ClusterContext()
        await load_topics(tree, topics)
        warn_if_stranger(self.broker_id, topics)
        warn_of_kept(topics)
        return cluster, topics

    async def _in_a_session(self, work: Callable[[BrokersTree], Awaitable[T]], reopen: Reopen) -> T:
        """In another one where the one that there was has ended, since a recovery may take longer than a session lasts,
        or where its connection took the answer to a write with it."""
        while True:
            assert self._coordination is not None
            try:
                return await work(self._coordination)
            except (SessionExpired, ConnectionLoss) as fault:
                if not self.config.coordination.zookeeper_connect:
                    raise
                log_event.warning("the start goes on in another session with the coordination tree", fault=str(fault))
                await self._coordination.close()
                self._coordination = await reopen()

    def _another_session(self, tree: BrokersTree) -> None:
        self._coordination = tree
        if self._signs is not None:
            self._signs.go_on(tree)

    def _give_up(self, reason: str) -> None:
        if self.lost is not None or self._stopping:
            return
        self.lost = reason
        log_event.error("the broker gives up", reason=reason)
        if self._on_lost is not None:
            self._on_lost(reason)

    def _open_directories(self, cluster: str, known: ClusterContext) -> LogDirectories:
        defaults = self.config.log

        def config_for(topic: str) -> LogConfig | None:
            found = known.topics.get(topic)
            return None if found is None else sound_log_config(topic, found.configs, defaults)

        def topic_id_for(topic: str) -> bytes | None:
            found = known.topics.get(topic)
            return None if found is None else found.id

        return LogDirectories.open(
            self.ports.disk,
            self.config.storage.log_dirs,
            broker_id=self.broker_id,
            cluster_id=cluster,
            config_for=config_for,
            topic_id_for=topic_id_for,
            now_ms=self.ports.clock.wall_ms(),
            entropy=self.ports.entropy,
            on_event=_log_directory_event,
            cordoned=self.config.storage.cordoned_log_dirs,
        )

    def _assemble(
        self, coordination: BrokersTree, cluster: str, reopen: Reopen, directories: LogDirectories
    ) -> Services:
        """Puts the parts together; nothing runs yet."""
        ports, config, live = self.ports, self.config, LiveConfig(self.config)
        replicas = Replicas(
            self.broker_id,
            directories,
            Waiters(),
            ports.workers,
            ports.clock,
            lambda removal: keeping.remove_folder_later(removal),
        )
        replicas.moves.quota = ReplicationQuota(
            ports.clock,
            lambda: live.current.replication.alter_log_dirs_bytes_per_second_max,
            config.replication.alter_log_dirs_quota_samples,
            1000 * config.replication.alter_log_dirs_quota_sample_seconds,
        )
        keeping = self._housekeeping = Housekeeping(replicas, ports.workers, ports.clock, live)
        self.cleaning = Cleaning(replicas, ports.workers, ports.clock, ports.disk, live, keeping.remove_later)
        server = self._server
        assert server is not None

        def take_settings(changed: Config) -> None:
            server.take_limits(limits_of(changed.server))
            directories.cordon(changed.storage.cordoned_log_dirs)
            fetchers.reconfigure()

        async def topic_overrides(names: Sequence[str]) -> Mapping[str, Mapping[str, str]]:
            return await membership.topic_overrides(names)

        announced = self._announced = BrokerAnnouncements(
            self.broker_id, ports.clock, live, self.metadata, replicas, take_settings, topic_overrides
        )
        settings = ControllerSettings(
            broker_id=self.broker_id,
            num_partitions=config.broker.num_partitions,
            default_replication_factor=config.broker.default_replication_factor,
            delete_topics=config.broker.delete_topics,
            unclean_leader_election=config.log.unclean_leader_election,
            auto_leader_rebalance=config.replication.auto_leader_rebalance,
            leader_imbalance_check_interval_s=config.replication.leader_imbalance_check_interval_seconds,
            leader_imbalance_percentage=config.replication.leader_imbalance_percentage,
            check_broker_configs=announced.check_broker_configs,
            check_group_configs=announced.check_group_configs,
            # What was not flushed before a crash may be gone: a reader of it finds out by the new leader epoch.
            new_leader_epochs=not directories.was_clean,
        )
        announcing_ms_max = config.replication.controller_socket_timeout_ms
        reach = self._reach = BrokerReach(self.broker_id, config.server, announced, ports, announcing_ms_max)

        own = self._controller = ClusterController(
            coordination, ports.clock, ports.entropy, lambda found: reach.receiver(own, found), settings
        )
        member = Member(
            broker_id=self.broker_id,
            cluster_id=cluster,
            endpoints=tuple(self.endpoints),
            rack=config.broker.rack,
            controller_listener=config.server.controller_listener,
            has_tree=not config.coordination.zookeeper_connect,
        )
        membership = self._membership = Membership(member, ports, announced, self.metadata, own, reopen)
        membership.on_session = self._another_session
        membership.on_session_event = self.session_counts.heard
        membership.on_lost = self._give_up
        controller = ControllerAccess(membership, ports.clock, config.replication.request_timeout_ms)
        groups = GroupsOnDemand(lambda: _group_coordinator(live, self.metadata, ports))
        self._deadlines = Deadlines(replicas.waiters, ports.clock)
        writes = Writes(replicas, ports.clock)
        this_round = Round(writes, self._deadlines.settle, ports.clock, self._give_up)
        journals = Journals(
            replicas,
            this_round,
            writes,
            ports.workers,
            ports.clock,
            lambda: journal_settings(live.current.groups.offsets),
        )
        this_round.join(journals)
        self._reports = ReplicaReports(controller, self.broker_id, self._give_up)
        replicas.isr_changes.lag_ms_max = config.replication.lag_time_ms_max
        self._isr_requests = IsrRequests(self.broker_id, replicas, controller, self.metadata, ports.clock)
        # A coordinator of another kind takes its place here.
        self.fetchers = fetchers = open_fetchers(self.broker_id, replicas, ports, live, self.metadata)
        replicas.open(self._reports, [GroupPartitions(groups, journals), fetchers])
        return Services(
            broker_id=self.broker_id,
            live=live,
            clock=ports.clock,
            workers=ports.workers,
            metadata=self.metadata,
            replicas=replicas,
            controller=controller,
            own_controller=own,
            announced=announced,
            authorizer=self._authorizer,
            quotas=self._quotas,
            policy=Policy(self._authorizer, self._quotas),
            producer_ids=ProducerIds(controller, self.broker_id),
            groups_on_demand=groups,
            offsets_topic=OffsetsTopic(controller),
            topics_on_demand=TopicsOnDemand(controller, live),
            journals=journals,
            writes=writes,
            round=this_round,
            checks=Checks(ports.workers, ports.clock),
            metrics=RequestMetrics(self.registry, replicas, ports.clock),
            turns=Turns(ports.clock),
        )

    def _make_server(self) -> Server:
        server = self.config.server
        has_control = server.control_plane_listener is not None
        return Server(self.ports.network, self.ports.clock, limits_of(server), has_control=has_control)

    def _listen(self, server: Server) -> list[Endpoint]:
        """Takes the ports; clients that connect now are served once the broker is open."""
        advertised = {listener.name: listener for listener in self.config.server.advertised_listeners}
        control = self.config.server.control_plane_listener
        endpoints = []
        for listener in self.config.server.listeners:
            served = ServedListener(name=listener.name, control=listener.name == control)
            try:
                port = server.listen(served, listener.host or "0.0.0.0", listener.port)  # noqa: S104 - Kafka's meaning
            except OSError as error:
                reason = error.strerror or str(error)
                raise PortTaken(f"listeners: cannot listen on {listener.host}:{listener.port}: {reason}") from error
            self.listening_on.append(f"{listener.host or self._host_name}:{port}")
            shown = advertised.get(listener.name, listener)
            endpoints.append(
                Endpoint(listener.name, listener.protocol, shown.host or self._host_name, shown.port or port)
            )
        return endpoints

    # -- stop

    async def stop(self) -> None:
        """Stops cleanly; fine at any stage of a start that failed."""
        self._stopping = True
        is_announced = self._started and self.services is not None and self._announced is not None
        if is_announced and self.hands_over and self.lost is None:
            assert self.services is not None
            assert self._announced is not None
            await hand_over(self.config.broker, self.services, self._announced.broker_epoch)
        if self._server is not None:
            self._server.stop_accepting()
        if self.services is not None:
            self.services.journals.stop()
            self.services.round.stop()
            if self.services.groups_on_demand.made is not None:
                await self.services.groups_on_demand.made.close()
        if self.fetchers is not None:
            self.fetchers.close()
        if self._deadlines is not None:
            self._deadlines.close()
        if self._dispatcher is not None:
            await self._dispatcher.drain(_DRAIN_S)
        if self._server is not None:
            self._server.close()
        if self._housekeeping is not None:
            self._housekeeping.close()
        if self.cleaning is not None:
            self.cleaning.close()
        if self._reports is not None:
            self._reports.close()
        if self._isr_requests is not None:
            self._isr_requests.close()
        if self._membership is not None:
            await self._membership.leave()
        if self._reach is not None:
            self._reach.close()
        if self._signs is not None:
            self._signs.close()
        if self._directories is not None:
            await self._close_directories(self._directories)
            self._directories = None
        if self._coordination is not None:
            try:
                await self._coordination.close()
            except CoordinationError as fault:
                # The next start ends the session, and finds what is certain.
                log_event.error("the coordination tree was not left clean", reason=fault)
            self._coordination = None
        if self._started:
            self._started = False
            log_event.info("broker stopped", id=self.broker_id)

    async def _close_directories(self, directories: LogDirectories) -> None:
        """Flushes what is dirty, several logs at a time, then writes checkpoints and the marker of a clean stop."""
        high_watermarks = {}
        if self.services is not None:
            self.services.replicas.moves.close()
            await self.services.replicas.changes_end()
            await self.services.replicas.flushes_end()
            high_watermarks = self.services.replicas.high_watermarks()
        flushes = directories.prepare_close()
        workers = self.ports.workers
        await asyncio.gather(*(workers.thread(flush.run) for flush in flushes), return_exceptions=True)
        for flush in flushes:
            flush.settle()
        directories.close(high_watermarks)


def _group_coordinator(live: LiveConfig, metadata: MetadataCache, ports: Ports) -> GroupCoordinator:
    from ottla.groups.coordinator import GroupCoordinator

    return GroupCoordinator(lambda: live.current.groups, metadata, ports.clock, ports.entropy)


def _log_directory_event(event: DirectoryEvent) -> None:
    write = {Severity.ERROR: log_event.error, Severity.WARNING: log_event.warning}.get(event.severity, log_event.info)
    if event.partition is None:
        write(event.message, directory=event.directory)
    else:
        write(event.message, directory=event.directory, partition=event.partition)
