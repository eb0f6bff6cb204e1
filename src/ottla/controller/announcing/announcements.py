"""What goes to a broker in one call, and what comes back of it to the controller. Data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from ottla.controller.deciding.orders import ReplicaStop
from ottla.metadata.updates import MetadataUpdate, PartitionState
from ottla.model import BrokerId, ErrorCode, TopicPartition


class Metadata(NamedTuple):
    update: MetadataUpdate


class NewLogs(NamedTuple):
    """Some of many new replicas, ahead of their roles."""

    states: Sequence[PartitionState]


class Roles(NamedTuple):
    states: Sequence[PartitionState]


class Stops(NamedTuple):
    stops: Sequence[ReplicaStop]


Announcement = Metadata | NewLogs | Roles | Stops

#: What a call returned: the partitions that failed; whether all logs are there; nothing.
AnnouncementOutcome = Mapping[TopicPartition, ErrorCode] | bool | None


class RolesAnswer(NamedTuple):
    broker: BrokerId
    states: Sequence[PartitionState]
    #: Those that the broker could not take on.
    failed: Mapping[TopicPartition, ErrorCode]


class StopsAnswer(NamedTuple):
    broker: BrokerId
    partitions: Sequence[TopicPartition]
    #: Those whose logs are still there.
    failed: Mapping[TopicPartition, ErrorCode]


class LostTrack(NamedTuple):
    """A broker is behind by more than its queue keeps: it has to be announced everything."""

    broker: BrokerId


Answer = RolesAnswer | StopsAnswer | LostTrack
