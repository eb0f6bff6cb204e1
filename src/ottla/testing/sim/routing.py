"""A client of a cluster: knows by Metadata who leads what, and asks again, somebody else, whenever that was wrong.

It has some machines to begin with, and one connection to each broker that it has business with. What it believes is
dropped at an error; the next to need it asks one machine after the other.
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Any, Final

from ottla.model import ErrorCode, TopicPartition
from ottla.ports import Network
from ottla.protocol.generated.metadata import MetadataRequest
from ottla.protocol.message import Message
from ottla.testing.sim.wire import Client, Unreachable

METADATA_VERSION: Final = 12
Address = tuple[str, int]


class ClusterClient:
    """Has the face of a `Client`, so that what talks to one broker talks to a cluster as well."""

    def __init__(self, network: Network, name: str, bootstrap: Sequence[Address], random: Random) -> None:
        self.name = name
        self._network = network
        self._bootstrap = list(bootstrap)
        self._random = random
        #: By address.
        self._clients: dict[Address, Client] = {}
        self._addresses: dict[int, Address] = {}
        #: Leader, -1 where nobody leads.
        self._leaders: dict[TopicPartition, int] = {}
        #: Topic id and leader epoch of the newest answer: what is older comes from somebody who has not heard of it.
        self._epochs: dict[TopicPartition, tuple[bytes, int]] = {}
        self.controller = -1
        #: Of all topics that it has heard of, by their names.
        self.topic_ids: dict[str, bytes] = {}
        #: How often it asked for metadata, and how often an answer named nobody.
        self.refreshes = 0

    def _at(self, address: Address) -> Client:
        client = self._clients.get(address)
        if client is None:
            client = self._clients[address] = Client(self._network, self.name, *address)
        return client

    # Who leads what

    async def refresh(self) -> None:
        """Asks one machine after the other, beginning anywhere. Raises Unreachable where none answers."""
        self.refreshes += 1
        known = list(dict.fromkeys([*self._addresses.values(), *self._bootstrap]))
        self._random.shuffle(known)
        for address in known:
            try:
                answer = await self._at(address).ask(MetadataRequest(topics=None), METADATA_VERSION)
            except Unreachable:
                continue
            if answer.brokers:
                self._take(answer)
                return
        raise Unreachable("nobody answers for the cluster")

    def _take(self, answer: Any) -> None:
        self._addresses = {broker.node_id: (broker.host, broker.port) for broker in answer.brokers}
        self.controller = answer.controller_id
        self._leaders = {}
        for topic in answer.topics:
            topic_id = self.topic_ids[topic.name] = bytes(topic.topic_id)
            for partition in topic.partitions:
                tp = TopicPartition(topic.name, partition.partition_index)
                known_id, known_epoch = self._epochs.get(tp, (topic_id, -1))
                if known_id != topic_id or partition.leader_epoch >= known_epoch:
                    self._epochs[tp] = topic_id, partition.leader_epoch
                    self._leaders[tp] = partition.leader_id

    def epoch_of(self, tp: TopicPartition) -> int:
        """The newest leader epoch that it has heard of; -1 where it has of none."""
        return self._epochs.get(tp, (b"", -1))[1]

    def forget(self, tp: TopicPartition) -> None:
        """Its leader is another one: an answer said so, or none came."""
        self._leaders.pop(tp, None)

    async def leader_of(self, tp: TopicPartition) -> int:
        """Raises Unreachable where nobody is known to lead it."""
        leader = self._leaders.get(tp, -1)
        if leader not in self._addresses:
            await self.refresh()
            leader = self._leaders.get(tp, -1)
            if leader not in self._addresses:
                raise Unreachable(f"nobody leads {tp}")
        return leader

    async def follower_of(self, tp: TopicPartition) -> Client:
        """Any broker that does not lead it: each has a replica, or says that it has none. Raises Unreachable."""
        leader = await self.leader_of(tp)
        others = sorted(self._addresses.keys() - {leader})
        if not others:
            raise Unreachable(f"nobody follows {tp}")
        return self.broker(self._random.choice(others))

    def broker(self, broker: int) -> Client:
        """Raises Unreachable where it is unknown."""
        address = self._addresses.get(broker)
        if address is None:
            raise Unreachable(f"broker {broker} is unknown")
        return self._at(address)

    # Requests

    async def ask(self, message: Message, version: int) -> Any:
        """Of any broker. One attempt; raises Unreachable."""
        return await (await self._anybody()).ask(message, version)

    async def ask_leader(self, tp: TopicPartition, message: Message, version: int) -> Any:
        """One attempt; raises Unreachable."""
        leader = await self.leader_of(tp)
        try:
            return await self.broker(leader).ask(message, version)
        except Unreachable:
            self.forget(tp)
            raise

    async def ask_controller(self, message: Message, version: int) -> Any:
        """Of the broker that Metadata names as the controller: with forwarding, any."""
        await self.refresh()
        return await self.broker(self.controller).ask(message, version)

    async def _anybody(self) -> Client:
        if not self._addresses:
            await self.refresh()
        return self.broker(self._random.choice(sorted(self._addresses)))

    def close(self) -> None:
        for client in self._clients.values():
            client.close()


#: The leader has moved, or is not known yet.
MOVED: Final = frozenset(
    {
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.LEADER_NOT_AVAILABLE,
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.UNKNOWN_LEADER_EPOCH,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.KAFKA_STORAGE_ERROR,
        ErrorCode.REPLICA_NOT_AVAILABLE,
        ErrorCode.BROKER_NOT_AVAILABLE,
    }
)
