"""What a broker remembers, and what that stood for: nothing is answered from memory of a topic that is not the same.

Each memory meets each change of what it remembers, over sockets, with compiled lanes and without. A topic's settings
that change under a lane stand in `tests/native/test_lanes_at_work.py`; an authorizer's mind in `test_hooks.py`.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from threading import Thread
from typing import Any, TypeVar

import pytest
from tests.handlers import groups
from tests.handlers.frames import batch, fetch_request, list_offset, produce, produce_request, values
from tests.server.conftest import BrokerThread, Peer
from tests.server.test_connections import asks, until
from tests.server.topic_settings import alter

from ottla.broker.broker import Broker
from ottla.config import Config
from ottla.metadata import PartitionState
from ottla.model import Epoch, ErrorCode, TopicPartition
from ottla.ports import Workers
from ottla.ports.real import real_ports
from ottla.protocol.generated.alter_replica_log_dirs import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirsResponse,
    AlterReplicaLogDirTopic,
)
from ottla.protocol.generated.delete_topics import DeleteTopicsRequest, DeleteTopicsResponse
from ottla.protocol.generated.fetch import FetchRequest, FetchResponse
from ottla.protocol.generated.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from ottla.protocol.generated.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse
from ottla.protocol.generated.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)
from ottla.protocol.generated.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
)
from ottla.protocol.generated.produce import ProduceRequest, ProduceResponse
from ottla.records.compression import ZSTD
from ottla.records.record import Record, encode_batch

T = TypeVar("T")

TP = TopicPartition("t", 0)
NONE = ErrorCode.NONE
NO_TOPIC, NO_ID = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.UNKNOWN_TOPIC_ID
NOT_LEADER = ErrorCode.NOT_LEADER_OR_FOLLOWER
NOW = 1_700_000_000_000
#: More than the loop looks at by itself.
MANY = 3000
#: The last version that names topics, and the first that gives their ids.
PRODUCE_BY = {False: 12, True: 13}
FETCH_BY = {False: 12, True: 13}
pytestmark = pytest.mark.in_turns
by_name_and_id = pytest.mark.parametrize("by_id", [False, True], ids=["by name", "by id"])


class HeldWorkers:
    """Work of one kind begins when it is let go."""

    def __init__(self, workers: Workers) -> None:
        self._workers = workers
        self._kind = ""
        self._held: list[Callable[[], None]] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._workers, name)

    def __len__(self) -> int:
        return len(self._held)

    def hold(self, kind: str) -> None:
        self._kind = kind

    def let_go(self) -> None:
        held, self._held = self._held, []
        self._kind = ""
        for begin in held:
            begin()

    def thread(self, work: Callable[[], T]) -> asyncio.Future[T]:
        kind = type(getattr(work, "__self__", None)).__name__
        return self._after(kind, lambda: self._workers.thread(work))

    def check(self, work: Callable[..., T], *arguments: object) -> asyncio.Future[T]:
        return self._after("check", lambda: self._workers.check(work, *arguments))

    def check_long(self, work: Callable[..., T], *arguments: object) -> asyncio.Future[T]:
        return self._after("check", lambda: self._workers.check_long(work, *arguments))

    def _after(self, kind: str, start: Callable[[], asyncio.Future[T]]) -> asyncio.Future[T]:
        if kind != self._kind:
            return start()
        outer: asyncio.Future[T] = asyncio.get_running_loop().create_future()

        def begin() -> None:
            start().add_done_callback(partial(give, outer))

        self._held.append(begin)
        return outer


def give(outer: asyncio.Future[T], done: asyncio.Future[T]) -> None:
    if outer.done():
        return
    error = done.exception()
    if error is None:
        outer.set_result(done.result())
    else:
        outer.set_exception(error)


class Holding(BrokerThread):
    """With two log directories, and one topic `t`."""

    async def _start(self) -> None:
        self.ports = real_ports()
        self.workers = HeldWorkers(self.ports.workers)
        self.broker = Broker(Config.parse(self.properties), replace(self.ports, workers=self.workers))
        await self.broker.start()
        self.port = self.broker.endpoints[0].port

    async def _stop(self) -> None:
        # A test that fails meanwhile does not wait for its own hand.
        self.workers.let_go()
        await super()._stop()

    def hold(self, kind: str) -> None:
        self.look(lambda _: self.workers.hold(kind))

    def let_go(self) -> None:
        self.look(lambda _: self.workers.let_go())

    def until_held(self) -> None:
        until(lambda: self.look(lambda _: len(self.workers)) > 0)

    def topic_id(self) -> bytes:
        return self.look(lambda broker: bytes(broker.metadata.topics["t"].id))

    def end(self) -> int:
        return self.look(lambda broker: broker.services.replicas.leaders[TP].log.end_offset)

    def delete(self) -> None:
        with self.connect() as admin:
            deleted = admin.ask(DeleteTopicsRequest(topic_names=["t"], timeout_ms=60_000), 3, DeleteTopicsResponse)
            assert deleted.responses[0].error_code == NONE

    def later_epoch(self) -> None:
        """Another broker may have led in between."""
        self.new_epoch(2)

    def new_epoch(self, later_by: int = 1) -> None:
        """The same broker leads again, in a later leader epoch, as after an election."""

        def lead(broker: Broker) -> None:
            known = broker.metadata.partition("t", 0)
            assert isinstance(known, PartitionState)
            later = known._replace(leader_epoch=Epoch(known.leader_epoch + later_by))
            log = broker.services.replicas.leaders[TP].log
            answers = broker.services.replicas.apply([later], lambda _: log.config)
            assert answers == {TP: NONE}

        self.look(lead)

    def move(self) -> None:
        """The log goes to the other directory."""

        def home(broker: Broker) -> str:
            return broker.services.replicas.leaders[TP].log.directory

        here = self.look(home)
        a, b = self.properties["log.dirs"].split(",")
        there = b if here.startswith(a) else a
        topics = [AlterReplicaLogDirTopic(name="t", partitions=[0])]
        request = AlterReplicaLogDirsRequest(dirs=[AlterReplicaLogDir(path=there, topics=topics)])
        with self.connect() as admin:
            answer = admin.ask(request, 2, AlterReplicaLogDirsResponse)
            assert answer.results[0].partitions[0].error_code == NONE
        until(lambda: self.look(home) != here)


@pytest.fixture(params=["", "1"], ids=["compiled", "pure"])
def running(tmp_path: Any, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> Iterator[Holding]:
    monkeypatch.setenv("OTTLA_PURE", request.param)
    settings = {**groups.PROPERTIES, "log.dirs": f"{tmp_path}/a,{tmp_path}/b"}
    with Holding(str(tmp_path), **settings) as broker:
        broker.create_topic("t")
        yield broker


def again(running: Holding, **configs: str) -> None:
    running.delete()
    running.create_topic("t", **configs)


#: What happens to the topic, and whether the same records and offsets are in it afterwards.
CHANGES: dict[str, tuple[Callable[[Holding], None], bool]] = {
    "gone": (Holding.delete, False),
    "made again": (again, False),
    "a new leader epoch": (Holding.new_epoch, True),
    "a later leader epoch": (Holding.later_epoch, True),
    "a moved log": (Holding.move, True),
}
each_change = pytest.mark.parametrize("change", CHANGES)


def asked_produce(records: bytes, topic_id: bytes | None, acks: int = -1) -> ProduceRequest:
    request = produce_request(records, topic="t", acks=acks)
    if topic_id is not None:
        request.topic_data[0].topic_id = topic_id
    return request


def asked_fetch(offset: int, topic_id: bytes | None, **options: Any) -> FetchRequest:
    request = fetch_request(offset, topic="t", **options)
    for topic in request.topics:
        topic.topic_id = topic.topic_id if topic_id is None else topic_id
    return request


def produced(peer: Peer, version: int) -> Any:
    return peer.answer(ProduceResponse, version).responses[0].partition_responses[0]


# -- produce: memos and lanes


@by_name_and_id
@each_change
@pytest.mark.parametrize("acks", [1, -1])
def test_produces_that_were_recognised(running: Holding, change: str, acks: int, by_id: bool) -> None:
    version = PRODUCE_BY[by_id]
    topic_id = running.topic_id() if by_id else None
    happen, is_same = CHANGES[change]
    with running.connect() as peer:

        def send(value: bytes) -> Any:
            peer.send(peer.frame(asked_produce(batch(value), topic_id, acks), version))
            return produced(peer, version)

        assert [send(b"before").base_offset for _ in range(4)] == [0, 1, 2, 3]
        happen(running)
        answers = [send(b"after") for _ in range(4)]
        if is_same:
            expected = [(NONE, 4), (NONE, 5), (NONE, 6), (NONE, 7)]
        elif by_id:
            expected = [(NO_ID, -1)] * 4
        elif change == "gone":
            expected = [(NO_TOPIC, -1)] * 4
        else:
            expected = [(NONE, 0), (NONE, 1), (NONE, 2), (NONE, 3)]
        assert [(answer.error_code, answer.base_offset) for answer in answers] == expected
        if change == "made again":
            assert running.end() == (0 if by_id else 4)
            # Under its new id it is written to over the same connection.
            topic_id = running.topic_id() if by_id else None
            assert send(b"new").base_offset == running.end() - 1


@by_name_and_id
def test_produces_that_stand_in_one_round_with_the_change(running: Holding, by_id: bool) -> None:
    """Two connections: what the second one's lane has collected is of the old topic, too."""
    version = PRODUCE_BY[by_id]
    topic_id = running.topic_id() if by_id else None
    with running.connect() as first, running.connect() as second:
        for _ in range(3):
            for peer in (first, second):
                peer.send(peer.frame(asked_produce(batch(b"a"), topic_id), version))
                assert produced(peer, version).error_code == NONE
        again(running)
        for peer in (first, second):
            peer.send(peer.frame(asked_produce(batch(b"b"), topic_id), version))
        answers = [produced(peer, version).error_code for peer in (first, second)]
        assert answers == [NO_ID if by_id else NONE] * 2
        assert running.end() == (0 if by_id else 2)


