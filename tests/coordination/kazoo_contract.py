"""What holds between our client and kazoo on one tree, whoever serves it: scenarios, as in `contract`.

kazoo is the oracle: an independent client, which has been used with ZooKeeper for years. A scenario gets sessions of
ours, something that starts kazoo clients, and a path of its own.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from kazoo import exceptions as theirs
from kazoo.client import KazooClient
from kazoo.security import OPEN_ACL_UNSAFE, make_acl
from tests.coordination.contract import Events, Provider, fails, until

from ottla.coordination import Check, Create, CreatedNode, Delete, EventType, SetData
from ottla.coordination import errors as ours

#: Starts a kazoo client; all are stopped after the scenario.
StartKazoo = Callable[[], Awaitable[KazooClient]]
KazooScenario = Callable[[Provider, StartKazoo, str], Awaitable[None]]

in_thread = asyncio.to_thread


async def what_one_writes_the_other_reads(provider: Provider, start: StartKazoo, base: str) -> None:
    session, kazoo = await provider.session(), await start()
    created = await session.create(f"{base}/größe", b"\0ours")
    await in_thread(kazoo.sync, base)
    data, stat = await in_thread(kazoo.get, f"{base}/größe")
    assert (data, tuple(stat)) == (b"\0ours", tuple(created.stat))
    written = await in_thread(kazoo.set, f"{base}/größe", b"theirs")
    await session.sync(base)
    assert await session.get(f"{base}/größe") == (b"theirs", tuple(written))
    await in_thread(kazoo.create, f"{base}/null", None)
    await session.sync(base)
    assert (await session.get(f"{base}/null"))[0] == b""
    await in_thread(kazoo.sync, base)
    names, stat = await in_thread(lambda: kazoo.get_children(base, include_data=True))
    assert (sorted(names), tuple(stat)) == await session.children(base)


async def watches_of_both_fire(provider: Provider, start: StartKazoo, base: str) -> None:
    session, kazoo = await provider.session(), await start()
    data, children, born = Events(), Events(), Events()
    seen: list[Any] = []
    await session.create(f"{base}/a")
    await session.get(f"{base}/a", data)
    await session.children(base, children)
    await session.exists(f"{base}/b", born)
    await in_thread(kazoo.sync, base)
    await in_thread(lambda: kazoo.get(f"{base}/a", watch=seen.append))
    await in_thread(lambda: kazoo.exists(f"{base}/c", watch=seen.append))
    await in_thread(lambda: kazoo.get_children(base, watch=seen.append))
    await in_thread(kazoo.set, f"{base}/a", b"1")
    await in_thread(kazoo.create, f"{base}/b")
    await session.create(f"{base}/c")
    await until(lambda: data and children and born and len(seen) == 3)
    assert list(data) == [(EventType.NODE_DATA_CHANGED, f"{base}/a")]
    assert list(children) == [(EventType.NODE_CHILDREN_CHANGED, base)]
    assert list(born) == [(EventType.NODE_CREATED, f"{base}/b")]
    assert {(event.type, event.path) for event in seen} == {
        ("CHANGED", f"{base}/a"),
        ("CREATED", f"{base}/c"),
        ("CHILD", base),
    }


async def ephemeral_nodes_go_with_their_sessions(provider: Provider, start: StartKazoo, base: str) -> None:
    session, kazoo = await provider.session(), await start()
    await session.create(f"{base}/ours", ephemeral=True)
    await in_thread(lambda: kazoo.create(f"{base}/theirs", ephemeral=True))
    await in_thread(kazoo.sync, base)
    assert (await in_thread(kazoo.exists, f"{base}/ours")).owner_session_id == session.session.id
    await session.sync(base)
    stat = await session.exists(f"{base}/theirs")
    assert stat is not None
    assert stat.ephemeral_owner == kazoo.client_id[0]
    gone, seen = Events(), []
    other = await provider.session()
    await other.sync(base)
    await other.exists(f"{base}/theirs", gone)
    watcher = await start()
    await in_thread(watcher.sync, base)
    await in_thread(lambda: watcher.exists(f"{base}/ours", watch=seen.append))
    await in_thread(kazoo.stop)
    await session.close()
    await until(lambda: gone and seen)
    await other.sync(base)
    assert (await other.children(base))[0] == []


async def sequences_are_shared(provider: Provider, start: StartKazoo, base: str) -> None:
    session, kazoo = await provider.session(), await start()
    paths = []
    for _ in range(3):
        paths.append((await session.create(f"{base}/s-", sequential=True)).path)
        paths.append(await in_thread(lambda: kazoo.create(f"{base}/s-", sequence=True)))
    assert paths == [f"{base}/s-{number:010d}" for number in range(6)]


async def both_fail_for_the_same_reasons(provider: Provider, start: StartKazoo, base: str) -> None:
    session, kazoo = await provider.session(), await start()
    await session.create(f"{base}/a", b"0")
    await session.create(f"{base}/a/b")
    await session.create(f"{base}/e", ephemeral=True)
    await in_thread(kazoo.sync, base)
    table: list[tuple[Callable[[], Any], type[Exception], Awaitable[Any], type[ours.CoordinationError]]] = [
        (lambda: kazoo.create(f"{base}/a"), theirs.NodeExistsError, session.create(f"{base}/a"), ours.NodeExists),
        (lambda: kazoo.create(f"{base}/x/y"), theirs.NoNodeError, session.create(f"{base}/x/y"), ours.NoNode),
        (
            lambda: kazoo.create(f"{base}/e/c"),
            theirs.NoChildrenForEphemeralsError,
            session.create(f"{base}/e/c"),
            ours.NoChildrenForEphemerals,
        ),
        (lambda: kazoo.delete(f"{base}/a"), theirs.NotEmptyError, session.delete(f"{base}/a"), ours.NotEmpty),
        (lambda: kazoo.delete(f"{base}/x"), theirs.NoNodeError, session.delete(f"{base}/x"), ours.NoNode),
        (
            lambda: kazoo.set(f"{base}/a", b"", 7),
            theirs.BadVersionError,
            session.set(f"{base}/a", b"", 7),
            ours.BadVersion,
        ),
        (lambda: kazoo.get(f"{base}/x"), theirs.NoNodeError, session.get(f"{base}/x"), ours.NoNode),
        (lambda: kazoo.get_children(f"{base}/x"), theirs.NoNodeError, session.children(f"{base}/x"), ours.NoNode),
    ]
    for their_call, their_error, our_call, our_error in table:
        with pytest.raises(their_error):
            await in_thread(their_call)
        await fails(our_call, our_error)
    assert await in_thread(kazoo.exists, f"{base}/x") is None


async def transactions_of_both(provider: Provider, start: StartKazoo, base: str) -> None:
    session, kazoo = await provider.session(), await start()

    def commit(*, fails_: bool) -> list[Any]:
        transaction = kazoo.transaction()
        transaction.create(f"{base}/a", b"1")
        transaction.create(f"{base}/s-", sequence=True, ephemeral=True)
        transaction.set_data(f"{base}/a", b"2", 0)
        transaction.check(f"{base}/a", 7 if fails_ else 1)
        transaction.delete(f"{base}/a", 1)
        return list(transaction.commit())

    failed = await in_thread(lambda: commit(fails_=True))
    assert [type(each) for each in failed] == [
        theirs.RolledBackError,
        theirs.RolledBackError,
        theirs.RolledBackError,
        theirs.BadVersionError,
        theirs.RuntimeInconsistency,
    ]
    done = await in_thread(lambda: commit(fails_=False))
    assert done[0] == f"{base}/a"
    assert done[1].startswith(f"{base}/s-00000000")
    assert done[2].version == 1
    assert done[3:] == [True, True]
    results = await session.multi(
        [Create(f"{base}/a", b"1"), SetData(f"{base}/a", b"2", 0), Check(f"{base}/a", 1), Create(f"{base}/b")]
    )
    assert isinstance(results[3], CreatedNode)
    await in_thread(kazoo.sync, base)
    data, stat = await in_thread(kazoo.get, f"{base}/a")
    assert (data, stat.version) == (b"2", 1)
    their_b = await in_thread(kazoo.exists, f"{base}/b")
    assert results[3].stat._replace(ctime_ms=0, mtime_ms=0) == tuple(their_b._replace(ctime=0, mtime=0))
    await session.multi([Delete(f"{base}/a", 1), Delete(f"{base}/b")])


async def access_lists_say_that_the_world_may(provider: Provider, start: StartKazoo, base: str) -> None:
    session, kazoo = await provider.session(), await start()
    await session.create(f"{base}/a")
    await in_thread(kazoo.sync, base)
    acls, stat = await in_thread(kazoo.get_acls, f"{base}/a")
    assert acls == OPEN_ACL_UNSAFE
    assert stat.aversion == 0
    after = await in_thread(kazoo.set_acls, f"{base}/a", [make_acl("world", "anyone", all=True)])
    assert after.aversion in {0, 1}  # a tree that knows no other list need not count


async def kazoos_recipes_work_beside_us(provider: Provider, start: StartKazoo, base: str) -> None:
    session, kazoo, other = await provider.session(), await start(), await start()

    def recipes() -> None:
        lock = kazoo.Lock(f"{base}/lock", "one")
        with lock:
            assert not other.Lock(f"{base}/lock", "two").acquire(blocking=False)
        assert other.Lock(f"{base}/lock", "two").acquire(timeout=60)
        counter = kazoo.Counter(f"{base}/counter")
        counter += 2
        other.sync(base)
        assert other.Counter(f"{base}/counter").value == 2
        queue = kazoo.Queue(f"{base}/queue")
        queue.put(b"1")
        queue.put(b"2")
        other.sync(base)
        assert [other.Queue(f"{base}/queue").get() for _ in range(2)] == [b"1", b"2"]
        led: list[str] = []
        kazoo.Election(f"{base}/election", "one").run(lambda: led.append("one"))
        assert led == ["one"]
        kazoo.ensure_path(f"{base}/deep/er/still")
        party = kazoo.Party(f"{base}/party", "me")
        party.join()
        other.sync(base)
        assert list(other.Party(f"{base}/party")) == ["me"]

    await in_thread(recipes)
    seen: list[bytes] = []
    kazoo.DataWatch(f"{base}/followed", lambda data, stat: seen.append(data))
    await session.create(f"{base}/followed", b"0")
    await until(lambda: seen[-1:] == [b"0"])
    await session.set(f"{base}/followed", b"1")
    await until(lambda: seen[-1:] == [b"1"])


KAZOO_SCENARIOS: list[KazooScenario] = [
    found
    for name, found in list(globals().items())
    if asyncio.iscoroutinefunction(found)
    and found.__module__ == __name__
    and name not in {"until", "fails", "in_thread"}
]
