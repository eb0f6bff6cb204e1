"""Bugs in the leader's and the follower's side of a partition."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest
from tests.storage.at_once import cut_to

from ottla.broker import cleaning
from ottla.handlers.calls.peer import FilePiece
from ottla.handlers.fetch.in_steps import WatchedFetch
from ottla.handlers.fetch.reading import FetchReader
from ottla.handlers.produce import handler, waiting
from ottla.handlers.produce.answer import PartitionAnswer
from ottla.handlers.produce.held import HeldProduces
from ottla.metadata.updates import PartitionState
from ottla.model import ErrorCode
from ottla.replication.decisions import note_state
from ottla.replication.fetching.fetcher import Fetcher
from ottla.replication.fetching.partition import FetchedPartition
from ottla.replication.fetching.taking import TakenAnswer
from ottla.replication.follower import Follower
from ottla.replication.isr import InSyncReplicas
from ottla.replication.isr_changes import IsrChanges
from ottla.replication.journal import PartitionJournal
from ottla.replication.leader import Leader
from ottla.replication.replicas import Replicas
from ottla.steps import DiskSteps
from ottla.storage.cleaner.dirt import Dirt, looking_for_dirt
from ottla.storage.log import retention
from ottla.storage.log.append import Origin
from ottla.storage.log.epochs import EpochCache
from ottla.storage.log.log import Log
from ottla.storage.log.producers.producer_state import ProducerStates

Patch = pytest.MonkeyPatch


def truncated_to_the_watermark(patch: Patch) -> None:
    """Kafka before KIP-101: a follower cuts its log at its own high watermark, which lags a fetch behind."""
    begin = Follower.__init__

    def begun(follower: Follower, *arguments: Any, **options: Any) -> None:
        begin(follower, *arguments, **options)
        cut_to(follower.log, follower.high_watermark)

    patch.setattr(Follower, "__init__", begun)


def never_truncated(patch: Patch) -> None:
    def kept(follower: Follower, leader_epoch: int, leader_end: int) -> DiskSteps[int]:
        del leader_epoch, leader_end
        yield None
        return follower.log.end_offset

    patch.setattr(Follower, "cutting_to_leader", kept)


def later_terms_taken(patch: Patch) -> None:
    """KAFKA-18723: batches of a later leader epoch than the one in which they were asked for."""
    stage = Log.stage_replica

    def staged(log: Log, records: memoryview, now_ms: int = 0, **options: Any) -> Any:
        options["epoch_max"] = 2**31 - 1
        return stage(log, records, now_ms, **options)

    patch.setattr(Log, "stage_replica", staged)


def sent_by_former_leaders(patch: Patch) -> None:
    """What was promised out of a log's file is sent from there although the log was cut since."""
    patch.setattr(FilePiece, "may_have_changed", property(lambda _: False))


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


def counted_before_the_checks(patch: Patch) -> None:
    """A follower's offset counts although the read says that its log parts from this one."""

    def of_follower(reader: FetchReader, read: Any, leader: Leader, *, is_new: bool) -> None:
        del is_new
        reader._services.replicas.follower_fetched(
            *(leader, reader.replica_id, read.asked.fetch_offset, reader.replica_epoch, reader.beat),
            log_start=read.asked.log_start_offset,
        )

    patch.setattr(FetchReader, "_of_follower", of_follower)


def unfenced_fetches(patch: Patch) -> None:
    """The first try of KIP-320: a leader looks epochs up for whoever asks, of whatever leader epoch it knows."""
    patch.setattr(Leader, "fencing", lambda *_: ErrorCode.NONE)


def cut_where_the_leader_says(patch: Patch) -> None:
    """Before KIP-279: the follower cuts at the leader's end alone, though its own log left that leader epoch before."""

    def cut(follower: Follower, leader_epoch: int, leader_end: int) -> DiskSteps[int]:
        log = follower.log
        if leader_epoch >= 0 and 0 <= leader_end < log.end_offset:
            yield from log.cutting_to(leader_end, partial(follower._lowering, follower.tp), follower._ends)
        return log.end_offset

    patch.setattr(Follower, "cutting_to_leader", cut)


def diverging_by_the_end_alone(patch: Patch) -> None:
    """A leader answers an older leader epoch with its own log's end."""
    found = EpochCache.end_offset_for

    def end_offset_for(epochs: EpochCache, epoch: int, log_end: int) -> tuple[int, int] | None:
        answer = found(epochs, epoch, log_end)
        return None if answer is None else (epoch, log_end)

    patch.setattr(EpochCache, "end_offset_for", end_offset_for)


def epochs_kept_when_cut(patch: Patch) -> None:
    patch.setattr(EpochCache, "truncate_from_end", lambda *_: None)


def watermark_moves_under_the_minimum(patch: Patch) -> None:
    patch.setattr(Leader, "has_enough_replicas", lambda _: True)


def joins_under_the_minimum_for_ever(patch: Patch) -> None:
    """KAFKA-19996: under the minimum the watermark stands still, and to have it is not to have caught up."""

    def has_enough(leader: Leader, follower: Any) -> bool:
        return bool(follower.end >= leader.high_watermark and follower.end >= leader.epoch_start)

    patch.setattr(IsrChanges, "_has_enough", staticmethod(has_enough))


def latest_before_the_watermark_is_known(patch: Patch) -> None:
    """Before KIP-207: a new leader answers with its own watermark, which lags behind what others showed."""
    patch.setattr(Leader, "knows_watermark", property(lambda _: True))


def followers_forget_producers(patch: Patch) -> None:
    """What is replicated is not noted as its producer's: the next leader takes a repetition for something new."""
    stage = ProducerStates.stage

    def staged(states: ProducerStates, *arguments: Any) -> Any:
        return None if arguments[-1] is Origin.REPLICATION else stage(states, *arguments)

    patch.setattr(ProducerStates, "stage", staged)


