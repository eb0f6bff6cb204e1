"""The durable tree on a disk that fails, tears and forgets: what was acknowledged is there, whatever happens."""

from __future__ import annotations

import asyncio
import errno
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from tests.coordination.contract import until
from tests.searches import seeds

from ottla.coordination import Check, Create, SessionEvent, SetData
from ottla.coordination.errors import (
    ConnectionLoss,
    CoordinationError,
    DirectoryInUse,
    SessionClosed,
    SessionExpired,
    StorageDamaged,
    WriteRefused,
)
from ottla.coordination.interface import TreeAge
from ottla.coordination.journal import JournalFile
from ottla.coordination.loading import journal_name, snapshot_name
from ottla.coordination.local import LocalSession, open_local
from ottla.coordination.snapshot import TreeAsItIs
from ottla.coordination.store import QUEUE_MAX, StoreOptions, TreeStore
from ottla.ports.disk import Disk
from ottla.ports.memory import MemoryPorts, SimulatedCrash, World
from ottla.ports.memory.loop import cancel_all
from ottla.ports.real.clock import RealClock
from ottla.ports.real.disk import RealDisk
from ottla.ports.real.entropy import RealEntropy
from ottla.ports.real.workers import RealWorkers
from ottla.steps import STEPS_A_TURN, Steps

DIRECTORY = "/data/coordination"
#: Snapshots every few writes, so that a crash meets all that goes with them.
BUSY = StoreOptions(snapshot_txns=7)


async def opened(ports: MemoryPorts, options: StoreOptions | None = None) -> LocalSession:
    store = TreeStore(ports.disk, ports.workers, ports.clock, ports.entropy, DIRECTORY, options)
    await store.open()
    return LocalSession(store, await store.sessions.open(6000), owns_store=True)


NewWorld = Callable[[int], World]


@pytest.fixture
def new_world() -> Iterator[NewWorld]:
    """Worlds by their seeds; what still runs in them at the end of the test is ended."""
    worlds: list[World] = []

    def new(seed: int) -> World:
        worlds.append(World(seed))
        return worlds[-1]

    yield new
    for world in worlds:
        bury(world)
        world.loop.close()


def bury(world: World) -> None:
    """Ends what is left of a life; one turn of the loop first, since a crash may have left it a call to stop."""
    world.loop.call_soon(world.loop.stop)
    world.loop.run_forever()
    cancel_all(world.loop)


def run(ports: MemoryPorts, work: Callable[[], Awaitable[None]]) -> None:
    async def body() -> None:
        await work()

    ports.loop.run_until_complete(body())


def names(ports: MemoryPorts, prefix: str) -> list[str]:
    return [name for name in ports.disk.names(DIRECTORY) if name.startswith(prefix)]


# What a start finds.


def test_a_tree_is_there_again_after_a_clean_close(new_world: NewWorld) -> None:
    ports = new_world(1).machine("m")

    async def work() -> None:
        session = await opened(ports)
        await session.create("/a", b"data")
        await session.create("/e", ephemeral=True)
        stat = await session.set("/a", b"more")
        first_id = session.session.id
        await session.close()
        assert names(ports, "snapshot.")
        session = await opened(ports)
        assert session.store.report.txns_replayed == 0
        assert session.session.id > first_id
        assert await session.get("/a") == (b"more", stat)
        assert await session.exists("/e") is None
        await session.close()

    run(ports, work)


def test_ephemeral_nodes_of_a_killed_process_are_gone_and_their_end_is_durable(new_world: NewWorld) -> None:
    world = new_world(2)

    async def first() -> None:
        session = await opened(world.machine("m"))
        await session.create("/lasting")
        await session.create("/e", ephemeral=True)

    world.loop.run_until_complete(first())
    ports = world.kill("m")

    async def second() -> None:
        session = await opened(ports)
        assert session.store.report.txns_replayed == 3
        assert (await session.children("/"))[0] == ["lasting"]

    world.loop.run_until_complete(second())


