"""How long sessions live, whatever happens to their connections, to the server, and to its disk."""

from __future__ import annotations

import asyncio
import errno

import pytest
from tests.coordination.contract import until
from tests.coordination.served.simulated import SimulatedClient, SimulatedTree

from ottla.coordination.served.session_life import LOOK_MS
from ottla.coordination.waiting import LONG_OPS
from ottla.coordination.zookeeper.codes import OTTLA_PROTOCOL, KeeperError, OpCode
from ottla.coordination.zookeeper.frames import encode_connect
from ottla.coordination.zookeeper.messages import (
    OPEN_TO_ALL,
    ConnectAnswer,
    ConnectRequest,
    CreateRequest,
    DeleteRequest,
    EndWithConnectionRequest,
    NodeRequest,
    PathRequest,
    SetDataRequest,
    SetWatchesRequest,
)

EPHEMERAL = CreateRequest("/e", b"here", OPEN_TO_ALL, 1)


async def exists(client: SimulatedClient, path: str = "/e") -> bool:
    return not isinstance(await client.call(OpCode.EXISTS, NodeRequest(path, watch=False)), int)


async def pinging(client: SimulatedClient, every_s: float = 0.3) -> None:
    while not client.closed.is_set():
        client.send(OpCode.PING, xid=-2)
        await asyncio.sleep(every_s)


def alive(client: SimulatedClient) -> asyncio.Task[None]:
    return asyncio.get_running_loop().create_task(pinging(client))


async def owner_of(tree: SimulatedTree, path: str = "/e", timeout_ms: int = 1500) -> SimulatedClient:
    client = await SimulatedClient.greeted(tree, timeout_ms, machine="owner")
    await client.call(OpCode.CREATE, EPHEMERAL._replace(path=path))
    return client


@pytest.mark.parametrize(
    ("asked_ms", "given_ms"), [(1, 1000), (-5, 1000), (1500, 1500), (60_000, 60_000), (2**31 - 1, 60_000)]
)
def test_a_time_out_is_brought_between_its_bounds(simulated: SimulatedTree, asked_ms: int, given_ms: int) -> None:
    async def run() -> None:
        await simulated.start()
        client = await SimulatedClient.greeted(simulated, asked_ms)
        assert client.session is not None
        assert client.session.timeout_ms == given_ms
        assert client.session.session_id > 0
        assert len(client.session.password) == 16
        assert client.session.protocol_version == OTTLA_PROTOCOL

    simulated.run(run())


def test_a_session_that_says_nothing_ends_after_its_time_out(simulated: SimulatedTree) -> None:
    async def run() -> None:
        await simulated.start()
        other = await SimulatedClient.greeted(simulated, 30_000)
        silent, talking = await owner_of(simulated), await owner_of(simulated, "/f")
        keeping = alive(talking)
        await asyncio.sleep(1.4)
        assert await exists(other)
        await asyncio.sleep(0.2 + LOOK_MS / 1000)
        assert not await exists(other)
        assert silent.closed.is_set()
        await asyncio.sleep(10)
        assert await exists(other, "/f")
        keeping.cancel()

    simulated.run(run())


def test_a_closed_connection_alone_ends_nothing(simulated: SimulatedTree) -> None:
    async def run() -> None:
        await simulated.start()
        other = await SimulatedClient.greeted(simulated, 30_000)
        (await owner_of(simulated)).close()
        await asyncio.sleep(1.3)
        assert await exists(other)
        await asyncio.sleep(0.4)
        assert not await exists(other)

    simulated.run(run())


async def asking(tree: SimulatedTree, grace_ms: int, timeout_ms: int = 1500) -> SimulatedClient:
    client = await owner_of(tree, timeout_ms=timeout_ms)
    await client.call(OpCode.END_WITH_CONNECTION, EndWithConnectionRequest(grace_ms))
    return client


@pytest.mark.parametrize("grace_ms", [250, 600])
def test_a_session_that_asked_for_it_ends_with_its_connection(simulated: SimulatedTree, grace_ms: int) -> None:
    async def run() -> None:
        await simulated.start()
        other = await SimulatedClient.greeted(simulated, 30_000)
        client = await asking(simulated, grace_ms, 3000)
        await asyncio.sleep(1)
        client.close()
        await asyncio.sleep(grace_ms / 1000 - 0.02)
        assert await exists(other)
        await asyncio.sleep(0.05)
        assert not await exists(other)

    simulated.run(run())


