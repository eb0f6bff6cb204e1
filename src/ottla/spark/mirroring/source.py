"""What Spark calls: a source whose micro-batches are copied by the tasks that read them."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, SupportsTriggerAvailableNow

from ottla.client.wire.world import real_world
from ottla.mirror.clients import FlowClients
from ottla.mirror.properties import FlowSettings, PropertyFault, parse_mirrors
from ottla.mirror.ranges import CopiedRange, copy_ranges
from ottla.model import TopicPartition
from ottla.spark.mirroring.planning import FlowPlanner
from ottla.spark.options import OptionError

FORMAT: Final = "ottla-mirror"
#: A row for each partition that was looked after. `copied`: below it the source is copied, and the copy ends at `end`.
SCHEMA: Final = "topic STRING, partition INT, copied BIGINT, end BIGINT, records BIGINT, bytes BIGINT, stopped STRING"
#: Of partitions, by topic and number, as text: JSON's names are texts.
Ends = dict[str, dict[str, int]]


def chosen_flow(properties: Mapping[str, str], name: str | None) -> FlowSettings:
    """Raises OptionError."""
    try:
        flows = parse_mirrors(properties).flows
    except PropertyFault as fault:
        raise OptionError(str(fault)) from fault
    found = [one for one in flows if name in {None, one.name}]
    if len(found) != 1:
        names = ", ".join(one.name for one in flows)
        raise OptionError(f"a query is one flow: name one of {names}" + ("" if name is None else f", not {name}"))
    return found[0]


@dataclass(frozen=True)
class TaskRanges(InputPartition):  # type: ignore[misc]  # pyspark's annotations are not read
    """What a task copies: partitions, each as far as an offset."""

    ends: tuple[tuple[TopicPartition, int], ...]


class MirrorDataSource(DataSource):  # type: ignore[misc]  # as above
    @classmethod
    def name(cls) -> str:
        return FORMAT

    def schema(self) -> str:
        return SCHEMA

    def streamReader(self, schema: Any) -> DataSourceStreamReader:  # noqa: N802 - Spark's name
        return MirrorReader(self.options["properties"], self.options["flow"], int(self.options["tasks"]))


class MirrorReader(DataSourceStreamReader, SupportsTriggerAvailableNow):  # type: ignore[misc]  # as above
    """Pickled as it was made, without what it plans with."""

    def __init__(self, properties: str, flow: str, tasks: int) -> None:
        self._made_of = (properties, flow, tasks)
        self._settings = chosen_flow(json.loads(properties), flow)
        self._tasks = tasks
        self._planner: FlowPlanner | None = None
        #: What a run with `availableNow` copies up to.
        self._until: Ends | None = None

    def __reduce__(self) -> tuple[Any, ...]:
        return MirrorReader, self._made_of

    # Planning, in the process of the driver

    def initialOffset(self) -> Ends:  # noqa: N802 - Spark's names, here and below
        """Nothing: where a copy begins is known to its journal, and decided by the task that makes it."""
        return {}

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        return ReadAllAvailable()

    def latestOffset(self, start: Ends, limit: ReadLimit) -> Ends:  # noqa: N802
        return self._ends() if self._until is None else self._until

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        self._until = self._ends()

    def _ends(self) -> Ends:
        if self._planner is None:
            self._planner = FlowPlanner(self._settings)
        found: Ends = {}
        for tp, end in self._planner.ends().items():
            found.setdefault(tp.topic, {})[str(tp.partition)] = end
        return found

    def partitions(self, start: Ends, end: Ends) -> list[InputPartition]:
        """Also those that are new and empty: where they begin is decided before there is a record."""
        moved = [
            (TopicPartition(topic, int(number)), offset)
            for topic, numbers in sorted(end.items())
            for number, offset in numbers.items()
            if start.get(topic, {}).get(number) != offset
        ]
        return [TaskRanges(tuple(moved[first :: self._tasks])) for first in range(min(self._tasks, len(moved)))]

    def stop(self) -> None:
        if self._planner is not None:
            self._planner.close()

    # Copying, in tasks

    def read(self, partition: InputPartition | None) -> Iterator[tuple[Any, ...]]:
        if not isinstance(partition, TaskRanges):  # Spark makes a task of nothing where there is no piece
            return
        for one in asyncio.run(_copied(self._settings, dict(partition.ends))):
            yield *one.partition, one.copied, one.end, one.records, one.bytes, one.stopped


async def _copied(settings: FlowSettings, ends: Mapping[TopicPartition, int]) -> list[CopiedRange]:
    clients = await FlowClients.opened(settings, real_world(), group=None)
    try:
        return await copy_ranges(clients, ends)
    finally:
        await clients.close()
