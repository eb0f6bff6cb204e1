"""Bugs in the controller, in coordination, and in how brokers obey."""

from __future__ import annotations

from typing import Any

import pytest

from ottla.broker.membership import Membership
from ottla.broker.settings import TreeSettings
from ottla.broker.standing_aside import StandingAside
from ottla.controller import loading, registration
from ottla.controller.electing import partitions as electing
from ottla.controller.turns import brokers
from ottla.controller.turns.deleting import DeletionTurns
from ottla.controller.turns.replicas import ReplicaTurns
from ottla.controller.writing import ControllerWrites
from ottla.coordination.interface import SessionInfo
from ottla.coordination.leases import SessionLeases
from ottla.coordination.sessions import Sessions
from ottla.coordination.znodes import LeaderAndIsr
from ottla.coordination.zookeeper.watching import LeftWatches
from ottla.groups.classic.group import ClassicGroup
from ottla.groups.consumer import reconciliation
from ottla.groups.consumer.group import ConsumerGroup
from ottla.handlers.fetch.reading import FetchReader
from ottla.model import NO_BROKER, BrokerId, ErrorCode
from ottla.replication import replicas

Patch = pytest.MonkeyPatch


def elected_outside_the_isr(patch: Patch) -> None:
    elect = electing.after_change

    def elected(*arguments: Any, **options: Any) -> LeaderAndIsr | None:
        return elect(*arguments, **{**options, "unclean": True})

    patch.setattr(electing, "after_change", elected)


def stands_aside_for_good(patch: Patch) -> None:
    """Until a controller says something of the partition: nobody who was silent is heard again."""
    patch.setattr(StandingAside, "_return", lambda _: None)


def led_in_the_same_term(patch: Patch) -> None:
    def led(state: LeaderAndIsr, leader: Any, isr: Any, controller_epoch: Any) -> LeaderAndIsr:
        return LeaderAndIsr(controller_epoch, leader, state.leader_epoch, isr)

    patch.setattr(electing, "led_by", led)


def first_replica_elected(patch: Patch) -> None:
    """Whoever is assigned first and lives, in sync or not."""

    def elected(state: LeaderAndIsr, assigned: Any, live: Any, controller_epoch: Any, **_: Any) -> LeaderAndIsr | None:
        if state.leader in live:
            return None
        found = [broker for broker in assigned if broker in live]
        return electing.led_by(state, found[0], tuple(found), controller_epoch) if found else None

    patch.setattr(electing, "after_change", elected)


def partition_epoch_ignored(patch: Patch) -> None:
    """What a leader asked for before the controller's last change is carried out behind it. Whoever has died since is
    refused all the same (KIP-841, KIP-903), which hides it: nobody looks at that either."""
    anybody_may_join(patch)
    planned = ReplicaTurns._planned

    def plan(turns: ReplicaTurns, broker_id: Any, place: int, change: Any) -> Any:
        topic = turns._core.context.topics.get(change.tp.topic)
        known = None if topic is None else topic.states.get(change.tp.partition)
        if known is not None:
            change = change._replace(partition_epoch=known.version, leader_epoch=known.state.leader_epoch)
        return planned(turns, broker_id, place, change)

    patch.setattr(ReplicaTurns, "_planned", plan)


def anybody_may_join(patch: Patch) -> None:
    """The dead, and those of a former registration."""
    patch.setattr(ReplicaTurns, "_is_eligible", lambda *_: True)


def old_registration_may_join(patch: Patch) -> None:
    """Whoever fetched under a registration that is over: what it had then it may have no more (KIP-903)."""
    eligible = ReplicaTurns._is_eligible

    def is_eligible(turns: ReplicaTurns, change: Any, member: Any, epoch: int, before: Any) -> bool:
        del epoch
        return eligible(turns, change, member, -1, before)

    patch.setattr(ReplicaTurns, "_is_eligible", is_eligible)
    patch.setattr(FetchReader, "is_replica", lambda reader, leader: reader.replica_id in leader.isr.followers)