@pytest.mark.parametrize("change", ["a new leader epoch", "a later leader epoch", "a moved log", "made again"])
def test_a_connection_gets_a_lane_again(running: Holding, change: str) -> None:
    """Else its requests took two ways for ever: the old leader's lane, and then the ordinary one."""
    with running.connect() as peer:
        for _ in range(3):
            assert produce(peer, batch(b"a")).error_code == NONE

        def runs(broker: Broker) -> bool:
            return broker.services.replicas.leaders[TP].run is not None

        compiled = running.look(runs)
        CHANGES[change][0](running)
        # In its own next leader epoch the leader is the same, and its lanes go on.
        assert running.look(runs) == (compiled and change == "a new leader epoch")
        for _ in range(3):
            assert produce(peer, batch(b"a")).error_code == NONE
        assert running.look(runs) == compiled


# -- produce: a log that takes nothing for a moment, batches that another process looks into, answers that wait for
# the disk


@pytest.mark.parametrize("acks", [1, -1])
def test_what_is_produced_while_a_log_takes_its_new_place_waits(running: Holding, acks: int) -> None:
    with running.connect() as peer, running.connect() as other, running.connect() as reader:
        for _ in range(3):
            assert produce(peer, batch(b"a"), acks=acks).error_code == NONE
        running.hold("NameTaking")
        mover = threading.Thread(target=running.move)
        mover.start()
        running.until_held()
        for number in range(3):
            peer.send(peer.frame(asked_produce(batch(b"b%d" % number), None, acks), 12))
        other.send(other.frame(asked_produce(honest(MANY), None, acks), 12))
        fetched = reader.ask(asked_fetch(0, None), 12, FetchResponse)
        assert values(fetched.responses[0].partitions[0]) == [b"a"] * 3
        assert running.end() == 3
        running.let_go()
        mover.join()
        answers = [produced(peer, 12) for _ in range(3)]
        assert [answer.error_code for answer in (*answers, produced(other, 12))] == [NONE] * 4
        offsets = [answer.base_offset for answer in answers]
        assert offsets == sorted(offsets)
        assert running.end() == 6 + MANY


