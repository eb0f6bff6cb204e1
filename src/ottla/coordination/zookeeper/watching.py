"""The watches that one session has left, on the client's side.

The server knows of a session's watches only that there are some on a path: it sends one notification, which fires all
that were left there. What a read leaves depends on what it found: `exists` leaves a watch on data where there is a
node, and one on existence where there is none. After a reconnect the new server is given all of them, with the last
transaction up to which they were called, and notifies at once of what has happened since.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from ottla.coordination.interface import EventType, Watch
from ottla.coordination.zookeeper.codes import KeeperError, OpCode
from ottla.coordination.zookeeper.messages import SetWatchesRequest

#: Of paths in one request that leaves watches again, as in ZooKeeper's own client.
SET_WATCHES_BYTES_MAX: Final = 128 * 1024

#: By path on the server; a watch that was left twice is called once.
_Table = dict[str, dict[Watch, None]]


class LeftWatches:
    def __init__(self) -> None:
        self._data: _Table = {}
        self._exist: _Table = {}
        self._child: _Table = {}

    def __len__(self) -> int:
        return sum(len(watches) for table in (self._data, self._exist, self._child) for watches in table.values())

    def answered(self, op: OpCode, error: int, path: str, watch: Watch) -> None:
        """A read that was to leave `watch` has its answer."""
        if error == KeeperError.OK:
            table = self._child if op in (OpCode.GET_CHILDREN, OpCode.GET_CHILDREN2) else self._data
        elif error == KeeperError.NO_NODE and op == OpCode.EXISTS:
            table = self._exist
        else:
            return
        table.setdefault(path, {})[watch] = None

    def fired(self, event: EventType, path: str) -> list[Watch]:
        """The watches that a notification calls, each once, in the order in which they were left."""
        if event is EventType.NODE_CHILDREN_CHANGED:
            tables = [self._child]
        elif event is EventType.NODE_DELETED:
            tables = [self._data, self._exist, self._child]
        else:
            tables = [self._data, self._exist]
        watches: dict[Watch, None] = {}
        for table in tables:
            watches |= table.pop(path, {})
        return list(watches)

    def clear(self) -> None:
        for table in (self._data, self._exist, self._child):
            table.clear()

    def requests(self, last_zxid_seen: int) -> Iterator[SetWatchesRequest]:
        """What leaves all of them again with another server."""
        kinds: tuple[list[str], list[str], list[str]] = ([], [], [])
        size = 0
        for paths, table in zip(kinds, (self._data, self._exist, self._child), strict=True):
            for path in table:
                if size >= SET_WATCHES_BYTES_MAX:
                    yield SetWatchesRequest(last_zxid_seen, *map(tuple, kinds))
                    size = 0
                    for sent in kinds:
                        sent.clear()
                paths.append(path)
                size += len(path.encode())
        if any(kinds):
            yield SetWatchesRequest(last_zxid_seen, *map(tuple, kinds))
