"""The clean stop of one log directory.

Order is everything: the clean-shutdown marker says "nothing here needs checking", so it is written after every dirty
log has been flushed and closed and the checkpoints are on the medium. A directory in which a flush failed, or in which
a folder was never checked after a crash, gets no marker: its logs are then checked from their recovery points, which is
little work after a stop like this.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from ottla.model import TopicPartition
from ottla.storage.directories.directory import LogDirectory
from ottla.storage.errors import StorageFault

if TYPE_CHECKING:
    from ottla.storage.log.log import Flush, Log


class LastFlush(NamedTuple):
    """A log's last flush. Four workers side by side take a fifth of the time of one after the other: fsyncs wait."""

    log: Log
    flush: Flush

    def run(self) -> None:
        """Blocks, so workers call it. On OSError its directory will not be left clean."""
        self.flush.run()

    def settle(self) -> None:
        """To be called on the loop after `run`, failed or not."""
        if self.flush.done:
            self.log.flushed(self.flush)
        else:
            # The stop itself tries again what has failed for want of room, and is refused.
            self.log.durability.lost()


def prepare_last_flushes(logs: Sequence[Log]) -> list[LastFlush]:
    """For the logs that are dirty; one that cannot say what it has to flush is left for the stop itself to refuse."""
    found = []
    for log in logs:
        try:
            flush = log.prepare_close()
        except (OSError, StorageFault):
            continue
        if flush is not None:
            found.append(LastFlush(log, flush))
    return found


def stop_directory(
    directory: LogDirectory, high_watermarks: Mapping[TopicPartition, int], broker_epoch: int
) -> str | None:
    """Leaves the directory clean and lets go of it; returns what prevented that, or None."""
    logs = directory.all_logs()
    try:
        return _flush(logs) or _leave(directory, high_watermarks, broker_epoch)
    finally:
        for log in logs:
            directory.abandon(log)
        directory.release()


def _flush(logs: Sequence[Log]) -> str | None:
    """Brings what is still dirty to the medium, all that can be; returns the first failure."""
    failure: str | None = None
    for log in logs:
        try:
            flush = log.prepare_close()
            if flush is not None:
                flush.run()
                log.flushed(flush)
        except (OSError, StorageFault) as error:
            failure = failure or str(error)
    if failure is None and any(log.recovery_point < log.end_offset for log in logs):
        # An earlier flush is still under way: nobody may say that its records are on the medium.
        failure = "a log was still being flushed"
    return failure


def _leave(directory: LogDirectory, high_watermarks: Mapping[TopicPartition, int], broker_epoch: int) -> str | None:
    try:
        directory.prepare_checkpoints(high_watermarks).run()
        if directory.is_trusted or not directory.unopened:
            directory.mark_clean(broker_epoch)
    except OSError as error:
        return str(error)
    return None
