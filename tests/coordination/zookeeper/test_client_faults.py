"""What our client makes of servers that close, lie, are silent or do not know it, in a simulated network."""

from __future__ import annotations

import asyncio
import struct
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from tests.coordination.contract import Events, fails, until
from tests.coordination.zookeeper.sessions import RemoteProvider
from tests.coordination.zookeeper.small_server import SmallConnection, SmallEnsemble
from tests.searches import seeds

from ottla.coordination.errors import (
    BadVersion,
    ConnectionLoss,
    DataTooLarge,
    InvalidPath,
    MultiFailed,
    ServersUnreachable,
    SessionClosed,
    SessionExpired,
    WriteRefused,
)
from ottla.coordination.interface import (
    REQUEST_BYTES_MAX,
    Create,
    CreatedNode,
    Delete,
    EventType,
    SessionEvent,
    SetData,
    Stat,
)
from ottla.coordination.sizes import op_size, split
from ottla.coordination.zookeeper import session as session_module
from ottla.coordination.zookeeper.client import RemoteTree
from ottla.coordination.zookeeper.codes import OTTLA_PROTOCOL, KeeperError, OpCode
from ottla.coordination.zookeeper.connection import ANSWER_BYTES_MAX
from ottla.coordination.zookeeper.frames import encode_answer, encode_connect, encode_error, encode_event
from ottla.coordination.zookeeper.messages import (
    ConnectAnswer,
    EndWithConnectionRequest,
    MultiAnswer,
    MultiResult,
    NodeEvent,
    RequestHeader,
)
from ottla.ports.memory import World
from ottla.ports.memory.loop import cancel_all
from ottla.ports.network import BROKEN

STAT = Stat(*range(1, 12))


class Simulation:
    """An ensemble of three, and a machine for our client."""

    def __init__(self, seed: int = 1, *, shuffle: bool = False, servers: int = 3) -> None:
        self.world = World(seed, shuffle=shuffle)
        self.world.fabric.latency(1, 1)
        self.ensemble = SmallEnsemble(self.world, servers)
        self.provider = RemoteProvider(self.world.machine("client"), self.ensemble.connect)

    async def session(self, **properties: str) -> RemoteTree:
        return await self.provider.session(**properties)

    def connection_of(self, tree: RemoteTree) -> SmallConnection:
        return next(each for each in self.ensemble.connections if each.session_id == tree.session.id)

    def run(self, work: Callable[[Simulation], Awaitable[None]]) -> None:
        async def whole() -> None:
            await work(self)
            await self.provider.close()

        try:
            self.world.loop.run_until_complete(whole())
        finally:
            cancel_all(self.world.loop)
            self.world.loop.close()

    def once(self, op: OpCode, do: Callable[[SmallConnection, RequestHeader, Any], object]) -> None:
        """The next request of this kind is given to `do` in place of being served."""

        def hook(connection: SmallConnection, header: RequestHeader, request: Any) -> bool:
            if header.op != op:
                return False
            self.ensemble.hook = lambda *_: False
            do(connection, header, request)
            return True

        self.ensemble.hook = hook


# Connections that are lost.


def test_a_write_whose_answer_is_lost_is_unknown_and_a_read_then_sees_what_became_of_it() -> None:
    async def work(sim: Simulation) -> None:
        tree = await sim.session()
        session_id = tree.session.id
        sim.ensemble.seen.clear()

        def serve_and_close(connection: SmallConnection, header: RequestHeader, request: Any) -> None:
            connection.send = lambda frame: None  # type: ignore[method-assign]
            connection.serve(header, request)
            connection.close()

        sim.once(OpCode.CREATE2, serve_and_close)
        await fails(tree.create("/a", b"1"), ConnectionLoss)
        assert (await tree.get("/a"))[0] == b"1"
        assert tree.session.id == session_id
        assert [op for _, op, _ in sim.ensemble.seen] == [OpCode.SYNC, OpCode.GET_DATA]

    Simulation().run(work)


def test_a_read_is_asked_again_and_what_was_not_sent_waits() -> None:
    async def work(sim: Simulation) -> None:
        tree = await sim.session(**{"zookeeper.max.in.flight.requests": "2"})
        await tree.create("/a", b"0")
        sim.once(OpCode.GET_DATA, lambda connection, *_: connection.close())
        results = await asyncio.gather(tree.get("/a"), tree.children("/"), tree.set("/a", b"1"), tree.get("/a"))
        assert results[0][0] == b"0"
        assert results[1][0] == ["a"]
        assert results[3][0] == b"1"

    Simulation().run(work)


