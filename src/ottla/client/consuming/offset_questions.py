"""What a consumer asks of partitions, whether it reads them or not, in a class of its own: one part of `Consumer`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ottla.client.arguments import a_kind_of, checked_partitions, checked_timestamp
from ottla.client.errors import BadArgument
from ottla.client.records import OffsetAndTimestamp
from ottla.client.wire.cluster import Cluster
from ottla.client.wire.listed_offset import EARLIEST, LATEST
from ottla.client.wire.offsets import list_offsets
from ottla.model import TopicPartition


class OffsetQuestions:
    cluster: Cluster
    _isolation: int

    async def beginning_offsets(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        return await self._offsets(dict.fromkeys(checked_partitions(partitions), EARLIEST))

    async def end_offsets(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """Behind the last record; with read_committed behind the last that no open transaction holds back."""
        return await self._offsets(dict.fromkeys(checked_partitions(partitions), LATEST))

    async def _offsets(self, asked: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
        found = await list_offsets(self.cluster, asked, isolation_level=self._isolation)
        return {tp: one.offset for tp, one in found.items()}

    async def offsets_for_times(
        self, times: Mapping[TopicPartition, int]
    ) -> dict[TopicPartition, OffsetAndTimestamp | None]:
        """For each partition the first record at or after a time in ms; None where there is none as young."""
        if not isinstance(times, Mapping):
            raise BadArgument(f"times must be a mapping of partitions to times, not {a_kind_of(times)}")
        asked = {
            tp: checked_timestamp(time, f"the time of {tp}")
            for tp, time in zip(checked_partitions(times), times.values(), strict=True)
        }
        found = await list_offsets(self.cluster, asked, isolation_level=self._isolation)
        return {
            tp: None if one.offset < 0 else OffsetAndTimestamp(one.offset, one.timestamp, one.leader_epoch)
            for tp, one in found.items()
        }

    async def partitions_for(self, topic: str) -> list[TopicPartition]:
        """A topic's partitions, as `assign` takes them."""
        found = await self.cluster.seen_topic(topic)
        return [TopicPartition(topic, one.partition) for one in found.partitions]
