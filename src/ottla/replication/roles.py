"""Listeners to this broker's replicas: coordinators follow their roles, the broker reports failures to the controller.

A coordinator that fails at a change of role is behind: what it holds of that partition nobody knows. It is called again
after growing pauses, and at the next change: first it resigns, then it takes on the role of that moment. Until then it
does not coordinate that partition, and its clients look for a coordinator again and again.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable, Mapping, Sequence
from typing import Final, NamedTuple, Protocol, TypeVar

from ottla import logs
from ottla.model import TopicPartition
from ottla.ports import Clock
from ottla.replication.follower import Follower
from ottla.replication.leader import Leader
from ottla.steps import Steps

log_event = logs.logger("replication")

R = TypeVar("R")

#: Between two tries, twice as long each time.
_AGAIN_MS: Final = 1_000
_AGAIN_MS_MAX: Final = 60_000


class ReplicaOwner(Protocol):
    """Answers for this broker's replicas to the rest of the cluster."""

    def replicas_failed(self, partitions: Sequence[TopicPartition]) -> None:
        """These were served, and are offline with their log directory."""
        ...

    def replicas_made(self, partitions: Sequence[TopicPartition]) -> None:
        """There is room for these, which could not be made or opened before. Again until they have roles."""
        ...

    def no_directory_left(self, reason: str) -> None: ...


class RoleListener(Protocol):
    """Coordinators follow the leaders of their partitions through this, and fetchers what is to be followed.

    Whatever role this broker had in a partition, it resigns it before it takes on another. A leader that goes on in its
    own next leader epoch has kept its role, and nobody is called.
    """

    def became_leader(self, leader: Leader) -> None: ...

    def became_follower(self, follower: Follower) -> None: ...

    def resigned(self, tp: TopicPartition) -> None:
        """Neither leads nor follows any more. Fine where it had no role, or only half of one."""
        ...


class _Behind(NamedTuple):
    failures: int
    #: By the monotonic clock.
    again_ms: int


class RoleListeners:
    """Calls them in the order in which they were given. Roles stand in `leaders` and `followers` before it calls."""

    def __init__(
        self,
        listeners: Sequence[RoleListener],
        leaders: Mapping[TopicPartition, Leader],
        followers: Mapping[TopicPartition, Follower],
        clock: Clock,
    ) -> None:
        self._listeners = tuple(listeners)
        self._leaders = leaders
        self._followers = followers
        self._clock = clock
        self._behind: dict[tuple[RoleListener, TopicPartition], _Behind] = {}

    def became_leader(self, leader: Leader) -> None:
        for listener in self._listeners:
            self._call(listener, leader.tp, listener.became_leader, leader)

    def became_follower(self, follower: Follower) -> None:
        for listener in self._listeners:
            self._call(listener, follower.tp, listener.became_follower, follower)

    def resigned(self, tp: TopicPartition) -> None:
        for listener in self._listeners:
            self._call(listener, tp, listener.resigned, tp)

    @property
    def is_behind(self) -> bool:
        return bool(self._behind)

    def catching_up(self) -> Steps[None]:
        """Calls those again whose pause is over."""
        for (listener, tp), behind in list(self._behind.items()):
            if behind.again_ms <= self._clock.monotonic_ms() and (listener, tp) in self._behind:
                self._catch_up(listener, tp)
            yield

    def _call(self, listener: RoleListener, tp: TopicPartition, call: Callable[[R], None], role: R) -> None:
        if self._behind and (listener, tp) in self._behind:
            self._catch_up(listener, tp)
            return
        try:
            call(role)
        except Exception as fault:
            self._failed(listener, tp, fault)

    def _catch_up(self, listener: RoleListener, tp: TopicPartition) -> None:
        leader, follower = self._leaders.get(tp), self._followers.get(tp)
        try:
            listener.resigned(tp)
            if leader is not None:
                listener.became_leader(leader)
            elif follower is not None:
                listener.became_follower(follower)
        except Exception as fault:
            self._failed(listener, tp, fault)
        else:
            del self._behind[listener, tp]
            log_event.info("a coordinator follows its partition's role again", partition=tp)

    def _failed(self, listener: RoleListener, tp: TopicPartition, fault: Exception) -> None:
        """A fault of ours in one coordinator must not cost the others, nor other partitions, their roles."""
        before = self._behind.get((listener, tp))
        failures = 1 if before is None else before.failures + 1
        pause_ms = min(_AGAIN_MS << min(failures - 1, 16), _AGAIN_MS_MAX)
        self._behind[listener, tp] = _Behind(failures, self._clock.monotonic_ms() + pause_ms)
        log_event.error(
            "a coordinator could not follow a change of role, and is called again",
            partition=tp,
            coordinator=type(listener).__name__,
            again_ms=pause_ms,
            error="".join(traceback.format_exception(fault)),
        )
