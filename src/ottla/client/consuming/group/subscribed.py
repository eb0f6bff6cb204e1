"""What a member subscribes to, kept fresh: topics by name, or all whose names match a pattern.

A pattern is matched against the whole name, and against all topics that the cluster has: they are listed each
`metadata.max.age.ms`. A topic that is not there yet is asked for again and again, so that it is noticed when it comes.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Iterable
from typing import Final

from ottla.client.errors import ClientClosed, KafkaError, NoBrokerReached, error_of
from ottla.client.settings import ConsumerSettings
from ottla.client.wire.backoff import Backoff
from ottla.client.wire.cluster import Cluster
from ottla.client.wire.metadata import says_nothing
from ottla.model import INTERNAL_TOPICS, ErrorCode
from ottla.protocol.generated.metadata import MetadataRequest, MetadataResponse

#: However short `metadata.max.age.ms` is.
_PAUSE_SECONDS_MIN: Final = 0.1
#: Errors of a topic that the caller gets; others may pass.
_TOLD: Final = frozenset({ErrorCode.INVALID_TOPIC_EXCEPTION, ErrorCode.TOPIC_AUTHORIZATION_FAILED})


class SubscribedTopics:
    def __init__(
        self, settings: ConsumerSettings, cluster: Cluster, backoff: Backoff, on_change: Callable[[], None]
    ) -> None:
        self._settings = settings
        self._cluster = cluster
        self._backoff = backoff
        #: Called when the pattern matches other topics than before.
        self._on_change = on_change
        self.topics: frozenset[str] = frozenset()
        self._pattern: re.Pattern[str] | None = None
        self._listing: asyncio.Task[None] | None = None
        #: Ends when the pattern has been matched for the first time.
        self._matched: asyncio.Future[None] | None = None
        self._misses = 0
        self._timer: asyncio.TimerHandle | None = None

    @property
    def active(self) -> bool:
        return self._pattern is not None or bool(self.topics)

    def choose(self, topics: Iterable[str]) -> None:
        self.end()
        self.topics = frozenset(topics)

    def match(self, pattern: str | re.Pattern[str]) -> None:
        compiled = re.compile(pattern)
        self.end()
        self._pattern = compiled

    def end(self) -> None:
        """Subscribes to nothing any more."""
        self.topics = frozenset()
        self._pattern = None
        self._misses = 0
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._listing is not None:
            self._listing.cancel()
            self._listing = None
        if self._matched is not None:
            self._matched.cancel()
            self._matched = None

    async def known(self) -> frozenset[str]:
        """The topics; with a pattern, when it has been matched for the first time."""
        if self._pattern is not None:
            if self._listing is None:
                loop = asyncio.get_running_loop()
                self._matched = loop.create_future()
                self._listing = loop.create_task(self._list(self._pattern, self._matched))
            assert self._matched is not None
            await asyncio.shield(self._matched)
        return self.topics

    async def _list(self, pattern: re.Pattern[str], matched: asyncio.Future[None]) -> None:
        failures = 0
        while True:
            try:
                answer = await self._cluster.ask(None, MetadataRequest(topics=None), MetadataResponse, at_least=1)
                if says_nothing(answer):
                    raise NoBrokerReached("the broker that was asked knows nobody yet")
            except ClientClosed:
                return
            except KafkaError as error:
                if not error.retriable and not matched.done():
                    matched.set_exception(error)
                    matched.exception()
                    return
                failures += 1
                await asyncio.sleep(self._backoff.pause_ms(failures) / 1000)
                continue
            failures = 0
            found = frozenset(
                topic.name
                for topic in answer.topics
                if topic.name is not None
                and not topic.error_code
                and self._fits(pattern, topic.name, topic.is_internal)
            )
            changed = found != self.topics
            self.topics = found
            if not matched.done():
                matched.set_result(None)
            elif changed:
                self._on_change()
            await asyncio.sleep(max(_PAUSE_SECONDS_MIN, self._settings.metadata_max_age_ms / 1000))

    def _fits(self, pattern: re.Pattern[str], name: str, internal: bool) -> bool:
        if self._settings.exclude_internal_topics and (internal or name in INTERNAL_TOPICS):
            return False
        return pattern.fullmatch(name) is not None

    def look(self) -> KafkaError | None:
        """After news of the cluster: asks again for what is missing, and returns the error that the caller must get."""
        fault: KafkaError | None = None
        missing = False
        metadata = self._cluster.metadata
        for topic in self.topics:
            error = metadata.errors.get(topic)
            if error in _TOLD:
                fault = error_of(error, about=topic)
            elif topic not in metadata.topics:
                missing = True
        if not missing:
            self._misses = 0
        elif self._timer is None:
            self._misses += 1
            pause = self._backoff.pause_ms(self._misses) / 1000
            self._timer = asyncio.get_running_loop().call_later(pause, self._ask_again)
        return fault

    def _ask_again(self) -> None:
        self._timer = None
        self._cluster.request_update()
