"""The group coordinator of this broker: which shard keeps a group, and what is asked of all shards together."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from ottla.config.slices import GroupsConfig
from ottla.coordinators.journal import Journal
from ottla.coordinators.led_partitions import LedPartitions
from ottla.coordinators.long_work import LongWork
from ottla.groups.consumer.patterns import TopicPatterns
from ottla.groups.consumer.topics import TopicHashes
from ottla.groups.group import Group
from ottla.groups.no_shard import NoShard
from ottla.groups.shard import GroupShard, ShardContext
from ottla.groups.state import Counts
from ottla.javahash import partition_of
from ottla.metadata.cache import MetadataCache
from ottla.metadata.updates import MetadataUpdate
from ottla.model import OFFSETS_TOPIC, ErrorCode
from ottla.ports.clock import Clock
from ottla.ports.entropy import Entropy
from ottla.protocol.generated.list_groups import ListGroupsRequest, ListGroupsResponse
from ottla.protocol.hot.offset_records import read_offset_value
from ottla.protocol.primitives import STRING_BYTES_MAX
from ottla.steps import Steps, pieces


class GroupCoordinator:
    def __init__(
        self, settings: Callable[[], GroupsConfig], metadata: MetadataCache, clock: Clock, entropy: Entropy
    ) -> None:
        self._settings = settings
        self._metadata = metadata
        self._entropy = entropy
        self.counts = Counts()
        self._long_work = LongWork(clock.monotonic_ms)
        self._shared = ShardContext(
            self.counts,
            TopicPatterns(metadata),
            one_by_one=self._long_work.one_by_one,
            side_by_side=self._long_work.side_by_side,
            hashes=TopicHashes(metadata),
        )
        #: Its roles, and its alarm.
        self.led = LedPartitions("groups", self._new_shard, clock)
        metadata.listen(self._metadata_changed)

    def _new_shard(self, partition: int, journal: Journal) -> GroupShard:
        return GroupShard(partition, journal, self._settings, self._metadata, self._entropy, self._shared)

    async def close(self) -> None:
        """Answers all requests that wait, and does nothing from then on."""
        await self.led.close()
        await self._long_work.close()

    def _metadata_changed(self, update: MetadataUpdate) -> None:
        if update.topics_deleted:
            self.led.topics_deleted(update.topics_deleted)

    # Finding the shard.

    def partition_for(self, group_id: str) -> int:
        """The partition of the offsets topic that keeps this group; by the setting while there is no topic."""
        topic = self._metadata.topic(OFFSETS_TOPIC)
        count = len(topic.partitions) if topic is not None else self._settings().offsets.topic_partitions
        return partition_of(group_id, count)

    def shard_for(self, group_id: str) -> GroupShard | NoShard:
        """What requests about this group are asked of."""
        found = self.led.find(self.partition_for(group_id))
        if not isinstance(found, ErrorCode):
            return found
        if found is ErrorCode.NOT_COORDINATOR and self._metadata.topic(OFFSETS_TOPIC) is None:
            return NoShard(ErrorCode.COORDINATOR_NOT_AVAILABLE)
        return NoShard(found)

    def shard_for_member(self, group_id: str) -> GroupShard | NoShard:
        """The same for requests of members: a group that may have some needs a name, and one that fits in a record."""
        if not group_id or (len(group_id) > STRING_BYTES_MAX // 4 and len(group_id.encode()) > STRING_BYTES_MAX):
            return NoShard(ErrorCode.INVALID_GROUP_ID)
        return self.shard_for(group_id)

    # All shards together.

    def list_groups(self, request: ListGroupsRequest) -> Steps[ListGroupsResponse]:
        """All groups of this broker; while some are loaded, the others and an error."""
        response = ListGroupsResponse()
        # States and types as clients like to write them: in any case.
        states = yield from _in_small_letters(request.states_filter)
        types = yield from _in_small_letters(request.types_filter)
        for shard in self.led.shards():
            response.groups += yield from shard.list_groups(states, types)
        if self.led.some_are_loaded:
            response.error_code = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        return response

    # For metrics.

    def groups(self) -> Iterator[Group]:
        """All groups. A caller that goes through them may pause: others come and go meanwhile."""
        for shard in list(self.led.shards()):
            yield from list(shard.groups.values())

    def committed(self) -> Iterator[tuple[str, str, int, int]]:
        """Group, topic, partition and offset of all that is committed, group by group and topic by topic."""
        for shard in list(self.led.shards()):
            offsets = shard.state.offsets
            for group_id in offsets.group_ids():
                for topic, partitions in list(offsets.of_group(group_id).items()):
                    for partition, value in list(partitions.items()):
                        yield group_id, topic, partition, read_offset_value(value).offset


def _in_small_letters(names: list[str]) -> Steps[set[str]]:
    found: set[str] = set()
    for piece in pieces(names):
        found.update(name.strip().lower() for name in piece)
        yield
    return found
