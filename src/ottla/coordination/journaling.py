"""The journal of a durable tree, and what its disk has no room for.

A frame of transactions is written, synced by a worker, and then durable. At a start, frames that the disk has no room
for are held back in memory, and become one frame once there is room.
"""

from __future__ import annotations

import asyncio
import errno
from collections.abc import Callable, Sequence
from functools import partial
from typing import Final

from ottla import logs
from ottla.coordination.journal import FRAME_BYTES_MAX, JournalFile, encode_frame
from ottla.coordination.loading import LoadedTree, LoadReport, Opened, open_again
from ottla.ports.disk import Disk
from ottla.ports.workers import Workers

#: How often a disk without room is tried again.
_RETRY_S: Final = 1.0
#: What is said of a disk that has no room for us.
_FULL: Final = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
#: The leader epochs of some 200,000 partitions, and half of what a frame may have.
_HELD_BYTES_MAX: Final = FRAME_BYTES_MAX // 2

_log = logs.logger("coordination")


class FrameRefused(Exception):
    """Nothing of the frame is in the journal."""

    def __init__(self, why: str, lost: str | None = None) -> None:
        super().__init__(why)
        self.why = why
        #: Why the journal is lost as well; None where it goes on.
        self.lost = lost


class JournalLost(Exception):
    """Nobody knows what is on the medium: the next start finds out."""


class HeldTransactions:
    """Transactions that are in the tree and in no file, as the disk had no room for them; they follow one another."""

    def __init__(self) -> None:
        self._txns: list[bytes] = []
        #: At most _HELD_BYTES_MAX.
        self.bytes = 0

    def __bool__(self) -> bool:
        return bool(self._txns)

    def add(self, txns: Sequence[bytes]) -> bool:
        """Whether there was a place for them here."""
        size = sum(map(len, txns))
        if self.bytes + size > _HELD_BYTES_MAX:
            return False
        self._txns += txns
        self.bytes += size
        return True

    def frame(self, first_zxid: int) -> bytes:
        """All of them, in one frame: what a crash may leave of two would not pass for a torn tail."""
        return encode_frame(first_zxid, self._txns)

    def clear(self) -> None:
        self._txns.clear()
        self.bytes = 0


class Journaling:
    def __init__(self, disk: Disk, workers: Workers, directory: str, probe: Callable[[], None]) -> None:
        """`probe` is called from time to time while something is held back, and has a write come."""
        self._disk = disk
        self._workers = workers
        self._directory = directory
        self._probe = probe
        #: None: it is not open, or there was no room to go on with it yet.
        self.file: JournalFile | None = None
        #: The last transaction that is certainly on the medium.
        self.durable_zxid = 0
        self.report = LoadReport(0, 0, 0, None, ())
        #: Transactions behind it that the journal had no room for.
        self._held = HeldTransactions()
        #: Whether there may be more of them.
        self.may_hold = False
        #: What was found, while there is no room to go on with the journal.
        self._unopened: LoadedTree | None = None
        self._retry: asyncio.TimerHandle | None = None
        #: Called when everything is durable again that was held back.
        self._when_caught_up: list[Callable[[], None]] = []

    def take(self, loaded: LoadedTree, opened: Opened) -> None:
        """Raises the OSError of a journal that could not be opened, unless all it lacks is room."""
        if not isinstance(opened, OSError):
            self.file, self.report = opened
            self._unopened = None
        elif (self.may_hold or self._unopened is not None) and opened.errno in _FULL:
            self.report, self._unopened = loaded.report, loaded
            self._try_again_later(opened)
        else:
            raise opened

    @property
    def is_behind(self) -> bool:
        """Whether the disk has no room for what is in the tree already."""
        return bool(self._held) or self._unopened is not None

    def when_caught_up(self, call: Callable[[], None]) -> None:
        assert self.is_behind, "nothing is held back"
        self._when_caught_up.append(call)

    def stop_trying(self) -> None:
        if self._retry is not None:
            self._retry.cancel()

    def close(self) -> None:
        if self.file:
            self.file.close()
            self.file = None

    # One frame.

    async def write(self, first_zxid: int, txns: Sequence[bytes]) -> None:
        """Returns when the transactions are durable, or held back. Raises FrameRefused or JournalLost."""
        if self.is_behind:
            self._hold(txns)
            return
        journal = self.file
        assert journal is not None
        try:
            journal.append(encode_frame(first_zxid, txns))
        except OSError as error:
            if not self.may_hold or error.errno not in _FULL:
                raise self._refused(journal, error) from error
            self._cut(journal, error)
            self._hold(txns)
            self._try_again_later(error)
        else:
            await self._sync(journal)

    async def _sync(self, journal: JournalFile) -> None:
        try:
            await self._workers.thread(journal.sync)
        except OSError as error:
            raise JournalLost(f"{journal.path} could not be synced: {error}") from error

    def _refused(self, journal: JournalFile, error: OSError) -> FrameRefused:
        """The disk did not take the frame: nothing of it happened."""
        why = f"{journal.path} cannot be written: {error}"
        if error.errno not in _FULL:
            # Room may come back; a device that failed, or that is read-only now, does not.
            return FrameRefused(why, lost=why)
        try:
            self._cut(journal, error)
        except JournalLost as lost:
            return FrameRefused(why, lost=str(lost))
        # Those who were refused try again, all of them, for as long as the disk is full.
        _log.error_limited(
            "refused writes to the tree: the journal cannot be written", path=journal.path, fault=str(error)
        )
        return FrameRefused(why)

    @staticmethod
    def _cut(journal: JournalFile, error: OSError) -> None:
        """Takes back what was written of a frame."""
        try:
            journal.cut()
        except OSError as cut_error:
            why = f"{journal.path} cannot be written ({error}) and not be cut back ({cut_error})"
            raise JournalLost(why) from cut_error

    # A disk without room, at a start.

    def _hold(self, txns: Sequence[bytes]) -> None:
        if not self._held.add(txns):
            raise FrameRefused(f"{self._held.bytes} bytes wait for room in {self._directory} already")

    async def catch_up(self, zxid: int) -> bool:
        """Whether everything up to `zxid` is durable, which was held back. Raises JournalLost."""
        if (loaded := self._unopened) is not None:
            opened = await self._workers.thread(partial(open_again, self._disk, self._directory, loaded))
            try:
                self.take(loaded, opened)
            except OSError as error:
                raise JournalLost(f"the journal in {self._directory} cannot be opened: {error}") from error
        journal = self.file
        if journal is None:
            return False
        try:
            if self._held:
                journal.append(self._held.frame(self.durable_zxid + 1))
        except OSError as error:
            if error.errno not in _FULL:
                raise JournalLost(f"{journal.path} cannot be written: {error}") from error
            self._cut(journal, error)
            self._try_again_later(error)
            return False
        await self._sync(journal)
        self.durable_zxid = zxid
        self._held.clear()
        _log.info("there is room for the journal again", path=journal.path)
        calls, self._when_caught_up = self._when_caught_up, []
        for call in calls:
            call()
        return True

    def _try_again_later(self, error: OSError) -> None:
        _log.warning_limited(
            "the disk has no room for the tree's journal: what the start writes is held back, and changes are refused",
            directory=self._directory,
            fault=str(error),
        )
        if self._retry is not None:
            self._retry.cancel()
        self._retry = asyncio.get_running_loop().call_later(_RETRY_S, self._probe)
