"""What the log directories report to an operator: one event is one line in the broker's log."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Protocol

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


class DirectoryOwner(Protocol):
    """Serves what the directories hold."""

    def directory_failed(self, failed: Sequence[TopicPartition]) -> None:
        """A directory has failed, and with it these, which could be served until now; `online_paths` are left."""
        ...


class LogWarnings:
    """What one log warns about. Held back while it is opened, which may be in a thread, and reported on the loop."""

    __slots__ = ("_held", "_on_event", "directory", "partition")

    def __init__(self, directory: str, partition: TopicPartition, on_event: OnEvent) -> None:
        self.directory = directory
        self.partition = partition
        self._on_event = on_event
        self._held: list[str] | None = []

    def __call__(self, message: str) -> None:
        if self._held is None:
            self._on_event(DirectoryEvent(Severity.WARNING, self.directory, message, self.partition))
        else:
            self._held.append(message)

    def report(self) -> None:
        """Reports what was held, and holds nothing from now on."""
        held, self._held = self._held, None
        for message in held or ():
            self(message)
