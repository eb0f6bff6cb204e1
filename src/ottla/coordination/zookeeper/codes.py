"""ZooKeeper's numbers: operations, reserved request ids, flags of nodes, states in events, and errors.

An error travels as a number without a path or versions. Both directions stand here: what a server answers for an error
of ours (`code_of`), and which error of ours stands for a server's number (`error_of`).
"""

from __future__ import annotations

from enum import IntEnum, IntFlag
from typing import Final

from ottla.coordination.errors import (
    AuthenticationFailed,
    BadVersion,
    ConnectionLoss,
    CoordinationError,
    DataTooLarge,
    InvalidAccessList,
    InvalidPath,
    MultiFailed,
    NoChildrenForEphemerals,
    NodeExists,
    NoNode,
    NotAuthorized,
    NotEmpty,
    OperationUnknown,
    SessionClosed,
    SessionExpired,
    WriteRefused,
)


class OpCode(IntEnum):
    """What a request asks for: those of ZooKeeper 3.8's clients that this project speaks or refuses by name."""

    #: In a multi's answer: an operation that failed. As a multi's last header: nothing follows.
    ERROR = -1
    CLOSE_SESSION = -11
    CREATE = 1
    DELETE = 2
    EXISTS = 3
    GET_DATA = 4
    SET_DATA = 5
    GET_ACL = 6
    SET_ACL = 7
    GET_CHILDREN = 8
    SYNC = 9
    PING = 11
    GET_CHILDREN2 = 12
    CHECK = 13
    MULTI = 14
    CREATE2 = 15
    RECONFIG = 16
    CHECK_WATCHES = 17
    REMOVE_WATCHES = 18
    CREATE_CONTAINER = 19
    DELETE_CONTAINER = 20
    CREATE_TTL = 21
    MULTI_READ = 22
    AUTH = 100
    SET_WATCHES = 101
    SASL = 102
    GET_EPHEMERALS = 103
    GET_ALL_CHILDREN_NUMBER = 104
    SET_WATCHES2 = 105
    ADD_WATCH = 106
    WHO_AM_I = 107
    #: Not ZooKeeper's: asks a tree of this project (`OTTLA_PROTOCOL`) to end the session soon after its connection has
    #: closed. No other server is ever sent it.
    END_WITH_CONNECTION = 7001


#: The protocol version in a connect answer: ZooKeeper's servers say 0 and its clients do not look. A tree of this
#: project names itself by it, and thereby offers END_WITH_CONNECTION.
OTTLA_PROTOCOL: Final = 7001

#: Ids of requests that no counter gives out, and of notifications.
NOTIFICATION_XID: Final = -1
PING_XID: Final = -2
AUTH_XID: Final = -4


class CreateFlags(IntFlag):
    """What kind of node a create request wants. The last three are numbers of their own, not sums."""

    PERSISTENT = 0
    EPHEMERAL = 1
    SEQUENTIAL = 2
    EPHEMERAL_SEQUENTIAL = 3
    CONTAINER = 4
    TTL = 5
    SEQUENTIAL_TTL = 6


class KeeperState(IntEnum):
    """In an event: how the server sees the session."""

    DISCONNECTED = 0
    SYNC_CONNECTED = 3
    AUTH_FAILED = 4
    CONNECTED_READ_ONLY = 5
    EXPIRED = -112


class KeeperError(IntEnum):
    """ZooKeeper's error codes."""

    OK = 0
    SYSTEM_ERROR = -1
    #: In a failed multi's answer: of the operations behind the one that failed.
    RUNTIME_INCONSISTENCY = -2
    DATA_INCONSISTENCY = -3
    CONNECTION_LOSS = -4
    MARSHALLING_ERROR = -5
    UNIMPLEMENTED = -6
    OPERATION_TIMEOUT = -7
    BAD_ARGUMENTS = -8
    UNKNOWN_SESSION = -12
    NEW_CONFIG_NO_QUORUM = -13
    RECONFIG_IN_PROGRESS = -14
    API_ERROR = -100
    NO_NODE = -101
    NO_AUTH = -102
    BAD_VERSION = -103
    NO_CHILDREN_FOR_EPHEMERALS = -108
    NODE_EXISTS = -110
    NOT_EMPTY = -111
    SESSION_EXPIRED = -112
    INVALID_CALLBACK = -113
    INVALID_ACL = -114
    AUTH_FAILED = -115
    SESSION_MOVED = -118
    NOT_READ_ONLY = -119
    EPHEMERAL_ON_LOCAL_SESSION = -120
    NO_WATCHER = -121
    REQUEST_TIMEOUT = -122
    RECONFIG_DISABLED = -123
    SESSION_CLOSED_REQUIRE_SASL_AUTH = -124
    QUOTA_EXCEEDED = -125
    THROTTLED_OP = -127


