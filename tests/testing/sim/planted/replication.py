"""Bugs in the leader's and the follower's side of a partition."""

from __future__ import annotations

from typing import Any

import pytest

from ottla.handlers.fetch.reading import FetchReader
from ottla.handlers.produce import handler, waiting
from ottla.replication.follower import Follower
from ottla.replication.isr import InSyncReplicas
from ottla.replication.isr_changes import IsrChanges
from ottla.replication.leader import Leader
from ottla.storage.log.log import Log
from ottla.storage.log.producers.producer_state import ProducerStates

Patch = pytest.MonkeyPatch


def truncated_to_the_watermark(patch: Patch) -> None:
    """Kafka before KIP-101: a follower cuts its log at its own high watermark, which lags a fetch behind."""
    begin = Follower.__init__

    def begun(follower: Follower, *arguments: Any, **options: Any) -> None:
        begin(follower, *arguments, **options)
        follower.log.truncate_to(follower.high_watermark)

    patch.setattr(Follower, "__init__", begun)


def never_truncated(patch: Patch) -> None:
    def kept(follower: Follower, leader_epoch: int, leader_end: int) -> int:
        del leader_epoch, leader_end
        return follower.log.end_offset

    patch.setattr(Follower, "truncate_to_leader", kept)


def later_terms_taken(patch: Patch) -> None:
    """KAFKA-18723: batches of a later leader epoch than the one in which they were asked for."""
    stage = Log.stage_replica

    def staged(log: Log, records: memoryview, now_ms: int = 0, **options: Any) -> Any:
        options["epoch_max"] = 2**31 - 1
        return stage(log, records, now_ms, **options)

    patch.setattr(Log, "stage_replica", staged)


def vouched_before_the_flush(patch: Patch) -> None:
    patch.setattr(Follower, "may_ask", property(lambda _: True))


def shrunk_before_the_answer(patch: Patch) -> None:
    def propose(isr: InSyncReplicas, members: frozenset[int]) -> None:
        isr.pending = members
        isr.recount()
        if members < isr.members:
            isr.maximal = members
            isr._counted = tuple(each for each in isr.followers.values() if each.id in members)

    patch.setattr(InSyncReplicas, "propose", propose)


def joiner_counted_late(patch: Patch) -> None:
    def recount(isr: InSyncReplicas) -> None:
        isr.maximal = isr.members
        isr._counted = tuple(each for each in isr.followers.values() if each.id in isr.members)

    patch.setattr(InSyncReplicas, "recount", recount)


def counts_itself_alone(patch: Patch) -> None:
    patch.setattr(InSyncReplicas, "committed", lambda _, own_end: own_end)


def acknowledged_before_the_watermark(patch: Patch) -> None:
    def acknowledged(leader: Leader, next_offset: int, acks: int) -> bool:
        del acks
        return leader.durable_end >= next_offset

    patch.setattr(waiting, "acknowledged", acknowledged)
    patch.setattr(handler, "acknowledged", acknowledged)


def watermark_falls(patch: Patch) -> None:
    def advance(leader: Leader) -> bool:
        before = leader.high_watermark
        leader.high_watermark = leader.isr.committed(leader.durable_end)
        return leader.high_watermark != before

    patch.setattr(Leader, "advance", advance)


def all_committed_on_taking_over(patch: Patch) -> None:
    """A new leader takes its own end for the high watermark: its followers may not have it yet."""
    begin = Leader.__init__

    def begun(leader: Leader, tp: Any, log: Log, epoch: int, isr: InSyncReplicas, high_watermark: int) -> None:
        del high_watermark
        begin(leader, tp, log, epoch, isr, log.end_offset)

    patch.setattr(Leader, "__init__", begun)


def watermark_beyond_the_log(patch: Patch) -> None:
    def told(follower: Follower, leader_high_watermark: int) -> None:
        follower.high_watermark = max(follower.high_watermark, leader_high_watermark)

    patch.setattr(Follower, "leader_committed", told)


def joins_at_once(patch: Patch) -> None:
    """Whoever fetches is in sync, however far behind it is."""
    patch.setattr(IsrChanges, "_has_enough", staticmethod(lambda *_: True))


def offsets_believed_too_much(patch: Patch) -> None:
    """A follower is believed to have one batch more than it says."""
    fetched = Leader.follower_fetched

    def believed(leader: Leader, replica: int, offset: int, now_ms: int = 0) -> bool:
        return fetched(leader, replica, max(offset, leader.log.end_offset), now_ms)

    patch.setattr(Leader, "follower_fetched", believed)


def shown_above_the_watermark(patch: Patch) -> None:
    patch.setattr(FetchReader, "limit", lambda _, leader: leader.log.end_offset)


def repetitions_stored_again(patch: Patch) -> None:
    patch.setattr(ProducerStates, "_repeated", lambda *_: None)
