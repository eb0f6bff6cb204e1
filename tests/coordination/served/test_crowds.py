"""What crowds, and clients with long requests, may cost the other clients of a served tree."""

from __future__ import annotations

import asyncio
import gc
from typing import Any

import pytest
from tests.coordination.served.simulated import SimulatedClient, SimulatedTree

from ottla.coordination import store as store_module
from ottla.coordination.interface import WatchEvent
from ottla.coordination.requests import WriteRequest
from ottla.coordination.served import limits
from ottla.coordination.served import requests as requests_module
from ottla.coordination.served import rounds as rounds_module
from ottla.coordination.served.connection import Connection
from ottla.coordination.served.long_frames import LONG_ANSWER
from ottla.coordination.served.long_work import LongWork
from ottla.coordination.served.reads import READS, get_data
from ottla.coordination.served.tickets import MultiTicket
from ottla.coordination.tree import AppliedTransaction
from ottla.coordination.zookeeper.codes import OpCode
from ottla.coordination.zookeeper.messages import (
    CreateRequest,
    DataAnswer,
    MultiOp,
    MultiRequest,
    NodeRequest,
    PathRequest,
    SetDataRequest,
    SetWatchesRequest,
)
from ottla.ports.network import READABLE
from ottla.steps import STEPS_A_TURN, Steps

MANY = 4 * LONG_ANSWER


async def with_children(client: SimulatedClient, count: int = MANY) -> None:
    await client.call(OpCode.CREATE, CreateRequest("/many", b""))
    ops = [MultiOp(OpCode.CREATE, CreateRequest(f"/many/{number:06}", b"")) for number in range(count)]
    assert all(not each.error for each in (await client.call(OpCode.MULTI, MultiRequest(ops))).results)


def connection_of(tree: SimulatedTree, client: SimulatedClient) -> Connection:
    assert client.session is not None
    return tree.server._of_session[client.session.session_id]


def test_a_connection_has_one_long_answer_at_a_time(simulated: SimulatedTree, monkeypatch: pytest.MonkeyPatch) -> None:
    """The names of each are held until it is made: of a thousand that wait these are a gigabyte."""
    begun: list[int] = []
    open_now = 0

    def counted(self: LongWork, steps: Steps[object], done: object, failed: object) -> None:
        nonlocal open_now
        open_now += 1
        begun.append(open_now)

        def ended(result: object) -> None:
            nonlocal open_now
            open_now -= 1
            done(result)  # type: ignore[operator]

        add(self, steps, ended, failed)  # type: ignore[arg-type]

    async def run() -> None:
        await simulated.start()
        client = await SimulatedClient.greeted(simulated, 60_000)
        await with_children(client)
        monkeypatch.setattr(LongWork, "add", counted)
        last = [client.send(OpCode.GET_CHILDREN2, NodeRequest("/many", watch=False)) for _ in range(50)][-1]
        await client.until(lambda: client.answer(last) is not None)
        assert len(begun) == 50
        assert max(begun) == 1

    add = LongWork.add
    simulated.run(run())


def test_short_work_ends_before_long_work_that_came_first(simulated: SimulatedTree) -> None:
    ended: list[str] = []

    def work(steps: int) -> Steps[None]:
        for _ in range(steps):
            yield

    def fail(fault: Exception) -> None:
        raise AssertionError from fault

    async def run() -> None:
        long_work = LongWork(simulated.ports.clock)
        for _ in range(20):
            long_work.add(work(50 * STEPS_A_TURN), lambda _: ended.append("long"), fail)
        await asyncio.sleep(0)
        long_work.add(work(2), lambda _: ended.append("short"), fail)
        await long_work.finish()

    simulated.run(run())
    assert ended == ["short", *["long"] * 20]


def test_who_waits_for_nothing_is_served_while_others_have_more_than_may_wait(
    simulated: SimulatedTree, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rounds_module, "CROWDED", 10)
    simulated.ports.workers.latency_ms = (50.0, 50.0)

    async def run() -> None:
        await simulated.start()
        crowd = [await SimulatedClient.greeted(simulated, 60_000) for _ in range(5)]
        good = await SimulatedClient.greeted(simulated, 60_000)
        await good.call(OpCode.CREATE, CreateRequest("/a", b""))
        change = SetDataRequest("/a", b"x", -1)
        last = [[client.send(OpCode.SET_DATA, change) for _ in range(100)][-1] for client in crowd]
        await asyncio.sleep(0.01)
        rounds = simulated.server._serving.rounds
        assert 10 <= rounds.waiting <= 10 + len(crowd) + 32
        assert isinstance(await good.call(OpCode.GET_DATA, NodeRequest("/a", watch=False)), DataAnswer)
        assert not all(client.answer(number) for client, number in zip(crowd, last, strict=True))
        for client, number in zip(crowd, last, strict=True):
            await client.until(lambda client=client, number=number: client.answer(number) is not None)
        assert rounds.waiting == 0
        assert not rounds._held_back

    simulated.run(run())