#: The first class that an error of ours is an instance of.
_CODES: Final[tuple[tuple[type[CoordinationError], KeeperError], ...]] = (
    (NoNode, KeeperError.NO_NODE),
    (NodeExists, KeeperError.NODE_EXISTS),
    (BadVersion, KeeperError.BAD_VERSION),
    (NotEmpty, KeeperError.NOT_EMPTY),
    (NoChildrenForEphemerals, KeeperError.NO_CHILDREN_FOR_EPHEMERALS),
    (InvalidPath, KeeperError.BAD_ARGUMENTS),
    (DataTooLarge, KeeperError.BAD_ARGUMENTS),
    (InvalidAccessList, KeeperError.INVALID_ACL),
    (NotAuthorized, KeeperError.NO_AUTH),
    (AuthenticationFailed, KeeperError.AUTH_FAILED),
    (OperationUnknown, KeeperError.UNIMPLEMENTED),
    # "Was throttled and not executed at all, please retry": the one code that says that nothing has changed.
    (WriteRefused, KeeperError.THROTTLED_OP),
    (SessionExpired, KeeperError.SESSION_EXPIRED),
    (SessionClosed, KeeperError.SESSION_EXPIRED),
    (ConnectionLoss, KeeperError.CONNECTION_LOSS),
)

#: Of a server that refuses and says so: nothing was done.
_REFUSALS: Final = {
    KeeperError.THROTTLED_OP: WriteRefused,
    KeeperError.QUOTA_EXCEEDED: WriteRefused,
    KeeperError.NOT_READ_ONLY: WriteRefused,
    KeeperError.BAD_ARGUMENTS: InvalidPath,
    KeeperError.INVALID_ACL: InvalidAccessList,
    KeeperError.AUTH_FAILED: AuthenticationFailed,
    KeeperError.SESSION_CLOSED_REQUIRE_SASL_AUTH: AuthenticationFailed,
    KeeperError.UNIMPLEMENTED: OperationUnknown,
    KeeperError.SESSION_EXPIRED: SessionExpired,
    KeeperError.UNKNOWN_SESSION: SessionExpired,
}


def code_of(error: CoordinationError) -> KeeperError:
    """What a server answers. Of a multi: the code of the operation that failed."""
    if isinstance(error, MultiFailed):
        return code_of(error.error)
    return next((code for kind, code in _CODES if isinstance(error, kind)), KeeperError.SYSTEM_ERROR)


def name_of_code(code: int) -> str:
    try:
        return KeeperError(code).name
    except ValueError:
        return f"error {code}"


def is_certain(code: int) -> bool:
    """Whether a server that answers this says what became of a write."""
    return code == KeeperError.OK or not isinstance(error_of(code, ""), ConnectionLoss)


def error_of(code: int, path: str, version: int = -1) -> CoordinationError:
    """What a client raises for a server's code. `version` is the one that the request asked for.

    A code that does not say that nothing was done becomes a ConnectionLoss: nobody knows.
    """
    if code == KeeperError.NO_NODE:
        return NoNode(path)
    if code == KeeperError.NODE_EXISTS:
        return NodeExists(path)
    if code == KeeperError.BAD_VERSION:
        return BadVersion(path, version, -1)
    if code == KeeperError.NOT_EMPTY:
        return NotEmpty(path)
    if code == KeeperError.NO_CHILDREN_FOR_EPHEMERALS:
        return NoChildrenForEphemerals(path)
    if code == KeeperError.NO_AUTH:
        return NotAuthorized(path)
    kind = _REFUSALS.get(code, ConnectionLoss)  # type: ignore[call-overload]
    return kind(f"the server answers {name_of_code(code)} for {path}")  # type: ignore[no-any-return]
