"""What every provider of coordination must do: scenarios over the interface, run by each provider's own test module.

Sessions may be with different servers of one tree: a session sees for certain what another one wrote after a `sync`.

A scenario gets a `Provider`, which opens sessions with one tree, and a path that is its own.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any, Protocol

import pytest

from ottla.coordination import (
    Check,
    Coordination,
    Create,
    CreatedNode,
    Delete,
    EventType,
    SessionEvent,
    SetData,
    Stat,
    WatchEvent,
)
from ottla.coordination.errors import (
    BadVersion,
    CoordinationError,
    DataTooLarge,
    InvalidPath,
    MultiFailed,
    NoChildrenForEphemerals,
    NodeExists,
    NoNode,
    NotEmpty,
    SessionClosed,
    SessionExpired,
)
from ottla.coordination.interface import NO_DATA
from ottla.coordination.transfer import DamagedDump, export_tree, parsed, write_nodes
from ottla.coordination.znodes import BROKER_SEQUENCE


class Provider(Protocol):
    async def session(self) -> Coordination: ...

    async def expire(self, session: Coordination) -> None:
        """Ends the session as the loss of its owner would."""
        ...


Scenario = Callable[[Provider, str], Awaitable[None]]


async def until(condition: Callable[[], object]) -> None:
    async with asyncio.timeout(60):
        while not condition():  # noqa: ASYNC110
            await asyncio.sleep(0.001)  # whoever makes it true tells nobody


async def fails(call: Awaitable[Any], error: type[CoordinationError]) -> CoordinationError:
    with pytest.raises(error) as caught:
        await call
    return caught.value


class Events(list[WatchEvent]):
    """A watch that remembers; each instance is another watch."""

    def __call__(self, event: WatchEvent) -> None:
        self.append(event)

    def __hash__(self) -> int:  # type: ignore[override]
        return id(self)

    def __eq__(self, other: object) -> bool:
        return list(self) == other if isinstance(other, list) and not isinstance(other, Events) else self is other


# Nodes and their stat.


async def a_new_node_has_a_fresh_stat(provider: Provider, base: str) -> None:
    session = await provider.session()
    created = await session.create(f"{base}/a", b"data")
    assert created.path == f"{base}/a"
    data, stat = await session.get(f"{base}/a")
    assert data == b"data"
    assert created.stat == stat
    assert (stat.version, stat.cversion, stat.aversion, stat.ephemeral_owner) == (0, 0, 0, 0)
    assert (stat.data_length, stat.num_children) == (4, 0)
    assert stat.czxid == stat.mzxid == stat.pzxid > 0
    assert stat.ctime_ms == stat.mtime_ms > 1_600_000_000_000


async def no_data_is_not_data_of_no_bytes(provider: Provider, base: str) -> None:
    """Kafka's brokers go by it."""
    session = await provider.session()
    await session.create(f"{base}/none", NO_DATA)
    await session.create(f"{base}/empty", b"")
    await session.multi([Create(f"{base}/both", b"x"), SetData(f"{base}/both", NO_DATA)])
    other = await provider.session()
    await other.sync(base)
    for path, is_none in (("none", True), ("empty", False), ("both", True)):
        data, stat = await other.get(f"{base}/{path}")
        assert (data, data is NO_DATA, stat.data_length) == (b"", is_none, 0), path
    await session.set(f"{base}/none", b"")
    await session.set(f"{base}/empty", NO_DATA)
    found = [await session.get(f"{base}/{path}") for path in ("none", "empty")]
    assert [data is NO_DATA for data, _ in found] == [False, True]
    dump = json.loads(json.dumps(await export_tree(session)))
    kept = [node for node in dump["nodes"] if node["path"].startswith(f"{base}/")]
    for name in ("none", "empty", "both"):
        await session.delete(f"{base}/{name}")
    await import_tree(session, {"format": 1, "nodes": kept})
    found = [await session.get(f"{base}/{path}") for path in ("none", "empty", "both")]
    assert [data is NO_DATA for data, _ in found] == [False, True, True]


async def creation_needs_a_free_name_and_a_lasting_parent(provider: Provider, base: str) -> None:
    session = await provider.session()
    await session.create(f"{base}/a")
    await session.create(f"{base}/e", ephemeral=True)
    await fails(session.create(f"{base}/a"), NodeExists)
    await fails(session.create(f"{base}/missing/b"), NoNode)
    await fails(session.create(f"{base}/e/child"), NoChildrenForEphemerals)
    await fails(session.create("/"), NodeExists)
    assert (await session.children(base))[0] == ["a", "e"]


