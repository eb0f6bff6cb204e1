"""What storage raises: the world's faults, each with what its reader has to know to act on it."""

from __future__ import annotations

import errno
from collections.abc import Sequence
from enum import Enum
from typing import Final

from ottla.model import ErrorCode, TopicPartition

#: The disk has no room for us; everything that is on it stays readable.
_FULL: Final = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
#: What stands under a name is not what should be there, or nobody may look at it: no fault of the device.
_OF_A_NAME: Final = frozenset(
    {
        *(errno.EISDIR, errno.ENOTDIR, errno.ELOOP, errno.ENXIO, errno.EACCES, errno.EPERM, errno.ENAMETOOLONG),
        # Something is mounted there, or somebody puts files into a folder that is being removed.
        *(errno.EBUSY, errno.ENOTEMPTY),
    }
)
#: No descriptor is left to this process, or to the machine. The disk has nothing to do with it.
_NO_DESCRIPTOR: Final = frozenset({errno.EMFILE, errno.ENFILE})


class FaultKind(Enum):
    #: Writes are refused until there is room again; reads go on.
    DISK_FULL = "disk full"
    #: What needs another file opened is refused until there is a descriptor again; what is open goes on.
    NO_DESCRIPTOR = "no descriptor"
    #: The directory cannot be trusted any more: all its partitions go offline.
    DIRECTORY_FAILED = "directory failed"
    #: One log is damaged, or something else has taken a name in its folder; the directory and its other logs are fine.
    LOG_DAMAGED = "log damaged"
    #: Nothing is wrong: the log takes nothing until a worker has made its next segment.
    ROLLING = "rolling"


def has_no_descriptor(error: OSError) -> bool:
    return error.errno in _NO_DESCRIPTOR


def passes(error: OSError) -> bool:
    """Whether the directory is fine, and the same may succeed later: there was no room, or no descriptor."""
    return error.errno in _FULL or error.errno in _NO_DESCRIPTOR


def _kind_of(error: OSError) -> FaultKind:
    if error.errno in _FULL:
        return FaultKind.DISK_FULL
    if error.errno in _NO_DESCRIPTOR:
        return FaultKind.NO_DESCRIPTOR
    return FaultKind.LOG_DAMAGED if error.errno in _OF_A_NAME else FaultKind.DIRECTORY_FAILED


class StorageFault(Exception):
    """The disk refused. What the log held before the call is still there and still known."""

    def __init__(self, kind: FaultKind, path: str, error: OSError) -> None:
        named = error.filename if kind is FaultKind.LOG_DAMAGED and error.filename is not None else path
        super().__init__(f"{named}: {error.strerror or error}")
        self.kind = kind
        self.path = path
        self.errno = error.errno

    @classmethod
    def of(cls, path: str, error: OSError) -> StorageFault:
        return cls(_kind_of(error), path, error)

    @classmethod
    def halfway(cls, path: str, error: OSError) -> StorageFault:
        """Of a change that consists of several: nobody may go on with what is there now."""
        kind = _kind_of(error)
        return cls(FaultKind.DIRECTORY_FAILED if kind is FaultKind.LOG_DAMAGED else kind, path, error)

    @classmethod
    def of_ours(cls, path: str, fault: Exception) -> StorageFault:
        """A fault of the broker's own: nobody knows what is in a file any more, until the next start reads it."""
        return cls(FaultKind.DIRECTORY_FAILED, path, OSError(errno.EIO, f"a fault of the broker: {fault!r}"))

    @property
    def directory_failed(self) -> bool:
        return self.kind is FaultKind.DIRECTORY_FAILED


class RollDue(StorageFault):
    """The log's next segment is to be made by a worker, or is being made, before anything else is appended.

    What was staged before stays staged. A caller that can wait does so (`replication/rolls.py`); to any other it is a
    fault that passes.
    """

    def __init__(self, tp: TopicPartition, path: str) -> None:
        Exception.__init__(self, f"{tp}: its next segment is being made")
        self.kind = FaultKind.ROLLING
        self.path = path
        self.errno = errno.EAGAIN


class CorruptLog(StorageFault):
    """A log is damaged where it was known to be good. Nothing was cut: the partition goes offline."""

    def __init__(self, tp: TopicPartition, path: str, position: int, reason: str) -> None:
        self._say(
            f"{tp}: {path} is damaged at byte {position}: {reason}. These records were safely on disk before, so "
            f"nothing has been cut. Restore the file from a backup or another replica; or, to give up what is damaged, "
            f"move the folder away, put an empty one in its place, and let the partition start empty or be copied from "
            f"its leader",
            tp,
            path,
            position,
        )

    def _say(self, message: str, tp: TopicPartition, path: str, position: int) -> None:
        Exception.__init__(self, message)
        self.kind = FaultKind.LOG_DAMAGED
        self.path = path
        self.errno = errno.EIO
        self.tp = tp
        self.position = position


class LostRecords(CorruptLog):
    """A log ends below what was safely on disk, without a torn batch: files were cut, exchanged or removed."""

    def __init__(self, tp: TopicPartition, directory: str, end_offset: int, recovery_point: int) -> None:
        self._say(
            f"{tp}: {directory} ends at offset {end_offset}, and its records up to {recovery_point} were safely on "
            f"disk before. Nothing has been changed. Restore the folder from a backup or another replica; or stop the "
            f"broker and, to go on with what is left, set the partition's recovery-point-offset-checkpoint to "
            f"{end_offset}; to give that up as well, move the folder away and put an empty one in its place",
            tp,
            directory,
            0,
        )


class DamagedIndex(Exception):
    """An index file is not what its format says. It is rebuilt from the log, so nobody outside storage sees this."""


class BadBatch(Exception):
    """What lies at this position of a log file is no batch that may stand there."""

    def __init__(self, position: int, reason: str) -> None:
        super().__init__(f"byte {position}: {reason}")
        self.position = position
        self.reason = reason


class OffsetOutsideLog(Exception):
    """Below the log's start or above its end."""

    def __init__(self, offset: int, start: int, end: int) -> None:
        super().__init__(f"offset {offset} is not between {start} and {end}")
        self.offset = offset


class AppendRefused(Exception):
    """A batch may not be appended. The log is as it was."""

    def __init__(
        self,
        error: ErrorCode,
        message: str,
        record_errors: Sequence[tuple[int, str | None]] = (),
        *,
        is_no_batch: bool = False,
    ) -> None:
        super().__init__(f"{error.name}: {message}")
        #: What came is not the one batch that a request may carry.
        self.is_no_batch = is_no_batch
        self.error = error
        self.message = message
        #: Index in the batch, and the reason, of each single record that is at fault.
        self.record_errors = list(record_errors)


class TooLongToCheck(AppendRefused):
    """The batch has to be looked into, and has too much in it for the loop: `append.examine_whole` is for other places.

    A caller that has no other place answers with the code, which makes a producer split the batch.
    """

    def __init__(self) -> None:
        super().__init__(ErrorCode.MESSAGE_TOO_LARGE, "the batch has too many records to be looked at one by one here")
