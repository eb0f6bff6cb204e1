"""The leader of a group gives out its partitions, and watches whether there come to be more.

Each rebalance the coordinator makes one member the leader and sends it what all members want. The leader needs the
partition counts of all these topics, also of those that it does not read itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from ottla.client.consuming.group.assignors.assignor import Assignments, Assignor, Topics
from ottla.client.consuming.group.wire import Assignment, Subscription, decode_subscription
from ottla.client.errors import AssignorFailed
from ottla.client.wire.cluster import Cluster
from ottla.logs import logger
from ottla.model import TopicPartition
from ottla.protocol.errors import DecodeError
from ottla.protocol.generated.join_group import JoinGroupResponseMember

_LOG = logger("client")


class Leading:
    def __init__(self, cluster: Cluster, group_id: str, topics_changed: Callable[[], None]) -> None:
        """`topics_changed` has their metadata kept, and that of those before forgotten."""
        self._cluster = cluster
        self._group_id = group_id
        self._topics_changed = topics_changed
        #: Topics of all members while this one leads.
        self.topics: frozenset[str] = frozenset()
        #: The partition counts by which the partitions were given out.
        self._counts: dict[str, int] | None = None

    def end(self) -> None:
        self.topics = frozenset()
        self._counts = None

    async def assign(self, assignor: Assignor, joined: Sequence[JoinGroupResponseMember]) -> dict[str, Assignment]:
        """What each member gets. Raises AssignorFailed, or what kept the topics from being known."""
        members = await self._watch(joined)
        try:
            given = assignor.assign(self._view(members.values()), members)
        except Exception as error:
            raise AssignorFailed(f"assignor {assignor.name} raised {type(error).__name__}: {error}") from error
        made = _checked(assignor, members, given)
        everybody = {one.member_id: made.get(one.member_id, Assignment()) for one in joined}
        unknown = sorted(set(made) - set(everybody))
        if unknown:
            raise AssignorFailed(f"assignor {assignor.name} gave partitions to members that are not there: {unknown}")
        return everybody

    async def watch(self, joined: Sequence[JoinGroupResponseMember]) -> None:
        """Leads a group whose partitions stay as they were given out."""
        await self._watch(joined)

    async def _watch(self, joined: Sequence[JoinGroupResponseMember]) -> dict[str, Subscription]:
        members = self._members(joined)
        topics = frozenset[str]().union(*(one.topics for one in members.values()))
        self._counts = None  # what they were before is no news any more
        self.topics = topics
        self._topics_changed()
        metadata = self._cluster.metadata
        if any(topic not in metadata.topics and topic not in metadata.errors for topic in topics):
            await self._cluster.updated()
        self._counts = self._counted()
        return members

    def changed(self) -> bool:
        """Whether there are other partitions now than when they were given out."""
        return self._counts is not None and self._counted() != self._counts

    def _counted(self) -> dict[str, int]:
        known = self._cluster.metadata.topics
        return {topic: len(known[topic].partitions) for topic in self.topics if topic in known}

    def _members(self, joined: Sequence[JoinGroupResponseMember]) -> dict[str, Subscription]:
        members: dict[str, Subscription] = {}
        for one in joined:
            try:
                members[one.member_id] = decode_subscription(one.metadata, one.group_instance_id)
            except DecodeError as error:
                # It gets nothing, and the others are not kept waiting for it.
                _LOG.warning_limited(
                    "a group's member says in no known way what it wants",
                    key=one.member_id,
                    group=self._group_id,
                    member=one.member_id,
                    error=error,
                )
        return members

    def _view(self, members: Iterable[Subscription]) -> Topics:
        metadata = self._cluster.metadata
        counts = self._counted()
        if not any(one.rack for one in members):
            return Topics(counts)
        racks: dict[TopicPartition, frozenset[str]] = {}
        for topic in counts:
            for one in metadata.topics[topic].partitions:
                near = (metadata.nodes[node].rack for node in one.replicas if node in metadata.nodes)
                racks[TopicPartition(topic, one.partition)] = frozenset(rack for rack in near if rack)
        return Topics(counts, racks)


def _checked(assignor: Assignor, members: Mapping[str, Subscription], given: Assignments) -> dict[str, Assignment]:
    """No partition for two members, none for a member that does not want it, none before its owner has let go."""
    try:
        made = {
            member: one if isinstance(one, Assignment) else Assignment(tuple(TopicPartition(*tp) for tp in one))
            for member, one in given.items()
        }
    except (TypeError, AttributeError, ValueError) as error:
        raise AssignorFailed(f"assignor {assignor.name} gave what is no assignment: {error}") from error
    owners = {tp: member for member, one in members.items() for tp in one.owned} if assignor.cooperative else {}
    given_to: dict[TopicPartition, str] = {}
    for member, one in made.items():
        for tp in one.partitions:
            if tp in given_to:
                raise AssignorFailed(f"assignor {assignor.name} gave {tp} to {given_to[tp]} and to {member}")
            given_to[tp] = member
            if member in members and tp.topic not in members[member].topics:
                raise AssignorFailed(f"assignor {assignor.name} gave {tp} to {member}, which does not want it")
            if owners.get(tp, member) != member:
                raise AssignorFailed(
                    f"assignor {assignor.name} is cooperative, but gave {tp} to {member}, which {owners[tp]} still has"
                )
    return made
