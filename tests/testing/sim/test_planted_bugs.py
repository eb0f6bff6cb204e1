"""Bugs are planted in the broker, and the runs must find them: checks that never fail show nothing.

Each is a mistake that is easily made. The seed is one that finds it; the slow run finds it again from other seeds.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random
from typing import Any

import pytest
from tests.testing.sim.power_cycles import PowerCycles

from ottla.coordination.journal import JournalFile
from ottla.ports.memory.disk import MemoryDisk
from ottla.replication.leader import Leader
from ottla.replication.log_files import LogFiles
from ottla.storage.formats import epoch_checkpoint
from ottla.storage.log.durability import Durability
from ottla.storage.log.producers import snapshots
from ottla.storage.log.producers.producer_state import ProducerStates

Plant = Callable[[pytest.MonkeyPatch], None]


def acknowledged_before_the_flush(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Leader, "durable_end", property(lambda leader: leader.log.end_offset))


def high_watermark_above_the_flush(patch: pytest.MonkeyPatch) -> None:
    def advance(leader: Leader) -> bool:
        leader.high_watermark = leader.log.end_offset
        return True

    patch.setattr(Leader, "advance", advance)


def recovery_point_before_the_flush(patch: pytest.MonkeyPatch) -> None:
    prepare = Durability.prepare

    def prepared(durability: Durability, *, closing: bool) -> Any:
        found = prepare(durability, closing=closing)
        if found is not None:
            durability.recovery_point = durability.certain_end = found.offset
        return found

    patch.setattr(Durability, "prepare", prepared)


def epochs_never_written(patch: pytest.MonkeyPatch) -> None:
    """Then nothing syncs the folder either, in which a new log file stands."""
    patch.setattr(epoch_checkpoint, "write", lambda *_: None)


def journal_not_synced(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(JournalFile, "sync", lambda _: None)


def names_not_synced(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(MemoryDisk, "sync_directory", lambda *_: None)


def repetitions_stored_again(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(ProducerStates, "_repeated", lambda *_: None)


def repetitions_forgotten_by_a_start(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(snapshots, "recall", lambda *_: None)


def shown_shorter_after_a_start(patch: pytest.MonkeyPatch) -> None:
    async def nothing(_: LogFiles) -> None:
        pass

    patch.setattr(LogFiles, "flush_found", nothing)


#: With the first seed that finds it.
PLANTED: dict[Plant, int] = {
    acknowledged_before_the_flush: 3,
    high_watermark_above_the_flush: 3,
    recovery_point_before_the_flush: 31,
    epochs_never_written: 2,
    journal_not_synced: 2,
    names_not_synced: 0,
    repetitions_stored_again: 0,
    repetitions_forgotten_by_a_start: 18,
    shown_shorter_after_a_start: 0,
}


def found_by(seeds: Sequence[int]) -> int | None:
    for seed in seeds:
        try:
            PowerCycles(seed).run()
        except AssertionError:
            return seed
    return None


@pytest.mark.parametrize("plant", PLANTED, ids=lambda plant: plant.__name__)
def test_a_kept_seed_finds_it(plant: Plant, monkeypatch: pytest.MonkeyPatch) -> None:
    plant(monkeypatch)
    # Every change of the broker changes what a seed does: the next ones then find it.
    first = PLANTED[plant]
    assert found_by(range(first, first + 150)) is not None


@pytest.mark.slow
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("plant", PLANTED, ids=lambda plant: plant.__name__)
def test_random_seeds_find_it(plant: Plant, monkeypatch: pytest.MonkeyPatch) -> None:
    plant(monkeypatch)
    first = Random().randrange(1 << 32)
    found = found_by(range(first, first + 400))
    print(f"\n{plant.__name__}: found by seed {found}, the {0 if found is None else found - first + 1}th")
    assert found is not None