def dead_stay_in_the_isr(patch: Patch) -> None:
    """Only those partitions change whose leaders are dead."""
    elect = electing.after_change

    def elected(state: LeaderAndIsr, assigned: Any, live: Any, epoch: Any, **options: Any) -> LeaderAndIsr | None:
        return None if state.leader in live else elect(state, assigned, live, epoch, **options)

    patch.setattr(electing, "after_change", elected)


def last_member_leaves(patch: Patch) -> None:
    elect = electing.after_change

    def elected(state: LeaderAndIsr, assigned: Any, live: Any, epoch: Any, **options: Any) -> LeaderAndIsr | None:
        after = elect(state, assigned, live, epoch, **options)
        return after._replace(isr=()) if after is not None and after.leader == NO_BROKER else after

    patch.setattr(electing, "after_change", elected)


def producer_ids_given_twice(patch: Patch) -> None:
    """Blocks overlap."""
    allocate = ReplicaTurns.allocate_producer_ids

    async def allocated(turns: ReplicaTurns, broker_id: Any) -> Any:
        found = await allocate(turns, broker_id)
        return found._replace(first=0)

    patch.setattr(ReplicaTurns, "allocate_producer_ids", allocated)


def sessions_never_expire(patch: Patch) -> None:
    patch.setattr(SessionLeases, "overdue", lambda *_: [])


