"""A broker's place in its cluster: one session with the tree after another, and what hangs on each.

    open_tree ─▶ settings are watched and read ─▶ /brokers/ids/N ─▶ stands for controller ─▶ ... the session ends
        ▲                                                                                          │
        └───────────────────────── another session, as soon as one can be had ◀────────────────────┘

The registration, the watches and the candidacy live as long as their session; the broker's roles do not. A broker whose
session is over goes on serving what it leads and follows, without an ISR that could change: a partition whose other
members are needed waits. It opens another session, and registers as another life of itself: the controller, which has
led its partitions elsewhere meanwhile or does so now, announces it everything anew.

It ends only where that cannot be: the tree is lost to this process for good, the id is another broker's by now, or the
tree has become another cluster's.
"""

from __future__ import annotations

import asyncio
import traceback
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from ottla import logs
from ottla.broker.announcements import BrokerAnnouncements
from ottla.broker.settings import TreeSettings
from ottla.broker.tree_features import TreeFeatures
from ottla.controller.announcing.origin import NotAnnounced
from ottla.controller.controller import ClusterController
from ottla.controller.deciding.refusal import Refusal
from ottla.controller.identity import WrongCluster, cluster_id
from ottla.controller.interface import Controller
from ottla.controller.registration import BrokerIdInUse, register_broker
from ottla.coordination.errors import ConnectionLoss, CoordinationError, NoNode, SessionClosed, SessionExpired
from ottla.coordination.interface import EventType, SessionEvent, WatchEvent
from ottla.coordination.providers import BrokersTree
from ottla.coordination.znodes import (
    CONTROLLER,
    BrokerRegistration,
    broker_path,
    decode_broker,
    decode_controller,
)
from ottla.handlers.calls.from_brokers import client_id_to_controller
from ottla.metadata import Endpoint, MetadataCache
from ottla.metadata.features import FinalizedFeatures
from ottla.model import NO_BROKER, BrokerId
from ottla.ports import Ports
from ottla.steps import is_stray

if TYPE_CHECKING:
    from ottla.broker.controller_link import RemoteController
    from ottla.interbroker.links import BrokerAddress, BrokerLinks

log_event = logs.logger("server")

#: How often a start says that it waits for the controller.
_INFORMED_S: Final = 10.0
#: Between two tries to have a session again, twice as long each time.
_AGAIN_S: Final = 0.1
_AGAIN_S_MAX: Final = 2.0


class Member(NamedTuple):
    """The broker that joins."""

    broker_id: BrokerId
    cluster_id: str
    endpoints: tuple[Endpoint, ...]
    rack: str | None
    #: The listener on which a controller reaches brokers, and brokers their controller.
    controller_listener: str
    #: Whether the tree is in this process: its fault is the end of the tree then, and else that of a session.
    has_tree: bool


