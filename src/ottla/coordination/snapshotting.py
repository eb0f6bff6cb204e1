"""When the store takes snapshots: beside the writes that go on, into a journal that begins where the snapshot ends."""

from __future__ import annotations

import asyncio
from functools import partial

from ottla import logs
from ottla.coordination.journal import JournalFile
from ottla.coordination.loading import journal_name, prune, snapshot_name
from ottla.coordination.snapshot import TreeAsItIs
from ottla.coordination.tree import ZnodeTree
from ottla.ports.clock import Clock
from ottla.ports.disk import Disk
from ottla.ports.whole_files import write_atomically
from ottla.ports.workers import Workers
from ottla.steps import in_turns

_log = logs.logger("coordination")


class Snapshotting:
    def __init__(
        self, disk: Disk, workers: Workers, clock: Clock, directory: str, *, every_txns: int, every_bytes: int
    ) -> None:
        self._disk = disk
        self._workers = workers
        self._clock = clock
        self._directory = directory
        self._every_txns = every_txns
        self._every_bytes = every_bytes
        self._running: asyncio.Task[None] | None = None
        #: Of the newest snapshot, or of the last try at one: a disk that refuses is not asked again at once.
        self.zxid = 0
        #: How large the present journal was when none could be begun behind it.
        self._refused_bytes = 0
        #: No more of them in this life.
        self._given_up = False

    def due(self, zxid: int, journal: JournalFile) -> bool:
        if self._running is not None or self._given_up or journal.first_zxid > zxid:
            return False
        new_bytes = journal.size - self._refused_bytes
        return zxid - self.zxid >= self._every_txns or (zxid > self.zxid and new_bytes >= self._every_bytes)

    async def next_journal(self, zxid: int, present: JournalFile) -> JournalFile | None:
        """The journal behind a snapshot at `zxid`, durable; None where the disk refuses, and the `present` one goes
        on."""
        path = f"{self._directory}/{journal_name(zxid + 1)}"
        journal: JournalFile | None = None
        try:
            journal = JournalFile.create(self._disk, path, zxid + 1)
            await self._workers.thread(partial(journal.sync_new, self._directory))
        except OSError as error:
            _log.error("could not begin a new journal", path=path, fault=str(error))
            if journal is not None:
                journal.close()
            self.zxid, self._refused_bytes = zxid, present.size
            self._forget(path)
            return None
        self._refused_bytes = 0
        return journal

    def _forget(self, path: str) -> None:
        """A file that says where the next journal begins, while the old one goes on, would mislead a later `prune`."""
        try:
            self._disk.remove(path)
        except FileNotFoundError:
            pass
        except OSError:
            self._given_up = True

    def start(self, tree: ZnodeTree) -> None:
        """Writes a snapshot of the tree as it is now, while the store goes on."""
        self._running = asyncio.get_running_loop().create_task(self._encode_and_write(TreeAsItIs(tree)))
        self._running.add_done_callback(self._done)

    async def _encode_and_write(self, tree: TreeAsItIs) -> None:
        try:
            content = await in_turns(tree.encoding(), self._clock.monotonic_ms)
        finally:
            tree.let_go()
        await self.write(tree.zxid, content)

    def _done(self, task: asyncio.Task[None]) -> None:
        self._running = None
        if not task.cancelled() and (error := task.exception()):
            _log.error("a snapshot of the tree failed", directory=self._directory, fault=repr(error))

    async def finish(self) -> None:
        """Returns when no snapshot is under way."""
        if self._running is not None:
            await asyncio.wait([self._running])

    async def write(self, zxid: int, content: bytes) -> None:
        disk, directory = self._disk, self._directory

        def work() -> None:
            write_atomically(disk, f"{directory}/{snapshot_name(zxid)}", content)
            prune(disk, directory)

        try:
            await self._workers.thread(work)
        except OSError as error:
            _log.error("a snapshot of the tree cannot be written: journals stay", path=directory, fault=str(error))
        finally:
            self.zxid = zxid