def session_ids_given_twice(patch: Patch) -> None:
    """They are made from the time alone, in seconds."""

    def new(sessions: Sessions, timeout_ms: int) -> SessionInfo:
        return SessionInfo((sessions._clock.wall_ms() // 1_000) << 20, sessions._entropy.token(16), timeout_ms)

    patch.setattr(Sessions, "new", new)


def session_ids_given_again(patch: Patch) -> None:
    """There are sixteen of them: each comes again once the session that had it is over."""

    def new(sessions: Sessions, timeout_ms: int) -> SessionInfo:
        found = sessions._last_id
        while (found := found % 16 + 1) in sessions._tree.sessions:
            pass
        sessions._last_id = found
        return SessionInfo(found, sessions._entropy.token(16), timeout_ms)

    patch.setattr(Sessions, "new", new)


def strangers_taken_for_ours(patch: Patch) -> None:
    """A deletion does not wait for brokers that are away, and these take their old logs for the new topic's."""
    holders = DeletionTurns._holders

    def present(turns: DeletionTurns, name: str) -> tuple[set[BrokerId], set[BrokerId]]:
        return holders(turns, name)[0], set()

    def forget(turns: DeletionTurns, broker: BrokerId) -> None:
        for deletion in turns._deletions.values():
            deletion.waits_for.discard(broker)

    patch.setattr(DeletionTurns, "_holders", present)
    patch.setattr(DeletionTurns, "broker_gone", forget)
    patch.setattr(replicas, "is_same_topic", lambda *_: True)


def marks_left_behind(patch: Patch) -> None:
    """A deletion ends without its mark, and goes on later with whatever has that name by then."""
    removal, found = DeletionTurns._removal, DeletionTurns.found

    async def nodes_alone(turns: DeletionTurns, name: str) -> Any:
        *nodes, _ = await removal(turns, name)
        return nodes

    async def found_topics(turns: DeletionTurns, marks: Any) -> None:
        """A mark without a topic stays, too: one that is left is taken away here otherwise."""
        await found(turns, [name for name in marks if name in turns._core.context.topics])

    patch.setattr(DeletionTurns, "_removal", nodes_alone)
    patch.setattr(DeletionTurns, "found", found_topics)


def deletions_forgotten_by_a_takeover(patch: Patch) -> None:
    """Whoever is the controller next leaves what is half done to the one before."""
    patch.setattr(DeletionTurns, "go_on", lambda _: None)


def moves_forgotten_by_a_takeover(patch: Patch) -> None:
    """Whoever is the controller next takes the replicas that come and those that go for what there is to be."""
    decode = loading.decoding_topic

    def decoding(path: str, data: bytes) -> Any:
        assignment = yield from decode(path, data)
        return assignment._replace(adding={}, removing={})

    patch.setattr(loading, "decoding_topic", decoding)


def unfenced_controller(patch: Patch) -> None:
    """What a controller writes is not conditional on its epoch."""

    async def multi(writes: ControllerWrites, ops: Any) -> None:
        await writes._coordination.multi(list(ops))

    patch.setattr(ControllerWrites, "_multi", multi)


def stale_controller_obeyed(patch: Patch) -> None:
    """A broker takes whatever state comes, of whatever age."""
    patch.setattr(replicas, "is_older", lambda *_: False)


def older_states_of_the_term_taken(patch: Patch) -> None:
    """A broker compares leader epochs alone: what comes in the same one may be from before what it has heard since."""

    def is_older(state: Any, role: Any) -> bool:
        return bool(state.leader_epoch < role.epoch)

    patch.setattr(replicas, "is_older", is_older)


def own_earlier_id_refused(patch: Patch) -> None:
    """A broker that was killed and comes back before its session has ended finds its own id in use."""
    registered = registration._registered

    async def refused(coordination: Any, path: str, data: bytes, wait_ms: int) -> int | None:
        stat = await coordination.exists(path)
        if stat is not None and stat.ephemeral_owner != coordination.session.id:
            raise registration.BrokerIdInUse(path)
        return await registered(coordination, path, data, wait_ms)

    patch.setattr(registration, "_registered", refused)


def bounce_unseen(patch: Patch) -> None:
    """A broker that was away between two looks is not noticed."""
    patch.setattr(brokers, "_bounced", lambda *_: set())


def watches_lost_after_a_reconnect(patch: Patch) -> None:
    patch.setattr(LeftWatches, "requests", lambda *_: iter(()))


def settings_read_at_a_start_alone(patch: Patch) -> None:
    """Notes of what has changed are passed over; a session that begins reads everything."""

    async def passed_over(*_: Any) -> None:
        pass

    patch.setattr(TreeSettings, "_take", passed_over)


def stands_once(patch: Patch) -> None:
    """In its next session a broker is registered, and neither stands for controller nor looks who that is."""
    stand = Membership.stand

    async def stood(membership: Membership) -> None:
        if not membership._stands:
            await stand(membership)

    patch.setattr(Membership, "stand", stood)


def lease_not_renewed(patch: Patch) -> None:
    patch.setattr(SessionLeases, "touch", lambda *_: None)


def old_generation_accepted(patch: Patch) -> None:
    check = ClassicGroup.check_commit

    def checked(group: ClassicGroup, *arguments: Any, **options: Any) -> ErrorCode:
        found = check(group, *arguments, **options)
        return ErrorCode.NONE if found is ErrorCode.ILLEGAL_GENERATION else found

    patch.setattr(ClassicGroup, "check_commit", checked)


def partitions_given_too_early(patch: Patch) -> None:
    """A member of a newer group gets what it is to have while the one before it has that still."""
    step = reconciliation._next

    def given(member: Any, epoch: int, goal: Any, owner_of: Any, reported: Any, claim: Any) -> Any:
        del owner_of
        return step(member, epoch, goal, lambda *_: None, reported, claim)

    patch.setattr(reconciliation, "_next", given)


def old_member_epoch_accepted(patch: Patch) -> None:
    check = ConsumerGroup.check_commit

    def checked(group: ConsumerGroup, *arguments: Any, **options: Any) -> ErrorCode:
        found = check(group, *arguments, **options)
        return ErrorCode.NONE if found is ErrorCode.STALE_MEMBER_EPOCH else found

    patch.setattr(ConsumerGroup, "check_commit", checked)
