"""Fetches of very many partitions, and what their answers may take, over a socket."""

from __future__ import annotations

import socket
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from tests.handlers.frames import batch, fetch_request, produce, values
from tests.server.conftest import SECONDS_MAX, BrokerThread, Peer
from tests.server.test_connections import until

from ottla.controller.interface import TopicRef
from ottla.handlers.fetch import room as fetch_room
from ottla.handlers.fetch.asked import AskedPartition
from ottla.handlers.fetch.reading import FetchReader
from ottla.handlers.fetch.room import COPIED_BYTES_MAX, FILE_PIECES_MAX
from ottla.handlers.fetch.sessions import PARTITIONS_MAX
from ottla.handlers.fetch.watched import WatchedPartitions
from ottla.handlers.routes import FETCH
from ottla.model import ErrorCode
from ottla.protocol.generated.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic, ForgottenTopic

VERSION = 12
#: As many real ones as a test makes in a moment; more than are served within a round.
PARTITIONS = 600
UNKNOWN = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[BrokerThread]:
    with BrokerThread(str(tmp_path)) as running:
        running.create_topic("t", PARTITIONS)
        yield running


def asked(partitions: range, offset: int = 0, *, topic: str = "t", **options: Any) -> FetchRequest:
    request = fetch_request(**options)
    some = [FetchPartition(partition=n, fetch_offset=offset, partition_max_bytes=1 << 20) for n in partitions]
    request.topics = [FetchTopic(topic=topic, partitions=some)]
    return request


def ask(peer: Peer, request: FetchRequest) -> Any:
    return peer.ask(request, VERSION, FetchResponse)


def incremental(session: int, epoch: int, **options: Any) -> FetchRequest:
    request = fetch_request(session_id=session, session_epoch=epoch, **options)
    request.topics = []
    return request


def partitions_of(response: Any) -> list[Any]:
    return [partition for topic in response.responses for partition in topic.partitions]


def waits(broker: BrokerThread) -> bool:
    return broker.look(lambda each: len(each.services.replicas.waiters)) == 1  # type: ignore[union-attr]


def rests(broker: BrokerThread) -> bool:
    def is_empty(each: Any) -> bool:
        waiters = each.services.replicas.waiters
        return not len(waiters) and not waiters.watched_count and not len(each.services.turns)

    return broker.look(is_empty)


