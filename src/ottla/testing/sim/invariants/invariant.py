"""What an invariant is: called for what has changed in a turn, it raises where that broke it."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, NoReturn

from ottla.testing.sim.invariants.cluster import Changed

if TYPE_CHECKING:
    from ottla.testing.sim.invariants.cluster import Cluster, CommitAnswered, Partition, Replica, TreeChange


class InvariantBroken(Exception):
    """The cluster is in a state in which it may never be."""

    def __init__(self, name: str, what: str) -> None:
        super().__init__(f"{name}: {what}")
        #: The invariant's.
        self.name = name


class Invariant:
    """Subclasses have the name of what they watch over, and say of what they want to hear."""

    #: `replica_changed` is called for these.
    looks_at: ClassVar[int] = Changed.NOTHING

    @property
    def name(self) -> str:
        return type(self).__name__

    def broken(self, what: object) -> NoReturn:
        raise InvariantBroken(self.name, str(what))

    def replica_changed(self, cluster: Cluster, replica: Replica) -> None:
        """All of the turn's changes are in the state already."""

    def tree_changed(self, cluster: Cluster, change: TreeChange) -> None:
        """Called for each write, in order; the state has the last one's."""

    def session_used(self, cluster: Cluster, session: int, owner: object) -> None: ...

    def acknowledged(self, cluster: Cluster, partition: Partition, end: int) -> None: ...

    def commit_acknowledged(self, cluster: Cluster, partition: Partition, ended: CommitAnswered) -> None: ...