async def setting_data_raises_the_version(provider: Provider, base: str) -> None:
    session = await provider.session()
    before = (await session.create(f"{base}/a", b"0")).stat
    first = await session.set(f"{base}/a", b"one", 0)
    second = await session.set(f"{base}/a", b"", 1)
    third = await session.set(f"{base}/a", b"three")
    assert [first.version, second.version, third.version] == [1, 2, 3]
    assert before.mzxid < first.mzxid < second.mzxid < third.mzxid
    assert third.czxid == third.pzxid == before.czxid
    assert third.ctime_ms == before.ctime_ms <= third.mtime_ms
    assert await session.get(f"{base}/a") == (b"three", third)


async def a_condition_that_does_not_hold_changes_nothing(provider: Provider, base: str) -> None:
    session = await provider.session()
    await session.create(f"{base}/a", b"0")
    await session.set(f"{base}/a", b"1")
    await fails(session.set(f"{base}/a", b"x", 0), BadVersion)
    await fails(session.set(f"{base}/a", b"x", 2), BadVersion)
    await fails(session.delete(f"{base}/a", 0), BadVersion)
    await fails(session.set(f"{base}/missing", b"x"), NoNode)
    data, stat = await session.get(f"{base}/a")
    assert (data, stat.version) == (b"1", 1)


async def deletion(provider: Provider, base: str) -> None:
    session = await provider.session()
    await session.create(f"{base}/a")
    await session.create(f"{base}/a/b")
    await fails(session.delete(f"{base}/a"), NotEmpty)
    await session.delete(f"{base}/a/b", 0)
    await session.delete(f"{base}/a")
    assert await session.exists(f"{base}/a") is None
    await fails(session.delete(f"{base}/a"), NoNode)
    await fails(session.get(f"{base}/a"), NoNode)
    await fails(session.children(f"{base}/a"), NoNode)
    again = await session.create(f"{base}/a")
    assert again.stat.version == 0


async def a_parent_counts_its_children_changes(provider: Provider, base: str) -> None:
    session = await provider.session()
    parent = f"{base}/parent"
    before = (await session.create(parent)).stat
    for name in ("c", "a", "b"):
        await session.create(f"{parent}/{name}")
    names, after = await session.children(parent)
    assert names == ["a", "b", "c"]
    assert (after.num_children, after.cversion, after.version) == (3, 3, 0)
    assert after.mzxid == before.mzxid < after.pzxid
    await session.delete(f"{parent}/a")
    names, last = await session.children(parent)
    assert names == ["b", "c"]
    assert (last.num_children, last.cversion) == (2, 4)
    assert last.pzxid > after.pzxid
    await session.set(f"{parent}/b", b"data")
    assert (await session.children(parent))[1] == last


async def sequential_names_are_never_given_twice(provider: Provider, base: str) -> None:
    session = await provider.session()
    first = await session.create(f"{base}/s_", b"x", sequential=True)
    await session.create(f"{base}/plain")
    second = await session.create(f"{base}/s_", sequential=True)
    await session.delete(second.path)
    third = await session.create(f"{base}/other", sequential=True)
    fourth = await session.create(f"{base}/", sequential=True, ephemeral=True)
    assert [first.path, second.path] == [f"{base}/s_0000000000", f"{base}/s_0000000002"]
    # ZooKeeper counts the children that were ever created, whatever their names.
    assert [third.path, fourth.path] == [f"{base}/other0000000003", f"{base}/0000000004"]
    assert (await session.get(first.path))[0] == b"x"


async def names_may_be_any_text_that_zookeeper_takes(provider: Provider, base: str) -> None:
    session = await provider.session()
    for name in ("größe", "日本", "a b", "<default>", "...", "a.b", ".hidden", "%2F"):
        created = await session.create(f"{base}/{name}", name.encode())
        assert created.path == f"{base}/{name}"
        assert (await session.get(created.path))[0] == name.encode()
    assert len((await session.children(base))[0]) == 8


