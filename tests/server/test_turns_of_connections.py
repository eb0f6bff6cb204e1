"""Whose turn it is when there is more to do than a round has time for: everybody's, one after the other."""

from __future__ import annotations

import asyncio
from collections import deque
from typing import Any

from tests.server.test_listeners import Slow, slow_room
from tests.server.test_patient_requests import METADATA, Line, Room, frame

from ottla.handlers.calls.peer import FilePiece
from ottla.ports.memory.clock import Timeline, VirtualClock
from ottla.server.connection import SENT_A_TURN_BYTES, Connection
from ottla.server.outgoing import SENT_AT_ONCE_BYTES
from ottla.server.round_bounds import CLOSING_MS, FRAMES_A_ROUND, ROUND_MS
from ottla.server.rounds import Rounds
from ottla.server.sending import SENDING_MS

PROBE = -1


def served(room: Room) -> list[int]:
    return [number for each in room.record.rounds for _, number in each]


def test_one_of_a_crowd_that_pipelines_is_served_within_a_cycle() -> None:
    """Those who were served and have more stand behind those who wait."""
    room = slow_room()
    crowd = [room.connected(*(frame(METADATA, 1000 * number + n) for n in range(200))) for number in range(50)]

    async def scenario() -> None:
        while ready := [each for each in crowd if each.channel.arrived]:  # type: ignore[attr-defined]
            # The network tells again of what was not received.
            room.run(*ready)
        room.run(room.connected(frame(METADATA, PROBE)))
        await room.drain()

    asyncio.run(scenario())
    numbers = served(room)
    # Its own round serves it before it goes on with those that wait.
    assert [each[0] for each in room.record.rounds if (METADATA, PROBE) in each] == [(METADATA, PROBE)]
    # They have their turns one after the other: nobody has many more than those who still wait.
    turns = [0] * 50
    for number in numbers:
        if number != PROBE:
            turns[number // 1000] += 1
            assert turns[number // 1000] - min(turns) <= 2 * FRAMES_A_ROUND
    assert len(numbers) == 50 * 200 + 1


class Endless(Line):
    """A channel on which the next request lies as soon as the one before was read, which takes a millisecond."""

    def __init__(self, timeline: Timeline, number: int) -> None:
        super().__init__()
        self.timeline, self.number = timeline, number

    def receive_into(self, view: memoryview) -> int:
        self.timeline.move_to(self.timeline.seconds + 0.001)
        data = frame(METADATA, self.number)
        view[: len(data)] = data
        return len(data)


def test_who_was_passed_over_in_a_round_goes_first_in_the_next() -> None:
    """The network names all that are ready in the same order each time."""
    room = slow_room()
    assert isinstance(room.record, Slow)
    crowd = [
        Connection(Endless(room.record.timeline, number), room.listener, 0, room.rounds.touched)  # type: ignore[arg-type]
        for number in range(10 * ROUND_MS)
    ]

    async def scenario() -> None:
        for _ in range(400):
            room.run(*crowd)

    asyncio.run(scenario())
    # Those of the first rounds are at work already while the others come newly.
    numbers = served(room)[served(room).index(10 * ROUND_MS - 1) :]
    turns = [numbers.count(number) for number in range(10 * ROUND_MS)]
    assert max(turns) <= 1.25 * min(turns)


class Whole(Line):
    """One request, whole, that takes the room a millisecond to receive."""

    def __init__(self, timeline: Timeline, number: int) -> None:
        super().__init__(frame(METADATA, number))
        self.timeline = timeline

    def receive_into(self, view: memoryview) -> int:
        self.timeline.move_to(self.timeline.seconds + 0.001)
        return super().receive_into(view)


class Rotating:
    """Names connections as epoll does: so many at once, and those that it has named are the last the next time."""

    AT_ONCE = 64

    def __init__(self, room: Room, connections: list[Connection]) -> None:
        self.room = room
        self.ready = deque(connections)

    def run(self) -> None:
        named = [self.ready.popleft() for _ in range(min(self.AT_ONCE, len(self.ready)))]
        self.ready.extend(named)
        self.room.run(*named)
        self.ready = deque(each for each in self.ready if each.channel.arrived)  # type: ignore[attr-defined]


def test_a_connection_that_was_named_and_not_served_keeps_its_place() -> None:
    room = slow_room()
    assert isinstance(room.record, Slow)
    count = 40 * ROUND_MS
    crowd = [
        Connection(Whole(room.record.timeline, n), room.listener, 0, room.rounds.touched)  # type: ignore[arg-type]
        for n in range(count)
    ]
    network = Rotating(room, crowd)

    async def scenario() -> None:
        while network.ready:
            network.run()

    asyncio.run(scenario())
    numbers = served(room)
    assert sorted(numbers) == list(range(count))
    # Nobody goes more than a look at the clock behind its place in the line.
    assert max(abs(place - number) for place, number in enumerate(numbers)) <= Rotating.AT_ONCE


def test_a_connection_at_work_does_not_wait_for_each_of_a_crowd_that_comes_all_at_once() -> None:
    room = slow_room()
    assert isinstance(room.record, Slow)
    timeline = room.record.timeline
    probe = Connection(Whole(timeline, PROBE), room.listener, 0, room.rounds.touched)  # type: ignore[arg-type]
    crowd = [
        Connection(Whole(timeline, n), room.listener, 0, room.rounds.touched)  # type: ignore[arg-type]
        for n in range(100 * ROUND_MS)
    ]

    async def scenario() -> None:
        timeline.move_to(1)
        room.run(probe)
        room.run(*crowd)
        probe.channel.arrived += frame(METADATA, PROBE)  # type: ignore[attr-defined]
        for _ in range(100):
            room.run(*(each for each in (*crowd, probe) if each.channel.arrived))  # type: ignore[attr-defined]

    asyncio.run(scenario())
    rounds = [number for number, each in enumerate(room.record.rounds) if (METADATA, PROBE) in each]
    assert rounds == [0, 2]
    # Nor does the crowd wait for those that are at work.
    assert all(each for each in room.record.rounds[:40])


class Watched(Line):
    """Notes whether it is read from."""

    def __init__(self, *frames: bytes) -> None:
        super().__init__(*frames)
        self.reading = True

    def watch(self, *, reading: bool, writing: bool) -> None:
        del writing
        self.reading = reading


def test_a_connection_that_waits_in_the_backlog_is_named_no_more_until_it_is_served() -> None:
    """Thousands that have sent more, or have ended their side, would stand before everybody else at each look."""
    room = slow_room()
    frames = [frame(METADATA, n) for n in range(2 * FRAMES_A_ROUND)]
    connection = Connection(Watched(*frames), room.listener, 0, room.rounds.touched)
    line = connection.channel
    assert isinstance(line, Watched)

    async def scenario() -> None:
        room.run(connection)
        assert line.reading
        line.arrived += frame(METADATA, PROBE)
        room.run(connection)
        assert not line.reading
        await room.drain()
        assert line.reading
        room.run(connection)

    asyncio.run(scenario())
    assert served(room)[-1] == PROBE
    assert len(served(room)) == len(frames) + 1


class SlowLine(Line):
    """To send takes so many milliseconds of the room's time, and the system takes so much at once."""

    def __init__(self, timeline: Timeline, takes_ms: int, log: list[Any]) -> None:
        super().__init__()
        self.timeline, self.takes_ms, self.log = timeline, takes_ms, log

    def _pass(self) -> None:
        self.timeline.move_to(self.timeline.seconds + self.takes_ms / 1000)

    def send(self, data: Any) -> int:
        self._pass()
        self.log.append((self, self.timeline.seconds))
        return len(data)

    def send_file(self, file: object, position: int, count: int) -> int:
        del file, position
        self._pass()
        self.log.append((self, self.timeline.seconds))
        return min(count, SENT_A_TURN_BYTES // 2)


class Nothing:
    def lease(self) -> None: ...

    def release(self) -> None: ...


def answering_room() -> tuple[Room, Timeline, list[Any]]:
    room, timeline = Room(), Timeline()
    room.rounds = Rounds(VirtualClock(timeline), 1 << 20, lambda _: None)
    room.rounds.open(room.record)  # type: ignore[arg-type]
    return room, timeline, []


def lines_of(room: Room, timeline: Timeline, log: list[Any], count: int, takes_ms: int) -> list[Connection]:
    lines = [SlowLine(timeline, takes_ms, log) for _ in range(count)]
    return [Connection(line, room.listener, 0, room.rounds.touched) for line in lines]  # type: ignore[arg-type]


def test_a_round_ends_though_sending_takes_long() -> None:
    room, timeline, log = answering_room()

    async def scenario() -> None:
        crowd = lines_of(room, timeline, log, 100, 1)
        for connection in crowd:
            connection.answer(b"answer")
        room.rounds.run([])
        assert timeline.seconds * 1000 <= SENDING_MS + 8
        # The others leave when the network says that they may.
        later = [connection for connection in crowd if connection.unsent]
        assert len(log) + len(later) == 100
        assert not any(connection.takes(METADATA) for connection in later)
        for connection in later:
            room.rounds.run([(connection, 2)])
        assert not any(connection.unsent for connection in crowd)

    asyncio.run(scenario())
    assert len({line for line, _ in log}) == 100


def test_small_answers_do_not_wait_for_pieces_of_files() -> None:
    room, timeline, log = answering_room()

    async def scenario() -> None:
        crowd = lines_of(room, timeline, log, 20, 5)
        for connection in crowd:
            connection.answer(FilePiece(Nothing(), 0, 4 * SENT_A_TURN_BYTES))  # type: ignore[arg-type]
        (probe,) = lines_of(room, timeline, log, 1, 0)
        probe.answer(b"answer")
        room.rounds.run([])
        assert log[0][0] is probe.channel
        assert timeline.seconds * 1000 <= SENDING_MS + 10
        # All go on, each a turn's worth at a time.
        while any(connection.unsent for connection in crowd):
            await asyncio.sleep(0)
            room.rounds.run([(connection, 2) for connection in crowd if connection.unsent])

    asyncio.run(scenario())
    order = [line for line, _ in log[1:]]
    turns = len(order) // 20
    assert turns == 8
    # Two calls make a turn; between two of its turns everybody else has theirs.
    assert len(set(order[:40])) == 20


LONG = b"x" * (SENT_AT_ONCE_BYTES + 1)


def test_short_answers_do_not_wait_for_long_ones_out_of_memory() -> None:
    room, timeline, log = answering_room()

    async def scenario() -> None:
        for connection in lines_of(room, timeline, log, 20, 5):
            connection.answer(LONG[1:])
            connection.answer(LONG[:1])
        (probe,) = lines_of(room, timeline, log, 1, 0)
        probe.answer(b"answer")
        room.rounds.run([])
        assert log[0][0] is probe.channel

    asyncio.run(scenario())


def test_what_was_put_off_leaves_before_the_long_answers_that_wait_too() -> None:
    room, timeline, log = answering_room()

    async def scenario() -> None:
        crowd = lines_of(room, timeline, log, 50, 5)
        for connection in crowd:
            connection.answer(LONG)
        short = lines_of(room, timeline, log, 10, 2)
        for connection in short:
            connection.answer(b"answer")
        room.rounds.run([])
        put_off = [connection for connection in short if connection.unsent]
        assert put_off
        del log[:]
        for connection in put_off:
            room.rounds.settling.sending.takes_more(connection)
        room.rounds.run([])
        assert [line for line, _ in log[: len(put_off)]] == [connection.channel for connection in put_off]
        # And long ones have a turn in each round, however many short ones there are.
        assert log[len(put_off) :]

    asyncio.run(scenario())


def test_a_wait_that_ended_is_not_forgotten_when_the_time_for_sending_is_over() -> None:
    """A connection without an answer is put off too: its peer would else never be read from again."""
    room, timeline, log = answering_room()

    async def scenario() -> None:
        for connection in lines_of(room, timeline, log, 100, 1):
            connection.answer(b"answer")
        waiting = lines_of(room, timeline, log, 20, 0)
        for connection in waiting:
            connection.mute(True)
            connection.answer_later(None)
            connection.finish()
        room.rounds.run([])
        assert any(connection.muted for connection in waiting)
        await turns_of_the_loop()
        assert not any(connection.muted for connection in waiting)

    asyncio.run(scenario())


class ClosedSlowly(SlowLine):
    def close(self) -> None:
        self._pass()


def test_a_crowd_that_ends_is_closed_though_nobody_else_comes() -> None:
    room, timeline, log = answering_room()

    async def scenario() -> None:
        crowd = [
            Connection(ClosedSlowly(timeline, 1, log), room.listener, 0, room.rounds.touched)  # type: ignore[arg-type]
            for _ in range(10 * CLOSING_MS)
        ]
        for connection in crowd:
            connection.abort()
        room.rounds.run([])
        assert not all(connection.released for connection in crowd)
        await turns_of_the_loop()
        assert all(connection.released for connection in crowd)

    asyncio.run(scenario())


async def turns_of_the_loop() -> None:
    for _ in range(100):
        await asyncio.sleep(0)


def test_buffers_go_back_at_the_end_of_their_round() -> None:
    room = Room()
    incoming = room.rounds._incoming
    beginning = frame(METADATA, 2)[:9]

    async def scenario() -> None:
        for number in range(50):
            connection = room.connected(frame(METADATA, number), beginning)
            room.run(connection)
            # As that of a request of which more has come than is worth to be moved.
            connection.buffer = incoming.pool.small()
            connection.abort()
            room.rounds.run([])
            assert connection.released
            assert not incoming.used
            assert len(incoming.pool.kept_small) <= 2

    asyncio.run(scenario())