def test_sessions_may_outlive_a_restart(new_world: NewWorld) -> None:
    world = new_world(3)
    kept = StoreOptions(keep_sessions=True)

    async def first() -> int:
        session = await opened(world.machine("m"), kept)
        await session.create("/e", ephemeral=True)
        return session.session.id

    session_id = world.loop.run_until_complete(first())
    ports = world.kill("m")

    async def second() -> None:
        store = TreeStore(ports.disk, ports.workers, ports.clock, ports.entropy, DIRECTORY, kept)
        await store.open()
        info = store.sessions.find(session_id)
        assert info is not None
        again = LocalSession(store, info)
        events: list[SessionEvent] = []
        again.listen(events.append)
        assert await again.exists("/e") is not None
        await asyncio.sleep(4)
        leases, clock = store.sessions.leases, ports.clock
        leases.touch(session_id, clock.monotonic_ms())
        await asyncio.sleep(4)
        assert leases.overdue(clock.monotonic_ms()) == []
        await asyncio.sleep(4)
        assert leases.overdue(clock.monotonic_ms()) == [session_id]
        await store.sessions.end(session_id, SessionEvent.EXPIRED)
        assert leases.overdue(clock.monotonic_ms()) == []
        await until(lambda: events == [SessionEvent.EXPIRED])
        with pytest.raises(SessionExpired):
            await again.get("/")
        await store.close()

    world.loop.run_until_complete(second())


def test_no_session_gets_the_id_of_another_one(new_world: NewWorld) -> None:
    """Not of one that is over, either: the clock was ahead and is set back, and snapshots hold open sessions alone."""
    world = new_world(3)
    kept = StoreOptions(keep_sessions=True, snapshot_txns=2)
    given: list[int] = []
    ports = world.machine("m")

    async def one_life() -> None:
        store = TreeStore(ports.disk, ports.workers, ports.clock, ports.entropy, DIRECTORY, kept)
        await store.open()
        for _ in range(3):
            session = await store.sessions.open(6000)
            given.append(session.id)
            await store.sessions.end(session.id, None)
        await store.close()

    world.loop.run_until_complete(one_life())
    ports.clock.jump(-86_400_000)
    world.loop.run_until_complete(one_life())
    world.loop.run_until_complete(one_life())
    assert len(set(given)) == len(given) == 9
    assert given == sorted(given)


def test_a_session_of_the_process_that_had_the_tree_does_not_outlive_it(new_world: NewWorld) -> None:
    world = new_world(3)
    ports = world.machine("m")

    async def first() -> None:
        session = await open_local(
            disk=ports.disk,
            workers=ports.workers,
            clock=ports.clock,
            entropy=ports.entropy,
            directory=DIRECTORY,
        )
        await session.create("/e", ephemeral=True)

    world.loop.run_until_complete(first())
    ports = world.kill("m")

    async def second() -> None:
        store = TreeStore(
            ports.disk, ports.workers, ports.clock, ports.entropy, DIRECTORY, StoreOptions(keep_sessions=True)
        )
        await store.open()
        served = LocalSession(store, await store.sessions.open(6000), owns_store=True)
        assert await served.exists("/e") is None
        assert len(store.sessions.leases) == 0
        await served.close()

    world.loop.run_until_complete(second())


def test_two_processes_cannot_have_one_directory(new_world: NewWorld) -> None:
    ports = new_world(4).machine("m")

    async def work() -> None:
        session = await opened(ports)
        with pytest.raises(DirectoryInUse, match="in use by another process"):
            await opened(ports)
        await session.close()
        await (await opened(ports)).close()

    run(ports, work)


def test_a_start_that_is_given_up_keeps_the_directory_until_its_worker_has_ended(tmp_path: Path) -> None:
    """It may cut the journal still, at the end that it has read."""
    workers = RealWorkers()
    reading, go_on = threading.Event(), threading.Event()

    def check(_: TreeAge) -> None:
        reading.set()
        go_on.wait(60)

    def store() -> TreeStore:
        return TreeStore(RealDisk(), workers, RealClock(), RealEntropy(), f"{tmp_path}/tree")

    async def work() -> None:
        given_up = asyncio.ensure_future(store().open(check))
        await until(reading.is_set)
        given_up.cancel()
        await asyncio.sleep(0)
        with pytest.raises(DirectoryInUse):
            await store().open()
        go_on.set()
        await asyncio.wait([given_up])
        assert given_up.cancelled()
        again = store()
        await again.open()
        await again.close()

    try:
        asyncio.run(work())
    finally:
        workers.close()


