"""What is refused before a group is looked at: requests that make no sense, in Kafka's order."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from ottla.config.slices import GroupsConfig
from ottla.groups.consumer.assignors import ASSIGNORS
from ottla.groups.consumer.decision import RequestRefused
from ottla.groups.consumer.group import ConsumerGroup
from ottla.groups.consumer.member import AWAY, JOINING, LEFT, Member
from ottla.groups.consumer.reconciliation import Reported, is_subset
from ottla.model import ErrorCode
from ottla.protocol.generated.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest

#: Topics that a member names, as subscribed or as its own: what it names is stored in one record, and looked at whole
#: when it changes. More of them are what expressions are for.
TOPICS_OF_A_MEMBER_MAX: Final = 10_000
#: That it says it has: a cluster of Kafka's has about as many in all.
PARTITIONS_OF_A_MEMBER_MAX: Final = 200_000
#: From this version on members choose their ids themselves.
_OWN_MEMBER_ID = 1


def check_request(request: ConsumerGroupHeartbeatRequest, version: int, config: GroupsConfig) -> None:
    epoch = request.member_epoch
    if version >= _OWN_MEMBER_ID or epoch > JOINING or epoch == LEFT:
        _not_blank(request.member_id, "A member needs an id.")
    check_size(request)
    _not_blank(request.group_id, "A group needs an id.")
    _not_blank(request.instance_id, "An instance id may be missing, but not blank.")
    _not_blank(request.rack_id, "A rack may be missing, but not blank.")
    if epoch == JOINING:
        _check_first(request)
    elif epoch == AWAY and request.instance_id is None:
        raise _invalid("Only a static member may leave for a while, and it says its instance id.")
    elif epoch < AWAY:
        raise _invalid("No member has such an epoch.")
    if request.server_assignor is not None and request.server_assignor not in assignor_names(config):
        raise RequestRefused(
            ErrorCode.UNSUPPORTED_ASSIGNOR,
            f"There is no assignor {request.server_assignor} here, only {', '.join(assignor_names(config))}.",
        )


def check_size(request: ConsumerGroupHeartbeatRequest) -> None:
    if len(request.subscribed_topic_names or ()) > TOPICS_OF_A_MEMBER_MAX:
        raise _invalid(f"A member names {TOPICS_OF_A_MEMBER_MAX} topics at the most.")
    owned = request.topic_partitions or ()
    if len(owned) > TOPICS_OF_A_MEMBER_MAX:
        raise _invalid(f"A member has partitions of {TOPICS_OF_A_MEMBER_MAX} topics at the most.")
    if sum(len(topic.partitions) for topic in owned) > PARTITIONS_OF_A_MEMBER_MAX:
        raise _invalid(f"A member has {PARTITIONS_OF_A_MEMBER_MAX} partitions at the most.")


def _check_first(request: ConsumerGroupHeartbeatRequest) -> None:
    if request.rebalance_timeout_ms == -1:
        raise _invalid("Who joins says its rebalance time-out.")
    if request.topic_partitions is None or request.topic_partitions:
        raise _invalid("Who joins says that it has no partitions.")
    if request.subscribed_topic_names is None and request.subscribed_topic_regex is None:
        raise _invalid("Who joins says what it subscribes to.")


def assignor_names(config: GroupsConfig) -> tuple[str, ...]:
    """Those that the settings name and this broker has; the first is the default."""
    return tuple(name for name in map(_short_name, config.consumer_assignors) if name in ASSIGNORS)


def default_assignor(config: GroupsConfig) -> str:
    """`uniform` where the settings name only classes that Java alone could load."""
    return next(iter(assignor_names(config)), "uniform")


def assignor_of(counts: Mapping[str, int], config: GroupsConfig) -> str:
    """The one that most members ask for; between equals the one that the settings name first."""
    known = [name for name in assignor_names(config) if counts.get(name)]
    return max(known, key=counts.__getitem__, default=default_assignor(config))


def _short_name(setting: str) -> str:
    """Settings may name Kafka's own classes."""
    return _KAFKA_CLASSES.get(setting, setting)


_KAFKA_CLASSES = {
    f"org.apache.kafka.coordinator.group.assignor.{name.capitalize()}Assignor": name for name in ASSIGNORS
}


def check_room(group: ConsumerGroup, member_id: str, config: GroupsConfig) -> None:
    if len(group.members) >= config.consumer_size_max and member_id not in group.members:
        raise RequestRefused(
            ErrorCode.GROUP_MAX_SIZE_REACHED,
            f"Group {group.id} has the {config.consumer_size_max} members that it may have.",
        )


def known_member(group: ConsumerGroup, member_id: str) -> Member:
    member = group.members.get(member_id)
    if member is None:
        raise RequestRefused(ErrorCode.UNKNOWN_MEMBER_ID, f"Group {group.id} has no member {member_id}.")
    return member


def known_static_member(group: ConsumerGroup, member_id: str, instance_id: str) -> Member:
    """The member that has this instance id; refused if another one has it now."""
    member = group.static_member(instance_id)
    if member is None:
        raise RequestRefused(ErrorCode.UNKNOWN_MEMBER_ID, f"Group {group.id} has no instance {instance_id}.")
    if member.id != member_id:
        raise RequestRefused(
            ErrorCode.FENCED_INSTANCE_ID,
            f"Instance {instance_id} of group {group.id} is member {member.id} now.",
        )
    return member


def check_epoch(member: Member, epoch: int, reported: Reported) -> None:
    """The member's epoch, or the one before from a member that has only what it should: it missed the last answer."""
    if epoch == JOINING:
        return
    if epoch > member.epoch or (
        epoch < member.epoch and (epoch != member.previous_epoch or not is_subset(reported, member.assigned))
    ):
        raise RequestRefused(
            ErrorCode.FENCED_MEMBER_EPOCH,
            f"The member says epoch {epoch} and is in {member.epoch}: it must give up its partitions and join again.",
        )


def _not_blank(value: str | None, message: str) -> None:
    if value is not None and not value.strip():
        raise _invalid(message)


def _invalid(message: str) -> RequestRefused:
    return RequestRefused(ErrorCode.INVALID_REQUEST, message)
