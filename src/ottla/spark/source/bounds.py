"""From what is asked for to offsets that there are: where each partition begins and ends.

*Latest* is asked at the isolation level that is read at, so that a batch of committed records ends before the first
transaction that is still open.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from ottla.client.admin.group_offsets import list_group_offsets
from ottla.client.errors import KafkaError
from ottla.client.settings import ConsumerSettings
from ottla.client.wire.cluster import Cluster
from ottla.client.wire.listed_offset import EARLIEST, LATEST
from ottla.client.wire.offsets import READ_COMMITTED, READ_UNCOMMITTED, list_offsets
from ottla.model import TopicPartition
from ottla.spark.deleted import list_offsets_there
from ottla.spark.options import OptionError
from ottla.spark.source.loss import LossPolicy
from ottla.spark.source.offsets import EARLIEST_OFFSET, Positions
from ottla.spark.source.settings import Bound

_SHOWN_MAX = 5


class Ends(NamedTuple):
    """The first offset of a partition's log, and the one behind the last record to be read."""

    earliest: int
    latest: int


class Offsets:
    """Offsets of a cluster's partitions, asked for at one isolation level."""

    def __init__(self, cluster: Cluster, settings: ConsumerSettings) -> None:
        self._cluster = cluster
        self._isolation = READ_COMMITTED if settings.isolation_level == "read_committed" else READ_UNCOMMITTED

    async def listed(self, asked: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
        if not asked:
            return {}
        found = await list_offsets(self._cluster, asked, isolation_level=self._isolation)
        return {tp: one.offset for tp, one in found.items()}

    async def earliest(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        return await self.listed(dict.fromkeys(partitions, EARLIEST))

    async def latest(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        return await self.listed(dict.fromkeys(partitions, LATEST))

    async def there(
        self, partitions: Iterable[TopicPartition], time: int
    ) -> tuple[dict[TopicPartition, int], dict[TopicPartition, KafkaError]]:
        """EARLIEST or LATEST of those that are there, and what was said of the others."""
        return await list_offsets_there(self._cluster, dict.fromkeys(partitions, time), self._isolation)

    async def ends(self, partitions: Sequence[TopicPartition]) -> dict[TopicPartition, Ends]:
        # The end is asked for last: what is deleted meanwhile would put the beginning behind it.
        first = await self.earliest(partitions)
        last = await self.latest(partitions)
        return {tp: Ends(first[tp], last[tp]) for tp in partitions}

    async def resolved(
        self,
        bound: Bound,
        ends: Mapping[TopicPartition, Ends],
        *,
        group: str | None,
        ids: Mapping[str, bytes],
        loss: LossPolicy,
    ) -> dict[TopicPartition, int]:
        """The offset of each partition that a bound means."""
        if bound.everywhere is not None:
            first = bound.everywhere == EARLIEST_OFFSET
            return {tp: there.earliest if first else there.latest for tp, there in ends.items()}
        if bound.group:
            assert group is not None, "the settings were checked"
            return await self._of_group(group, ends, loss)
        if bound.positions is not None:
            return self._given(bound, bound.positions, ends, ids, loss)
        return await self._by_time(bound, ends)

    async def _of_group(
        self, group: str, ends: Mapping[TopicPartition, Ends], loss: LossPolicy
    ) -> dict[TopicPartition, int]:
        """Where a group stands. Where it has committed nothing, everything is still to be read."""
        found = await list_group_offsets(self._cluster, {group: list(ends)}, require_stable=False)
        offsets = {}
        for tp, there in ends.items():
            committed = found[group].get(tp)
            offsets[tp] = there.earliest if committed is None else within(tp, committed.offset, there, loss)
        return offsets

    def _given(
        self,
        bound: Bound,
        positions: Positions,
        ends: Mapping[TopicPartition, Ends],
        ids: Mapping[str, bytes],
        loss: LossPolicy,
    ) -> dict[TopicPartition, int]:
        _check_all_named(bound.option, positions.offsets, ends)
        offsets = {}
        for tp, given in positions.offsets.items():
            there = ends[tp]
            if given < 0:
                offsets[tp] = there.earliest if given == EARLIEST_OFFSET else there.latest
            elif not positions.same_topic(tp.topic, ids[tp.topic]):
                loss.report(f"topic {tp.topic} was deleted and made again since {bound.option} was written")
                offsets[tp] = there.earliest
            else:
                offsets[tp] = within(tp, given, there, loss)
        return offsets

    async def _by_time(self, bound: Bound, ends: Mapping[TopicPartition, Ends]) -> dict[TopicPartition, int]:
        if bound.times_ms is not None:
            _check_all_named(bound.option, bound.times_ms, ends)
            asked = dict(bound.times_ms)
        else:
            assert bound.time_ms is not None, "one of the fields is filled"
            asked = dict.fromkeys(ends, bound.time_ms)
        found = await self.listed(asked)
        none_there = sorted(tp for tp, offset in found.items() if offset < 0)
        if none_there and not bound.latest_if_none:
            raise OptionError(
                f"{bound.option}: no record as young as that is in {_some(none_there)}; give an earlier time, or set "
                "startingOffsetsByTimestampStrategy to latest to begin at the end there"
            )
        return {tp: ends[tp].latest if found[tp] < 0 else found[tp] for tp in ends}


def within(tp: TopicPartition, offset: int, there: Ends, loss: LossPolicy) -> int:
    """The offset, or the nearest there is; what lies between the two is lost."""
    if offset < there.earliest:
        loss.lost(tp, offset, there.earliest, f"the log begins at offset {there.earliest} now")
        return there.earliest
    if offset > there.latest:
        loss.lost(tp, there.latest, offset, f"the log ends at offset {there.latest}")
        return there.latest
    return offset


def _check_all_named(option: str, named: Mapping[TopicPartition, int], there: Mapping[TopicPartition, Ends]) -> None:
    missing = sorted(set(there) - set(named))
    if missing:
        raise OptionError(f"{option} must name every partition that is read, and does not name {_some(missing)}")
    unknown = sorted(set(named) - set(there))
    if unknown:
        raise OptionError(f"{option} names {_some(unknown)}, which what is read does not have")


def _some(partitions: Sequence[TopicPartition]) -> str:
    named = ", ".join(str(tp) for tp in partitions[:_SHOWN_MAX])
    more = len(partitions) - _SHOWN_MAX
    return f"{named} and {more} more" if more > 0 else named