@pytest.mark.parametrize("left", [True, False], ids=["ends-sessions", "opens-its-own"])
def test_a_start_that_the_disk_fails_lets_the_directory_go(new_world: NewWorld, left: bool) -> None:
    """What a start writes itself: the end of sessions that an earlier process left, then its own session."""
    world = new_world(3)

    async def first(ports: MemoryPorts) -> None:
        session = await opened(ports)
        await session.create("/a")
        if not left:
            await session.close()

    async def second(ports: MemoryPorts) -> None:
        def fails(_: object) -> None:
            # The first is that of the journal that the start opens.
            ports.disk.fail("sync", "*journal.*", errno.EIO, after=1)

        for _ in range(2):
            with pytest.raises(CoordinationError) as caught:
                await open_local(
                    disk=ports.disk,
                    workers=ports.workers,
                    clock=ports.clock,
                    entropy=ports.entropy,
                    directory=DIRECTORY,
                    check=fails,
                )
            assert not isinstance(caught.value, DirectoryInUse)
            ports.disk.stop_failing()
        session = await opened(ports)
        assert await session.exists("/a") is not None
        await session.close()

    world.loop.run_until_complete(first(world.machine("m")))
    world.loop.run_until_complete(second(world.kill("m")))


# Crashes.


class Life:
    """One life of a process that writes numbered nodes, alone and together, until the power goes off."""

    def __init__(self, ports: MemoryPorts, number: int, acknowledged: dict[str, bytes]) -> None:
        self.ports = ports
        self.number = number
        #: Every write that was answered, by path; what this life adds stays for the next.
        self.acknowledged = acknowledged
        self.asked: dict[str, bytes] = {}
        self.ended = False

    async def write(self, session: LocalSession, path: str, *, counter: bool = False) -> None:
        data = path.encode() * (1 + len(self.asked) % 200)
        self.asked[path] = data
        if counter:
            await session.multi([Create(path, data), SetData("/counter", path.encode())])
            self.acknowledged["/counter"] = path.encode()
        else:
            await session.create(path, data)
        self.acknowledged[path] = data

    async def run(self, earlier: dict[str, bytes]) -> None:
        session = await opened(self.ports, BUSY)
        await self.check(session, earlier)
        if await session.exists("/counter") is None:
            await session.create("/counter", b"")
            self.acknowledged["/counter"] = b""
        for number in range(12):
            base = f"/life{self.number}-{number}"
            await self.write(session, base, counter=True)
            await asyncio.gather(*(self.write(session, f"{base}-{part}") for part in range(number % 4)))
        await session.create("/e", ephemeral=True)
        await session.close()
        self.ended = True

    async def check(self, session: LocalSession, earlier: dict[str, bytes]) -> None:
        """Everything acknowledged is there; whatever else is there was asked for, and is whole."""
        session.store._tree.check_invariants()
        for path, data in self.acknowledged.items():
            found = (await session.get(path))[0]
            assert found == data or path == "/counter", path
        for name in (await session.children("/"))[0]:
            if name not in {"counter", "e"}:
                assert (await session.get(f"/{name}"))[0] == earlier[f"/{name}"]
        if self.acknowledged.get("/counter"):
            # At least the last one that was acknowledged; a later one has its node as well.
            last = (await session.get("/counter"))[0].decode()
            assert await session.exists(last)
            assert order(last) >= order(self.acknowledged["/counter"].decode())


def order(path: str) -> tuple[int, ...]:
    return tuple(int(part) for part in path.removeprefix("/life").split("-"))