class Membership:
    """Implements `ControllerPlace`."""

    def __init__(
        self,
        member: Member,
        ports: Ports,
        announced: BrokerAnnouncements,
        metadata: MetadataCache,
        features: FinalizedFeatures,
        controller: ClusterController,
        open_tree: Callable[[], Awaitable[BrokersTree]],
    ) -> None:
        """`controller` is this broker's own, active or not."""
        self._member = member
        self._ports = ports
        self._announced = announced
        self._metadata = metadata
        self._features = features
        self._controller = controller
        self._open_tree = open_tree
        #: Called when there is another session, and when there will be none any more, with the reason.
        self.on_session: Callable[[BrokersTree], None] = lambda _: None
        self.on_lost: Callable[[str], None] = lambda _: None
        #: Called with all that happens to sessions.
        self.on_session_event: Callable[[SessionEvent], None] = lambda _: None
        #: Why there is no controller for this broker any more.
        self.lost: str | None = None
        self._tree: BrokersTree | None = None
        self._settings: TreeSettings | None = None
        self._tree_features: TreeFeatures | None = None
        #: Whether the broker stands for controller: from then on its session may end and another one begin.
        self._stands = False
        #: Whether the present session has ended, also while it was being joined.
        self._is_over = False
        #: Set with `lost`.
        self._ended = asyncio.Event()
        #: Runs while there is no session that is joined.
        self._rejoining: asyncio.Task[None] | None = None
        #: The controller as the tree names it, and where it is reached.
        self.controller_id = NO_BROKER
        self._controller_at: BrokerAddress | None = None
        self._finding: asyncio.Task[None] | None = None
        self._links: BrokerLinks | None = None

    # A session's life.

    async def register(self, tree: BrokersTree) -> None:
        """Settings come first: they govern what the registration brings. Raises CoordinationError: BrokerIdInUse,
        DamagedZnode."""
        self._tree = tree
        tree.listen(lambda event: self._session_event(tree, event))
        self._settings = TreeSettings(tree, self._metadata, self._announced.learn)
        await self._settings.begin()
        self._tree_features = TreeFeatures(tree, self._features)
        await self._tree_features.begin()
        member = self._member
        registration = BrokerRegistration(member.endpoints, member.rack, self._ports.clock.wall_ms())
        self._announced.registered(await register_broker(tree, member.broker_id, registration))

    async def join(self, tree: BrokersTree) -> None:
        """As `register`, at a start: in another session where this one, or its connection, ends before it is done."""
        is_another = False
        while True:
            try:
                if is_another:
                    await cluster_id(tree, self._ports.entropy, self._member.cluster_id)
                await self.register(tree)
            except (SessionExpired, ConnectionLoss) as fault:
                if self._member.has_tree:
                    raise
                log_event.warning("the start goes on in another session with the coordination tree", fault=str(fault))
                self._end_settings()
                await _closed(tree)
                tree = await self._open_tree()
                self.on_session(tree)
                is_another = True
            else:
                return

    async def stand_at_first(self) -> None:
        """As `stand`, at a start: where the session is over, or its connection took an answer with it, another one is
        on its way when this returns."""
        try:
            await self.stand()
        except (SessionExpired, ConnectionLoss):
            if self._member.has_tree or self.lost is not None:
                raise
            if self._rejoining is None:
                self._rejoining = asyncio.get_running_loop().create_task(self._rejoin())

    async def stand(self) -> None:
        """From here on this broker may become the controller, and knows who is. Returns when it is the controller and
        has taken on what it was announced, or when another one is. Raises what hinders the former."""
        tree = self._tree
        assert tree is not None
        self._stands = True
        self._look_for_controller(tree)
        await self._controller.stand(tree)

    async def informed(self) -> None:
        """Returns once this broker knows the whole cluster. Raises CoordinationError where it never will."""
        waits = [asyncio.ensure_future(each.wait()) for each in (self._announced.informed, self._ended)]
        try:
            while not self._announced.informed.is_set():
                if self.lost is not None:
                    raise SessionExpired(self.lost)
                done, _ = await asyncio.wait(waits, timeout=_INFORMED_S, return_when=asyncio.FIRST_COMPLETED)
                if not done:
                    log_event.warning(
                        "clients wait: the controller has not announced the cluster to this broker yet",
                        controller=self.controller_id,
                    )
        finally:
            for wait in waits:
                wait.cancel()

    async def leave(self) -> None:
        """The candidacy ends, and with it a controllership; the session is its owner's to close."""
        if self.lost is None:
            self.lost = "The broker is stopping."
        for task in (self._rejoining, self._finding):
            if task is not None:
                task.cancel()
        self._end_settings()
        await self._controller.stop()
        if self._links is not None:
            self._links.close()

    @property
    def tree(self) -> BrokersTree | None:
        """Of the present session, or of the last one."""
        return self._tree

    def _end_settings(self) -> None:
        settings, self._settings = self._settings, None
        if settings is not None:
            settings.close()
        features, self._tree_features = self._tree_features, None
        if features is not None:
            features.close()

    def _session_event(self, tree: BrokersTree, event: SessionEvent) -> None:
        self.on_session_event(event)
        if event is not SessionEvent.EXPIRED or tree is not self._tree or self.lost is not None:
            return
        self._is_over = True
        if tree.fault is not None and self._member.has_tree:
            self._give_up(f"without the coordination tree nothing can be decided any more: {tree.fault}")
        elif self._rejoining is None and self._stands:
            log_event.warning("the session with the coordination tree is over: the broker begins another one")
            self._rejoining = asyncio.get_running_loop().create_task(self._rejoin())

    def _give_up(self, reason: str) -> None:
        if self.lost is None:
            self.lost = reason
            self._ended.set()
            self.on_lost(reason)

    async def _rejoin(self) -> None:
        pause_s = _AGAIN_S
        try:
            while self.lost is None:
                joined = False
                try:
                    self._end_settings()
                    if self._tree is not None:
                        await _closed(self._tree)
                    await self._join_again(await self._open_tree())
                    joined = True
                except (WrongCluster, BrokerIdInUse) as fault:
                    self._give_up(str(fault))
                except (CoordinationError, NotAnnounced, Refusal, OSError) as fault:
                    log_event.warning("a session with the coordination tree is tried again", fault=str(fault))
                except asyncio.CancelledError as fault:
                    if not is_stray(fault):
                        raise
                except Exception as fault:
                    # Without another session this broker would never be elected, nor hear of a controller again.
                    error = "".join(traceback.format_exception(fault))
                    log_event.error("a session could not be begun for a fault of the broker", error=error)
                if joined and not self._is_over:
                    return
                if not joined and self.lost is None:
                    await asyncio.sleep(pause_s)
                    pause_s = min(2 * pause_s, _AGAIN_S_MAX)
        finally:
            self._rejoining = None

    async def _join_again(self, tree: BrokersTree) -> None:
        self._tree, self._is_over = tree, False
        # The owner that closes the present session closes this one from here on.
        self.on_session(tree)
        tree.start_ends()
        await cluster_id(tree, self._ports.entropy, self._member.cluster_id)
        await self.register(tree)
        await self.stand()
        log_event.info("the broker is registered again", id=self._member.broker_id, epoch=self._announced.broker_epoch)

    # Settings.

    async def topic_overrides(self, names: Sequence[str]) -> Mapping[str, Mapping[str, str]]:
        """As the tree has them. Raises CoordinationError."""
        if self._settings is None:
            raise SessionExpired("there is no session with the coordination tree just now")
        return await self._settings.topics(names)

    # The controller.

    def own(self) -> Controller | None:
        return self._controller if self._controller.active else None

    def remote(self, left_ms: int) -> RemoteController | None:
        if self._controller_at is None or self.controller_id == self._member.broker_id:
            return None
        # 60 ms to import, which a broker alone starts without.
        from ottla.broker.controller_link import RemoteController
        from ottla.interbroker.links import BrokerLinks

        if self._links is None:
            client_id = client_id_to_controller(self._member.broker_id)
            self._links = BrokerLinks(self._address_of, self._ports, client_id)
        link = self._links.to(self.controller_id)
        return RemoteController(link, left_ms, self._announced.broker_epoch, self._metadata)

    def _address_of(self, broker: BrokerId) -> BrokerAddress | None:
        return self._controller_at if broker == self.controller_id else None

    async def leave_note(self, path: str, data: bytes) -> None:
        if self._tree is None:
            raise SessionClosed("there is no session with the coordination tree")
        await self._tree.create(path, data, sequential=True)

    def _look_for_controller(self, tree: BrokersTree) -> None:
        if self._finding is not None:
            # Of a session that is over: its watches went with it, uncalled.
            self._finding.cancel()
        self._finding = asyncio.get_running_loop().create_task(self._find_controller(tree))

    async def _find_controller(self, tree: BrokersTree) -> None:
        """Reads who it is, and again at each change, until the session ends."""
        changed = asyncio.Event()

        def watch(_: WatchEvent) -> None:
            changed.set()

        try:
            while tree is self._tree and self.lost is None:
                changed.clear()
                try:
                    # The same watch each time: one that is left already is not left again.
                    await self._read_controller(tree, watch)
                    await changed.wait()
                except (SessionExpired, SessionClosed):
                    return
                except CoordinationError as fault:
                    log_event.warning_limited("the controller is looked for again", fault=str(fault))
                    await asyncio.sleep(_AGAIN_S)
                except (Exception, asyncio.CancelledError) as fault:
                    if isinstance(fault, asyncio.CancelledError) and not is_stray(fault):
                        raise
                    error = "".join(traceback.format_exception(fault))
                    log_event.warning_limited("the controller was not found for a fault of the broker", error=error)
                    await asyncio.sleep(_AGAIN_S)
        finally:
            if self._finding is asyncio.current_task():
                self._finding = None

    async def _read_controller(self, tree: BrokersTree, watch: Callable[[WatchEvent], None]) -> None:
        try:
            data, _ = await tree.get(CONTROLLER, watch)
        except NoNode:
            self._controller_is(NO_BROKER, None)
            if await tree.exists(CONTROLLER, watch) is not None:
                watch(WatchEvent(EventType.NODE_CREATED, CONTROLLER))
            return
        found = decode_controller(CONTROLLER, data).broker_id
        self._controller_is(found, None if found == self._member.broker_id else await self._address(tree, found))

    def _controller_is(self, broker: BrokerId, address: BrokerAddress | None) -> None:
        self.controller_id, self._controller_at = broker, address
        if self._links is not None:
            # Requests that wait for the former one are to go to the present one, and not to time out there.
            self._links.look()

    async def _address(self, tree: BrokersTree, broker: BrokerId) -> BrokerAddress | None:
        from ottla.interbroker.links import BrokerAddress

        path = broker_path(broker)
        try:
            data, stat = await tree.get(path)
        except NoNode:
            return None
        registration = decode_broker(path, data)
        for endpoint in registration.endpoints:
            if endpoint.listener == self._member.controller_listener:
                return BrokerAddress(endpoint.host, endpoint.port, stat.czxid)
        log_event.warning_limited(
            "the controller has no such listener", broker=broker, listener=self._member.controller_listener
        )
        return None


async def _closed(tree: BrokersTree) -> None:
    """What is left of a session that is over."""
    try:
        await tree.close()
    except CoordinationError as fault:
        log_event.warning("a session that is over could not be closed", fault=str(fault))
