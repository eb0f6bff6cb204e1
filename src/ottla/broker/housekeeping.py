"""What a broker does between requests: retention, flushes by time, checkpoints, and files on their way out.

Each job is due at its own interval and runs on the loop, in steps, since there may be many partitions; what blocks
goes to a worker. A job that fails takes its directory offline, never the broker. A fault of ours with one log costs no
other log its turn, and a job that such a fault ends runs again at its next time.
"""

from __future__ import annotations

import asyncio
import traceback
from collections.abc import Awaitable, Callable, Coroutine
from functools import partial
from typing import Any, Final

from ottla import logs
from ottla.broker.removals import Removable, Removals
from ottla.config.live import LiveConfig
from ottla.model import TopicPartition
from ottla.ports import Clock, Workers
from ottla.replication.replicas import Replicas
from ottla.replication.watermarks import CurrentWatermarks
from ottla.steps import DiskSteps, Steps, Work, done_at_once, in_turns, pieces
from ottla.storage.directories.checkpoints import CheckpointWrite
from ottla.storage.directories.removal import FolderEmptying, FolderRemoval
from ottla.storage.errors import RollDue, StorageFault, passes
from ottla.storage.log.log import Log
from ottla.storage.log.retention import EXPIRED_AT_ONCE

log_event = logs.logger("server")

#: The first retention after a start waits this long, as Kafka's does.
_FIRST_DELAY_MS_MAX: Final = 30_000
#: After this, files that could not be removed for want of a descriptor, or for a fault of ours, are tried again, and
#: folders whose names wait for room in the checkpoints.
_REMOVED_AGAIN_MS: Final = 10_000
#: How often logs are tried again that a full disk had no room for.
_MISSING_LOGS_INTERVAL_MS: Final = 2_000

Offsets = dict[TopicPartition, int]


