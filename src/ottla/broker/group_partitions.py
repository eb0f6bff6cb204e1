"""Which partitions of the offsets topic this broker coordinates: those that it leads, as long as it leads them."""

from __future__ import annotations

from ottla.config.slices import OffsetsConfig
from ottla.handlers.on_demand.groups import GroupsOnDemand
from ottla.model import OFFSETS_TOPIC, TopicPartition
from ottla.replication.follower import Follower
from ottla.replication.journals import Journals, JournalSettings
from ottla.replication.leader import Leader


def journal_settings(offsets: OffsetsConfig) -> JournalSettings:
    return JournalSettings(
        commit_timeout_ms=offsets.commit_timeout_ms,
        load_bytes_max=offsets.load_buffer_bytes,
        compression=offsets.topic_compression_codec,
    )


class GroupPartitions:
    """Implements `RoleListener` and `JournalOwner`."""

    def __init__(self, groups: GroupsOnDemand, journals: Journals) -> None:
        self._groups = groups
        self._journals = journals

    def became_leader(self, leader: Leader) -> None:
        if leader.tp.topic == OFFSETS_TOPIC:
            self._groups.get().led.elected(leader.tp.partition, self._journals.open(leader, self))

    def became_follower(self, follower: Follower) -> None:
        """Groups are where the leader is."""

    def resigned(self, tp: TopicPartition) -> None:
        if tp.topic == OFFSETS_TOPIC:
            # First the requests that wait for their writes, then those that wait for other members.
            self._journals.close(tp)
            if self._groups.made is not None:
                self._groups.made.led.resigned(tp.partition)

    def journal_lost(self, tp: TopicPartition) -> None:
        self._groups.get().led.journal_failed(tp.partition)
