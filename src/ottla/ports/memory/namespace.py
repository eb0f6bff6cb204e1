"""Names, and which of them are certain.

Every operation on names (create, rename, remove, make a folder) is a change of one or two entries. It is seen at once
and becomes certain when the folder is synced. At a power cut any subset of the uncertain changes is lost, except that
changes of the same name keep their order, and a rename happens in both of its folders or in none, as every journalling
file system has it.
"""

from __future__ import annotations

import errno
import os
from dataclasses import dataclass, field
from random import Random

from ottla.ports.memory.inode import Inode


class DirectoryNode:
    __slots__ = ("certain", "entries")

    def __init__(self) -> None:
        #: What programs see.
        self.entries: dict[str, Node] = {}
        #: What the medium surely has.
        self.certain: dict[str, Node] = {}


Node = Inode | DirectoryNode


@dataclass(slots=True)
class EntryChange:
    """Entries that change together: (folder, name, what is there from now on)."""

    entries: list[tuple[DirectoryNode, str, Node | None]] = field(default_factory=list)


class Namespace:
    __slots__ = ("_uncertain", "root")

    def __init__(self) -> None:
        self.root = DirectoryNode()
        #: In the order in which they happened.
        self._uncertain: list[EntryChange] = []

    def find(self, path: str) -> Node:
        node: Node = self.root
        for name in parts(path):
            if not isinstance(node, DirectoryNode):
                raise problem(errno.ENOTDIR, path)
            found = node.entries.get(name)
            if found is None:
                raise problem(errno.ENOENT, path)
            node = found
        return node

    def folder(self, path: str) -> DirectoryNode:
        node = self.find(path)
        if not isinstance(node, DirectoryNode):
            raise problem(errno.ENOTDIR, path)
        return node

    def file(self, path: str) -> Inode:
        node = self.find(path)
        if isinstance(node, DirectoryNode):
            raise problem(errno.EISDIR, path)
        return node

    def place(self, path: str) -> tuple[DirectoryNode, str]:
        """The folder that holds, or would hold, the name."""
        names = parts(path)
        if not names:
            raise problem(errno.EBUSY, path)
        return self.folder("/".join(names[:-1])), names[-1]

    def change(self, *entries: tuple[DirectoryNode, str, Node | None]) -> None:
        for folder, name, node in entries:
            if node is None:
                folder.entries.pop(name, None)
            else:
                folder.entries[name] = node
        self._uncertain.append(EntryChange(list(entries)))

    def sync(self, folder: DirectoryNode) -> None:
        """Makes the folder's own names certain. The other half of a rename across folders stays uncertain."""
        rest = []
        for change in self._uncertain:
            others = []
            for entry in change.entries:
                if entry[0] is folder:
                    _settle(*entry)
                else:
                    others.append(entry)
            if others:
                rest.append(EntryChange(others))
        self._uncertain = rest

    def crash(self, rng: Random) -> None:
        kept_share = rng.choice((0.0, 0.2, 0.5, 0.8, 1.0))
        lost: set[tuple[int, str]] = set()
        for change in self._uncertain:
            names = {(id(folder), name) for folder, name, _ in change.entries}
            if rng.random() < kept_share and not names & lost:
                for entry in change.entries:
                    _settle(*entry)
            else:
                lost |= names
        self._uncertain.clear()
        self._return_to_certain(self.root)

    def _return_to_certain(self, folder: DirectoryNode) -> None:
        folder.entries = dict(folder.certain)
        for node in folder.entries.values():
            if isinstance(node, DirectoryNode):
                self._return_to_certain(node)

    def inodes(self) -> list[Inode]:
        """Every file that has a name."""
        found: dict[int, Inode] = {}  # once each: half a rename across folders leaves two names
        folders = [self.root]
        while folders:
            for node in folders.pop().entries.values():
                if isinstance(node, DirectoryNode):
                    folders.append(node)
                else:
                    found[id(node)] = node
        return list(found.values())


def _settle(folder: DirectoryNode, name: str, node: Node | None) -> None:
    if node is None:
        folder.certain.pop(name, None)
    else:
        folder.certain[name] = node


def parts(path: str) -> list[str]:
    """A path's names. Relative paths start at the root, and `..` is taken by its words, as there are no links."""
    names: list[str] = []
    for name in path.split("/"):
        if name == "..":
            del names[-1:]
        elif name not in {"", "."}:
            names.append(name)
    return names


def problem(number: int, path: str) -> OSError:
    """The OSError of a fault, in its own class (FileNotFoundError, ...)."""
    return OSError(number, os.strerror(number), path)