def test_a_session_goes_on_with_another_server_and_its_watches() -> None:
    async def work(sim: Simulation) -> None:
        tree, other = await sim.session(), await sim.session()
        events: list[SessionEvent] = []
        tree.listen(events.append)
        await tree.create("/changed")
        await tree.create("/same")
        await tree.create("/e", ephemeral=True)
        changed, same, gone, born, children, unborn = (Events() for _ in range(6))
        await tree.get("/changed", changed)
        await tree.get("/same", same)
        await tree.get("/e", gone)
        await tree.exists("/born", born)
        await tree.exists("/unborn", unborn)
        await tree.children("/changed", children)
        first = sim.connection_of(tree).server
        while sim.connection_of(other).server is first:
            sim.connection_of(other).close()
            await other.sync("/")
        session_id = tree.session.id
        first.kill()
        # Applied before the client has another connection.
        sim.ensemble.apply(0, [Create("/born"), Create("/changed/child")])
        await tree.sync("/")
        assert sim.connection_of(tree).server is not first
        assert tree.session.id == session_id
        assert await tree.exists("/e") is not None
        assert events == [SessionEvent.DISCONNECTED, SessionEvent.CONNECTED]
        assert [list(each) for each in (changed, same, gone, unborn)] == [[], [], [], []]
        assert list(born) == [(EventType.NODE_CREATED, "/born")]
        assert list(children) == [(EventType.NODE_CHILDREN_CHANGED, "/changed")]
        # Those that did not fire are still left.
        await other.set("/same", b"1")
        await other.create("/unborn")
        await other.delete("/e")
        await until(lambda: same and unborn and gone)
        assert not changed

    Simulation().run(work)


def test_very_many_watches_are_left_again_in_several_requests() -> None:
    async def work(sim: Simulation) -> None:
        tree = await sim.session()
        events = Events()
        name = "x" * 190
        for number in range(1000):
            await tree.exists(f"/{name}{number}", events)
        sim.connection_of(tree).close()
        sim.ensemble.apply(0, [Create(f"/{name}{number}") for number in (0, 999)])
        await tree.sync("/")
        assert {event.path for event in events} == {f"/{name}0", f"/{name}999"}
        sizes = [len(request.exist) for _, op, request in sim.ensemble.seen if op is OpCode.SET_WATCHES]
        assert len(sizes) == 2
        assert sum(sizes) == 1000

    Simulation().run(work)


@pytest.mark.parametrize(("protocol", "watches", "last"), [(OTTLA_PROTOCOL, 1, 1), (0, 1000, 2)])
@pytest.mark.parametrize("refused", [False, True])
def test_what_a_connection_says_before_it_has_all_watches_hides_no_change(
    protocol: int, watches: int, last: int, refused: bool
) -> None:
    """It is lost then: of what changed before, the next one has to bring the news all the same."""

    async def work(sim: Simulation) -> None:
        sim.ensemble.protocol_version = protocol
        tree = await sim.session()
        events = Events()
        paths = [f"/{'x' * 190}{number}" for number in range(watches)]
        for path in paths:
            await tree.create(path)
            await tree.get(path, events)
        asked = 0

        def end(connection: SmallConnection, header: RequestHeader, _: Any) -> bool:
            nonlocal asked
            asked += header.op == OpCode.SET_WATCHES
            if asked < last:
                return False
            sim.ensemble.hook = lambda *_: False
            if refused:
                connection.send(encode_error(header.xid, sim.ensemble.tree.zxid, KeeperError.SYSTEM_ERROR))
            else:
                connection.close()
            return True

        sim.ensemble.hook = end
        sim.connection_of(tree).close()
        sim.ensemble.apply(0, [SetData(paths[-1], b"1")])
        await tree.sync("/")
        assert asked == last
        assert list(events) == [(EventType.NODE_DATA_CHANGED, paths[-1])]

    Simulation().run(work)


def refuse(code: int, by: list[SmallConnection]) -> Callable[[SmallConnection, RequestHeader, Any], None]:
    """Notes in `by` who has refused."""

    def do(connection: SmallConnection, header: RequestHeader, request: Any) -> None:
        by.append(connection)
        connection.send(encode_error(header.xid, connection.ensemble.tree.zxid, code))

    return do


def test_watches_that_a_server_does_not_take_are_left_with_another_connection() -> None:
    """Or nothing that changes would ever be heard of."""

    async def work(sim: Simulation) -> None:
        tree, other = await sim.session(), await sim.session()
        await tree.create("/a")
        changed = Events()
        await tree.get("/a", changed)
        refused: list[SmallConnection] = []
        sim.once(OpCode.SET_WATCHES, refuse(KeeperError.SYSTEM_ERROR, refused))
        sim.connection_of(tree).close()
        await until(lambda: refused)
        await tree.sync("/")
        await other.set("/a", b"1")
        await until(lambda: changed)
        assert sim.connection_of(tree) is not refused[0]
        assert list(changed) == [(EventType.NODE_DATA_CHANGED, "/a")]

    Simulation().run(work)


