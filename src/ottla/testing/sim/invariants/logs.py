"""What logs and watermarks say: LogMatching, ConsistentRead, WatermarksNeverFall, WatermarkKeepsMinimum and others."""

from __future__ import annotations

from ottla.testing.sim.invariants.cluster import Changed, Cluster, Partition, Replica
from ottla.testing.sim.invariants.invariant import Invariant


class LogMatching(Invariant):
    """Two logs with a batch of the same end and leader epoch are equal up to it."""

    looks_at = Changed.GREW

    def replica_changed(self, cluster: Cluster, replica: Replica) -> None:
        log, known = replica.log, replica.partition.chains
        for place in range(replica.new_from, len(log.ends)):
            chain = log.chains[place]
            if known.setdefault((log.ends[place], log.epochs[place]), chain) != chain:
                self.broken(
                    f"the batch of leader epoch {log.epochs[place]} that ends at {log.ends[place]} on broker "
                    f"{replica.broker} follows on others than elsewhere; {replica.partition}"
                )


class ConsistentRead(Invariant):
    """Everything below anybody's watermark is the same everywhere, for ever: no two readers see different records."""

    looks_at = Changed.WATERMARK | Changed.GREW | Changed.CUT

    def replica_changed(self, cluster: Cluster, replica: Replica) -> None:
        partition, log = replica.partition, replica.log
        committed = partition.committed
        below = log.batches_below(replica.high_watermark)
        for place in range(replica.compared, below):
            end, chain = log.ends[place], log.chains[place]
            if committed.setdefault(end, chain) != chain and not partition.unclean:
                self.broken(f"broker {replica.broker} shows other records below {end} than were shown; {partition}")
        if below > replica.compared:
            replica.compared = below
            partition.watermark = max(partition.watermark, log.ends[below - 1])


class WatermarksNeverFall(Invariant):
    """At a leader, as long as its process lives and its log is not cut."""

    looks_at = Changed.WATERMARK | Changed.ROLE | Changed.CUT

    def replica_changed(self, cluster: Cluster, replica: Replica) -> None:
        if replica.leads and replica.high_watermark < replica.watermark_before:
            self.broken(f"the watermark of broker {replica.broker} was {replica.watermark_before}; {replica.partition}")
        replica.watermark_before = replica.high_watermark


class WatermarkInLog(Invariant):
    """Nobody shows a watermark above its own log's end."""

    looks_at = Changed.WATERMARK | Changed.CUT | Changed.ROLE

    def replica_changed(self, cluster: Cluster, replica: Replica) -> None:
        if (replica.leads or replica.follows) and replica.high_watermark > replica.log.end:
            self.broken(f"broker {replica.broker}; {replica.partition}")


class WatermarkKeepsMinimum(Invariant):
    """A leader's watermark stands still while fewer are in sync than `min.insync.replicas` asks for."""

    looks_at = Changed.WATERMARK

    def replica_changed(self, cluster: Cluster, replica: Replica) -> None:
        partition = replica.partition
        if (
            replica.leads
            and not replica.changed & Changed.ROLE
            and max(len(replica.maximal_isr), len(replica.maximal_before)) < partition.minimum
        ):
            self.broken(f"the watermark of broker {replica.broker} has moved; {partition}")


class AcknowledgedIsCommitted(Invariant):
    """What a producer was answered under acks=all lies below somebody's watermark by then."""

    def acknowledged(self, cluster: Cluster, partition: Partition, end: int) -> None:
        if end > partition.watermark and not partition.unclean:
            self.broken(f"acknowledged to {end}; {partition}")
