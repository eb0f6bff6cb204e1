"""Opens a log, or begins one in a new folder."""

from __future__ import annotations

from collections.abc import Callable

from ottla.config import LogConfig
from ottla.model import TopicPartition
from ottla.ports import Disk
from ottla.storage.log.indexes.segment_file import LogContext
from ottla.storage.log.log import Log
from ottla.storage.log.open_files import OpenFiles
from ottla.storage.log.opening.loading import begin, load


def open_log(
    disk: Disk,
    directory: str,
    tp: TopicPartition,
    config: LogConfig,
    *,
    now_ms: int,
    clean: bool,
    recovery_point: int = 0,
    start_offset: int = 0,
    cleaned_to: int = -1,
    on_warning: Callable[[str], None] = lambda _: None,
    files: OpenFiles | None = None,
) -> Log:
    """Loads the log in a folder, or begins one there; raises CorruptLog, StorageFault.

    `files` bounds what all logs of a directory hold open. It is not used before this returns, so that threads may
    open several logs at once. `cleaned_to` is the cleaner's checkpoint: a log that it was in may have holes.
    """
    around = LogContext(disk, directory, OpenFiles(), config.index_interval_bytes, on_warning)
    loaded = load(
        around,
        tp,
        clean=clean,
        recovery_point=recovery_point,
        start_offset=start_offset,
        now_ms=now_ms,
        gaps_allowed=config.may_have_gaps or cleaned_to >= 0,
    )
    if files is not None:
        loaded.keep_in(files)
    return Log(tp, config, loaded, recovery_point=recovery_point, cleaned_to=cleaned_to, now_ms=now_ms)


def begin_log(
    disk: Disk,
    directory: str,
    tp: TopicPartition,
    config: LogConfig,
    *,
    now_ms: int,
    on_warning: Callable[[str], None],
    files: OpenFiles,
) -> Log:
    """Begins a log in a folder that has just been made: there is nothing in it to look for. Raises StorageFault.

    `files` is not used before this returns.
    """
    loaded = begin(LogContext(disk, directory, OpenFiles(), config.index_interval_bytes, on_warning))
    loaded.keep_in(files)
    return Log(tp, config, loaded, recovery_point=0, cleaned_to=-1, now_ms=now_ms)
