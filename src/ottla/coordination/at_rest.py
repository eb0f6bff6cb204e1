"""A tree in its folder that no process serves: it is read as its files have it, and nothing is written.

The session of the process itself is over with it. Those of others, which a served tree had, are not: their brokers may
run on, and go on with them when the tree is served again. The lock is held meanwhile, so that no broker begins to
change what is read.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from ottla.coordination.errors import CoordinationError, DirectoryInUse
from ottla.coordination.interface import Stat
from ottla.coordination.loading import load
from ottla.coordination.sessions import ends_with_process
from ottla.coordination.tree import TreeNode, ZnodeTree
from ottla.ports.disk import Disk


class NoTree(CoordinationError):
    """There is no tree in this folder."""


class TreeAtRest:
    """Implements `ReadableTree`."""

    def __init__(self, tree: ZnodeTree) -> None:
        self._tree = tree

    async def get_many(self, paths: Sequence[str]) -> list[tuple[bytes, Stat] | None]:
        nodes = (self._tree.nodes.get(path) for path in paths)
        return [None if node is None or self._is_over(node) else (node.data, node.stat()) for node in nodes]

    async def children(self, path: str) -> tuple[list[str], Stat]:
        return self._tree.children(path)

    @property
    def sessions_of_others(self) -> int:
        """Which go on when the tree is served again."""
        return sum(not ends_with_process(session) for session in self._tree.sessions.values())

    def _is_over(self, node: TreeNode) -> bool:
        return node.ephemeral_owner != 0 and ends_with_process(self._tree.sessions[node.ephemeral_owner])


@contextmanager
def tree_at_rest(disk: Disk, directory: str) -> Iterator[TreeAtRest]:
    """Raises NoTree, DirectoryInUse, StorageDamaged or OSError."""
    lock_path = f"{directory}/.lock"
    if not disk.exists(lock_path):
        raise NoTree(f"{directory} holds no tree: `ottla up` keeps it in <log directory>.coordination")
    try:
        lock = disk.lock(lock_path)
    except BlockingIOError as error:
        raise DirectoryInUse(f"{directory} is in use by another process: stop the broker or the tree") from error
    try:
        loaded = load(disk, directory)
        if loaded.zxid == 0:
            raise NoTree(f"{directory} holds no tree: nothing was ever written to it")
        yield TreeAtRest(loaded.tree)
    finally:
        lock.release()
