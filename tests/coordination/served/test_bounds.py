"""What clients may take of a served tree, and what becomes of those that take more."""

from __future__ import annotations

import asyncio
import random
import struct
import tracemalloc
from collections.abc import Iterator

import pytest
from tests.coordination.served.simulated import SimulatedClient, SimulatedTree

from ottla.coordination.interface import MULTI_OPS_MAX, REQUEST_BYTES_MAX
from ottla.coordination.served import limits
from ottla.coordination.served.limits import ServedLimits
from ottla.coordination.served.words import SIZES_KEPT_MS_MIN, Words
from ottla.coordination.sessions import STORE_SESSION
from ottla.coordination.tree import SESSIONS_MAX, OpenSession, ZnodeTree
from ottla.coordination.zookeeper.codes import KeeperError, OpCode
from ottla.coordination.zookeeper.frames import encode_connect, encode_request
from ottla.coordination.zookeeper.messages import (
    OPEN_TO_ALL,
    AclEntry,
    AuthRequest,
    CheckRequest,
    ConnectRequest,
    CreateRequest,
    CreateTtlRequest,
    DataAnswer,
    DeleteRequest,
    MultiOp,
    MultiRequest,
    NodeRequest,
    PathRequest,
    SetAclRequest,
    SetDataRequest,
    SetWatchesRequest,
)
from ottla.ports.memory import World
from ottla.ports.memory.loop import cancel_all
from ottla.steps import Steps


def frame(body: bytes, length: int | None = None) -> bytes:
    return struct.pack(">i", len(body) if length is None else length) + body


CONNECT = encode_connect(ConnectRequest(0, 0, 6000, 0, bytes(16)))

#: First bytes of a connection that end it.
BAD_STARTS = {
    "an empty frame": frame(b""),
    "a negative length": frame(b"", -1),
    "the least length": frame(b"", -(2**31)),
    "a long first frame": frame(b"", limits.HANDSHAKE_BYTES_MAX + 1),
    "the greatest length": frame(b"", 2**31 - 1),
    "a handshake that is cut": frame(CONNECT[4:20]),
    "a password that lies": frame(struct.pack(">iqiqi", 0, 0, 6000, 0, 2**31 - 1)),
    "a password of negative length": frame(struct.pack(">iqiqi", 0, 0, 6000, 0, -2)),
    "HTTP": b"GET / HTTP/1.1\r\nHost: tree\r\n\r\n",
    "TLS": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
    "Kafka": frame(struct.pack(">hhih", 18, 3, 1, -1) + b"\0" * 2000),
}
#: Frames behind a handshake that end the connection.
BAD_FRAMES = {
    "an empty one": frame(b""),
    "half a header": frame(b"\0\0\0\1\0\0"),
    "a negative length": frame(b"", -1),
    "one byte too long": frame(b"", REQUEST_BYTES_MAX + 1),
    "the greatest length": frame(b"", 2**31 - 1),
    "authentication that is none": frame(struct.pack(">ii", -4, OpCode.AUTH) + b"\0"),
}


@pytest.mark.parametrize("data", BAD_STARTS.values(), ids=BAD_STARTS)
def test_a_bad_start_ends_the_connection(simulated: SimulatedTree, data: bytes) -> None:
    async def run() -> None:
        await simulated.start()
        good = await SimulatedClient.greeted(simulated)
        bad = await SimulatedClient.open(simulated)
        bad.write(data)
        await bad.until(bad.closed.is_set)
        assert bad.session is None
        assert await good.call(OpCode.SYNC, PathRequest("/"))
        assert simulated.server._account.total == 0
        assert simulated.server.connection_count == 1

    simulated.run(run())


