"""Why a broker cannot use its log directories. Each message is one line and says what to do."""

from __future__ import annotations


class DirectoryError(Exception):
    """A log directory, or all of them, cannot be used as asked."""


class DirectoryLocked(DirectoryError):
    """Another process works in the directory."""


class WrongIdentity(DirectoryError):
    """The directory belongs to another broker or another cluster."""


class LostIdentity(DirectoryError):
    """Nothing says which broker this is any more, although there are partitions of it."""


class MisplacedTree(DirectoryError):
    """The coordination tree lies beside another log directory than the first."""


class NoUsableDirectory(DirectoryError):
    """Every configured log directory has failed."""


class UnreadableDirectory(DirectoryError):
    """The contents of a directory are asked for, and cannot be known."""


class DirectoryNotFound(DirectoryError):
    """The path is none of the configured log directories."""


class DirectoryOffline(DirectoryError):
    """The directory that this needs has failed; clients know it as KAFKA_STORAGE_ERROR."""


class PartitionOffline(DirectoryError):
    """The partition's files are damaged or stand twice: it stays as it is until somebody decides."""


class InconsistentTopicId(DirectoryError):
    """The partition's folder belongs to another topic of the same name."""


class MoveRefused(DirectoryError):
    """A replica cannot be moved like that, or not now."""
