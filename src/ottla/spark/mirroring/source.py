"""What Spark calls: a source whose micro-batches are copied by the tasks that read them."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, SupportsTriggerAvailableNow

from ottla.client.wire.world import real_world
from ottla.mirror.clients import FlowClients
from ottla.mirror.properties import FlowSettings, PropertyFault, parse_mirrors
from ottla.mirror.ranges import CopiedRange, copy_ranges
from ottla.model import TopicPartition
from ottla.spark.mirroring.planning import REFUSED, FlowPlanner
from ottla.spark.options import OptionError
from ottla.spark.source.offsets import TOPIC_IDS

FORMAT: Final = "ottla-mirror"
#: A row for each partition that was looked after. `copied`: below it the source is copied, and the copy ends at `end`.
#: Both are null where the target has no such partition, and does not take it.
SCHEMA: Final = "topic STRING, partition INT, copied BIGINT, end BIGINT, records BIGINT, bytes BIGINT, stopped STRING"
#: Of partitions, by topic and number, as text: JSON's names are texts. And `LOOKS` and `TOPIC_IDS`, which no topic is
#: called: a topic that was made again may end where the one before it did.
Ends = dict[str, dict[str, Any]]
#: How often a query was started that looked at partitions whose sources had not moved.
LOOKS: Final = ""


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
    """What a task copies: partitions, each as far as an offset. Of those that cannot be it says why."""

    ends: tuple[tuple[TopicPartition, int], ...]
    refused: tuple[tuple[TopicPartition, str], ...] = ()


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
        #: What the query's offsets say under LOOKS; None before the first of them was asked for.
        self._looks: dict[str, int] | None = None
        #: Given to tasks since the query was started.
        self._given: set[TopicPartition] = set()

    def __reduce__(self) -> tuple[Any, ...]:
        return MirrorReader, self._made_of

    # Planning, in the process of the driver

    def initialOffset(self) -> Ends:  # noqa: N802 - Spark's names, here and below
        """Nothing: where a copy begins is known to its journal, and decided by the task that makes it."""
        return {}

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        return ReadAllAvailable()

    def latestOffset(self, start: Ends, limit: ReadLimit) -> Ends:  # noqa: N802
        """With the first of a query all partitions are looked at: one that had stopped may have been mended since."""
        ends = self._ends() if self._until is None else self._until
        if self._looks is None:
            self._looks = start.get(LOOKS, {})
            if any(
                start.get(tp.topic, {}).get(str(tp.partition)) == end and tp not in self._given
                for tp, end in _places(ends)
            ):
                self._looks = {"starts": self._looks.get("starts", 0) + 1}
        return {LOOKS: self._looks, **ends} if self._looks else ends

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        self._until = self._ends()

    def _ends(self) -> Ends:
        found: Ends = {}
        # Spark compares offsets as texts, and brokers answer in any order.
        for tp, end in sorted(self._opened().ends().items()):
            found.setdefault(tp.topic, {})[str(tp.partition)] = end
        known = {topic: topic_id for topic, topic_id in sorted(self._opened().ids().items()) if topic in found}
        return {**found, TOPIC_IDS: known} if known else found

    def _opened(self) -> FlowPlanner:
        if self._planner is None:
            self._planner = FlowPlanner(self._settings)
        return self._planner

    def partitions(self, start: Ends, end: Ends) -> list[InputPartition]:
        """Also those that are new and empty: where they begin is decided before there is a record."""
        all_of_them = start.get(LOOKS) != end.get(LOOKS)
        before, now = start.get(TOPIC_IDS, {}), end.get(TOPIC_IDS, {})
        made_again = {topic for topic in before.keys() & now.keys() if before[topic] != now[topic]}
        moved = [
            (tp, offset)
            for tp, offset in _places(end)
            if all_of_them or tp.topic in made_again or start.get(tp.topic, {}).get(str(tp.partition)) != offset
        ]
        self._given |= {tp for tp, _ in moved}
        return [self._piece(moved[first :: self._tasks]) for first in range(min(self._tasks, len(moved)))]

    def _piece(self, some: Sequence[tuple[TopicPartition, int]]) -> TaskRanges:
        return TaskRanges(
            tuple((tp, offset) for tp, offset in some if offset != REFUSED),
            tuple((tp, self._opened().refusal(tp)) for tp, offset in some if offset == REFUSED),
        )

    def stop(self) -> None:
        if self._planner is not None:
            self._planner.close()

    # Copying, in tasks

    def read(self, partition: InputPartition | None) -> Iterator[tuple[Any, ...]]:
        if not isinstance(partition, TaskRanges):  # Spark makes a task of nothing where there is no piece
            return
        for tp, why in partition.refused:
            yield *tp, None, None, 0, 0, why
        if not partition.ends:
            return
        for one in asyncio.run(_copied(self._settings, dict(partition.ends))):
            yield *one.partition, one.copied, one.end, one.records, one.bytes, one.stopped


def _places(ends: Ends) -> list[tuple[TopicPartition, int]]:
    return [
        (TopicPartition(topic, int(number)), end)
        for topic, numbers in sorted(ends.items())
        if topic not in {LOOKS, TOPIC_IDS}
        for number, end in numbers.items()
    ]


async def _copied(settings: FlowSettings, ends: Mapping[TopicPartition, int]) -> list[CopiedRange]:
    clients = await FlowClients.opened(settings, real_world(), group=None)
    try:
        return await copy_ranges(clients, ends)
    finally:
        await clients.close()
