"""Who joins and who leaves an in-sync set, what is asked because of it, and what becomes of each answer."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from tests.replication.roles_world import OTHER, US, RolesWorld
from tests.storage.log_world import append

from ottla.config.log import LogConfig
from ottla.metadata import PartitionState
from ottla.model import ErrorCode
from ottla.replication.isr_changes import IsrAsk, IsrChanges
from ottla.replication.isr_progress import Beat
from ottla.replication.leader import Leader
from ottla.steps import at_once

THIRD = 3
ALL = (US, OTHER, THIRD)
LAG_MS = 100
EPOCH = 5


class IsrWorld(RolesWorld):
    """One partition that is led here; the clock stands until a test moves it."""

    def __init__(self, isr: Sequence[int] = ALL, minimum: int = 1, replicas: Sequence[int] = ALL) -> None:
        super().__init__(LogConfig(min_insync_replicas=minimum))
        self.role(EPOCH, replicas=tuple(replicas), isr=tuple(isr))
        self.changes.lag_ms_max = LAG_MS
        self.asked = 0
        self.changes.on_ask = self._note
        self.now_ms = self.ports.clock.monotonic_ms()

    def _note(self) -> None:
        self.asked += 1

    @property
    def changes(self) -> IsrChanges:
        return self.replicas.isr_changes

    def write(self, count: int = 1) -> None:
        append(self.leader.log, *(b"x" for _ in range(count)), epoch=self.leader.epoch)
        self.leader.advance()

    def fetch(self, replica: int, offset: int, after_ms: int = 0) -> None:
        """As `Replicas.follower_fetched`, at a time of the test's."""
        self.now_ms += after_ms
        leader = self.leader
        leader.follower_fetched(replica, offset, self.now_ms)
        if replica not in leader.isr.maximal:
            self.changes.fetched(leader, leader.isr.followers[replica], self.now_ms)

    def expire(self, after_ms: int = 0) -> None:
        self.now_ms += after_ms
        self.changes.expire(self.leader, self.now_ms)

    def ask(self) -> IsrAsk:
        (ask,) = self.changes.take(10)
        return ask

    def answer(self, ask: IsrAsk, error: ErrorCode = ErrorCode.NONE, **options: object) -> None:
        state: PartitionState | None = None
        if error == ErrorCode.NONE or options:
            decided = {"isr": tuple(sorted(ask.isr)), "partition_epoch": ask.partition_epoch + 1, **options}
            state = self.state(ask.leader_epoch, replicas=ALL, **decided)  # type: ignore[arg-type]
        self.changes.answered(ask, error, state, self.now_ms)

    @property
    def members(self) -> set[int]:
        return set(self.leader.isr.members)


# Leaving: Kafka's IsrExpirationTest


def test_isr_expiration_for_stuck_followers() -> None:
    world = IsrWorld()
    world.write(15)
    for replica in (OTHER, THIRD):
        world.fetch(replica, 15)
    world.expire(LAG_MS + 50)
    assert world.asked == 0, "they have all that there is"
    world.write()
    world.expire()
    assert world.ask().isr == {US}


def test_isr_expiration_if_no_fetch_request_is_made() -> None:
    world = IsrWorld()
    world.write()
    world.expire(LAG_MS)
    assert world.asked == 0
    world.expire(1)
    assert world.ask().isr == {US}