@pytest.mark.parametrize("grace_ms", [0, -1, -(2**31)])
def test_nobody_may_ask_to_end_sooner_than_it_could_come_back(simulated: SimulatedTree, grace_ms: int) -> None:
    async def run() -> None:
        await simulated.start()
        other = await SimulatedClient.greeted(simulated, 30_000)
        (await asking(simulated, grace_ms)).close()
        await asyncio.sleep(0.03)
        assert await exists(other)

    simulated.run(run())


def test_nobody_may_ask_to_live_longer_than_its_time_out(simulated: SimulatedTree) -> None:
    async def run() -> None:
        await simulated.start()
        other = await SimulatedClient.greeted(simulated, 30_000)
        (await asking(simulated, 2**31 - 1)).close()
        await asyncio.sleep(1.7)
        assert not await exists(other)

    simulated.run(run())


def test_a_session_that_comes_back_in_time_lives_on(simulated: SimulatedTree) -> None:
    async def run() -> None:
        await simulated.start()
        other = await SimulatedClient.greeted(simulated, 30_000)
        client = await asking(simulated, 250)
        session = client.session
        for _ in range(5):
            client.close()
            await asyncio.sleep(0.2)
            client = await SimulatedClient.greeted(simulated, 1500, session)
            assert client.session is not None
            assert client.session.session_id == session.session_id  # type: ignore[union-attr]
        # It asked on its first connection. Of the last one nobody asked anything.
        client.close()
        await asyncio.sleep(1.3)
        assert await exists(other)
        await asyncio.sleep(0.4)
        assert not await exists(other)

    simulated.run(run())


def test_a_session_is_taken_over_by_whoever_knows_its_password(simulated: SimulatedTree) -> None:
    async def run() -> None:
        await simulated.start()
        first = await asking(simulated, 250)
        second = await SimulatedClient.greeted(simulated, 3000, first.session)
        assert second.session is not None
        assert second.session._replace(timeout_ms=1500) == first.session
        assert second.session.timeout_ms == 3000
        await first.until(first.closed.is_set)
        # What the first connection had asked for died with it, though not with its session.
        await asyncio.sleep(1)
        assert await exists(second)

    simulated.run(run())


def refused(answer: ConnectAnswer | None) -> bool:
    return answer is not None and (answer.timeout_ms, answer.session_id, answer.password) == (0, 0, bytes(16))


def test_a_wrong_password_is_answered_as_the_end_of_the_session(simulated: SimulatedTree) -> None:
    async def run() -> None:
        await simulated.start()
        client = await owner_of(simulated, timeout_ms=30_000)
        session = client.session
        assert session is not None
        right = session.password
        for wrong in (bytes(16), b"", right[:-1], right + b"\0", right[::-1]):
            thief = await SimulatedClient.greeted(simulated, 6000, session._replace(password=wrong))
            assert refused(thief.session)
            await thief.until(thief.closed.is_set)
        unknown = await SimulatedClient.greeted(simulated, 6000, session._replace(session_id=7))
        assert refused(unknown.session)
        assert not client.closed.is_set()
        assert await exists(client)

    simulated.run(run())


def test_a_closed_session_is_over_at_once(simulated: SimulatedTree) -> None:
    async def run() -> None:
        await simulated.start()
        other = await SimulatedClient.greeted(simulated, 30_000)
        client = await owner_of(simulated)
        assert await client.call(OpCode.CLOSE_SESSION) is None
        await client.until(client.closed.is_set)
        assert not await exists(other)
        again = await SimulatedClient.greeted(simulated, 1500, client.session)
        assert refused(again.session)

    simulated.run(run())


def test_a_client_that_has_seen_more_is_sent_away(simulated: SimulatedTree) -> None:
    async def run() -> None:
        await simulated.start()
        client = await SimulatedClient.open(simulated)
        client.write(encode_connect(ConnectRequest(0, 2**40, 6000, 0, bytes(16))))
        await client.until(client.closed.is_set)
        assert client.session is None

    simulated.run(run())


def test_an_old_client_is_answered_without_the_last_field(simulated: SimulatedTree) -> None:
    async def run() -> None:
        await simulated.start()
        client = await SimulatedClient.open(simulated)
        client.write(encode_connect(ConnectRequest(0, 0, 6000, 0, bytes(16), None)))
        await client.until(lambda: client.session is not None)
        assert client.session is not None
        assert client.session.read_only is None

    simulated.run(run())


