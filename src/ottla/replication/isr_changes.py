"""Who joins and who leaves the in-sync sets that are led here, and what the controller is asked for because of it.

    in sync ──not caught up for replica.lag.time.max.ms──▶ asked to leave ──confirmed──▶ out of sync
       ▲                                                                                     │
       └──confirmed── asked to join ◀── has the watermark and the leader epoch's start ──────┘

A follower is in sync that was caught up with the log's end within that time, not one that merely fetches. One is let
back in that has all that is committed: the high watermark, and where this leader epoch begins, since what a leader
before it had committed may lie above the watermark. Below `min.insync.replicas` the watermark stands still, and by it a
follower would join and leave for ever; there it has to have all of the log (KAFKA-19996).

One change of a partition is under way at a time, and the leader counts both sets until its end is known (`isr.py`).
What an answer means is Kafka's: refused for certain is given up, of what is unknown the same is asked again, and of a
state that is behind the controller's the leader waits for the controller's word.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, NamedTuple

from ottla import logs
from ottla.metadata import PartitionState
from ottla.model import ErrorCode, TopicPartition
from ottla.replication.isr_news import IsrNews
from ottla.replication.isr_progress import FollowerProgress
from ottla.replication.leader import Leader
from ottla.steps import Steps, pieces

log_event = logs.logger("replication")

#: Certain: the change was not made and never will be.
_REFUSED: Final = frozenset({ErrorCode.INELIGIBLE_REPLICA, ErrorCode.OPERATION_NOT_ATTEMPTED})
#: The controller knows more than this leader, and says it with its next state of the partition.
_BEHIND: Final = frozenset(
    {
        *(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.UNKNOWN_TOPIC_ID, ErrorCode.FENCED_LEADER_EPOCH),
        *(ErrorCode.INVALID_UPDATE_VERSION, ErrorCode.INVALID_REQUEST, ErrorCode.NEW_LEADER_ELECTED),
    }
)
#: A follower that the controller did not take is not asked for again before. It is on its way out, or newly registered.
REFUSED_PAUSE_MS: Final = 500
#: Kafka's `replica.lag.time.max.ms`.
LAG_MS_MAX: Final = 30_000
#: Leaders that are looked at in one step; each takes a microsecond.
_LOOKED_AT: Final = 64


class IsrAsk(NamedTuple):
    """A change that a leader has asked for; by identity it is known whether the leader still waits for it."""

    asked_by: Leader
    leader_epoch: int
    partition_epoch: int
    isr: frozenset[int]

    @property
    def leader(self) -> Leader:
        """Another object, where its log has moved since."""
        return self.asked_by.present

    @property
    def tp(self) -> TopicPartition:
        return self.asked_by.tp

    @property
    def is_open(self) -> bool:
        leader = self.leader
        return (
            leader.active
            and leader.isr.pending is self.isr
            and (leader.epoch, leader.partition_epoch) == (self.leader_epoch, self.partition_epoch)
        )


class IsrChanges:
    def __init__(self, leaders: Mapping[TopicPartition, Leader], changed: Callable[[TopicPartition], None]) -> None:
        self._leaders = leaders
        #: Called where a watermark has moved.
        self._changed = changed
        #: `replica.lag.time.max.ms`.
        self.lag_ms_max = LAG_MS_MAX
        #: Whether the controller would take this broker, which fetches under this registration (-1: not said).
        self.is_eligible: Callable[[int, int], bool] = lambda _, __: True
        #: Called where there is something to ask.
        self.on_ask: Callable[[], None] = lambda: None
        self._asks: dict[TopicPartition, IsrAsk] = {}
        #: Those of which the controller knows more than their leaders, which wait for its word.
        self._behind: dict[TopicPartition, IsrAsk] = {}
        #: When all followers were last looked at.
        self._looked_ms: int | None = None
        self.news = IsrNews()
        #: For metrics.
        self.shrinks = 0
        self.expands = 0
        self.failures = 0

    # -- joining

    def fetched(self, leader: Leader, follower: FollowerProgress, now_ms: int) -> None:
        """A follower that is no member has asked for more."""
        isr = leader.isr
        if follower.id in isr.maximal or now_ms < follower.refused_until_ms:
            return
        is_eligible = self._is_eligible(follower)
        joins = is_eligible and follower.is_caught_up(leader.log.end_offset, now_ms, self.lag_ms_max)
        if joins != follower.joins:
            follower.joins = joins
            isr.recount()
        if is_eligible and isr.pending is None and self._has_enough(leader, follower):
            self._propose(leader, isr.members | {follower.id})

    def _is_eligible(self, follower: FollowerProgress) -> bool:
        return self.is_eligible(follower.id, follower.broker_epoch)

    @staticmethod
    def _has_enough(leader: Leader, follower: FollowerProgress) -> bool:
        """Its records, of which it must not lack so many either that it would have to leave at the next look."""
        if not IsrChanges._is_near(leader, follower):
            return False
        if not leader.has_enough_replicas():
            return follower.end >= leader.log.end_offset
        return follower.end >= leader.high_watermark and follower.end >= leader.epoch_start

    # -- leaving

    def expiring(self, now_ms: Callable[[], int]) -> Steps[None]:
        """Looks at all followers of all leaders here; twice in the time that they have, as in Kafka.

        Where much more than that has passed since the last look, this process stood still, and what the followers sent
        meanwhile is yet to be read: they have until the next look.
        """
        looked_ms, self._looked_ms = self._looked_ms, now_ms()
        if looked_ms is not None and self._looked_ms - looked_ms > self.lag_ms_max:
            log_event.warning(
                "the broker stood still; followers are not judged by that time", ms=self._looked_ms - looked_ms
            )
            return
        for piece in pieces(list(self._leaders.values()), _LOOKED_AT):
            for leader in piece:
                if len(leader.isr.replicas) > 1 and leader.active:
                    self.expire(leader, now_ms())
            yield
        self.news.say_lag()
        # Of leaders that are none any more.
        self._behind = {tp: ask for tp, ask in self._behind.items() if ask.is_open}

    def expire(self, leader: Leader, now_ms: int) -> None:
        isr, end = leader.isr, leader.log.end_offset
        lagging: set[int] = set()
        for follower in isr.followers.values():
            is_caught_up = follower.is_caught_up(end, now_ms, self.lag_ms_max)
            if follower.joins and not (is_caught_up and self._is_eligible(follower)):
                follower.joins = False
                isr.recount()
                self._advance(leader)
            if follower.id in isr.members and not (is_caught_up and self._is_near(leader, follower)):
                lagging.add(follower.id)
        if lagging and isr.pending is None:
            self.news.lag(leader.tp, lagging, end)
            self._propose(leader, isr.members - lagging)
        behind = self._behind.pop(leader.tp, None)
        if behind is not None and behind.is_open:
            # Its word has not come: no change would ever be asked for again.
            self.unknown(behind)
            self.on_ask()
        # The topic may ask for fewer replicas by now.
        if leader.advance():
            self._changed(leader.tp)
        self._look_again(leader, now_ms)

    def looking_again(self, now_ms: Callable[[], int]) -> Steps[None]:
        """At all that may join by now: a broker has become known, or the time after a refusal is over."""
        for piece in pieces(list(self._leaders.values()), _LOOKED_AT):
            for leader in piece:
                if len(leader.isr.maximal) < len(leader.isr.replicas) and leader.active:
                    self._look_again(leader, now_ms())
            yield

    def _look_again(self, leader: Leader, now_ms: int) -> None:
        """Lets followers in that had to stay out at their last fetch: the controller did not know them yet, or another
        change was under way. With all that there is, a follower does not name its partition again until there is more.
        """
        isr = leader.isr
        for follower in isr.followers.values():
            if follower.id not in isr.maximal and now_ms - follower.last_fetch_ms <= self.lag_ms_max:
                self.fetched(leader, follower, now_ms)

    @staticmethod
    def _is_near(leader: Leader, follower: FollowerProgress) -> bool:
        """Kafka 0.8's second rule, where `replica.lag.max.messages` is set: a burst of more records than that takes
        every follower out, however quick it is.
        """
        messages_max = leader.log.config.lag_messages_max
        return messages_max is None or leader.log.end_offset - follower.end <= messages_max

    # -- questions and answers

    def _propose(self, leader: Leader, members: frozenset[int]) -> None:
        leader.isr.propose(members)
        self._asks[leader.tp] = IsrAsk(leader, leader.epoch, leader.partition_epoch, members)
        self.on_ask()

    def take(self, count_max: int) -> list[IsrAsk]:
        """The next ones to ask. Each is to come back by `answered` or `unknown`."""
        taken: list[IsrAsk] = []
        while self._asks and len(taken) < count_max:
            tp = next(iter(self._asks))
            ask = self._asks.pop(tp)
            if ask.is_open:
                taken.append(ask)
        return taken

    @property
    def has_asks(self) -> bool:
        return bool(self._asks)

    def is_waiting(self, ask: IsrAsk) -> bool:
        """To be asked again."""
        return self._asks.get(ask.tp) is ask

    def goes_on(self, leader: Leader) -> None:
        """One that stood aside meanwhile: what it had asked for, and nobody knows the end of, is asked again."""
        pending = leader.isr.pending
        if pending is not None:
            self._asks[leader.tp] = IsrAsk(leader, leader.epoch, leader.partition_epoch, pending)
            self.on_ask()

    def unknown(self, ask: IsrAsk) -> None:
        """Nobody knows whether it was done: the same is asked again, which changes nothing where it was."""
        if ask.is_open:
            self._asks.setdefault(ask.tp, ask)

    def answered(self, ask: IsrAsk, error: ErrorCode, state: PartitionState | None, now_ms: int) -> None:
        if not ask.is_open:
            return  # the controller has decided again meanwhile, and that counts
        leader = ask.leader
        self.failures += error != ErrorCode.NONE
        if error == ErrorCode.NONE:
            if state is None:
                self.unknown(ask)
            else:
                self._confirmed(leader, state)
        elif error in _REFUSED:
            self._refused(ask, error, now_ms)
        elif error in _BEHIND:
            log_event.warning_limited(
                "the controller knows more of a partition than its leader", partition=ask.tp, error=error.name
            )
            if state is not None and state.partition_epoch > leader.partition_epoch:
                self._confirmed(leader, state)
            else:
                self._behind[ask.tp] = ask
        else:
            self.unknown(ask)

    def _refused(self, ask: IsrAsk, error: ErrorCode, now_ms: int) -> None:
        isr = ask.leader.isr
        log_event.warning_limited("the controller refused an in-sync set", partition=ask.tp, error=error.name)
        for replica in ask.isr - isr.members:
            if replica in isr.followers:
                isr.followers[replica].refused_until_ms = now_ms + REFUSED_PAUSE_MS
                isr.followers[replica].joins = False
        isr.refused()
        self._advance(ask.leader)

    def _confirmed(self, leader: Leader, state: PartitionState) -> None:
        isr = leader.isr
        if (
            state.leader_epoch != leader.epoch
            or state.leader != isr.local
            or state.partition_epoch < leader.partition_epoch
            or isr.local not in state.isr
        ):
            return
        before = isr.members
        leader.partition_epoch = state.partition_epoch
        leader.controller_epoch = max(leader.controller_epoch, state.controller_epoch)
        isr.confirmed(state.isr)
        self.shrinks += bool(before - isr.members)
        self.expands += bool(isr.members - before)
        self.news.changed(leader.tp, before, isr.members)
        self._advance(leader)

    def _advance(self, leader: Leader) -> None:
        """The replicas that are counted have changed; those who wait for a larger set are asked too."""
        leader.advance()
        self._changed(leader.tp)