@pytest.mark.parametrize("data", BAD_FRAMES.values(), ids=BAD_FRAMES)
@pytest.mark.parametrize("at_once", [True, False])
def test_a_bad_frame_ends_the_connection_and_not_its_session(
    simulated: SimulatedTree, data: bytes, at_once: bool
) -> None:
    async def run() -> None:
        await simulated.start()
        bad = await SimulatedClient.open(simulated)
        bad.write(CONNECT + data if at_once else CONNECT)
        await bad.until(lambda: bad.session is not None)
        if not at_once:
            bad.write(data)
        await bad.until(bad.closed.is_set)
        again = await SimulatedClient.greeted(simulated, 6000, bad.session)
        assert again.session == bad.session

    simulated.run(run())


def bodies_that_lie() -> Iterator[tuple[OpCode, bytes]]:
    for op in (OpCode.CREATE, OpCode.DELETE, OpCode.EXISTS, OpCode.SET_DATA, OpCode.SYNC, OpCode.GET_ACL, OpCode.CHECK):
        yield op, b""
        for length in (-2, 1, 2**31 - 1, -(2**31)):
            yield op, struct.pack(">i", length)
    path = frame(b"/x")
    for count in (-2, 1000, 2**31 - 1, -(2**31)):
        yield OpCode.CREATE, path + frame(b"") + struct.pack(">i", count)
        yield OpCode.SET_ACL, path + struct.pack(">i", count)
        yield OpCode.SET_WATCHES, struct.pack(">qi", 0, count)
        yield OpCode.SET_WATCHES2, struct.pack(">qiii", 0, 0, 0, count)
    yield OpCode.EXISTS, frame(b"\xff\xfe") + b"\0"
    yield OpCode.MULTI, b""
    yield OpCode.MULTI, struct.pack(">i?i", 1, False, -1)
    yield OpCode.MULTI, struct.pack(">i?i", 99, False, -1)
    yield OpCode.MULTI, struct.pack(">i?i", 14, False, -1)
    # Long enough to be read in steps.
    yield OpCode.MULTI, (struct.pack(">i?i", 13, False, -1) + path + b"\0\0\0\0") * 2_000
    yield OpCode.SET_WATCHES, struct.pack(">qi", 0, 10_000) + path * 3_000


def test_requests_that_lie_are_answered_as_unreadable(simulated: SimulatedTree) -> None:
    async def run() -> None:
        await simulated.start()
        client = await SimulatedClient.greeted(simulated, 60_000)
        for op, body in bodies_that_lie():
            client._xid += 1
            xid = client._xid
            client._asked.append((xid, op))
            client.write(frame(struct.pack(">ii", xid, op) + body))
            await client.until(lambda: client.answer(xid) is not None or client.closed.is_set())  # noqa: B023
            assert client.answer(xid)[0].error == KeeperError.MARSHALLING_ERROR, (op, body[:40])
        assert simulated.server._account.total == 0
        assert simulated.server._rounds.waiting == 0

    simulated.run(run())


def test_a_length_that_lies_costs_no_memory(simulated: SimulatedTree) -> None:
    async def run() -> None:
        await simulated.start()
        clients = [await SimulatedClient.greeted(simulated, 60_000) for _ in range(50)]
        tracemalloc.start()
        try:
            for client in clients:
                client.write(struct.pack(">i", REQUEST_BYTES_MAX))
            await asyncio.sleep(1)
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
        # Fifty times a megabyte is said to come.
        assert peak < 5_000_000

    simulated.run(run())