@pytest.mark.parametrize("seed", seeds(1, 4))
def test_acknowledged_writes_survive_a_power_cut_at_every_operation_of_the_disk(new_world: NewWorld, seed: int) -> None:
    operation = 0
    crashes = 0
    while True:
        operation += 1
        world = new_world(seed * 1000 + operation)
        acknowledged: dict[str, bytes] = {}
        asked: dict[str, bytes] = {}
        # The first cut at this operation, then two more in lives that start on what it left.
        for number, at in enumerate((operation, 3 + operation % 17, 5 + operation % 29, None)):
            ports = world.machine("m")
            if at is not None:
                ports.disk.crash_at(at)
            life = Life(ports, number, acknowledged)
            with suppress(ConnectionLoss, SessionExpired, SimulatedCrash):
                world.loop.run_until_complete(life.run(asked))
            asked |= life.asked
            assert life.ended or at is not None
            if number == 0 and life.ended:
                assert crashes > 200
                return
            crashes += not life.ended
            world.crash("m")
            bury(world)


def test_a_torn_tail_is_cut_kept_aside_and_reported(new_world: NewWorld) -> None:
    world = new_world(5)
    ports = world.machine("m")

    async def first() -> None:
        session = await opened(ports)
        await session.create("/a")
        await session.create("/b", bytes(100))

    world.loop.run_until_complete(first())
    path = f"{DIRECTORY}/{journal_name(1)}"
    ports = world.kill("m")
    size = ports.disk.size(path)
    file = ports.disk.open(path)
    file.truncate(size - 10)
    file.close()

    async def second() -> None:
        session = await opened(ports)
        assert (await session.children("/"))[0] == ["a"]
        report = session.store.report
        assert report.torn_bytes > 100
        assert report.torn_kept_in is not None
        assert ports.disk.size(report.torn_kept_in) == report.torn_bytes
        await session.create("/b", b"again")
        await session.close()
        session = await opened(ports)
        assert (await session.get("/b"))[0] == b"again"
        assert session.store.report.torn_bytes == 0

    world.loop.run_until_complete(second())


# Damage.


def written(new_world: NewWorld, options: StoreOptions | None = None, nodes: int = 20) -> World:
    """A machine whose process was killed after some writes."""
    world = new_world(6)

    async def work() -> None:
        session = await opened(world.machine("m"), options)
        for number in range(nodes):
            await session.create(f"/n{number}", bytes(20))
        await session.store._snapshots.finish()

    world.loop.run_until_complete(work())
    world.kill("m")
    return world


def starts(world: World) -> LocalSession:
    return world.loop.run_until_complete(opened(world.machine("m")))


