"""A cluster of real processes for tests: brokers and their tree, which a test may kill, pause, cut off and start again.

with ottla.testing.cluster(3) as cluster:
    cluster.create_topic("orders", partitions=3)
    led = cluster.kill_leader("orders", 0)      # SIGKILL; the supervisor starts it again
    cluster.cut(1, 2)                           # they hear nothing of each other, and both hear the third
    cluster.heal()
"""

from __future__ import annotations

import asyncio
import errno
import os
import shutil
import signal
import tempfile
import time
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final, Self, TypeVar

from ottla.client.admin.admin import Admin
from ottla.client.admin.results import ElectionKind, TopicDescription
from ottla.client.arguments import a_kind_of, checked_integer, checked_items, checked_text
from ottla.client.errors import BadArgument, KafkaError, UnknownTopicOrPartition
from ottla.local_cluster.free_ports import free_port
from ottla.local_cluster.layout import BROKERS_MAX, BrokerPlan, Wishes, listener
from ottla.local_cluster.member import Member, StartFailed
from ottla.local_cluster.supervisor import LocalCluster
from ottla.model import TopicPartition
from ottla.testing.links import Links
from ottla.testing.own_loop import OwnLoop

T = TypeVar("T")

_HOST: Final = "127.0.0.1"
#: The name of the tree among the ends of links.
TREE: Final = "tree"
#: How often a start is tried.
_STARTS_MAX: Final = 3
#: How long a start, a stop or a broker's return may take.
SECONDS_MAX: Final = 120.0
#: How long a broker may take to hear of a topic that another one has made.
_HEARD_S_MAX: Final = 30.0
#: How long one broker is asked whether it has: it may have been killed a moment ago.
_ASKED_MS_MAX: Final = 2_000
#: Between two looks at what is waited for.
_LOOK_S: Final = 0.02


