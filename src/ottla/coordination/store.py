"""The durable tree: one queue of reads and writes, group commits, snapshots.

Writes that wait are applied to the tree together, written as one frame, synced by a worker, and only then answered and
handed to watches; what comes meanwhile waits for the next frame. Reads wait behind the writes that came before them, so
that nobody sees what a power cut could still take back; with no write under way they are answered at once. A disk that
has no room for the frame costs nothing but these writes: they are undone. A start is another matter: a broker whose
disk is full is to serve what it has, and what it writes (sessions, registrations, epochs) means nothing without it.
So until `start_ends` such writes are held back in memory, and are one frame once there is room. After a sync that
failed nobody knows what is on the medium: the store gives up for good, and says so to all sessions.
"""

from __future__ import annotations

import asyncio
import errno
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Final, TypeVar

from ottla import logs
from ottla.coordination.codec import encode_txn
from ottla.coordination.errors import (
    ConnectionLoss,
    CoordinationError,
    DataTooLarge,
    DirectoryInUse,
    MultiFailed,
    SessionClosed,
    SessionExpired,
    WriteRefused,
)
from ottla.coordination.held_back import HeldTransactions
from ottla.coordination.interface import (
    MULTI_OPS_MAX,
    REQUEST_BYTES_MAX,
    OpResult,
    SessionEvent,
    SessionInfo,
    SessionListener,
)
from ottla.coordination.journal import JournalFile, encode_frame
from ottla.coordination.leases import SessionLeases
from ottla.coordination.loading import (
    LoadedTree,
    LoadReport,
    Opened,
    TreeCheck,
    load_and_open,
    nothing_to_check,
    open_again,
)
from ottla.coordination.requests import ReadRequest, WriteRequest, fail_answer, size_of
from ottla.coordination.snapshot import encode_snapshot, encoding_snapshot
from ottla.coordination.snapshotting import Snapshotting
from ottla.coordination.tree import AppliedTransaction, CloseSession, OpenSession, TreeOp, ZnodeTree
from ottla.coordination.watches import WatchTable
from ottla.ports.clock import Clock
from ottla.ports.disk import Disk, Lock
from ottla.ports.entropy import Entropy
from ottla.ports.workers import Workers
from ottla.steps import Steps, in_turns

#: Requests that wait. Far more than one broker has under way; beyond it writes are refused and reads fail.
QUEUE_MAX: Final = 20_000
#: A frame is closed when it has this much, so that the first writer in it does not wait for a stream of others.
FRAME_BYTES: Final = 4 * 1024 * 1024
#: How often a disk without room is tried again.
_RETRY_S: Final = 1.0
#: What is said of a disk that has no room for us.
_FULL: Final = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
#: The session of the store's own transactions, which end other sessions.
STORE_SESSION: Final = 0

_log = logs.logger("coordination")
T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreOptions:
    #: A snapshot is taken after so many transactions or journal bytes. Replaying 10,000 small ones takes about 50 ms.
    snapshot_txns: int = 10_000
    snapshot_bytes: int = 8 * 1024 * 1024
    #: Whether the sessions of an earlier run go on (their owners will connect again), or end at start.
    keep_sessions: bool = False
    #: Whether the start of a tree that was there goes on where the disk has no room for what it writes.
    hold_back: bool = False


