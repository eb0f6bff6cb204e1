"""What a leader says of its in-sync set, whatever the topic asks for."""

from __future__ import annotations

import pytest
from tests.replication.journal_world import CONFIG, JournalWorld


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
