"""`ottla.spark.track`: commits what a query has read to its group, after each batch and after the last.

Spark asks a Python source to commit a batch only when it plans the next one, so that without this a group stays one
batch behind, and for ever behind the last. A listener hears of each batch that has ended. What it is to commit, and to
which cluster, stands beside the newest offsets in the query's progress; settings of the client do not.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

from pyspark.sql.streaming.listener import StreamingQueryListener

from ottla.client.errors import KafkaError
from ottla.logs import logger
from ottla.spark.options import client_settings
from ottla.spark.source.groups import commit_offsets
from ottla.spark.source.links import Link, link
from ottla.spark.source.offsets import Positions, positions_of
from ottla.spark.source.settings import SourceSettings

_LOG = logger("spark")
#: No topic has a # in its name.
COMMITTED_TO: Final = "#committedTo"
_GROUP: Final = "group.id"
_SERVERS: Final = "bootstrap.servers"


def reported(there: Positions, settings: SourceSettings) -> dict[str, Any]:
    """What a query's progress shows as its newest offsets: beside them where it is committed."""
    if settings.group is None:
        return there.as_json()
    return {**there.as_json(), COMMITTED_TO: {_GROUP: settings.group, _SERVERS: settings.client[_SERVERS]}}


def track(spark: Any, options: Mapping[str, Any] | None = None) -> GroupProgress:
    """From now on the session's queries with a `kafka.group.id` or a `groupIdPrefix` commit what they have read.

    `options` are those that begin with `kafka.`, where committing needs more than the addresses. `stop()` of what is
    returned ends it.
    """
    settings = {} if options is None else client_settings(options)
    found = GroupProgress(spark, settings)
    spark.streams.addListener(found)
    return found


class GroupProgress(StreamingQueryListener):  # type: ignore[misc]  # pyspark's annotations are not read
    def __init__(self, spark: Any, settings: Mapping[str, str]) -> None:
        self._spark = spark
        self._settings = {name: value for name, value in settings.items() if name not in {_SERVERS, _GROUP}}
        #: What was committed last, by query and group: idle queries report progress too.
        self._committed: dict[tuple[str, str], Positions] = {}

    def stop(self) -> None:
        self._spark.streams.removeListener(self)

    def onQueryStarted(self, event: Any) -> None:  # noqa: N802 - Spark's names, here and below
        pass

    def onQueryIdle(self, event: Any) -> None:  # noqa: N802
        pass

    def onQueryProgress(self, event: Any) -> None:  # noqa: N802
        self.take(event.progress)

    def take(self, progress: Any) -> None:
        """Commits what a query has read. Of a query's last batch Spark may say it here after everything has ended."""
        for source in progress.sources:
            try:
                self._take(str(progress.id), source.endOffset, source.latestOffset)
            except (KafkaError, ValueError) as error:
                _LOG.warning("a query's progress was not committed", query=progress.name, why=str(error))

    def onQueryTerminated(self, event: Any) -> None:  # noqa: N802
        self._committed = {name: last for name, last in self._committed.items() if name[0] != str(event.id)}

    def _take(self, query: str, end: str | None, latest: str | None) -> None:
        """Commits the end of a batch, if the source is ours and has a group."""
        if not end or not latest or COMMITTED_TO not in latest:
            return
        to = json.loads(latest)[COMMITTED_TO]
        group, servers = to[_GROUP], to[_SERVERS]
        reached = positions_of(end, "a query's progress")
        if self._committed.get((query, group)) != reached and commit_offsets(
            self._link(servers), group, reached.offsets
        ):
            self._committed[query, group] = reached

    def _link(self, servers: str) -> Link:
        return link({**self._settings, _SERVERS: servers})
