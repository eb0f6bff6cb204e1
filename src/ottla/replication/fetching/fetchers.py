"""All fetchers of this broker: roles come in, partitions go to the fetcher of their leader and number.

    role ──▶ Fetchers ──▶ Fetcher(leader, number) ──▶ Follower.append
                 │
                 └ number: Kafka's hash of the partition, modulo `num.replica.fetchers`

A partition is fetched by one fetcher, in one role: two that appended to one log would each have checked their batches
against an end that the other has moved.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Final

from ottla.config.live import LiveConfig
from ottla.interbroker.addresses import addresses_on
from ottla.interbroker.links import AddressOf, BrokerAddress, BrokerLinks
from ottla.javahash import java_hash
from ottla.metadata import MetadataCache, MetadataUpdate
from ottla.metadata.doubts import LeaderDoubts
from ottla.model import NO_BROKER, BrokerId, TopicPartition
from ottla.ports import Ports
from ottla.replication.fetching.partition import FetchedPartition, FetchState
from ottla.replication.fetching.surroundings import Surroundings
from ottla.replication.follower import Follower
from ottla.replication.isr_progress import NEVER
from ottla.replication.leader import Leader
from ottla.replication.replicas import Replicas
from ottla.replication.throttles import ReplicationQuota

if TYPE_CHECKING:
    from ottla.replication.fetching.fetcher import Fetcher

_MASK: Final = 0xFFFF_FFFF
_SIGN: Final = 0x8000_0000
#: A fetcher without partitions is kept for so long: a leader goes on in its next leader epoch by giving all of them up
#: and taking them again.
_IDLE_S: Final = 2.0

_Place = tuple[BrokerId, int]


class Fetchers:
    """Implements `RoleListener`."""

    def __init__(
        self,
        broker_id: BrokerId,
        replicas: Replicas,
        ports: Ports,
        live: LiveConfig,
        address_of: AddressOf,
        broker_epoch: Callable[[], int],
        doubts: LeaderDoubts,
    ) -> None:
        self._live = live
        self._number_of_fetchers = live.current.replication.fetchers_per_broker
        quota = replication_quota(ports, live, lambda: live.current.replication.follower_throttled_rate)
        questions = BrokerLinks(address_of, ports, f"broker-{broker_id}-fetcher")
        self._around = Surroundings(
            broker_id, broker_epoch, replicas, address_of, questions, ports, doubts, live, quota
        )
        self._fetchers: dict[_Place, Fetcher] = {}
        #: What is fetched, and where.
        self._of: dict[TopicPartition, Fetcher] = {}
        self._reaper: asyncio.TimerHandle | None = None
        self._closed = False

    # -- roles

    def became_leader(self, leader: Leader) -> None:
        """It has resigned as a follower before."""
        assert leader.tp not in self._of, f"{leader.tp} is led here and fetched"

    def became_follower(self, follower: Follower) -> None:
        if follower.leader_id == NO_BROKER or self._closed:
            return
        self._add(FetchedPartition(follower))

    def resigned(self, tp: TopicPartition) -> None:
        fetcher = self._of.pop(tp, None)
        if fetcher is None:
            return
        fetcher.remove(tp)
        if not len(fetcher.partitions) and self._reaper is None:
            self._reaper = asyncio.get_running_loop().call_later(_IDLE_S, self._reap)

    def _add(self, partition: FetchedPartition) -> None:
        tp, leader = partition.tp, BrokerId(partition.follower.leader_id)
        assert tp not in self._of, f"{tp} is fetched already"
        assert leader != self._around.broker_id, f"{tp} is to be fetched from this broker itself"
        place = (leader, fetcher_number(tp, self._number_of_fetchers))
        fetcher = self._fetchers.get(place)
        if fetcher is None:
            from ottla.replication.fetching.fetcher import Fetcher  # 5 ms to import: a broker alone does without

            fetcher = self._fetchers[place] = Fetcher(*place, self._around)
        self._of[tp] = fetcher
        fetcher.add(partition)

    def _reap(self) -> None:
        self._reaper = None
        for place, fetcher in list(self._fetchers.items()):
            if not len(fetcher.partitions):
                fetcher.close()
                del self._fetchers[place]

    # -- the broker

    def reconfigure(self) -> None:
        """The configuration has changed: with another number of fetchers, all partitions are handed out anew."""
        wanted = self._live.current.replication.fetchers_per_broker
        if wanted == self._number_of_fetchers or self._closed:
            return
        self._number_of_fetchers = wanted
        for tp in list(self._of):
            self._hand_over(tp)

    def _hand_over(self, tp: TopicPartition) -> None:
        """To the fetcher that it belongs to by now."""
        fetcher = self._of.get(tp)
        if fetcher is None or self._closed or fetcher.number == fetcher_number(tp, self._number_of_fetchers):
            return
        partition = fetcher.partitions.by_partition[tp]
        if partition.state is FetchState.CUTTING:
            # Who asked for the cut hears of its end.
            partition.when_cut = partial(self._hand_over, tp)
            return
        self.resigned(tp)
        self._add(partition.anew())

    def look(self) -> None:
        """Brokers have registered or gone."""
        self._around.questions.look()
        for fetcher in list(self._fetchers.values()):
            fetcher.look()

    def close(self) -> None:
        """Nothing is fetched any more; what was answered is not appended."""
        self._closed = True
        if self._reaper is not None:
            self._reaper.cancel()
        for fetcher in self._fetchers.values():
            fetcher.close()
        self._fetchers.clear()
        self._of.clear()
        self._around.questions.close()
        self._around.doubts.close()

    @property
    def agreed_ms(self) -> int:
        """When a leader last answered that knew no more of who leads than this broker; NEVER where none did."""
        return max((fetcher.agreed_ms for fetcher in self._fetchers.values()), default=NEVER)

    # -- for metrics

    @property
    def fetchers(self) -> int:
        return len(self._fetchers)

    def partitions(self) -> Iterator[tuple[Fetcher, FetchedPartition]]:
        for fetcher in list(self._fetchers.values()):
            for partition in list(fetcher.partitions.by_partition.values()):
                yield fetcher, partition

    def each(self) -> Iterator[tuple[Fetcher, BrokerAddress]]:
        """With where its leader is; those are left out whose leader is not there."""
        for fetcher in list(self._fetchers.values()):
            address = self._around.address_of(fetcher.leader)
            if address is not None:
                yield fetcher, address

    def max_lag(self) -> int:
        return max((partition.lag or 0 for _, partition in self.partitions()), default=0)

    def min_fetch_rate(self) -> float:
        return min((fetcher.rate.a_second() for fetcher in list(self._fetchers.values())), default=0.0)

    def failed_partitions(self) -> int:
        return sum(partition.state is FetchState.OUT for _, partition in self.partitions())


def fetcher_number(tp: TopicPartition, fetchers: int) -> int:
    """As Kafka's AbstractFetcherManager: 31 * hash + partition in 32 bits, without its sign."""
    value = (31 * java_hash(tp.topic) + tp.partition) & _MASK
    value = value - (_MASK + 1) if value & _SIGN else value
    return 0 if value == -_SIGN else abs(value) % fetchers


def replication_quota(ports: Ports, live: LiveConfig, bytes_a_second: Callable[[], int]) -> ReplicationQuota:
    replication = live.current.replication
    return ReplicationQuota(
        ports.clock, bytes_a_second, replication.quota_samples, 1000 * replication.quota_sample_seconds
    )


def open_fetchers(
    broker_id: BrokerId, replicas: Replicas, ports: Ports, live: LiveConfig, metadata: MetadataCache
) -> Fetchers:
    """The fetchers of a broker whose metadata says where the others are, on the listener that brokers use."""
    listener = live.current.server.inter_broker_listener
    address_of = addresses_on(listener, metadata)

    def broker_epoch() -> int:
        known = metadata.brokers.get(broker_id)
        return -1 if known is None else known.epoch

    fetchers = Fetchers(broker_id, replicas, ports, live, address_of, broker_epoch, LeaderDoubts(metadata))

    def updated(update: MetadataUpdate) -> None:
        if update.whole or update.brokers is not None:
            fetchers.look()

    metadata.listen(updated)
    replicas.throttle.quota = replication_quota(ports, live, lambda: live.current.replication.leader_throttled_rate)
    return fetchers
