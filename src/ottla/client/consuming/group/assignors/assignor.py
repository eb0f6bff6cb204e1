"""What an assignor is, and what it is given."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from typing import ClassVar, NamedTuple

from ottla.client.consuming.group.wire import Assignment, Subscription
from ottla.model import TopicPartition

#: What each member gets, by its id. Members that are left out get nothing.
Assignments = Mapping[str, Iterable[TopicPartition] | Assignment]


class Topics(NamedTuple):
    """The topics that a group's members want, as far as they are there."""

    #: Partitions are numbered from 0.
    counts: Mapping[str, int]
    #: Racks with a replica, by partition; empty where brokers have none.
    racks: Mapping[TopicPartition, frozenset[str]] = {}

    def partitions(self, topic: str) -> list[TopicPartition]:
        return [TopicPartition(topic, number) for number in range(self.counts.get(topic, 0))]


class Assignor(ABC):
    """One for each consumer. Derive from it, name it, and say who gets what; the rest may stay as it is.

    All members must come to know the same assignor under this name, whatever language they are written in.
    """

    name: ClassVar[str]
    #: Whether members keep what they have while the group rebalances (KIP-429). A partition that has an owner must then
    #: not be given to another member: leave it out, its owner gives it up, and the next round gives it on.
    cooperative: ClassVar[bool] = False

    def user_data(self, topics: frozenset[str]) -> bytes | None:
        """What this member gives the leader's assignor beside its topics."""
        return None

    @abstractmethod
    def assign(self, topics: Topics, members: Mapping[str, Subscription]) -> Assignments:
        """Called on the leader, in its event loop: must not wait."""

    def assigned(self, assignment: Assignment, generation: int) -> None:  # noqa: B027 - most need not know
        """Called on each member with what it got."""


def member_order(members: Mapping[str, Subscription]) -> list[str]:
    """Java's order: static members by instance id, then the others by member id, both by their UTF-16 units."""
    return sorted(
        members,
        key=lambda member: (
            (0, (members[member].instance_id or "").encode("utf-16-be"))
            if members[member].instance_id is not None
            else (1, member.encode("utf-16-be"))
        ),
    )