class Housekeeping:
    def __init__(self, replicas: Replicas, workers: Workers, clock: Clock, live: LiveConfig) -> None:
        self._replicas = replicas
        self._workers = workers
        self._clock = clock
        self._live = live
        self._timers: dict[str, asyncio.TimerHandle] = {}
        #: Jobs under way, and whether a stop ends them.
        self._tasks: dict[asyncio.Task[None], bool] = {}
        self._removals = Removals(workers, clock, self._not_removed)
        self._watermarks = CurrentWatermarks(replicas.leaders, replicas.followers)
        #: What was last written of each kind of offset.
        self._written: dict[str, Offsets] = {}
        #: Folders that go with the next write of the checkpoints.
        self._folders: list[FolderRemoval] = []
        #: Those that a full disk has kept from being forgotten.
        self._kept_folders: list[FolderRemoval] = []
        self._closed = False

    def start(self) -> None:
        # None of these intervals changes while the broker runs.
        storage, replication = self._live.current.storage, self._live.current.replication
        first_ms = min(storage.initial_task_delay_ms, _FIRST_DELAY_MS_MAX)
        self._every("retention", storage.retention_check_interval_ms, self._in_steps(self._retain), first_ms)
        for name, interval_ms, job in (
            ("flush", min(storage.flush_check_interval_ms, 1000), self._flush_by_time),
            ("recovery points", storage.flush_checkpoint_interval_ms, self._checkpoint_recovery_points),
            ("log starts", storage.start_offset_checkpoint_interval_ms, self._checkpoint_starts),
            ("high watermarks", replication.high_watermark_checkpoint_interval_ms, self._checkpoint_watermarks),
            # Twice in the time that a follower has, as Kafka looks.
            ("in-sync replicas", max(1, replication.lag_time_ms_max // 2), self._expire_followers),
            ("producers", storage.producer_id_check_interval_ms, self._expire_producers),
        ):
            self._every(name, interval_ms, self._in_steps(job))
        # Half a change would be worse than a stop that waits for it.
        self._every("missing logs", _MISSING_LOGS_INTERVAL_MS, self._make_missing, is_ended=False)

    def close(self) -> None:
        self._closed = True
        for timer in self._timers.values():
            timer.cancel()
        for task, is_ended in self._tasks.items():
            if is_ended:
                task.cancel()
        self._removals.close()

    # -- when jobs run

    def _every(
        self,
        name: str,
        interval_ms: int,
        job: Callable[[], Coroutine[Any, Any, None]],
        first_ms: int | None = None,
        *,
        is_ended: bool = True,
    ) -> None:
        """The interval lies between the end of one run and the beginning of the next."""

        def run() -> None:
            self._run(name, job(), again, is_ended=is_ended)

        def again() -> None:
            self._timers[name] = self._later(interval_ms, run)

        self._timers[name] = self._later(interval_ms if first_ms is None else first_ms, run)

    def _later(self, delay_ms: int, run: Callable[[], None]) -> asyncio.TimerHandle:
        return asyncio.get_running_loop().call_later(delay_ms / 1000, run)

    def _in_steps(self, job: Callable[[], DiskSteps[None]]) -> Callable[[], Coroutine[Any, Any, None]]:
        async def run() -> None:
            await in_turns(job(), self._clock.monotonic_ms, self._worked)

        return run

    def _worked(self, work: Work) -> Awaitable[object]:
        return work.in_change(self._replicas) if isinstance(work, _Expiry) else self._workers.thread(work)

    def _run(self, name: str, work: Coroutine[Any, Any, None], then: Callable[[], None], *, is_ended: bool) -> None:
        """`then` is called however it ends, unless everything ends."""
        task = asyncio.ensure_future(work)
        self._tasks[task] = is_ended

        def ended(task: asyncio.Task[None]) -> None:
            del self._tasks[task]
            if self._closed or task.cancelling():
                return
            # Something that it waited for may have been cancelled, and not the job.
            fault = asyncio.CancelledError() if task.cancelled() else task.exception()
            if fault is not None:
                trace = "".join(traceback.format_exception(fault))
                log_event.error("housekeeping failed, and is tried again", job=name, reason=repr(fault), error=trace)
            then()

        task.add_done_callback(ended)

    async def _make_missing(self) -> None:
        if self._replicas.lacks_some:
            await self._replicas.change(self._replicas.make_missing())

    # -- files on their way out

    def remove_folder_later(self, removal: FolderRemoval) -> None:
        """Removes a partition's folder once its directory's checkpoints have forgotten it.

        Until then its new name says at a start that it was given up; after that nothing must, or a topic that is made
        again would be missed.
        """
        if self._closed:
            return  # the next start finds it by its name
        self._remove_folders_later([removal], 0)

    def _remove_folders_later(self, folders: list[FolderRemoval], delay_ms: int) -> None:
        if folders and not self._folders:
            self._timers["folders"] = self._later(delay_ms, self._begin_removing)
        self._folders += folders

    def _begin_removing(self) -> None:
        """Those of one turn share the checkpoints' write: a topic may have ten thousand."""
        folders, self._folders = self._folders, []
        folders.reverse()
        job = self._in_steps(partial(self._remove_folders, folders))
        # What a fault has left of them.
        self._run("folders", job(), partial(self._remove_folders_later, folders, _REMOVED_AGAIN_MS), is_ended=True)

    def _remove_folders(self, folders: list[FolderRemoval]) -> DiskSteps[None]:
        """Takes them from the end of the list.

        Where there is no room to forget them their files go, which makes room. Their names say until then that they
        were given up.
        """
        written = yield from self._write_checkpoints()
        while folders:
            removal = folders.pop()
            is_forgotten = written.get(removal.directory)
            if is_forgotten:
                self.remove_later(removal, removal.directory, 0)
            elif is_forgotten is not None:
                self.remove_later(FolderEmptying(removal), removal.directory, 0)
                self._keep_folder(removal)
            yield None

    def _keep_folder(self, removal: FolderRemoval) -> None:
        if not self._kept_folders:
            self._timers["kept folders"] = self._later(_REMOVED_AGAIN_MS, self._remove_kept)
        self._kept_folders.append(removal)

    def _remove_kept(self) -> None:
        kept, self._kept_folders = self._kept_folders, []
        self._remove_folders_later(kept, 0)

    def remove_later(self, removal: Removable, log_directory: str, delay_ms: int) -> None:
        """Removes files in a worker after a delay, in which readers that hold them may finish."""
        self._removals.add(removal, log_directory, delay_ms)

    def _not_removed(self, removal: Removable, log_directory: str, fault: Exception) -> None:
        if not isinstance(fault, OSError) or passes(fault):
            log_event.warning_limited("files cannot be removed for now", directory=log_directory, reason=fault)
            self.remove_later(removal, log_directory, _REMOVED_AGAIN_MS)
        elif StorageFault.of(log_directory, fault).directory_failed:
            self._replicas.fail_directory(log_directory, f"files could not be removed: {fault}")
        else:
            log_event.warning_limited("files could not be removed", directory=log_directory, reason=fault)

    # -- jobs

    def _logs(self) -> list[Log]:
        return list(self._replicas.directories.logs.values())

    def _guarded(self, log: Log, work: Callable[[Log], bool]) -> bool:
        try:
            return work(log)
        except StorageFault as fault:
            self._held_up(log, fault)
        except OSError as error:
            self._held_up(log, StorageFault.of(log.directory, error))
        except Exception as fault:
            _failed_at(log, fault)
        return False

    def _held_up(self, log: Log, fault: StorageFault) -> None:
        if fault.directory_failed:
            self._replicas.fail_directory_of(log.tp, str(fault))
        else:
            log_event.warning_limited("housekeeping is held up", partition=log.tp, reason=fault)

    def _retain(self) -> DiskSteps[None]:
        """Looks at each log, and takes segments out of those that may have any to spare."""
        for log in self._logs():
            is_more = self._guarded(log, self._may_expire)
            yield None
            while is_more and self._replicas.directories.get(log.tp) is log:
                expiry = _Expiry(self._expiring(log))
                yield expiry
                is_more = expiry.is_more

    def _may_expire(self, log: Log) -> bool:
        high_watermark = self._watermarks.get(log.tp)
        return high_watermark is not None and log.may_expire(self._clock.wall_ms(), high_watermark)

    def _expiring(self, log: Log) -> DiskSteps[bool]:
        """Whether there is more of it. A change of the replicas: while files lose their names, no folder does."""
        high_watermark = self._watermarks.get(log.tp)
        if high_watermark is None or self._replicas.directories.get(log.tp) is not log:
            return False
        now_ms, start = self._clock.wall_ms(), log.start_offset
        try:
            removals = yield from log.expiring(now_ms, high_watermark)
        except RollDue:
            self._replicas.files.roll_log(log, partial(self._retain_again, log))
            return False
        except StorageFault as fault:
            self._held_up(log, fault)
            return False
        except Exception as fault:
            _failed_at(log, fault)
            return False
        finally:
            self._replicas.files.note_unfinished(log)
            if log.start_offset != start:
                self._replicas.waiters.changed_between_rounds(log.tp)  # a fetch session says it to its client
        for removal in removals:
            log_event.info("a segment is removed", partition=log.tp, file=removal.paths[-1], bytes=removal.size)
            home = self._replicas.directories.directory_of(log.tp)
            if home is not None:
                self.remove_later(removal, home, max(0, removal.due_ms - now_ms))
        return len(removals) >= EXPIRED_AT_ONCE

    def _retain_again(self, log: Log, fault: StorageFault | None) -> None:
        """Behind the segment that a worker has made for it."""
        if fault is None and not self._closed and self._replicas.directories.get(log.tp) is log:
            self._replicas.change_apart(self._expiring(log))

    def _flush_by_time(self) -> Steps[None]:
        now_ms = self._clock.wall_ms()
        for piece in pieces(self._logs()):
            for log in piece:
                try:
                    if log.flush_due(now_ms):
                        self._replicas.files.request_flush(log.tp)
                except Exception as fault:
                    _failed_at(log, fault)
            yield

    def _expire_followers(self) -> Steps[None]:
        yield from self._replicas.isr_changes.expiring(self._clock.monotonic_ms)
        self._replicas.waiters.settle_outside(self._clock.monotonic_ms())

    def _expire_producers(self) -> Steps[None]:
        now_ms = self._clock.wall_ms()
        after_ms = self._live.current.storage.producer_id_expiration_ms
        for log in self._logs():
            try:
                if log.has_producers and self._replicas.directories.get(log.tp) is log:
                    yield from log.producers.expiring(now_ms, after_ms)
            except Exception as fault:
                _failed_at(log, fault)
            yield

    def _checkpoint_recovery_points(self) -> DiskSteps[None]:
        return self._checkpoint("recovery points", lambda log: log.recovery_point)

    def _checkpoint_starts(self) -> DiskSteps[None]:
        return self._checkpoint("log starts", lambda log: log.start_offset)

    def _checkpoint_watermarks(self) -> DiskSteps[None]:
        return self._checkpoint("high watermarks", lambda log: self._watermarks.get(log.tp))

    def _checkpoint(self, kind: str, offset_of: Callable[[Log], int | None]) -> DiskSteps[None]:
        """Writes the checkpoints where offsets of this kind have changed since they were last written."""
        offsets: Offsets = {}
        before = self._written.get(kind)
        is_same = before is not None
        for piece in pieces(self._logs()):
            for log in piece:
                try:
                    offset = offset_of(log)
                except Exception as fault:
                    _failed_at(log, fault)
                    continue
                if offset is not None:
                    offsets[log.tp] = offset
                    is_same = is_same and before is not None and before.get(log.tp) == offset
            yield None
        if before is None or not is_same or len(offsets) != len(before):
            self._written[kind] = offsets
            yield from self._write_checkpoints()

    def _write_checkpoints(self) -> DiskSteps[dict[str, bool]]:
        """Returns the directories that go on, each with whether it was written: there may have been no room for it."""
        writes = yield from self._replicas.directories.checkpointing(self._watermarks)
        going_on: dict[str, bool] = {}
        for write in writes:
            try:
                yield write.run
            except OSError as error:
                if self._is_survived(write, error):
                    going_on[write.directory] = False
            else:
                going_on[write.directory] = True
        return going_on

    def _is_survived(self, write: CheckpointWrite, error: OSError) -> bool:
        if not passes(error):
            self._replicas.fail_directory(write.directory, f"a checkpoint could not be written: {error}")
            return False
        # The old one still holds. It is due again at the next interval, whether anything changes or not.
        self._written.clear()
        log_event.warning_limited("a checkpoint has to wait", directory=write.directory, reason=error)
        return True


class _Expiry:
    """Yielded by retention, which goes on when the segments of one log are taken out, as a change of the replicas."""

    def __init__(self, steps: DiskSteps[bool]) -> None:
        self._steps = steps
        self.is_more = False

    def __call__(self) -> None:
        """With the caller waiting for the disk."""
        self.is_more = done_at_once(self._steps)

    async def in_change(self, replicas: Replicas) -> None:
        self.is_more = await replicas.change_apart(self._steps)


def _failed_at(log: Log, fault: Exception) -> None:
    log_event.warning_limited(
        "housekeeping failed with a log for a fault of the broker, and goes on with the others",
        key=str(log.tp),
        partition=log.tp,
        error="".join(traceback.format_exception(fault)),
    )
