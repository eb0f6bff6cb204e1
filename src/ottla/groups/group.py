"""What groups of every kind are to the rest of the coordinator, and what is asked of each kind.

A kind (classic, consumer; share and streams groups are to come) is a module of its own with two classes: a `Group`,
which says what the coordinator wants to know of one, and a `GroupKind`, which answers requests about such groups. The
shard has one of each kind, by `type_name`. Whether a group is of one certain kind is asked for APIs alone that are
about that kind: by `Rebalances.classic`, `consumer_group`, DescribeGroups in the shard, and a heartbeat that joins a
classic group, which becomes a consumer group.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence, Sized
from typing import Protocol, TypeVar

from ottla.coordinators.caller import Caller, Now
from ottla.coordinators.journal import JournalRecord
from ottla.groups.state import Reply
from ottla.model import ErrorCode
from ottla.protocol.generated.heartbeat import HeartbeatRequest, HeartbeatResponse
from ottla.protocol.generated.join_group import JoinGroupRequest, JoinGroupResponse
from ottla.protocol.generated.leave_group import LeaveGroupRequest, LeaveGroupResponse
from ottla.protocol.generated.offset_commit import OffsetCommitRequestTopic
from ottla.protocol.generated.sync_group import SyncGroupRequest, SyncGroupResponse
from ottla.steps import Steps

G_contra = TypeVar("G_contra", bound="Group", contravariant=True)


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


class GroupKind(Protocol[G_contra]):
    """Answers what the shard is asked about groups of one kind. `G` is theirs.

    The first four are requests of the classic protocol, which members of every kind may speak that lets them in.
    """

    def join(
        self, group: G_contra, caller: Caller, request: JoinGroupRequest, reply: Reply[JoinGroupResponse]
    ) -> None: ...

    def sync(
        self, group: G_contra, caller: Caller, request: SyncGroupRequest, reply: Reply[SyncGroupResponse]
    ) -> None: ...

    def classic_heartbeat(
        self, group: G_contra, caller: Caller, request: HeartbeatRequest, reply: Reply[HeartbeatResponse]
    ) -> None: ...

    def leave(
        self, group: G_contra, caller: Caller, request: LeaveGroupRequest, reply: Reply[LeaveGroupResponse]
    ) -> Steps[None]: ...

    def members_with_shares(self, group: G_contra) -> Collection[str]:
        """The members to whom one of them hands out shares, by SyncGroup; a live view."""
        ...

    def replay(self, kind: int, key: bytes, value: bytes | None) -> Steps[None]:
        """Applies a stored record of this kind of group. BadRecord if it is none; then nothing has changed."""
        ...

    def loaded(self, group: G_contra, now: Now) -> Steps[None]:
        """All records were replayed: its members' sessions begin."""
        ...

    def deleted(self, group: G_contra, now: Now) -> None:
        """It is in the shard no more: its timers end."""
        ...

    def given_up(self, group: G_contra, error: ErrorCode, now: Now) -> Steps[None]:
        """The coordinator goes: all members that wait in it are answered so."""
        ...