@pytest.mark.parametrize("seed", range(6))
def test_random_bytes_do_no_harm(simulated: SimulatedTree, seed: int) -> None:
    async def run() -> None:
        await simulated.start()
        choice = random.Random(seed)
        good = await SimulatedClient.greeted(simulated, 60_000)
        await good.call(OpCode.CREATE, CreateRequest("/kept", b"data"))
        samples = [
            encode_request(1, OpCode.CREATE, CreateRequest("/x", b"data")),
            encode_request(2, OpCode.MULTI, MultiRequest([MultiOp(OpCode.CHECK, CheckRequest("/", 0))] * 5)),
            encode_request(3, OpCode.SET_WATCHES, SetWatchesRequest(0, ["/a"], ["/b"], ["/c"])),
            encode_request(4, OpCode.GET_CHILDREN2, NodeRequest("/", watch=True)),
            encode_request(-4, OpCode.AUTH, AuthRequest(0, "digest", b"a:b")),
        ]
        for _ in range(150):
            bad = await SimulatedClient.open(simulated)
            data = bytearray(CONNECT + b"".join(choice.sample(samples, 3)))
            for _ in range(choice.randrange(6)):
                data[choice.randrange(len(data))] = choice.randrange(256)
            bad._take = lambda _: None  # type: ignore[method-assign]
            bad.write(bytes(data[: choice.randrange(1, len(data) + 1)]))
            await asyncio.sleep(0.01)
            bad.close()
        await asyncio.sleep(0.1)
        found = await good.call(OpCode.GET_DATA, NodeRequest("/kept", watch=False))
        assert isinstance(found, DataAnswer)
        assert simulated.server.connection_count == 1
        assert simulated.server._account.total == 0
        assert simulated.server._rounds.waiting == 0
        simulated.server.store._tree.check_invariants()

    simulated.run(run())


def test_a_connection_that_asks_for_no_session_is_closed(simulated: SimulatedTree) -> None:
    async def run() -> None:
        await simulated.start()
        silent = [await SimulatedClient.open(simulated) for _ in range(1_000)]
        for client in silent[::2]:
            client.write(b"\0")
        good = await SimulatedClient.greeted(simulated, 60_000)
        await asyncio.sleep(limits.HANDSHAKE_MS_MAX / 1000 - 1)
        assert simulated.server.connection_count == 1_001
        await asyncio.sleep(3)
        assert simulated.server.connection_count == 1
        assert all(client.closed.is_set() for client in silent)
        assert await good.call(OpCode.SYNC, PathRequest("/"))

    simulated.run(run())


def world_with(found: ServedLimits) -> SimulatedTree:
    return SimulatedTree(World(2), found)


def test_connections_have_a_limit_by_address_and_in_all() -> None:
    tree = world_with(ServedLimits(connections_max=5, connections_per_address_max=3))

    async def run() -> None:
        await tree.start()
        first = [await SimulatedClient.greeted(tree, machine="one") for _ in range(3)]
        over = await SimulatedClient.greeted(tree, machine="one")
        assert over.closed.is_set()
        second = [await SimulatedClient.greeted(tree, machine="two") for _ in range(2)]
        assert (await SimulatedClient.greeted(tree, machine="three")).closed.is_set()
        assert not any(each.closed.is_set() for each in (*first, *second))
        first[0].close()
        await asyncio.sleep(0.1)
        assert not (await SimulatedClient.greeted(tree, machine="one")).closed.is_set()

    try:
        tree.run(run())
    finally:
        cancel_all(tree.world.loop)
        tree.world.loop.close()


def stop_reading(client: SimulatedClient) -> None:
    assert client.transport is not None
    client.transport.pause_reading()


def test_a_client_that_does_not_read_is_cut_off(simulated: SimulatedTree) -> None:
    async def run() -> None:
        await simulated.start()
        good = await SimulatedClient.greeted(simulated, 60_000)
        await good.call(OpCode.CREATE, CreateRequest("/large", bytes(500_000)))
        deaf = await SimulatedClient.greeted(simulated, 60_000)
        stop_reading(deaf)
        for _ in range(200):
            deaf.send(OpCode.GET_DATA, NodeRequest("/large", watch=False))
        await asyncio.sleep(2)
        # It is read no further once a megabyte of its answers is untaken.
        assert simulated.server._account.total < limits.UNTAKEN_BYTES + 1_000_000
        assert simulated.server.connection_count == 2
        await asyncio.sleep(limits.UNTAKEN_MS_MAX / 1000)
        assert simulated.server.connection_count == 1
        assert simulated.server._account.total == 0
        again = await SimulatedClient.greeted(simulated, 60_000, deaf.session)
        assert again.session == deaf.session

    simulated.run(run())


