"""A cluster moves from one tree to another: what may be put where, and in which order it is written.

A tree says which replicas have every acknowledged record (the ISR of each partition). One that is older than the logs
may name a replica that lacks some, and its election would lose them. So nothing is written

- from a dump that was made while brokers were registered, since they may have changed the tree behind it;
- into a tree that brokers are registered in;
- over a tree of another cluster, or one that has gone further than the dump: a higher controller epoch, a higher leader
  epoch of the same partition, or, where the dump is of this very tree, any later transaction.

The first write makes `/cluster/id` unreadable and the last one makes it what it is. A load that was cut short leaves a
tree that no broker starts with, ours or Kafka's, and that a load of the same dump goes on with: nothing that is left
there could say whether another dump is older. Between the two there is no `/brokers/ids`, so that no broker that runs
can register again either; one that did before its removal, or after it came back, makes that write fail.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from ottla.coordination.errors import CoordinationError, MultiFailed, NotEmpty
from ottla.coordination.interface import Coordination, Create, Delete, Op, SetData
from ottla.coordination.sizes import split
from ottla.coordination.transfer import DumpedNode, check_writable, export_tree, parsed, write_nodes
from ottla.coordination.znode_json import DamagedZnode
from ottla.coordination.znodes import (
    BROKER_IDS,
    CLUSTER_ID,
    CONTROLLER_EPOCH,
    TOPICS,
    decode_cluster_id,
    decode_epoch,
    decode_state,
    decode_topic,
    topic_path,
)

#: What Kafka has at the top of its part of a tree. An ensemble without a chroot may hold other applications' nodes.
KAFKA_NAMES: Final = frozenset(
    {
        "admin",
        "brokers",
        "cluster",
        "config",
        "consumers",
        "controller",
        "controller_epoch",
        "delegation_token",
        "feature",
        "isr_change_notification",
        "kafka-acl",
        "kafka-acl-changes",
        "kafka-acl-extended",
        "kafka-acl-extended-changes",
        "latest_producer_id_block",
        "log_dir_event_notification",
        "migration",
    }
)
#: `/cluster/id` until everything stands, and which dump was written. It is no JSON, so a broker's start ends and says
#: what stands there.
_UNDER_WAY: Final = b"ottla tree load did not end: repeat it, of dump "
#: Of its digest, enough to tell one dump from another.
_DIGITS: Final = 16
_NAMED_MAX: Final = 5


class LoadRefused(CoordinationError):
    """Nothing was written; the message says why, and what may be done."""


class LoadedCluster(NamedTuple):
    nodes: int
    topics: int
    cluster_id: str


def registered_brokers(nodes: Sequence[DumpedNode]) -> list[int]:
    """Whose sessions lasted when the nodes were read."""
    names = [node.path.removeprefix(f"{BROKER_IDS}/") for node in nodes if node.ephemeral_owner]
    return sorted(int(name) for name in names if name.isdecimal())


async def load_tree(coordination: Coordination, dump: object, *, replace: bool = False) -> LoadedCluster:
    """`replace`: whether a tree of the same cluster that is there may be changed to what the dump says.

    Raises DamagedDump, DamagedZnode or LoadRefused before anything is written.
    """
    given = parsed(dump)
    # A dump is a node a line, and whoever has edited or sorted it may have its lines in another order.
    parents_first = sorted((node for node in given if node.moves), key=lambda node: node.path.count("/"))
    moving = {node.path: node for node in parents_first}
    check_writable(moving)
    cluster = _cluster_of(moving)
    if alive := registered_brokers(given):
        raise LoadRefused(f"the dump was made while {_brokers(alive)}: stop them, and dump the tree again")
    found = parsed(await export_tree(coordination, KAFKA_NAMES))
    if alive := registered_brokers(found):
        raise LoadRefused(f"{_brokers(alive)} in the tree that is to be written: stop them, or wait for their sessions")
    there = {node.path: node for node in found if node.path != "/" and not node.ephemeral_owner}
    mark = there.get(CLUSTER_ID)
    topics = _topics(there)
    under_way = _mark_of(moving)
    if mark is not None and mark.data.startswith(_UNDER_WAY):
        if mark.data != under_way:
            raise LoadRefused(
                "a load of another dump was cut short there: repeat it with that dump, or load this one into an empty "
                "place"
            )
    elif mark is not None or topics:
        held = _cluster_of(there) if mark is not None else "none"
        if not replace:
            raise LoadRefused(
                f"the tree is in use: cluster {held}, topics: {topics}. --replace writes the dump over it"
            )
        if held != cluster:
            raise LoadRefused(f"the tree is cluster {held}'s, and the dump cluster {cluster}'s: name another place")
        _check_not_older(moving, there)
    await _write(coordination, moving, there, under_way)
    return LoadedCluster(len(moving), _topics(moving), cluster)


async def _write(
    coordination: Coordination, nodes: Mapping[str, DumpedNode], there: Mapping[str, DumpedNode], under_way: bytes
) -> None:
    parent = CLUSTER_ID.rpartition("/")[0]
    begin: list[Op] = [] if parent in there else [Create(parent)]
    begin.append(SetData(CLUSTER_ID, under_way) if CLUSTER_ID in there else Create(CLUSTER_ID, under_way))
    begin += _deletions(path for path in there if _is_registry(path))
    await _unless_registered(coordination, begin)
    for piece in split(_deletions(path for path in there if path not in nodes and not _is_registry(path))):
        await coordination.multi(piece)
    last = [node for path, node in nodes.items() if path == CLUSTER_ID or _is_registry(path)]
    await write_nodes(coordination, [node for node in nodes.values() if node not in last])
    # A broker that was started meanwhile has made it before it found no cluster.
    end = _deletions([BROKER_IDS] if await coordination.exists(BROKER_IDS) else [])
    end += [SetData(node.path, node.data) if node.path == CLUSTER_ID else Create(node.path, node.data) for node in last]
    await _unless_registered(coordination, end)


async def _unless_registered(coordination: Coordination, ops: Sequence[Op]) -> None:
    try:
        await coordination.multi(ops)
    except MultiFailed as failed:
        if isinstance(failed.error, NotEmpty):
            raise LoadRefused("a broker registered meanwhile: stop all brokers, and repeat the load") from failed
        raise


def _deletions(paths: Iterable[str]) -> list[Op]:
    """Children before their parents."""
    return [Delete(path) for path in sorted(paths, key=lambda path: -path.count("/"))]


def _is_registry(path: str) -> bool:
    return path == BROKER_IDS or path.startswith(f"{BROKER_IDS}/")


def _mark_of(nodes: Mapping[str, DumpedNode]) -> bytes:
    """What `/cluster/id` is while these are written."""
    digest = hashlib.sha256()
    for path in sorted(nodes):
        digest.update(b"%s %d " % (path.encode(), len(nodes[path].data)))
        digest.update(nodes[path].data)
    return _UNDER_WAY + digest.hexdigest()[:_DIGITS].encode()


def _cluster_of(nodes: Mapping[str, DumpedNode]) -> str:
    found = nodes.get(CLUSTER_ID)
    if found is None:
        raise LoadRefused(f"the dump has no {CLUSTER_ID}: no broker ever finished a start with its tree")
    return decode_cluster_id(CLUSTER_ID, found.data)


def _topics(nodes: Mapping[str, DumpedNode]) -> int:
    return sum(path.startswith(f"{TOPICS}/") and path.count("/") == 3 for path in nodes)


def _brokers(alive: Sequence[int]) -> str:
    named = ", ".join(map(str, alive))
    return f"brokers {named} are registered" if len(alive) > 1 else f"broker {named} is registered"


# Which of two trees of one cluster is further.


def _check_not_older(dumped: Mapping[str, DumpedNode], there: Mapping[str, DumpedNode]) -> None:
    """Raises LoadRefused where the tree knows of something that came after the dump."""
    mine, its = dumped[CLUSTER_ID], there[CLUSTER_ID]
    if (mine.czxid, mine.ctime_ms) == (its.czxid, its.ctime_ms):
        until = max(node.mzxid for node in dumped.values())
        later = sorted(path for path, node in there.items() if node.mzxid > until)
        if later:
            raise _older(f"it has changed since the dump: {_some(later)}")
    if CONTROLLER_EPOCH in dumped and CONTROLLER_EPOCH in there:
        was, now = (decode_epoch(CONTROLLER_EPOCH, nodes[CONTROLLER_EPOCH].data) for nodes in (dumped, there))
        if was < now:
            raise _older(f"its controller epoch is {now}, and the dump's {was}")
    ahead = [path for path, node in there.items() if path in dumped and _leads_ahead(path, node, dumped, there)]
    if ahead:
        raise _older(f"it has higher leader epochs: {_some(ahead)}")


def _leads_ahead(
    path: str, node: DumpedNode, dumped: Mapping[str, DumpedNode], there: Mapping[str, DumpedNode]
) -> bool:
    if not path.startswith(f"{TOPICS}/") or not path.endswith("/state"):
        return False
    topic = topic_path(path.split("/")[3])
    try:
        if decode_topic(topic, dumped[topic].data).topic_id != decode_topic(topic, there[topic].data).topic_id:
            return False  # a topic of the same name, which was made anew
        return decode_state(path, node.data).leader_epoch > decode_state(path, dumped[path].data).leader_epoch
    except (DamagedZnode, KeyError):
        return False  # what cannot be read says nothing about what is further


def _older(why: str) -> LoadRefused:
    return LoadRefused(
        f"the tree is further than the dump, and replicas that it took out of an ISR would come back: {why}. Dump "
        "the tree that the brokers used last"
    )


def _some(paths: Sequence[str]) -> str:
    more = f" and {len(paths) - _NAMED_MAX} more" if len(paths) > _NAMED_MAX else ""
    return ", ".join(paths[:_NAMED_MAX]) + more
