"""A controller that was replaced changes nothing: FencedChangesNothing, EpochsNeverFall, OneOwnerPerSession."""

from __future__ import annotations

from ottla.testing.sim.invariants.cluster import Cluster, TreeChange
from ottla.testing.sim.invariants.invariant import Invariant


class FencedChangesNothing(Invariant):
    """Only the broker that owns /controller at the moment writes the state of a partition, in its own controller epoch.

    While nobody owns it, the last one is not replaced yet, and its epoch counts alone.
    """

    def tree_changed(self, cluster: Cluster, change: TreeChange) -> None:
        if change.controller_session and change.session != change.controller_session:
            self.broken(
                f"session {change.session:#x} wrote while {change.controller_session:#x} was the controller's; "
                f"{change.partition}"
            )
        after = change.after
        if after is not None and after.controller_epoch > change.controller_epoch:
            self.broken(f"controller epoch {change.controller_epoch} wrote a later one; {change.partition}")
        if after is not None and after != change.before and after.controller_epoch < change.controller_epoch:
            self.broken(f"an older controller wrote, in controller epoch {change.controller_epoch}; {change.partition}")


class EpochsNeverFall(Invariant):
    """Leader epochs, controller epochs and versions of a partition's state rise, one version at a time."""

    def tree_changed(self, cluster: Cluster, change: TreeChange) -> None:
        before, after = change.before, change.after
        if before is None or after is None:
            return
        if after.leader_epoch < before.leader_epoch or after.controller_epoch < before.controller_epoch:
            self.broken(f"from {before} to {after}; {change.partition}")
        if after.partition_epoch != before.partition_epoch + 1:
            self.broken(f"a change was written over: from {before} to {after}; {change.partition}")
        if after.leader != before.leader and after.leader_epoch == before.leader_epoch:
            self.broken(f"another leader in one leader epoch: from {before} to {after}; {change.partition}")


class OneOwnerPerSession(Invariant):
    """A session is used by one process and by no other, ever."""

    def session_used(self, cluster: Cluster, session: int, owner: object) -> None:
        known = cluster.session_owners.setdefault(session, owner)
        if known is not owner:
            self.broken(f"session {session:#x} of {known} is used by {owner}")