async def bad_paths_are_refused(provider: Provider, base: str) -> None:
    session = await provider.session()
    for path in (
        "",
        "relative",
        f"{base}/",
        f"{base}//a",
        f"{base}/.",
        f"{base}/..",
        f"{base}/../a",
        f"{base}/a\0",
        f"{base}/\x1f",
        f"{base}/\x85",
        f"{base}/\ufff0",
        f"{base}/\ue000",
    ):
        await fails(session.create(path), InvalidPath)
        await fails(session.exists(path), InvalidPath)
        await fails(session.get(path), InvalidPath)
        await fails(session.set(path, b""), InvalidPath)
        await fails(session.delete(path), InvalidPath)
        await fails(session.children(path), InvalidPath)
    assert (await session.children(base))[0] == []


async def data_is_bounded(provider: Provider, base: str) -> None:
    session = await provider.session()
    await session.create(f"{base}/large", bytes(1_000_000))
    assert (await session.get(f"{base}/large"))[1].data_length == 1_000_000
    await fails(session.set(f"{base}/large", bytes(1_100_000)), DataTooLarge)
    await fails(session.create(f"{base}/larger", bytes(1_100_000)), DataTooLarge)
    many = [Create(f"{base}/n{number}", bytes(100_000)) for number in range(12)]
    await fails(session.multi(many), DataTooLarge)
    assert (await session.children(base))[0] == ["large"]


# Multis.


async def a_multi_is_one_transaction(provider: Provider, base: str) -> None:
    session = await provider.session()
    await session.create(f"{base}/old", b"0")
    results = await session.multi(
        [
            Check(f"{base}/old", 0),
            Create(f"{base}/a", b"1"),
            Create(f"{base}/a/b", b"2"),
            Create(f"{base}/a/s", b"", sequential=True),
            SetData(f"{base}/a", b"3", 0),
            Check(f"{base}/a", 1),
            Delete(f"{base}/old", 0),
        ]
    )
    check, a, b, s, set_a, check_a, deleted = results
    assert check is check_a is deleted is None
    assert isinstance(a, CreatedNode)
    assert isinstance(b, CreatedNode)
    assert isinstance(s, CreatedNode)
    assert isinstance(set_a, Stat)
    assert s.path == f"{base}/a/s0000000001"
    data, stat = await session.get(f"{base}/a")
    assert data == b"3"
    assert stat.version == 1
    assert stat.czxid == stat.mzxid == stat.pzxid == b.stat.czxid
    assert await session.exists(f"{base}/old") is None


async def a_multi_that_fails_changes_nothing(provider: Provider, base: str) -> None:
    session = await provider.session()
    await session.create(f"{base}/a", b"0")
    await session.create(f"{base}/e", b"0", ephemeral=True)
    before = (await session.children(base), await session.get(f"{base}/a"))
    failed = await fails(
        session.multi(
            [
                SetData(f"{base}/a", b"1"),
                Create(f"{base}/s_", sequential=True),
                Create(f"{base}/b", ephemeral=True),
                Delete(f"{base}/e"),
                Check(f"{base}/a", 7),
                Create(f"{base}/c"),
            ]
        ),
        MultiFailed,
    )
    assert isinstance(failed, MultiFailed)
    assert failed.index == 4
    assert isinstance(failed.error, BadVersion)
    assert (await session.children(base), await session.get(f"{base}/a")) == before
    # Not even the number of a sequential node is used up.
    assert (await session.create(f"{base}/s_", sequential=True)).path == f"{base}/s_0000000002"


async def every_error_can_fail_a_multi(provider: Provider, base: str) -> None:
    session = await provider.session()
    await session.create(f"{base}/a")
    await session.create(f"{base}/a/b")
    for op, error in (
        (Create(f"{base}/a"), NodeExists),
        (Create(f"{base}/x/y"), NoNode),
        (Delete(f"{base}/a"), NotEmpty),
        (Delete(f"{base}/x"), NoNode),
        (SetData(f"{base}/x", b""), NoNode),
        (SetData(f"{base}/a", b"", 1), BadVersion),
        (Check(f"{base}/x"), NoNode),
        (Check(f"{base}/a", 1), BadVersion),
    ):
        for ops, index in (([op], 0), ([Check(f"{base}/a", 0), op], 1)):
            failed = await fails(session.multi(ops), MultiFailed)
            assert isinstance(failed, MultiFailed)
            assert (failed.index, type(failed.error)) == (index, error)


