"""Random groups in virtual time: members of both protocols come, go, fall silent, are slow and lose answers; topics
come and grow; coordinators move. In every moment no partition has two owners; in the end everybody is stable and all is
read.
"""

from __future__ import annotations

import random
from collections.abc import Sequence

import pytest
from hypothesis import HealthCheck, example, given
from hypothesis import strategies as st
from tests.groups.consumer.classic_consumer import ClassicConsumer, Stage
from tests.groups.consumer.room import GROUP, Consumer, Room
from tests.searches import examples

from ottla.groups import state
from ottla.groups.classic.group import ClassicGroup
from ottla.groups.consumer import reconciliation, share
from ottla.groups.consumer.group import ConsumerGroup
from ottla.groups.consumer.member import AWAY
from ottla.model import ErrorCode, TopicId
from ottla.protocol.generated.consumer_group_heartbeat import ConsumerGroupHeartbeatResponse
from ottla.steps import at_once

Anybody = Consumer | ClassicConsumer
STEPS = 150
#: Nothing is waited for longer than this in the end: sessions, rebalances, classic groups' joins.
ROUNDS_TO_REST_MAX = 400


class RoomOfLargeGroups(Room):
    """All targets are computed in steps."""

    work_at_once_max = 0


class Schedule:
    room_type = Room

    def __init__(self, seed: int, *, classic: bool) -> None:
        self.dice = random.Random(seed)
        self.classic = classic
        #: Whether a static member that had gone without a word has come back, perhaps with other topics.
        self.comes_back_otherwise = False
        self.room = self.room_type(group_consumer_session_timeout_ms="45000")
        self.partitions = {f"t{number}": self.dice.randint(1, 6) for number in range(self.dice.randint(1, 4))}
        for name, count in self.partitions.items():
            self.room.topic(name, count)
        self.members: list[Anybody] = []
        self.names = 0

    def run(self) -> None:
        for _ in range(STEPS):
            self.dice.choices(
                [self.beat, self.join, self.leave, self.crash, self.pass_time, self.topic, self.restart, self.fault],
                [60, 6, 2, 1, 12, 2, 1, 2],
            )[0]()
            self.go_on()
            self.check()
        self.come_to_rest()

    def go_on(self) -> None:
        self.room.long_work()

    # What happens.

    def beat(self) -> None:
        if self.members:
            member = self.dice.choice(self.members)
            if isinstance(member, Consumer):
                self.beat_new(member)
            else:
                member.beat()

    def beat_new(self, member: Consumer) -> None:
        if self.dice.random() < 0.3:
            member.revoke()
        member.revokes_at_once = self.dice.random() < 0.6
        if self.dice.random() < 0.1:
            self.room.beat(member.request())  # the answer is lost
            return
        error = member.beat()
        assert error in {
            ErrorCode.NONE,
            ErrorCode.UNKNOWN_MEMBER_ID,
            ErrorCode.FENCED_MEMBER_EPOCH,
            ErrorCode.FENCED_INSTANCE_ID,
            ErrorCode.GROUP_ID_NOT_FOUND,
            ErrorCode.UNRELEASED_INSTANCE_ID,
        }, error
        if error in {ErrorCode.FENCED_INSTANCE_ID, ErrorCode.UNRELEASED_INSTANCE_ID}:
            self.members.remove(member)

    def join(self) -> None:
        if len(self.members) >= 6:
            return
        names = self.dice.sample(sorted(self.partitions), self.dice.randint(1, len(self.partitions)))
        instance = f"I{self.dice.randint(1, 3)}" if self.dice.random() < 0.3 else None
        if instance is not None and any(member.instance == instance for member in self.members):
            instance = None
        if self.classic and self.dice.random() < 0.5:
            group = self.room.shard.groups.get(GROUP)
            if isinstance(group, ClassicGroup) and any(one.instance_id == instance for one in group.members.values()):
                self.comes_back_otherwise = self.comes_back_otherwise or instance is not None
            self.members.append(ClassicConsumer(self.room, names, instance=instance))
            return
        self.names += 1
        regex = "t.*" if self.dice.random() < 0.2 else None
        assignor = self.dice.choice([None, "uniform", "range"])
        topics = None if regex else names
        name = f"m{self.names}"
        self.members.append(
            Consumer(self.room, name, topics, regex=regex, instance=instance, assignor=assignor, rebalance_ms=30_000)
        )

    def leave(self) -> None:
        if self.members:
            member = self.members.pop(self.dice.randrange(len(self.members)))
            if isinstance(member, ClassicConsumer):
                if member.stage is Stage.STABLE:
                    member.leave()
            elif member.instance is not None and self.dice.random() < 0.5:
                member.leave(AWAY)
            else:
                member.leave()
            self.room.deliver()

    def crash(self) -> None:
        if self.members:
            self.members.pop(self.dice.randrange(len(self.members)))

    def pass_time(self) -> None:
        self.room.advance(self.dice.choice([1, 100, 3_000, 3_000, 3_000, 20_000, 50_000]))

    def topic(self) -> None:
        name = self.dice.choice(sorted(self.partitions))
        if self.dice.random() < 0.2 and len(self.partitions) > 1:
            self.room.delete_topic(name)
            del self.partitions[name]
        elif self.dice.random() < 0.3:
            self.partitions[f"t{len(self.partitions) + 10 + self.dice.randrange(10)}"] = 2
        else:
            self.partitions[name] += 1
        for each, count in self.partitions.items():
            self.room.topic(each, count)

    def restart(self) -> None:
        """Another coordinator takes over: it finds what there was, from all records and from the compacted ones."""
        before = snapshot(self.room)
        waited = [member for member in self.members if isinstance(member, ClassicConsumer)]
        self.room.restart(self.room.journal.compacted())
        assert snapshot(self.room) == before
        self.room.restart()
        assert snapshot(self.room) == before
        for member in waited:
            if member.stage in {Stage.JOINING, Stage.SYNCING}:
                # Its connection is gone, and with it the answer.
                member.stage, member.owned, member.id, member.generation = Stage.OUT, set(), "", -1

    def fault(self) -> None:
        """A heartbeat while nothing can be written changes nothing."""
        self.room.journal.refuses_with = ErrorCode.NOT_ENOUGH_REPLICAS
        before = snapshot(self.room)
        for member in self.members:
            if isinstance(member, Consumer):
                self.room.beat(member.request())
        assert snapshot(self.room) == before
        self.room.journal.refuses_with = ErrorCode.NONE

    # What holds.

    def check(self) -> None:
        self.room.check()
        group = self.room.shard.groups.get(GROUP)
        if not isinstance(group, ConsumerGroup):
            return
        reading: set[tuple[TopicId, int]] = set()
        for member in self.members:
            known = group.members.get(member.name)
            if known is None or (isinstance(member, Consumer) and member.epoch == 0):
                continue  # taken out, and does not know it yet: its session is over
            if isinstance(member, ClassicConsumer):
                continue  # between generations it reads on what it had: `check_reading` of the migration tests
            assert not reading & member.owned
            reading |= member.owned

    def come_to_rest(self) -> None:
        rest = 0
        for _ in range(ROUNDS_TO_REST_MAX):
            before = picture(self.room)
            for member in list(self.members):
                if isinstance(member, Consumer):
                    member.revokes_at_once = True
                    member.revoke()
                    if member.beat() in {ErrorCode.FENCED_INSTANCE_ID, ErrorCode.UNRELEASED_INSTANCE_ID}:
                        self.members.remove(member)
                else:
                    member.beat()
                self.check()
            self.room.advance(3_000)
            rest = rest + 1 if picture(self.room) == before else 0
            if rest > 20:
                break
        assert rest > 20, "it never comes to rest"
        if self.members:
            self.check_rest(self.room.shard.groups[GROUP])

    def check_rest(self, group: object) -> None:
        assert isinstance(group, ConsumerGroup | ClassicGroup)
        assert group.state_name == "Stable"
        assert len(group.members) == len(self.members)
        if isinstance(group, ConsumerGroup):
            assert {member.epoch for member in group.members.values()} == {group.epoch}
        reading = [one for member in self.members for one in member.owned]
        assert len(reading) == len(set(reading))
        wanted = self.wanted(self.members)
        if isinstance(group, ClassicGroup) and self.comes_back_otherwise:
            return  # in a stable group it is given what it had, as by Kafka, whatever it subscribes to now
        assert set(reading) == wanted

    def wanted(self, members: Sequence[Anybody]) -> set[tuple[TopicId, int]]:
        names = {
            name
            for member in members
            for name in self.partitions
            if name in (member.topics or ()) or (isinstance(member, Consumer) and member.regex)
        }
        found = set()
        for name in names:
            topic = self.room.metadata.topics[name]
            found |= {(topic.id, number) for number in range(len(topic.partitions))}
        return found


