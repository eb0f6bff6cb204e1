"""Bugs in the transaction coordinator, in what partitions know of transactions, and in the offsets in them."""

from __future__ import annotations

from typing import Any

import pytest

from ottla.coordinators.caller import Now
from ottla.coordinators.journal import TransactionalProducer
from ottla.groups.offsets.committing import TransactionalWriter
from ottla.groups.offsets.store import OffsetStore
from ottla.handlers import txn_offset_commit
from ottla.handlers.fetch.reading import FetchReader, PartitionRead
from ottla.handlers.produce import appends
from ottla.model import ErrorCode
from ottla.replication.follower import Follower
from ottla.replication.leader import Leader
from ottla.storage.log.producers.producer_state import ProducerStates
from ottla.storage.log.segment import Segment
from ottla.storage.log.staging import Staging
from ottla.transactions import shard
from ottla.transactions.asked import ProducerPartitions
from ottla.transactions.markers import MarkerLines
from ottla.transactions.shard import TransactionShard
from ottla.transactions.state import Done, ShardState, TransactionalId
from ottla.transactions.states import TransactionStatus
from ottla.transactions.transaction import Transaction

Patch = pytest.MonkeyPatch


# The coordinator


def commit_answered_before_it_is_decided(patch: Patch) -> None:
    """The client is answered when PrepareCommit is in this broker's log alone."""
    write = ShardState.write

    def written(state: ShardState, changed: TransactionalId, then: Transaction, now: Now, done: Done) -> None:
        if then.status is not TransactionStatus.PREPARE_COMMIT:
            write(state, changed, then, now, done)
            return
        write(state, changed, then, now, lambda _: None)
        done(ErrorCode.NONE)

    patch.setattr(ShardState, "write", written)


def epoch_kept_on_a_fence(patch: Patch) -> None:
    """Whoever is replaced, or took too long, has its transaction ended in its own epoch."""
    fenced = shard.fenced

    def kept(known: Transaction, *arguments: Any) -> Any:
        then = fenced(known, *arguments)
        return then._replace(producer_epoch=known.producer_epoch) if isinstance(then, Transaction) else then

    patch.setattr(shard, "fenced", kept)


def decided_ends_forgotten_by_a_load(patch: Patch) -> None:
    """Whoever coordinates next leaves it to the one before to send the markers."""
    patch.setattr(TransactionShard, "_go_on", lambda _: iter(()))


def time_never_over(patch: Patch) -> None:
    patch.setattr(TransactionShard, "_check_deadline", lambda *_: None)


def markers_become_aborts_when_sent_again(patch: Patch) -> None:
    """What a leader did not take goes again, and has lost its outcome."""
    later = MarkerLines._later

    def turned(lines: MarkerLines, sending: Any, partitions: Any) -> None:
        sending.end = sending.end._replace(committed=False)
        later(lines, sending, partitions)

    patch.setattr(MarkerLines, "_later", turned)


def markers_sent_once(patch: Patch) -> None:
    """What a leader did not take is not sent again."""
    patch.setattr(MarkerLines, "_later", lambda *_: None)


def earlier_partitions_forgotten(patch: Patch) -> None:
    """What is added takes the place of what was."""
    added = shard.added

    def replaced(known: Transaction | None, asked: ProducerPartitions, *arguments: Any, **options: Any) -> Any:
        then = added(known, asked, *arguments, **options)
        return then._replace(partitions=asked.partitions) if isinstance(then, Transaction) else then

    patch.setattr(shard, "added", replaced)


# Partitions


def late_batches_appended(patch: Patch) -> None:
    """Before KIP-890: a batch of a transaction that has ended begins another one, which nobody ends."""
    patch.setattr(ProducerStates, "_check_new_epoch", lambda *_: None)
    patch.setattr(appends, "first_batch", lambda *_: None)


def old_coordinators_marker_taken(patch: Patch) -> None:
    check = ProducerStates.check_marker

    def checked(states: ProducerStates, producer: int, epoch: int, _: int, offset: int, **options: Any) -> None:
        check(states, producer, epoch, 2**31 - 1, offset, **options)

    patch.setattr(ProducerStates, "check_marker", checked)


def all_stable_to_the_watermark(patch: Patch) -> None:
    patch.setattr(Leader, "last_stable_offset", property(lambda leader: leader.high_watermark))


def stable_before_the_marker_is_committed(patch: Patch) -> None:
    patch.setattr(ProducerStates, "first_unstable", lambda states, _: states.first_open())


def open_forgotten_by_a_restart(patch: Patch) -> None:
    """What a snapshot says of open transactions is not looked at."""
    restore = ProducerStates.restore

    def restored(states: ProducerStates, entries: Any, now_ms: int) -> None:
        restore(states, [entry._replace(current_txn_first_offset=-1) for entry in entries], now_ms)

    patch.setattr(ProducerStates, "restore", restored)


def aborts_across_segments_missed(patch: Patch) -> None:
    """The index has what was aborted in the segment of the marker alone."""
    add = Staging.add_aborted

    def added(staging: Staging, aborted: Any) -> None:
        if aborted.first_offset >= staging.places.active.base_offset:
            add(staging, aborted)

    patch.setattr(Staging, "add_aborted", added)


def aborts_never_listed(patch: Patch) -> None:
    patch.setattr(Segment, "may_have_aborted", property(lambda _: False))


def open_ones_called_aborted(patch: Patch) -> None:
    """Followers name what is open among what was aborted: its readers leave out what those producers had committed."""
    read = FetchReader._read

    def with_open(reader: FetchReader, found: PartitionRead, replica: Any, *limits: Any, **options: Any) -> None:
        read(reader, found, replica, *limits, **options)
        if found.aborted is not None and isinstance(replica, Follower):
            known = replica.log.producers._known.items()
            begun = [(producer, found.asked.fetch_offset) for producer, each in known if each.first_offset_open >= 0]
            found.aborted = [*found.aborted, *begun]

    patch.setattr(FetchReader, "_read", with_open)


# Offsets


def offsets_of_fenced_producers_taken(patch: Patch) -> None:
    """What the coordinator says of an epoch that is over is not heeded where a group's offsets are committed."""
    verified = txn_offset_commit._verified

    def heedless(call: Any, request: Any, producer: TransactionalProducer) -> Any:
        writer = yield from verified(call, request, producer)
        return TransactionalWriter(producer) if writer is ErrorCode.INVALID_PRODUCER_EPOCH else writer

    patch.setattr(txn_offset_commit, "_verified", heedless)


def pending_offsets_seen_early(patch: Patch) -> None:
    def put(store: OffsetStore, producer_id: int, *place_and_value: Any) -> None:
        del producer_id
        store.put(*place_and_value)

    patch.setattr(OffsetStore, "put_pending", put)


def committed_offsets_forgotten(patch: Patch) -> None:
    """A marker drops what waits for it, whatever it says."""
    end = OffsetStore.end_transaction

    def ended(store: OffsetStore, producer_id: int, *, committed: bool) -> None:
        del committed
        end(store, producer_id, committed=False)

    patch.setattr(OffsetStore, "end_transaction", ended)
