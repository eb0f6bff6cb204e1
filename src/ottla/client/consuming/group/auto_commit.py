"""`enable.auto.commit`: positions are committed each `auto.commit.interval.ms`, but only while the caller polls.

What was given out by one poll counts as processed when the next begins, not before: a member that crashes in between
has its last records read again by somebody else, and none is lost.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

from ottla.client.consuming.group.commits import Commits, Offsets
from ottla.client.consuming.reading import RecordReading
from ottla.client.errors import KafkaError, RebalanceInProgress, TooManyCommits
from ottla.client.settings import ConsumerSettings
from ottla.logs import logger

_LOG = logger("client")

#: Positions that stay the same are committed again so often, and not at each interval: the coordinator shall see that
#: somebody is there, without a record each five seconds for each idle consumer.
_REPEAT_SECONDS: Final = 60.0
#: However short the interval is: who has just looked, and had nothing to commit, takes a record before it looks again.
_INTERVAL_SECONDS_MIN: Final = 0.001


class AutoCommit:
    def __init__(
        self, settings: ConsumerSettings, commits: Commits, reading: RecordReading, possible: Callable[[], bool]
    ) -> None:
        self.enabled = settings.enable_auto_commit
        self._interval = max(_INTERVAL_SECONDS_MIN, settings.auto_commit_interval_ms / 1000)
        self._retry = max(_INTERVAL_SECONDS_MIN, settings.retry_backoff_ms / 1000)
        self._commits = commits
        self._reading = reading
        #: Whether a commit has any hope now.
        self._possible = possible
        #: In the loop's time.
        self._next = 0.0
        self._known: Offsets = {}
        self._known_at = 0.0
        self._under_way = False

    def due(self, now: float) -> bool:
        return self.enabled and now >= self._next and not self._under_way

    def begin(self) -> None:
        """Partitions have come or gone: the interval begins anew."""
        self._next = asyncio.get_running_loop().time() + self._interval
        self._known = {}

    def look(self) -> None:
        """Commits if it is time to. Called at the beginning of a poll."""
        now = asyncio.get_running_loop().time()
        if not self.due(now):
            return
        if not self._possible():
            self._next = now + min(self._retry, self._interval)
            return
        self._next = now + self._interval
        positions = self._reading.positions()
        if not positions or (positions == self._known and now < self._known_at + _REPEAT_SECONDS):
            return
        try:
            self._commits.later(positions, self._done)
        except TooManyCommits:  # of the caller's own, which nobody answers: his poll is for records
            self._next = now + self._retry
        else:
            self._under_way = True

    def _done(self, offsets: Offsets, error: KafkaError | None) -> None:
        self._under_way = False
        now = asyncio.get_running_loop().time()
        if error is None:
            self._known, self._known_at = offsets, now
            return
        if error.retriable or isinstance(error, RebalanceInProgress):
            self._next = min(self._next, now + self._retry)
        else:
            _LOG.warning("offsets were not committed", error=error)