@pytest.fixture
def reads(broker: BrokerThread, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The partitions that are read."""
    found: list[int] = []
    read: Callable[..., Any] = FetchReader.read

    def noted(self: FetchReader, one: Any, *args: Any, **options: Any) -> Any:
        found.append(one.partition)
        return read(self, one, *args, **options)

    monkeypatch.setattr(FetchReader, "read", noted)
    return found


@pytest.mark.parametrize("times", [3, 1850])
@pytest.mark.parametrize("epoch", [-1, 0])
def test_a_partition_that_is_named_again_and_again(broker: BrokerThread, times: int, epoch: int) -> None:
    with broker.connect() as peer:
        produce(peer, batch(b"a"))
        produce(peer, batch(b"b"))
        request = asked(range(1), session_epoch=epoch)
        request.topics[0].partitions = [
            FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1 << 20) for _ in range(times)
        ]
        request.topics[0].partitions[-1].fetch_offset = 1
        (partition,) = partitions_of(ask(peer, request))
        assert values(partition) == [b"b"]


def test_all_partitions_are_answered_in_their_order(broker: BrokerThread) -> None:
    with broker.connect() as peer:
        for n in (0, 7, 599):
            produce(peer, batch(b"%d" % n), partition=n)
        found = partitions_of(ask(peer, asked(range(10_000))))
    assert [each.partition_index for each in found] == list(range(10_000))
    assert [values(found[n]) for n in (0, 7, 599)] == [[b"0"], [b"7"], [b"599"]]
    assert {each.error_code for each in found[:PARTITIONS]} == {0}
    assert {each.error_code for each in found[PARTITIONS:]} == {UNKNOWN}
    until(lambda: rests(broker))


@pytest.mark.parametrize("epoch", [-1, 0])
def test_a_fetch_of_many_waits_for_any_of_them(broker: BrokerThread, reads: list[int], epoch: int) -> None:
    with broker.connect() as peer, broker.connect() as writer:
        peer.send(peer.frame(asked(range(PARTITIONS), max_wait_ms=60_000, session_epoch=epoch), VERSION))
        until(lambda: waits(broker))
        reads.clear()
        produce(writer, batch(b"x"), partition=444)
        found = partitions_of(peer.answer(FetchResponse, VERSION))
        assert len(found) == PARTITIONS
        assert values(found[444]) == [b"x"]
        assert sorted(reads) == sorted([*range(PARTITIONS), 444, 444]), "looks at what changed, and then the answer"


def test_more_bytes_than_one_change_brings_are_waited_for(broker: BrokerThread, reads: list[int]) -> None:
    with broker.connect() as peer, broker.connect() as writer:
        peer.send(peer.frame(asked(range(PARTITIONS), max_wait_ms=60_000, min_bytes=250), VERSION))
        until(lambda: waits(broker))
        for n in range(4):
            reads.clear()
            produce(writer, batch(b"%d" % n * 10), partition=n)
        found = partitions_of(peer.answer(FetchResponse, VERSION))
        assert sum(len(each.records) for each in found) >= 250


def test_its_time_is_over(broker: BrokerThread) -> None:
    with broker.connect() as peer:
        found = partitions_of(ask(peer, asked(range(PARTITIONS), max_wait_ms=50)))
        assert len(found) == PARTITIONS
        # The connection goes on.
        assert len(partitions_of(ask(peer, asked(range(2))))) == 2
    until(lambda: rests(broker))


def test_who_leaves_while_it_waits_leaves_nothing_behind(broker: BrokerThread) -> None:
    with broker.connect() as peer:
        peer.send(peer.frame(asked(range(PARTITIONS), max_wait_ms=60_000), VERSION))
        until(lambda: waits(broker))
    until(lambda: rests(broker))


def test_an_answer_holds_so_many_records_and_files(broker: BrokerThread) -> None:
    large, each_bytes = 100, 20_000
    with broker.connect() as peer:
        for n in range(large):
            produce(peer, batch(b"x" * each_bytes), partition=n)
        found = partitions_of(ask(peer, asked(range(large), max_bytes=1 << 30)))
        sizes = [len(each.records) for each in found]
        some = sum(size > 0 for size in sizes)
        assert some == COPIED_BYTES_MAX // max(sizes) + FILE_PIECES_MAX
        assert sizes[:some] == [sizes[0]] * some, "those in front"
        # What did not fit comes when it is asked for.
        left = partitions_of(ask(peer, asked(range(some, large), max_bytes=1 << 30)))
        assert all(len(each.records) == sizes[0] for each in left)


def test_nothing_is_copied_while_clients_leave_too_much_untaken(broker: BrokerThread) -> None:
    with broker.connect() as peer:
        for n in range(FILE_PIECES_MAX + 10):
            produce(peer, batch(b"x"), partition=n)

        def fill(each: Any) -> None:
            each._server.memory.bytes += 1 << 40

        broker.look(fill)
        found = partitions_of(ask(peer, asked(range(FILE_PIECES_MAX + 10))))
        assert [values(each) for each in found] == [[b"x"]] * FILE_PIECES_MAX + [[]] * 10


def test_made_up_partitions_of_a_session_are_looked_at_once(broker: BrokerThread, reads: list[int]) -> None:
    many = 20_000
    with broker.connect() as peer:
        opened = ask(peer, asked(range(many), topic="none", session_epoch=0))
        assert opened.session_id > 0
        assert {each.error_code for each in partitions_of(opened)} == {UNKNOWN}
        assert len(reads) == many
        reads.clear()
        for epoch in range(1, 4):
            assert ask(peer, incremental(opened.session_id, epoch)).responses == []
        assert reads == []
        broker.create_topic("none", 2)
        found = partitions_of(ask(peer, incremental(opened.session_id, 4)))
        assert [(each.partition_index, each.error_code) for each in found] == [(0, 0), (1, 0)]
        assert set(reads) == {0, 1}


def test_a_session_reads_what_has_changed(broker: BrokerThread, reads: list[int]) -> None:
    with broker.connect() as peer:
        opened = ask(peer, asked(range(PARTITIONS), session_epoch=0))
        reads.clear()
        produce(peer, batch(b"x"), partition=3)
        (found,) = partitions_of(ask(peer, incremental(opened.session_id, 1)))
        assert (found.partition_index, values(found)) == (3, [b"x"])
        assert reads == [3]


def test_more_partitions_than_all_sessions_may_have(broker: BrokerThread) -> None:
    some = 60_000
    assert some < PARTITIONS_MAX < 2 * some
    with broker.connect() as peer:
        answers = [ask(peer, asked(range(some), topic="none", session_epoch=0)) for _ in range(2)]
    assert [answer.session_id > 0 for answer in answers] == [True, False]
    assert [len(partitions_of(answer)) for answer in answers] == [some, some]


def test_a_request_of_more_partitions_than_memory_is_set_aside_for(broker: BrokerThread) -> None:
    with broker.connect() as peer:
        peer.send(peer.frame(asked(range(PARTITIONS_MAX), topic="none"), VERSION))
        assert peer.is_closed()


def test_a_session_that_has_forgotten_all_is_over(broker: BrokerThread) -> None:
    with broker.connect() as peer:
        opened = ask(peer, asked(range(2), session_epoch=0))
        request = incremental(opened.session_id, 1)
        request.forgotten_topics_data = [ForgottenTopic(topic="t", partitions=[0, 1])]
        answer = ask(peer, request)
        assert (answer.session_id, answer.error_code, answer.responses) == (0, 0, [])
        assert ask(peer, incremental(opened.session_id, 2)).error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND
    until(lambda: rests(broker))


def test_what_a_client_that_goes_has_brought_to_its_session_is_counted(
    broker: BrokerThread, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Or a client could fill the memory by sessions of which no request ever came to its end."""
    count = 20_000
    some_are_taken, has_gone = threading.Event(), threading.Event()
    take = WatchedPartitions.take

    def slow(self: WatchedPartitions, one: AskedPartition) -> None:
        take(self, one)
        if one.partition == count // 10:
            some_are_taken.set()
            assert has_gone.wait(SECONDS_MAX)

    def sessions(each: Any) -> tuple[int, int]:
        """What is counted, and what there is."""
        kept = each._dispatcher.hot[FETCH].__self__._sessions
        return kept.partition_count, sum(len(session.partitions) for session in kept._sessions.values())

    with broker.connect() as peer:
        opened = ask(peer, asked(range(2), session_epoch=0))
        monkeypatch.setattr(WatchedPartitions, "take", slow)
        request = asked(range(count), topic="none", session_id=opened.session_id, session_epoch=1)
        peer.send(peer.frame(request, VERSION))
        assert some_are_taken.wait(SECONDS_MAX)
        peer.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        peer.socket.close()
        has_gone.set()
        until(lambda: broker.look(lambda each: each.connection_count) == 0)
    counted, there = broker.look(sessions)
    assert 2 < there < count, "it was given up in the middle"
    assert counted == there


def test_a_wait_that_another_request_of_its_session_has_overtaken(broker: BrokerThread) -> None:
    with broker.connect() as peer, broker.connect() as other:
        opened = ask(peer, asked(range(2), session_epoch=0))
        # It waits to the end of its time, and has to be seen at it before.
        peer.send(peer.frame(incremental(opened.session_id, 1, max_wait_ms=3_000), VERSION))
        until(lambda: waits(broker))
        assert ask(other, incremental(opened.session_id, 2)).error_code == 0
        assert peer.answer(FetchResponse, VERSION).error_code == ErrorCode.INVALID_FETCH_SESSION_EPOCH


def test_a_log_whose_start_has_moved_is_news_to_a_session(broker: BrokerThread) -> None:
    with broker.connect() as peer:
        for _ in range(3):
            produce(peer, batch(b"a"))
        request = asked(range(1), offset=3, session_epoch=0)
        opened = ask(peer, request)
        assert ask(peer, incremental(opened.session_id, 1)).responses == []

        def moved(each: Any) -> None:
            (leader,) = [leader for tp, leader in each.services.replicas.leaders.items() if tp == ("t", 0)]
            leader.log.advance_start(2)
            each.services.replicas.waiters.changed(leader.tp)

        broker.look(moved)
        (found,) = partitions_of(ask(peer, incremental(opened.session_id, 2)))
        assert found.log_start_offset == 2


def test_a_long_request_that_cannot_be_read_ends_its_connection(broker: BrokerThread) -> None:
    with broker.connect() as peer:
        good = peer.frame(asked(range(1000)), VERSION)
        peer.send(good[:30] + b"\xff" * (len(good) - 30))
        assert peer.is_closed()
    until(lambda: rests(broker))


def test_a_long_request_of_an_unknown_isolation(broker: BrokerThread) -> None:
    with broker.connect() as peer:
        answer = ask(peer, asked(range(1000), isolation_level=7))
        assert answer.error_code == ErrorCode.UNKNOWN_SERVER_ERROR
        assert {each.error_code for each in partitions_of(answer)} == {ErrorCode.UNKNOWN_SERVER_ERROR}


def test_answers_that_nobody_takes_hold_so_many_files_of_deleted_topics(
    broker: BrokerThread, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fetch_room, "LINGERING_MAX", 16)
    wide, each_bytes = 48, 300_000

    def lingering() -> int:
        return broker.look(lambda each: each.ports.disk.lingering)

    with broker.connect() as honest, ExitStack() as stack:
        for topic in ("first", "second"):
            broker.create_topic(topic, wide)
            for n in range(wide):
                produce(honest, batch(b"x" * each_bytes), partition=n, topic=topic)
        for value in (b"x", b"y"):
            produce(honest, batch(value * each_bytes))
        before = lingering()
        for topic in ("first", "second"):
            greedy = stack.enter_context(broker.connect())
            greedy.send(greedy.frame(asked(range(wide), topic=topic, max_bytes=1 << 30), VERSION))
            time_goes_on(broker, honest)
            delete(broker, topic)
            if topic == "first":
                held = lingering()
                assert held - before >= 16
        # The second could be answered from memory only.
        assert lingering() == held
        # As others are: with a whole batch however large it is, one after the other.
        found = partitions_of(ask(honest, asked(range(1), max_bytes=1 << 30)))
        assert values(found[0]) == [b"x" * each_bytes]
        found = partitions_of(ask(honest, asked(range(1), 1, max_bytes=1 << 30)))
        assert values(found[0]) == [b"y" * each_bytes]
    until(lambda: lingering() == before)


def delete(broker: BrokerThread, topic: str) -> None:
    assert broker.broker.services is not None
    (deleted,) = broker.run(broker.broker.services.controller.delete_topics([TopicRef(topic)]))
    assert deleted.error == ErrorCode.NONE


def time_goes_on(broker: BrokerThread, peer: Peer) -> None:
    """What was sent before on other connections is served when this returns."""
    for _ in range(3):
        ask(peer, asked(range(1), 1 << 40, max_wait_ms=0))
    broker.look(lambda _: None)