class LargeGroups(Schedule):
    """Between two steps of a computation anything else happens, also to the members who wait for it."""

    room_type = RoomOfLargeGroups

    def __init__(self, seed: int, *, classic: bool) -> None:
        #: Who waits for an answer, and to which of all requests.
        self.waiting: dict[str, int] = {}
        self.asked = 0
        self.is_over = False
        super().__init__(seed, classic=classic)

    def go_on(self) -> None:
        self.room.long_work(self.dice.choice([0, 0, 1, 3, 10, 30]))

    def beat_new(self, member: Consumer) -> None:
        if self.dice.random() < 0.3:
            member.revoke()
        member.revokes_at_once = self.dice.random() < 0.6
        if member.name in self.waiting and self.dice.random() < 0.9:
            return
        is_lost = self.dice.random() < 0.1
        self.asked += 1
        mine = self.waiting[member.name] = self.asked

        def heard(response: ConsumerGroupHeartbeatResponse) -> None:
            # Who asks again does not listen any more to what it had asked before.
            if self.waiting.get(member.name) != mine:
                return
            del self.waiting[member.name]
            if is_lost or member not in self.members:
                return
            error = ErrorCode(response.error_code)
            if error in {ErrorCode.FENCED_INSTANCE_ID, ErrorCode.UNRELEASED_INSTANCE_ID}:
                self.members.remove(member)
            member.heard(response)

        request = member.request()
        at_once(self.room.shard.prepare_heartbeat(request))
        self.room.shard.consumer_group_heartbeat(self.room.caller(1), request, heard)

    def check(self) -> None:
        if self.is_over:
            self.room.long_work()
            self.room.deliver()
        super().check()

    def come_to_rest(self) -> None:
        self.is_over = True
        self.check()
        assert not self.waiting, "somebody was not answered"
        super().come_to_rest()


