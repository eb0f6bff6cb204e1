"""From when on a table can be computed again: what it reads may have lost rows by `retain`, and topics lose records.

What was made of those is older than they were: no row is younger than the moment at which it was read. So rows of a
table from that moment on can be computed again, and older ones stay as they are: nothing could take their place.

    a table with `retain`    up to when the rows were written that are gone; a backfill that has just brought them back
                             from a topic makes that good
    a topic                  up to the first record that is left, of the partitions that do not begin with offset 0
    a compacted topic        up to now: it loses records at any place
    a topic made again       up to when the flow first met it: those of the one before are gone

A table whose rows say which records they are is compared with the topic, record by record, and asks for none of this;
but where the topic was made again, in which other records have the same places.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from ottla.client.admin.results import ConfigResource
from ottla.client.sync import Admin
from ottla.client.wire.listed_offset import EARLIEST
from ottla.model import TopicPartition
from ottla.pipeline.places import Places
from ottla.pipeline.planning import PlannedFlow
from ottla.pipeline.tables.files import now_ms
from ottla.pipeline.tables.log import TableLog
from ottla.pipeline.topics import TopicsRead
from ottla.spark.options import client_settings

#: Before every time: nothing is lost.
ALL: Final = -(2**62)
_POLICY: Final = "cleanup.policy"


class KnownSince(NamedTuple):
    """Rows of this time, in ms since 1970, and younger ones can be computed again."""

    ms: int
    #: What has lost older ones, and what of it.
    lost_by: str = ""
    lost: str = ""


class Losses:
    """Of all that the tables of one pipeline read, during one backfill."""

    def __init__(self, places: Places, kafka: dict[str, str]) -> None:
        self._places = places
        self._kafka = kafka
        #: By table: from when to when the backfill has computed it again.
        self._filled: dict[str, tuple[int, int]] = {}

    def since(self, planned: PlannedFlow) -> KnownSince:
        """What all sources of a flow have now: topics lose records at any time."""
        found = [
            KnownSince(max(self._of_topic(name), self._met(planned, name)), f"the topic {name}", "records")
            for name in sorted(planned.topics)
        ]
        found += [KnownSince(self._of_table(name), f"the table {name}", "rows") for name in sorted(planned.tables)]
        return max(found, default=KnownSince(ALL))

    def made_again(self, planned: PlannedFlow) -> bool:
        """Whether a topic of the flow is another than the one that it began with."""
        return any(self._met(planned, name) > ALL for name in planned.topics)

    def fills(self, planned: PlannedFlow, from_ms: int, to_ms: int) -> None:
        """The flow's rows between these times are brought back before another flow asks for them."""
        self._filled[planned.flow.name] = (from_ms, to_ms)

    def _of_table(self, name: str) -> int:
        lost_ms = TableLog(self._places.table(name)).state().retained_ms
        if lost_ms is None:
            return ALL
        from_ms, to_ms = self._filled.get(name, (lost_ms + 1, lost_ms + 1))
        return min(from_ms, lost_ms + 1) if to_ms > lost_ms else lost_ms + 1

    def _met(self, planned: PlannedFlow, topic: str) -> int:
        since_ms = TopicsRead(self._places.checkpoint(planned.flow.name)).since_ms(topic)
        return ALL if since_ms is None else since_ms

    def _of_topic(self, name: str) -> int:
        with Admin(client_settings(self._kafka)) as admin:
            return _known_since(admin, name)


def _known_since(admin: Admin, topic: str) -> int:
    resource = ConfigResource.topic(topic)
    policy = admin.describe_configs([resource], names=[_POLICY])[resource][_POLICY].value
    if "compact" in (policy or ""):
        return now_ms()
    partitions = [TopicPartition(topic, one.partition) for one in admin.describe_topic(topic).partitions]
    first = admin.list_offsets(dict.fromkeys(partitions, EARLIEST))
    begin_later = [tp for tp, one in first.items() if one.offset]
    if not begin_later:
        return ALL
    left = admin.list_offsets(dict.fromkeys(begin_later, 0))
    # Several may have the time of the first that is left.
    return max(one.timestamp + 1 if one.offset >= 0 else now_ms() for one in left.values())