async def an_empty_multi_does_nothing(provider: Provider, base: str) -> None:
    session = await provider.session()
    assert await session.multi([]) == []


# Watches.


async def a_data_watch_tells_of_creation_change_and_deletion(provider: Provider, base: str) -> None:
    session = await provider.session()
    path = f"{base}/a"
    created, changed, deleted = Events(), Events(), Events()
    assert await session.exists(path, created) is None
    await session.create(path)
    await session.get(path, changed)
    await session.set(path, b"1")
    await session.exists(path, deleted)
    await session.delete(path)
    await until(lambda: deleted)
    assert list(created) == [(EventType.NODE_CREATED, path)]
    assert list(changed) == [(EventType.NODE_DATA_CHANGED, path)]
    assert list(deleted) == [(EventType.NODE_DELETED, path)]


async def a_watch_fires_once(provider: Provider, base: str) -> None:
    session = await provider.session()
    path = f"{base}/a"
    await session.create(path)
    events, last = Events(), Events()
    await session.get(path, events)
    await session.exists(path, events)
    for number in range(5):
        await session.set(path, b"%d" % number)
    await session.get(path, last)
    await session.set(path, b"last")
    await until(lambda: last)
    assert list(events) == [(EventType.NODE_DATA_CHANGED, path)]


async def a_child_watch_tells_of_children_and_of_the_end(provider: Provider, base: str) -> None:
    session = await provider.session()
    parent = f"{base}/parent"
    await session.create(parent)
    born, quiet, gone, end = Events(), Events(), Events(), Events()
    await session.children(parent, born)
    await session.create(f"{parent}/a")
    await session.children(parent, quiet)
    await session.set(f"{parent}/a", b"data")
    await session.set(parent, b"data")
    await session.create(f"{parent}/a/grandchild")
    await session.delete(f"{parent}/a/grandchild")
    await until(lambda: born)
    assert list(quiet) == []
    await session.children(parent, gone)
    await session.delete(f"{parent}/a")
    await session.children(parent, end)
    await session.delete(parent)
    await until(lambda: end)
    assert list(born) == list(gone) == list(quiet) == [(EventType.NODE_CHILDREN_CHANGED, parent)]
    assert list(end) == [(EventType.NODE_DELETED, parent)]


async def a_watcher_of_data_and_children_is_told_of_the_end_once(provider: Provider, base: str) -> None:
    session = await provider.session()
    path = f"{base}/a"
    await session.create(path)
    both, after = Events(), Events()
    await session.get(path, both)
    await session.children(path, both)
    await session.delete(path)
    await session.exists(path, after)
    await session.create(path)
    await until(lambda: after)
    assert list(both) == [(EventType.NODE_DELETED, path)]


async def a_read_of_a_missing_node_leaves_no_watch(provider: Provider, base: str) -> None:
    session = await provider.session()
    path = f"{base}/a"
    none, some = Events(), Events()
    await fails(session.get(path, none), NoNode)
    await fails(session.children(path, none), NoNode)
    await session.exists(path, some)
    await session.create(path)
    await session.create(f"{path}/b")
    await until(lambda: some)
    assert list(none) == []


async def watches_tell_of_other_sessions_and_of_multis(provider: Provider, base: str) -> None:
    watching, writing = await provider.session(), await provider.session()
    children, first, second = Events(), Events(), Events()
    await watching.children(base, children)
    await watching.exists(f"{base}/a", first)
    await watching.exists(f"{base}/b", second)
    await writing.multi([Create(f"{base}/a"), Create(f"{base}/b"), SetData(f"{base}/b", b"x")])
    await until(lambda: children and first and second)
    # What was told of can be read.
    assert (await watching.get(f"{base}/b"))[0] == b"x"
    assert list(children) == [(EventType.NODE_CHILDREN_CHANGED, base)]
    assert list(first) == [(EventType.NODE_CREATED, f"{base}/a")]
    assert list(second) == [(EventType.NODE_CREATED, f"{base}/b")]


async def a_failed_write_fires_nothing(provider: Provider, base: str) -> None:
    session = await provider.session()
    await session.create(f"{base}/a")
    events = Events()
    await session.get(f"{base}/a", events)
    await fails(session.multi([SetData(f"{base}/a", b"1"), Check(f"{base}/none")]), MultiFailed)
    assert list(events) == []
    await session.set(f"{base}/a", b"2")
    await until(lambda: events)


