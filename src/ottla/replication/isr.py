"""The in-sync replicas of one partition, and the offset that all of them have.

A record is committed once every member of the set has it. Only the controller decides which brokers are members, so
between a leader's question and its answer there are two sets, of which either may be the true one:

    members ──proposed──▶ members and pending ──confirmed──▶ members, as the controller says
                                            └─refused──────▶ members, as they were

Meanwhile the leader counts every broker that is in one of the two (the maximal ISR): a joiner because the controller
may elect it at once, a leaver because it is elected from the old set as long as nobody knows better. Counted too is a
broker that is about to join (`joins`): it is level with this log or nearly so, and would never get in where the
watermark ran away from it.

    members ⊆ maximal ⊆ counted, and the leader itself is in all of them
"""

from __future__ import annotations

from collections.abc import Iterable

from ottla.replication.isr_progress import NEVER, FollowerProgress


class InSyncReplicas:
    __slots__ = ("_counted", "followers", "local", "maximal", "members", "pending", "replicas")

    def __init__(self, local: int, replicas: Iterable[int], members: Iterable[int], now_ms: int = NEVER) -> None:
        self.local = local
        #: All that are assigned; the in-sync members are some of them.
        self.replicas = tuple(replicas)
        #: As the controller has confirmed it.
        self.members = frozenset(members)
        assert local in self.members, f"a leader is in its own in-sync set: {local} is not in {sorted(self.members)}"
        #: What this leader has asked the controller for, until it is known what came of that.
        self.pending: frozenset[int] | None = None
        self.maximal = self.members
        #: By id; all replicas but this one.
        self.followers: dict[int, FollowerProgress] = {
            replica: FollowerProgress(replica, now_ms if replica in self.members else NEVER)
            for replica in self.replicas
            if replica != local
        }
        self._counted: tuple[FollowerProgress, ...] = ()
        self.recount()

    def recount(self) -> None:
        """The replicas that are counted have changed."""
        maximal = self.maximal = self.members if self.pending is None else self.members | self.pending
        self._counted = tuple(each for each in self.followers.values() if each.id in maximal or each.joins)

    def committed(self, own_end: int) -> int:
        """The end of what every member has."""
        for follower in self._counted:
            if follower.end < own_end:  # noqa: PLR1730 - `min` takes five times as long
                own_end = follower.end
        return own_end

    def leader_moved(self) -> None:
        """The leader's log is longer than it was."""
        for follower in self.followers.values():
            follower.leader_moved()

    # -- changes

    def propose(self, members: frozenset[int]) -> None:
        assert self.pending is None, "one change at a time"
        assert self.local in members, "the last member never leaves"
        self.pending = members
        self.recount()

    def refused(self) -> None:
        """The controller said that it has not made the change, and never will."""
        self.pending = None
        self.recount()

    def confirmed(self, members: Iterable[int]) -> None:
        """The set is this, whatever was asked for."""
        self.members, self.pending = frozenset(members), None
        assert self.local in self.members
        for follower in self.followers.values():
            follower.joins = False
        self.recount()

    def assigned(self, replicas: Iterable[int], members: Iterable[int], now_ms: int) -> None:
        """The controller's next decision in the same leadership: how far each follower is stays known."""
        self._take_replicas(replicas)
        before = self.members
        self.confirmed(members)
        for replica in self.members - before - {self.local}:
            if replica in self.followers:
                self.followers[replica].admitted(now_ms)

    def reassigned(self, replicas: Iterable[int]) -> None:
        """The same decision, of other replicas: what was asked of it since is still open."""
        self._take_replicas(replicas)
        if self.pending is not None and not self.pending <= {self.local, *self.followers}:
            self.pending = None
        self.recount()

    def _take_replicas(self, replicas: Iterable[int]) -> None:
        self.replicas = tuple(replicas)
        known = self.followers
        self.followers = {
            replica: known.get(replica) or FollowerProgress(replica, NEVER)
            for replica in self.replicas
            if replica != self.local
        }
