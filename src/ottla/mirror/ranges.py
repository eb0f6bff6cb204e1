"""Copies of some partitions up to given offsets: for a caller that gives the work out in pieces, and not by a group.

A piece that is done twice, or by two at once, copies nothing twice: where a copy goes on is read from the target.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Final, NamedTuple

from ottla.client.admin.admin import Admin
from ottla.client.errors import KafkaError
from ottla.logs import logger
from ottla.mirror.clients import FlowClients
from ottla.mirror.faults import UNKNOWN_MAX, deleted
from ottla.mirror.partition import PartitionCopy
from ottla.model import TopicPartition

log_event = logger("mirror")
#: Between two looks at whether a piece is done.
_LOOK_SECONDS: Final = 0.005


class CopiedRange(NamedTuple):
    partition: TopicPartition
    #: Below it the source is copied, and there the copy ends.
    copied: int
    end: int
    #: Of this piece.
    records: int
    bytes: int
    #: Why the partition was not copied to where it was to be; None: it was.
    stopped: str | None


async def copy_ranges(clients: FlowClients, ends: Mapping[TopicPartition, int]) -> list[CopiedRange]:
    """Copies these partitions as far as these offsets at least; `clients` are of no group. Raises KafkaError."""
    reader, world = clients.reader, clients.copy_world
    reader.assign(list(ends))
    for tp in ends:
        reader.seek(tp, 0)
    reader.pause(*ends)
    journals = await clients.journal.read(ends)
    copies = {tp: PartitionCopy(tp, clients.copy_of(tp), journals[tp], world) for tp in ends}
    async with asyncio.TaskGroup() as group:
        working = [group.create_task(copy.run()) for copy in copies.values()]
        working.append(group.create_task(_feed(clients, copies, ends)))
        while not all(_is_done(copy, ends[tp]) for tp, copy in copies.items()):  # noqa: ASYNC110 - a copy calls nobody
            await asyncio.sleep(_LOOK_SECONDS)
        for task in working:
            task.cancel()
    for tp, copy in copies.items():
        await copy.note_reached()
        if copy.last is not None:
            await clients.write_sync(tp, copy.last)
    await _note_places(clients.source, clients.settings.own_group, copies)
    return [
        CopiedRange(tp, copy.copied, copy.end, copy.records, copy.bytes, _stopped(copy, ends[tp]))
        for tp, copy in copies.items()
    ]


async def _feed(
    clients: FlowClients, copies: Mapping[TopicPartition, PartitionCopy], ends: Mapping[TopicPartition, int]
) -> None:
    while True:
        fetched = await clients.feed(copies)
        if fetched is not None and fetched.next_position >= ends[fetched.partition]:
            clients.copy_world.reader.hold(fetched.partition)


def _is_done(copy: PartitionCopy, end: int) -> bool:
    return _stopped(copy, end) is not None or (copy.copied >= end and copy.drained)


def _stopped(copy: PartitionCopy, end: int) -> str | None:
    return deleted(copy.tp, end) if copy.unknown >= UNKNOWN_MAX else copy.stopped


async def _note_places(source: Admin, group: str, copies: Mapping[TopicPartition, PartitionCopy]) -> None:
    """For Kafka's tools, which show the lag by them."""
    try:
        await source.alter_group_offsets(group, {tp: copy.copied for tp, copy in copies.items() if copy.copied >= 0})
    except KafkaError as error:  # the group has members, which commit themselves
        log_event.debug("the group's offsets were not committed", why=str(error))
