"""A broker's life: open the tree, take the directories, join the cluster, take on the roles, answer clients; and all
of it backwards.

The order matters in both directions. At start the ports are taken first, since a registration names them; what a
controller announces is served from the registration on, and a client's request once this broker knows the cluster. At
stop others take the leaderships over first; no connection is left before the logs are flushed, and the marker of a
clean stop is written last.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Final

from ottla import __version__, logs
from ottla.broker.adopting import warn_of_kept
from ottla.broker.announcements import sound_log_config
from ottla.broker.cleaning import Cleaning
from ottla.broker.identity import learn_identity, warn_if_stranger
from ottla.broker.leaving import hand_over
from ottla.broker.parts import BrokerParts, Ground
from ottla.broker.session_counts import SessionCounts
from ottla.broker.tree_sessions import TreeSessions
from ottla.config import Config, LogConfig
from ottla.controller.controller import ClusterController
from ottla.controller.deciding.context import ClusterContext
from ottla.controller.loading import load_topics
from ottla.coordination.interface import SessionEvent
from ottla.coordination.providers import BrokersTree
from ottla.handlers.calls.call import Services
from ottla.handlers.fetch.handler import FetchHandler
from ottla.handlers.produce.handler import ProduceHandler
from ottla.metadata import Endpoint, MetadataCache, MetadataUpdate
from ottla.metadata.history import PartitionHistory
from ottla.metrics import Registry
from ottla.model import BrokerId, TopicPartition
from ottla.native import compiled_run
from ottla.ports import Ports
from ottla.replication.fetching.fetchers import Fetchers
from ottla.security.authorizer import AllowAll, Authorizer
from ottla.security.quotas import NoQuotas, Quotas
from ottla.server.dispatch import Dispatcher
from ottla.server.holding import HeldRequests
from ottla.server.listeners import ServedListener, Server, limits_of
from ottla.storage.directories.directories import LogDirectories
from ottla.storage.directories.events import DirectoryEvent, Severity
from ottla.storage.log.log import Log

log_event = logs.logger("server")

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
        self._sessions: TreeSessions | None = None
        self._directories: LogDirectories | None = None
        self._server: Server | None = None
        self._dispatcher: Dispatcher | None = None
        #: From the middle of the start on.
        self._parts: BrokerParts | None = None
        self._on_lost = on_lost
        #: Why the broker can go on no more.
        self.lost: str | None = None
        self._started = False
        self._stopping = False
        #: Whether others are being asked to lead what this broker does: the first step of a stop.
        self.is_handing_over = False
        #: Whether a stop has others lead this broker's partitions first: not where the whole cluster stops.
        self.hands_over = True

    # -- what others see of it

    @property
    def services(self) -> Services | None:
        """What its handlers have. None until the parts are made."""
        return None if self._parts is None else self._parts.services

    @property
    def controller(self) -> ClusterController | None:
        """This broker's own, whether it is the active one or not."""
        return None if self._parts is None else self._parts.own_controller

    @property
    def fetchers(self) -> Fetchers | None:
        return None if self._parts is None else self._parts.fetchers

    @property
    def cleaning(self) -> Cleaning | None:
        return None if self._parts is None else self._parts.cleaning

    @property
    def is_stopping(self) -> bool:
        return self._stopping

    @property
    def tree(self) -> BrokersTree | None:
        """The cluster's tree in the present session; None before the first one and after the last."""
        sessions = self._sessions
        return sessions.present if sessions is not None and sessions.is_open else None

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
        sessions = self._sessions = TreeSessions(self.config, self.ports, self.session_counts.requests)
        await sessions.begin()
        cluster, topics = await sessions.have(self._learn_cluster)
        directories = self._directories = self._open_directories(cluster, topics)
        await sessions.have(lambda tree: sessions.signs.keep(tree, lambda: directories.online_paths))
        self._server = server = self._make_server()
        self.endpoints = self._listen(server)
        self.metadata.apply(MetadataUpdate(controller_epoch=self.metadata.controller_epoch, cluster_id=cluster))
        parts = self._parts = self._make_parts(sessions, cluster, directories, server)
        services, membership = parts.services, parts.membership
        self._dispatcher = dispatcher = Dispatcher(
            services,
            ProduceHandler(services),
            FetchHandler(services, self.ports.entropy, server.memory, self.ports.disk),
            server.memory,
        )
        await membership.join(sessions.present)
        held = HeldRequests(dispatcher)
        server.open(held)
        await membership.stand_at_first()
        await membership.informed()
        self._end_of_start(sessions.present, directories)
        await parts.replicas.files.flush_found()
        server.go_on(dispatcher)
        held.release()
        parts.housekeeping.start()
        parts.cleaning.start()
        parts.replicas.moves.resume()
        for removal in directories.removals:
            parts.housekeeping.remove_folder_later(removal)
        directories.removals.clear()
        self._started = True
        compiled = "no" if compiled_run() is None else "yes"
        log_event.info("broker started", id=self.broker_id, cluster=cluster, version=__version__, compiled=compiled)

    def _make_parts(
        self, sessions: TreeSessions, cluster: str, directories: LogDirectories, server: Server
    ) -> BrokerParts:
        ground = Ground(
            config=self.config,
            ports=self.ports,
            registry=self.registry,
            metadata=self.metadata,
            authorizer=self._authorizer,
            quotas=self._quotas,
            broker_id=self.broker_id,
            cluster_id=cluster,
            endpoints=tuple(self.endpoints),
            directories=directories,
            server=server,
            open_tree=sessions.open,
            give_up=self._give_up,
        )
        parts = BrokerParts(ground, sessions.present)
        parts.membership.on_session = sessions.go_on
        parts.membership.on_session_event = partial(self._session_event, parts)
        parts.membership.on_lost = self._give_up
        return parts

    def _session_event(self, parts: BrokerParts, event: SessionEvent) -> None:
        self.session_counts.heard(event)
        parts.standing_aside.session_event(event)

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

    async def _learn_cluster(self, tree: BrokersTree) -> tuple[str, ClusterContext]:
        """Its id, and its topics, as the tree has them."""
        assert self._sessions is not None
        self.broker_id, cluster = await learn_identity(tree, self.ports, self.config, self._sessions.signs)
        topics = ClusterContext()
        await load_topics(tree, topics)
        warn_if_stranger(self.broker_id, topics)
        warn_of_kept(topics)
        return cluster, topics

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

        def holds(partition: TopicPartition) -> bool:
            found = known.topics.get(partition.topic)
            return found is not None and self.broker_id in found.replicas.get(partition.partition, ())

        return LogDirectories.open(
            self.ports.disk,
            self.config.storage.log_dirs,
            broker_id=self.broker_id,
            cluster_id=cluster,
            config_for=config_for,
            topic_id_for=topic_id_for,
            holds=holds,
            now_ms=self.ports.clock.wall_ms(),
            entropy=self.ports.entropy,
            on_event=_log_directory_event,
            cordoned=self.config.storage.cordoned_log_dirs,
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
                port = server.listen(served, listener.host, listener.port)
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
        parts = self._parts
        if parts is not None and self._started and self.hands_over and self.lost is None:
            self.is_handing_over = True
            await hand_over(self.config.broker, parts.services, lambda: parts.announced.broker_epoch)
            self.is_handing_over = False
        if self._server is not None:
            self._server.stop_accepting()
        if parts is not None:
            parts.standing_aside.close()
            parts.handing_over.close()
            parts.journals.stop()
            parts.transaction_journals.stop()
            parts.questions.close()
            parts.round.stop()
            if parts.groups.made is not None:
                await parts.groups.made.close()
            if parts.transactions.made is not None:
                await parts.transactions.made.close()
            parts.transaction_links.close()
            parts.marker_links.close()
            parts.fetchers.close()
            parts.deadlines.close()
        if self._dispatcher is not None:
            await self._dispatcher.drain(_DRAIN_S)
        if self._server is not None:
            self._server.close()
        if parts is not None:
            parts.housekeeping.close()
            parts.cleaning.close()
            parts.reports.close()
            parts.isr_requests.close()
            await parts.membership.leave()
            parts.reach.close()
        if self._sessions is not None:
            self._sessions.signs.close()
        if self._directories is not None:
            await self._close_directories(self._directories)
            self._directories = None
        if self._sessions is not None:
            await self._sessions.close()
        if self._started:
            self._started = False
            log_event.info("broker stopped", id=self.broker_id)

    async def _close_directories(self, directories: LogDirectories) -> None:
        """Flushes what is dirty, several logs at a time, then writes checkpoints and the marker of a clean stop."""
        high_watermarks = {}
        if self._parts is not None:
            replicas = self._parts.replicas
            replicas.moves.close()
            await replicas.changes_end()
            await replicas.flushes_end()
            high_watermarks = replicas.high_watermarks()
        flushes = directories.prepare_close()
        workers = self.ports.workers
        await asyncio.gather(*(workers.thread(flush.run) for flush in flushes), return_exceptions=True)
        for flush in flushes:
            flush.settle()
        directories.close(high_watermarks)


def _log_directory_event(event: DirectoryEvent) -> None:
    write = {Severity.ERROR: log_event.error, Severity.WARNING: log_event.warning}.get(event.severity, log_event.info)
    if event.partition is None:
        write(event.message, directory=event.directory)
    else:
        write(event.message, directory=event.directory, partition=event.partition)
