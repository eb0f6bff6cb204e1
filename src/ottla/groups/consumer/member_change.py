"""A member on its way from what it says of itself to its part of the group's target, and what is known meanwhile."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from ottla.config.slices import GroupsConfig
from ottla.coordinators.journal import JournalRecord
from ottla.groups.consumer.decision import TimerWish
from ottla.groups.consumer.group import ConsumerGroup
from ottla.groups.consumer.long_records import StoredNames
from ottla.groups.consumer.member import Member, ResolvedRegex
from ottla.groups.consumer.patterns import TopicPatterns
from ottla.groups.consumer.reconciliation import Reported
from ottla.groups.consumer.target import WORK_AT_ONCE_MAX
from ottla.groups.consumer.topics import TopicHashes
from ottla.metadata.cache import MetadataCache


class HeartbeatContext(NamedTuple):
    """What decisions need beside the group and the request."""

    metadata: MetadataCache
    hashes: TopicHashes
    patterns: TopicPatterns
    config: GroupsConfig
    new_member_id: Callable[[], str]
    #: The group's target is being computed in steps.
    is_assigning: bool = False
    #: A target that takes more is computed in steps.
    work_at_once_max: int = WORK_AT_ONCE_MAX


@dataclass(slots=True)
class MemberChange:
    """A member on its way through the steps, and the records so far."""

    group: ConsumerGroup
    #: As it was; without a place in the group if it is new.
    before: Member
    after: Member
    #: What the member says that it has.
    reported: Reported
    #: The static member that `after` takes the place of.
    replaced: Member | None = None
    records: list[JournalRecord] = field(default_factory=list)
    timers: list[TimerWish] = field(default_factory=list)
    #: Of what it wants, not of anything else.
    subscription_changed: bool = False
    must_bump: bool = False
    #: The names that it wants as they are stored, where they are many; and their hash.
    names: StoredNames | None = None
    names_hash: tuple[int, int] | None = None
    regexes: Mapping[str, ResolvedRegex] = field(default_factory=dict)
    epoch: int = 0
    #: Of this request: see `ConsumerGroup.heard`.
    token: object = field(default_factory=object)
    #: The target of `epoch` is not known yet, and has to be computed in steps.
    needs_target: bool = False
    #: What it is to have is more than is looked through at once: that goes in steps.
    needs_share: bool = False

    @property
    def raises_epoch(self) -> bool:
        return self.epoch > self.group.epoch