# Sessions.


async def an_ephemeral_node_ends_with_its_session(provider: Provider, base: str) -> None:
    owner, other = await provider.session(), await provider.session()
    await owner.create(f"{base}/e", b"here", ephemeral=True)
    await owner.create(f"{base}/lasting")
    await other.sync(base)
    _, stat = await other.get(f"{base}/e")
    assert stat.ephemeral_owner == owner.session.id != other.session.id
    gone = Events()
    await other.exists(f"{base}/e", gone)
    await owner.close()
    await until(lambda: gone)
    assert list(gone) == [(EventType.NODE_DELETED, f"{base}/e")]
    await other.sync(base)
    assert (await other.children(base))[0] == ["lasting"]


async def anybody_may_delete_an_ephemeral_node(provider: Provider, base: str) -> None:
    owner, other = await provider.session(), await provider.session()
    await owner.create(f"{base}/e", ephemeral=True)
    await other.delete(f"{base}/e")
    await other.create(f"{base}/e", b"mine", ephemeral=True)
    await owner.close()
    assert (await other.get(f"{base}/e"))[0] == b"mine"


async def a_closed_session_takes_nothing(provider: Provider, base: str) -> None:
    session = await provider.session()
    await session.close()
    await session.close()
    await fails(session.create(f"{base}/a"), SessionClosed)
    await fails(session.exists(base), SessionClosed)
    await fails(session.multi([]), SessionClosed)


async def a_session_closes_behind_what_it_was_asked_for_before(provider: Provider, base: str) -> None:
    """However long that takes."""
    session, other = await provider.session(), await provider.session()
    ops = [Create(f"{base}/{number}", ephemeral=number == 0) for number in range(300)]
    begun = asyncio.Event()

    async def make() -> None:
        begun.set()
        await session.multi(ops)

    making = asyncio.ensure_future(make())
    await begun.wait()
    await session.close()
    await making
    await other.sync(base)
    assert len((await other.children(base))[0]) == len(ops) - 1


async def an_expired_session_is_told_and_takes_nothing(provider: Provider, base: str) -> None:
    session, other = await provider.session(), await provider.session()
    events: list[SessionEvent] = []
    dropped, gone = Events(), Events()
    session.listen(events.append)
    await session.create(f"{base}/e", ephemeral=True)
    await session.exists(f"{base}/later", dropped)
    await other.sync(base)
    await other.exists(f"{base}/e", gone)
    await provider.expire(session)
    await until(lambda: SessionEvent.EXPIRED in events and gone)
    assert events[-1] is SessionEvent.EXPIRED
    assert await other.exists(f"{base}/e") is None
    await fails(session.create(f"{base}/a"), SessionExpired)
    await fails(session.get(base), SessionExpired)
    await fails(session.multi([Create(f"{base}/a")]), SessionExpired)
    await other.create(f"{base}/later")
    await session.close()
    assert list(dropped) == []
    assert (await other.children(base))[0] == ["later"]


async def one_of_two_wins(provider: Provider, base: str) -> None:
    sessions = [await provider.session() for _ in range(4)]
    outcomes = await asyncio.gather(
        *(session.create(f"{base}/leader", b"", ephemeral=True) for session in sessions), return_exceptions=True
    )
    assert sum(isinstance(outcome, CreatedNode) for outcome in outcomes) == 1
    assert sum(isinstance(outcome, NodeExists) for outcome in outcomes) == 3


# Order.


async def calls_of_a_session_take_effect_in_order(provider: Provider, base: str) -> None:
    session = await provider.session()
    path = f"{base}/a"
    before, created, read, was_set, again, deleted, after = await asyncio.gather(
        session.exists(path),
        session.create(path, b"0"),
        session.get(path),
        session.set(path, b"1", 0),
        session.get(path),
        session.delete(path, 1),
        session.exists(path),
    )
    assert before is None
    assert isinstance(created, CreatedNode)
    assert read == (b"0", created.stat)
    assert again == (b"1", was_set)
    assert deleted is after is None