def test_whoever_holds_the_most_goes_where_memory_is_short() -> None:
    tree = world_with(ServedLimits(held_bytes_max=3_000_000))

    async def run() -> None:
        await tree.start()
        good = await SimulatedClient.greeted(tree, 60_000)
        await good.call(OpCode.CREATE, CreateRequest("/large", bytes(900_000)))
        deaf = [await SimulatedClient.greeted(tree, 60_000) for _ in range(8)]
        for client in deaf:
            stop_reading(client)
            for _ in range(3):
                client.send(OpCode.GET_DATA, NodeRequest("/large", watch=False))
        await asyncio.sleep(1)
        assert tree.server._account.total <= 3_000_000
        assert 1 < tree.server.connection_count < 9
        assert isinstance(await good.call(OpCode.GET_DATA, NodeRequest("/large", watch=False)), DataAnswer)

    try:
        tree.run(run())
    finally:
        cancel_all(tree.world.loop)
        tree.world.loop.close()


def test_the_bounds_of_the_store_hold_on_the_wire(simulated: SimulatedTree) -> None:
    async def run() -> None:
        await simulated.start()
        client = await SimulatedClient.greeted(simulated, 60_000)
        check = MultiOp(OpCode.CHECK, CheckRequest("/", -1))
        results = (await client.call(OpCode.MULTI, MultiRequest([check] * MULTI_OPS_MAX))).results
        assert len(results) == MULTI_OPS_MAX
        assert all(each.error == 0 for each in results)
        too_many = MultiRequest([check] * (MULTI_OPS_MAX + 1))
        assert await client.call(OpCode.MULTI, too_many) == KeeperError.BAD_ARGUMENTS
        # The longest frame that there may be.
        room = REQUEST_BYTES_MAX - len(encode_request(1, OpCode.CREATE, CreateRequest("/l", b""))) + 4
        assert (await client.call(OpCode.CREATE, CreateRequest("/l", bytes(room)))).path == "/l"
        found = await client.call(OpCode.GET_DATA, NodeRequest("/l", watch=False))
        assert len(found.data) == room
        long_path = "/" + "p" * limits.PATH_CHARACTERS_MAX
        assert await client.call(OpCode.CREATE, CreateRequest(long_path, b"")) == KeeperError.BAD_ARGUMENTS
        assert await client.call(OpCode.EXISTS, NodeRequest(long_path, watch=True)) == KeeperError.BAD_ARGUMENTS

    simulated.run(run())


def test_watches_have_a_bound(simulated: SimulatedTree) -> None:
    async def run() -> None:
        await simulated.start()
        client = await SimulatedClient.greeted(simulated, 60_000)
        paths = [f"/{number:x}" for number in range(limits.WATCHES_MAX)]
        for start in range(0, limits.WATCHES_MAX, 50_000):
            assert (
                await client.call(OpCode.SET_WATCHES, SetWatchesRequest(0, [], paths[start : start + 50_000], []))
                is None
            )
        assert await client.call(OpCode.EXISTS, NodeRequest("/one", watch=True)) == KeeperError.THROTTLED_OP
        over = SetWatchesRequest(0, [], ["/one"], [])
        assert await client.call(OpCode.SET_WATCHES, over) == KeeperError.THROTTLED_OP
        assert await client.call(OpCode.EXISTS, NodeRequest("/one", watch=False)) == KeeperError.NO_NODE
        other = await SimulatedClient.greeted(simulated, 60_000)
        assert await other.call(OpCode.EXISTS, NodeRequest("/one", watch=True)) == KeeperError.NO_NODE
        client.close()
        await asyncio.sleep(1)
        assert len(simulated.server.store.watches) == 1

    simulated.run(run())