@pytest.mark.parametrize("refused", [False, True])
def test_servers_that_take_the_session_and_not_its_watches_are_not_asked_without_end(refused: bool) -> None:
    async def work(sim: Simulation) -> None:
        sim.ensemble.protocol_version = OTTLA_PROTOCOL
        tree = await sim.session()
        await tree.create("/a")
        changed = Events()
        await tree.get("/a", changed)

        def end(connection: SmallConnection, header: RequestHeader, _: Any) -> bool:
            if header.op != OpCode.SET_WATCHES:
                return False
            if refused:
                connection.send(encode_error(header.xid, sim.ensemble.tree.zxid, KeeperError.THROTTLED_OP))
            else:
                connection.close()
            return True

        sim.ensemble.hook = end
        sim.connection_of(tree).close()
        await asyncio.sleep(10)
        assert 30 < len(sim.ensemble.connects) < 150  # three servers, and 0.2 to 0.4 s
        sim.ensemble.hook = lambda *_: False
        sim.ensemble.apply(0, [SetData("/a", b"1")])
        await until(lambda: changed)
        # And the next loss is one like any other.
        connects = len(sim.ensemble.connects)
        sim.connection_of(tree).close()
        await asyncio.sleep(0.01)
        assert len(sim.ensemble.connects) == connects + 1

    Simulation().run(work)


@pytest.mark.parametrize("code", [KeeperError.CONNECTION_LOSS, KeeperError.OPERATION_TIMEOUT, -999])
def test_behind_a_write_that_nobody_knows_of_stands_a_sync(code: int) -> None:
    """The server is behind, and may have what became of the write later: a read shall not come before that."""

    async def work(sim: Simulation) -> None:
        tree = await sim.session()
        refused: list[SmallConnection] = []
        sim.once(OpCode.CREATE2, refuse(code, refused))
        before = len(sim.ensemble.seen)
        with pytest.raises(ConnectionLoss):
            await tree.create("/a")
        assert await tree.exists("/a") is None
        asked = [op for _, op, _ in sim.ensemble.seen[before:] if op is not OpCode.PING]
        assert asked[-2:] == [OpCode.SYNC, OpCode.EXISTS]
        assert sim.connection_of(tree) is refused[0]
        await tree.create("/a")
        await tree.exists("/a")
        asked = [op for _, op, _ in sim.ensemble.seen[before:] if op is not OpCode.PING]
        assert asked.count(OpCode.SYNC) == 1  # one is enough

    Simulation().run(work)


# Servers that lie.


def drop(connection: SmallConnection, header: RequestHeader, request: Any) -> None:
    """Answers nothing."""


def half_an_answer(connection: SmallConnection, header: RequestHeader, request: Any) -> None:
    connection.send(encode_error(header.xid, 1, KeeperError.NO_NODE)[:9])
    connection.close()


def an_id_that_nobody_asked_with(connection: SmallConnection, header: RequestHeader, request: Any) -> None:
    connection.send(encode_error(header.xid + 1, 1, KeeperError.OK))


def fields_that_cannot_be_read(connection: SmallConnection, header: RequestHeader, request: Any) -> None:
    connection.send(struct.pack(">iiqii", 20, header.xid, 1, 0, 2**31 - 1))


def a_negative_length(connection: SmallConnection, header: RequestHeader, request: Any) -> None:
    connection.send(struct.pack(">i", -5) + bytes(100))


def a_frame_without_a_header(connection: SmallConnection, header: RequestHeader, request: Any) -> None:
    connection.send(struct.pack(">i", 3) + bytes(3))


def a_torn_notification(connection: SmallConnection, header: RequestHeader, request: Any) -> None:
    connection.send(struct.pack(">iiqiii", 24, -1, -1, 0, 1, 3))


LIES = [
    half_an_answer,
    an_id_that_nobody_asked_with,
    fields_that_cannot_be_read,
    a_negative_length,
    a_frame_without_a_header,
    a_torn_notification,
]


@pytest.mark.parametrize("lie", LIES, ids=lambda lie: lie.__name__)
def test_a_server_that_lies_loses_its_connection_and_the_session_goes_on(lie: Callable[..., None]) -> None:
    async def work(sim: Simulation) -> None:
        tree = await sim.session()
        await tree.create("/a", b"1")
        sim.once(OpCode.GET_DATA, lie)
        read, written = await asyncio.gather(tree.get("/a"), tree.set("/a", b"2"), return_exceptions=True)
        assert isinstance(written, ConnectionLoss)
        assert not isinstance(read, BaseException)
        assert (await tree.get("/a"))[0] in {b"1", b"2"}
        assert len(sim.ensemble.connects) == 2
        assert len(sim.ensemble.connections) == 1

    Simulation().run(work)


