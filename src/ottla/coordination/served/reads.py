"""What reads ask of the tree.

ZooKeeper's habits that clients can see are kept: to a read, a path that nobody could create is one that is not there;
an empty path is the root; `exists` leaves its watch also where there is no node.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from typing import Any, Final, NamedTuple

from ottla.coordination.errors import BadVersion, InvalidPath, NoNode, WriteRefused
from ottla.coordination.interface import ANY_VERSION, EventType, Stat, WatchEvent
from ottla.coordination.served.access import check_access
from ottla.coordination.served.connection import Connection
from ottla.coordination.served.limits import (
    PATH_CHARACTERS_MAX,
    WATCHED_CHARACTERS_MAX,
    WATCHES_ALL_MAX,
    WATCHES_MAX,
)
from ottla.coordination.served.long_frames import LONG_ANSWER
from ottla.coordination.tree import TreeNode, ZnodeTree
from ottla.coordination.watches import WatchTable
from ottla.coordination.zookeeper.codes import OpCode
from ottla.coordination.zookeeper.messages import (
    OPEN_TO_ALL,
    AclAnswer,
    CheckRequest,
    Children2Answer,
    ChildrenAnswer,
    DataAnswer,
    NodeRequest,
    PathAnswer,
    PathRequest,
    SetAclRequest,
    SetWatchesRequest,
)
from ottla.steps import pieces

#: Paths that are looked at in one step.
_PATHS_A_STEP: Final = 16


class Asker(NamedTuple):
    """Who reads, and where watches are left."""

    watches: WatchTable
    connection: Connection

    def check_room(self, count: int = 1) -> None:
        """Raises WriteRefused where so many more watches would be too many."""
        of_connection = self.watches.count_of(self.connection.key)
        is_full = len(self.watches) + count > WATCHES_ALL_MAX or self.watches.characters > WATCHED_CHARACTERS_MAX
        if of_connection + count > WATCHES_MAX or is_full:
            raise WriteRefused("more watches than a tree has room for")

    def leave_data(self, path: str) -> None:
        self.check_room()
        self.watches.leave_data(self.connection.key, path or "/", self.connection.on_event)

    def leave_child(self, path: str) -> None:
        self.check_room()
        self.watches.leave_child(self.connection.key, path or "/", self.connection.on_event)


def found(tree: ZnodeTree, path: str) -> TreeNode:
    """Raises NoNode."""
    node = tree.nodes.get(path or "/")
    if node is None:
        raise NoNode(path)
    return node


def exists(asker: Asker, fields: NodeRequest, tree: ZnodeTree) -> Stat:
    path = fields.path
    if "\0" in path or len(path) > PATH_CHARACTERS_MAX:
        raise InvalidPath(f"a path with a zero in it, or of more than {PATH_CHARACTERS_MAX} characters")
    if fields.watch:
        asker.leave_data(path)
    return found(tree, path).stat()


def get_data(asker: Asker, fields: NodeRequest, tree: ZnodeTree) -> DataAnswer:
    node = found(tree, fields.path)
    if fields.watch:
        asker.leave_data(fields.path)
    return DataAnswer(node.data, node.stat())


def get_children2(asker: Asker, fields: NodeRequest, tree: ZnodeTree) -> Children2Answer:
    node = found(tree, fields.path)
    if fields.watch:
        asker.leave_child(fields.path)
    names = node.children or ()
    # Sorted is what people like to see, and long to make of very many.
    return Children2Answer(sorted(names) if len(names) <= LONG_ANSWER else list(names), node.stat())


def get_children(asker: Asker, fields: NodeRequest, tree: ZnodeTree) -> ChildrenAnswer:
    return ChildrenAnswer(get_children2(asker, fields, tree).names)


def check(_: Asker, fields: CheckRequest, tree: ZnodeTree) -> None:
    node = tree.node(fields.path)
    if fields.version not in {ANY_VERSION, node.version}:
        raise BadVersion(fields.path, fields.version, node.version)


def get_acl(_: Asker, fields: PathRequest, tree: ZnodeTree) -> AclAnswer:
    return AclAnswer(OPEN_TO_ALL, found(tree, fields.path).stat())


def set_acl(_: Asker, fields: SetAclRequest, tree: ZnodeTree) -> Stat:
    """Nothing changes, since every list is the same."""
    check_access(fields.acl)
    stat = tree.node(fields.path).stat()
    if fields.version not in {ANY_VERSION, stat.aversion}:
        raise BadVersion(fields.path, fields.version, stat.aversion)
    return stat


def sync(_: Asker, fields: PathRequest, tree: ZnodeTree) -> PathAnswer:
    """The store has done all that it was asked before."""
    del tree
    return PathAnswer(fields.path)


def set_watches(asker: Asker, fields: SetWatchesRequest) -> Generator[None, ZnodeTree]:
    """Leaves the watches of an earlier connection anew, and calls at once for what has changed since.

    In steps, which are given the tree as it is then: what changes between two of them calls the watches that are left.
    """
    tree = yield
    asker.check_room(len(fields.data) + len(fields.exist) + len(fields.child))
    seen, call = fields.last_zxid_seen, asker.connection.on_event

    def leave_again(paths: Sequence[str], changed: EventType, leave: Callable[[str], None]) -> None:
        for path in paths:
            node = tree.nodes.get(path or "/")
            if node is None:
                call(WatchEvent(EventType.NODE_DELETED, path))
            elif (node.mzxid if changed is EventType.NODE_DATA_CHANGED else node.pzxid) > seen:
                call(WatchEvent(changed, path))
            else:
                leave(path)

    for paths in pieces(fields.data, _PATHS_A_STEP):
        leave_again(paths, EventType.NODE_DATA_CHANGED, asker.leave_data)
        tree = yield
    for paths in pieces(fields.exist, _PATHS_A_STEP):
        for path in paths:
            if (path or "/") in tree.nodes:
                call(WatchEvent(EventType.NODE_CREATED, path))
            else:
                asker.leave_data(path)
        tree = yield
    for paths in pieces(fields.child, _PATHS_A_STEP):
        leave_again(paths, EventType.NODE_CHILDREN_CHANGED, asker.leave_child)
        tree = yield


#: What each operation that only reads does. A set access list changes nothing and is one of them.
READS: Final[dict[int, Callable[[Asker, Any, ZnodeTree], Any]]] = {
    OpCode.EXISTS: exists,
    OpCode.GET_DATA: get_data,
    OpCode.GET_CHILDREN: get_children,
    OpCode.GET_CHILDREN2: get_children2,
    OpCode.CHECK: check,
    OpCode.GET_ACL: get_acl,
    OpCode.SET_ACL: set_acl,
    OpCode.SYNC: sync,
}
