"""A dispatcher before a group coordinator whose journals are in memory, in virtual time: for requests of groups alone.

Connections are the server's own; their sockets take everything, and keep it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

from tests.groups.journal import MemoryJournal

from ottla.config import Config
from ottla.groups.coordinator import GroupCoordinator
from ottla.groups.shard import GroupShard
from ottla.handlers.calls.call import Services
from ottla.handlers.calls.loading import load_api
from ottla.handlers.calls.request_metrics import RequestMetrics
from ottla.handlers.calls.turns import Turns
from ottla.handlers.on_demand.groups import GroupsOnDemand
from ottla.handlers.routes import OFFSET_COMMIT
from ottla.metadata.cache import MetadataCache
from ottla.metadata.features import FinalizedFeatures
from ottla.metadata.updates import MetadataUpdate, PartitionState
from ottla.metrics import Registry
from ottla.model import BrokerId, Epoch, ErrorCode, TopicId
from ottla.ports.memory.clock import VirtualClock
from ottla.ports.memory.entropy import SeededEntropy
from ottla.ports.memory.loop import VirtualLoop
from ottla.replication.round import Participant
from ottla.security.authorizer import Operation, Resource
from ottla.security.policy import Policy
from ottla.security.principal import Principal
from ottla.security.quotas import Use
from ottla.server.answer_memory import AnswerMemory
from ottla.server.buffers import Buffer
from ottla.server.connection import Connection
from ottla.server.dispatch import Dispatcher
from ottla.server.listeners import ServedListener

PARTITIONS = 3
HELD_BACK_MS = 55
BROKER = BrokerId(1)


class Choosy:
    """Allows all but what stands in `denied`, and says when that changes."""

    allows_all = False
    announces = True

    def __init__(self) -> None:
        self.denied: set[tuple[Resource, str]] = set()
        self._changed: Callable[[], None] = lambda: None

    def listen(self, changed: Callable[[], None]) -> None:
        self._changed = changed

    def turn(self, resource: Resource, name: str) -> None:
        """What was allowed is denied, or the other way round."""
        self._changed()
        self.denied ^= {(resource, name)}

    def allowed(self, principal: Principal, host: str, operation: Operation, resource: Resource, name: str) -> bool:
        return (resource, name) not in self.denied


class Slow:
    """Holds everybody back while it counts, and says when that changes."""

    unlimited = False
    announces = True

    def __init__(self) -> None:
        self.is_counting = False
        self._changed: Callable[[], None] = lambda: None

    def listen(self, changed: Callable[[], None]) -> None:
        self._changed = changed

    def turn(self) -> None:
        self._changed()
        self.is_counting = not self.is_counting

    def counts(self, principal: Principal, client_id: str | None) -> bool:
        return self.is_counting

    def throttle_ms(self, principal: Principal, client_id: str | None, use: Use, amount: float, now_ms: int) -> int:
        return HELD_BACK_MS if self.is_counting else 0


class Socket:
    peer, peer_port, is_local = "127.0.0.1", 1, True

    def __init__(self) -> None:
        self.sent = b""

    def receive_into(self, view: memoryview) -> int:
        raise BlockingIOError

    def send(self, data: bytes) -> int:
        self.sent += bytes(data)
        return len(data)

    def fileno(self) -> int:
        return -1

    def watch(self, *, reading: bool, writing: bool) -> None: ...

    def close(self) -> None: ...


class Unasked(Participant):
    """In the place of the handlers that serve themselves in rounds."""

    def serve(self, *_: object) -> None:
        raise AssertionError("no such request is sent here")


class Rounds:
    """One round for each request."""

    wall_ms = began_ms = 0

    def join(self, participant: Participant) -> None: ...


class Room:
    def __init__(self, loop: VirtualLoop, *, recognises: bool = True) -> None:
        self.clock = VirtualClock(loop.timeline)
        self.metadata = MetadataCache()
        self.live = SimpleNamespace(current=Config.parse({"group.initial.rebalance.delay.ms": "0"}))
        self.coordinator = GroupCoordinator(
            lambda: self.live.current.groups, self.metadata, self.clock, SeededEntropy(1)
        )
        self.authorizer, self.quotas, self.round = Choosy(), Slow(), Rounds()
        self.journals = [MemoryJournal() for _ in range(PARTITIONS)]
        registry = Registry()
        nothing: Any = None
        self.services = Services(
            **dict.fromkeys(Services._fields, nothing)
            | {
                "broker_id": BROKER,
                "live": self.live,
                "clock": self.clock,
                "metadata": self.metadata,
                "features": FinalizedFeatures(),
                "authorizer": self.authorizer,
                "quotas": self.quotas,
                "policy": Policy(self.authorizer, self.quotas),
                "groups_on_demand": GroupsOnDemand(lambda: self.coordinator),
                "round": self.round,
                "metrics": RequestMetrics(registry, nothing, self.clock),
                "turns": Turns(self.clock),
            }
        )
        load_api(OFFSET_COMMIT)
        unasked: Any = Unasked()
        memory = AnswerMemory(self.clock, lambda _: None)
        self.dispatcher = Dispatcher(self.services, unasked, unasked, memory)
        #: How many requests were served without being decoded.
        self.recognised = 0
        plain = self.dispatcher._recognised[OFFSET_COMMIT]

        def counted(*arguments: Any) -> bool:
            found = recognises and plain(*arguments)
            self.recognised += found
            return found

        self.dispatcher._recognised[OFFSET_COMMIT] = counted
        self._touched: list[Connection] = []

    # The cluster.

    def announce(self, topic: str, topic_id: bytes, partitions: int) -> None:
        states = [
            PartitionState(
                topic=topic,
                topic_id=TopicId(topic_id),
                partition=number,
                leader=BROKER,
                controller_epoch=Epoch(1),
                partition_epoch=0,
                leader_epoch=Epoch(0),
                replicas=(BROKER,),
                isr=(BROKER,),
            )
            for number in range(partitions)
        ]
        assert self.metadata.apply(MetadataUpdate(controller_epoch=Epoch(1), partitions=states))

    def delete_topic(self, topic: str) -> None:
        assert self.metadata.apply(MetadataUpdate(controller_epoch=Epoch(1), topics_deleted=[topic]))

    async def lead(self, partition: int) -> None:
        """This broker coordinates the groups of one more partition, and has loaded them."""
        self.journals[partition].held = True
        self.coordinator.led.elected(partition, self.journals[partition])
        await self.turns()

    async def lose(self, partition: int) -> None:
        """The disk refuses what was written last."""
        self.journals[partition].lose(ErrorCode.NOT_COORDINATOR)
        self.journals[partition].held = True
        self.coordinator.led.journal_failed(partition)
        await self.turns()

    async def turns(self) -> None:
        for _ in range(10):
            await asyncio.sleep(0)

    def settle(self) -> None:
        """What was written is committed."""
        for journal in self.journals:
            journal.commit()
            journal.held = True
        self._send()

    def shard(self, partition: int) -> GroupShard | None:
        found = self.coordinator.led.find(partition)
        return None if isinstance(found, ErrorCode) else found

    # Clients.

    def connect(self) -> Connection:
        socket: Any = Socket()
        return Connection(socket, ServedListener("PLAINTEXT"), 0, self._touched.append)

    def serve(self, connection: Connection, frame: bytes) -> None:
        """A request on an open connection: as rounds hand it over, in a buffer that is used for others afterwards."""
        buffer = Buffer(64 * 1024)
        buffer.data[: len(frame)] = frame
        self.round.wall_ms, self.round.began_ms = self.clock.wall_ms(), self.clock.monotonic_ms()
        if not connection.closed:
            assert connection.takes(8)
            self.dispatcher.serve(connection, buffer, 4, len(frame))
        buffer.data[: len(frame)] = bytes(len(frame))
        self._send()

    def _send(self) -> None:
        touched, self._touched[:] = list(self._touched), []
        for connection in touched:
            if connection.answers and not connection.closed:
                connection.send_answers()

    @staticmethod
    def sent(connection: Connection) -> bytes:
        """All that the client has been sent."""
        socket: Any = connection.channel
        return bytes(socket.sent)