def test_answers_in_another_order_are_not_believed() -> None:
    async def work(sim: Simulation) -> None:
        tree = await sim.session()
        await tree.create("/a", b"a")
        await tree.create("/b", b"b")
        held: list[tuple[RequestHeader, Any]] = []

        def swap(connection: SmallConnection, header: RequestHeader, request: Any) -> bool:
            if header.op != OpCode.GET_DATA or len(sim.ensemble.connects) > 1:
                return False
            held.append((header, request))
            if len(held) == 2:
                for each in reversed(held):
                    connection.serve(*each)
            return True

        sim.ensemble.hook = swap
        first, second = await asyncio.gather(tree.get("/a"), tree.get("/b"))
        assert (first[0], second[0]) == (b"a", b"b")
        assert len(sim.ensemble.connects) == 2

    Simulation().run(work)


def test_a_read_that_no_server_can_answer_fails_in_the_end_and_the_others_do_not() -> None:
    async def work(sim: Simulation) -> None:
        tree = await sim.session()
        await tree.create("/a", b"1")

        def hook(connection: SmallConnection, header: RequestHeader, request: Any) -> bool:
            if header.op == OpCode.GET_CHILDREN2:
                connection.close()
            return header.op == OpCode.GET_CHILDREN2

        sim.ensemble.hook = hook
        failed, found = await asyncio.gather(tree.children("/"), tree.get("/a"), return_exceptions=True)
        assert isinstance(failed, ConnectionLoss)
        assert not isinstance(found, BaseException)  # it was under way each time, but never the next to be answered
        assert len(sim.ensemble.connects) == 1 + session_module.READ_LOSSES_MAX
        assert (await tree.get("/a"))[0] == b"1"

    Simulation().run(work)