class Cluster:
    """`n` broker processes and one for the tree; with `zookeeper` the tree is one that is there."""

    def __init__(
        self,
        n: int = 3,
        *,
        data: str | os.PathLike[str] | None = None,
        properties: Mapping[str, str] | None = None,
        zookeeper: str | None = None,
        racks: Mapping[int, str] | None = None,
        links: bool = True,
        metrics_port: int | None = None,
    ) -> None:
        """`racks` are the brokers'. Without `links` nothing can be cut, and processes reach one another as under
        `ottla up -n`. With `metrics_port` the brokers serve their metrics on that port and the ones behind it."""
        assert links or not racks, "where nothing is arranged for each broker all are alike"
        checked_integer(n, "n", BROKERS_MAX, least=1)
        _check_properties(properties or {})
        for broker, rack in checked_items(racks or {}, "racks must be a mapping of brokers to racks"):
            checked_integer(broker, "racks: the broker", n, least=1)
            checked_text(rack, f"the rack of broker {broker}")
        self.metrics_port = metrics_port
        self._racks = dict(racks or {})
        self._wanted = n
        self._has_links = links
        self._given_data = None if data is None else os.path.abspath(data)
        self._properties = dict(properties or {})
        self._zookeeper = zookeeper
        self._loop = OwnLoop()
        self._temporary: str | None = None
        self._cluster: LocalCluster | None = None
        self._links: Links | None = None
        self._paused: set[int] = set()
        #: HOST:PORT of each broker, in the order of their ids.
        self.addresses: dict[int, str] = {}
        #: What the processes wrote to their logs, in order.
        self.log: list[str] = []

    # -- its life

    def __enter__(self) -> Self:
        try:
            self.start()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def bootstrap(self) -> str:
        """For a client's bootstrap.servers: all brokers."""
        return ",".join(self.addresses.values())

    @property
    def data(self) -> str:
        found = self._given_data or self._temporary
        assert found is not None, "the cluster was not started yet"
        return found

    def start(self) -> None:
        """Serves when it returns. Raises StartFailed."""
        if self._given_data is None and self._temporary is None:
            self._temporary = tempfile.mkdtemp(prefix="ottla-cluster-")
        for left in reversed(range(_STARTS_MAX)):
            try:
                self._run(self._start())
            except StartFailed as failed:
                self.stop()
                # Between the choice of a port and its use another process may have chosen it.
                if not left or os.strerror(errno.EADDRINUSE) not in str(failed):
                    raise
            else:
                return

    async def _start(self) -> None:
        wishes = Wishes(self._wanted, f"{self.data}/data", _HOST, 0, self._properties, self.metrics_port)
        self._links = Links(self._pids)
        self._cluster = cluster = LocalCluster(
            wishes, self._heard, self._zookeeper, self._arranged if self._has_links else None
        )
        found = await cluster.start()
        first = (address.split(",")[0] for address in found)
        self.addresses = dict(zip(cluster.brokers, first, strict=True))

    def stop(self) -> None:
        """As Ctrl-C: the brokers, then the tree."""

        async def work() -> None:
            if self._links is not None:
                self._links.heal()
            if self._cluster is not None:
                for broker in self._paused:  # which hears no other signal
                    self._broker(broker).signal(signal.SIGCONT)
                await self._cluster.stop()
            if self._links is not None:
                await self._links.close()
            self._cluster = self._links = None
            self._paused.clear()

        self._run(work())

    def close(self) -> None:
        try:
            self.stop()
        finally:
            self._loop.end()
            temporary, self._temporary = self._temporary, None
            if temporary is not None:
                shutil.rmtree(temporary, ignore_errors=True)

    # -- what is done to it

    def kill(self, broker: int) -> None:
        """SIGKILL; it is started again."""
        self._paused.discard(broker)
        self._signal(self._broker(broker), signal.SIGKILL)

    def kill_leader(self, topic: str, partition: int = 0) -> int:
        """Which broker that was: one that is elected just now is waited for."""
        leader = self.until_led(topic, partition)
        self.kill(leader)
        return leader

    def move_leader(self, topic: str, partition: int = 0) -> int:
        """The next of its replicas leads it, though nobody has died. Returns who led it before."""
        self.until_in_sync(topic)
        before, tp = self.until_led(topic, partition), TopicPartition(topic, partition)
        replicas = self._described(topic, None).partitions[partition].replicas
        at = replicas.index(before) + 1
        order = [*replicas[at:], *replicas[:at]]
        self._ask(lambda admin: admin.alter_partition_reassignments({tp: order}))
        self.until(lambda: not self._ask(lambda admin: admin.list_partition_reassignments()))

        def is_led_elsewhere() -> bool:
            with suppress(KafkaError):  # it leads already, or its broker's session was over for a moment
                self._ask(lambda admin: admin.elect_leaders(ElectionKind.PREFERRED, [tp]))
            return self.leader(topic, partition) not in (-1, before)

        self.until(is_led_elsewhere)
        return before

    def kill_tree(self) -> None:
        assert self._cluster is not None
        assert self._cluster.tree is not None, "the tree is not this cluster's"
        self._signal(self._cluster.tree, signal.SIGKILL)

    def kill_all(self) -> None:
        """SIGKILL of all brokers and of their tree at once, as when the host dies; `start` starts them again."""

        async def work() -> None:
            assert self._cluster is not None, "the cluster does not run"
            await self._cluster.kill()

        self._run(work())
        self._paused.clear()
        self.stop()

    def pause(self, broker: int) -> None:
        """SIGSTOP: it neither answers nor ends, and its connections stay."""
        member = self._broker(broker)
        self._paused.add(broker)
        self._signal(member, signal.SIGSTOP)

    def resume(self, broker: int) -> None:
        self._paused.discard(broker)
        self._signal(self._broker(broker), signal.SIGCONT)

    def restart(self, broker: int) -> None:
        """A clean stop and a start; clients can connect to it again when this returns."""
        member = self._broker(broker)
        starts = member.starts
        self._signal(member, signal.SIGTERM)
        self.until(lambda: member.starts > starts and member.serving.is_set())

    def cut(self, one: int | str, other: int | str) -> None:
        """Two brokers, or a broker and the `TREE`, hear nothing of each other until `heal`."""
        assert self._has_links, "this cluster was started without links"
        for end in (one, other):
            if end != TREE:
                self._broker(int(end) if isinstance(end, str) and end.isdecimal() else end)  # type: ignore[arg-type]
        self._on_links(lambda links: links.cut(_end(one), _end(other)))

    def heal(self) -> None:
        self._on_links(lambda links: links.heal())

    # -- what it is like

    def pid(self, broker: int) -> int | None:
        return self._broker(broker).pid

    def is_serving(self, broker: int) -> bool:
        return self._broker(broker).serving.is_set()

    def leader(self, topic: str, partition: int = 0, *, asked: Sequence[int] | None = None) -> int:
        """-1 while nobody leads; as one of these brokers knows, or any."""
        leader = self._described(topic, asked).partitions[partition].leader
        return -1 if leader is None else leader

    def until_led(self, topic: str, partition: int = 0, *, asked: Sequence[int] | None = None) -> int:
        """The leader. A broker that has just come, and one before an election, name none: these are asked again."""
        found = -1

        def is_named() -> bool:
            nonlocal found
            found = self.leader(topic, partition, asked=asked)
            return found != -1

        self.until(is_named)
        return found

    def controller(self) -> int:
        """-1 while there is none."""
        found = self._ask(lambda admin: admin.describe_cluster()).controller_id
        return -1 if found is None else found

    def isrs(self, topic: str, *, asked: Sequence[int] | None = None) -> list[tuple[int, ...]]:
        """The in-sync replicas of each partition; as one of these brokers knows, or any."""
        return [partition.isr for partition in self._described(topic, asked).partitions]

    def _described(self, topic: str, asked: Sequence[int] | None) -> TopicDescription:
        bootstrap = ",".join(self.addresses[broker] for broker in asked or self.addresses)

        async def work() -> TopicDescription:
            ends = time.monotonic() + _HEARD_S_MAX
            async with Admin(bootstrap_servers=bootstrap) as admin:
                while True:
                    try:
                        return await admin.describe_topic(topic)
                    except UnknownTopicOrPartition:
                        if time.monotonic() >= ends:
                            raise
                    await asyncio.sleep(_LOOK_S)

        return self._run(work())

    def create_topic(
        self,
        name: str,
        partitions: int = 1,
        replication_factor: int = -1,
        configs: Mapping[str, str] | None = None,
    ) -> None:
        """Whichever broker is asked next knows the topic and its leaders, unless it is paused or a link is cut."""

        async def work() -> None:
            async with Admin(bootstrap_servers=self.bootstrap) as admin:
                await admin.create_topic(
                    name, partitions=partitions, replication_factor=replication_factor, configs=dict(configs or {})
                )
            await self._until_heard(name)

        self._run(work())

    def until_heard(self, topic: str) -> None:
        """Every broker that is not paused serves, and knows the topic and its leaders."""
        awake = [broker for broker in self.addresses if broker not in self._paused]
        self.until(lambda: all(map(self.is_serving, awake)))
        self._run(self._until_heard(topic))

    async def _until_heard(self, topic: str) -> None:
        """Brokers hear of a new topic from the controller, each at its own pace."""
        ends = time.monotonic() + _HEARD_S_MAX
        waiting = set(self.addresses)
        while waiting and time.monotonic() < ends:
            for broker in sorted(waiting):
                if not self._hears(broker) or await self._knows(broker, topic):
                    waiting.discard(broker)
            await asyncio.sleep(_LOOK_S)

    def _hears(self, broker: int) -> bool:
        assert self._links is not None
        return self.is_serving(broker) and broker not in self._paused and self._links.are_whole

    async def _knows(self, broker: int, topic: str) -> bool:
        described = await self._as_known_to(broker, topic)
        return described is not None and all(partition.leader is not None for partition in described.partitions)

    def until_in_sync(self, topic: str) -> None:
        """All replicas are in sync, as every broker says that is not paused: one of them may not have heard yet that a
        replica has left."""
        self.until_heard(topic)
        self._run(self._until_in_sync(topic))

    async def _until_in_sync(self, topic: str) -> None:
        ends = time.monotonic() + SECONDS_MAX
        for broker in self.addresses:
            while broker not in self._paused and not _is_in_sync(await self._as_known_to(broker, topic)):
                if time.monotonic() >= ends:
                    raise TimeoutError(f"as broker {broker} knows, not all replicas of {topic} came in sync")
                await asyncio.sleep(_LOOK_S)

    async def _as_known_to(self, broker: int, topic: str) -> TopicDescription | None:
        """A new client asks the address that it is given; one that is kept may ask another broker."""
        async with Admin(bootstrap_servers=self.addresses[broker], default_api_timeout_ms=_ASKED_MS_MAX) as admin:
            try:
                return await admin.describe_topic(topic)
            except KafkaError:
                return None

    def until(self, holds: Callable[[], bool], seconds: float = SECONDS_MAX) -> None:
        """Raises TimeoutError where it does not come to be."""
        ends = time.monotonic() + seconds
        while not holds():
            if time.monotonic() >= ends:
                raise TimeoutError(f"it did not come to be within {seconds:g} s")
            time.sleep(_LOOK_S)

    # -- its parts

    async def _arranged(self, plan: BrokerPlan) -> BrokerPlan:
        """Brokers reach one another, and the tree, through links."""
        links, cluster = self._links, self._cluster
        assert links is not None
        assert cluster is not None
        assert cluster.zookeeper is not None
        inside = free_port(_HOST)
        outside = plan.own["listeners"]
        advertised = await links.proxy(str(plan.id), lambda: inside)
        tree_port = int(cluster.zookeeper.split(",")[0].rpartition(":")[2].split("/")[0])
        tree = await links.proxy(TREE, lambda: tree_port)
        own = {
            **plan.own,
            "listeners": f"{outside},{listener(_HOST, inside).replace('PLAINTEXT', 'INTERNAL')}",
            "advertised.listeners": f"{outside},INTERNAL://{_HOST}:{advertised}",
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,INTERNAL:PLAINTEXT",
            "inter.broker.listener.name": "INTERNAL",
            "zookeeper.connect": f"{_HOST}:{tree}",
        }
        if plan.id in self._racks:
            own["broker.rack"] = self._racks[plan.id]
        return plan._replace(own=own, properties={**plan.properties, **own})

    def _pids(self) -> dict[str, int]:
        assert self._cluster is not None
        members = {str(number): member for number, member in self._cluster.brokers.items()}
        return {name: member.pid for name, member in members.items() if member.pid is not None}

    def _heard(self, name: str, line: bytes) -> None:
        self.log.append(f"{name}: {line.decode(errors='replace').rstrip()}")

    def _broker(self, broker: int) -> Member:
        assert self._cluster is not None, "the cluster does not run"
        found = self._cluster.brokers.get(broker)
        if found is None:
            there = ", ".join(map(str, self._cluster.brokers))
            raise BadArgument(f"there is no broker {broker!r:.80}: the cluster has {there}")
        return found

    def _signal(self, member: Member, number: int) -> None:
        async def work() -> None:
            member.signal(number)

        self._run(work())

    def _on_links(self, call: Callable[[Links], None]) -> None:
        async def work() -> None:
            assert self._links is not None
            call(self._links)

        self._run(work())

    def _ask(self, question: Callable[[Admin], Awaitable[T]]) -> T:
        async def work() -> T:
            async with Admin(bootstrap_servers=self.bootstrap) as admin:
                return await question(admin)

        return self._run(work())

    def _run(self, work: Coroutine[Any, Any, T]) -> T:
        return self._loop.submit(lambda: work).result(SECONDS_MAX + 60)


#: What is arranged for each broker.
_ARRANGED: Final = frozenset(
    {
        "advertised.listeners",
        "broker.id",
        "broker.rack",
        "inter.broker.listener.name",
        "listener.security.protocol.map",
        "listeners",
        "log.dirs",
        "node.id",
        "zookeeper.connect",
    }
)


def _check_properties(properties: Mapping[str, str]) -> None:
    for name, value in checked_items(properties, "properties must be a mapping of Kafka's names to values"):
        checked_text(name, "the name of a property")
        if not isinstance(value, str):
            raise BadArgument(f"the value of {name} must be a str, not {a_kind_of(value)}")
        if name in _ARRANGED:
            more = ": say racks={1: 'a', 2: 'b'}" if name == "broker.rack" else ""
            raise BadArgument(f"each broker of the cluster has its own {name}, which is arranged for it{more}")


def _end(name: int | str) -> str:
    return str(name)


def _is_in_sync(topic: TopicDescription | None) -> bool:
    return topic is not None and all(set(one.isr) == set(one.replicas) for one in topic.partitions)
