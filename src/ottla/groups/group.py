"""What both kinds of group, classic and consumer, are to the rest of the coordinator."""

from __future__ import annotations

from collections.abc import Sequence, Sized
from typing import Protocol

from ottla.coordinators.journal import JournalRecord
from ottla.model import ErrorCode
from ottla.protocol.generated.offset_commit import OffsetCommitRequestTopic


class Group(Protocol):
    """Shard.groups holds these. A refusal is an ErrorCode; NONE means go on."""

    @property
    def id(self) -> str: ...

    @property
    def type_name(self) -> str:
        """`classic` or `consumer`, as ListGroups names it."""
        ...

    @property
    def state_name(self) -> str:
        """As ListGroups and the describing requests name it: `Empty`, `PreparingRebalance`, `Reconciling`..."""
        ...

    @property
    def protocol_type(self) -> str | None:
        """`consumer` for consumers, `connect` for Connect's workers; None before anybody joined a classic group."""
        ...

    @property
    def members(self) -> Sized: ...

    def check_commit(
        self,
        member_id: str,
        instance_id: str | None,
        generation_or_epoch: int,
        version: int,
        topics: Sequence[OffsetCommitRequestTopic],
        transactional: bool = False,
    ) -> ErrorCode:
        """Whether such a caller may commit offsets of these partitions now."""
        ...

    def check_fetch(self, member_id: str | None, member_epoch: int) -> ErrorCode:
        """Whether such a caller may read offsets (OffsetFetch 9 and later name a member)."""
        ...

    def check_offset_delete(self) -> ErrorCode:
        """Whether an administrator may delete offsets in topics without subscribers."""
        ...

    def check_delete(self) -> ErrorCode:
        """NON_EMPTY_GROUP while it has members."""
        ...

    def may_vanish(self) -> bool:
        """Whether nothing is lost when it goes together with its last offset: nobody is in it or on the way in."""
        ...

    def is_subscribed(self, topic: str) -> bool: ...

    def retention_base_ms(self, commit_ms: int) -> int | None:
        """From when the retention of an offset committed at `commit_ms` counts; None while offsets do not expire."""
        ...

    def tombstones(self) -> Sequence[JournalRecord]:
        """What deletes all that is stored of the group, beside its offsets."""
        ...

    def heard_from(self, member_id: str, monotonic_ms: int) -> int | None:
        """A commit came from this member: until when it keeps its session alive. None where commits do not."""
        ...
