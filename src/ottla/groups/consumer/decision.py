"""What comes out of a decision: records to write together, an answer, and timers to set or take back."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, Generic, NamedTuple, TypeVar

from ottla.coordinators.journal import JournalRecord
from ottla.model import ErrorCode

if TYPE_CHECKING:
    from ottla.groups.consumer.group import ConsumerGroup
    from ottla.groups.consumer.member import Member
    from ottla.groups.consumer.member_change import MemberChange
    from ottla.groups.consumer.share import LongShare

T = TypeVar("T")


class RequestRefused(Exception):
    """A request that is answered with an error, and changes nothing."""

    def __init__(self, error: ErrorCode, message: str) -> None:
        super().__init__(message)
        self.error = error
        self.message = message


class TimerKind(Enum):
    #: A member that is silent for so long is taken out.
    SESSION = "session"
    #: A member that has not given up its partitions by then is taken out.
    REBALANCE = "rebalance"
    #: A classic member that was to join again and has not by then is taken out.
    JOIN = "join"
    #: A classic member that has joined and not fetched its assignment by then is taken out.
    SYNC = "sync"


class TimerWish(NamedTuple):
    kind: TimerKind
    member_id: str
    #: None takes the timer back.
    after_ms: int | None
    #: One that runs already goes on.
    if_absent: bool = False
    #: REBALANCE: the epoch that the member has to leave; without effect once it has.
    epoch: int = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision(Generic[T]):
    response: T
    records: Sequence[JournalRecord] = ()
    timers: Sequence[TimerWish] = field(default=())
    #: The member as its records of this decision say it: long ones need not be read to know that.
    member: Member | None = None
    #: What is decided, and answered instead, once the group has the target of its new epoch. Raises RequestRefused.
    then: Callable[[ConsumerGroup], Decision[T]] | None = None
    #: What the member is to have, where that is much: decided in steps once this is applied, and answered instead.
    share: NeededShare[T] | None = None
    #: `member` has claimed what it is given: all that the records say is that it has it.
    is_claimed: bool = False
    #: The member and the token of its request, for `ConsumerGroup.heard`. The decision may be on a group that was made
    #: for it, or take out a member of the same id: it is noted once all is applied.
    heard: tuple[str, object] | None = None


@dataclass(frozen=True, slots=True)
class NeededShare(Generic[T]):
    steps: LongShare
    #: The decision that the steps' result makes.
    decision: Callable[[MemberChange], Decision[T]]


def all_timers_cancelled(member_id: str) -> list[TimerWish]:
    return [TimerWish(kind, member_id, None) for kind in TimerKind]