async def increments_under_conditions_are_not_lost(provider: Provider, base: str) -> None:
    path = f"{base}/counter"
    sessions = [await provider.session() for _ in range(3)]
    await sessions[0].create(path, b"0")

    async def increment(session: Coordination) -> None:
        await session.sync(base)
        for _ in range(10):
            while True:
                data, stat = await session.get(path)
                try:
                    await session.set(path, b"%d" % (int(data) + 1), stat.version)
                    break
                except BadVersion:
                    continue

    await asyncio.gather(*map(increment, sessions))
    await sessions[0].sync(base)
    data, stat = await sessions[0].get(path)
    assert (data, stat.version) == (b"30", 30)


async def many_nodes_are_read_at_once(provider: Provider, base: str) -> None:
    session = await provider.session()
    await session.multi([Create(f"{base}/n{number}", b"%d" % number) for number in range(1500)])
    found = await session.get_many([f"{base}/n{number}" for number in range(1501)])
    assert found[1500] is None
    assert [node[0] for node in found[:1500] if node] == [b"%d" % number for number in range(1500)]
    assert await session.get_many([]) == []


async def another_session_sees_after_sync(provider: Provider, base: str) -> None:
    writing, reading = await provider.session(), await provider.session()
    await writing.create(f"{base}/a", b"1")
    await reading.sync(base)
    assert (await reading.get(f"{base}/a"))[0] == b"1"


# Export and import.


async def import_tree(session: Coordination, dump: object) -> int:
    """Returns how many nodes are to be there."""
    nodes = [node for node in parsed(dump) if node.moves]
    await write_nodes(session, nodes)
    return len(nodes)


async def a_tree_moves(provider: Provider, base: str) -> None:
    session = await provider.session()
    await session.create(f"{base}/text", '{"größe":1}'.encode())
    await session.create(f"{base}/binary", b"\xff\x00")
    await session.create(f"{base}/text/child", b"")
    await session.create(f"{base}/e", ephemeral=True)
    dump = await export_tree(session)
    kept = [node for node in dump["nodes"] if node["path"] == base or node["path"].startswith(f"{base}/")]
    assert [node["path"] for node in kept[1:]] == [f"{base}/{name}" for name in ("binary", "e", "text", "text/child")]
    for name in ("text/child", "text", "binary", "e"):
        await session.delete(f"{base}/{name}")
    await session.create(f"{base}/text", b"other")
    assert await import_tree(session, {"format": 1, "nodes": kept}) == 4
    assert (await session.children(base))[0] == ["binary", "text"]
    assert (await session.get(f"{base}/text"))[0] == '{"größe":1}'.encode()
    assert (await session.get(f"{base}/binary"))[0] == b"\xff\x00"
    assert await session.exists(f"{base}/text/child")


async def ids_that_were_given_out_move_with_the_tree(provider: Provider, base: str) -> None:
    session = await provider.session()
    if await session.exists(BROKER_SEQUENCE) is None:
        await import_tree(session, {"format": 1, "nodes": [dumped("/brokers", 0)]})
    given = await session.exists(BROKER_SEQUENCE)
    before = given.version if given else 0
    await import_tree(session, {"format": 1, "nodes": [dumped(BROKER_SEQUENCE, before + 3)]})
    assert (await session.set(BROKER_SEQUENCE, b"")).version == before + 4
    # Fewer than were given out here are no reason to begin again.
    await import_tree(session, {"format": 1, "nodes": [dumped(BROKER_SEQUENCE, 1)]})
    assert (await session.set(BROKER_SEQUENCE, b"")).version == before + 5


def dumped(path: str, version: int) -> dict[str, Any]:
    return {"path": path, "text": "", "version": version, "ephemeral_owner": 0}


async def a_damaged_dump_is_refused(provider: Provider, base: str) -> None:
    session = await provider.session()
    good = {"path": f"{base}/a", "text": "", "version": 0, "ephemeral_owner": 0}
    damaged: list[Any] = [None, [1], [{}], [good | {"path": "a"}], [good | {"version": None}], [good | {"text": 1}]]
    for nodes in damaged:
        await fails(import_tree(session, {"format": 1, "nodes": nodes}), DamagedDump)
    await fails(import_tree(session, {"format": 2, "nodes": [good]}), DamagedDump)
    assert (await session.children(base))[0] == []


#: Coroutines of this module that are no cases.
HELPERS = {"until", "fails", "import_tree"}
SCENARIOS: list[Scenario] = [
    found
    for name, found in list(globals().items())
    if asyncio.iscoroutinefunction(found)
    and name not in {"until", "fails", "import_tree"}
    and found.__module__ == __name__
]
