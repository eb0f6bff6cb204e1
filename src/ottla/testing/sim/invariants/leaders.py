"""Who leads, and with what: OneLeaderPerEpoch, LeadsOn, LeaderCompleteness, LeaderCandidateCompleteness."""

from __future__ import annotations

from ottla.testing.sim.invariants.cluster import Changed, Cluster, Partition, Replica, TreeChange
from ottla.testing.sim.invariants.invariant import Invariant


class OneLeaderPerEpoch(Invariant):
    """No two brokers lead a partition in one leader epoch, ever."""

    looks_at = Changed.ROLE

    def replica_changed(self, cluster: Cluster, replica: Replica) -> None:
        if replica.leads:
            leader = replica.partition.leaders.setdefault(replica.epoch, replica.broker)
            if leader != replica.broker:
                self.broken(
                    f"broker {replica.broker} leads in leader epoch {replica.epoch}, in which broker {leader} led; "
                    f"{replica.partition}"
                )


class LeadsOn(Invariant):
    """Who leads on, in the same leader epoch or in its own next one, knows of its followers what it knew, and those who
    wait at it wait on: nobody has led in between."""

    looks_at = Changed.ROLE

    def replica_changed(self, cluster: Cluster, replica: Replica) -> None:
        if replica.forgotten:
            self.broken(f"how far brokers {sorted(replica.forgotten)} are is forgotten; {replica.partition}")
        if replica.left_waiting:
            self.broken(f"who waited is turned away; {replica.partition}")


class LeaderCompleteness(Invariant):
    """The newest leader has everything that was ever below a watermark."""

    looks_at = Changed.ROLE | Changed.WATERMARK | Changed.CUT

    def replica_changed(self, cluster: Cluster, replica: Replica) -> None:
        partition = replica.partition
        newest = max(partition.leaders, default=-1)
        leader = partition.replicas.get(partition.leaders.get(newest, -1))
        if (
            leader is not None
            and leader.leads
            and leader.epoch == newest
            and not partition.unclean
            and not partition.holds_committed(leader)
        ):
            self.broken(f"the leader, broker {leader.broker}, lacks some of what is committed; {partition}")


class LeaderCandidateCompleteness(Invariant):
    """Everybody in the tree's ISR may be elected, and has everything that was ever below a watermark."""

    looks_at = Changed.WATERMARK | Changed.CUT

    def replica_changed(self, cluster: Cluster, replica: Replica) -> None:
        self._check(replica.partition)

    def tree_changed(self, cluster: Cluster, change: TreeChange) -> None:
        self._check(change.partition)

    def _check(self, partition: Partition) -> None:
        if partition.tree is None or partition.unclean:
            return
        for member in partition.tree.isr:
            if not partition.holds_committed(partition.replicas.get(member)):
                self.broken(f"broker {member} is in the ISR and lacks some of what is committed; {partition}")