def test_damage_below_the_tail_stops_the_start_with_one_line(new_world: NewWorld) -> None:
    world = written(new_world)
    disk = world.machine("m").disk
    path = f"{DIRECTORY}/{journal_name(1)}"
    before = disk.read_file(path)
    disk.flip(path, len(before) // 2)
    with pytest.raises(StorageDamaged) as caught:
        starts(world)
    assert path in str(caught.value)
    assert "\n" not in str(caught.value)
    # Nothing was changed, and the lock was let go: a repaired file is enough.
    disk.flip(path, len(before) // 2)
    assert disk.read_file(path) == before
    starts(world)


def test_a_damaged_snapshot_costs_nothing_while_the_one_before_is_good(new_world: NewWorld) -> None:
    world = written(new_world, BUSY, nodes=40)
    ports = world.machine("m")
    disk = ports.disk
    snapshots = names(ports, "snapshot.")
    assert len(snapshots) == 2
    disk.flip(f"{DIRECTORY}/{snapshots[1]}", 30)
    session = starts(world)
    assert session.store.report.damaged_snapshots == (f"{DIRECTORY}/{snapshots[1]}",)
    assert len(world.loop.run_until_complete(session.children("/"))[0]) == 40
    world.kill("m")
    disk = world.machine("m").disk
    disk.flip(f"{DIRECTORY}/{snapshots[0]}", 30)
    with pytest.raises(StorageDamaged, match="restore the missing files"):
        starts(world)


def test_a_missing_journal_stops_the_start(new_world: NewWorld) -> None:
    world = written(new_world, BUSY, nodes=40)
    ports = world.machine("m")
    for name in names(ports, "snapshot."):
        ports.disk.remove(f"{DIRECTORY}/{name}")
    with pytest.raises(StorageDamaged, match="are in no file"):
        starts(world)


def test_snapshots_that_are_all_damaged_never_pass_for_an_empty_tree(new_world: NewWorld) -> None:
    world = new_world(7)

    async def work() -> None:
        session = await opened(world.machine("m"))
        await session.create("/a")
        await session.close()

    world.loop.run_until_complete(work())
    ports = world.kill("m")
    (snapshot,) = names(ports, "snapshot.")
    ports.disk.flip(f"{DIRECTORY}/{snapshot}", 40)
    # The journal has it all still.
    session = starts(world)
    assert world.loop.run_until_complete(session.exists("/a"))
    ports = world.kill("m")
    for name in names(ports, "journal."):
        ports.disk.remove(f"{DIRECTORY}/{name}")
    with pytest.raises(StorageDamaged, match="can be read up to transaction 0 only"):
        starts(world)


def test_old_journals_and_snapshots_are_pruned(new_world: NewWorld) -> None:
    world = written(new_world, BUSY, nodes=100)
    ports = world.machine("m")
    assert len(names(ports, "snapshot.")) == 2
    assert 2 <= len(names(ports, "journal.")) <= 3
    assert not names(ports, "snapshot.00000000000000000008")
    session = starts(world)
    assert len(world.loop.run_until_complete(session.children("/"))[0]) == 100


# A disk that refuses.


def test_a_full_disk_refuses_writes_undoes_them_and_recovers(new_world: NewWorld) -> None:
    ports = new_world(8).machine("m")

    async def work() -> None:
        session = await opened(ports)
        await session.create("/a", b"1")
        before = (await session.children("/"), await session.get("/a"))
        ports.workers.latency_ms = (5.0, 5.0)
        under_way = asyncio.ensure_future(session.multi([Check("/a")]))
        await asyncio.sleep(0.001)
        ports.disk.capacity_bytes = 2000
        # Which wait for it, and are one frame.
        outcomes = await asyncio.gather(
            session.set("/a", bytes(3000)),
            session.create("/b"),
            session.multi([Create("/c"), SetData("/a", b"2")]),
            return_exceptions=True,
        )
        assert await under_way == [None]
        assert [type(outcome) for outcome in outcomes] == [WriteRefused] * 3
        assert (await session.children("/"), await session.get("/a")) == before
        session.store._tree.check_invariants()
        await session.create("/small")
        ports.disk.capacity_bytes = 1 << 30
        await session.set("/a", bytes(3000))
        await session.close()
        session = await opened(ports)
        assert (await session.get("/a"))[0] == bytes(3000)
        assert (await session.children("/"))[0] == ["a", "small"]

    run(ports, work)


def test_a_failed_sync_ends_the_tree_and_says_that_the_result_is_unknown(new_world: NewWorld) -> None:
    world = new_world(9)
    ports = world.machine("m")

    async def first() -> None:
        session = await opened(ports)
        events: list[SessionEvent] = []
        session.listen(events.append)
        await session.create("/a")
        ports.disk.fail("sync", "*journal.*", errno.EIO)
        outcomes = await asyncio.gather(
            session.create("/b"), session.create("/c"), session.get("/a"), return_exceptions=True
        )
        assert [type(outcome) for outcome in outcomes] == [ConnectionLoss] * 3
        ports.disk.stop_failing()
        await until(lambda: SessionEvent.EXPIRED in events)
        assert events == [SessionEvent.DISCONNECTED, SessionEvent.EXPIRED]
        for call in (session.get("/a"), session.create("/d"), session.multi([Create("/d")])):
            with pytest.raises(SessionExpired, match="could not be synced"):
                await call
        await session.close()

    world.loop.run_until_complete(first())
    ports = world.crash("m")

    async def second() -> None:
        session = await opened(ports)
        assert await session.exists("/a")
        assert await session.exists("/d") is None

    world.loop.run_until_complete(second())


def test_what_a_failed_sync_left_is_written_again_by_the_next_process(new_world: NewWorld) -> None:
    for seed in range(20):
        world = new_world(seed)
        ports = world.machine("m")

        async def first(ports: MemoryPorts = ports) -> None:
            session = await opened(ports)
            await session.create("/a", bytes(3000))
            ports.disk.fail("sync", "*journal.*", errno.EIO, times=1)
            with pytest.raises(ConnectionLoss):
                # Longer than a page, so that one of it lies between frames that will be certain.
                await session.create("/b", bytes(10_000))
            await session.close()

        world.loop.run_until_complete(first())
        ports = world.kill("m")

        async def second(ports: MemoryPorts = ports) -> None:
            session = await opened(ports)
            await session.create("/c", bytes(3000))

        world.loop.run_until_complete(second())
        ports = world.crash("m")

        async def third(ports: MemoryPorts = ports) -> None:
            session = await opened(ports)
            assert await session.exists("/a")
            assert await session.exists("/c")

        world.loop.run_until_complete(third())


def test_writes_go_on_while_a_snapshot_is_made(new_world: NewWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    """It may be of hundreds of thousands of nodes, and is of the moment in which it was begun."""
    begun, ended = asyncio.Event(), asyncio.Event()
    encoding = TreeAsItIs.encoding

    def slow(self: TreeAsItIs) -> Steps[bytes]:
        begun.set()
        for _ in range(2_000 * STEPS_A_TURN):
            yield
        content = yield from encoding(self)
        ended.set()
        return content

    monkeypatch.setattr(TreeAsItIs, "encoding", slow)
    world = new_world(16)

    async def first() -> None:
        session = await opened(world.machine("m"), BUSY)
        for number in range(10):
            await session.create(f"/a{number}", b"first")
        assert begun.is_set()
        for number in range(10):
            await session.set(f"/a{number}", b"second")
        await session.create("/behind")
        assert not ended.is_set()
        await session.store._snapshots.finish()
        assert ended.is_set()

    world.loop.run_until_complete(first())
    ports = world.crash("m")

    async def second() -> None:
        session = await opened(ports)
        assert session.store.report.snapshot_zxid > 0
        assert [(await session.get(f"/a{number}"))[0] for number in range(10)] == [b"second"] * 10
        assert await session.exists("/behind")

    world.loop.run_until_complete(second())


@pytest.mark.parametrize("operation", ["open", "append", "sync", "rename", "sync_directory", "remove", "truncate"])
def test_a_snapshot_that_fails_costs_nothing(new_world: NewWorld, operation: str) -> None:
    world = new_world(10)
    ports = world.machine("m")

    async def first() -> None:
        session = await opened(ports, BUSY)
        for number in range(6):
            await session.create(f"/before{number}")
        if operation in {"open", "append", "truncate"}:
            ports.disk.fail(operation, "*snapshot.*", errno.ENOSPC)
            ports.disk.fail(operation, f"*{journal_name(9)}", errno.ENOSPC)
        else:
            ports.disk.fail(operation, "*snapshot*", errno.EIO)
            ports.disk.fail(operation, DIRECTORY, errno.EIO)
            ports.disk.fail("remove", "*", errno.EIO)
        with suppress(CoordinationError):
            for number in range(30):
                await session.create(f"/during{number}")
        await session.store._snapshots.finish()
        ports.disk.stop_failing()

    world.loop.run_until_complete(first())

    async def again(ports: MemoryPorts) -> None:
        session = await opened(ports, BUSY)
        assert len((await session.children("/"))[0]) >= 36
        for number in range(20):
            name = f"/after{number}"
            if await session.exists(name) is None:
                await session.create(name)
        await session.close()
        session = await opened(ports, BUSY)
        assert len((await session.children("/"))[0]) >= 56

    for _ in range(2):
        world.loop.run_until_complete(again(world.crash("m")))


# Group commit, order, bounds.


def test_writes_that_wait_share_one_sync_and_reads_wait_for_it(new_world: NewWorld) -> None:
    ports = new_world(11).machine("m")
    ports.workers.latency_ms = (5.0, 5.0)

    async def work() -> None:
        session = await opened(ports)
        started = ports.clock.monotonic_ms()
        await asyncio.gather(*(session.create(f"/n{number}") for number in range(500)))
        # The first write's sync, and one for the 499 that came meanwhile.
        assert ports.clock.monotonic_ms() - started <= 11
        write = asyncio.ensure_future(session.create("/late"))
        await asyncio.sleep(0)
        read = asyncio.ensure_future(session.exists("/late"))
        await asyncio.sleep(0.004)
        assert not read.done()
        assert await read == (await write).stat
        await session.close()

    run(ports, work)


def test_the_queue_is_bounded(new_world: NewWorld) -> None:
    ports = new_world(12).machine("m")

    async def work() -> None:
        session = await opened(ports)
        calls = [session.create(f"/n{number}") for number in range(QUEUE_MAX + 10)]
        outcomes = await asyncio.gather(*calls, return_exceptions=True)
        refused = [outcome for outcome in outcomes if isinstance(outcome, WriteRefused)]
        assert 0 < len(refused) <= 10
        assert len((await session.children("/"))[0]) == len(outcomes) - len(refused)

    run(ports, work)


def test_a_write_that_nobody_waits_for_any_more_leaves_the_store_well(new_world: NewWorld) -> None:
    ports = new_world(13).machine("m")
    ports.workers.latency_ms = (5.0, 5.0)

    async def work() -> None:
        session = await opened(ports)
        first = asyncio.ensure_future(session.create("/a"))
        await asyncio.sleep(0.001)
        second = asyncio.ensure_future(session.create("/b"))
        await asyncio.sleep(0.001)
        first.cancel()
        second.cancel()
        assert (await session.create("/c")).path == "/c"
        # The first was under way, the second not yet.
        assert (await session.children("/"))[0] == ["a", "c"]
        await session.close()

    run(ports, work)


def test_closing_finishes_what_was_asked_for_and_takes_no_more(new_world: NewWorld) -> None:
    ports = new_world(14).machine("m")

    async def work() -> None:
        session = await opened(ports)
        ports.workers.latency_ms = (50.0, 50.0)
        calls = [asyncio.ensure_future(session.create(f"/n{number}")) for number in range(10)]
        await until(lambda: len(session.store._queue) + len(session.store._batch) >= 10)
        await session.store.close()
        assert len([await call for call in calls]) == 10
        with pytest.raises(SessionClosed):
            await session.store.sessions.open(1000)
        session = await opened(ports)
        assert len((await session.children("/"))[0]) == 10

    run(ports, work)


def test_file_names_sort_like_their_numbers() -> None:
    assert journal_name(7) == "journal.00000000000000000007"
    assert snapshot_name(2**63) == "snapshot.09223372036854775808"


def test_a_snapshot_that_fails_in_an_unforeseen_way_is_not_tried_at_each_write(
    new_world: NewWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    from ottla.coordination import snapshotting

    def planted(*_: object) -> None:
        raise ValueError("planted")

    monkeypatch.setattr(snapshotting, "write_atomically", planted)
    ports = new_world(3).machine("a")

    async def work() -> None:
        session = await opened(ports, BUSY)
        await session.create("/node")
        for number in range(70):
            await session.set("/node", str(number).encode())
            await session.store._snapshots.finish()
        assert len(names(ports, journal_name(0).split(".")[0])) < 15
        assert await session.get("/node")

    run(ports, work)


def test_a_journal_that_cannot_be_begun_is_not_tried_at_each_write(new_world: NewWorld) -> None:
    """As where the process has no descriptor left: the old journal goes on, however large it is."""
    ports = new_world(3).machine("a")
    tries: list[str] = []

    async def work() -> None:
        session = await opened(ports, StoreOptions(snapshot_bytes=20_000))
        await session.create("/node")
        begin = JournalFile.create

        def refused(disk: Disk, path: str, first_zxid: int) -> JournalFile:
            tries.append(path)
            if len(tries) < 4:
                raise OSError(errno.EMFILE, "planted")
            return begin(disk, path, first_zxid)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(JournalFile, "create", refused)
            for number in range(1, 100):
                await session.set("/node", bytes(1000))
                await session.store._snapshots.finish()
                assert len(tries) <= 1 + number // 20
        assert len(tries) >= 4
        assert names(ports, "snapshot.")
        await session.close()

    run(ports, work)
