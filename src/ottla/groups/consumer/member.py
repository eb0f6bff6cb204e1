"""A member of a consumer group. Never changed: a decision makes a new one, and replay puts it into the group."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final

from ottla.groups.consumer.states import MemberState
from ottla.model import TopicId

#: What should be somebody's.
Partitions = Mapping[TopicId, frozenset[int]]
#: What is somebody's: each partition with the epoch in which it became so.
Owned = Mapping[TopicId, Mapping[int, int]]

NO_PARTITIONS: Final[Partitions] = MappingProxyType({})
NOTHING_OWNED: Final[Owned] = MappingProxyType({})

#: Epochs that a member sends, or is given, and that are no epochs.
JOINING: Final = 0
LEFT: Final = -1
#: A static member that will come back under its instance id.
AWAY: Final = -2


@dataclass(frozen=True, slots=True)
class ClassicProtocol:
    """What is kept of a member that speaks the classic protocol."""

    session_timeout_ms: int
    #: Names with the subscription as it came, in the member's order.
    protocols: tuple[tuple[str, bytes], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    id: str
    #: The epoch that it has reached. At most the target assignment's; JOINING before its first assignment, AWAY while a
    #: static member is expected back.
    epoch: int = JOINING
    #: The epoch before: a heartbeat with it is taken, since the answer with the new one may have been lost.
    previous_epoch: int = -1
    state: MemberState = MemberState.STABLE
    instance_id: str | None = None
    rack_id: str | None = None
    #: How long it may take to give up partitions.
    rebalance_timeout_ms: int = -1
    client_id: str = ""
    client_host: str = ""
    topic_names: frozenset[str] = frozenset()
    #: Empty where it subscribed to none.
    topic_regex: str = ""
    assignor: str | None = None
    #: Its own; nobody else has them.
    assigned: Owned = field(default_factory=lambda: NOTHING_OWNED)
    #: Asked back; nobody else has them before it has said that it gave them up.
    pending_revocation: Owned = field(default_factory=lambda: NOTHING_OWNED)
    classic: ClassicProtocol | None = None

    def is_reconciled_to(self, epoch: int) -> bool:
        return self.state is MemberState.STABLE and self.epoch == epoch

    @property
    def subscription(self) -> tuple[object, ...]:
        """What the member's own record says of it; the rest is in the record of its assignment."""
        return (
            self.instance_id,
            self.rack_id,
            self.rebalance_timeout_ms,
            self.client_id,
            self.client_host,
            self.topic_names,
            self.topic_regex,
            self.assignor,
            self.classic,
        )


@dataclass(frozen=True, slots=True)
class ResolvedRegex:
    """The topics that a regular expression stood for when it was last looked at."""

    topics: frozenset[str]
    #: Of the metadata that was looked at.
    version: int
    timestamp_ms: int