def honest(count: int) -> bytes:
    return encode_batch([Record(n, NOW, b"%d" % n, b"v") for n in range(count)], compression=ZSTD)


@by_name_and_id
@each_change
def test_a_batch_that_another_process_looks_into(running: Holding, change: str, by_id: bool) -> None:
    version = PRODUCE_BY[by_id]
    again(running, cleanup_policy="compact")
    topic_id = running.topic_id() if by_id else None
    with running.connect() as peer:
        running.hold("check")
        peer.send(peer.frame(asked_produce(honest(MANY), topic_id), version))
        running.until_held()
        if change == "made again":
            again(running, cleanup_policy="compact")
        else:
            CHANGES[change][0](running)
        running.let_go()
        answer = produced(peer, version)
        if CHANGES[change][1]:
            assert (answer.error_code, answer.base_offset) == (NONE, 0)
            assert running.end() == MANY
        elif by_id:
            assert answer.error_code == NO_ID
        else:
            # The one that is there now may not be the one that was meant: its client looks again.
            assert answer.error_code == {"gone": NO_TOPIC, "made again": NOT_LEADER}[change]
        if change == "made again":
            assert running.end() == 0


@pytest.mark.parametrize(
    ("settings", "error"),
    [
        ({"max_message_bytes": "100"}, ErrorCode.MESSAGE_TOO_LARGE),
        ({"message_timestamp_before_max_ms": "1000"}, ErrorCode.INVALID_TIMESTAMP),
        ({"message_timestamp_type": "LogAppendTime"}, NONE),
        ({"compression_type": "gzip"}, NONE),
        ({"cleanup_policy": "delete"}, NONE),
        ({"min_insync_replicas": "2"}, NONE),  # there cannot be more than one
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
def test_settings_that_change_while_another_process_looks(
    running: Holding, settings: dict[str, str], error: ErrorCode
) -> None:
    again(running, cleanup_policy="compact")
    with running.connect() as peer, running.connect() as admin:
        running.hold("check")
        peer.send(peer.frame(produce_request(honest(MANY)), 8))
        running.until_held()
        alter(admin, **{"cleanup_policy": "compact", **settings})
        running.let_go()
        answer = produced(peer, 8)
        assert answer.error_code == error
        assert (answer.log_append_time_ms > 0) == ("message_timestamp_type" in settings)
        assert running.end() == (0 if error else MANY)


@by_name_and_id
@each_change
def test_a_produce_that_waits_for_the_disk(running: Holding, change: str, by_id: bool) -> None:
    version = PRODUCE_BY[by_id]
    again(running, flush_messages="1")
    topic_id = running.topic_id() if by_id else None
    with running.connect() as peer, running.connect() as other:
        running.hold("Flush")
        peer.send(peer.frame(asked_produce(batch(b"a"), topic_id), version))
        until(lambda: running.end() == 1)
        running.until_held()
        running.hold("nothing else")  # a move flushes its copy
        if change in {"gone", "made again"}:
            # The deletion waits for the flush, and the request does not wait for the deletion.
            making = Thread(target=running.delete if change == "gone" else partial(again, running, flush_messages="1"))
            making.start()
            answer = produced(peer, version)
            assert asks(other)
            running.let_go()
            making.join()
        else:
            CHANGES[change][0](running)
            assert asks(other)
            running.let_go()
            answer = produced(peer, version)
        # The log has kept it: a client that tried again would write it twice.
        assert answer.error_code == (NONE if CHANGES[change][1] else NOT_LEADER)
        if change == "made again":
            assert running.end() == 0


# -- fetch: memos, sessions, waiting ones, cold reads


@by_name_and_id
@each_change
def test_fetches_that_were_recognised(running: Holding, change: str, by_id: bool) -> None:
    version = FETCH_BY[by_id]
    topic_id = running.topic_id() if by_id else None
    happen, is_same = CHANGES[change]
    with running.connect() as peer, running.connect() as writer:
        for value in (b"a", b"b", b"c", b"d"):
            assert produce(writer, batch(value)).error_code == NONE

        def read(offset: int) -> Any:
            answer = peer.ask(asked_fetch(offset, topic_id), version, FetchResponse)
            return answer.responses[0].partitions[0]

        assert [values(read(n))[0] for n in range(4)] == [b"a", b"b", b"c", b"d"]
        happen(running)
        if change == "made again":
            for value in (b"A", b"B", b"C", b"D"):
                assert produce(writer, batch(value)).error_code == NONE
        answers = [read(n) for n in (1, 2, 3)]
        if is_same:
            assert [values(answer)[0] for answer in answers] == [b"b", b"c", b"d"]
        elif by_id:
            assert [(answer.error_code, values(answer)) for answer in answers] == [(NO_ID, [])] * 3
        elif change == "gone":
            assert [(answer.error_code, values(answer)) for answer in answers] == [(NO_TOPIC, [])] * 3
        else:
            assert [values(answer)[0] for answer in answers] == [b"B", b"C", b"D"]


def test_a_fetch_of_an_older_epoch_is_fenced(running: Holding) -> None:
    with running.connect() as peer:
        assert produce(peer, batch(b"a")).error_code == NONE
        epoch = running.look(lambda broker: broker.services.replicas.leaders[TP].epoch)

        def read() -> Any:
            asked = asked_fetch(0, None, current_leader_epoch=epoch)
            return peer.ask(asked, 12, FetchResponse).responses[0].partitions[0]

        assert [values(read()) for _ in range(3)] == [[b"a"]] * 3
        running.new_epoch()
        assert [read().error_code for _ in range(2)] == [ErrorCode.FENCED_LEADER_EPOCH] * 2


@by_name_and_id
@each_change
def test_a_fetch_session(running: Holding, change: str, by_id: bool) -> None:
    version = FETCH_BY[by_id]
    topic_id = running.topic_id() if by_id else None
    happen, is_same = CHANGES[change]
    with running.connect() as peer, running.connect() as writer:
        assert produce(writer, batch(b"a")).error_code == NONE
        opened = peer.ask(asked_fetch(0, topic_id, session_epoch=0), version, FetchResponse)
        assert values(opened.responses[0].partitions[0]) == [b"a"]
        happen(running)
        if change == "made again":
            assert produce(writer, batch(b"A")).error_code == NONE
        for epoch in (1, 2):
            asked = FetchRequest(
                max_wait_ms=0, min_bytes=1, max_bytes=1 << 20, session_id=opened.session_id, session_epoch=epoch
            )
            topics = peer.ask(asked, version, FetchResponse).responses
            if epoch == 2 and not is_same and (by_id or change == "gone"):
                assert topics == [], "that a topic is unknown is said once"
                continue
            (topic,) = topics
            found = (topic.partitions[0].error_code, values(topic.partitions[0]))
            if is_same:
                assert found == (NONE, [b"a"])
            elif by_id:
                assert found == (NO_ID, [])
            else:
                assert found == ((NO_TOPIC, []) if change == "gone" else (NONE, [b"A"]))


@by_name_and_id
@each_change
def test_a_fetch_that_waits(running: Holding, change: str, by_id: bool) -> None:
    """Whoever waits for what is not there any more is answered at once, not at the end of its time."""
    version = FETCH_BY[by_id]
    topic_id = running.topic_id() if by_id else None
    happen, is_same = CHANGES[change]
    with running.connect() as peer, running.connect() as writer:
        for _ in range(3):
            assert produce(writer, batch(b"a")).error_code == NONE
        began = time.monotonic()
        peer.send(peer.frame(asked_fetch(3, topic_id, max_wait_ms=60_000), version))
        until(lambda: running.look(lambda broker: len(broker.services.replicas.waiters)) == 1)
        happen(running)
        if change != "gone":
            assert produce(writer, batch(b"new")).error_code == NONE
        answer = peer.answer(FetchResponse, version).responses[0].partitions[0]
        assert time.monotonic() - began < 50
        if is_same:
            assert values(answer) == [b"new"]
        else:
            # The topic's logs go first, its name and its id a moment later.
            assert answer.error_code in {NO_TOPIC, NO_ID}


@by_name_and_id
@each_change
def test_a_cold_read(running: Holding, monkeypatch: pytest.MonkeyPatch, change: str, by_id: bool) -> None:
    """What was found before the change is read to its end: the answer is that of the moment in which it was found."""
    version = FETCH_BY[by_id]
    topic_id = running.topic_id() if by_id else None
    with running.connect() as peer, running.connect() as writer:
        assert produce(writer, batch(b"old")).error_code == NONE
        monkeypatch.setattr("ottla.handlers.fetch.reading.is_warm", lambda log, found: False)
        running.hold("Warming")
        peer.send(peer.frame(asked_fetch(0, topic_id), version))
        running.until_held()
        CHANGES[change][0](running)
        if change == "made again":
            assert produce(writer, batch(b"new")).error_code == NONE
        running.let_go()
        answer = peer.answer(FetchResponse, version).responses[0].partitions[0]
        assert (answer.error_code, answer.high_watermark, values(answer)) == (NONE, 1, [b"old"])
        monkeypatch.undo()
        answer = peer.ask(asked_fetch(0, topic_id), version, FetchResponse).responses[0].partitions[0]
        if CHANGES[change][1]:
            assert values(answer) == [b"old"]
        elif by_id:
            assert answer.error_code == NO_ID
        else:
            assert (answer.error_code, values(answer)) == ((NO_TOPIC, []) if change == "gone" else (NONE, [b"new"]))


# -- offsets by time, in steps


@each_change
def test_a_look_up_by_time(running: Holding, change: str) -> None:
    with running.connect() as peer, running.connect() as writer:
        assert produce(writer, honest(MANY)).error_code == NONE
        running.hold("check")
        asked = ListOffsetsPartition(partition_index=0, timestamp=NOW)
        request = ListOffsetsRequest(replica_id=-1, topics=[ListOffsetsTopic(name="t", partitions=[asked])])
        peer.send(peer.frame(request, 7))
        running.until_held()
        CHANGES[change][0](running)
        if change == "made again":
            assert produce(writer, batch(b"new")).error_code == NONE
        running.let_go()
        answer = peer.answer(ListOffsetsResponse, 7).topics[0].partitions[0]
        if CHANGES[change][1]:
            assert (answer.error_code, answer.offset) == (NONE, 0)
        else:
            assert (answer.error_code, answer.offset) == (NOT_LEADER, -1)
        after = list_offset(peer, NOW, topic="t")
        assert after.error_code == (NO_TOPIC if change == "gone" else NONE)


# -- metadata, and offsets of groups


@each_change
@pytest.mark.parametrize("version", [5, 9, 12, 13])
def test_answers_about_a_topic(running: Holding, change: str, version: int) -> None:
    def told(name: str | None, topic_id: bytes | None = None) -> tuple[int, bytes]:
        one = MetadataRequestTopic(name=name)
        if topic_id is not None:
            one.topic_id = topic_id
        request = MetadataRequest(topics=[one], allow_auto_topic_creation=False)
        (topic,) = peer.ask(request, version, MetadataResponse).topics
        return topic.error_code, bytes(topic.topic_id)

    old_id = running.topic_id()
    with running.connect() as peer:
        for _ in range(2):
            assert told("t") == (NONE, old_id if version >= 10 else bytes(16))
        CHANGES[change][0](running)
        if change == "gone":
            assert told("t") == (NO_TOPIC, bytes(16))
        else:
            assert told("t") == (NONE, running.topic_id() if version >= 10 else bytes(16))
        if version >= 12:
            assert told(None, old_id)[0] == (NONE if CHANGES[change][1] else NO_ID)


@by_name_and_id
@each_change
def test_offsets_of_a_group(running: Holding, change: str, by_id: bool) -> None:
    version = 10 if by_id else 9
    topic_id = running.topic_id()
    happen, is_same = CHANGES[change]

    def commit(offset: int) -> int:
        part = OffsetCommitRequestPartition(partition_index=0, committed_offset=offset)
        topic = OffsetCommitRequestTopic(name="t", partitions=[part])
        if by_id:
            topic.topic_id = topic_id
        request = OffsetCommitRequest(group_id="g", topics=[topic])
        (answer,) = peer.ask(request, version, OffsetCommitResponse).topics
        return int(answer.partitions[0].error_code)

    def committed() -> tuple[int, int]:
        topic = OffsetFetchRequestTopics(name="t", partition_indexes=[0])
        if by_id:
            topic.topic_id = topic_id
        request = OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id="g", topics=[topic])])
        (answer,) = peer.ask(request, version, OffsetFetchResponse).groups
        (part,) = answer.topics[0].partitions
        return part.error_code, part.committed_offset

    with running.connect() as peer:
        until(lambda: groups.find(peer).error_code == NONE)
        until(lambda: commit(5) == NONE)
        # The third of its kind is recognised.
        assert [commit(offset) for offset in (4, 5, 6, 7)] == [NONE] * 4
        assert committed() == (NONE, 7)
        happen(running)
        if is_same:
            assert committed() == (NONE, 7)
            assert commit(8) == NONE
        elif by_id:
            assert committed() == (NO_ID, -1)
            assert commit(8) == NO_ID
        else:
            assert committed() == (NONE, -1)
            assert commit(8) == (NO_TOPIC if change == "gone" else NONE)
        if change == "made again":
            topic_id = running.topic_id()
            assert committed() == (NONE, -1 if by_id else 8)
            assert [commit(offset) for offset in (10, 11, 12, 13)] == [NONE] * 4
            assert committed() == (NONE, 13)
