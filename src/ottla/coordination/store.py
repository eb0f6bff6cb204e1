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
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, TypeVar

from ottla import logs
from ottla.coordination.codec import encoding_txn
from ottla.coordination.errors import (
    ConnectionLoss,
    CoordinationError,
    DataTooLarge,
    DirectoryInUse,
    SessionClosed,
    SessionExpired,
    WriteRefused,
)
from ottla.coordination.interface import (
    MULTI_OPS_MAX,
    REQUEST_BYTES_MAX,
    OpResult,
    Watch,
    WatchEvent,
)
from ottla.coordination.journaling import FrameRefused, Journaling, JournalLost
from ottla.coordination.loading import (
    LoadedTree,
    LoadReport,
    Opened,
    TreeCheck,
    close_again,
    load_and_open,
    nothing_to_check,
)
from ottla.coordination.requests import Answer, ReadRequest, WriteRequest, fail_answer, size_of
from ottla.coordination.sessions import STORE_SESSION, Sessions
from ottla.coordination.snapshot import encode_snapshot
from ottla.coordination.snapshotting import Snapshotting
from ottla.coordination.tree import AppliedTransaction, CloseSession, TreeOp, ZnodeTree
from ottla.coordination.waiting import WaitingRequests
from ottla.coordination.watches import WatchTable
from ottla.ports.clock import Clock
from ottla.ports.disk import Disk, Lock
from ottla.ports.entropy import Entropy
from ottla.ports.workers import Workers
from ottla.steps import TURN_MS, Steps, emptied, in_turns, pieces

