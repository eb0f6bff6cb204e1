"""What is committed follows from what each in-sync replica has."""

from __future__ import annotations

import pytest

from ottla.replication.isr import InSyncReplicas


def test_a_leader_alone_commits_what_it_has() -> None:
    assert InSyncReplicas(1, [1], [1]).committed(7) == 7


def test_a_follower_that_never_asked_holds_everything_back() -> None:
    assert InSyncReplicas(1, [1, 2], [1, 2]).committed(7) == 0


def test_the_slowest_member_decides() -> None:
    isr = InSyncReplicas(1, [1, 2, 3], [1, 2, 3])
    isr.followers[2].end = 5
    isr.followers[3].end = 4
    assert isr.committed(7) == 4


def test_a_follower_ahead_of_the_leader_commits_no_more_than_the_leader_has() -> None:
    isr = InSyncReplicas(1, [1, 2], [1, 2])
    isr.followers[2].end = 9
    assert isr.committed(7) == 7


def test_a_replica_outside_the_set_decides_nothing() -> None:
    isr = InSyncReplicas(1, [1, 2, 3], [1, 2])
    isr.followers[2].end = 6
    isr.followers[3].end = 1
    assert isr.committed(7) == 6


def test_a_leader_outside_its_own_set_is_our_bug() -> None:
    with pytest.raises(AssertionError, match="in-sync"):
        InSyncReplicas(1, [1, 2], [2])