def snapshot(room: Room) -> object:
    """All that a group consists of. Of a classic group only what is stored of it."""
    group = room.shard.groups.get(GROUP)
    if isinstance(group, ConsumerGroup):
        return (
            dict(sorted(group.members.items())),
            {name: dict(target) for name, target in sorted(group.target.items())},
            group.epoch,
            group.assignment_epoch,
            group.metadata_hash,
            dict(group.static_members),
            dict(group.regexes),
            dict(group.name_counts),
            dict(group.regex_counts),
            dict(group.assignor_counts),
            dict(group.classic_protocols),
            group.classic_members,
            {topic: dict(owners) for topic, owners in group._owners.items()},
        )
    return None


def picture(room: Room) -> object:
    """What is left alone when nothing happens any more."""
    group = room.shard.groups.get(GROUP)
    if isinstance(group, ClassicGroup):
        return (group.state, group.generation, set(group.members), set(group.pending_join))
    return snapshot(room)


@examples(30)
@given(st.integers(0, 1 << 32))
def test_random_groups_of_the_newer_protocol(seed: int) -> None:
    Schedule(seed, classic=False).run()


@examples(20)
@given(st.integers(0, 1 << 32))
def test_random_groups_of_both_protocols(seed: int) -> None:
    Schedule(seed, classic=True).run()


@examples(40)
@given(st.integers(0, 1 << 32), st.booleans())
@example(
    seed=282974, classic=False
)  # a member asks again while its request waits, and hears of more than it had reported
def test_random_groups_whose_targets_are_computed_in_steps(seed: int, classic: bool) -> None:
    LargeGroups(seed, classic=classic).run()


@pytest.fixture
def tiny_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """Members' shares are decided topic by topic, and nothing of them at once."""
    monkeypatch.setattr(reconciliation, "WORK_A_STEP", 1)
    monkeypatch.setattr(share, "WORK_A_STEP", 1)
    monkeypatch.setattr(state, "STEPS_AT_ONCE_MAX", 0)


@pytest.mark.usefixtures("tiny_steps")
@examples(40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.integers(0, 1 << 32), st.booleans())
@example(seed=282974, classic=False)
@example(seed=3249308, classic=True)
def test_random_groups_whose_shares_are_decided_in_steps(seed: int, classic: bool) -> None:
    LargeGroups(seed, classic=classic).run()


@pytest.mark.slow
@pytest.mark.usefixtures("tiny_steps")
@pytest.mark.parametrize("start", range(0, 4_000, 100))
def test_many_random_groups_whose_shares_are_decided_in_steps(start: int) -> None:
    for seed in range(start, start + 100):
        try:
            LargeGroups(seed, classic=seed % 2 == 1).run()
        except Exception as fault:
            raise AssertionError(f"seed {seed}") from fault


@pytest.mark.slow
@pytest.mark.parametrize("start", range(0, 4_000, 100))
def test_many_random_groups_whose_targets_are_computed_in_steps(start: int) -> None:
    for seed in range(start, start + 100):
        try:
            LargeGroups(seed, classic=seed % 2 == 1).run()
        except Exception as fault:
            raise AssertionError(f"seed {seed}") from fault


@pytest.mark.slow
@pytest.mark.parametrize("start", range(0, 4_000, 100))
def test_many_random_groups(start: int) -> None:
    for seed in range(start, start + 100):
        try:
            Schedule(seed, classic=seed % 2 == 1).run()
        except Exception as fault:
            raise AssertionError(f"seed {seed}") from fault
