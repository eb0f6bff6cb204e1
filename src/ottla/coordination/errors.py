"""What coordination may answer instead of a result.

The split that matters to a caller is by what has happened: most errors say that nothing did, `ConnectionLoss` says
that nobody knows. A caller that gets `ConnectionLoss` reads the tree again before it decides anything.
"""

from __future__ import annotations


class CoordinationError(Exception):
    """The base of everything that a provider raises."""


class NoNode(CoordinationError):
    def __init__(self, path: str) -> None:
        super().__init__(f"there is no znode {path}")
        self.path = path


class NodeExists(CoordinationError):
    def __init__(self, path: str) -> None:
        super().__init__(f"the znode {path} exists already")
        self.path = path


class BadVersion(CoordinationError):
    """The node has changed since the version that the caller knows."""

    def __init__(self, path: str, expected: int, actual: int) -> None:
        super().__init__(f"the znode {path} is at version {actual}, not {expected}")
        self.path = path
        self.expected = expected
        #: -1 where the provider does not say.
        self.actual = actual


class NotEmpty(CoordinationError):
    def __init__(self, path: str) -> None:
        super().__init__(f"the znode {path} has children")
        self.path = path


class NoChildrenForEphemerals(CoordinationError):
    def __init__(self, path: str) -> None:
        super().__init__(f"an ephemeral znode cannot be the parent of {path}")
        self.path = path


class InvalidPath(CoordinationError):
    """Not a path that ZooKeeper takes, or an operation that a path does not allow (deleting the root)."""


class NotAuthorized(CoordinationError):
    """The access list of a node does not let this session do that."""

    def __init__(self, path: str) -> None:
        super().__init__(f"the access list of {path} does not allow it")
        self.path = path


class InvalidAccessList(CoordinationError):
    """Not an access list that the tree takes."""


class AuthenticationFailed(CoordinationError):
    """The tree does not take these credentials, or wants some."""


class OperationUnknown(CoordinationError):
    """The tree does not know this operation."""


class DataTooLarge(CoordinationError):
    """More bytes than one request may carry (ZooKeeper's jute.maxbuffer)."""


class MultiFailed(CoordinationError):
    """One operation of a multi failed, therefore none was done."""

    def __init__(self, index: int, error: CoordinationError) -> None:
        super().__init__(f"operation {index} of a multi failed: {error}")
        #: Which of the operations it was, and its own error.
        self.index = index
        self.error = error


class WriteRefused(CoordinationError):
    """Nothing was written and nothing has changed: a full disk, or a full queue. The session goes on."""


class ConnectionLoss(CoordinationError):
    """The connection or the storage failed on the way: the write may or may not have been done."""


class SessionExpired(CoordinationError):
    """The session is over, its ephemeral nodes and watches are gone; a new session is needed."""


class SessionClosed(CoordinationError):
    """`close` was called on this session here."""


class ServersUnreachable(CoordinationError):
    """At start: no server of the ensemble could be connected to in time."""


class StorageDamaged(CoordinationError):
    """At start: the files of the tree cannot be trusted. One line that names the file and what to do."""


class DirectoryInUse(CoordinationError):
    """At start: another process has the tree's directory."""