class TreeStore:
    """One directory's tree. Sessions are opened on it; `ottla.coordination.local` gives them the common interface."""

    def __init__(
        self,
        disk: Disk,
        workers: Workers,
        clock: Clock,
        entropy: Entropy,
        directory: str,
        options: StoreOptions | None = None,
    ) -> None:
        self._disk = disk
        self._workers = workers
        self._clock = clock
        self._entropy = entropy
        self.directory = directory
        self._options = options or StoreOptions()
        self._snapshots = Snapshotting(
            disk,
            workers,
            directory,
            every_txns=self._options.snapshot_txns,
            every_bytes=self._options.snapshot_bytes,
        )
        self._lock: Lock | None = None
        self._journal: JournalFile | None = None
        self._tree = ZnodeTree()
        self._watches = WatchTable()
        self._leases = SessionLeases()
        self._listeners: dict[int, list[SessionListener]] = {}
        self._queue: deque[WriteRequest | ReadRequest] = deque()
        self._pump: asyncio.Task[None] | None = None
        self._last_session_id = 0
        #: The writes of the group commit that is under way.
        self._batch: Sequence[WriteRequest] = ()
        #: What to raise and why, when nothing goes on: the disk failed, or the store was closed.
        self._over: tuple[type[CoordinationError], str] | None = None
        #: The last transaction that is certainly on the medium.
        self.durable_zxid = 0
        #: Transactions behind it that the journal had no room for.
        self._held = HeldTransactions()
        #: Whether there may be more of them.
        self._may_hold = False
        #: What was found, while there is no room to go on with the journal.
        self._unopened: LoadedTree | None = None
        self._retry: asyncio.TimerHandle | None = None
        #: Called when everything is durable again that was held back.
        self._when_caught_up: list[Callable[[], None]] = []
        self.report = LoadReport(0, 0, 0, None, ())

    # The store's life.

    async def open(self, check: TreeCheck = nothing_to_check) -> None:
        """Loads the tree. Raises StorageDamaged, DirectoryInUse or OSError.

        `check` may raise as well, of a tree that is not the one that was expected: nothing was written yet.
        """
        disk, directory = self._disk, self.directory
        if not disk.exists(directory):
            disk.make_directory(directory)
        try:
            self._lock = disk.lock(f"{directory}/.lock")
        except BlockingIOError as error:
            raise DirectoryInUse(f"{directory} is in use by another process") from error
        try:
            loaded, opened = await self._workers.thread(lambda: load_and_open(disk, directory, check))
            # Of a first start there is nothing to serve.
            self._may_hold = self._options.hold_back and loaded.zxid > 0
            self._take_journal(loaded, opened)
        except BaseException:
            self._release()
            raise
        self._tree = loaded.tree
        self.durable_zxid = loaded.tree.zxid
        self._snapshots.zxid = loaded.report.snapshot_zxid
        self._last_session_id = max(self._tree.sessions, default=0)
        now_ms = self._clock.monotonic_ms()
        for session in list(self._tree.sessions.values()):
            if self._options.keep_sessions:
                self._leases.grant(session.id, session.timeout_ms, now_ms)
            else:
                await self.write(STORE_SESSION, [CloseSession(session.id)])

    def _take_journal(self, loaded: LoadedTree, opened: Opened) -> None:
        """Raises the OSError of a journal that could not be opened, unless all it lacks is room."""
        if not isinstance(opened, OSError):
            self._journal, self.report = opened
            self._unopened = None
        elif (self._may_hold or self._unopened is not None) and opened.errno in _FULL:
            self.report, self._unopened = loaded.report, loaded
            self._try_again_later(opened)
        else:
            raise opened

    def start_ends(self) -> None:
        """From here on a write that the disk has no room for is refused."""
        self._may_hold = False

    @property
    def is_behind(self) -> bool:
        """Whether the disk has no room for what is in the tree already."""
        return bool(self._held) or self._unopened is not None

    def when_caught_up(self, call: Callable[[], None]) -> None:
        """Calls once everything is durable that is held back."""
        assert self.is_behind, "nothing is held back"
        self._when_caught_up.append(call)

    async def close(self) -> None:
        """Finishes what waits, takes a last snapshot, and lets the directory go."""
        if self._over is None:
            self._over = (SessionClosed, f"the tree in {self.directory} is closed")
        if self._pump:
            await asyncio.wait([self._pump])
        if self._retry is not None:
            self._retry.cancel()
        await self._snapshots.finish()
        if self._over[0] is SessionClosed and self._tree.zxid > self._snapshots.zxid:
            await self._snapshots.write(self._tree.zxid, encode_snapshot(self._tree))
        self._release()

    def _release(self) -> None:
        if self._journal:
            self._journal.close()
            self._journal = None
        if self._lock:
            self._lock.release()
            self._lock = None

    # Sessions.

    async def open_session(self, timeout_ms: int, *, leased: bool = False) -> SessionInfo:
        """A leased session ends unless it is touched in time; another one when it is closed."""
        # Made from the time, like ZooKeeper's, and from the zxid: ids of different runs differ even in one millisecond.
        fresh = (self._clock.wall_ms() << 20) + (self._tree.zxid & 0xFFFFF)
        self._last_session_id = max(fresh, self._last_session_id + 1)
        session = SessionInfo(self._last_session_id, self._entropy.token(16), timeout_ms)
        await self.write(STORE_SESSION, [OpenSession(session)])
        if leased:
            self._leases.grant(session.id, timeout_ms, self._clock.monotonic_ms())
        return session

    def session(self, session_id: int) -> SessionInfo | None:
        return self._tree.sessions.get(session_id)

    def touch(self, session_id: int) -> None:
        self._leases.touch(session_id, self._clock.monotonic_ms())

    def listen(self, session_id: int, listener: SessionListener) -> None:
        self._listeners.setdefault(session_id, []).append(listener)

    async def end_session(self, session_id: int, event: SessionEvent | None) -> None:
        """Deletes its ephemeral nodes; its listeners get `event`. Raises SessionExpired where it is over."""
        try:
            await self.write(STORE_SESSION, [CloseSession(session_id)])
        except MultiFailed as failed:
            raise failed.error from None
        if event:
            self._tell_session(session_id, event)
        self._listeners.pop(session_id, None)

    async def expire_overdue(self) -> list[int]:
        """Ends the sessions that were not touched in time."""
        overdue = self._leases.overdue(self._clock.monotonic_ms())
        for session_id in overdue:
            try:
                await self.end_session(session_id, SessionEvent.EXPIRED)
            except SessionExpired:
                continue
        return overdue

    def _tell_session(self, session_id: int, event: SessionEvent) -> None:
        for listener in self._listeners.get(session_id, []):
            asyncio.get_running_loop().call_soon(listener, event)

    @property
    def fault(self) -> str | None:
        """Why the tree is lost to this process; None while it is not."""
        return self._over[1] if self._over is not None and self._over[0] is SessionExpired else None

    # Requests.

    @property
    def watches(self) -> WatchTable:
        """Reads leave their watches here, inside their action."""
        return self._watches

    async def write(self, session_id: int, ops: Sequence[TreeOp]) -> list[OpResult]:
        """Applies `ops` as one transaction, durably. Raises MultiFailed where one of them fails."""
        if len(ops) > MULTI_OPS_MAX:
            raise DataTooLarge(f"{len(ops)} operations in a multi: {MULTI_OPS_MAX} are the limit")
        size = sum(size_of(op) for op in ops)
        if len(ops) > 1 and size > REQUEST_BYTES_MAX:
            raise DataTooLarge(f"a multi of {size} bytes: {REQUEST_BYTES_MAX} are the limit")
        self._check_open()
        answer: asyncio.Future[list[OpResult]] = asyncio.get_running_loop().create_future()
        self._enqueue(WriteRequest(session_id, ops, size, answer))
        return await answer

    async def read(self, session_id: int, action: Callable[[ZnodeTree], T]) -> T:
        """What `action` finds in the tree, when every write that was asked for before is durable."""
        self._check_open()
        if self._pump is None:
            self._check_session(session_id)
            return action(self._tree)
        answer: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        self._enqueue(ReadRequest(session_id, action, answer))
        return await answer

    def _check_open(self) -> None:
        if self._over:
            kind, why = self._over
            raise kind(why)

    def _check_session(self, session_id: int) -> None:
        if session_id != STORE_SESSION and session_id not in self._tree.sessions:
            raise SessionExpired(f"session {session_id:#x} is over")

    def _enqueue(self, request: WriteRequest | ReadRequest) -> None:
        if len(self._queue) >= QUEUE_MAX:
            raise WriteRefused(f"{QUEUE_MAX} requests wait for the disk already")
        self._queue.append(request)
        if self._pump is None:
            self._pump = asyncio.get_running_loop().create_task(self._serve())

    async def _serve(self) -> None:
        """Works the queue off; runs only while there is something in it."""
        try:
            while self._queue:
                if isinstance(self._queue[0], ReadRequest):
                    self._serve_read(self._queue.popleft())
                else:
                    await self._commit(self._take_writes())
                    await self._start_snapshot_if_due()
        except BaseException as error:
            self._fail(f"a fault in the store ({error!r})")
            raise
        finally:
            self._pump = None

    def _serve_read(self, request: WriteRequest | ReadRequest) -> None:
        assert isinstance(request, ReadRequest)
        if request.answer.done():
            return
        try:
            self._check_session(request.session_id)
            request.answer.set_result(request.action(self._tree))
        except CoordinationError as error:
            request.answer.set_exception(error)

    def _take_writes(self) -> list[WriteRequest]:
        batch: list[WriteRequest] = []
        size = 0
        while self._queue and size < FRAME_BYTES:
            request = self._queue[0]
            if not isinstance(request, WriteRequest):
                break
            self._queue.popleft()
            if not request.answer.done():
                batch.append(request)
                size += request.size
        return batch

    # One group commit.

    async def _commit(self, batch: Sequence[WriteRequest]) -> None:
        self._batch = batch
        if self.is_behind and not await self._catch_up() and not self._may_hold:
            for write in batch:
                fail_answer(write.answer, WriteRefused(f"there is still no room for the journal in {self.directory}"))
            return
        first_zxid = self._tree.zxid + 1
        # Reads wait behind this batch, so that its steps are between nobody's.
        txns = await in_turns(self._apply(batch, self._clock.wall_ms()), self._clock.monotonic_ms)
        if txns and self.is_behind:
            self._hold(batch, txns)
            return
        if txns and not await self._write_frame(batch, first_zxid, txns):
            return
        self._answer(batch)
        if not self.is_behind:
            self.durable_zxid = self._tree.zxid

    async def _write_frame(self, batch: Sequence[WriteRequest], first_zxid: int, txns: list[bytes]) -> bool:
        """Whether the frame is durable; if not, the batch is seen to."""
        journal = self._journal
        assert journal is not None
        try:
            journal.append(encode_frame(first_zxid, txns))
        except OSError as error:
            if self._may_hold and error.errno in _FULL and self._cut(journal, error):
                self._hold(batch, txns)
                self._try_again_later(error)
            else:
                self._refuse(batch, journal, error)
            return False
        try:
            await self._workers.thread(journal.sync)
        except OSError as error:
            self._fail(f"{journal.path} could not be synced: {error}")
            return False
        return True

    # A disk without room, at a start.

    def _hold(self, batch: Sequence[WriteRequest], txns: Sequence[bytes]) -> None:
        """Answers writes that are in the tree and in no file."""
        if self._held.add(txns):
            self._answer(batch)
        else:
            self._undo(batch, f"{self._held.bytes} bytes wait for room in {self.directory} already")

    async def _catch_up(self) -> bool:
        """Whether everything is durable that was held back."""
        if (loaded := self._unopened) is not None:
            opened = await self._workers.thread(partial(open_again, self._disk, self.directory, loaded))
            try:
                self._take_journal(loaded, opened)
            except OSError as error:
                self._fail(f"the journal in {self.directory} cannot be opened: {error}")
        journal = self._journal
        if journal is None:
            return False
        try:
            if self._held:
                journal.append(self._held.frame(self.durable_zxid + 1))
        except OSError as error:
            if error.errno not in _FULL:
                self._fail(f"{journal.path} cannot be written: {error}")
            elif self._cut(journal, error):
                self._try_again_later(error)
            return False
        try:
            await self._workers.thread(journal.sync)
        except OSError as error:
            self._fail(f"{journal.path} could not be synced: {error}")
            return False
        self.durable_zxid = self._tree.zxid
        self._held.clear()
        _log.info("there is room for the journal again", path=journal.path)
        calls, self._when_caught_up = self._when_caught_up, []
        for call in calls:
            call()
        return True

    def _try_again_later(self, error: OSError) -> None:
        _log.warning_limited(
            "the disk has no room for the tree's journal: what the start writes is held back, and changes are refused",
            directory=self.directory,
            fault=str(error),
        )
        if self._retry is not None:
            self._retry.cancel()
        self._retry = asyncio.get_running_loop().call_later(_RETRY_S, self._probe)

    def _probe(self) -> None:
        """A transaction of nothing, for which what waits is written first."""
        if self._over is None and self.is_behind:
            answer: asyncio.Future[list[OpResult]] = asyncio.get_running_loop().create_future()
            answer.add_done_callback(asyncio.Future.exception)
            with suppress(WriteRefused):
                self._enqueue(WriteRequest(STORE_SESSION, [], 0, answer))

    def _apply(self, batch: Sequence[WriteRequest], now_ms: int) -> Steps[list[bytes]]:
        """Applies each write to the tree in memory; returns those that succeeded as bytes."""
        txns: list[bytes] = []
        tree = self._tree
        for write in batch:
            try:
                self._check_session(write.session_id)
                outcome = yield from tree.applying(write.session_id, write.ops, tree.zxid + 1, now_ms)
            except CoordinationError as error:
                write.outcome = error
            else:
                write.outcome = outcome
                txns.append(encode_txn(now_ms, write.session_id, write.ops, outcome.results))
            yield
        return txns

    def _refuse(self, batch: Sequence[WriteRequest], journal: JournalFile, error: OSError) -> None:
        """The disk did not take the frame: nothing of it happened."""
        self._undo(batch, f"{journal.path} cannot be written: {error}")
        if error.errno not in _FULL:
            # Room may come back; a device that failed, or that is read-only now, does not.
            self._fail(f"{journal.path} cannot be written: {error}")
        elif self._cut(journal, error):
            _log.error("refused writes to the tree: the journal cannot be written", path=journal.path, fault=str(error))

    def _undo(self, batch: Sequence[WriteRequest], why: str) -> None:
        for write in reversed(batch):
            if isinstance(write.outcome, AppliedTransaction):
                self._tree.undo(write.outcome)
        for write in batch:
            fail_answer(write.answer, WriteRefused(why))

    def _cut(self, journal: JournalFile, error: OSError) -> bool:
        """Takes back what was written of a frame. The store is over where that fails as well."""
        try:
            journal.cut()
        except OSError as cut_error:
            self._fail(f"{journal.path} cannot be written ({error}) and not be cut back ({cut_error})")
            return False
        return True

    def _answer(self, batch: Sequence[WriteRequest]) -> None:
        """Everything in the batch is decided. Watches are called first: none is called behind a read."""
        call_soon = asyncio.get_running_loop().call_soon
        for write in batch:
            outcome = write.outcome
            if isinstance(outcome, AppliedTransaction):
                for op in write.ops:
                    if isinstance(op, CloseSession):
                        self._watches.drop_session(op.session_id)
                        self._leases.drop(op.session_id)
                for watch, event in self._watches.take(outcome.changes):
                    call_soon(watch, event)
                if not write.answer.done():
                    write.answer.set_result(outcome.results)
            else:
                assert outcome is not None
                fail_answer(write.answer, outcome)

    def _fail(self, why: str) -> None:
        """Gives up for good: the next start finds what is on the disk."""
        if self._over is None:
            _log.error("the tree is lost to this process until it starts again", directory=self.directory, why=why)
        self._over = (SessionExpired, f"the tree in {self.directory} is lost to this process: {why}")
        for write in self._batch:
            fail_answer(write.answer, ConnectionLoss(why))
        while self._queue:
            fail_answer(self._queue.popleft().answer, ConnectionLoss(why))
        for session_id in sorted(self._listeners):
            self._tell_session(session_id, SessionEvent.DISCONNECTED)
            self._tell_session(session_id, SessionEvent.EXPIRED)

    async def _start_snapshot_if_due(self) -> None:
        journal, zxid = self._journal, self._tree.zxid
        if journal is None or self._over or self.is_behind or not self._snapshots.due(zxid, journal):
            return
        content = await in_turns(encoding_snapshot(self._tree), self._clock.monotonic_ms)
        if following := await self._snapshots.next_journal(zxid):
            self._journal = following
            journal.close()
            self._snapshots.start(zxid, content)
