"""The clean stop of one log directory.

Order is everything: the clean-shutdown marker says "nothing here needs checking", so it is written after every dirty
log has been flushed and closed and the checkpoints are on the medium. A directory in which a flush failed, or in which
a folder was never checked after a crash, gets no marker: its logs are then checked from their recovery points, which is
little work after a stop like this.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from ottla.model import TopicPartition
from ottla.storage.directory import LogDirectory
from ottla.storage.errors import StorageFault

if TYPE_CHECKING:
    from ottla.storage.log import Flush, Log

#: A flush that may run beside others; it returns what went wrong, or None.
FlushJob = Callable[[], "OSError | StorageFault | None"]
RunFlushes = Callable[[Sequence[FlushJob]], "list[OSError | StorageFault | None]"]


def run_flushes_in_turn(jobs: Sequence[FlushJob]) -> list[OSError | StorageFault | None]:
    return [job() for job in jobs]


def stop_directory(
    directory: LogDirectory, high_watermarks: Mapping[TopicPartition, int], broker_epoch: int, run: RunFlushes
) -> str | None:
    """Leaves the directory clean and lets go of it; returns what prevented that, or None."""
    logs = [*directory.logs.values(), *(log for _, log in directory.futures.values())]
    try:
        failure = flush_logs(logs, run)
        if failure is None:
            failure = _leave(directory, high_watermarks, broker_epoch)
    finally:
        for log in logs:
            directory.abandon(log)
        directory.release()
    return failure


def flush_logs(logs: Sequence[Log], run: RunFlushes) -> str | None:
    """Brings every dirty log to the medium; returns the first failure."""
    dirty: list[tuple[Log, Flush]] = []
    failure: str | None = None
    for log in logs:
        try:
            flush = log.prepare_close()
        except (OSError, StorageFault) as error:
            failure = failure or str(error)
            continue
        if flush is not None:
            dirty.append((log, flush))
    for (log, flush), fault in zip(dirty, run([_job(flush) for _, flush in dirty]), strict=True):
        if fault is None:
            log.flushed(flush)
        else:
            failure = failure or str(fault)
    if failure is None and any(log.recovery_point < log.end_offset for log in logs):
        # An earlier flush is still under way: nobody may say that its records are on the medium.
        failure = "a log was still being flushed"
    return failure


def _job(flush: Flush) -> FlushJob:
    def job() -> OSError | StorageFault | None:
        try:
            flush.run()
        except (OSError, StorageFault) as error:
            return error
        return None

    return job


def _leave(directory: LogDirectory, high_watermarks: Mapping[TopicPartition, int], broker_epoch: int) -> str | None:
    try:
        directory.prepare_checkpoints(high_watermarks).run()
        if directory.is_trusted or not directory.unopened:
            directory.mark_clean(broker_epoch)
    except OSError as error:
        return str(error)
    return None
