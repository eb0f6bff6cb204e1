"""One member of a group: its session, its registration, and when and how it takes its share.

                      registered            share computed
    no session ──────────▶ BALANCING ─────────────────────▶ READING ──something has changed──▶ BALANCING
        ▲                    │  ▲ one of the partitions is another's still: everything is let go,
        │                    └──┘ and after rebalance.backoff.ms it is tried again
        └─────────── the session is over: nothing is this member's any more

While it balances nothing is given out, and what was read is committed before the partitions are let go of, if the
member commits by itself. Positions are read when the partitions are claimed: until then their last owner may write.

Of the partitions that it had before and has again it goes on where it was, if nobody has committed anything meanwhile.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from typing import Final

from ottla import logs
from ottla.client.errors import CommitFailed, GroupRebalanceFailed
from ottla.client.wire.world import ClientPorts
from ottla.client.zookeeper_groups.assigning import STRATEGIES, Assignment, readers_of
from ottla.client.zookeeper_groups.claims import Claims
from ottla.client.zookeeper_groups.offsets import TreeOffsets
from ottla.client.zookeeper_groups.persistent import make
from ottla.client.zookeeper_groups.settings import ZookeeperConsumerSettings
from ottla.client.zookeeper_groups.share import Share
from ottla.client.zookeeper_groups.znodes import (
    MemberRegistration,
    Subscription,
    decode_member,
    encode_member,
    ids_path,
    member_path,
)
from ottla.config.slices import CoordinationConfig
from ottla.coordination.errors import CoordinationError, NodeExists, NoNode, SessionClosed, SessionExpired
from ottla.coordination.interface import Coordination, SessionEvent, Stat, WatchEvent
from ottla.coordination.znodes import BROKER_IDS, TOPICS, decode_broker, decode_topic, topic_path
from ottla.coordination.zookeeper.client import open_remote
from ottla.model import TopicPartition

#: As clients before Kafka 0.9 did: they spoke in the clear only.
_PLAINTEXT: Final = "PLAINTEXT"

_log = logs.logger("client")


class ZookeeperMember:
    def __init__(
        self,
        settings: ZookeeperConsumerSettings,
        world: ClientPorts,
        name: str,
        subscription: Subscription,
        share: Share,
    ) -> None:
        assert settings.group_id is not None
        self.name = name
        self._settings = settings
        self._group = settings.group_id
        self._world = world
        self._subscription = subscription
        self._share = share
        self._assign = STRATEGIES[settings.partition_assignment_strategy]
        self._tree: Coordination | None = None
        self._claims = Claims(self._group)
        self._offsets = TreeOffsets(self._group)
        #: Set where the tree says something else than when the share was computed.
        self._changed = asyncio.Event()
        #: Held while partitions are let go of or taken, and while offsets are written.
        self._lock = asyncio.Lock()
        self._tasks: list[asyncio.Task[None]] = []

    def begin(self) -> None:
        self._changed.set()
        loop = asyncio.get_running_loop()
        self._tasks.append(loop.create_task(self._balance_always()))
        if self._settings.auto_commit_enable:
            self._tasks.append(loop.create_task(self._commit_always()))

    async def end(self, *, commit: bool) -> None:
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)
        tree, self._tree = self._tree, None
        if tree is None:
            return
        try:
            if commit:
                await self._offsets.write(tree, await self._committable())
        except CoordinationError as fault:
            _log.warning("the last offsets were not committed", group=self._group, fault=str(fault))
        finally:
            # What the session has claimed goes with it.
            await tree.close()

    @property
    def owned(self) -> set[TopicPartition]:
        return set(self._claims.owned)

    def try_again(self) -> None:
        self._changed.set()

    def check(self) -> None:
        """Raises what has ended the work in the background, which nothing should."""
        for task in self._tasks:
            if task.done() and not task.cancelled():
                task.result()

    # Offsets

    async def commit(self) -> None:
        """Raises CommitFailed."""
        async with self._lock:
            tree = self._tree
            if tree is None:
                raise CommitFailed("there is no session with ZooKeeper: the partitions may be another member's by now")
            try:
                await self._offsets.write(tree, await self._committable())
            except CoordinationError as fault:
                raise CommitFailed(f"ZooKeeper did not take the offsets: {fault}") from fault

    async def _committable(self) -> dict[TopicPartition, int]:
        """Of partitions that are claimed: the others' owners write by themselves."""
        return {tp: offset for tp, offset in (await self._share.done()).items() if tp in self._claims.owned}

    async def _commit_always(self) -> None:
        while True:
            await asyncio.sleep(self._settings.auto_commit_interval_ms / 1000)
            try:
                await self.commit()
            except CommitFailed as fault:
                _log.warning("offsets were not committed; the next time may do", group=self._group, fault=str(fault))

    # The session

    async def _session(self) -> Coordination:
        """The one that there is, or a new one in which the member is registered. Raises CoordinationError."""
        if self._tree is not None:
            return self._tree
        settings = self._settings
        config = CoordinationConfig(
            settings.zookeeper_connect,
            settings.zookeeper_session_timeout_ms,
            settings.connection_timeout_ms,
            set_acl=False,
            in_flight_requests_max=10,
        )
        tree = await open_remote(config, self._world, end_with_connection=False)
        tree.listen(lambda event: self._heard(tree, event))
        try:
            await self._register(tree)
        except BaseException:
            await tree.close()
            raise
        self._tree = tree
        return tree

    def _heard(self, tree: Coordination, event: SessionEvent) -> None:
        if event is SessionEvent.EXPIRED and self._tree is tree:
            _log.warning("the session with ZooKeeper is over: another begins", group=self._group, member=self.name)
            self._forget_session()
            self._changed.set()

    def _forget_session(self) -> None:
        """At once: the others may have been given the partitions already."""
        self._tree = None
        self._claims.lost()
        self._offsets.known.clear()
        self._share.end()

    async def _register(self, tree: Coordination) -> None:
        await make(tree, ids_path(self._group))
        now_ms = self._world.clock.wall_ms()
        data = encode_member(MemberRegistration(self._subscription, now_ms))
        # A node of an earlier life of this name goes with its session, which lasts no longer than ours would.
        path, session_ms = member_path(self._group, self.name), self._settings.zookeeper_session_timeout_ms
        for tries_left in reversed(range(2 + 2 * session_ms // max(1, self._settings.backoff_ms))):
            try:
                await tree.create(path, data, ephemeral=True)
            except NodeExists:
                stat = await tree.exists(path)
                is_own = stat is not None and stat.ephemeral_owner == tree.session.id
                if not is_own and not tries_left:
                    raise
                if not is_own:
                    await asyncio.sleep(self._settings.backoff_ms / 1000)
                    continue
            return

    # Balancing

    def _noticed(self, event: WatchEvent) -> None:
        """One and the same for all watches: one that is left twice on a path is called once."""
        self._changed.set()

    async def _balance_always(self) -> None:
        while True:
            await self._changed.wait()
            async with self._lock:
                await self._balance()

    async def _balance(self) -> None:
        settings, why = self._settings, "another member has not let go of a partition"
        for number in range(settings.rebalance_max_retries):
            if number:
                await asyncio.sleep(settings.backoff_ms / 1000)
            self._changed.clear()
            try:
                if await self._try(await self._session()):
                    return
                why = "another member has not let go of a partition"
            except (SessionExpired, SessionClosed) as fault:
                why = str(fault)
                if self._tree is not None:
                    self._forget_session()
            except CoordinationError as fault:
                why = str(fault)
        self._share.end()
        tries = f"{settings.rebalance_max_retries} tries (rebalance.max.retries)"
        self._share.failed(GroupRebalanceFailed(f"{self.name} got no share of {self._group} in {tries}: {why}"))

    async def _try(self, tree: Coordination) -> bool:
        """Takes this member's share as the tree is now; False where something of it is another's still."""
        self._share.hold()
        if self._settings.auto_commit_enable:
            await self._offsets.write(tree, await self._committable())
        await self._claims.release(tree)
        bootstrap = await self._brokers(tree)
        if not bootstrap:
            _log.warning("no broker is registered: nothing can be read until one is", group=self._group)
            self._share.end()
            return True
        mine = {tp: thread for tp, thread in (await self._assignment(tree)).items() if thread.consumer == self.name}
        if not await self._claims.claim(tree, mine):
            return False
        positions = await self._offsets.read(tree, list(mine))
        # Nobody has committed since this member did.
        known = self._offsets.known
        kept = {tp for tp in mine if tp in known and known[tp] == positions[tp]}
        self._offsets.known = dict(positions)
        if self._tree is tree:  # otherwise it has ended meanwhile, and somebody else begins
            self._share.begin(bootstrap, positions, kept)
        return True

    async def _brokers(self, tree: Coordination) -> str:
        """Their addresses; empty where there is none: then they are looked at once more, and watched."""
        try:
            ids = (await tree.children(BROKER_IDS))[0]
            paths = [f"{BROKER_IDS}/{one}" for one in ids]
            found = _addresses(dict(zip(paths, await tree.get_many(paths), strict=True)))
            if found:
                return found
            ids = (await tree.children(BROKER_IDS, self._noticed))[0]
        except NoNode:
            if await tree.exists(BROKER_IDS, self._noticed) is not None:
                self._changed.set()
            return ""
        nodes: dict[str, tuple[bytes, Stat] | None] = {}
        for path in (f"{BROKER_IDS}/{one}" for one in ids):
            with suppress(NoNode):  # the watch on its parent is called
                nodes[path] = await tree.get(path, self._noticed)
        return _addresses(nodes)

    async def _assignment(self, tree: Coordination) -> Assignment:
        subscriptions = await self._members(tree)
        if self.name not in subscriptions:
            # Somebody has deleted it by hand.
            await self._register(tree)
            subscriptions = await self._members(tree)
        known: list[str] = []
        if any(one.is_pattern for one in subscriptions.values()):
            known = (await tree.children(TOPICS, self._noticed))[0]
        excludes = self._settings.exclude_internal_topics
        readers = readers_of(
            {name: one.topics(known, excludes_internal=excludes) for name, one in subscriptions.items()}
        )
        mine = self._subscription.topics(known, excludes_internal=excludes)
        return self._assign(readers, await self._partitions(tree, list(readers), set(mine)))

    async def _members(self, tree: Coordination) -> dict[str, Subscription]:
        names = (await tree.children(ids_path(self._group), self._noticed))[0]
        paths = [member_path(self._group, name) for name in names]
        nodes = await tree.get_many(paths)
        return {
            name: decode_member(path, node[0]).subscription
            for name, path, node in zip(names, paths, nodes, strict=True)
            if node is not None
        }

    async def _partitions(self, tree: Coordination, topics: list[str], watched: set[str]) -> dict[str, list[int]]:
        found: dict[str, list[int]] = {}
        others = [topic for topic in topics if topic not in watched]
        nodes = dict(zip(others, await tree.get_many([topic_path(topic) for topic in others]), strict=True))
        for topic in watched:
            try:
                nodes[topic] = await tree.get(topic_path(topic), self._noticed)
            except NoNode:
                if await tree.exists(topic_path(topic), self._noticed) is not None:
                    self._changed.set()  # it has come between the two looks
                nodes[topic] = None
        for topic, node in nodes.items():
            if node is not None:
                found[topic] = sorted(decode_topic(topic_path(topic), node[0]).replicas)
        return found


def _addresses(nodes: Mapping[str, tuple[bytes, Stat] | None]) -> str:
    """Where the brokers of these paths speak in the clear, as `bootstrap.servers` has it."""
    addresses = []
    for path, node in nodes.items():
        endpoints = () if node is None else decode_broker(path, node[0]).endpoints
        plain = next((one for one in endpoints if one.security_protocol == _PLAINTEXT), None)
        if plain is not None:
            addresses.append(f"[{plain.host}]:{plain.port}" if ":" in plain.host else f"{plain.host}:{plain.port}")
    return ",".join(addresses)
