"""What the log directories have to tell an operator: one event is one line in the broker's log."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum

from ottla.model import TopicPartition


class Severity(Enum):
    INFO = "info"
    #: Something was damaged and has been repaired, or is left for an operator.
    WARNING = "warning"
    #: A partition or a directory went offline.
    ERROR = "error"


@dataclass(frozen=True, slots=True)
class DirectoryEvent:
    severity: Severity
    directory: str
    message: str
    partition: TopicPartition | None = None


OnEvent = Callable[[DirectoryEvent], None]