def test_the_paths_of_watches_have_a_bound(simulated: SimulatedTree) -> None:
    async def run() -> None:
        await simulated.start()
        client = await SimulatedClient.greeted(simulated, 60_000)
        errors = []
        for number in range(70):
            paths = [f"/{number}-{part}-{'p' * 16_000}" for part in range(64)]
            errors.append(await client.call(OpCode.SET_WATCHES, SetWatchesRequest(0, [], paths, [])))
        assert errors[0] is None
        assert errors[-1] == KeeperError.THROTTLED_OP
        client.close()
        await asyncio.sleep(1)
        assert simulated.server.store.watches.characters == 0

    simulated.run(run())


def test_sessions_have_a_bound(simulated: SimulatedTree) -> None:
    async def run() -> None:
        await simulated.start()
        kept = await SimulatedClient.greeted(simulated, 60_000)
        store = simulated.server.store
        others = [store.sessions.new(60_000) for _ in range(SESSIONS_MAX - 1)]
        await store.write(STORE_SESSION, [OpenSession(session) for session in others])
        over = await SimulatedClient.greeted(simulated, 60_000)
        assert over.closed.is_set()
        assert over.session is None
        assert await kept.call(OpCode.SYNC, PathRequest("/"))
        await store.sessions.end(others[0].id, None)
        assert not (await SimulatedClient.greeted(simulated)).closed.is_set()

    simulated.run(run())


# What is not known here.


def test_what_this_tree_does_not_have_is_refused_by_name(simulated: SimulatedTree) -> None:
    async def run() -> None:
        await simulated.start()
        client = await SimulatedClient.greeted(simulated, 60_000)
        unknown = KeeperError.UNIMPLEMENTED
        ttl = CreateTtlRequest("/t", b"", OPEN_TO_ALL, 5, 1000)
        assert await client.call(OpCode.CREATE_TTL, ttl) == unknown
        assert await client.call(OpCode.CREATE_CONTAINER, CreateRequest("/c", b"", OPEN_TO_ALL, 4)) == unknown
        for flags in (4, 5, 6):
            assert await client.call(OpCode.CREATE, CreateRequest("/c", b"", OPEN_TO_ALL, flags)) == unknown
        failed = await client.call(OpCode.MULTI, MultiRequest([MultiOp(OpCode.CREATE_TTL, ttl)]))
        assert [each.error for each in failed.results] == [unknown]
        for op in (OpCode.RECONFIG, OpCode.REMOVE_WATCHES, OpCode.ADD_WATCH, OpCode.WHO_AM_I, OpCode.SASL):
            client._xid += 1
            client._asked.append((client._xid, op))
            client.write(frame(struct.pack(">ii", client._xid, op)))
            xid = client._xid
            await client.until(lambda: client.answer(xid) is not None)  # noqa: B023
            assert client.answer(xid)[0].error == unknown
        persistent = SetWatchesRequest(0, [], [], [], ["/p"], [])
        assert await client.call(OpCode.SET_WATCHES2, persistent) == unknown
        assert await client.call(OpCode.SYNC, PathRequest("/")) is not None
        # Of a number that is no operation the connection ends, as with ZooKeeper.
        client.write(frame(struct.pack(">ii", 1000, 999)))
        client._asked.append((1000, 999))
        await client.until(client.closed.is_set)
        assert client.answer(1000)[0].error == unknown

    simulated.run(run())


