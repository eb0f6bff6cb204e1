"""The in-sync replicas of one partition, and the offset that all of them have.

A record is committed once every member of the set has it. The leader knows a follower's end from the offset that the
follower asks for next: one that asks for 5 has everything below 5.
"""

from __future__ import annotations

from collections.abc import Iterable


class InSyncReplicas:
    __slots__ = ("_ends", "local", "members", "replicas")

    def __init__(self, local: int, replicas: Iterable[int], members: Iterable[int]) -> None:
        self.local = local
        #: All that are assigned; the in-sync members are some of them.
        self.replicas = tuple(replicas)
        self.members = frozenset(members)
        assert local in self.members, f"a leader is in its own in-sync set: {local} is not in {sorted(self.members)}"
        #: What each follower has, as far as it has shown this leader. 0 until it asks: it may have nothing.
        self._ends: dict[int, int] = {replica: 0 for replica in self.replicas if replica != local}

    @property
    def followers(self) -> Iterable[int]:
        return self._ends.keys()

    def follower_has(self, replica: int, end: int) -> bool:
        """Notes what a follower has; False where it is not one of ours."""
        if replica not in self._ends:
            return False
        self._ends[replica] = end
        return True

    def committed(self, own_end: int) -> int:
        """The end of what every member has."""
        if len(self.members) == 1:
            return own_end
        return min(own_end, min(self._ends.get(member, 0) for member in self.members if member != self.local))
