"""The topics of coordinators as the broker creates them: when a coordinator is first asked for, and with the broker's
settings.

An administrator may create them before, with other settings, and change or delete them like any topic.
"""

from __future__ import annotations

import asyncio
from typing import Final

from ottla import logs
from ottla.config import Config
from ottla.config.slices import OffsetsConfig, TransactionsConfig
from ottla.controller.interface import Controller, TopicToCreate
from ottla.model import OFFSETS_TOPIC, TRANSACTION_TOPIC, ErrorCode

log_event = logs.logger("handlers")

_CREATE_TIMEOUT_MS: Final = 30_000
_MISSED: Final = {
    OFFSETS_TOPIC: "the offsets topic cannot be created: there are no consumer groups without it",
    TRANSACTION_TOPIC: "the transaction topic cannot be created: there are no transactions without it",
}


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


def new_transaction_topic(settings: TransactionsConfig) -> TopicToCreate:
    return TopicToCreate(
        TRANSACTION_TOPIC,
        settings.topic_partitions,
        settings.topic_replication_factor,
        configs={
            "cleanup.policy": "compact",
            "compression.type": "uncompressed",
            "min.insync.replicas": str(settings.topic_min_isr),
            "segment.bytes": str(settings.topic_segment_bytes),
            "unclean.leader.election.enable": "false",
        },
    )


def new_internal_topic(name: str, config: Config) -> TopicToCreate | None:
    """None for every other topic."""
    if name == OFFSETS_TOPIC:
        return new_offsets_topic(config.groups.offsets)
    return new_transaction_topic(config.transactions) if name == TRANSACTION_TOPIC else None


class InternalTopics:
    """Creates each once, however many clients ask at the same time."""

    def __init__(self, controller: Controller) -> None:
        self._controller = controller
        self._creations: dict[str, asyncio.Task[ErrorCode]] = {}

    async def create(self, topic: TopicToCreate) -> ErrorCode:
        """NONE when it exists, by whichever request; otherwise why it cannot be created, which is logged."""
        creation = self._creations.get(topic.name)
        if creation is None:
            creation = self._creations[topic.name] = asyncio.ensure_future(self._create(topic))
            creation.add_done_callback(lambda _: self._creations.pop(topic.name))
        # A request that stops waiting must not stop it for the others.
        return await asyncio.shield(creation)

    async def _create(self, topic: TopicToCreate) -> ErrorCode:
        (result,) = await self._controller.create_topics([topic], timeout_ms=_CREATE_TIMEOUT_MS)
        if result.error in (ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS):
            return ErrorCode.NONE
        log_event.warning_limited(
            _MISSED[topic.name],
            partitions=topic.partitions,
            replication_factor=topic.replication_factor,
            reason=result.message or result.error.name,
        )
        return result.error
