"""Which brokers hold a new partition's replicas.

With n brokers in order, partition i leads on broker i mod n and its other replicas follow around the ring. Two things
keep that even: the ring starts at a random broker, so that topics of one partition do not all land on the first; and
once around, the followers are shifted by one more, so that what one broker leads is followed by all the others in turn,
and its load spreads over all of them when it dies. With racks, the ring alternates between them, and a follower goes
where no replica is yet, first by rack, then by broker.

The arithmetic is Kafka's (its AdminUtils), so that plans of Kafka's tools and ours agree.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ottla.model import BrokerId
from ottla.steps import PIECE, Steps, at_once

Assignment = tuple[BrokerId, ...]


def place(
    brokers: Mapping[BrokerId, str | None],
    partitions: int,
    replication_factor: int,
    *,
    start: int,
    shift: int,
    first_partition: int = 0,
) -> list[Assignment]:
    """As `placing`, at once."""
    return at_once(
        placing(brokers, partitions, replication_factor, start=start, shift=shift, first_partition=first_partition)
    )


def placing(
    brokers: Mapping[BrokerId, str | None],
    partitions: int,
    replication_factor: int,
    *,
    start: int,
    shift: int,
    first_partition: int = 0,
) -> Steps[list[Assignment]]:
    """The replicas of partitions `first_partition` and following, on `brokers` (id -> rack).

    `start` is where the ring starts and `shift` the distance to the first follower: both random for a new topic, both
    the place of the first partition's leader for one that grows. Racks count only when every broker has one.
    """
    assert partitions >= 0
    assert 0 < replication_factor <= len(brokers)
    racks = {broker: rack for broker, rack in sorted(brokers.items()) if rack is not None}
    with_racks = len(racks) == len(brokers)
    ring = _alternated(racks) if with_racks else sorted(brokers)
    placed: list[Assignment] = []
    for partition in range(first_partition, first_partition + partitions):
        if partition > 0 and partition % len(ring) == 0:
            shift += 1
        leader_at = (partition + start) % len(ring)
        if with_racks:
            placed.append(_across_racks(ring, racks, leader_at, shift, replication_factor))
        else:
            followers = (ring[_follower_at(leader_at, shift, j, len(ring))] for j in range(replication_factor - 1))
            placed.append((ring[leader_at], *followers))
        if partition % PIECE == 0:
            yield
    return placed


def growth_start(brokers: Mapping[BrokerId, str | None], first_leader: BrokerId) -> int:
    """Where the ring starts for a topic that grows: at its first leader, or at the next broker that is there."""
    return next((index for index, broker in enumerate(sorted(brokers)) if broker >= first_leader), 0)


def _follower_at(leader_at: int, shift: int, follower: int, brokers: int) -> int:
    """A place in the ring other than the leader's."""
    return (leader_at + 1 + (shift + follower) % (brokers - 1)) % brokers


def _across_racks(
    ring: Sequence[BrokerId], racks: Mapping[BrokerId, str], leader_at: int, shift: int, replication_factor: int
) -> Assignment:
    rack_count = len(set(racks.values()))
    replicas = [ring[leader_at]]
    used_racks = {racks[ring[leader_at]]}
    step = 0
    while len(replicas) < replication_factor:
        broker = ring[_follower_at(leader_at, shift * rack_count, step, len(ring))]
        step += 1
        rack_is_free = racks[broker] not in used_racks or len(used_racks) == rack_count
        if rack_is_free and broker not in replicas:
            replicas.append(broker)
            used_racks.add(racks[broker])
    return tuple(replicas)


def _alternated(racks: Mapping[BrokerId, str]) -> list[BrokerId]:
    """One broker of each rack in turn: with racks a (0, 1), b (2, 3), c (4): 0, 2, 4, 1, 3."""
    by_rack: dict[str, list[BrokerId]] = {}
    for broker, rack in sorted(racks.items()):
        by_rack.setdefault(rack, []).append(broker)
    ring: list[BrokerId] = []
    for turn in range(max(map(len, by_rack.values()))):
        ring.extend(by_rack[rack][turn] for rack in sorted(by_rack) if turn < len(by_rack[rack]))
    return ring
