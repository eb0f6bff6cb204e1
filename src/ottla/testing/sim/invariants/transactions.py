"""Transactions in logs: StableBelowOpen, OldCoordinatorsMarkNothing, NothingBehindTheMarker, OneOutcome and
CommitIsDecided.

What their clients see is in `ottla.testing.sim.transaction_history`.
"""

from __future__ import annotations

from ottla.testing.sim.invariants.cluster import Changed, Cluster, CommitAnswered, Partition, Replica
from ottla.testing.sim.invariants.invariant import Invariant


class StableBelowOpen(Invariant):
    """No last stable offset lies behind the beginning of a transaction whose marker that replica's watermark has not
    passed."""

    looks_at = Changed.ROLE | Changed.WATERMARK | Changed.GREW | Changed.CUT

    def replica_changed(self, cluster: Cluster, replica: Replica) -> None:
        transactions = replica.log.transactions
        if transactions is None or replica.stable < 0 or not (replica.leads or replica.follows):
            return
        first = transactions.first_unstable(replica.high_watermark)
        if first is not None and replica.stable > first:
            self.broken(
                f"broker {replica.broker} shows all below {replica.stable} as stable, and a transaction is open from "
                f"{first} on; {replica.partition}"
            )


class OldCoordinatorsMarkNothing(Invariant):
    """The coordinator's epoch in the markers of a producer never falls in any log."""

    looks_at = Changed.GREW

    def replica_changed(self, cluster: Cluster, replica: Replica) -> None:
        transactions = replica.log.transactions
        if transactions is not None and transactions.old_markers:
            self.broken(f"{transactions.old_markers[0]} on broker {replica.broker}; {replica.partition}")


class NothingBehindTheMarker(Invariant):
    """No batch of a transaction stands behind a marker of a later epoch of its producer."""

    looks_at = Changed.GREW

    def replica_changed(self, cluster: Cluster, replica: Replica) -> None:
        transactions = replica.log.transactions
        if transactions is not None and transactions.behind_markers:
            self.broken(f"{transactions.behind_markers[0]} on broker {replica.broker}; {replica.partition}")


class OneOutcome(Invariant):
    """All markers of a transaction with an epoch of its own say the same, in all partitions."""

    looks_at = Changed.GREW

    def replica_changed(self, cluster: Cluster, replica: Replica) -> None:
        transactions = replica.log.transactions
        if transactions is None:
            return
        for marker in transactions.bumped_markers:
            known = cluster.outcomes.setdefault((marker.producer_id, marker.producer_epoch), marker.commits)
            if known != marker.commits:
                self.broken(f"{marker} on broker {replica.broker}, and elsewhere the contrary; {replica.partition}")
        transactions.bumped_markers.clear()


class CommitIsDecided(Invariant):
    """What a client was answered to be committed stands as that in the transaction topic, below its watermark."""

    def commit_acknowledged(self, cluster: Cluster, partition: Partition, ended: CommitAnswered) -> None:
        decisions = partition.decisions
        decisions.read_on(partition.committed.values(), partition.decided)
        written = decisions.commits[ended.transactional_id, ended.producer_id, ended.producer_epoch]
        if written < ended.answered and not partition.unclean:
            self.broken(f"{ended}, and {written} are written; {partition}")
