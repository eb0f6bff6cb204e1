"""What a broker does between requests: retention, flushes by time, checkpoints, and files on their way out.

Each job is due at its own interval and runs on the loop, in slices where there are many partitions; what blocks goes to
a worker. A job that fails takes its directory offline, never the broker.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from itertools import islice
from typing import Final, Protocol

from ottla import logs
from ottla.config.live import LiveConfig
from ottla.model import TopicPartition
from ottla.ports import Clock, Workers
from ottla.replication.replicas import Replicas
from ottla.storage.checkpoints import CheckpointWrite
from ottla.storage.errors import StorageFault, passes
from ottla.storage.log import Log
from ottla.storage.removal import FolderRemoval

log_event = logs.logger("server")

#: Partitions looked at in one turn of the loop: a thousand with retention cost some milliseconds.
_SLICE: Final = 200
#: The first retention after a start waits this long, as Kafka's does.
_FIRST_DELAY_MS_MAX: Final = 30_000
#: After this, files that could not be removed for want of a descriptor are tried again.
_REMOVED_AGAIN_MS: Final = 10_000
#: How often logs are tried again that a full disk had no room for.
_MISSING_LOGS_INTERVAL_MS: Final = 2_000


def _nothing() -> None: ...


class Removable(Protocol):
    """Files that nothing refers to any more; `run` blocks."""

    def run(self) -> None: ...


class Housekeeping:
    def __init__(self, replicas: Replicas, workers: Workers, clock: Clock, live: LiveConfig) -> None:
        self._replicas = replicas
        self._workers = workers
        self._clock = clock
        self._live = live
        self._timers: dict[str, asyncio.TimerHandle] = {}
        self._removals: set[asyncio.TimerHandle] = set()
        #: As last written.
        self._watermarks: dict[TopicPartition, int] = {}
        self._recovery_points: dict[TopicPartition, int] = {}
        self._starts: dict[TopicPartition, int] = {}
        #: Folders that go with the loop's next turn.
        self._folders: list[FolderRemoval] = []
        self._closed = False

    def start(self) -> None:
        # None of these intervals changes while the broker runs.
        storage, replication = self._live.current.storage, self._live.current.replication
        first_ms = min(storage.initial_task_delay_ms, _FIRST_DELAY_MS_MAX)
        self._every("retention", storage.retention_check_interval_ms, self._retain, first_ms)
        self._every("flush", min(storage.flush_check_interval_ms, 1000), self._flush_by_time)
        self._every("recovery points", storage.flush_checkpoint_interval_ms, self._checkpoint_recovery_points)
        self._every("log starts", storage.start_offset_checkpoint_interval_ms, self._checkpoint_starts)
        self._every("high watermarks", replication.high_watermark_checkpoint_interval_ms, self._checkpoint_watermarks)
        self._every("missing logs", _MISSING_LOGS_INTERVAL_MS, self._replicas.make_missing)
        self._every("producers", storage.producer_id_check_interval_ms, self._expire_producers)

    def close(self) -> None:
        self._closed = True
        for timer in (*self._timers.values(), *self._removals):
            timer.cancel()

    def _every(self, name: str, interval_ms: int, job: Callable[[], None], first_ms: int | None = None) -> None:
        def run() -> None:
            if self._closed:
                return
            job()
            self._timers[name] = loop.call_later(interval_ms / 1000, run)

        loop = asyncio.get_running_loop()
        self._timers[name] = loop.call_later((interval_ms if first_ms is None else first_ms) / 1000, run)

    # -- files on their way out

    def remove_folder_later(self, removal: FolderRemoval) -> None:
        """Removes a partition's folder once its directory's checkpoints have forgotten it.

        Until then its new name says at a start that it was given up; after that nothing must, or a topic that is made
        again would be missed.
        """
        if self._closed:
            return  # the next start finds it by its name
        if not self._folders:
            self._timers["folders"] = asyncio.get_running_loop().call_later(0, self._remove_folders)
        self._folders.append(removal)

    def _remove_folders(self) -> None:
        """Those of one turn share the checkpoints' write: a topic may have a thousand."""
        folders, self._folders = self._folders, []
        marks = self._replicas.high_watermarks()
        writes = {write.directory: write for write in self._replicas.directories.prepare_checkpoints(marks)}
        by_directory: dict[str, list[FolderRemoval]] = {}
        for removal in folders:
            by_directory.setdefault(removal.directory, []).append(removal)
        for directory, removals in by_directory.items():
            write = writes.get(directory)
            if write is not None:
                self._write_checkpoint(write, partial(self._remove_all, removals))

    def _remove_all(self, removals: Sequence[FolderRemoval]) -> None:
        for removal in removals:
            self.remove_later(removal, removal.directory, 0)

    def remove_later(self, removal: Removable, log_directory: str, delay_ms: int) -> None:
        """Removes files in a worker after a delay, in which readers that hold them may finish."""
        if self._closed:
            return  # the next start finds them by their names

        def run() -> None:
            self._removals.discard(timer)
            self._workers.thread(removal.run).add_done_callback(done)

        def done(future: asyncio.Future[None]) -> None:
            error = None if future.cancelled() else future.exception()
            if isinstance(error, OSError) and passes(error):
                log_event.warning_limited("files cannot be removed for now", directory=log_directory, reason=error)
                self.remove_later(removal, log_directory, _REMOVED_AGAIN_MS)
            elif isinstance(error, OSError):
                self._replicas.fail_directory(log_directory, f"files could not be removed: {error}")

        timer = asyncio.get_running_loop().call_later(delay_ms / 1000, run)
        self._removals.add(timer)

    # -- jobs

    def _logs(self) -> Iterable[Log]:
        return self._replicas.directories.logs.values()

    def _sliced(self, name: str, work: Callable[[Log], None]) -> None:
        """Runs `work` on every log, a slice in each turn of the loop."""
        logs_left = iter(list(self._logs()))

        def turn() -> None:
            if self._closed:
                return
            batch = list(islice(logs_left, _SLICE))
            for log in batch:
                if self._replicas.directories.get(log.tp) is log:
                    self._guarded(log, work)
            if batch:
                self._timers[name] = asyncio.get_running_loop().call_later(0, turn)

        turn()

    def _guarded(self, log: Log, work: Callable[[Log], None]) -> None:
        try:
            work(log)
        except StorageFault as fault:
            self._held_up(log, fault)
        except OSError as error:
            self._held_up(log, StorageFault.of(log.directory, error))

    def _held_up(self, log: Log, fault: StorageFault) -> None:
        if fault.directory_failed:
            self._replicas.fail_directory_of(log.tp, str(fault))
        else:
            log_event.warning_limited("housekeeping is held up", partition=log.tp, reason=fault)

    def _retain(self) -> None:
        self._sliced("retention slices", self._retain_one)

    def _retain_one(self, log: Log) -> None:
        leader = self._replicas.leaders.get(log.tp)
        follower = self._replicas.followers.get(log.tp)
        role = leader or follower
        if role is None:
            return
        now_ms = self._clock.wall_ms()
        for removal in log.expire(now_ms, role.high_watermark):
            log_event.info("a segment is removed", partition=log.tp, file=removal.paths[0], bytes=removal.size)
            home = self._replicas.directories.directory_of(log.tp)
            if home is not None:
                self.remove_later(removal, home, max(0, removal.due_ms - now_ms))

    def _flush_by_time(self) -> None:
        now_ms = self._clock.wall_ms()
        for log in list(self._logs()):
            if log.flush_due(now_ms):
                self._replicas.request_flush(log.tp)

    def _expire_producers(self) -> None:
        now_ms = self._clock.wall_ms()
        after_ms = self._live.current.storage.producer_id_expiration_ms

        def expire(log: Log) -> None:
            if log.has_producers:
                log.producers.expire(now_ms, after_ms)

        self._sliced("producer slices", expire)

    def _checkpoint_recovery_points(self) -> None:
        points = {log.tp: log.recovery_point for log in self._logs()}
        if points != self._recovery_points:
            self._recovery_points = points
            self._write_checkpoints()

    def _checkpoint_starts(self) -> None:
        starts = {log.tp: log.start_offset for log in self._logs()}
        if starts != self._starts:
            self._starts = starts
            self._write_checkpoints()

    def _checkpoint_watermarks(self) -> None:
        marks = self._replicas.high_watermarks()
        if marks != self._watermarks:
            self._watermarks = marks
            self._write_checkpoints()

    def _write_checkpoints(self) -> None:
        for write in self._replicas.directories.prepare_checkpoints(self._replicas.high_watermarks()):
            self._write_checkpoint(write)

    def _write_checkpoint(self, write: CheckpointWrite, then: Callable[[], None] = _nothing) -> None:
        """`then` follows unless the directory has failed."""

        def done(future: asyncio.Future[None]) -> None:
            error = None if future.cancelled() else future.exception()
            if not isinstance(error, OSError):
                then()
                return
            if passes(error):
                # What is removed may make room.
                then()
                # The old one still holds. It is due again at the next interval, whether anything changes or not.
                self._watermarks, self._recovery_points, self._starts = {}, {}, {}
                log_event.warning_limited("a checkpoint has to wait", directory=write.directory, reason=error)
                return
            self._replicas.fail_directory(write.directory, f"a checkpoint could not be written: {error}")

        self._workers.thread(write.run).add_done_callback(done)
