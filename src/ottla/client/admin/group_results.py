"""What Admin returns about groups, and takes for them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, NamedTuple

from ottla.client.wire.metadata import Node
from ottla.model import NO_EPOCH, TopicPartition

#: Kinds of groups, in the words of requests.
CLASSIC: Final = "classic"
CONSUMER: Final = "consumer"


class CommittedOffset(NamedTuple):
    """Where a group goes on in a partition."""

    offset: int
    #: Whatever its members wished to remember beside it.
    metadata: str = ""
    #: Of the last record that was read; -1 where nobody said.
    leader_epoch: int = NO_EPOCH


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupListing:
    """A group as its coordinator lists it."""

    group_id: str
    #: "consumer" for consumers; empty where offsets were committed by somebody who is no member.
    protocol_type: str
    #: "Stable", "Empty", ...: None where the broker is too old to say.
    state: str | None
    #: "classic", "consumer", "share", "streams": None where the broker is too old to say.
    type: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberDescription:
    member_id: str
    #: Of a static member.
    instance_id: str | None
    client_id: str
    host: str
    #: In order. Empty for members of other kinds of groups, whose assignments are not partitions.
    assignment: tuple[TopicPartition, ...]
    #: What it is to have once the others have let go of it; None in a classic group.
    target: tuple[TopicPartition, ...] | None = None
    #: Its epoch in a new group.
    epoch: int | None = None
    rack: str | None = None
    #: Topics that it asked for by name (None where it says none that can be read), and by a regular expression.
    topics: tuple[str, ...] | None = None
    regex: str | None = None
    #: A member of a new group that speaks the classic protocol (False); None where the broker does not say.
    upgraded: bool | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupDescription:
    group_id: str
    #: "classic" or "consumer".
    type: str
    state: str
    #: What its members speak among themselves: "consumer" for consumers.
    protocol_type: str
    #: How partitions are assigned: the protocol that a classic group has chosen, or the coordinator's assignor.
    assignor: str
    coordinator: Node | None
    members: tuple[MemberDescription, ...]
    #: Of new groups only: of the group, and of the assignment that its members move to.
    epoch: int | None = None
    assignment_epoch: int | None = None

    @property
    def is_active(self) -> bool:
        """Whether it has members, so that nobody else may change its offsets."""
        return self.state not in {"Empty", "Dead"}