# The server's own stalls.


def test_a_process_that_stood_still_ends_no_session_for_it(simulated: SimulatedTree) -> None:
    async def run() -> None:
        await simulated.start()
        client = await owner_of(simulated)
        other = await SimulatedClient.greeted(simulated, 30_000)
        keeping = alive(client)
        await asyncio.sleep(1)
        loop = simulated.world.loop
        for _ in range(3):
            # In one call of the loop: nobody receives, nobody looks at a clock.
            loop.timeline.move_to(loop.time() + 10)
            await asyncio.sleep(0.5)
        assert await exists(other)
        assert simulated.server._serving.life.stall_ms_max >= 9_900
        # What it has added is over: a session that really says nothing ends in its time.
        keeping.cancel()
        await asyncio.sleep(1.8)
        assert not await exists(other)

    simulated.run(run())


def test_a_disk_that_stands_still_ends_no_session(simulated: SimulatedTree) -> None:
    async def run() -> None:
        await simulated.start()
        client = await owner_of(simulated)
        other = await SimulatedClient.greeted(simulated, 60_000)
        keeping = alive(client)
        simulated.ports.workers.latency_ms = (20_000, 20_000)
        waiting = client.send(OpCode.SET_DATA, SetDataRequest("/e", b"later", -1))
        await asyncio.sleep(10)
        pings = [each for each in client.frames if each[0].xid == -2]
        assert len(pings) > 25
        assert client.answer(waiting) is None
        # Even a client that loses its connection now gets its session back.
        keeping.cancel()
        client.close()
        again = await SimulatedClient.greeted(simulated, 1500, client.session)
        assert again.session is not None
        assert again.session.timeout_ms == 1500
        keeping = alive(again)
        await asyncio.sleep(12)
        simulated.ports.workers.latency_ms = (0, 0)
        assert await exists(other)
        assert (await other.call(OpCode.GET_DATA, NodeRequest("/e", watch=False))).data == b"later"
        keeping.cancel()

    simulated.run(run())


def test_a_full_disk_refuses_writes_and_ends_no_session(simulated: SimulatedTree) -> None:
    async def run() -> None:
        await simulated.start()
        client = await owner_of(simulated, timeout_ms=1500)
        gone = await owner_of(simulated, "/gone")
        other = await SimulatedClient.greeted(simulated, 60_000)
        keeping = alive(client)
        disk = simulated.ports.disk
        disk.capacity_bytes = disk.capacity_bytes - disk.free_bytes("/")
        gone.close()
        for _ in range(5):
            assert await client.call(OpCode.SET_DATA, SetDataRequest("/e", b"x", -1)) == KeeperError.THROTTLED_OP
            await asyncio.sleep(1)
        assert await exists(other)
        # Not even one that is due: there is no room to say so.
        assert await exists(other, "/gone")
        assert await other.call(OpCode.SYNC, PathRequest("/")) is not None
        nobody = await SimulatedClient.greeted(simulated)
        assert nobody.closed.is_set()
        assert nobody.session is None
        disk.capacity_bytes = 1 << 40
        assert (await client.call(OpCode.SET_DATA, SetDataRequest("/e", b"x", -1))).version == 1
        await asyncio.sleep(1.5)
        assert not await exists(other, "/gone")
        keeping.cancel()

    simulated.run(run())


def test_the_answer_of_a_refused_write_shows_no_transaction_that_was_taken_back(simulated: SimulatedTree) -> None:
    """A client that believed it would be sent away when it comes again: it has seen more than the tree has."""

    async def run() -> None:
        await simulated.start()
        client = await owner_of(simulated, timeout_ms=60_000)
        seen = client.frames[-1][0].zxid
        disk = simulated.ports.disk
        disk.capacity_bytes = disk.capacity_bytes - disk.free_bytes("/")
        assert await client.call(OpCode.SET_DATA, SetDataRequest("/e", b"x", -1)) == KeeperError.THROTTLED_OP
        assert client.frames[-1][0].zxid == seen

    simulated.run(run())


