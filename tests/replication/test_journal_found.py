"""What a coordinator finds in its journal, at its election or later, is not known to be committed at once."""

from __future__ import annotations

import errno

import pytest
from tests.replication.journal_world import TP, JournalWorld

from ottla.model import ErrorCode

NONE = ErrorCode.NONE


def test_what_was_there_at_the_election_is_known_to_be_committed() -> None:
    world = JournalWorld(replicas=(1, 2))
    with world.round():
        world.write("a", (b"k", b"v"))
    world.lead(epoch=7, replicas=(1, 2))
    world.told.clear()
    world.journal.when_found_committed(lambda error: world.told.append(("found", error)))
    world.empty_round()
    assert world.told == []
    world.leader.follower_fetched(2, 1)
    world.replicas.waiters.changed(TP)
    world.empty_round()
    assert world.told == [("found", NONE)]
    world.journal.when_found_committed(lambda error: world.told.append(("again", error)))
    assert world.told[1:] == [("again", NONE)]


@pytest.mark.parametrize("is_given_up", [False, True])
def test_what_a_later_load_finds_is_known_to_be_committed(is_given_up: bool) -> None:
    """After a write that was lost: what was written before it stands in the log, above the high watermark."""
    world = JournalWorld(replicas=(1, 2))
    with world.round():
        world.write("a", (b"k", b"v"))
    if is_given_up:
        world.journal.give_up(AssertionError("a fault of ours"))
    else:
        world.ports.disk.fail("append", f"*/{TP}/*.log", errno.ENOSPC, times=1)
        with world.round():
            world.write("b", (b"k", b"w"))
    assert world.lost == [TP]
    assert world.batches() == [[(b"k", b"v")]]
    world.told.clear()
    world.journal.when_found_committed(lambda error: world.told.append(("found", error)))
    world.settled("settled")
    world.empty_round()
    assert world.told == []
    world.leader.follower_fetched(2, 1)
    world.replicas.waiters.changed(TP)
    world.empty_round()
    assert world.told_names()[-2:] == ["found", "settled"]
