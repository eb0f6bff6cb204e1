"""The znode tree itself: nodes, sessions and transactions, in memory, without a clock and without I/O.

A transaction is a list of operations of one session, under one zxid and at one time, both given. It is applied whole
or not at all: an operation that fails undoes those before it and raises. The same call replays the journal, so that a
tree is a function of its transactions. What was applied can be taken back once more (`undo`, latest first), which the
store does when the disk refuses the transaction.

Three habits of ZooKeeper that clients can see are kept: the number of a sequential node is how many children its parent
ever had created; `cversion` counts creations and deletions of children; a multi's operations share one zxid.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Final, NamedTuple

from ottla.coordination.errors import (
    BadVersion,
    CoordinationError,
    InvalidPath,
    MultiFailed,
    NoChildrenForEphemerals,
    NodeExists,
    NoNode,
    NotEmpty,
    SessionExpired,
)
from ottla.coordination.interface import (
    ANY_VERSION,
    Check,
    Create,
    CreatedNode,
    Delete,
    EventType,
    Op,
    OpResult,
    SessionInfo,
    SetData,
    Stat,
    WatchEvent,
)
from ottla.coordination.paths import check_data, check_path, name_of, parent_of
from ottla.steps import Steps, at_once, pieces

#: Sessions are opened by processes, so many fewer than this; a flood of them must not eat the memory.
SESSIONS_MAX: Final = 10_000
#: Operations that are applied in one step: each takes some ten microseconds.
_OPS_A_STEP: Final = 16


class TreeNode:
    __slots__ = (
        "children",
        "created_children",
        "ctime_ms",
        "czxid",
        "data",
        "ephemeral_owner",
        "mtime_ms",
        "mzxid",
        "pzxid",
        "version",
    )

    def __init__(self, data: bytes, zxid: int, now_ms: int, ephemeral_owner: int = 0) -> None:
        self.data = data
        #: Names. None until the first child: most nodes are leaves, and an empty set costs 216 bytes.
        self.children: set[str] | None = None
        #: Children ever created here: the next sequential number.
        self.created_children = 0
        self.czxid = self.mzxid = self.pzxid = zxid
        self.ctime_ms = self.mtime_ms = now_ms
        self.version = 0
        self.ephemeral_owner = ephemeral_owner

    def stat(self) -> Stat:
        count = len(self.children) if self.children else 0
        return Stat(
            self.czxid,
            self.mzxid,
            self.ctime_ms,
            self.mtime_ms,
            self.version,
            # Each creation counts, and each child that is no longer there was deleted once.
            self.created_children * 2 - count,
            0,
            self.ephemeral_owner,
            len(self.data),
            count,
            self.pzxid,
        )


class OpenSession(NamedTuple):
    session: SessionInfo


class CloseSession(NamedTuple):
    """Deletes the ephemeral nodes of a session, and the session."""

    session_id: int


#: What a transaction consists of: clients' operations, or the beginning or end of a session.
TreeOp = Op | OpenSession | CloseSession


class AppliedTransaction(NamedTuple):
    results: list[OpResult]
    #: What watches are called with, in order. (Of a deleted node: the node first, then its parent's children.)
    changes: list[WatchEvent]
    #: How to take the transaction back, to be called latest first.
    reverts: list[Callable[[], None]]


class ZnodeTree:
    def __init__(self) -> None:
        #: Every node by its full path. The root is always there; so is the parent of every node.
        self.nodes: dict[str, TreeNode] = {"/": TreeNode(b"", 0, 0)}
        self.sessions: dict[int, SessionInfo] = {}
        #: The highest id that any had, also of those that are over.
        self.last_session_id = 0
        #: Paths of the ephemeral nodes of each session, in order of creation.
        self.ephemerals: dict[int, dict[str, None]] = {}
        #: Of the last transaction applied; rises with each.
        self.zxid = 0
        #: Called with a node and its path before a transaction changes or deletes it.
        self.before_change: Callable[[str, TreeNode], None] | None = None

    # Reading.

    def node(self, path: str) -> TreeNode:
        check_path(path)
        node = self.nodes.get(path)
        if node is None:
            raise NoNode(path)
        return node

    def exists(self, path: str) -> Stat | None:
        check_path(path)
        node = self.nodes.get(path)
        return None if node is None else node.stat()

    def get(self, path: str) -> tuple[bytes, Stat]:
        node = self.node(path)
        return node.data, node.stat()

    def children(self, path: str) -> tuple[list[str], Stat]:
        node = self.node(path)
        return sorted(node.children or ()), node.stat()

    def walk(self, path: str = "/") -> Iterator[tuple[str, TreeNode]]:
        """The node and all below it, parents first, siblings in order of their names."""
        waiting = [path]
        while waiting:
            current = waiting.pop()
            node = self.nodes[current]
            yield current, node
            if node.children:
                prefix = current if current != "/" else ""
                waiting.extend(f"{prefix}/{name}" for name in sorted(node.children, reverse=True))

    # Writing.

    def apply(self, session_id: int, ops: Sequence[TreeOp], zxid: int, now_ms: int) -> AppliedTransaction:
        """Applies all of `ops`, or raises MultiFailed and changes nothing."""
        return at_once(self.applying(session_id, ops, zxid, now_ms))

    def applying(self, session_id: int, ops: Sequence[TreeOp], zxid: int, now_ms: int) -> Steps[AppliedTransaction]:
        """The same in steps. Nobody may read or write the tree in between."""
        assert zxid > self.zxid, f"zxid {zxid} after {self.zxid}"
        txn = _Transaction(self, session_id, zxid, now_ms)
        for index, op in enumerate(ops):
            if index % _OPS_A_STEP == _OPS_A_STEP - 1:
                yield
            try:
                if isinstance(op, CloseSession):
                    yield from txn.close_session(op.session_id)
                    txn.results.append(None)
                else:
                    txn.results.append(txn.run(op))
            except CoordinationError as error:
                for revert in reversed(txn.reverts):
                    revert()
                raise MultiFailed(index, error) from error
        before = self.zxid
        self.zxid = zxid
        # First in the list, so that it is reverted last.
        txn.reverts.insert(0, lambda: setattr(self, "zxid", before))
        return AppliedTransaction(txn.results, txn.changes, txn.reverts)

    @staticmethod
    def undo(outcome: AppliedTransaction) -> None:
        """Takes the latest transaction that is still applied back."""
        for revert in reversed(outcome.reverts):
            revert()

    def check_invariants(self) -> None:
        """For tests: what holds between transactions."""
        before: set[str] = set()
        for path, node in self.nodes.items():
            assert path == "/" or parent_of(path) in before, "snapshots are written in this order"
            before.add(path)
            assert path == "/" or name_of(path) in (self.nodes[parent_of(path)].children or ()), path
            for name in node.children or ():
                assert (f"{path}/{name}" if path != "/" else f"/{name}") in self.nodes
            assert len(node.children or ()) <= node.created_children
            assert not (node.ephemeral_owner and node.children)
            assert node.czxid <= node.mzxid <= self.zxid
            assert node.czxid <= node.pzxid <= self.zxid
            if node.ephemeral_owner:
                assert path in self.ephemerals[node.ephemeral_owner]
        for session_id, paths in self.ephemerals.items():
            assert session_id in self.sessions
            assert all(self.nodes[path].ephemeral_owner == session_id for path in paths)


class _Transaction:
    """One application in progress: each operation leaves how to take it back before the next one runs."""

    def __init__(self, tree: ZnodeTree, session_id: int, zxid: int, now_ms: int) -> None:
        self.tree = tree
        self.session_id = session_id
        self.zxid = zxid
        self.now_ms = now_ms
        self.results: list[OpResult] = []
        self.changes: list[WatchEvent] = []
        self.reverts: list[Callable[[], None]] = []

    def run(self, op: Op | OpenSession) -> OpResult:
        if isinstance(op, Create):
            return self._create(op)
        if isinstance(op, SetData):
            return self._set(op)
        if isinstance(op, Check):
            self._matching(op.path, op.version)
        elif isinstance(op, Delete):
            self._delete_checked(op)
        else:
            self._open_session(op.session)
        return None

    def _changes(self, path: str, node: TreeNode) -> None:
        if self.tree.before_change is not None:
            self.tree.before_change(path, node)

    def _matching(self, path: str, version: int) -> TreeNode:
        node = self.tree.node(path)
        if version not in (ANY_VERSION, node.version):
            raise BadVersion(path, version, node.version)
        return node

    def _create(self, op: Create) -> CreatedNode:
        tree = self.tree
        check_path(op.path + "0" if op.sequential else op.path)
        check_data(op.path, op.data)
        path = op.path
        if path == "/":
            raise NodeExists(path)
        parent_path = parent_of(path)
        parent = tree.nodes.get(parent_path)
        if parent is None:
            raise NoNode(parent_path)
        if parent.ephemeral_owner:
            raise NoChildrenForEphemerals(path)
        if op.sequential:
            path = f"{path}{parent.created_children:010d}"
        if path in tree.nodes:
            raise NodeExists(path)
        owner = self.session_id if op.ephemeral else 0
        if owner and owner not in tree.sessions:
            raise SessionExpired(f"session {owner:#x} is over")

        self._changes(parent_path, parent)
        node = TreeNode(op.data, self.zxid, self.now_ms, owner)
        name = name_of(path)
        pzxid = parent.pzxid
        tree.nodes[path] = node
        if parent.children is None:
            parent.children = set()
        parent.children.add(name)
        parent.created_children += 1
        parent.pzxid = self.zxid
        if owner:
            tree.ephemerals.setdefault(owner, {})[path] = None

        def revert() -> None:
            del tree.nodes[path]
            assert parent.children is not None
            parent.children.remove(name)
            parent.created_children -= 1
            parent.pzxid = pzxid
            if owner:
                _forget_ephemeral(tree, owner, path)

        self.reverts.append(revert)
        self.changes.append(WatchEvent(EventType.NODE_CREATED, path))
        self.changes.append(WatchEvent(EventType.NODE_CHILDREN_CHANGED, parent_path))
        return CreatedNode(path, node.stat())

    def _set(self, op: SetData) -> Stat:
        check_data(op.path, op.data)
        node = self._matching(op.path, op.version)
        self._changes(op.path, node)
        before = (node.data, node.version, node.mzxid, node.mtime_ms)
        node.data = op.data
        # 32 bits on the wire: after the highest number it starts again, as in ZooKeeper, without passing -1.
        node.version = 0 if node.version == 0x7FFFFFFF else node.version + 1
        node.mzxid = self.zxid
        node.mtime_ms = self.now_ms

        def revert() -> None:
            node.data, node.version, node.mzxid, node.mtime_ms = before

        self.reverts.append(revert)
        self.changes.append(WatchEvent(EventType.NODE_DATA_CHANGED, op.path))
        return node.stat()

    def _delete_checked(self, op: Delete) -> None:
        node = self._matching(op.path, op.version)
        if op.path == "/":
            raise InvalidPath("the root cannot be deleted")
        if node.children:
            raise NotEmpty(op.path)
        self._delete(op.path)

    def _delete(self, path: str) -> None:
        tree = self.tree
        parent_path, name = parent_of(path), name_of(path)
        node, parent = tree.nodes[path], tree.nodes[parent_path]
        self._changes(path, node)
        self._changes(parent_path, parent)
        del tree.nodes[path]
        assert parent.children is not None
        parent.children.remove(name)
        pzxid = parent.pzxid
        parent.pzxid = self.zxid
        owner = node.ephemeral_owner
        if owner:
            _forget_ephemeral(tree, owner, path)

        def revert() -> None:
            tree.nodes[path] = node
            assert parent.children is not None
            parent.children.add(name)
            parent.pzxid = pzxid
            if owner:
                tree.ephemerals.setdefault(owner, {})[path] = None

        self.reverts.append(revert)
        self.changes.append(WatchEvent(EventType.NODE_DELETED, path))
        self.changes.append(WatchEvent(EventType.NODE_CHILDREN_CHANGED, parent_path))

    def _open_session(self, session: SessionInfo) -> None:
        sessions = self.tree.sessions
        assert session.id not in sessions, f"session {session.id:#x} opened twice"
        if len(sessions) >= SESSIONS_MAX:
            raise CoordinationError(f"{SESSIONS_MAX} sessions are open, which is the limit")
        sessions[session.id] = session
        self.tree.last_session_id = max(self.tree.last_session_id, session.id)
        self.reverts.append(lambda: sessions.__delitem__(session.id))

    def close_session(self, session_id: int) -> Steps[None]:
        sessions = self.tree.sessions
        session = sessions.get(session_id)
        if session is None:
            raise SessionExpired(f"session {session_id:#x} is over")
        for some in pieces(list(self.tree.ephemerals.get(session_id, ())), _OPS_A_STEP):
            for path in some:
                self._delete(path)
            yield
        del sessions[session_id]
        self.reverts.append(lambda: sessions.__setitem__(session_id, session))


def _forget_ephemeral(tree: ZnodeTree, owner: int, path: str) -> None:
    paths = tree.ephemerals[owner]
    del paths[path]
    if not paths:
        del tree.ephemerals[owner]