def test_a_start_on_a_full_disk_serves_what_there_is(simulated: SimulatedTree) -> None:
    async def run() -> None:
        await simulated.start()
        client = await owner_of(simulated, timeout_ms=6000)
        disk = simulated.ports.disk
        disk.capacity_bytes = disk.capacity_bytes - disk.free_bytes("/")
        await simulated.restart()
        again = await SimulatedClient.greeted(simulated, 6000, client.session)
        assert again.session == client.session
        assert await exists(again)
        assert await again.call(OpCode.SET_DATA, SetDataRequest("/e", b"x", -1)) == KeeperError.THROTTLED_OP
        await asyncio.sleep(1)
        assert await exists(again)
        simulated.ports.disk.capacity_bytes = 1 << 40
        await asyncio.sleep(2)
        assert (await again.call(OpCode.SET_DATA, SetDataRequest("/e", b"x", -1))).version == 1
        await simulated.kill()
        last = await SimulatedClient.greeted(simulated, 6000, client.session)
        assert (await last.call(OpCode.GET_DATA, NodeRequest("/e", watch=False))).data == b"x"

    simulated.run(run())


def test_a_session_that_could_not_be_closed_ends_when_there_is_room(simulated: SimulatedTree) -> None:
    async def run() -> None:
        await simulated.start()
        client = await owner_of(simulated, timeout_ms=60_000)
        other = await SimulatedClient.greeted(simulated, 60_000)
        disk = simulated.ports.disk
        disk.capacity_bytes = disk.capacity_bytes - disk.free_bytes("/")
        assert await client.call(OpCode.CLOSE_SESSION) == KeeperError.THROTTLED_OP
        await client.until(client.closed.is_set)
        assert await exists(other)
        disk.capacity_bytes = 1 << 40
        await asyncio.sleep(1.5)
        assert not await exists(other)

    simulated.run(run())


def test_a_disk_that_fails_ends_the_server_and_no_session(simulated: SimulatedTree) -> None:
    async def run() -> None:
        await simulated.start()
        client = await owner_of(simulated)
        session = client.session
        simulated.ports.disk.fail("sync", "*journal*", errno.EIO, times=1)
        client.send(OpCode.SET_DATA, SetDataRequest("/e", b"x", -1))
        # It is not told that its session is over, nor anything about its write: nobody knows.
        await client.until(client.closed.is_set)
        assert client.frames[1:] == []
        await asyncio.sleep(0.2)
        assert len(simulated.lost) == 1
        await simulated.kill()
        again = await SimulatedClient.greeted(simulated, 1500, session)
        assert again.session == session
        assert await exists(again)

    simulated.run(run())


# Restarts.


@pytest.mark.parametrize("how", ["restart", "kill", "crash"])
def test_a_restart_keeps_all_sessions_and_gives_each_a_whole_time_out(simulated: SimulatedTree, how: str) -> None:
    async def run() -> None:
        await simulated.start()
        owners = [await owner_of(simulated, f"/e{number}", 1500) for number in range(20)]
        await asyncio.sleep(1.4)  # nearly over
        await getattr(simulated, how)()
        await asyncio.sleep(1.3)
        other = await SimulatedClient.greeted(simulated, 60_000)
        again = [await SimulatedClient.greeted(simulated, 1500, each.session) for each in owners[:10]]
        assert [each.session for each in again] == [each.session for each in owners[:10]]
        keeping = [alive(each) for each in again]
        assert all([await exists(other, f"/e{number}") for number in range(20)])
        await asyncio.sleep(0.5)
        # Those that did not come back have had their time.
        assert [await exists(other, f"/e{number}") for number in range(20)] == [True] * 10 + [False] * 10
        for task in keeping:
            task.cancel()

    simulated.run(run())


