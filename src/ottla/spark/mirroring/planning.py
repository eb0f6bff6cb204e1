"""What of a flow is done once, and not by tasks: topics, settings and groups are followed whenever a batch is planned
and their interval is over.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Coroutine, Mapping
from typing import Any, Final, NamedTuple

from ottla.client.errors import KafkaError
from ottla.client.sync.loop_thread import LoopThread
from ottla.client.wire.listed_offset import LATEST
from ottla.client.wire.offsets import list_offsets
from ottla.client.wire.world import real_world
from ottla.logs import logger
from ottla.mirror.clients import FlowClients
from ottla.mirror.groups import GroupFollower
from ottla.mirror.pairs import OffsetPairs
from ottla.mirror.properties import FlowSettings
from ottla.model import ZERO_TOPIC_ID, TopicPartition
from ottla.spark.deleted import list_offsets_there
from ottla.spark.source.offsets import id_text

#: In the place of the end of a partition that the target does not take.
REFUSED: Final = -1


class RecordedCopy(NamedTuple):
    """A partition's copy by what both clusters say of it."""

    target: TopicPartition
    pairs: OffsetPairs
    source_id: bytes
    target_id: bytes
    copied: int
    end: int


class FlowPlanner:
    def __init__(self, settings: FlowSettings) -> None:
        self._settings = settings
        self._log = logger("mirror").bind(flow=settings.name)
        self._thread = LoopThread("ottla-mirror")
        self._clients: FlowClients | None = None
        self._topics: dict[str, int] = {}
        #: When each thing was last done, by the monotonic clock.
        self._done: dict[str, float] = {}
        self._copies: dict[TopicPartition, RecordedCopy] = {}

    def ends(self) -> dict[TopicPartition, int]:
        """How far each partition of the source goes; the target has them then, but the REFUSED. Raises KafkaError."""
        return self._thread.run(self._ends)

    def ids(self) -> dict[str, str]:
        """Of the source's topics, where it knows them by ids, as those were when topics were last looked for."""
        known = {} if self._clients is None else self._clients.follower.ids
        return {name: id_text(one) for name, one in known.items() if one != ZERO_TOPIC_ID}

    def refusal(self, tp: TopicPartition) -> str:
        """Why it is REFUSED."""
        known = {} if self._clients is None else self._clients.follower.refused
        return known.get(tp, f"{tp}: the target did not take it")

    def close(self) -> None:
        if self._clients is not None:
            self._thread.run(self._clients.close)
        self._thread.end()

    async def _ends(self) -> dict[TopicPartition, int]:
        if self._clients is None:
            self._clients = await FlowClients.opened(self._settings, real_world(), group=None)
            self._groups = GroupFollower(
                self._settings,
                self._settings.own_group,
                self._clients.source,
                self._clients.target,
                self._clients.producer,
                lambda: self._copies,
            )
        clients, settings = self._clients, self._settings
        due = self._is_due("topics", settings.refresh_topics_s)
        if due or clients.follower.incomplete or not self._topics:
            self._topics = await clients.follower.refresh()
        await self._follow(clients)
        found, missing = await self._listed(clients)
        if missing:  # some were deleted, or made again with fewer partitions
            self._topics = await clients.follower.refresh()
            found, _ = await self._listed(clients)
        return {**found, **dict.fromkeys(clients.follower.refused, REFUSED)}

    async def _follow(self, clients: FlowClients) -> None:
        settings = self._settings
        if self._is_due("settings", settings.sync_configs_s):
            await self._tried(clients.follower.sync_configs)
        checkpoints, commits = (
            self._is_due("checkpoints", settings.checkpoints_s),
            self._is_due("commits", settings.sync_groups_s),
        )
        if checkpoints or commits:
            await self._tried(self._read_copies)
        if checkpoints:
            await self._tried(self._groups.checkpoint)
        if commits:
            await self._tried(self._groups.commit)

    def _is_due(self, what: str, seconds: float | None) -> bool:
        now = time.monotonic()
        if seconds is None or now < self._done.get(what, -seconds) + seconds:
            return False
        self._done[what] = now
        return True

    async def _tried(self, work: Callable[[], Coroutine[Any, Any, Any]]) -> None:
        try:
            await work()
        except KafkaError as error:
            self._log.warning("this could not be done, and is tried again", what=work.__name__, why=str(error))

    def _places(self) -> list[TopicPartition]:
        return [TopicPartition(name, number) for name, count in self._topics.items() for number in range(count)]

    async def _listed(self, clients: FlowClients) -> tuple[dict[TopicPartition, int], Mapping[TopicPartition, object]]:
        """Of those that are there, and the others."""
        world = clients.copy_world
        return await list_offsets_there(world.source, dict.fromkeys(self._places(), LATEST), world.isolation)

    async def _read_copies(self) -> None:
        """Places that were noted, then the copies' ends, then their pairs: each knows all that the one before means."""
        clients = self._clients
        assert clients is not None
        places = self._places()
        noted = await clients.source.list_group_offsets(self._settings.own_group)
        listed = await list_offsets(clients.copy_world.target, dict.fromkeys(map(clients.copy_of, places), LATEST))
        journals = await clients.journal.read(places)
        self._copies = {}
        for tp in places:
            recorded, end = journals[tp].recorded, listed[clients.copy_of(tp)].offset
            following = None if recorded is None else recorded.pairs.source_of(end)
            if recorded is not None and following is not None:
                copied = max(following, noted[tp].offset if tp in noted else 0)
                ids = recorded.source_id, recorded.target_id
                self._copies[tp] = RecordedCopy(clients.copy_of(tp), recorded.pairs, *ids, copied, end)