def test_long_requests_wait_for_a_place_and_all_have_theirs(
    simulated: SimulatedTree, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rounds_module, "CROWDED_BYTES", 1)
    monkeypatch.setattr(requests_module, "CHILDREN_AT_ONCE_MAX", 0)

    async def run() -> None:
        await simulated.start()
        clients = [await SimulatedClient.greeted(simulated, 60_000) for _ in range(20)]
        await with_children(clients[0])
        asked = [client.send(OpCode.GET_CHILDREN, NodeRequest("/many", watch=False)) for client in clients]
        for client, number in zip(clients, asked, strict=True):
            await client.until(lambda client=client, number=number: client.answer(number) is not None)
            assert len(client.answer(number)[1].names) == MANY

    simulated.run(run())


def test_a_session_does_not_end_whose_request_waits_here(
    simulated: SimulatedTree, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What it has sent stands unread behind a crowd's: its owner has spoken in time."""

    async def run() -> None:
        await simulated.start()
        client = await SimulatedClient.greeted(simulated, 2_000)
        monkeypatch.setattr(rounds_module, "CROWDED", -1)
        monkeypatch.setattr(rounds_module.Rounds, "_is_let_in", lambda *_: False)
        number = client.send(OpCode.EXISTS, NodeRequest("/", watch=False))
        await asyncio.sleep(10)
        assert connection_of(simulated, client).has_frame
        monkeypatch.undo()
        simulated.server._serving.rounds.woken(connection_of(simulated, client))
        simulated.server._serving.rounds._held_back.clear()
        await client.until(lambda: client.answer(number) is not None)
        await asyncio.sleep(10)
        assert client.closed.is_set()

    simulated.run(run())


def test_others_are_served_between_the_pieces_of_very_many_watches(
    simulated: SimulatedTree, monkeypatch: pytest.MonkeyPatch
) -> None:
    called = 0
    on_event = Connection.on_event

    def counted(self: Connection, event: WatchEvent) -> None:
        nonlocal called
        called += 1
        on_event(self, event)

    async def run() -> None:
        await simulated.start()
        client = await SimulatedClient.greeted(simulated, 60_000)
        other = await SimulatedClient.greeted(simulated, 60_000)
        paths = [f"/none/{number}" for number in range(20_000)]
        seen = []
        monkeypatch.setattr(Connection, "on_event", counted)
        monkeypatch.setitem(
            READS, OpCode.GET_DATA, lambda asker, fields, tree: seen.append(called) or get_data(asker, fields, tree)
        )
        number = client.send(OpCode.SET_WATCHES, SetWatchesRequest(1 << 40, paths, [], []))
        behind = client.send(OpCode.EXISTS, NodeRequest("/", watch=False))
        while not client.answer(number):
            await other.call(OpCode.GET_DATA, NodeRequest("/", watch=False))
        assert any(0 < count < len(paths) for count in seen)
        await client.until(lambda: client.answer(behind) is not None)
        # What was asked behind it is answered behind it.
        assert (
            client.frames.index(client.answer(number)) == len(paths) == client.frames.index(client.answer(behind)) - 1
        )

    simulated.run(run())


@pytest.mark.parametrize("paths", [200, 270])
def test_what_stands_behind_a_few_watches_is_answered_behind_them(simulated: SimulatedTree, paths: int) -> None:
    async def run() -> None:
        await simulated.start()
        client = await SimulatedClient.greeted(simulated, 60_000)
        number = client.send(OpCode.SET_WATCHES, SetWatchesRequest(0, [f"/n/{each}" for each in range(paths)], [], []))
        behind = client.send(OpCode.SYNC, PathRequest("/"))
        await client.until(lambda: client.answer(number) and client.answer(behind))
        assert client.frames.index(client.answer(number)) < client.frames.index(client.answer(behind))

    simulated.run(run())


def test_thousands_that_are_late_in_one_moment_are_closed_in_turns(
    simulated: SimulatedTree, monkeypatch: pytest.MonkeyPatch
) -> None:
    """To close one that holds a megabyte of answers takes a millisecond, and they may all be late at once."""
    closed_at: list[int] = []

    async def run() -> None:
        await simulated.start()
        good = await SimulatedClient.greeted(simulated, 60_000)
        late = [await SimulatedClient.open(simulated) for _ in range(50)]
        rounds = simulated.server._rounds
        close = rounds.close
        turn = 0

        def count_turns() -> None:
            nonlocal turn
            turn += 1
            if len(closed_at) < len(late):
                asyncio.get_running_loop().call_soon(count_turns)

        def closes(connection: Connection, why: str | None = None) -> None:
            if not closed_at:
                count_turns()
            closed_at.append(turn)
            close(connection, why)

        monkeypatch.setattr(rounds, "close", closes)
        clock = type(simulated.ports.clock)
        now_ms = clock.monotonic_ms
        # Each takes a millisecond.
        monkeypatch.setattr(clock, "monotonic_ms", lambda self: now_ms(self) + len(closed_at))
        await asyncio.sleep(limits.HANDSHAKE_MS_MAX / 1_000 + 2)
        assert len(closed_at) == len(late)
        assert max(closed_at.count(each) for each in closed_at) <= 2 * rounds_module.ROUND_MS
        assert await good.call(OpCode.EXISTS, NodeRequest("/", watch=False))

    simulated.run(run())


def test_who_was_passed_over_is_first_in_the_next_round(
    simulated: SimulatedTree, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The network names those first that have been ready for longest: who sends much would be read from to its end."""
    served: list[Connection] = []

    async def run() -> None:
        await simulated.start()
        clients = [await SimulatedClient.greeted(simulated, 60_000) for _ in range(12)]
        connections = [connection_of(simulated, client) for client in clients]
        monkeypatch.setattr(
            rounds_module.Rounds, "_serve_ready", lambda _, connection, events: served.append(connection)
        )
        clock = type(simulated.ports.clock)
        now_ms = clock.monotonic_ms
        # Each takes a millisecond.
        monkeypatch.setattr(clock, "monotonic_ms", lambda self: now_ms(self) + len(served))
        while len(served) < 3 * len(connections):
            simulated.server._rounds.run([(each, READABLE) for each in connections])
        assert served[: 3 * len(connections)] == 3 * connections

    simulated.run(run())


def many_in_one(number: int) -> MultiRequest:
    return MultiRequest([MultiOp(OpCode.CREATE, CreateRequest(f"/{number}-{each:0100}", b"")) for each in range(5_000)])


def test_of_the_longest_multis_one_is_under_way(simulated: SimulatedTree, monkeypatch: pytest.MonkeyPatch) -> None:
    """Read, done and not yet answered they are a hundred times the bytes that came."""
    under_way: set[int] = set()
    most = 0
    init, let_go = MultiTicket.__init__, MultiTicket._let_go

    def began(self: MultiTicket, *args: Any) -> None:
        nonlocal most
        init(self, *args)
        under_way.add(id(self))
        most = max(most, len(under_way))

    def ended(self: MultiTicket) -> None:
        under_way.remove(id(self))
        let_go(self)

    async def run() -> None:
        await simulated.start()
        clients = [await SimulatedClient.greeted(simulated, 60_000) for _ in range(5)]
        other = await SimulatedClient.greeted(simulated, 60_000)
        monkeypatch.setattr(MultiTicket, "__init__", began)
        monkeypatch.setattr(MultiTicket, "_let_go", ended)
        asked = [client.send(OpCode.MULTI, many_in_one(number)) for number, client in enumerate(clients)]
        assert await other.call(OpCode.EXISTS, NodeRequest("/", watch=False))
        for client, number in zip(clients, asked, strict=True):
            await client.until(lambda client=client, number=number: client.answer(number) is not None)
        rounds = simulated.server._serving.rounds
        assert (rounds.waiting, rounds._waiting_bytes) == (0, 0)

    simulated.run(run())
    assert most == 1


def of_writes() -> list[WriteRequest | AppliedTransaction]:
    return [each for each in gc.get_objects() if isinstance(each, WriteRequest | AppliedTransaction)]


def test_what_a_multi_was_made_of_is_gone_when_it_is_answered(simulated: SimulatedTree) -> None:
    """Without the collector of garbage, which the tree's process keeps from what long work holds."""

    async def run() -> None:
        await simulated.start()
        client = await SimulatedClient.greeted(simulated, 60_000)
        before = of_writes()
        gc.disable()
        try:
            await client.call(OpCode.MULTI, many_in_one(1))
            await client.call(OpCode.CREATE, CreateRequest("/behind", b""))
            left = [each for each in of_writes() if not any(each is other for other in before)]
            assert sum(len(each.ops) for each in left if isinstance(each, WriteRequest)) <= 1
            assert not [each for each in left if isinstance(each, AppliedTransaction)]
        finally:
            gc.enable()

    simulated.run(run())


def test_what_finds_no_place_in_the_queue_leaves_nothing_behind(
    simulated: SimulatedTree, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A session whose end was refused ends by its time-out, and a word that was is counted once."""

    async def run() -> None:
        await simulated.start()
        client = await SimulatedClient.greeted(simulated, 1500)
        other = await SimulatedClient.greeted(simulated, 60_000)
        simulated.ports.workers.latency_ms = (100, 100)
        other.send(OpCode.CREATE, CreateRequest("/under_way", b""))
        await asyncio.sleep(0.05)
        monkeypatch.setattr(store_module, "QUEUE_MAX", 0)
        client.send(OpCode.CLOSE_SESSION)
        asking = await SimulatedClient.open(simulated)
        asking.write(b"srvr")
        await client.until(client.closed.is_set)
        await asking.until(asking.closed.is_set)
        monkeypatch.undo()
        await asyncio.sleep(3)
        assert len(simulated.server.store._tree.sessions) == 1
        other.close()
        await asyncio.sleep(0.1)
        assert simulated.server._account.total == 0

    simulated.run(run())
