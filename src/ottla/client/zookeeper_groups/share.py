"""What a member reads: its partitions, and how far their records were given out.

    done <= given = behind the last record that was given out

What was given out counts as done when the application comes for more: only then it may be committed.

A place that only `auto.offset.reset` gave counts as done as well, as in Kafka 0.8: what is written behind it while the
group is away is for the next owner, who would otherwise begin behind that.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence

from ottla.client.consuming.consumer import Consumer
from ottla.client.errors import GroupRebalanceFailed, KafkaError
from ottla.client.records import ConsumerRecord
from ottla.client.wire.world import ClientPorts
from ottla.client.zookeeper_groups.settings import ZookeeperConsumerSettings
from ottla.model import TopicPartition


class Share:
    def __init__(self, settings: ZookeeperConsumerSettings, world: ClientPorts) -> None:
        self._settings = settings
        self._world = world
        #: Reads the partitions, in no group that a broker knows of; None until there are some.
        self.reader: Consumer | None = None
        #: Whether they are this member's, and nothing is about to change.
        self.is_settled = False
        #: Read, and not given out: a poll that was cancelled may leave some. The reader stands behind them.
        self._ready: list[ConsumerRecord] = []
        self._given: dict[TopicPartition, int] = {}
        self._done: dict[TopicPartition, int] = {}
        #: Partitions for which the tree had no offset when the share began.
        self._unplaced: set[TopicPartition] = set()
        #: Where their reading began, as far as that is known: not above the first record that was read.
        self._begun: dict[TopicPartition, int] = {}
        #: To be raised by the next poll.
        self.fault: GroupRebalanceFailed | None = None
        #: Set by whatever a poll that waits has to hear of.
        self.news = asyncio.Event()

    # What the member says.

    def hold(self) -> None:
        """Nothing is read until `begin` or `end`."""
        self.is_settled = False
        self.news.set()

    def begin(self, bootstrap: str, positions: Mapping[TopicPartition, int | None], kept: set[TopicPartition]) -> None:
        """These are the member's; those that are kept go on where they are. None: nobody knows a position."""
        if self.reader is None:
            self.reader = Consumer(self._settings.of_reading(bootstrap), world=self._world)
        before = set(self.reader.assignment())
        kept = kept & before
        # What was read ahead of partitions that others had meanwhile is dropped.
        self.reader.assign(kept)
        self.reader.assign(positions)
        for tp, offset in positions.items():
            if tp not in kept and offset is not None:
                self.reader.seek(tp, offset)
        self._ready = [one for one in self._ready if TopicPartition(one.topic, one.partition) in kept]
        self._given = {tp: offset for tp, offset in self._given.items() if tp in kept}
        self._done = {tp: offset for tp, offset in self._done.items() if tp in kept}
        self._unplaced = {tp for tp, offset in positions.items() if offset is None}
        self._begun = {tp: offset for tp, offset in self._begun.items() if tp in kept}
        self.is_settled = True
        self.news.set()

    def end(self) -> None:
        """None is the member's any more."""
        self.is_settled = False
        self._ready.clear()
        self._given.clear()
        self._done.clear()
        self._unplaced.clear()
        self._begun.clear()
        if self.reader is not None:
            self.reader.assign([])
        self.news.set()

    def failed(self, fault: GroupRebalanceFailed) -> None:
        self.fault = fault
        self.news.set()

    async def done(self) -> dict[TopicPartition, int]:
        """What may be committed."""
        for tp in self._unplaced - set(self._begun):
            assert self.reader is not None  # since the share began
            try:
                place = await self.reader.position(tp, timeout_ms=0)
            except KafkaError:
                continue  # not looked up yet
            if tp in self._unplaced:
                self._begun.setdefault(tp, place)
        return {**{tp: place for tp, place in self._begun.items() if tp in self._unplaced}, **self._done}

    # What the application does.

    def partitions(self) -> list[TopicPartition]:
        return sorted(self.reader.assignment()) if self.is_settled and self.reader is not None else []

    def all_done(self) -> None:
        """The application has worked on all that it was given."""
        self._done = dict(self._given)

    async def read(self, reader: Consumer, max_records: int | None, timeout_ms: int | None) -> None:
        """Until something lies ready, or the time is up."""
        records = await reader.poll(max_records=max_records, timeout_ms=timeout_ms)
        for record in records:
            self._begun.setdefault(TopicPartition(record.topic, record.partition), record.offset)
        self._ready += records

    def take(self, max_records: int | None) -> list[ConsumerRecord]:
        """What lies ready."""
        taken = self._ready[:max_records]
        del self._ready[: len(taken)]
        return taken

    def gave(self, records: Sequence[ConsumerRecord]) -> None:
        mine = set() if self.reader is None else set(self.reader.assignment())
        for record in records:
            tp = TopicPartition(record.topic, record.partition)
            if tp in mine:  # otherwise it is another's since a moment ago, who reads the record again
                self._given[tp] = record.offset + 1

    async def close(self) -> None:
        if self.reader is not None:
            await self.reader.close()
