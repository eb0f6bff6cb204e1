"""The in-sync sets: LeaderInIsr, MaximalIsr, WeakIsr, StrongIsr, ElectedFromIsr, DeadLeaveAtOnce, JoinsAtTheEnd."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from ottla.testing.sim.invariants.cluster import Changed, Cluster, Partition, Replica, TreeChange
from ottla.testing.sim.invariants.invariant import Invariant

#: Seconds. The controller may hear of a death over a slow link.
_UNHEARD_S: Final = 4.0
_OF_LEADERS = Changed.ROLE | Changed.WATERMARK | Changed.ISR | Changed.CUT


class LeaderInIsr(Invariant):
    """The tree's leader stands in the tree's ISR, which is never empty."""

    def tree_changed(self, cluster: Cluster, change: TreeChange) -> None:
        after = change.after
        if after is None:
            return
        if not after.isr:
            self.broken(f"the ISR is empty; {change.partition}")
        if after.leader >= 0 and after.leader not in after.isr:
            self.broken(change.partition)


class ElectedFromIsr(Invariant):
    """Only members of the ISR are elected, unless the topic allows others."""

    def tree_changed(self, cluster: Cluster, change: TreeChange) -> None:
        before, after = change.before, change.after
        if before is None or after is None or after.leader < 0 or change.unclean_allowed:
            return
        if after.leader_epoch > before.leader_epoch and after.leader not in before.isr:
            self.broken(f"broker {after.leader} was elected out of {before}; {change.partition}")


class MaximalIsr(Invariant):
    """The leader counts everybody whom the tree's ISR names: no broker can be elected that was not waited for."""

    looks_at = Changed.ROLE | Changed.ISR

    def replica_changed(self, cluster: Cluster, replica: Replica) -> None:
        if replica.leads:
            self._check(replica.partition)

    def tree_changed(self, cluster: Cluster, change: TreeChange) -> None:
        self._check(change.partition)

    def _check(self, partition: Partition) -> None:
        tree = partition.tree
        leader = None if tree is None else partition.replicas.get(tree.leader)
        if tree is None or leader is None or not leader.leads or leader.epoch != tree.leader_epoch:
            return
        if missing := set(tree.isr) - leader.maximal_isr:
            self.broken(f"the leader does not count {sorted(missing)}; {partition}")


class DeadLeaveAtOnce(Invariant):
    """The controller takes the dead out of every ISR when it hears of their death; leaders find only those who lag."""

    def tree_changed(self, cluster: Cluster, change: TreeChange) -> None:
        before, after = change.before, change.after
        if before is None or after is None or before.leader_epoch != after.leader_epoch:
            return
        for member in set(before.isr) - set(after.isr):
            if change.gone_s.get(member, 0.0) > _UNHEARD_S:
                self.broken(f"broker {member} was dead for {change.gone_s[member]} s; {change.partition}")


class JoinsAtTheEnd(Invariant):
    """Under the minimum the watermark stands still: a replica that joins has all of the log, or would leave again."""

    looks_at = Changed.ISR

    def replica_changed(self, cluster: Cluster, replica: Replica) -> None:
        partition = replica.partition
        if not replica.leads or replica.changed & Changed.ROLE or len(replica.isr) >= partition.minimum:
            return
        for member in replica.maximal_isr - replica.maximal_before:
            joiner = partition.replicas.get(member)
            is_there = joiner is not None and joiner.follows and joiner.epoch == replica.epoch
            if is_there and joiner is not None and joiner.log.end < replica.end_before:
                self.broken(f"broker {member} joins before the end {replica.end_before}; {partition}")


class WeakIsr(Invariant):
    """Every broker that believes to lead: the members of its own ISR have everything below its watermark."""

    looks_at = _OF_LEADERS

    def replica_changed(self, cluster: Cluster, replica: Replica) -> None:
        tree = replica.partition.tree
        for leader in _presumed_leaders(replica):
            members: Iterable[int] = leader.isr
            if tree is not None and tree.leader_epoch > leader.epoch:
                members = [each for each in members if each in tree.isr or not _may_have_less(cluster, leader, each)]
            _check_members(self, leader, members)


def _may_have_less(cluster: Cluster, late: Replica, member: int) -> bool:
    """Of a leader that does not know of its successors: a member that they have taken out may have come back empty, and
    one that was moved away and back, which has a later role, begins anew."""
    known = late.partition.replicas.get(member)
    return cluster.forgets or (known is not None and known.epoch > late.epoch)


class StrongIsr(Invariant):
    """Every broker that believes to lead: the members of the tree's ISR have everything below its watermark."""

    looks_at = _OF_LEADERS

    def replica_changed(self, cluster: Cluster, replica: Replica) -> None:
        tree = replica.partition.tree
        if tree is not None:
            for leader in _presumed_leaders(replica):
                _check_members(self, leader, tree.isr)

    def tree_changed(self, cluster: Cluster, change: TreeChange) -> None:
        if change.after is not None:
            for replica in change.partition.replicas.values():
                if replica.leads:
                    _check_members(self, replica, change.after.isr)


def _presumed_leaders(changed: Replica) -> Iterable[Replica]:
    """Of a change: the leader itself; of a follower's log that was cut, all that believe to lead its partition."""
    if changed.leads:
        yield changed
    elif changed.changed & Changed.CUT:
        yield from (replica for replica in changed.partition.replicas.values() if replica.leads)


def _check_members(invariant: Invariant, leader: Replica, members: Iterable[int]) -> None:
    partition = leader.partition
    if leader.high_watermark == 0 or partition.unclean:
        return
    own = leader.log
    below = own.batches_below(leader.high_watermark)
    if below == 0:
        return
    end, chain = own.ends[below - 1], own.chains[below - 1]
    for member in members:
        if member == leader.broker:
            continue
        replica = partition.replicas.get(member)
        if replica is None or not replica.log.holds(end, chain):
            invariant.broken(
                f"broker {member} lacks some of what lies below the watermark of broker {leader.broker}; {partition}"
            )
