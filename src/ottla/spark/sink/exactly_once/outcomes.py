"""What has become of a transaction that was to be committed and whose id was used again, as its log tells.

The coordinator refuses a repeated end under an old epoch, whether the transaction was committed before that or aborted
(a time-out of the older protocol, another attempt of the task). But its records are where they were: a reader of
committed records is given them, or is not.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Final

from ottla.client.consuming.consumer import Consumer
from ottla.client.errors import OffsetOutOfRange, RequestTimedOut, UnknownTopicOrPartition
from ottla.client.wire.listed_offset import LATEST
from ottla.client.wire.offsets import list_offsets
from ottla.model import TopicPartition
from ottla.spark.sink.entries import RecordPlace
from ottla.spark.sink.exactly_once.effects import Outcome

_POLL_MS: Final = 100
#: A record is looked at, and what comes with it in one fetch.
_FETCH_BYTES: Final = "65536"


async def outcome_in_the_log(settings: Mapping[str, str], place: RecordPlace | None) -> Outcome:
    """UNKNOWN where the record is not there any more. Raises KafkaError where nobody answers, or not in time."""
    if place is None:
        return Outcome.UNKNOWN
    try:
        if await _is_seen(settings, place, "read_committed"):
            return Outcome.COMMITTED
        # Compaction and retention take records away: what nobody sees says nothing.
        return Outcome.ABORTED if await _is_seen(settings, place, "read_uncommitted") else Outcome.UNKNOWN
    except (OffsetOutOfRange, UnknownTopicOrPartition):
        return Outcome.UNKNOWN


async def _is_seen(settings: Mapping[str, str], place: RecordPlace, isolation: str) -> bool:
    tp = TopicPartition(place.topic, place.partition)
    consumer = Consumer(
        dict(settings),
        isolation_level=isolation,
        auto_offset_reset="none",
        allow_auto_create_topics=False,
        max_partition_fetch_bytes=_FETCH_BYTES,
    )
    allowed_ms = consumer.settings.default_api_timeout_ms
    try:
        async with asyncio.timeout(allowed_ms / 1000):
            # Where another open transaction stands before it, its own end is not to be seen yet.
            while (await consumer.end_offsets([tp]))[tp] <= place.offset:
                if (await list_offsets(consumer.cluster, {tp: LATEST}))[tp].offset <= place.offset:
                    raise OffsetOutOfRange(f"{tp} ends before offset {place.offset}: the topic was made again")
                await asyncio.sleep(_POLL_MS / 1000)
            consumer.assign([tp])
            consumer.seek(tp, place.offset)
            while await consumer.position(tp) <= place.offset:
                records = await consumer.poll(timeout_ms=_POLL_MS)
                if records:
                    return bool(records[0].offset == place.offset)
            return False
    except TimeoutError:
        raise RequestTimedOut(
            f"{place.topic}-{place.partition}: an open transaction hides offset {place.offset} for {allowed_ms} ms"
        ) from None
    finally:
        await consumer.close()
