"""What a leader says of its in-sync set, whatever the topic asks for."""

from __future__ import annotations

import pytest
from tests.replication.journal_world import CONFIG, NOW, JournalWorld
from tests.storage.log_world import batch, marker

from ottla.config.log import LogConfig
from ottla.storage.log.append import Origin


@pytest.mark.parametrize(
    ("asked", "replicas", "in_sync", "enough"),
    [
        (1, (1,), (1,), True),
        (2, (1,), (1,), True),
        (2, (1, 2), (1,), False),
        (2, (1, 2), (1, 2), True),
        (2, (1, 2, 3), (1, 2), True),
        (3, (1, 2), (1, 2), True),
        (3, (1, 2), (1,), False),
        (3, (1, 2, 3), (1, 2), False),
    ],
)
def test_all_of_the_replicas_are_enough(
    asked: int, replicas: tuple[int, ...], in_sync: tuple[int, ...], enough: bool
) -> None:
    """Kafka 4's effective minimum: min.insync.replicas, or the number of replicas where that is smaller."""
    world = JournalWorld(CONFIG._replace(min_insync_replicas=asked))
    world.lead(epoch=1, replicas=replicas, isr=in_sync)
    assert world.leader.has_enough_replicas() is enough


def staged(world: JournalWorld, records: memoryview, origin: Origin = Origin.CLIENT) -> None:
    leader = world.leader
    with world.round():
        leader.log.stage(records, leader.epoch, NOW, origin)
        world.writes.staged(leader)


def test_readers_of_committed_records_wait_until_the_marker_is_on_all_replicas() -> None:
    """The leader has it, and may be gone with it: what its follower then says is open was not decided for readers."""
    world = JournalWorld(LogConfig(), replicas=(1, 2))
    leader = world.leader
    staged(world, batch(b"plain"))
    for sequence in range(2):
        staged(world, batch(b"v", producer=(7, 0, sequence), transactional=True))
    staged(world, marker(7, 0, aborts=False), Origin.COORDINATOR)
    told = []
    for fetched in range(5):
        leader.follower_fetched(2, fetched)
        told.append((leader.high_watermark, leader.last_stable_offset))
    assert told == [(0, 0), (1, 1), (2, 1), (3, 1), (4, 4)]


def test_ended_transactions_are_forgotten_though_nobody_reads() -> None:
    world = JournalWorld(LogConfig())
    for number in range(20):
        staged(world, batch(b"v", producer=(7, 0, number), transactional=True))
        staged(world, marker(7, 0, aborts=False), Origin.COORDINATOR)
    assert len(world.leader.log.producers._open._uncommitted) <= 1
