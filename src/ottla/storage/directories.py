"""A broker's log directories as one: which partition is where, and what is done to whole partitions.

A replica lives in one directory. New ones go to the directory that has the fewest. A directory that fails goes offline
with all its partitions, and the others go on; a damaged partition goes offline alone. Nothing here runs by itself: the
broker's loop calls, and what blocks for long (removals, checkpoints, flushes) comes back as a plain object with `run`,
for a worker.
"""

from __future__ import annotations

import os.path
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from ottla.config.log import LogConfig
from ottla.model import ZERO_TOPIC_ID, TopicPartition
from ottla.ports.disk import Disk
from ottla.ports.entropy import Entropy
from ottla.storage import loading, moving, stopping
from ottla.storage.checkpoints import CheckpointWrite
from ottla.storage.directory import Identity, LogDirectory
from ottla.storage.directory_errors import (
    DirectoryError,
    DirectoryNotFound,
    DirectoryOffline,
    InconsistentTopicId,
    MoveRefused,
    NoUsableDirectory,
    PartitionOffline,
)
from ottla.storage.directory_events import DirectoryEvent, OnEvent, Severity
from ottla.storage.directory_status import DirectoryStatus, describe_directory
from ottla.storage.formats import partition_metadata
from ottla.storage.formats.errors import FormatError
from ottla.storage.formats.names import FolderKind, format_folder
from ottla.storage.formats.offset_checkpoint import HIGH_WATERMARKS, RECOVERY_POINTS
from ottla.storage.identity import check_distinct
from ottla.storage.loading import ConfigFor, Run, run_in_turn
from ottla.storage.log import Log
from ottla.storage.moving import FutureLog
from ottla.storage.removal import Removal