def test_a_watch_is_taken_along_and_called_for_what_was_missed(simulated: SimulatedTree) -> None:
    async def run() -> None:
        await simulated.start()
        client = await owner_of(simulated, timeout_ms=30_000)
        other = await SimulatedClient.greeted(simulated, 30_000)
        for name in ("data", "gone", "still", "parent", "quiet"):
            await other.call(OpCode.CREATE, CreateRequest(f"/{name}", b""))
        zxid = client.frames[-1][0].zxid
        answered = await client.call(OpCode.EXISTS, NodeRequest("/e", watch=False))
        assert answered.czxid >= zxid
        seen = client.frames[-1][0].zxid
        client.close()
        await other.call(OpCode.SET_DATA, SetDataRequest("/data", b"1", -1))
        await other.call(OpCode.DELETE, DeleteRequest("/gone", -1))
        await other.call(OpCode.CREATE, CreateRequest("/born", b""))
        await other.call(OpCode.CREATE, CreateRequest("/parent/child", b""))
        again = await SimulatedClient.greeted(simulated, 30_000, client.session)
        watches = SetWatchesRequest(
            seen, ["/data", "/gone", "/still"], ["/born", "/unborn"], ["/parent", "/quiet", "/gone"]
        )
        await again.call(OpCode.SET_WATCHES, watches)
        assert [(each.type, each.path) for each in again.events] == [
            (3, "/data"),
            (2, "/gone"),
            (1, "/born"),
            (4, "/parent"),
            (2, "/gone"),
        ]
        # Before the answer, and what had not changed is watched on.
        assert len(again.events) == 5
        assert not isinstance(again.frames[-1], type(again.events[0]))
        await other.call(OpCode.SET_DATA, SetDataRequest("/still", b"1", -1))
        await other.call(OpCode.CREATE, CreateRequest("/unborn", b""))
        await other.call(OpCode.CREATE, CreateRequest("/quiet/child", b""))
        await again.until(lambda: len(again.events) == 8)
        assert [(each.type, each.path) for each in again.events[5:]] == [(3, "/still"), (1, "/unborn"), (4, "/quiet")]

    simulated.run(run())


def test_watches_end_with_their_connection(simulated: SimulatedTree) -> None:
    async def run() -> None:
        await simulated.start()
        other = await SimulatedClient.greeted(simulated, 30_000)
        for number in range(3):
            client = await SimulatedClient.greeted(simulated, 30_000)
            for path in map("/w{}".format, range(200)):
                await client.call(OpCode.EXISTS, NodeRequest(path, watch=True))
            assert len(simulated.server.store.watches) == 200
            if number == 1:
                await client.call(OpCode.CLOSE_SESSION)
            client.close()
            await asyncio.sleep(0.1)
            assert len(simulated.server.store.watches) == 0
        await other.call(OpCode.CREATE, CreateRequest("/w1", b""))

    simulated.run(run())


def test_a_session_whose_client_went_away_before_it_knew_of_it_is_ended(simulated: SimulatedTree) -> None:
    async def run() -> None:
        await simulated.start()
        simulated.ports.workers.latency_ms = (100, 100)
        hasty = []
        for wait_s in (0.0, 0.01, 0.05, 0.09, 0.15):
            client = await SimulatedClient.open(simulated)
            client.write(encode_connect(ConnectRequest(0, 0, 30_000, 0, bytes(16))))
            hasty.append(asyncio.get_running_loop().call_later(wait_s, client.close))
        await asyncio.sleep(2)
        assert len(simulated.server.store._tree.sessions) == 0

    simulated.run(run())


def test_a_disk_that_fails_under_the_end_of_a_session_tells_nobody_that_it_is_over(simulated: SimulatedTree) -> None:
    """Its end is in memory, and nobody knows whether it is on the disk: the next life may find that it goes on."""

    async def run() -> None:
        await simulated.start()
        client = await owner_of(simulated)
        simulated.ports.disk.fail("sync", "*journal*", errno.EIO, times=1)
        await until(lambda: simulated.server.store.fault)
        assert not simulated.lost
        again = await SimulatedClient.greeted(simulated, 1500, client.session)
        assert again.session is None

    simulated.run(run())


def test_a_session_whose_end_waits_for_the_disk_is_not_taken_up_in_front_of_it(simulated: SimulatedTree) -> None:
    """However many nodes go with it, and so however many others go first."""

    async def run() -> None:
        await simulated.start()
        for nodes in (1, LONG_OPS + 1):
            client = await SimulatedClient.greeted(simulated, 1500)
            for number in range(nodes):
                await client.call(OpCode.CREATE, EPHEMERAL._replace(path=f"/e{number}"))
            simulated.ports.workers.latency_ms = (500, 500)
            await asyncio.sleep(1.4)
            other = await SimulatedClient.open(simulated)
            other.write(encode_connect(ConnectRequest(0, 0, 30_000, 0, bytes(16))))
            await asyncio.sleep(0.3)  # its session is being written, and the end of the first one waits
            again = await SimulatedClient.greeted(simulated, 1500, client.session)
            assert again.session is not None
            assert again.session.timeout_ms == 0
            simulated.ports.workers.latency_ms = (0, 0)

    simulated.run(run())
