"""What the broker knows of coordination: a tree of znodes, sessions, and watches that fire once.

This is ZooKeeper's model, in asyncio's terms. A node has data (1 MB at most), a version that rises with every `set`,
and children. An *ephemeral* node lives as long as the session that created it; a *sequential* one gets a number that
its parent never gave out before. Writes can be made conditional on a version and grouped into a `multi`, which is done
whole or not at all. A *watch* is a callable that is called once, when what it was left on changes.

Providers differ in where the tree is: in this process and its disk (`local`), or at the other end of a connection.
What holds for all of them is held by one contract suite (tests/coordination/contract.py):

- Calls of one session take effect in the order in which they began to run, also when they are awaited together.
- What a read returns has been made durable; what a write returned stays.
- `ConnectionLoss` means that the result of a write is unknown.
- A watch is called before its session can read what has changed, and not before the read that left it has returned.
  When a session ends its watches are dropped uncalled: the session's listeners are called with its end instead.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import Enum, IntEnum
from typing import Final, NamedTuple, Protocol

#: In conditional writes: whatever the version is.
ANY_VERSION: Final = -1
#: Data of one node, as well as all data and paths of one multi together: ZooKeeper's default jute.maxbuffer.
REQUEST_BYTES_MAX: Final = 0xFFFFF
#: Operations in one multi. ZooKeeper has no such bound of its own; ours keeps a multi under a few tens of milliseconds.
MULTI_OPS_MAX: Final = 10_000


class NoData(bytes):
    """What a node has that was made without data: null to ZooKeeper, which keeps it apart from data of no bytes.

    To all of us it is empty. It stays itself through the tree, its files and its wire, since Kafka's brokers make nodes
    without data and take empty data for damaged.
    """

    __slots__ = ()


#: The only one: it is known by its identity.
NO_DATA: Final = NoData()


class Stat(NamedTuple):
    """What ZooKeeper knows of a node besides its data. A zxid is the number of a transaction."""

    czxid: int
    mzxid: int
    ctime_ms: int
    mtime_ms: int
    #: How often the data was set; a conditional write names it.
    version: int
    #: How often children came or went.
    cversion: int
    #: How often the access list was set.
    aversion: int
    #: The session that the node lives as long as, 0 where it stays.
    ephemeral_owner: int
    data_length: int
    num_children: int
    #: The last transaction that added or removed a child.
    pzxid: int


class EventType(IntEnum):
    """ZooKeeper's numbers."""

    NODE_CREATED = 1
    NODE_DELETED = 2
    NODE_DATA_CHANGED = 3
    NODE_CHILDREN_CHANGED = 4


class WatchEvent(NamedTuple):
    type: EventType
    path: str


Watch = Callable[[WatchEvent], None]


class SessionEvent(Enum):
    CONNECTED = "connected"
    #: Nothing can be read or written for now; the session may still live.
    DISCONNECTED = "disconnected"
    #: The session is over: ephemeral nodes and watches are gone. Nothing follows.
    EXPIRED = "expired"


SessionListener = Callable[[SessionEvent], None]


class SessionInfo(NamedTuple):
    id: int
    #: A caller that knows it may take the session over from another connection.
    password: bytes
    timeout_ms: int


class Create(NamedTuple):
    path: str
    data: bytes = b""
    ephemeral: bool = False
    sequential: bool = False


class Delete(NamedTuple):
    path: str
    version: int = ANY_VERSION


class SetData(NamedTuple):
    path: str
    data: bytes
    version: int = ANY_VERSION


class Check(NamedTuple):
    """Changes nothing; fails its multi unless the node is there at this version."""

    path: str
    version: int = ANY_VERSION


Op = Create | Delete | SetData | Check


class CreatedNode(NamedTuple):
    #: With the number that a sequential node was given.
    path: str
    #: Of a node that a multi created the times may be 0: ZooKeeper does not say them there.
    stat: Stat


class TreeAge(NamedTuple):
    """What a tree says of itself, before a broker begins with it."""

    #: When its cluster's id was made; None: nobody ever finished a start with it.
    created_ms: int | None
    #: Its last transaction.
    zxid: int


#: Of a Create: Created; of a SetData: the new Stat; of a Delete or a Check: None.
OpResult = CreatedNode | Stat | None


class Coordination(Protocol):
    """One session with a tree."""

    @property
    def session(self) -> SessionInfo: ...

    @property
    def may_live(self) -> bool:
        """Whether the session can still be alive by this process's clock. Where it cannot, the tree may have given
        away what hung on it."""
        ...

    def listen(self, listener: SessionListener) -> None:
        """Calls `listener` with every event of this session from now on."""
        ...

    async def create(
        self, path: str, data: bytes = b"", *, ephemeral: bool = False, sequential: bool = False
    ) -> CreatedNode:
        """Raises NodeExists, NoNode (the parent is missing), NoChildrenForEphemerals."""
        ...

    async def delete(self, path: str, version: int = ANY_VERSION) -> None:
        """Raises NoNode, BadVersion, NotEmpty."""
        ...

    async def exists(self, path: str, watch: Watch | None = None) -> Stat | None:
        """The watch is left also where there is no node: it is then called at its creation."""
        ...

    async def get(self, path: str, watch: Watch | None = None) -> tuple[bytes, Stat]:
        """Raises NoNode, and then leaves no watch."""
        ...

    async def get_many(self, paths: Sequence[str]) -> list[tuple[bytes, Stat] | None]:
        """Many nodes in one go, None where there is none: a start reads thousands. Not one point in time."""
        ...

    async def set(self, path: str, data: bytes, version: int = ANY_VERSION) -> Stat:
        """Raises NoNode, BadVersion."""
        ...

    async def children(self, path: str, watch: Watch | None = None) -> tuple[list[str], Stat]:
        """Names, sorted. Raises NoNode, and then leaves no watch."""
        ...

    async def multi(self, ops: Sequence[Op]) -> list[OpResult]:
        """All or nothing, under one zxid. Raises MultiFailed."""
        ...

    async def sync(self, path: str) -> None:
        """Returns when this session sees everything that any session wrote before the call."""
        ...

    async def close(self) -> None:
        """Ends the session: its ephemeral nodes are deleted."""
        ...