#: Requests that wait. Far more than one broker has under way; beyond it writes are refused and reads fail.
QUEUE_MAX: Final = 20_000
#: A frame is closed when it has this much, so that the first writer in it does not wait for a stream of others.
FRAME_BYTES: Final = 4 * 1024 * 1024
#: The same for operations, of which ten thousand take a tenth of a second; the nodes that go with a session are some.
#: One multi may have more.
OPS_A_COMMIT: Final = 1_024
#: Reads that wait are served so many in one turn of the loop, or for TURN_MS: each takes some ten microseconds.
READS_A_TURN: Final = 256
#: Operations, answers or watches that make one step of a commit: each takes a microsecond or some.
_PIECE: Final = 32

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
            clock,
            directory,
            every_txns=self._options.snapshot_txns,
            every_bytes=self._options.snapshot_bytes,
        )
        self._lock: Lock | None = None
        self.journaling = Journaling(disk, workers, directory, self._probe)
        self.sessions = Sessions(self.write, clock, entropy)
        self._tree = ZnodeTree()
        self._watches = WatchTable()
        #: The last transaction whose watches were called: a client that asks for nothing else may know of it.
        self.answered_zxid = 0
        self._queue = WaitingRequests()
        self._pump: asyncio.Task[None] | None = None
        #: The writes of the group commit that is under way.
        self._batch: Sequence[WriteRequest] = ()
        #: What to raise and why, when nothing goes on: the disk failed, or the store was closed.
        self._over: tuple[type[CoordinationError], str] | None = None

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
            loaded, opened = await self._loaded(check)
            # Of a first start there is nothing to serve.
            self.journaling.may_hold = self._options.hold_back and loaded.zxid > 0
            self.journaling.take(loaded, opened)
        except BaseException:
            self._release()
            raise
        self._tree = loaded.tree
        self.journaling.durable_zxid = self.answered_zxid = loaded.tree.zxid
        self._snapshots.zxid = loaded.report.snapshot_zxid
        try:
            await self.sessions.take(self._tree, keep=self._options.keep_sessions)
        except BaseException:
            await self.close()
            raise

    async def _loaded(self, check: TreeCheck) -> tuple[LoadedTree, Opened]:
        """A worker ends what it has begun, also where nobody waits for the start any more: the directory is not let go
        before."""
        loading = self._workers.thread(partial(load_and_open, self._disk, self.directory, check))
        try:
            return await asyncio.shield(loading)
        except asyncio.CancelledError:
            await asyncio.wait([loading])
            if not loading.cancelled() and loading.exception() is None:
                close_again(loading.result()[1])
            raise

    def start_ends(self) -> None:
        """From here on a write that the disk has no room for is refused."""
        self.journaling.may_hold = False

    @property
    def is_behind(self) -> bool:
        """Whether the disk has no room for what is in the tree already."""
        return self.journaling.is_behind

    @property
    def durable_zxid(self) -> int:
        """The last transaction that is certainly on the medium."""
        return self.journaling.durable_zxid

    @property
    def report(self) -> LoadReport:
        return self.journaling.report

    def when_caught_up(self, call: Callable[[], None]) -> None:
        """Calls once everything is durable that is held back."""
        self.journaling.when_caught_up(call)

    async def close(self) -> None:
        """Finishes what waits, takes a last snapshot, and lets the directory go."""
        if self._over is None:
            self._over = (SessionClosed, f"the tree in {self.directory} is closed")
        if self._pump:
            await asyncio.wait([self._pump])
        self.journaling.stop_trying()
        await self._snapshots.finish()
        if self._over[0] is SessionClosed and self._tree.zxid > self._snapshots.zxid:
            await self._snapshots.write(self._tree.zxid, encode_snapshot(self._tree))
        self._release()

    def _release(self) -> None:
        self.journaling.close()
        if self._lock:
            self._lock.release()
            self._lock = None

    @property
    def fault(self) -> str | None:
        """Why the tree is lost to this process; None while it is not."""
        return self._over[1] if self._over is not None and self._over[0] is SessionExpired else None

    # Requests.

    def children_count(self, path: str) -> int:
        """How many there are just now, for somebody who wants to know what an answer will take."""
        node = self._tree.nodes.get(path)
        return 0 if node is None or node.children is None else len(node.children)

    @property
    def watches(self) -> WatchTable:
        """Reads leave their watches here, inside their action."""
        return self._watches

    async def write(self, session_id: int, ops: Sequence[TreeOp]) -> list[OpResult]:
        """Applies `ops` as one transaction, durably. Raises MultiFailed where one of them fails."""
        answer: asyncio.Future[list[OpResult]] = asyncio.get_running_loop().create_future()
        self.submit_write(session_id, ops, answer)
        return await answer

    def submit_write(
        self, session_id: int, ops: Sequence[TreeOp], answer: Answer, size: int | None = None
    ) -> WriteRequest:
        """The same for a caller that does not wait: `answer` gets what `write` returns or raises, and never from here.

        What is refused at once is raised. `size` is that of the operations, as `size_of` has it, where it is known.
        """
        if len(ops) > MULTI_OPS_MAX:
            raise DataTooLarge(f"{len(ops)} operations in a multi: {MULTI_OPS_MAX} are the limit")
        if size is None:
            size = sum(size_of(op) for op in ops)
        if len(ops) > 1 and size > REQUEST_BYTES_MAX:
            raise DataTooLarge(f"a multi of {size} bytes: {REQUEST_BYTES_MAX} are the limit")
        self._check_open()
        request = WriteRequest(session_id, ops, size, answer)
        self._enqueue(request)
        return request

    async def read(self, session_id: int, action: Callable[[ZnodeTree], T]) -> T:
        """What `action` finds in the tree, when every write that was asked for before is durable."""
        answer: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        self.submit_read(session_id, action, answer)
        return await answer

    def submit_read(
        self, session_id: int, action: Callable[[ZnodeTree], Any], answer: Answer, *, is_long: bool = False
    ) -> None:
        """The same for a caller that does not wait. Where nothing waits, `answer` gets it before this returns.

        A long action gives steps, between which nothing else is read or written.
        """
        self._check_open()
        request = ReadRequest(session_id, action, answer, is_long)
        if self._pump is None and not is_long:
            self._serve_read(request)
        else:
            self._enqueue(request)

    def _check_open(self) -> None:
        if self._over:
            kind, why = self._over
            raise kind(why)

    def _enqueue(self, request: WriteRequest | ReadRequest) -> None:
        if len(self._queue) >= QUEUE_MAX:
            raise WriteRefused(f"{QUEUE_MAX} requests wait for the disk already")
        self._queue.add(request, self._op_count(request) if isinstance(request, WriteRequest) else 1)
        if self._pump is None:
            self._pump = asyncio.get_running_loop().create_task(self._serve())

    async def _serve(self) -> None:
        """Works the queue off; runs only while there is something in it."""
        try:
            while self._queue:
                if isinstance(self._queue.first, ReadRequest):
                    await self._serve_reads()
                else:
                    await self._commit(self._take_writes())
                    await self._start_snapshot_if_due()
        except BaseException as error:
            self._fail(f"a fault in the store ({error!r})")
            raise
        finally:
            self._pump = None

    async def _serve_reads(self) -> None:
        """Serves the reads that are first in the queue: as many as one turn of the loop has time for."""
        ends_ms = self._clock.monotonic_ms() + TURN_MS
        for _ in range(READS_A_TURN):
            request = self._queue.first
            if not isinstance(request, ReadRequest):
                return
            self._queue.take()
            if request.is_long:
                await self._serve_long_read(request)
                return
            self._serve_read(request)
            if self._clock.monotonic_ms() >= ends_ms:
                break
        await asyncio.sleep(0)

    async def _serve_long_read(self, request: ReadRequest) -> None:
        if request.answer.done():
            return
        try:
            self.sessions.check(request.session_id)
            result = await in_turns(request.action(self._tree), self._clock.monotonic_ms)
        except CoordinationError as error:
            fail_answer(request.answer, error)
        else:
            if not request.answer.done():
                request.answer.set_result(result)

    def _serve_read(self, request: ReadRequest) -> None:
        if request.answer.done():
            return
        try:
            self.sessions.check(request.session_id)
            request.answer.set_result(request.action(self._tree))
        except CoordinationError as error:
            request.answer.set_exception(error)

    def _take_writes(self) -> list[WriteRequest]:
        batch: list[WriteRequest] = []
        size = ops = 0
        while size < FRAME_BYTES and isinstance(request := self._queue.first, WriteRequest):
            more = self._op_count(request)
            if ops and ops + more > OPS_A_COMMIT:
                break
            self._queue.take()
            if not request.answer.done():
                batch.append(request)
                size += request.size
                ops += more
        return batch

    def _op_count(self, request: WriteRequest) -> int:
        first = request.ops[0] if request.ops else None
        if isinstance(first, CloseSession):
            return 1 + len(self._tree.ephemerals.get(first.session_id, ()))
        return len(request.ops)

    # One group commit.

    async def _commit(self, batch: Sequence[WriteRequest]) -> None:
        self._batch, journaling = batch, self.journaling
        try:
            if self.is_behind and not await journaling.catch_up(self._tree.zxid) and not journaling.may_hold:
                for write in batch:
                    refusal = WriteRefused(f"there is still no room for the journal in {self.directory}")
                    fail_answer(write.answer, refusal)
                return
            first_zxid = self._tree.zxid + 1
            # Reads wait behind this batch, so that its steps are between nobody's.
            txns = await in_turns(self._apply(batch, self._clock.wall_ms()), self._clock.monotonic_ms)
            if txns:
                await journaling.write(first_zxid, txns)
        except FrameRefused as refused:
            self._undo(batch, refused.why)
            if refused.lost is not None:
                self._fail(refused.lost)
        except JournalLost as lost:
            self._fail(str(lost))
        else:
            if not self.is_behind:
                journaling.durable_zxid = self._tree.zxid
            await in_turns(self._answer(batch), self._clock.monotonic_ms)

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
                self.sessions.check(write.session_id)
                outcome = yield from tree.applying(write.session_id, write.ops, tree.zxid + 1, now_ms)
            except CoordinationError as error:
                write.outcome = error
            else:
                write.outcome = outcome
                txns.append((yield from encoding_txn(now_ms, write.session_id, write.ops, outcome.results)))
            write.zxid = tree.zxid
            yield
        return txns

    def _undo(self, batch: Sequence[WriteRequest], why: str) -> None:
        for write in reversed(batch):
            if isinstance(write.outcome, AppliedTransaction):
                self._tree.undo(write.outcome)
        for write in batch:
            write.zxid = self._tree.zxid  # an answer shows no transaction that was taken back
            fail_answer(write.answer, WriteRefused(why))

    def _answer(self, batch: Sequence[WriteRequest]) -> Steps[None]:
        """Everything in the batch is decided. Watches are called first: none is called behind a read."""
        for write in batch:
            outcome = write.outcome
            if isinstance(outcome, AppliedTransaction):
                self.sessions.ended(write.ops, self._watches)
                for changes in pieces(outcome.changes, _PIECE):
                    for fired in pieces(self._watches.take(changes), _PIECE):
                        for watch, event in fired:
                            _call_watch(watch, event)
                        yield
                    yield
                self.answered_zxid = write.zxid
                if not write.answer.done():
                    write.answer.set_result(outcome.results)
                # It can no more be taken back: what that would need is let go in steps, and not with the request.
                write.outcome = None
                yield from emptied(outcome.reverts)
                yield from emptied(outcome.changes)
            else:
                assert outcome is not None
                fail_answer(write.answer, outcome)
            yield

    def _fail(self, why: str) -> None:
        """Gives up for good: the next start finds what is on the disk."""
        if self._over is None:
            _log.error("the tree is lost to this process until it starts again", directory=self.directory, why=why)
        self._over = (SessionExpired, f"the tree in {self.directory} is lost to this process: {why}")
        for write in self._batch:
            fail_answer(write.answer, ConnectionLoss(why))
        while self._queue:
            fail_answer(self._queue.take().answer, ConnectionLoss(why))
        self.sessions.lose_all()

    async def _start_snapshot_if_due(self) -> None:
        journal, zxid = self.journaling.file, self._tree.zxid
        if journal is None or self._over or self.is_behind or not self._snapshots.due(zxid, journal):
            return
        if following := await self._snapshots.next_journal(zxid, journal):
            self.journaling.file = following
            journal.close()
            self._snapshots.start(self._tree)


def _call_watch(watch: Watch, event: WatchEvent) -> None:
    """Here and now: what runs in the loop's next turn runs in no certain order with the readers of the change."""
    try:
        watch(event)
    except Exception as error:
        asyncio.get_running_loop().call_exception_handler({"message": "a watch failed", "exception": error})
