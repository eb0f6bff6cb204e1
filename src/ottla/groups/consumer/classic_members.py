"""Members of a consumer group that speak the classic protocol: JoinGroup, SyncGroup, Heartbeat and LeaveGroup.

Such a group has no leader among its members. To join is what a heartbeat is in the newer protocol: it is assigned at
once, with the member's epoch as generation; SyncGroup only fetches the assignment. A heartbeat has the member join
again when there is something for it to give up or to get.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from ottla.coordinators.caller import Caller
from ottla.groups.consumer import checks, embedded, migration
from ottla.groups.consumer.decision import Decision, RequestRefused, TimerKind, TimerWish
from ottla.groups.consumer.group import ConsumerGroup
from ottla.groups.consumer.heartbeat import advance, replacing
from ottla.groups.consumer.leaving import Downgrade
from ottla.groups.consumer.member import ClassicProtocol, Member
from ottla.groups.consumer.member_change import HeartbeatContext, MemberChange
from ottla.groups.consumer.share import catch_up
from ottla.groups.consumer.states import MemberState
from ottla.model import ErrorCode
from ottla.protocol.errors import DecodeError
from ottla.protocol.generated.consumer_protocol_subscription import ConsumerProtocolSubscription
from ottla.protocol.generated.heartbeat import HeartbeatRequest, HeartbeatResponse
from ottla.protocol.generated.join_group import JoinGroupRequest, JoinGroupResponse
from ottla.protocol.generated.leave_group import (
    LeaveGroupRequest,
    MemberIdentity,
    MemberResponse,
)
from ottla.protocol.generated.sync_group import SyncGroupRequest, SyncGroupResponse
from ottla.steps import Steps, pieces

#: From this version of JoinGroup on a dynamic member first asks for its id.
_MEMBER_ID_FIRST: Final = 4
#: Named in one LeaveGroup: each that is unknown takes some microseconds to say so.
_LEAVERS_A_STEP: Final = 16


def join(
    group: ConsumerGroup, request: JoinGroupRequest, caller: Caller, world: HeartbeatContext
) -> Decision[JoinGroupResponse]:
    """Raises RequestRefused."""
    fresh = not request.member_id
    member_id = request.member_id or world.new_member_id()
    checks.check_room(group, member_id, world.config)
    if not _understands(group, request):
        raise RequestRefused(
            ErrorCode.INCONSISTENT_GROUP_PROTOCOL, f"Group {group.id} has no protocol in common with it."
        )
    instance_id = request.group_instance_id
    if fresh and instance_id is None and caller.version >= _MEMBER_ID_FIRST:
        return Decision(
            response=JoinGroupResponse(
                error_code=ErrorCode.MEMBER_ID_REQUIRED,
                protocol_type=None,
                protocol_name=None,
                member_id=member_id,
                generation_id=-1,
            )
        )
    wants = _subscription(request)
    reported = embedded.with_ids(((one.topic, one.partitions) for one in wants.owned_partitions), world.metadata)
    present = group.static_member(instance_id)
    if instance_id is None or (present is None and fresh):
        member = group.members.get(member_id) or Member(id=member_id)
        change = MemberChange(group, member, member, reported)
    elif present is not None and fresh:
        change = replacing(group, present, member_id, reported)
    else:
        member = checks.known_static_member(group, member_id, instance_id)
        change = MemberChange(group, member, member, reported)
    change.after = _updated(change.before, request, wants, caller)
    if present is not None and present.classic is None and change.replaced is not None:
        left = [member for member in group.members.values() if member.id != present.id]
        if migration.may_become_classic([*left, change.after], world.config):
            return _downgraded(change, left, world, caller)
    advance(change, caller, world)
    session_ms = request.session_timeout_ms
    timers = [
        *change.timers,
        TimerWish(TimerKind.JOIN, change.after.id, None),
        TimerWish(TimerKind.SESSION, change.after.id, session_ms),
        TimerWish(TimerKind.SYNC, change.after.id, change.after.rebalance_timeout_ms),
    ]
    joined = change.after

    def then(later: ConsumerGroup) -> Decision[JoinGroupResponse]:
        caught_up = catch_up(later, change, world)
        if caught_up.after.classic is None:
            raise RequestRefused(ErrorCode.UNKNOWN_MEMBER_ID, f"Member {joined.id} speaks the newer protocol by now.")
        response = _joined(caught_up.after, caught_up.after.epoch)
        return Decision(response=response, records=caught_up.records, timers=caught_up.timers)

    return Decision(
        response=_joined(joined, joined.epoch),
        records=change.records,
        timers=timers,
        then=then if change.needs_target else None,
        heard=(joined.id, change.token),
    )


def _downgraded(
    change: MemberChange, left: list[Member], world: HeartbeatContext, caller: Caller
) -> Downgrade[JoinGroupResponse]:
    """An instance of the newer protocol, the last one, came back by the classic protocol."""
    assert change.replaced is not None
    wanted_other = change.before.topic_names != change.after.topic_names or bool(change.before.topic_regex)
    is_at_rest = _is_at_rest(change.group, left, world)
    moved = migration.to_classic(change.group, [*left, change.after], world.metadata, caller.now.wall_ms)
    return Downgrade(
        response=_joined(change.after, moved.group.generation),
        records=moved.records,
        timers=[TimerWish(kind, change.replaced.id, None) for kind in TimerKind],
        classic=moved.group,
        must_rebalance=wanted_other or not is_at_rest,
    )


def _is_at_rest(group: ConsumerGroup, others: list[Member], world: HeartbeatContext) -> bool:
    """Whether the target is that of the members and topics of now, and all others have reached it.

    What is missing in it nobody would be given: a classic group shares anew when a member asks for it, and none knows
    that it leads.
    """
    if group.epoch != group.assignment_epoch or not all(member.is_reconciled_to(group.epoch) for member in others):
        return False
    known = group.known_hash(world.metadata.generation)
    return group.metadata_hash == (world.hashes.of(group.wanted_topics()) if known is None else known)


def _understands(group: ConsumerGroup, request: JoinGroupRequest) -> bool:
    """Consumers only, and one protocol at least that all other classic members know."""
    if request.protocol_type != embedded.CONSUMER:
        return False
    return any(group.classic_protocols[one.name] == group.classic_members for one in request.protocols)


def _subscription(request: JoinGroupRequest) -> ConsumerProtocolSubscription:
    """All protocols of a consumer say the same of its subscription."""
    try:
        return embedded.subscription(bytes(request.protocols[0].metadata))
    except DecodeError as fault:
        raise RequestRefused(ErrorCode.UNKNOWN_SERVER_ERROR, f"This is no consumer's subscription: {fault}") from fault


def _updated(member: Member, request: JoinGroupRequest, wants: ConsumerProtocolSubscription, caller: Caller) -> Member:
    rebalance_ms = request.rebalance_timeout_ms
    protocols = tuple((one.name, bytes(one.metadata)) for one in request.protocols)
    return replace(
        member,
        instance_id=member.instance_id if request.group_instance_id is None else request.group_instance_id,
        rack_id=member.rack_id if not wants.rack_id else wants.rack_id,
        rebalance_timeout_ms=request.session_timeout_ms if rebalance_ms == -1 else rebalance_ms,
        topic_names=frozenset(wants.topics),
        topic_regex="",
        client_id=caller.client_id,
        client_host=caller.host,
        classic=ClassicProtocol(request.session_timeout_ms, protocols),
    )


def _joined(member: Member, generation: int) -> JoinGroupResponse:
    assert member.classic is not None
    return JoinGroupResponse(
        generation_id=generation,
        protocol_type=embedded.CONSUMER,
        protocol_name=member.classic.protocols[0][0],
        member_id=member.id,
    )


def sync(group: ConsumerGroup, request: SyncGroupRequest, world: HeartbeatContext) -> Decision[SyncGroupResponse]:
    """Raises RequestRefused; a refusal may come with a timer, see `overdue`."""
    member, classic = _classic_member(group, request.member_id, request.group_instance_id, request.generation_id)
    if request.protocol_type not in {None, embedded.CONSUMER} or request.protocol_name not in {
        None,
        classic.protocols[0][0],
    }:
        raise RequestRefused(
            ErrorCode.INCONSISTENT_GROUP_PROTOCOL, "This is not the protocol that the member joined with."
        )
    if group.epoch > member.epoch and member.state is not MemberState.UNREVOKED_PARTITIONS:
        return Decision(
            response=SyncGroupResponse(error_code=ErrorCode.REBALANCE_IN_PROGRESS), timers=[_must_join(member)]
        )
    assigned = embedded.encoded_assignment(
        embedded.named(member.assigned, world.metadata), embedded.version_of(classic.protocols[0][1])
    )
    return Decision(
        response=SyncGroupResponse(
            protocol_type=request.protocol_type, protocol_name=request.protocol_name, assignment=assigned
        ),
        timers=[
            TimerWish(TimerKind.SYNC, member.id, None),
            TimerWish(TimerKind.SESSION, member.id, classic.session_timeout_ms),
        ],
    )


def heartbeat(group: ConsumerGroup, request: HeartbeatRequest) -> Decision[HeartbeatResponse]:
    """Raises RequestRefused."""
    member, classic = _classic_member(group, request.member_id, request.group_instance_id, request.generation_id)
    timers = [TimerWish(TimerKind.SESSION, member.id, classic.session_timeout_ms)]
    if not _has_news(group, member):
        return Decision(response=HeartbeatResponse(), timers=timers)
    timers.append(_must_join(member))
    return Decision(response=HeartbeatResponse(error_code=ErrorCode.REBALANCE_IN_PROGRESS), timers=timers)


def _has_news(group: ConsumerGroup, member: Member) -> bool:
    """There is something for it to give up, or to get and free."""
    if member.epoch < group.epoch or member.state is MemberState.UNREVOKED_PARTITIONS:
        return True
    if member.state is not MemberState.UNRELEASED_PARTITIONS:
        return False
    return not any(
        partition not in member.assigned.get(topic, {}) and group.owner_of(topic, partition) is not None
        for topic, partitions in group.target_of(member).items()
        for partition in partitions
    )


def leavers(group: ConsumerGroup, request: LeaveGroupRequest) -> Steps[tuple[list[MemberResponse], list[Member]]]:
    """The answers for all who are named, and the members who are to be taken out."""
    answers: list[MemberResponse] = []
    gone: dict[str, Member] = {}
    for piece in pieces(request.members, _LEAVERS_A_STEP):
        if answers:
            yield
        for identity in piece:
            error = ErrorCode.NONE
            try:
                member = _leaver(group, identity)
                gone[member.id] = member
            except RequestRefused as refused:
                error = refused.error
            answers.append(
                MemberResponse(
                    member_id=identity.member_id, group_instance_id=identity.group_instance_id, error_code=error
                )
            )
    return answers, list(gone.values())


def _leaver(group: ConsumerGroup, identity: MemberIdentity) -> Member:
    if identity.group_instance_id is None:
        return checks.known_member(group, identity.member_id)
    if identity.member_id:
        return checks.known_static_member(group, identity.member_id, identity.group_instance_id)
    # An administrator removes an instance, whatever its member id is.
    member = group.static_member(identity.group_instance_id)
    if member is None:
        raise RequestRefused(
            ErrorCode.UNKNOWN_MEMBER_ID, f"Group {group.id} has no instance {identity.group_instance_id}."
        )
    return member


def _classic_member(
    group: ConsumerGroup, member_id: str, instance_id: str | None, generation: int
) -> tuple[Member, ClassicProtocol]:
    if instance_id is None:
        member = checks.known_member(group, member_id)
    else:
        member = checks.known_static_member(group, member_id, instance_id)
    if member.classic is None:
        raise RequestRefused(ErrorCode.UNKNOWN_MEMBER_ID, f"Member {member_id} speaks the newer protocol.")
    if member.epoch != generation:
        raise RequestRefused(ErrorCode.ILLEGAL_GENERATION, f"Member {member_id} is in generation {member.epoch}.")
    return member, member.classic


def _must_join(member: Member) -> TimerWish:
    return TimerWish(TimerKind.JOIN, member.id, member.rebalance_timeout_ms, if_absent=True)
