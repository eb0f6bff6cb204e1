"""Members whose share is thousands of topics: it is decided in steps, and whatever happens between two of them, nothing
has two owners, and nothing stays taken that is nobody's.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import product
from random import Random

import pytest
from tests.groups.consumer.room import GROUP
from tests.groups.consumer.test_long_heartbeats import MANY, SteppedRoom, joining, topics
from tests.groups.test_long_work import counted

from ottla.groups.consumer import long_records, records
from ottla.groups.consumer.member import Member, Owned
from ottla.groups.consumer.reconciliation import TOPIC_WORK, WORK_A_STEP
from ottla.groups.consumer.share import TRIES
from ottla.groups.consumer.states import MemberState
from ottla.groups.consumer.topics import TopicHashes
from ottla.model import ErrorCode, TopicId
from ottla.protocol.generated.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    TopicPartitions,
)
from ottla.steps import PIECE, at_once


class SharingRoom(SteppedRoom):
    """With members that have met, and what the coordinator does beside requests left for the test."""

    def ask(self, request: ConsumerGroupHeartbeatRequest) -> list[ConsumerGroupHeartbeatResponse]:  # type: ignore[override]
        """The answer will be in it."""
        answers: list[ConsumerGroupHeartbeatResponse] = []
        prepared = at_once(self.shard.prepare_heartbeat(request))
        self.shard.consumer_group_heartbeat(self.caller(), request, answers.append, prepared)
        return answers

    def one_step(self) -> None:
        steps = self.later.popleft()
        try:
            next(steps)
            self.later.append(steps)
        except StopIteration:
            pass

    def rest(self) -> int:
        """Does all that is left; how many steps that was."""
        count = 0
        while self.later or self.beside:
            count += self.step()
            self.long_work(1)
        return count

    def alive(self, member: str, *, owned: Owned | None = None) -> ConsumerGroupHeartbeatRequest:
        said = None
        if owned is not None:
            said = [TopicPartitions(topic_id=topic, partitions=list(numbers)) for topic, numbers in owned.items()]
        epoch = self.group.members[member].epoch
        return ConsumerGroupHeartbeatRequest(
            group_id=GROUP, member_id=member, member_epoch=epoch, topic_partitions=said
        )

    def owned_by(self, member: str) -> int:
        return sum(list(owners.values()).count(member) for owners in self.group._owners.values())


@pytest.fixture
def room() -> SharingRoom:
    """Two members; the first is to give up half of all."""
    room = SharingRoom()
    names = topics(room)
    for member in ("m", "other"):
        room.ask(joining(names, member))
        room.rest()
    return room


def test_a_share_that_changes_as_a_whole_is_decided_in_steps(room: SharingRoom) -> None:
    steps_min = MANY * TOPIC_WORK // WORK_A_STEP
    for member, others in (("m", "m"), ("m", "m"), ("other", "other")):
        before = room.group.members[member]
        answers = room.ask(room.alive(member, owned=before.assigned))
        assert not answers
        assert room.group.members[others] is before
        assert room.rest() > steps_min
        assert not answers[0].error_code
        room.check()
    shares = [sum(map(len, room.group.members[name].assigned.values())) for name in ("m", "other")]
    assert shares == [MANY // 2, MANY // 2]
    assert all(member.state is MemberState.STABLE for member in room.group.members.values())


def test_what_is_decided_in_steps_is_what_is_found_after_a_restart(room: SharingRoom) -> None:
    for member in ("m", "m", "other"):
        room.ask(room.alive(member, owned=room.group.members[member].assigned))
        room.rest()
    before = (room.group.members, room.group.target, room.group._owners, room.group.metadata_hash)
    room.restart()
    assert (room.group.members, room.group.target, room.group._owners, room.group.metadata_hash) == before


def given_up(room: SharingRoom) -> None:
    """The first member has given up its half, and the second may have it."""
    for _ in range(2):
        room.ask(room.alive("m", owned=room.group.members["m"].assigned))
        room.rest()
    assert room.owned_by("other") == 0


def test_what_is_claimed_is_nobody_elses_and_is_free_again_when_the_member_leaves(room: SharingRoom) -> None:
    given_up(room)
    answers = room.ask(room.alive("other"))
    while not room.owned_by("other"):
        room.one_step()
    assert 0 < room.owned_by("other") < MANY // 2
    leaves = ConsumerGroupHeartbeatRequest(group_id=GROUP, member_id="other", member_epoch=-1)
    assert not room.ask(leaves)[0].error_code
    assert not room.group.members.get("other")
    room.rest()
    assert answers[0].error_code == ErrorCode.UNKNOWN_MEMBER_ID
    assert room.owned_by("other") == 0
    room.check()
    for _ in range(2):
        room.ask(room.alive("m", owned=room.group.members["m"].assigned))
        room.rest()
    assert room.owned_by("m") == MANY


def test_a_member_that_keeps_changing_is_decided_on_in_one_piece_in_the_end(room: SharingRoom) -> None:
    given_up(room)
    answers = room.ask(room.alive("other"))
    count = 0
    while not answers:
        # Topics come all the time.
        room.topic(f"of-somebody-else-{count}", 1)
        count += 1
        room.one_step()
        assert count < 20 * (TRIES + 1) * MANY * TOPIC_WORK // WORK_A_STEP
    assert count > TRIES
    room.rest()
    assert room.owned_by("other") == MANY // 2
    room.check()


def test_two_heartbeats_of_one_member_are_decided_one_after_the_other(room: SharingRoom) -> None:
    given_up(room)
    first, second = room.ask(room.alive("other")), room.ask(room.alive("other"))
    room.rest()
    assert first[0].member_epoch == second[0].member_epoch == room.group.epoch
    assert room.owned_by("other") == MANY // 2
    room.check()


def test_a_coordinator_that_is_given_up_answers_who_waits(room: SharingRoom) -> None:
    given_up(room)
    answers = room.ask(room.alive("other"))
    writes = len(room.journal.writes)
    room.shard.unload(ErrorCode.NOT_COORDINATOR, room.now)
    room.rest()
    assert [answer.error_code for answer in answers] == [ErrorCode.NOT_COORDINATOR]
    assert len(room.journal.writes) == writes


def test_a_share_that_cannot_be_written_is_nobodys(room: SharingRoom) -> None:
    given_up(room)
    answers = room.ask(room.alive("other"))
    room.journal.refuses_with = ErrorCode.COORDINATOR_NOT_AVAILABLE
    room.rest()
    assert [answer.error_code for answer in answers] == [ErrorCode.COORDINATOR_NOT_AVAILABLE]
    assert room.owned_by("other") == 0
    room.journal.refuses_with = ErrorCode.NONE
    room.ask(room.alive("other"))
    room.rest()
    assert room.owned_by("other") == MANY // 2


class CountingHashes(TopicHashes):
    """Knows the largest number of topics that were looked at in one piece."""

    most = 0

    def _sum(self, names: Iterable[str]) -> int:
        found = list(names)
        self.most = max(self.most, len(found))
        return super()._sum(found)


@pytest.mark.parametrize("happens", ["nothing", "a restart", "a topic of somebody else"])
def test_topics_are_looked_at_in_steps(happens: str) -> None:
    room = SharingRoom()
    names = topics(room)

    def watched() -> CountingHashes:
        hashes = CountingHashes(room.metadata)
        room.shard._consumer._hashes = room.shard._consumer._preparation._hashes = hashes
        return hashes

    hashes = watched()
    room.ask(joining(names))
    room.rest()
    assert hashes.most <= PIECE
    if happens == "a restart":
        room.restart()
        hashes = watched()
    elif happens == "a topic of somebody else":
        room.topic("of-somebody-else", 1)
    epoch = room.group.epoch
    full = joining(names, epoch=room.group.members["m"].epoch)
    full.topic_partitions = room.alive("m", owned=room.group.members["m"].assigned).topic_partitions
    room.ask(full)
    room.rest()
    assert hashes.most <= PIECE
    assert room.group.epoch == epoch


def owned(dice: Random, topics: int, partitions: int) -> Owned:
    def numbers() -> dict[int, int]:
        return {dice.randrange(1 << 20): dice.randrange(9) for _ in range(dice.randint(1, partitions))}

    return {TopicId(dice.randbytes(16)): numbers() for _ in range(topics)}


@pytest.mark.parametrize(
    ("text", "topic_count"),
    [
        *product(["", "client", "c" * 300], [0, 1, 31, 32, 33, 126, 127, 128, 1_000]),
        ("client", 20_000),  # three bytes of a varint
    ],
)
def test_long_records_are_what_they_would_be_in_one_piece(topic_count: int, text: str) -> None:
    dice = Random(topic_count)
    names = [f"{text}{number:05}" for number in range(topic_count)]
    member = Member(
        id="m",
        instance_id=text or None,
        client_id=text,
        client_host=text,
        topic_names=frozenset(names),
        topic_regex=text,
        assignor=text or None,
        assigned=owned(dice, topic_count, 3),
        pending_revocation=owned(dice, topic_count // 2, 70),
    )
    steps, stored = counted(long_records.stored_names(names))
    assert long_records.member(GROUP, member, stored) == records.member(GROUP, member)
    assert steps >= topic_count // PIECE
    steps, record = counted(long_records.current(GROUP, member))
    assert record == records.current(GROUP, member)
    assert steps >= topic_count // PIECE
    share = {topic: frozenset(numbers) for topic, numbers in member.pending_revocation.items()}
    assert at_once(long_records.target(GROUP, "m", share)) == records.target(GROUP, "m", share)
