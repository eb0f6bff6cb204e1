"""One-time watches: which are called when a path changes, by ZooKeeper's rules.

`get` and `exists` leave a data watch, `children` a child watch. A creation or a change of data calls data watches,
a change among the children to child watches, a deletion to both, and to each watcher once.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from ottla.coordination.interface import EventType, Watch, WatchEvent
from ottla.steps import Steps, at_once

#: Watches that are dropped in one step.
_WATCHES_A_STEP: Final = 32

_Table = dict[str, dict[tuple[int, Watch], None]]


class WatchTable:
    """The watches of all sessions of one tree."""

    def __init__(self) -> None:
        #: path -> (session, watch), in the order in which they were left.
        self._data: _Table = {}
        self._child: _Table = {}
        self._of_session: dict[int, set[tuple[bool, str, Watch]]] = {}
        self._count = 0
        #: Of the paths of all watches.
        self.characters = 0

    def __len__(self) -> int:
        return self._count

    def count_of(self, session_id: int) -> int:
        return len(self._of_session.get(session_id, ()))

    def leave_data(self, session_id: int, path: str, watch: Watch) -> None:
        self._leave(self._data, session_id, path, watch, child=False)

    def leave_child(self, session_id: int, path: str, watch: Watch) -> None:
        self._leave(self._child, session_id, path, watch, child=True)

    def _leave(self, table: _Table, session_id: int, path: str, watch: Watch, *, child: bool) -> None:
        watchers = table.setdefault(path, {})
        if (session_id, watch) not in watchers:
            watchers[session_id, watch] = None
            self._of_session.setdefault(session_id, set()).add((child, path, watch))
            self._count += 1
            self.characters += len(path)

    def take(self, changes: Sequence[WatchEvent]) -> list[tuple[Watch, WatchEvent]]:
        """The watches that these changes fire, in order; they are no longer left."""
        fired: list[tuple[Watch, WatchEvent]] = []
        if not self._of_session:
            return fired
        for event in changes:
            called: dict[tuple[int, Watch], None] = {}
            if event.type is not EventType.NODE_CHILDREN_CHANGED:
                called |= self._pop(self._data, event.path, child=False)
            if event.type in (EventType.NODE_CHILDREN_CHANGED, EventType.NODE_DELETED):
                called |= self._pop(self._child, event.path, child=True)
            fired.extend((watch, event) for _, watch in called)
        return fired

    def drop_session(self, session_id: int) -> None:
        at_once(self.dropping_session(session_id))

    def dropping_session(self, session_id: int) -> Steps[None]:
        """The same in steps, for an owner that leaves no more of them."""
        left = self._of_session.get(session_id)
        while left:
            for _ in range(min(len(left), _WATCHES_A_STEP)):
                child, path, watch = left.pop()
                table = self._child if child else self._data
                watchers = table[path]
                del watchers[session_id, watch]
                self._count -= 1
                self.characters -= len(path)
                if not watchers:
                    del table[path]
            yield
        self._of_session.pop(session_id, None)

    def _pop(self, table: _Table, path: str, *, child: bool) -> dict[tuple[int, Watch], None]:
        watchers = table.pop(path, {})
        for session_id, watch in watchers:
            left = self._of_session[session_id]
            left.discard((child, path, watch))
            self._count -= 1
            self.characters -= len(path)
            if not left:
                del self._of_session[session_id]
        return watchers