def old_answers_taken(patch: Patch) -> None:
    """A fetcher takes what it asked for in a former leader epoch, or before its log was cut."""
    patch.setattr(TakenAnswer, "_is_awaited", lambda taken, one: one.key in taken._asked)


def two_fetchers(patch: Patch) -> None:
    """A partition stays with the fetcher of its former leader when it goes to that of the next one."""
    remove = Fetcher.remove
    add = Fetcher.add

    def kept(fetcher: Fetcher, tp: Any) -> None:
        known = fetcher.partitions.by_partition.get(tp)
        remove(fetcher, tp)
        if known is not None:
            add(fetcher, FetchedPartition(known.follower))

    patch.setattr(Fetcher, "remove", kept)
    patch.setattr(FetchedPartition, "is_current", property(lambda _: True))


def asked_once(patch: Patch) -> None:
    """A change of the ISR of which no answer came is never asked for again, and nothing else is either."""
    patch.setattr(IsrChanges, "unknown", lambda *_: None)


def commits_before_the_watermark(patch: Patch) -> None:
    """A group's coordinator confirms what it alone has."""

    def settle(journal: PartitionJournal, leader: Leader) -> None:
        del leader
        while journal._unsettled and journal._unsettled[0].end >= 0:
            journal._unsettled.popleft().written(ErrorCode.NONE)

    patch.setattr(PartitionJournal, "_settle", settle)


def resigned_leaders_acknowledge(patch: Patch) -> None:
    """Whoever waits at a leader that is replaced is answered as if its records were safe."""
    fail = waiting.PartitionOutcome.fail

    def failed(outcome: waiting.PartitionOutcome, error: ErrorCode, message: str | None = None) -> None:
        if error is ErrorCode.NOT_LEADER_OR_FOLLOWER and outcome.appended is not None:
            outcome.answer = PartitionAnswer(outcome.partition, ErrorCode.NONE, outcome.appended.first_offset)
        else:
            fail(outcome, error, message)

    def ended(waiting_here: HeldProduces, error: ErrorCode) -> None:
        del error
        start = waiting_here._leader.log.places.start_offset
        for line in (waiting_here._of_all, waiting_here._of_leader):
            waiting_here._cut(line, 2**63 - 1, start, ErrorCode.NONE)

    patch.setattr(waiting.PartitionOutcome, "fail", failed)
    patch.setattr(HeldProduces, "_end", ended)


def shown_above_the_watermark(patch: Patch) -> None:
    patch.setattr(FetchReader, "limit", lambda _, leader: leader.log.end_offset)


def _begun_anew(replicas: Replicas, leader: Leader, state: PartitionState, now_ms: int) -> Leader:
    """Another leader in the place of one that might lead on."""
    isr = InSyncReplicas(replicas.broker_id, state.replicas, state.isr, now_ms)
    begun = Leader(leader.tp, leader.log, state.leader_epoch, isr, leader.high_watermark)
    replicas._drop_roles(leader.tp)
    note_state(begun, state)
    replicas.leaders[leader.tp] = begun
    replicas._listeners.became_leader(begun)
    return begun


def followers_forgotten_in_the_same_term(patch: Patch) -> None:
    """A leader that is told its state once more, by the next controller, begins with what that says."""
    lead_on = Replicas._lead_on

    def led_on(replicas: Replicas, leader: Leader, state: PartitionState, now_ms: int) -> None:
        if state.leader_epoch > leader.epoch:
            lead_on(replicas, leader, state, now_ms)
        else:
            leader.succeeded_by(_begun_anew(replicas, leader, state, now_ms))

    patch.setattr(Replicas, "_lead_on", led_on)


def waiters_failed_in_the_leaders_own_next_term(patch: Patch) -> None:
    """Who waits is told that the broker leads no more, which leads on."""
    lead_on = Replicas._lead_on

    def led_on(replicas: Replicas, leader: Leader, state: PartitionState, now_ms: int) -> None:
        if state.leader_epoch > leader.epoch:
            _begun_anew(replicas, leader, state, now_ms)
        else:
            lead_on(replicas, leader, state, now_ms)

    patch.setattr(Replicas, "_lead_on", led_on)


def parked_fetches_hear_of_records_alone(patch: Patch) -> None:
    """A watermark that moves while a follower's fetch waits is told when that is over."""
    patch.setattr(FetchReader, "lags", lambda *_: False)
    patch.setattr(WatchedFetch, "hasten", lambda *_: None)


def repetitions_stored_again(patch: Patch) -> None:
    patch.setattr(ProducerStates, "_repeated", lambda *_: None)


def the_segment_of_the_start_removed(patch: Patch) -> None:
    """What DeleteRecords leaves of a segment goes with the rest of it."""

    def below_start(log: Log, high_watermark: int) -> int:
        count = retention._count(log, high_watermark, lambda segment, _: segment.base_offset < log.start_offset)
        return min(count, len(log.segments) - 1)

    patch.setattr(retention, "_below_start", below_start)


def batches_across_the_start_refused(patch: Patch) -> None:
    """A follower that begins where its leader does has no use for what comes: all of the batch that the start is in."""
    patch.setattr(Follower, "spanning_the_start", lambda *_: None)


def cleaned_above_the_watermark(patch: Patch) -> None:
    """What is not committed takes the place of what is, and is cut off later."""

    def looking(log: Log, stable_offset: int, now_ms: int) -> DiskSteps[Dirt]:
        del stable_offset
        return looking_for_dirt(log, log.end_offset, now_ms)

    patch.setattr(cleaning, "looking_for_dirt", looking)