def test_isr_expiration_for_slow_followers() -> None:
    """They fetch all the time, and never have all that there is."""
    world = IsrWorld()
    world.write(15)
    for replica in (OTHER, THIRD):
        world.fetch(replica, 10)
    world.expire(LAG_MS // 2)
    assert world.asked == 0
    for replica in (OTHER, THIRD):
        world.fetch(replica, 14)
    world.write(6)
    world.expire(LAG_MS)
    ask = world.ask()
    assert ask.isr == {US}
    # They have caught up before the controller answers: nothing is asked anew meanwhile.
    for replica in (OTHER, THIRD):
        world.fetch(replica, world.leader.log.end_offset)
    world.expire()
    assert world.asked == 1


def test_isr_expiration_for_caught_up_followers() -> None:
    """One that reaches where the log ended at its fetch before was caught up then, though it never has all of it."""
    world = IsrWorld()
    world.write(15)
    for replica in (OTHER, THIRD):
        world.fetch(replica, 15)
    for _ in range(10):
        end = world.leader.log.end_offset
        world.write(3)
        for replica in (OTHER, THIRD):
            world.fetch(replica, end, after_ms=LAG_MS // 4)
        world.write(1)
        world.expire()
    assert world.asked == 0


def test_a_follower_whose_session_goes_on_is_caught_up_until_its_leader_writes() -> None:
    """A session asks for all its partitions with each request, those included that it does not name."""
    world = IsrWorld(isr=(US, OTHER))
    follower, beat = world.leader.isr.followers[OTHER], Beat(world.now_ms)
    follower.follows_beat(beat)
    world.fetch(OTHER, 0)
    beat.ms = world.now_ms + 10 * LAG_MS
    world.now_ms = beat.ms
    world.write()
    follower.leader_moved()
    world.expire(LAG_MS)
    assert world.asked == 0
    # From then on its beats say nothing of this partition.
    beat.ms = world.now_ms = world.now_ms + 1
    world.expire()
    assert world.ask().isr == {US}


@pytest.mark.parametrize("has_session", [True, False])
def test_one_that_fetches_too_seldom_leaves_whether_it_has_a_session_or_not(has_session: bool) -> None:
    """With each fetch it has what there was at the one before: it was caught up then, and not now."""
    world = IsrWorld(isr=(US, OTHER))
    follower, beat = world.leader.isr.followers[OTHER], Beat(world.now_ms)
    for _ in range(4):
        asked = world.leader.log.end_offset
        world.write(10)
        follower.leader_moved()
        world.now_ms += LAG_MS * 6 // 10
        if has_session:
            beat.ms = world.now_ms
            follower.follows_beat(beat)
        world.fetch(OTHER, asked)
        world.expire()
        assert world.asked == 0
    world.expire(LAG_MS * 6 // 10)
    assert world.ask().isr == {US}


def test_a_leader_that_stood_still_does_not_judge_by_that_time() -> None:
    """What its followers sent meanwhile is in its sockets yet."""
    world = IsrWorld()
    world.write()
    looked = [0, LAG_MS // 2, 10 * LAG_MS, 10 * LAG_MS + LAG_MS // 2]
    for offset_ms in looked[:3]:
        at_once(world.changes.expiring(lambda now=world.now_ms + offset_ms: now))  # type: ignore[misc]
        assert world.asked == 0
    at_once(world.changes.expiring(lambda: world.now_ms + looked[3]))
    assert world.ask().isr == {US}


def test_a_minimum_that_was_lowered_lets_the_watermark_go_on() -> None:
    world = IsrWorld(isr=(US,), minimum=2)
    world.write(3)
    assert world.leader.high_watermark == 0
    world.leader.log.reconfigure(LogConfig(min_insync_replicas=1))
    world.expire()
    assert world.leader.high_watermark == 3


def test_a_follower_that_is_too_many_records_behind_leaves_where_somebody_wants_that() -> None:
    """Kafka 0.8's replica.lag.max.messages."""
    world = IsrWorld()
    world.leader.log.reconfigure(LogConfig(lag_messages_max=10))
    for replica in (OTHER, THIRD):
        world.fetch(replica, 0)
    world.write(10)
    world.expire()
    assert world.asked == 0
    world.fetch(THIRD, 1)
    world.write(1)
    world.expire()
    assert world.ask().isr == {US, THIRD}


def test_one_burst_empties_a_set_that_goes_by_records() -> None:
    """Why Kafka 0.9 has withdrawn it: the followers fetch without rest, and nothing is wrong with any of them."""
    for messages_max, left in ((10, {US}), (None, set(ALL))):
        world = IsrWorld(minimum=2)
        world.leader.log.reconfigure(LogConfig(min_insync_replicas=2, lag_messages_max=messages_max))
        for _ in range(3):
            world.write(5)
            for replica in (OTHER, THIRD):
                world.fetch(replica, world.leader.log.end_offset, after_ms=1)
            world.expire()
        assert world.asked == 0
        world.write(11)
        world.expire(after_ms=1)
        for ask in world.changes.take(10):
            world.answer(ask)
        assert world.members == left
        # Producers with acks=all pay for it.
        assert world.leader.has_enough_replicas() is (messages_max is None)


def test_a_follower_that_would_have_to_leave_again_at_once_is_not_let_in() -> None:
    """The other follower is behind as well, and the watermark with it: that alone would let the third in."""
    world = IsrWorld(isr=(US, OTHER))
    world.leader.log.reconfigure(LogConfig(lag_messages_max=10))
    world.write(30)
    world.fetch(OTHER, 20)
    world.fetch(THIRD, 19)
    world.fetch(OTHER, 20)
    world.leader.log.reconfigure(LogConfig(lag_messages_max=5))
    world.fetch(THIRD, 20)
    assert world.asked == 0
    world.fetch(THIRD, 25)
    assert world.ask().isr == set(ALL)


# What counts meanwhile


def test_who_leaves_counts_until_the_controller_has_answered() -> None:
    world = IsrWorld()
    world.write(3)
    world.fetch(OTHER, 3)
    world.expire(LAG_MS)
    world.fetch(OTHER, 3)
    world.expire(1)
    ask = world.ask()
    assert ask.isr == {US, OTHER}
    assert (world.leader.high_watermark, world.members) == (0, set(ALL))
    world.answer(ask)
    assert (world.leader.high_watermark, world.members) == (3, {US, OTHER})
    assert (world.leader.partition_epoch, world.changes.shrinks) == (1, 1)


def test_who_joins_counts_as_soon_as_it_is_asked_for() -> None:
    world = IsrWorld(isr=(US, OTHER))
    world.write(3)
    world.fetch(OTHER, 3)
    assert world.leader.high_watermark == 3
    world.fetch(THIRD, 3)
    ask = world.ask()
    assert ask.isr == set(ALL)
    world.write()
    world.fetch(OTHER, 4)
    assert world.leader.high_watermark == 3, "the controller may have elected the third already"
    world.answer(ask)
    assert (world.leader.high_watermark, world.members) == (3, set(ALL))
    world.fetch(THIRD, 4)
    assert (world.leader.high_watermark, world.changes.expands) == (4, 1)


def test_the_watermark_waits_for_one_that_is_about_to_join() -> None:
    """Alone, the leader commits with each append: a follower could never have all that is committed."""
    world = IsrWorld(isr=(US,))
    world.changes.is_eligible = lambda _, __: True
    world.write(3)
    world.fetch(OTHER, 2)
    assert (world.asked, world.leader.high_watermark) == (0, 3)
    end = world.leader.log.end_offset
    world.write()
    world.fetch(OTHER, end)
    world.write()
    assert world.leader.isr.followers[OTHER].joins
    world.fetch(OTHER, 4)
    assert world.ask().isr == {US, OTHER}


def test_the_watermark_waits_no_longer_for_one_that_has_gone() -> None:
    world = IsrWorld(isr=(US,))
    world.fetch(OTHER, 0)
    ask = world.ask()
    world.answer(ask, ErrorCode.INELIGIBLE_REPLICA)
    world.now_ms += 1_000
    eligible = True
    world.changes.is_eligible = lambda _, __: eligible
    world.fetch(OTHER, 0)
    world.answer(world.ask(), ErrorCode.INELIGIBLE_REPLICA)
    world.now_ms += 1_000
    world.write()
    follower = world.leader.isr.followers[OTHER]
    follower.joins = True
    world.leader.isr.recount()
    world.write()
    assert world.leader.high_watermark == 1
    eligible = False
    world.expire()
    assert (follower.joins, world.leader.high_watermark) == (False, 2)


@pytest.mark.parametrize("in_sync", [(US,), (US, OTHER)])
def test_the_watermark_stands_still_under_the_minimum(in_sync: tuple[int, ...]) -> None:
    world = IsrWorld(isr=in_sync, minimum=2)
    world.write(3)
    world.fetch(OTHER, 2)
    assert world.leader.high_watermark == (2 if len(in_sync) == 2 else 0)


def test_the_minimum_is_no_more_than_there_are_replicas() -> None:
    world = IsrWorld(isr=(US,), minimum=3, replicas=(US,))
    world.write(3)
    assert world.leader.high_watermark == 3


def test_a_watermark_never_falls_at_a_leader() -> None:
    world = IsrWorld()
    world.write(5)
    for replica in (OTHER, THIRD):
        world.fetch(replica, 5)
    world.fetch(OTHER, 2)
    assert world.leader.high_watermark == 5


# Joining


def test_a_follower_joins_with_the_watermark_and_the_start_of_the_leader_epoch() -> None:
    world = IsrWorld(isr=(US,))
    world.write(4)
    leader = world.leader
    leader.high_watermark = 4
    leader.begin_epoch(EPOCH + 1)
    leader.high_watermark = 2  # as a leader that was a follower before may know
    for offset in (1, 3):
        world.fetch(OTHER, offset)
        assert world.asked == 0
    world.fetch(OTHER, 4)
    assert world.ask().isr == {US, OTHER}


def test_under_the_minimum_a_follower_joins_at_the_logs_end_only() -> None:
    """KAFKA-19996: at a watermark that stands still it would join and leave for ever."""
    world = IsrWorld(isr=(US,), minimum=2)
    world.write(4)
    assert world.leader.high_watermark == 0
    world.fetch(OTHER, 3)
    assert world.asked == 0
    world.fetch(OTHER, 4)
    assert world.ask().isr == {US, OTHER}


def test_one_that_the_controller_would_not_take_is_not_asked_for() -> None:
    world = IsrWorld(isr=(US,))
    seen: list[tuple[int, int]] = []

    def is_eligible(replica: int, broker_epoch: int) -> bool:
        seen.append((replica, broker_epoch))
        return False

    world.changes.is_eligible = is_eligible
    world.leader.isr.followers[OTHER].broker_epoch = 77
    world.fetch(OTHER, 0)
    assert (world.asked, seen) == (0, [(OTHER, 77)])


def test_one_that_rests_joins_as_soon_as_the_controller_would_take_it() -> None:
    """With all that there is it does not name its partition again before there is more."""
    world = IsrWorld(isr=(US,))
    world.changes.is_eligible = lambda *_: False
    world.fetch(OTHER, 0)
    world.changes.is_eligible = lambda *_: True
    world.expire(after_ms=LAG_MS // 2)
    assert world.ask().isr == {US, OTHER}


def test_one_that_came_while_another_change_was_under_way_joins_behind_it() -> None:
    world = IsrWorld(isr=(US,))
    world.fetch(OTHER, 0)
    world.fetch(THIRD, 0)
    world.answer(world.ask())
    world.expire(after_ms=1)
    assert world.ask().isr == set(ALL)


def test_one_that_has_gone_is_not_asked_for() -> None:
    world = IsrWorld(isr=(US,))
    world.changes.is_eligible = lambda *_: False
    world.fetch(OTHER, 0)
    world.changes.is_eligible = lambda *_: True
    world.expire(after_ms=LAG_MS + 1)
    assert world.asked == 0


# Answers


@pytest.mark.parametrize("error", [ErrorCode.INELIGIBLE_REPLICA, ErrorCode.OPERATION_NOT_ATTEMPTED])
def test_what_is_refused_for_certain_is_given_up(error: ErrorCode) -> None:
    world = IsrWorld(isr=(US, OTHER))
    world.fetch(THIRD, 0)
    world.answer(world.ask(), error)
    assert (world.leader.isr.pending, world.members) == (None, {US, OTHER})
    # And asked again a little later, not with each fetch.
    world.fetch(THIRD, 0, after_ms=1)
    assert world.asked == 1
    world.fetch(THIRD, 0, after_ms=1_000)
    assert world.ask().isr == set(ALL)


@pytest.mark.parametrize(
    "error",
    [
        *(ErrorCode.FENCED_LEADER_EPOCH, ErrorCode.INVALID_UPDATE_VERSION, ErrorCode.INVALID_REQUEST),
        *(ErrorCode.NEW_LEADER_ELECTED, ErrorCode.UNKNOWN_TOPIC_ID, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
    ],
)
def test_a_leader_that_is_behind_waits_for_the_controllers_word(error: ErrorCode) -> None:
    world = IsrWorld(isr=(US, OTHER))
    world.fetch(THIRD, 0)
    world.answer(world.ask(), error)
    assert world.leader.isr.maximal == set(ALL), "it may have been done"
    world.fetch(THIRD, 0, after_ms=10_000)
    assert (world.asked, world.changes.has_asks) == (1, False)
    world.role(EPOCH, replicas=ALL, isr=(US, OTHER), partition_epoch=7)
    assert world.leader.isr.pending is None
    world.fetch(THIRD, 0)
    ask = world.ask()
    assert (ask.isr, ask.partition_epoch) == (set(ALL), 7)


def test_a_word_that_does_not_come_is_asked_for_again() -> None:
    world = IsrWorld(isr=(US, OTHER))
    world.fetch(THIRD, 0)
    first = world.ask()
    world.answer(first, ErrorCode.INVALID_UPDATE_VERSION)
    assert not world.changes.has_asks
    world.expire()
    assert world.ask() is first
    world.answer(first)
    assert world.members == set(ALL)
    world.expire()
    assert not world.changes.has_asks


@pytest.mark.parametrize(
    "error", [ErrorCode.NOT_CONTROLLER, ErrorCode.REQUEST_TIMED_OUT, ErrorCode.UNKNOWN_SERVER_ERROR]
)
def test_what_nobody_knows_is_asked_again(error: ErrorCode) -> None:
    world = IsrWorld(isr=(US, OTHER))
    world.fetch(THIRD, 0)
    first = world.ask()
    world.answer(first, error)
    assert world.ask() is first
    world.changes.unknown(first)
    assert world.ask() is first
    world.answer(first)
    assert world.members == set(ALL)


def test_an_answer_that_the_controller_has_overtaken_changes_nothing() -> None:
    world = IsrWorld(isr=(US, OTHER))
    world.fetch(THIRD, 0)
    ask = world.ask()
    world.role(EPOCH, replicas=ALL, isr=(US,), partition_epoch=9)
    world.answer(ask)
    assert (world.members, world.leader.partition_epoch) == ({US}, 9)
    world.changes.unknown(ask)
    assert not world.changes.has_asks


def test_a_new_controller_announces_late_what_it_read_before_it_took_the_change() -> None:
    """Its announcement waited for a connection; the change was asked for over another one. No answer to a change says
    under which controller it was made."""
    world = IsrWorld(isr=(US, OTHER))
    world.fetch(THIRD, 0)
    world.answer(world.ask(), controller_epoch=0)
    assert (world.members, world.leader.partition_epoch) == (set(ALL), 1)
    late = world.role(EPOCH, replicas=ALL, isr=(US, OTHER), partition_epoch=0, controller_epoch=2)
    assert late == ErrorCode.STALE_CONTROLLER_EPOCH
    assert (world.members, world.leader.partition_epoch) == (set(ALL), 1)
    assert world.leader.isr.maximal == set(ALL), "whoever may be elected is waited for"


@pytest.mark.parametrize(
    "options",
    [{"partition_epoch": -1}, {"isr": (OTHER, THIRD)}, {"leader": OTHER}],
)
def test_an_answer_that_cannot_be_true_changes_nothing(options: dict[str, object]) -> None:
    world = IsrWorld(isr=(US, OTHER))
    world.fetch(THIRD, 0)
    world.answer(world.ask(), **options)
    assert world.members == {US, OTHER}
    assert world.leader.isr.maximal == set(ALL)


def test_a_leader_that_resigned_meanwhile_asks_and_hears_nothing() -> None:
    world = IsrWorld(isr=(US, OTHER))
    world.fetch(THIRD, 0)
    former: Leader = world.leader
    world.role(EPOCH + 1, leader=OTHER, replicas=ALL, partition_epoch=3)
    assert world.changes.take(10) == []
    assert not former.active


def test_questions_are_batched_and_bounded() -> None:
    world = IsrWorld(isr=(US,))
    states = [world.state(EPOCH, replicas=ALL, isr=(US,), partition=number) for number in range(1, 6)]
    world.replicas.apply(states, lambda _: world.config)
    for leader in world.replicas.leaders.values():
        leader.follower_fetched(OTHER, 0, world.now_ms)
        world.changes.fetched(leader, leader.isr.followers[OTHER], world.now_ms)
    assert [len(world.changes.take(4)), len(world.changes.take(4)), len(world.changes.take(4))] == [4, 2, 0]