def test_an_access_list_is_open_to_all(simulated: SimulatedTree) -> None:
    async def run() -> None:
        await simulated.start()
        client = await SimulatedClient.greeted(simulated, 60_000)
        await client.call(OpCode.CREATE, CreateRequest("/a", b""))
        found = await client.call(OpCode.GET_ACL, PathRequest("/a"))
        assert tuple(found.acl) == OPEN_TO_ALL
        stat = await client.call(OpCode.SET_ACL, SetAclRequest("/a", OPEN_TO_ALL, 0))
        assert stat == found.stat
        closed = [(), (AclEntry(1, "world", "anyone"),), (AclEntry(31, "digest", "a:b"),), (AclEntry(31, "auth", ""),)]
        closed.append(OPEN_TO_ALL * 1_000)
        for acl in closed:
            refusal = KeeperError.INVALID_ACL
            assert await client.call(OpCode.SET_ACL, SetAclRequest("/a", acl, -1)) == refusal
            assert await client.call(OpCode.CREATE, CreateRequest("/b", b"", acl)) == refusal
        endless = CreateRequest("/b", b"", OPEN_TO_ALL * 30_000)
        assert await client.call(OpCode.CREATE, endless) == KeeperError.MARSHALLING_ERROR
        assert await client.call(OpCode.SET_ACL, SetAclRequest("/a", OPEN_TO_ALL, 3)) == KeeperError.BAD_VERSION
        assert await client.call(OpCode.SET_ACL, SetAclRequest("/none", OPEN_TO_ALL, -1)) == KeeperError.NO_NODE
        assert await client.call(OpCode.GET_ACL, PathRequest("/none")) == KeeperError.NO_NODE
        # What a refused operation of a multi stands behind comes first.
        ops = [MultiOp(OpCode.DELETE, DeleteRequest("/none", -1)), MultiOp(OpCode.CREATE, CreateRequest("/b", b"", ()))]
        failed = await client.call(OpCode.MULTI, MultiRequest(ops))
        assert [each.error for each in failed.results] == [KeeperError.NO_NODE, KeeperError.RUNTIME_INCONSISTENCY]
        ops[0] = MultiOp(OpCode.SET_DATA, SetDataRequest("/a", b"never", -1))
        failed = await client.call(OpCode.MULTI, MultiRequest([*ops, ops[0]]))
        assert [each.error for each in failed.results] == [0, refusal, KeeperError.RUNTIME_INCONSISTENCY]
        assert (await client.call(OpCode.GET_DATA, NodeRequest("/a", watch=False))).data == b""

    simulated.run(run())


@pytest.mark.parametrize(("scheme", "accepted"), [("digest", True), ("ip", True), ("world", False), ("nobodys", False)])
def test_authentication_is_answered_as_by_zookeeper(simulated: SimulatedTree, scheme: str, accepted: bool) -> None:
    async def run() -> None:
        await simulated.start()
        client = await SimulatedClient.greeted(simulated, 60_000)
        before = client.send(OpCode.EXISTS, NodeRequest("/", watch=False))
        client.send(OpCode.AUTH, AuthRequest(0, scheme, b"user:word"), xid=-4)
        await client.until(lambda: client.answer(-4) is not None)
        assert [each[0].xid for each in client.frames] == [before, -4]
        if accepted:
            assert client.answer(-4)[0].error == 0
            assert await client.call(OpCode.SYNC, PathRequest("/"))
        else:
            assert client.answer(-4)[0].error == KeeperError.AUTH_FAILED
            await client.until(client.closed.is_set)

    simulated.run(run())


def test_a_tree_is_not_gone_through_for_each_who_asks_how_large_it_is(
    simulated: SimulatedTree, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Writes wait meanwhile, and anybody may ask: four bytes, without a session."""
    measured: list[int] = []
    measure = Words._measured

    def counted(self: Words, tree: ZnodeTree, began_ms: int) -> Steps[object]:
        measured.append(began_ms)
        return (yield from measure(self, tree, began_ms))

    monkeypatch.setattr(Words, "_measured", counted)

    async def ask() -> None:
        client = await SimulatedClient.open(simulated)
        client.write(b"mntr")
        await client.until(client.closed.is_set)

    async def run() -> None:
        await simulated.start()
        for _ in range(20):
            await ask()
        assert len(measured) == 1
        await asyncio.sleep(SIZES_KEPT_MS_MIN / 1_000)
        await ask()
        assert len(measured) == 2

    simulated.run(run())
