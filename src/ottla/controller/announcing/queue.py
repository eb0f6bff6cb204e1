"""One broker's queue: desired state beside confirmed. A plain object, which is asked what goes out next.

    add ──> pending ──> sweep: settings, roles, what clients see, replicas to give up ──> confirmed
              ^                       │ a call fails
              └───────────────────────┘ what it was about goes back, under what was decided meanwhile

A *sweep* takes all that is pending and announces it in that order, one call a part; what is decided meanwhile is the
next one's. So a log's overrides are there before its role, a role before clients see it, and a deleted topic is out of
the metadata before its logs go. New partitions of one request that are more than a few (`SMALL_MAX`) take seconds of a
disk: they stand in a line of their own, and one step of the first of them goes between two sweeps. All others pass them
so, and no stream of others holds them up for ever.

Where a broker could not take a role on, its queue *stands* until the controller has decided what becomes of it: clients
are not shown what is known not to be.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Final

from ottla.controller.announcing.announcements import (
    Announcement,
    AnnouncementOutcome,
    Answer,
    LostTrack,
    Metadata,
    NewLogs,
    Roles,
    RolesAnswer,
    Stops,
    StopsAnswer,
)
from ottla.controller.announcing.pending import PendingNews
from ottla.controller.deciding.orders import MetadataOrder, Order, StopOrder
from ottla.metadata.updates import PartitionState
from ottla.model import BrokerId, ErrorCode, TopicPartition

#: New partitions of one request that pass others: all applications but a few, and the offsets topic with its 50.
SMALL_MAX: Final = 64
#: Logs that are made before others are let pass: some 50 ms, or a second where the disk is slow.
REPLICAS_AT_ONCE: Final = 250
#: Names of what is gone, which a broker that does not answer has still to hear. Above it everything is announced anew.
GONE_MAX: Final = 10_000


class _ManyNew:
    """New partitions of one large request."""

    def __init__(self, states: Sequence[PartitionState]) -> None:
        self.states = states
        #: How many have their logs already. Roles are taken on together, by those that have their logs or fail anew.
        self.made = 0 if len(states) > REPLICAS_AT_ONCE else len(states)
        #: Whether the settings were announced that were decided together with it.
        self.is_ready = False

    def forget(self, gone: AbstractSet[TopicPartition]) -> None:
        """Where their logs are being made just now, as many others are made with the roles only."""
        self.made = len(_without(gone, self.states[: self.made]))
        self.states = _without(gone, self.states)

    def next(self) -> NewLogs | Roles:
        if self.made < len(self.states):
            return NewLogs(self.states[self.made : self.made + REPLICAS_AT_ONCE])
        return Roles(self.states)


class BrokerQueue:
    def __init__(self, broker: BrokerId) -> None:
        self.broker = broker
        #: Not begun.
        self._pending = PendingNews()
        #: What the sweep under way has still to announce; None between two.
        self._sweep: PendingNews | None = None
        #: Its parts that are still to come, the next one last.
        self._parts: list[Callable[[PendingNews], Announcement | None]] = []
        #: New partitions of small requests, a list each.
        self._few_new: deque[Sequence[PartitionState]] = deque()
        self._many_new: deque[_ManyNew] = deque()
        #: The call that is under way: one at a time.
        self._calling: Announcement | None = None
        #: Whether the line of large requests is next.
        self._many_are_next = False
        self._stands = False
        #: Whether the controller was asked already to announce everything.
        self._has_lost_track = False

    @property
    def is_idle(self) -> bool:
        """Nothing waits, and everything is confirmed."""
        return not (self._calling or self._sweep or self._pending or self._few_new or self._many_new)

    @property
    def waiting(self) -> int:
        """Calls that the broker has still to answer, as far as they are known; what waits for a sweep is one."""
        many = sum(1 for each in self._many_new if each.states)
        return bool(self._calling) + len(self._parts) + bool(self._pending) + len(self._few_new) + many

    # In.

    def add(self, order: Order) -> list[LostTrack]:
        pending = self._pending
        if isinstance(order, MetadataOrder):
            pending.add_metadata(order.update)
            if order.update.whole:
                self._has_lost_track = False
        elif isinstance(order, StopOrder):
            self._forget_new({stop.tp for stop in order.stops})
            pending.add_stops(order.stops)
        else:
            self._add_roles(self._in_place_of_new(order.states), is_new=order.is_new)
        if pending.names_of_the_gone > GONE_MAX and not self._has_lost_track:
            self._has_lost_track = True
            return [LostTrack(self.broker)]
        return []

    def _add_roles(self, states: Sequence[PartitionState], *, is_new: bool) -> None:
        if not is_new:
            self._pending.add_roles(states)
        elif len(states) > SMALL_MAX:
            self._many_new.append(_ManyNew(states))
        else:
            self._few_new.append(states)

    def _in_place_of_new(self, states: Sequence[PartitionState]) -> Sequence[PartitionState]:
        """What was decided on before, and still waits to be made, is made by the later decision, which may pass it."""
        if not (self._few_new or self._many_new):
            return states
        topics = {state.topic_id for state in states}
        waiting = {
            (state.topic_id, state.partition)
            for line in (*self._few_new, *(many.states for many in self._many_new))
            for state in line
            if state.topic_id in topics
        }
        if not waiting:
            return states
        made = [
            state._replace(is_new=True) if (state.topic_id, state.partition) in waiting else state for state in states
        ]
        self._forget_new({TopicPartition(state.topic, state.partition) for state in states})
        return made

    def _forget_new(self, gone: AbstractSet[TopicPartition]) -> None:
        """What is deleted is not made any more. A partition that is being made is given up then."""
        self._few_new = deque(left for states in self._few_new if (left := _without(gone, states)))
        for many in self._many_new:
            many.forget(gone)

    def wait(self, confirmed: Callable[[], None]) -> None:
        """Calls `confirmed` when all that was added before is; new partitions are not waited for."""
        self._pending.waiting.append(confirmed)

    def go_on(self) -> None:
        """The controller has decided on what failed."""
        self._stands = False

    # Out.

    def next(self) -> Announcement | None:
        """What is to be called now; None: nothing. `done` or `failed` follows."""
        assert self._calling is None
        while not self._stands:
            if self._sweep is not None:
                while self._parts:
                    if call := self._parts[-1](self._sweep):
                        self._calling = call
                        return call
                    self._parts.pop()
                self._end_sweep(self._sweep)
            if self._many_new and self._many_new[0].is_ready and (self._many_are_next or not self._others):
                self._many_are_next = False
                self._calling = self._many_new[0].next()
                return self._calling
            if not (self._others or self._many_new):
                return None
            self._begin_sweep()
        return None

    @property
    def _others(self) -> bool:
        return bool(self._pending or self._few_new)

    def _begin_sweep(self) -> None:
        for many in self._many_new:
            many.is_ready = True
        self._sweep, self._pending = self._pending, PendingNews()
        self._parts = [_stops, _shown, _roles, _settings]
        replicas = 0
        while self._few_new and replicas < REPLICAS_AT_ONCE:
            states = self._few_new.popleft()
            replicas += len(states)
            self._sweep.add_roles(states)

    def _end_sweep(self, sweep: PendingNews) -> None:
        self._sweep = None
        self._many_are_next = True
        for confirmed in sweep.waiting:
            confirmed()

    # What became of it.

    def done(self, outcome: AnnouncementOutcome) -> list[Answer]:
        """The call was carried out."""
        call, self._calling = self._calling, None
        if isinstance(call, NewLogs):
            many = self._many_new[0]
            # What has no log has no role either: that is found out then.
            many.made = many.made + len(call.states) if outcome else len(many.states)
            return []
        failed = outcome if isinstance(outcome, Mapping) else {}
        failed = {tp: error for tp, error in failed.items() if error is not ErrorCode.NONE}
        if self._sweep is None:
            assert isinstance(call, Roles)
            self._many_new.popleft()
            self._stands = bool(failed)
            return [RolesAnswer(self.broker, call.states, failed)]
        part = self._parts.pop()
        _DROP[part](self._sweep)
        if isinstance(call, Roles):
            if failed:
                self._stands = True
                self._put_back()
            return [RolesAnswer(self.broker, call.states, failed)]
        if isinstance(call, Stops):
            return [StopsAnswer(self.broker, [stop.tp for stop in call.stops], failed)]
        return []

    def failed(self) -> None:
        """Nobody knows whether the call was carried out: it is made again, with what was decided meanwhile."""
        self._calling = None
        if self._sweep is not None:
            self._put_back()

    def _put_back(self) -> None:
        sweep, self._sweep = self._sweep, None
        assert sweep is not None
        sweep.absorb(self._pending)
        self._pending = sweep
        for many in self._many_new:
            many.is_ready = False

    def release(self) -> None:
        """The broker is gone, or the controller: nobody waits for it any more."""
        for pending in (self._pending, self._sweep):
            if pending is not None:
                for confirmed in pending.waiting:
                    confirmed()
        self._pending, self._sweep = PendingNews(), None
        self._few_new.clear()
        self._many_new.clear()


def _without(gone: AbstractSet[TopicPartition], states: Sequence[PartitionState]) -> Sequence[PartitionState]:
    return [state for state in states if (state.topic, state.partition) not in gone]


def _settings(sweep: PendingNews) -> Announcement | None:
    update = sweep.settings()
    return None if update is None else Metadata(update)


def _roles(sweep: PendingNews) -> Announcement | None:
    states = sweep.roles()
    return Roles(states) if states else None


def _shown(sweep: PendingNews) -> Announcement | None:
    update = sweep.shown()
    return None if update is None else Metadata(update)


def _stops(sweep: PendingNews) -> Announcement | None:
    stops = sweep.stops()
    return Stops(stops) if stops else None


_DROP: Final[Mapping[Callable[[PendingNews], Announcement | None], Callable[[PendingNews], None]]] = {
    _settings: PendingNews.drop_settings,
    _roles: PendingNews.drop_roles,
    _shown: PendingNews.drop_shown,
    _stops: PendingNews.drop_stops,
}
