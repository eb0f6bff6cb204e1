"""A commit that is recognised is the commit that it would be, decoded: in its answer, in the log, and in the group.

Two rooms get the same requests and the same changes; one of them recognises nothing.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from random import Random
from typing import Any

import pytest
from tests.groups.world import subscription
from tests.handlers.commit.room import PARTITIONS, Room
from tests.searches import some

from ottla.config import Config
from ottla.coordinators.caller import Caller
from ottla.handlers.commit import recognised
from ottla.handlers.commit.memo import LEFT_ALONE, REMEMBERED_BYTES_MAX, UNLIKE_MAX, CommitMemo, CommitSeed
from ottla.javahash import partition_of
from ottla.model import OFFSETS_TOPIC, ErrorCode
from ottla.ports.memory.clock import Timeline
from ottla.ports.memory.loop import VirtualLoop
from ottla.protocol.generated.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest, TopicPartitions
from ottla.protocol.generated.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from ottla.protocol.generated.leave_group import LeaveGroupRequest, MemberIdentity
from ottla.protocol.generated.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)
from ottla.protocol.generated.sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from ottla.protocol.header import RequestHeader, decode_response_header, encode_request
from ottla.security.authorizer import Resource
from ottla.security.session import Session, SessionState
from ottla.server.connection import Connection
from ottla.steps import at_once

VERSIONS = range(2, 11)
GROUPS = ("classic", "consumer", "simple", "")
TOPICS = ("a", "b")
CONNECTIONS = 3
NONE = ErrorCode.NONE


def run(scene: Callable[[VirtualLoop], Awaitable[None]]) -> None:
    loop = VirtualLoop(Timeline())
    asyncio.set_event_loop(loop)
    try:
        loop.run_until_complete(scene(loop))  # type: ignore[arg-type]
    finally:
        asyncio.set_event_loop(None)
        loop.close()


def topic_id(name: str, number: int) -> bytes:
    return f"{name}-{number}".encode().ljust(16)


async def opened(loop: VirtualLoop, *, recognises: bool = True) -> Room:
    room = Room(loop, recognises=recognises)
    room.announce(OFFSETS_TOPIC, b"o" * 16, PARTITIONS)
    for name in TOPICS:
        room.announce(name, topic_id(name, 0), 4)
    for partition in range(PARTITIONS):
        await room.lead(partition)
    return room


def commit(
    *offsets: int,
    group: str = "simple",
    topic: str = "a",
    version: int = 8,
    first: int = 0,
    number: int = 0,
    metadata: str | None = "",
    **fields: Any,
) -> OffsetCommitRequest:
    parts = [
        OffsetCommitRequestPartition(
            partition_index=first + index, committed_offset=offset, committed_metadata=metadata
        )
        for index, offset in enumerate(offsets)
    ]
    named = {"topic_id": topic_id(topic, number)} if version >= 10 else {"name": topic}
    return OffsetCommitRequest(group_id=group, topics=[OffsetCommitRequestTopic(partitions=parts, **named)], **fields)


def framed(request: OffsetCommitRequest, version: int, correlation: int = 7, client: str = "c") -> bytes:
    header = RequestHeader(api_key=8, api_version=version, correlation_id=correlation, client_id=client)
    return encode_request(header, request)


def errors(answer: bytes, version: int) -> list[int]:
    *_, pos = decode_response_header(answer, 8, version, 4)
    response, _ = OffsetCommitResponse.decode(answer, version, pos)
    return [part.error_code for topic in response.topics for part in topic.partitions]


class Client:
    def __init__(self, room: Room) -> None:
        self.room = room
        self.connection = room.connect()
        self._read = 0

    def ask(self, request: OffsetCommitRequest, version: int = 8, **fields: Any) -> list[int]:
        """The errors of the answer."""
        self.room.serve(self.connection, framed(request, version, **fields))
        self.room.settle()
        sent = self.room.sent(self.connection)
        answer, self._read = sent[self._read :], len(sent)
        return errors(answer, version)

    @property
    def memo(self) -> object:
        return self.connection.commit_memo


# -- what is recognised


@pytest.mark.parametrize("version", VERSIONS)
def test_the_third_of_its_kind_is_recognised(version: int) -> None:
    async def scene(loop: VirtualLoop) -> None:
        room = await opened(loop)
        client = Client(room)
        for offset in range(5):
            request = commit(offset, offset + 1, version=version)
            assert client.ask(request, version, correlation=offset) == [NONE, NONE]
            assert room.recognised == max(0, offset - 1)

    run(scene)


def test_of_a_single_commit_only_its_frame_is_kept() -> None:
    async def scene(loop: VirtualLoop) -> None:
        client = Client(await opened(loop))
        client.ask(commit(1))
        assert isinstance(client.memo, CommitSeed)
        assert client.memo.frame == framed(commit(1), 8)[4:]
        client.ask(commit(2))
        assert isinstance(client.memo, CommitMemo)

    run(scene)


@pytest.mark.parametrize(
    "other",
    [
        commit(9, first=1),
        commit(9, group="simplE"),
        commit(9, topic="b"),
        commit(9, metadata=None),
        commit(9, metadata="m"),
        commit(9, member_id="m"),
        commit(9, generation_id_or_member_epoch=1),
        commit(9, group_instance_id="i"),
        commit(9, 10),
        commit(),
        commit(9, unknown_tags={4: b"tag"}),
    ],
    ids=lambda request: "",
)
def test_whatever_differs_is_decoded(other: OffsetCommitRequest) -> None:
    async def scene(loop: VirtualLoop) -> None:
        room = await opened(loop)
        client = Client(room)
        for offset in range(3):
            client.ask(commit(offset))
        assert room.recognised == 1
        plain = Client(room)
        assert client.ask(other) == plain.ask(other)
        assert room.recognised == 1

    run(scene)


@pytest.mark.parametrize(("known", "other"), [(8, 9), (9, 8), (2, 3), (4, 3), (6, 5)])
def test_another_version_is_another_request(known: int, other: int) -> None:
    """Some have the same bytes and another meaning."""

    async def scene(loop: VirtualLoop) -> None:
        room = await opened(loop)
        client = Client(room)
        for offset in range(3):
            client.ask(commit(offset), known)
        assert room.recognised == 1
        assert client.ask(commit(9), other) == [NONE]
        assert room.recognised == 1

    run(scene)


@pytest.mark.parametrize("size", [REMEMBERED_BYTES_MAX, REMEMBERED_BYTES_MAX + 1])
def test_what_is_kept_has_a_bound(size: int) -> None:
    async def scene(loop: VirtualLoop) -> None:
        client = Client(await opened(loop))
        name = "c" * (size + 5 - len(framed(commit(1), 8)))
        for offset in range(3):
            client.ask(commit(offset), client=name)
        assert isinstance(client.memo, CommitMemo) == (size == REMEMBERED_BYTES_MAX)
        client.ask(commit(1), client="c" * 5_000)
        assert client.memo is None

    run(scene)


def test_records_that_take_much_more_than_their_request_are_not_kept() -> None:
    """Each of them names the group and the topic."""

    async def scene(loop: VirtualLoop) -> None:
        room = await opened(loop)
        room.announce("wide", topic_id("wide", 0), 40)
        client = Client(room)
        for offset in range(4):
            assert client.ask(commit(*[offset] * 10, topic="wide", group="g" * 200)) == [NONE] * 10
        assert isinstance(client.memo, CommitSeed)
        assert room.recognised == 0

    run(scene)


@pytest.mark.parametrize(
    ("request_", "version"),
    [
        (commit(1, retention_time_ms=60_000), 4),
        (commit(1, first=9), 8),
        (commit(1, topic="none"), 8),
    ],
    ids=["an expiry", "no partition", "no topic"],
)
def test_where_no_memo_can_be_made_it_is_not_tried_each_time(request_: OffsetCommitRequest, version: int) -> None:
    async def scene(loop: VirtualLoop) -> None:
        room = await opened(loop)
        client = Client(room)
        tried = 0
        for _ in range(2 * LEFT_ALONE):
            before = client.memo
            client.ask(request_, version)
            tried += client.memo is not before
            assert isinstance(client.memo, CommitSeed)
        assert tried <= 6
        assert room.recognised == 0

    run(scene)


def test_what_was_refused_once_is_recognised_in_the_end() -> None:
    async def scene(loop: VirtualLoop) -> None:
        room = await opened(loop)
        client = Client(room)
        assert client.ask(commit(1, topic="late")) == client.ask(commit(2, topic="late")) == [3]
        room.announce("late", topic_id("late", 0), 1)
        for offset in range(LEFT_ALONE + 4):
            assert client.ask(commit(offset, topic="late")) == [NONE]
        assert room.recognised

    run(scene)


def test_one_kind_after_another_leaves_no_memo() -> None:
    async def scene(loop: VirtualLoop) -> None:
        room = await opened(loop)
        client = Client(room)
        looks = 0
        for offset in range(100):
            before = client.memo
            assert client.ask(commit(offset, topic="ab"[offset % 2])) == [NONE]
            assert isinstance(client.memo, CommitSeed)
            looks += client.memo is not before
        assert looks <= 2 * (UNLIKE_MAX + 2)
        for offset in range(LEFT_ALONE + 4):
            assert client.ask(commit(offset)) == [NONE]
        assert room.recognised

    run(scene)


def test_after_its_shard_was_loaded_again_it_is_recognised_again() -> None:
    async def scene(loop: VirtualLoop) -> None:
        room = await opened(loop)
        client = Client(room)
        for offset in range(3):
            client.ask(commit(offset))
        partition = room.coordinator.partition_for("simple")
        await room.lose(partition)
        for offset in range(3, 6):
            assert client.ask(commit(offset)) == [NONE]
        assert room.recognised == 1 + 2
        room.coordinator.led.resigned(partition)
        assert client.ask(commit(6)) == client.ask(commit(7)) == [ErrorCode.NOT_COORDINATOR]
        assert room.recognised == 1 + 2

    run(scene)


@pytest.mark.parametrize("version", [8, 10])
def test_what_changes_elsewhere_leaves_the_memo(version: int) -> None:
    """A cluster may have news every second, and a consumer commits every five."""

    async def scene(loop: VirtualLoop) -> None:
        room = await opened(loop)
        client = Client(room)
        for offset in range(3):
            client.ask(commit(offset, version=version), version)
        for number in range(3):
            room.announce("another", topic_id("another", number), 1)
            assert client.ask(commit(5, version=version), version) == [NONE]
        room.announce("a", topic_id("a", 0), 5)
        assert client.ask(commit(5, version=version), version) == [NONE]
        assert room.recognised == 1 + 4
        assert isinstance(client.memo, CommitMemo)
        assert client.memo.seen_generation == room.metadata.generation
        room.delete_topic("a")
        gone = ErrorCode.UNKNOWN_TOPIC_ID if version >= 10 else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        assert client.ask(commit(5, version=version), version) == [gone]
        room.announce("a", topic_id("a", 1), 4)
        assert client.ask(commit(5, version=version), version) == [gone if version >= 10 else NONE]
        assert room.recognised == 1 + 4

    run(scene)


def test_a_topic_that_is_made_again_with_fewer_partitions() -> None:
    async def scene(loop: VirtualLoop) -> None:
        room = await opened(loop)
        client = Client(room)
        for offset in range(3):
            assert client.ask(commit(offset, offset)) == [NONE, NONE]
        room.announce("a", topic_id("a", 1), 1)
        assert sorted(client.ask(commit(5, 5))) == [NONE, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]
        assert room.recognised == 1

    run(scene)


def test_a_group_that_belongs_to_another_shard_now() -> None:
    """As many partitions as the offsets topic has decide where a group is kept."""

    async def scene(loop: VirtualLoop) -> None:
        room = await opened(loop)
        client = Client(room)
        for offset in range(3):
            assert client.ask(commit(offset)) == [NONE]
        before = room.coordinator.partition_for("simple")
        more = next(count for count in range(4, 20) if partition_of("simple", count) not in {before, 0, 1, 2})
        room.announce(OFFSETS_TOPIC, b"o" * 16, more)
        assert client.ask(commit(5)) == [ErrorCode.NOT_COORDINATOR]
        assert room.recognised == 1

    run(scene)


def test_another_session_forgets_it() -> None:
    async def scene(loop: VirtualLoop) -> None:
        room = await opened(loop)
        client = Client(room)
        for offset in range(3):
            client.ask(commit(offset))
        client.connection.enter(Session("PLAINTEXT", SessionState.EXPIRED))
        assert client.memo is None
        before = room.coordinator.counts.commits
        room.serve(client.connection, framed(commit(5), 8))
        assert client.connection.closed
        assert room.coordinator.counts.commits == before
        client.connection.release()
        assert client.memo is None

    run(scene)


def test_a_memo_does_not_outlive_its_connection() -> None:
    async def scene(loop: VirtualLoop) -> None:
        client = Client(await opened(loop))
        for offset in range(3):
            client.ask(commit(offset))
        assert client.memo is not None
        client.connection.release()
        assert client.memo is None

    run(scene)


def test_a_client_that_goes_while_its_commit_is_written() -> None:
    async def scene(loop: VirtualLoop) -> None:
        room = await opened(loop)
        client = Client(room)
        for offset in range(3):
            client.ask(commit(offset))
        room.serve(client.connection, framed(commit(9), 8))
        assert room.recognised == 2
        client.connection.release()
        before = room.sent(client.connection)
        room.settle()
        assert room.sent(client.connection) == before
        assert Client(room).ask(commit(10)) == [NONE]

    run(scene)


# -- side by side


class Pair:
    """The same things happen in both rooms; only one of them recognises requests."""

    def __init__(self, rooms: list[Room], seed: int) -> None:
        self.rooms = rooms
        self.random = Random(seed)
        self.connections = [[room.connect() for _ in range(CONNECTIONS)] for room in rooms]
        #: What each connection has sent, to be sent again with other offsets.
        self.sent: list[tuple[OffsetCommitRequest, int] | None] = [None] * CONNECTIONS
        self.correlation = 0
        self.topic_numbers = dict.fromkeys(TOPICS, 0)
        #: Members of the groups `classic` and `consumer`, with their generation or epoch.
        self.members: dict[str, list[tuple[str, int]]] = {"classic": [("m", 1)], "consumer": [("m", 1)]}

    def each(self, act: Callable[[Room], Any]) -> Any:
        found = [act(room) for room in self.rooms]
        assert found[0] == found[1]
        return found[0]

    # Commits.

    def commit(self) -> None:
        which = self.random.randrange(CONNECTIONS)
        if self.connections[0][which].busy:
            self.settle()
        again = self.sent[which]
        if again is None or self.random.random() < 0.06:
            again = self.sent[which] = self.new_request()
        request, version = again
        for topic in request.topics:
            for part in topic.partitions:
                part.committed_offset = self.random.choice((0, 1, -1, 2**63 - 1, self.random.getrandbits(40)))
        self.correlation += 1
        frame = bytearray(framed(request, version, self.correlation, f"client-{which}"))
        if self.random.random() < 0.02:
            frame[self.random.randrange(4, len(frame))] ^= 1 << self.random.randrange(8)
            # Key and version, which rounds and routes have looked at, stay.
            frame[4:8] = framed(request, version)[4:8]
        if self.random.random() < 0.02:
            frame += b"behind"
        for room, connections in zip(self.rooms, self.connections, strict=True):
            room.serve(connections[which], bytes(frame))
        if self.random.random() < 0.9:
            self.settle()

    def new_request(self) -> tuple[OffsetCommitRequest, int]:
        random = self.random
        version = random.choice(VERSIONS)
        group = random.choice(GROUPS)
        member, generation = "", -1
        if group in self.members and random.random() < 0.9:
            member, generation = random.choice(self.members[group])
            generation += random.choice((0, 0, 0, 0, -1, 1))
        topics = []
        for _ in range(random.choice((1, 1, 1, 2, 3))):
            name = random.choice((*TOPICS * 10, "none"))
            number = self.topic_numbers.get(name, 0)
            named: dict[str, Any] = {"topic_id": topic_id(name, number)} if version >= 10 else {"name": name}
            parts = [
                OffsetCommitRequestPartition(
                    partition_index=random.choice((0, 0, 0, 0, 1, 1, 1, 1, 2, 3, 4)),
                    committed_leader_epoch=random.choice((-1, 3)) if version >= 6 else -1,
                    committed_metadata=random.choice(("", "", "", "", "", "", None, "note", "é" * 30)),
                    unknown_tags={3: b"tag"} if version >= 8 and random.random() < 0.05 else {},
                )
                for _ in range(random.choice((1, 1, 1, 2, 5)))
            ]
            topics.append(OffsetCommitRequestTopic(partitions=parts, **named))
        request = OffsetCommitRequest(
            group_id=group,
            generation_id_or_member_epoch=generation,
            member_id=member,
            group_instance_id=random.choice((*[None] * 9, "i")) if version >= 7 else None,
            retention_time_ms=random.choice((-1, -1, -1, 1000)) if version < 5 else -1,
            topics=topics,
        )
        return request, version

    # What happens beside them.

    def settle(self) -> None:
        for room in self.rooms:
            room.settle()

    def join(self) -> None:
        """A member comes to the classic group, and its leader hands out the shares."""
        self.settle()
        found = self.each(self._join)
        if found is not None:
            self.members["classic"] = found

    @staticmethod
    def _join(room: Room) -> list[tuple[str, int]] | None:
        shard: Any = room.coordinator.shard_for_member("classic")
        group = None if room.shard(room.coordinator.partition_for("classic")) is None else shard.groups.get("classic")
        known = [] if group is None else list(group.members)
        answers: list[Any] = []
        for member in [*known, ""]:
            request = JoinGroupRequest(
                group_id="classic",
                member_id=member,
                session_timeout_ms=10_000,
                rebalance_timeout_ms=10_000,
                protocol_type="consumer",
                protocols=[JoinGroupRequestProtocol(name="range", metadata=subscription("a"))],
            )
            shard.join_group(caller(room, 3), request, answers.append)
        if not answers or answers[-1].error_code:
            return None
        generation, leader = answers[-1].generation_id, answers[-1].leader
        ids = [answer.member_id for answer in answers]
        for member in sorted(ids, key=leader.__eq__):
            shares = [SyncGroupRequestAssignment(member_id=each, assignment=b"s") for each in ids]
            request = SyncGroupRequest(
                group_id="classic",
                generation_id=generation,
                member_id=member,
                assignments=shares if member == leader else [],
            )
            shard.sync_group(caller(room, 3), request, lambda _: None)
        room.settle()
        return [(member, generation) for member in ids]

    def leave(self) -> None:
        self.settle()
        member, _ = self.random.choice(self.members["classic"])
        for room in self.rooms:
            shard = room.coordinator.shard_for_member("classic")
            request = LeaveGroupRequest(group_id="classic", members=[MemberIdentity(member_id=member)])
            at_once(shard.leave_group(caller(room, 4), request, lambda _: None))

    def heartbeat(self) -> None:
        """Of a member of the newer protocol: it comes, or goes on to the next epoch."""
        self.settle()
        member, epoch = self.members["consumer"][0]
        epoch = self.random.choice((0, epoch, epoch, -1))

        def beat(room: Room) -> tuple[str, int] | None:
            answers: list[Any] = []
            request = ConsumerGroupHeartbeatRequest(
                group_id="consumer",
                member_id=member,
                member_epoch=epoch,
                rebalance_timeout_ms=10_000,
                subscribed_topic_names=self_topics,
                topic_partitions=[TopicPartitions(topic_id=topic_id("a", self.topic_numbers["a"]), partitions=[0, 1])]
                if epoch > 0
                else [],
            )
            room.coordinator.shard_for_member("consumer").consumer_group_heartbeat(
                caller(room, 1), request, answers.append
            )
            room.settle()
            if not answers or answers[0].error_code:
                return None
            return answers[0].member_id, answers[0].member_epoch

        self_topics = self.random.choice((["a"], ["a", "b"], ["a"]))
        found = self.each(beat)
        if found is not None and found[1] >= 0:
            self.members["consumer"] = [found]

    def delete_group(self) -> None:
        group = self.random.choice(GROUPS)
        for room in self.rooms:
            shard = room.coordinator.shard_for(group)
            at_once(shard.delete_group(caller(room, 2), group, lambda _: None))

    def change_topic(self) -> None:
        """Deleted, or made again, or both at once; or another one changes."""
        name = self.random.choice((*TOPICS, "none", "another"))
        is_there = self.rooms[0].metadata.topic(name) is not None
        deletes, makes = is_there and self.random.random() < 0.7, self.random.random() < 0.8
        if makes and (deletes or not is_there) and name in self.topic_numbers:
            self.topic_numbers[name] += 1
        partitions = self.random.choice((2, 4, 4, 4))
        for room in self.rooms:
            if deletes:
                room.delete_topic(name)
            if makes and name != "none":
                room.announce(name, topic_id(name, self.topic_numbers.get(name, 0)), partitions)

    def change_policy(self) -> None:
        """Somebody is denied something, or held back; and after that allowed, or let go."""
        first = self.rooms[0]
        if first.authorizer.denied:
            ((resource, name),) = first.authorizer.denied
        else:
            resource = self.random.choice((Resource.GROUP, Resource.TOPIC))
            name = self.random.choice(GROUPS if resource is Resource.GROUP else TOPICS)
        of_quotas = first.quotas.is_counting or (not first.authorizer.denied and self.random.random() < 0.4)
        for room in self.rooms:
            if of_quotas:
                room.quotas.turn()
            else:
                room.authorizer.turn(resource, name)

    def change_setting(self) -> None:
        limit = self.random.choice(("0", "3", "20", "4096", "4096", "4096"))
        for room in self.rooms:
            room.live.current = Config.parse(
                {"group.initial.rebalance.delay.ms": "0", "offset.metadata.max.bytes": limit}
            )

    def refuse(self) -> None:
        """The journal takes nothing, or takes again what comes."""
        refusal = self.random.choice((ErrorCode.COORDINATOR_NOT_AVAILABLE, *[None] * 5))
        for room in self.rooms:
            for journal in room.journals:
                journal.refusal = refusal

    async def move(self) -> None:
        """Another broker coordinates a partition, or this one does again; or it loses what it had written."""
        partition = self.random.randrange(PARTITIONS)
        what = self.random.choice(("resign", *["lead"] * 6, "lose"))
        for room in self.rooms:
            if what == "resign":
                room.coordinator.led.resigned(partition)
            elif what == "lead":
                if room.shard(partition) is None:
                    await room.lead(partition)
            elif room.shard(partition) is not None:
                await room.lose(partition)

    async def wait(self) -> None:
        await asyncio.sleep(self.random.choice((0.001, 0.5, 4, 9)))

    # What comes of it.

    def compare(self) -> None:
        plain, recognising = self.rooms
        for one, other in zip(*self.connections, strict=True):
            assert plain.sent(one) == recognising.sent(other)
            assert (one.closed, one.busy) == (other.closed, other.busy)
        for one, other in zip(plain.journals, recognising.journals, strict=True):
            assert one.batches == other.batches
        assert state_of(plain) == state_of(recognising)

    def replace_closed(self) -> None:
        for number, connection in enumerate(self.connections[0]):
            if connection.closed:
                self.sent[number] = None
                for room, connections in zip(self.rooms, self.connections, strict=True):
                    connections[number] = room.connect()


def caller(room: Room, version: int) -> Caller:
    return Caller("client", "/127.0.0.1", version, room.coordinator.led.now())


def state_of(room: Room) -> list[object]:
    """Offsets, groups, when sessions end, and what was counted."""
    found: list[object] = [room.coordinator.counts.commits, room.coordinator.counts.deletions]
    for partition in range(PARTITIONS):
        shard = room.shard(partition)
        if shard is None:
            found.append(None)
            continue
        found += [
            (group.id, group.type_name, group.state_name, sorted(group.members), shard.state.offsets.of_group(group.id))
            for group in shard.groups.values()
        ]
        found.append(shard.state.offsets.count)
        found.append(sorted((str(key), timer.when_ms) for key, timer in shard.timers._timers.items()))
    times = room.services.metrics.times_of("OffsetCommit")
    found.append((list(times.counts), times.total_ms))
    return found


async def any_commits(loop: VirtualLoop, seed: int) -> int:
    """How many were recognised."""
    pair = Pair([await opened(loop, recognises=False), await opened(loop)], seed)
    events: list[tuple[Callable[[], Any], int]] = [
        (pair.commit, 300),
        (pair.join, 3),
        (pair.leave, 1),
        (pair.heartbeat, 3),
        (pair.delete_group, 2),
        (pair.change_topic, 3),
        (pair.change_policy, 4),
        (pair.change_setting, 2),
        (pair.refuse, 3),
        (pair.move, 4),
        (pair.wait, 3),
    ]
    for happen in pair.random.choices([event for event, _ in events], [weight for _, weight in events], k=400):
        waits = happen()
        if waits is not None:
            await waits
        pair.compare()
        pair.replace_closed()
    pair.settle()
    pair.compare()
    for room in pair.rooms:
        await room.coordinator.close()
    plain, recognising = pair.rooms
    assert plain.recognised == 0
    return recognising.recognised


@pytest.mark.parametrize("first", some(range(0, 60, 10), 0))
def test_any_commits_and_any_changes(first: int, monkeypatch: pytest.MonkeyPatch) -> None:
    # Few, so that requests become good and are recognised in one run.
    monkeypatch.setattr(recognised, "LEFT_ALONE", 3)
    found = 0

    async def scene(loop: VirtualLoop) -> None:
        nonlocal found
        found += await any_commits(loop, next(seeds))

    seeds = iter(range(first, first + 10))
    for _ in range(10):
        run(scene)
    assert found > 300


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("loses", [False, True])
@pytest.mark.parametrize("slows", [False, True])
def test_what_happens_while_a_commit_is_written(version: int, loses: bool, slows: bool) -> None:
    async def scene(loop: VirtualLoop) -> None:
        answers = []
        for recognises in (False, True):
            room = await opened(loop, recognises=recognises)
            client = Client(room)
            for offset in range(3):
                client.ask(commit(offset, version=version), version)
            room.serve(client.connection, framed(commit(9, version=version), version))
            assert client.connection.busy
            if slows:
                room.quotas.turn()
            if loses:
                await room.lose(room.coordinator.partition_for("simple"))
            room.settle()
            assert not client.connection.busy
            assert room.recognised == 2 * recognises
            answers.append(room.sent(client.connection))
        assert answers[0] == answers[1]

    run(scene)


# -- the connection waits, as for any other


def test_a_recognised_commit_keeps_its_place() -> None:
    async def scene(loop: VirtualLoop) -> None:
        room = await opened(loop)
        client = Client(room)
        for offset in range(3):
            client.ask(commit(offset))
        connection: Connection = client.connection
        room.serve(connection, framed(commit(9), 8, 41))
        assert connection.busy
        assert not connection.takes(8)
        sent = room.sent(connection)
        room.settle()
        assert not connection.busy
        answer = room.sent(connection)[len(sent) :]
        assert decode_response_header(answer, 8, 8, 4)[0] == 41

    run(scene)
