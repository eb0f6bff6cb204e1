"""The offsets topic as the broker creates it: when a coordinator is first asked for, and with the broker's settings.

An administrator may create it before, with other settings, and change or delete it like any topic.
"""

from __future__ import annotations

import asyncio
from typing import Final

from ottla import logs
from ottla.config.slices import OffsetsConfig
from ottla.controller.interface import Controller, TopicToCreate
from ottla.model import OFFSETS_TOPIC, ErrorCode

log_event = logs.logger("handlers")

_CREATE_TIMEOUT_MS: Final = 30_000


def new_offsets_topic(settings: OffsetsConfig) -> TopicToCreate:
    return TopicToCreate(
        OFFSETS_TOPIC,
        settings.topic_partitions,
        settings.topic_replication_factor,
        configs={
            "cleanup.policy": "compact",
            "compression.type": "producer",
            "segment.bytes": str(settings.topic_segment_bytes),
        },
    )


class OffsetsTopic:
    """Creates it once, however many clients ask at the same time."""

    def __init__(self, controller: Controller) -> None:
        self._controller = controller
        self._creation: asyncio.Task[ErrorCode] | None = None

    async def create(self, settings: OffsetsConfig) -> ErrorCode:
        """NONE when it exists, by whichever request; otherwise why it cannot be created, which is logged."""
        if self._creation is None:
            self._creation = asyncio.ensure_future(self._create(settings))
            self._creation.add_done_callback(self._created)
        # A request that stops waiting must not stop it for the others.
        return await asyncio.shield(self._creation)

    async def _create(self, settings: OffsetsConfig) -> ErrorCode:
        topic = new_offsets_topic(settings)
        (result,) = await self._controller.create_topics([topic], timeout_ms=_CREATE_TIMEOUT_MS)
        if result.error in (ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS):
            return ErrorCode.NONE
        log_event.warning_limited(
            "the offsets topic cannot be created: there are no consumer groups without it",
            partitions=topic.partitions,
            replication_factor=topic.replication_factor,
            reason=result.message or result.error.name,
        )
        return result.error

    def _created(self, task: asyncio.Task[ErrorCode]) -> None:
        self._creation = None