def test_an_answer_that_is_too_large_fails_its_request_and_no_other() -> None:
    async def work(sim: Simulation) -> None:
        tree = await sim.session()
        await tree.create("/a", b"1")
        for pieces in (1, 6):

            def too_large(connection: SmallConnection, header: RequestHeader, _: Any, pieces: int = pieces) -> None:
                frame = struct.pack(">iiqi", ANSWER_BYTES_MAX + 1, header.xid, 1, 0)
                for start in range(0, len(frame), len(frame) // pieces):
                    connection.send(frame[start : start + len(frame) // pieces])

            sim.once(OpCode.GET_CHILDREN2, too_large)
            failed, found = await asyncio.gather(tree.children("/"), tree.get("/a"), return_exceptions=True)
            assert isinstance(failed, DataTooLarge)
            assert not isinstance(found, BaseException)

    Simulation().run(work)


def test_events_that_no_watch_is_left_for_are_nothing() -> None:
    async def work(sim: Simulation) -> None:
        tree = await sim.session()
        events = Events()
        await tree.exists("/a", events)
        for event in (NodeEvent(1, 3, "/other"), NodeEvent(-1, 3, ""), NodeEvent(99, 3, "/a"), NodeEvent(4, 3, "/a")):
            sim.connection_of(tree).send(encode_event(event))
        await tree.create("/a")
        assert list(events) == [(EventType.NODE_CREATED, "/a")]
        assert len(sim.ensemble.connects) == 1

    Simulation().run(work)


def test_a_session_that_moved_connects_again() -> None:
    async def work(sim: Simulation) -> None:
        tree = await sim.session()
        moved = KeeperError.SESSION_MOVED
        sim.once(OpCode.CREATE2, lambda connection, header, _: connection.send(encode_error(header.xid, 1, moved)))
        await fails(tree.create("/a"), ConnectionLoss)
        await tree.create("/a")
        assert len(sim.ensemble.connects) == 2

    Simulation().run(work)


# Order.


@pytest.mark.parametrize("seed", seeds(10, 40))
def test_a_watch_is_called_before_its_session_can_read_what_changed(seed: int) -> None:
    async def work(sim: Simulation) -> None:
        sim.world.fabric.latency(0, 3)
        tree, writer = await sim.session(), await sim.session()
        await tree.create("/a", b"0")
        events = Events()

        async def read() -> bytes:
            data, _ = await tree.get("/a", events)
            # It is called before what changed is read, and behind the return of the read that left it.
            assert bool(events) == (data == b"1")
            return data

        assert await read() == b"0"
        changing = asyncio.ensure_future(writer.set("/a", b"1"))
        while b"1" not in await asyncio.gather(read(), read(), read()):
            await tree.exists("/a")
        await changing

    Simulation(seed, shuffle=True).run(work)


def test_a_watch_that_raises_keeps_nothing_from_the_others() -> None:
    async def work(sim: Simulation) -> None:
        faults: list[dict[str, Any]] = []
        asyncio.get_running_loop().set_exception_handler(lambda _, context: faults.append(context))
        tree = await sim.session()
        events = Events()

        def failing(_: object) -> None:
            raise ValueError("a fault of the caller")

        await tree.exists("/a", failing)
        await tree.exists("/a", events)
        await tree.create("/a")
        assert await tree.exists("/a")
        assert list(events) == [(EventType.NODE_CREATED, "/a")]
        assert isinstance(faults[0]["exception"], ValueError)

    Simulation().run(work)


def test_a_caller_that_was_cancelled_confuses_nobody() -> None:
    async def work(sim: Simulation) -> None:
        tree = await sim.session(**{"zookeeper.max.in.flight.requests": "1"})
        tasks = [asyncio.ensure_future(tree.create(f"/n{number}")) for number in range(4)]
        await asyncio.sleep(0)
        tasks[0].cancel()  # it is under way, and is done
        tasks[2].cancel()  # it waits, and is not
        await asyncio.wait(tasks)
        assert (await tree.children("/"))[0] == ["n0", "n1", "n3"]

    Simulation().run(work)


# Bounds.


def test_no_more_is_under_way_than_is_configured_and_the_queue_has_an_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session_module, "QUEUE_MAX", 50)

    async def work(sim: Simulation) -> None:
        tree = await sim.session(**{"zookeeper.max.in.flight.requests": "7"})
        held: list[tuple[SmallConnection, RequestHeader, Any]] = []

        def hold(*request: Any) -> bool:
            if request[1].op != OpCode.PING:
                held.append(request)
            return bool(request[1].op != OpCode.PING)

        sim.ensemble.hook = hold
        tasks = [asyncio.ensure_future(tree.exists(f"/n{number}")) for number in range(60)]
        await until(lambda: len(held) == 7)
        await asyncio.sleep(0.5)
        assert len(held) == 7
        refused = [task for task in tasks if task.done()]
        assert len(refused) == 3
        assert all(isinstance(task.exception(), WriteRefused) for task in refused)
        sim.ensemble.hook = lambda *_: False
        for connection, header, request in held:
            connection.serve(header, request)
        await asyncio.wait(tasks)

    Simulation().run(work)


def test_a_read_of_many_nodes_fits_the_queue() -> None:
    async def work(sim: Simulation) -> None:
        tree = await sim.session()
        await tree.create("/a", b"1")
        found = await tree.get_many(["/a", "/none"] * 11_000)
        assert [node and node[0] for node in found] == [b"1", None] * 11_000

    sim = Simulation()
    sim.world.fabric.latency(0, 0)
    sim.run(work)


def test_a_large_multi_lets_others_have_their_turns_and_keeps_its_place() -> None:
    async def work(sim: Simulation) -> None:
        tree = await sim.session()
        loop, turns = sim.world.loop, list[float]()
        loop.after_turn = lambda: turns.append(loop.time())
        before = loop.time()
        ops = [Create(f"/n{number:04}", b"%d" % number) for number in range(3000)]
        made, found, refused = await asyncio.gather(
            tree.multi(ops), tree.get("/n2999"), tree.multi([*ops[:200], Delete("/")]), return_exceptions=True
        )
        assert not isinstance(made, BaseException)
        assert [result.path for result in made if isinstance(result, CreatedNode)] == [op.path for op in ops]
        assert not isinstance(found, BaseException)
        assert found[0] == b"2999"
        assert isinstance(refused, MultiFailed)
        assert (refused.index, type(refused.error)) == (200, InvalidPath)
        # Before anything is sent: a step has 8 operations, and where the clock stands still 64 steps are a turn.
        assert turns.count(before) > 2 * 3000 / 8 / 64

    Simulation().run(work)


def test_a_large_multi_is_cancelled_or_outlived_by_nothing_while_it_is_made() -> None:
    async def work(sim: Simulation) -> None:
        tree = await sim.session()
        ops = [Create(f"/n{number:04}") for number in range(3000)]
        cancelled = asyncio.ensure_future(tree.multi(ops))
        behind = asyncio.ensure_future(tree.create("/a"))
        await asyncio.sleep(0)
        cancelled.cancel()
        assert (await behind).path == "/a"
        assert (await tree.children("/"))[0] == ["a"]
        closing = asyncio.ensure_future(tree.multi(ops))
        await asyncio.sleep(0)
        await tree.close()
        assert len(await closing) == 3000
        lost = await sim.session()
        late = asyncio.ensure_future(lost.multi([Create(f"/l{number:04}") for number in range(3000)]))
        await asyncio.sleep(0)
        sim.ensemble.expire(lost.session.id)
        with pytest.raises((ConnectionLoss, SessionExpired)):
            await late

    Simulation().run(work)


@pytest.mark.parametrize("chroot", ["", f"/{'c' * 57}"])
def test_what_is_cut_to_fit_a_request_fits_it(chroot: str) -> None:
    async def work(sim: Simulation) -> None:
        sim.provider.connect += chroot
        tree = await sim.session()
        large = Create("/large", bytes(REQUEST_BYTES_MAX - op_size(Create("/large"))))
        many = [Create(f"/{number}") for number in range(9_000)]
        for piece in (*split([large]), *split(many)):
            await tree.multi(piece)
        assert len((await tree.children("/"))[0]) == 1 + len(many)

    Simulation().run(work)


@pytest.mark.parametrize("results", [[], [MultiResult(OpCode.DELETE, 0)] * 2, [MultiResult(OpCode.SET_DATA, 0, STAT)]])
def test_results_of_a_multi_that_do_not_fit_it_are_not_believed(results: list[MultiResult]) -> None:
    async def work(sim: Simulation) -> None:
        tree = await sim.session()

        def lie(connection: SmallConnection, header: RequestHeader, request: Any) -> None:
            connection.send(encode_answer(header.xid, 1, OpCode.MULTI, MultiAnswer(results)))

        sim.once(OpCode.MULTI, lie)
        await fails(tree.multi([Create("/a")]), ConnectionLoss)
        await tree.multi([Create("/a")])
        assert len(sim.ensemble.connects) == 2

    Simulation().run(work)


# Time.


def test_an_idle_session_is_heard_of_each_fifth_of_its_time_out() -> None:
    async def work(sim: Simulation) -> None:
        tree = await sim.session(**{"zookeeper.session.timeout.ms": "1500"})
        before = len(sim.ensemble.seen)
        for _ in range(600):
            await asyncio.sleep(0.1)
            sim.ensemble.expire_silent()
        pings = [op for _, op, _ in sim.ensemble.seen[before:]]
        assert set(pings) == {OpCode.PING}
        assert 195 <= len(pings) <= 200
        assert tree.session.id in sim.ensemble.tree.sessions

    Simulation().run(work)


def test_a_silent_server_is_left_early_enough_to_keep_the_session() -> None:
    async def work(sim: Simulation) -> None:
        tree = await sim.session(**{"zookeeper.session.timeout.ms": "1500"})
        await tree.create("/e", ephemeral=True)
        events: list[SessionEvent] = []
        tree.listen(events.append)
        silent = sim.connection_of(tree).server.name
        sim.world.fabric.isolate(silent)
        for _ in range(300):
            await asyncio.sleep(0.01)
            sim.ensemble.expire_silent()
        assert events == [SessionEvent.DISCONNECTED, SessionEvent.CONNECTED]
        assert await tree.exists("/e")
        assert sim.connection_of(tree).server.name != silent

    Simulation().run(work)


def test_a_server_that_accepts_and_says_nothing_is_passed_over(own_log_lines: list[str]) -> None:
    async def work(sim: Simulation) -> None:
        silent = sim.ensemble.servers[0]

        def mute(ready: list[tuple[Any, int]]) -> bool:
            for connection, events in ready:
                connection.channel.watch(reading=False, writing=False)
                if events & BROKEN:
                    connection.close()
            return False

        silent._on_round = mute  # type: ignore[method-assign]
        silent.start(silent.kill())
        trees = [await sim.session() for _ in range(6)]
        assert {sim.connection_of(tree).server.name for tree in trees} == {"zk2", "zk3"}
        assert any("zk1:2181" in line and "no answer within" in line for line in own_log_lines)

    Simulation().run(work)


def test_a_server_that_is_behind_is_passed_over() -> None:
    async def work(sim: Simulation) -> None:
        tree = await sim.session()
        await tree.create("/a")
        real = sim.ensemble.tree.zxid
        sim.connection_of(tree).close()
        sim.ensemble.tree.zxid -= 1  # what each server would show
        await until(lambda: len(sim.ensemble.connects) >= 4)
        assert tree.server is None
        sim.ensemble.tree.zxid = real
        assert await tree.exists("/a")
        assert all(request.last_zxid_seen == real for _, request in sim.ensemble.connects[1:])

    Simulation().run(work)


# The beginning and the end.


def test_where_no_server_is_the_start_fails_in_time_and_says_each_once(own_log_lines: list[str]) -> None:
    async def work(sim: Simulation) -> None:
        for server in sim.ensemble.servers:
            server.kill()
        loop = asyncio.get_running_loop()
        began = loop.time()
        await fails(sim.session(**{"zookeeper.connection.timeout.ms": "5000"}), ServersUnreachable)
        assert loop.time() - began == pytest.approx(5)
        assert sorted(line.split("server=")[1].split(":")[0] for line in own_log_lines) == ["zk1", "zk2", "zk3"]

    Simulation().run(work)


def test_an_ensemble_that_is_away_is_said_once_and_found_again(own_log_lines: list[str]) -> None:
    async def work(sim: Simulation) -> None:
        tree = await sim.session()
        waiting = [server.kill() for server in sim.ensemble.servers]
        await until(lambda: tree.server is None)
        reading = asyncio.ensure_future(tree.exists("/a"))
        writing = asyncio.ensure_future(tree.create("/b"))
        await asyncio.sleep(60)
        assert not reading.done()
        assert not writing.done()
        told = len(own_log_lines)
        assert sum("cannot be connected to" in line for line in own_log_lines) == 3
        await asyncio.sleep(60)
        assert len(own_log_lines) == told
        for server, ports in zip(sim.ensemble.servers, waiting, strict=True):
            server.start(ports)
        async with asyncio.timeout(1):
            assert await reading is None
            await writing

    Simulation().run(work)


def test_a_session_that_expired_says_so_and_another_is_opened() -> None:
    async def work(sim: Simulation) -> None:
        tree = await sim.session()
        events: list[SessionEvent] = []
        watch = Events()
        tree.listen(events.append)
        await tree.exists("/a", watch)
        sim.world.fabric.isolate("client")
        waiting = asyncio.ensure_future(tree.create("/b"))
        await asyncio.sleep(10)
        sim.ensemble.expire(tree.session.id)
        # Nobody but a server can say it.
        assert events == [SessionEvent.DISCONNECTED]
        assert tree.fault is None
        sim.world.fabric.heal()
        await until(lambda: SessionEvent.EXPIRED in events)
        assert events == [SessionEvent.DISCONNECTED, SessionEvent.EXPIRED]
        with pytest.raises(ConnectionLoss):  # it had been sent
            await waiting
        await fails(tree.get("/"), SessionExpired)
        assert tree.fault is not None
        again = await sim.session()
        await again.create("/a")
        await asyncio.sleep(1)
        assert not watch
        assert again.session.id != tree.session.id

    Simulation().run(work)


def test_what_waits_for_a_connection_fails_when_the_session_is_over() -> None:
    async def work(sim: Simulation) -> None:
        tree = await sim.session(**{"zookeeper.max.in.flight.requests": "1"})
        sim.ensemble.hook = lambda *_: True  # nothing is answered
        calls = [asyncio.ensure_future(call) for call in (tree.create("/a"), tree.create("/b"), tree.get("/c"))]
        await asyncio.sleep(0.1)
        sim.ensemble.expire(tree.session.id)
        await asyncio.wait(calls)
        assert [type(call.exception()) for call in calls] == [ConnectionLoss, SessionExpired, SessionExpired]

    Simulation().run(work)


def test_closing_ends_the_session_behind_what_was_asked_before() -> None:
    async def work(sim: Simulation) -> None:
        tree = await sim.session()
        events: list[SessionEvent] = []
        tree.listen(events.append)
        await tree.create("/e", ephemeral=True)
        written = asyncio.ensure_future(tree.create("/last"))
        await asyncio.sleep(0)
        await asyncio.gather(tree.close(), tree.close())
        assert (await written).path == "/last"
        assert set(sim.ensemble.tree.nodes) == {"/", "/last"}
        assert tree.session.id not in sim.ensemble.tree.sessions
        await fails(tree.get("/last"), SessionClosed)
        await asyncio.sleep(1)
        assert events == []
        assert sim.ensemble.connections == []

    Simulation().run(work)


def test_closing_is_said_again_to_the_next_server() -> None:
    async def work(sim: Simulation) -> None:
        tree = await sim.session()
        sim.once(OpCode.CLOSE_SESSION, lambda connection, *_: connection.close())
        await tree.close()
        assert tree.session.id not in sim.ensemble.tree.sessions

        tree = await sim.session()

        def close_without_a_word(connection: SmallConnection, header: RequestHeader, request: Any) -> None:
            connection.send = lambda frame: None  # type: ignore[method-assign]
            connection.serve(header, request)

        sim.once(OpCode.CLOSE_SESSION, close_without_a_word)
        await tree.close()
        assert tree.session.id not in sim.ensemble.tree.sessions

    Simulation().run(work)


def test_closing_does_not_wait_for_an_ensemble_that_is_away(own_log_lines: list[str]) -> None:
    async def work(sim: Simulation) -> None:
        tree = await sim.session()
        for server in sim.ensemble.servers:
            server.kill()
        began = asyncio.get_running_loop().time()
        await tree.close()
        assert asyncio.get_running_loop().time() - began <= session_module.CLOSE_MS_MAX / 1000
        assert "ends by its time-out" in own_log_lines[-1]
        await fails(tree.get("/"), SessionClosed)

    Simulation().run(work)


def test_a_handshake_that_cannot_be_read_is_tried_elsewhere() -> None:
    async def work(sim: Simulation) -> None:
        liar = sim.ensemble.servers[0]

        def garbage(ready: list[tuple[Any, int]]) -> bool:
            for connection, _ in ready:
                connection.channel.receive_into(memoryview(bytearray(1000)))
                connection.send(struct.pack(">i", 20) + b"\x7f" * 20)
                connection.close()
            return False

        liar._on_round = garbage  # type: ignore[method-assign]
        liar.start(liar.kill())
        for _ in range(6):
            assert (await sim.session()).server in {"zk2:2181", "zk3:2181"}

    Simulation().run(work)


def test_a_server_that_resumes_another_session_is_not_believed() -> None:
    async def work(sim: Simulation) -> None:
        tree = await sim.session()
        shake = SmallConnection._shake_hands
        wrong = [True]

        def confused(connection: SmallConnection, request: Any) -> None:
            if wrong:
                wrong.clear()
                connection.session_id = 77
                connection.send(encode_connect(ConnectAnswer(0, 6000, 77, bytes(16))))
            else:
                shake(connection, request)

        before = tree.session.id
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(SmallConnection, "_shake_hands", confused)
            sim.connection_of(tree).close()
            await tree.sync("/")
        assert tree.session.id == before

    Simulation().run(work)


@pytest.mark.parametrize("protocol", [0, OTTLA_PROTOCOL])
def test_only_a_tree_of_this_project_is_asked_to_end_sessions_with_their_connections(protocol: int) -> None:
    async def work(sim: Simulation) -> None:
        sim.ensemble.protocol_version = protocol
        tree = await sim.session()
        sim.connection_of(tree).close()
        await tree.sync("/")
        asked = [request for _, op, request in sim.ensemble.seen if op is OpCode.END_WITH_CONNECTION]
        assert asked == ([EndWithConnectionRequest(session_module.END_GRACE_MS)] * 2 if protocol else [])

    Simulation().run(work)


# Everything at once.


@pytest.mark.parametrize("seed", seeds(8, 30))
def test_counts_are_right_however_connections_break(seed: int) -> None:
    """Increments under conditions by three sessions, while servers and connections come and go."""
    sim = Simulation(seed, shuffle=True)

    async def increment(tree: RemoteTree, done: list[int]) -> None:
        for _ in range(25):
            while True:
                data, stat = await tree.get("/count")
                assert int(data) == stat.version
                try:
                    await tree.set("/count", b"%d" % (int(data) + 1), stat.version)
                except ConnectionLoss:
                    # The next read tells: only this session writes its name.
                    done[1] += 1
                    break
                except BadVersion:
                    continue
                done[0] += 1
                break

    async def follow(tree: RemoteTree, seen: list[int]) -> None:
        changed = asyncio.Event()
        while True:
            changed.clear()
            data, _ = await tree.get("/count", lambda _: changed.set())
            assert int(data) >= seen[-1]
            seen.append(int(data))
            await changed.wait()

    async def disturb() -> None:
        entropy = sim.world.machine("devil").entropy
        dead: dict[int, Any] = {}
        while True:
            await asyncio.sleep(entropy.below(200) / 1000)
            number = entropy.below(3)
            server = sim.ensemble.servers[number]
            kind = entropy.below(4)
            if number in dead:
                server.start(dead.pop(number))
            elif kind == 0 and not dead:
                dead[number] = server.kill()
            elif kind == 1:
                sim.world.fabric.reset("client", server.name)
            elif kind == 2:
                sim.world.fabric.cut("client", server.name, one_way=bool(entropy.below(2)))
            else:
                sim.world.fabric.heal()

    async def work(sim: Simulation) -> None:
        sim.world.fabric.latency(0, 20)
        sim.world.fabric.chop = True
        trees = [await sim.session() for _ in range(4)]
        await trees[0].create("/count", b"0")
        done, seen = [[0, 0] for _ in range(3)], [0]
        following = asyncio.ensure_future(follow(trees[3], seen))
        devil = asyncio.ensure_future(disturb())
        await asyncio.gather(*(increment(tree, each) for tree, each in zip(trees, done, strict=False)))
        devil.cancel()
        sim.world.fabric.heal()
        data, stat = await trees[0].get("/count")
        acknowledged, unknown = (sum(each[index] for each in done) for index in (0, 1))
        assert acknowledged <= int(data) == stat.version <= acknowledged + unknown
        assert acknowledged + unknown == 75
        # Nothing that changed is missed by the one that watches.
        await until(lambda: seen[-1] == int(data))
        following.cancel()
        assert len(sim.ensemble.tree.sessions) == 4

    sim.run(work)


def test_what_a_lost_session_had_sent_does_not_answer_the_next() -> None:
    """The ids of requests begin again with each connection: a late answer goes nowhere."""

    async def work(sim: Simulation) -> None:
        tree = await sim.session()
        old = sim.connection_of(tree)
        sim.once(OpCode.CREATE2, drop)
        lost = asyncio.ensure_future(tree.create("/a"))
        await asyncio.sleep(0.1)
        sim.world.fabric.reset("client", old.server.name)
        with pytest.raises(ConnectionLoss):
            await lost
        old.send(encode_answer(2, 1, OpCode.PING))
        assert await tree.exists("/a") is None

    Simulation().run(work)
