"""What becomes of partitions when brokers die, come back, do both unseen, or lose a directory."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence

import pytest
from tests.controller.several import Brokers, FencedBroker, ids
from tests.coordination.contract import until

from ottla.controller.interface import ConfigOverrides, ConfigTarget, ConfigTargetType, TopicRef, TopicToCreate
from ottla.coordination.interface import Op, OpResult
from ottla.coordination.local import LocalSession
from ottla.coordination.notifications import LOG_DIR_EVENT_PREFIX, encode_log_dir_failure
from ottla.coordination.znodes import state_path
from ottla.model import ErrorCode, TopicPartition

UNCLEAN = "unclean.leader.election.enable"


@pytest.fixture
def brokers() -> Iterator[Brokers]:
    made = Brokers()
    made.settle(made.begin())
    yield made
    made.close()


class Multis(LocalSession):
    """Remembers which paths were written together."""

    def remember(self) -> list[list[str]]:
        self.written: list[list[str]] = []
        return self.written

    async def multi(self, ops: Sequence[Op]) -> list[OpResult]:
        if hasattr(self, "written"):
            self.written.append([op.path for op in ops])
        return await super().multi(ops)


def watched(brokers: Brokers) -> list[list[str]]:
    """The multis of the active controller from now on."""
    session = brokers.controller._coordination
    session.__class__ = Multis
    assert isinstance(session, Multis)
    return session.remember()


def test_the_dead_leave_every_isr_in_the_same_multi_as_the_elections(brokers: Brokers) -> None:
    brokers.settle(brokers.create_all("orders", [(3, 2), (2, 3), (3, 1), (1, 2)]))
    multis = watched(brokers)
    brokers.settle(brokers.die(3))
    # Where the leader lives the ISR is without the dead all the same: acks=all would wait for it.
    assert brokers.states("orders") == [(2, 1, (2,)), (2, 1, (2,)), (1, 1, (1,)), (1, 0, (1, 2))]
    states = [[path for path in paths if path.endswith("state")] for paths in multis]
    assert [len(paths) for paths in states if paths] == [3]
    # The leaders that stay hear of it under their next epoch.
    role = brokers.all[2].roles[TopicPartition("orders", 1)]
    assert (role.leader, role.leader_epoch, role.isr) == (2, 1, (2,))
    assert brokers.seen_by(1, "orders", 1).offline_replicas == (3,)


def test_the_last_member_never_leaves(brokers: Brokers) -> None:
    brokers.settle(brokers.create("orders", 3, 2))
    brokers.settle(brokers.die(3))
    assert brokers.state("orders") == (2, 1, (2,))
    brokers.settle(brokers.die(2))
    assert brokers.state("orders") == (-1, 2, (2,))
    # It stays in the metadata, and only who was in sync may lead it.
    assert brokers.seen_by(1, "orders").leader == -1
    brokers.settle(brokers.start(3))
    assert brokers.state("orders") == (-1, 2, (2,))
    brokers.settle(brokers.start(2))
    assert brokers.state("orders") == (2, 3, (2,))
    assert brokers.seen_by(1, "orders").leader == 2


def test_those_that_die_together_may_each_come_back(brokers: Brokers) -> None:
    brokers.settle(brokers.create("orders", 3, 2))

    async def both() -> None:
        await asyncio.gather(brokers.die(2), brokers.die(3))

    brokers.settle(both())
    assert brokers.state("orders") == (-1, 1, (3, 2))
    brokers.settle(brokers.start(2))
    assert brokers.state("orders") == (2, 2, (2,))


@pytest.mark.parametrize("where", ["topic", "broker", "brokers", "nowhere"])
def test_both_behaviours_when_all_in_sync_are_down(brokers: Brokers, where: str) -> None:
    """As the seeds tell them: wait for the ISR, or take any replica, from when on the topic or a broker allows it."""
    brokers.settle(brokers.create("orders", 3, 2))
    brokers.settle(brokers.change_isr("orders", 3))
    brokers.settle(brokers.die(3))
    assert brokers.state("orders") == (-1, 1, (3,))
    target = {
        "topic": ConfigTarget(ConfigTargetType.TOPIC, "orders"),
        "broker": ConfigTarget(ConfigTargetType.BROKER, str(brokers.active_number())),
        "brokers": ConfigTarget(ConfigTargetType.BROKER, ""),
    }
    if where in target:
        brokers.settle(brokers.controller.alter_configs([ConfigOverrides(target[where], {UNCLEAN: "true"})]))
        assert brokers.state("orders") == (2, 2, (2,))
        assert brokers.controller.numbers.unclean_elections == 1
    else:
        brokers.settle(brokers.start(3))
        assert brokers.state("orders") == (3, 2, (3,))
        assert brokers.controller.numbers.unclean_elections == 0


@pytest.mark.parametrize("where", ["broker", "brokers"])
def test_what_a_topic_forbids_no_broker_allows(brokers: Brokers, where: str) -> None:
    """UncleanLeaderElectionTest testUncleanLeaderElectionDisabledByTopicOverride: and when the topic allows it, too."""
    brokers.settle(brokers.create("orders", 3, 2, configs={UNCLEAN: "false"}))
    brokers.settle(brokers.change_isr("orders", 3))
    for broker in ("1", "2") if where == "broker" else ("",):
        allowed = ConfigOverrides(ConfigTarget(ConfigTargetType.BROKER, broker), {UNCLEAN: "true"})
        brokers.settle(brokers.controller.alter_configs([allowed]))
    brokers.settle(brokers.die(3))
    assert brokers.state("orders") == (-1, 1, (3,))
    assert brokers.controller.numbers.unclean_elections == 0
    topic = ConfigTarget(ConfigTargetType.TOPIC, "orders")
    brokers.settle(brokers.controller.alter_configs([ConfigOverrides(topic, {UNCLEAN: "true"})]))
    assert brokers.state("orders") == (2, 2, (2,))


@pytest.mark.parametrize("text", [None, "true", "false"])
def test_a_topic_overrides_what_the_brokers_file_allows(text: str | None) -> None:
    brokers = Brokers(3, auto_leader_rebalance=False, unclean_leader_election=True)
    try:
        brokers.settle(brokers.begin())
        brokers.settle(brokers.create("orders", 3, 2, configs=None if text is None else {UNCLEAN: text}))
        brokers.settle(brokers.change_isr("orders", 3))
        brokers.settle(brokers.die(3))
        assert brokers.state("orders") == ((-1, 1, (3,)) if text == "false" else (2, 1, (2,)))
    finally:
        brokers.close()


def test_an_election_that_finds_nobody_says_so(brokers: Brokers, log_lines: list[str]) -> None:
    brokers.settle(brokers.create("orders", 3))
    brokers.settle(brokers.die(3))
    said = "\n".join(log_lines)
    assert "partitions have no leader" in said
    assert "first=orders-0 isr=[3]" in said


# A bounce.


async def bounce(brokers: Brokers, number: int, *, stale: bool = False) -> None:
    """Gone and registered again before anybody looks; or, with `stale`, before the tree is read again as a whole."""
    controller = brokers.controller
    held = asyncio.Event()
    turn = asyncio.ensure_future(controller.tenure.run(held.wait))
    await asyncio.sleep(0)
    epoch = controller.context.brokers[ids(number)[0]].epoch
    await brokers.die(number)
    await brokers.start(number)
    assert controller.context.brokers[ids(number)[0]].epoch == epoch
    controller.tenure.core.stale = stale
    held.set()
    await turn


@pytest.mark.parametrize("stale", [False, True])
def test_a_bounce_between_two_looks_is_a_death_and_a_birth(brokers: Brokers, stale: bool) -> None:
    brokers.settle(brokers.create_all("orders", [(3, 2), (2, 3)]))
    brokers.settle(brokers.create("alone", 3))

    brokers.settle(bounce(brokers, 3, stale=stale))
    # It may have lost what it had: it leads nothing that others can, and is in sync with nobody.
    assert brokers.states("orders") == [(2, 1, (2,)), (2, 1, (2,))]
    assert brokers.state("alone") == (3, 2, (3,))
    # It knew nothing, and knows everything.
    assert sorted(state.leader for state in brokers.all[3].roles.values()) == [2, 2, 3]
    assert set(brokers.all[3].cache.brokers) == {1, 2, 3}


def test_a_bounce_that_only_the_dead_controller_could_have_seen(brokers: Brokers) -> None:
    """It died in that moment, or was that broker itself: the next one finds it registered, and may not trust it."""
    brokers.settle(brokers.create_all("orders", [(3, 2), (2, 3)]))
    brokers.settle(brokers.create("alone", 3))

    async def bounce_of_two() -> None:
        held = asyncio.Event()
        turn = asyncio.ensure_future(brokers.controller.tenure.run(held.wait))
        await asyncio.sleep(0)
        assert brokers.active_number() == 1
        await brokers.die(3)
        await brokers.start(3)
        await brokers.die(1)
        held.set()
        await asyncio.gather(turn, return_exceptions=True)

    brokers.settle(bounce_of_two())
    assert brokers.active_number() == 2
    assert [state[0] for state in brokers.states("orders")] == [2, 2]
    assert [state[2] for state in brokers.states("orders")] == [(2,), (2,)]
    # There nobody else has anything.
    assert brokers.state("alone") == (3, 0, (3,))
    # It may come back.
    result = brokers.settle(brokers.change_isr("orders", 2, 3))
    assert result is not None
    assert result.error is ErrorCode.NONE


def test_a_leader_that_came_back_with_all_others_leads_in_its_next_epoch(brokers: Brokers) -> None:
    """All lost their power at once. What its disk has not kept a follower's may have: in the same epoch it would write
    something else there."""
    brokers.settle(brokers.create_all("orders", [(3, 2), (2, 3)]))
    brokers.settle(brokers.create("alone", 3))
    assert brokers.settle(brokers.change_isr("orders", 2, partition=1)).error is ErrorCode.NONE  # type: ignore[union-attr]

    async def cut_of_all() -> None:
        # Nobody is left to see the others go, and nobody stands before all are back.
        for controller in brokers.controllers.values():
            await controller.stop()
        for number in brokers.numbers:
            await brokers.die(number)
        for number in brokers.numbers:
            await brokers.register(number)
        for number in brokers.numbers:
            brokers.all[number] = FencedBroker(number)
            brokers.controllers[number] = brokers.new_controller(number)
        for number in brokers.numbers:
            await brokers.controllers[number].stand()

    brokers.settle(cut_of_all())
    assert brokers.states("orders") == [(3, 1, (3, 2)), (2, 1, (2,))]
    # Nobody else has anything of it.
    assert brokers.state("alone") == (3, 0, (3,))


def test_a_broker_that_changes_its_listeners_is_reached_by_them(brokers: Brokers) -> None:
    brokers.settle(brokers.create("orders", 2, 3))
    path = "/brokers/ids/3"
    data = brokers.person.store._tree.nodes[path].data
    brokers.settle(brokers.person.set(path, data.replace(b"9092", b"9393")))
    assert brokers.seen_by(1, "orders").isr == (2, 3)
    for number in (1, 2, 3):
        endpoint = brokers.all[number].cache.brokers[ids(3)[0]].endpoints[0]
        assert endpoint.port == 9393
    # Again: the watch is left anew each time.
    brokers.settle(brokers.person.set(path, data))
    assert brokers.all[1].cache.brokers[ids(3)[0]].endpoints[0].port == 9092


def test_deaths_are_seen_again_and_again(brokers: Brokers) -> None:
    brokers.settle(brokers.create("orders", 3, 2))
    for _ in range(5):
        brokers.settle(brokers.die(3))
        assert brokers.state("orders")[2] == (2,)
        brokers.settle(brokers.start(3))
        brokers.settle(brokers.change_isr("orders", 2, 3))
        assert brokers.state("orders")[2] == (2, 3)


# Conditional writes.


def test_elections_whose_state_has_changed_hold_up_no_others(brokers: Brokers) -> None:
    count = 50
    brokers.settle(brokers.create_all("orders", [(3, 2, 1)] * count))
    changed = [7, 8, 30]

    async def work() -> None:
        for partition in changed:
            await brokers.write_state("orders", 3, 5, 3, 1, partition=partition)

    brokers.run(work())
    multis = watched(brokers)
    brokers.settle(brokers.die(3))
    for partition, state in enumerate(brokers.states("orders")):
        # Decided anew on what stands there: broker 2 was not in sync any more.
        assert state == ((1, 6, (1,)) if partition in changed else (2, 1, (2, 1))), partition
        assert brokers.seen_by(1, "orders", partition).leader == state[0]
    # In pieces around those that failed, and these once more: not one write for each of fifty.
    assert len([paths for paths in multis if any(path.endswith("state") for path in paths)]) <= 9
    assert not brokers.controller.tenure.core.stale


def test_elections_of_which_most_have_changed_get_through_too(brokers: Brokers) -> None:
    brokers.settle(brokers.create_all("orders", [(3, 2, 1)] * 40))

    async def work() -> None:
        for partition in range(40):
            if partition % 7:
                await brokers.write_state("orders", 3, 5, 3, 1, partition=partition)
        await brokers.person.delete(state_path("orders", 13))
        await brokers.die(3)

    brokers.settle(work())
    leaders = [state[0] for state in brokers.states("orders")[:13]]
    assert leaders == [1 if partition % 7 else 2 for partition in range(13)]
    nodes = brokers.person.store._tree.nodes
    for partition in range(14, 40):
        assert b'"leader":3' not in nodes[state_path("orders", partition)].data


# Replicas without a broker that could make them.


def test_a_topic_grows_onto_brokers_that_are_not_there(brokers: Brokers) -> None:
    brokers.settle(brokers.create("orders", 1, 3))
    brokers.settle(brokers.die(3))
    data = b'{"partitions":{"0":[1,3],"1":[3],"2":[3,1]},"adding_replicas":{},"removing_replicas":{},"version":3}'
    brokers.settle(brokers.person.set("/brokers/topics/orders", data))
    assert (brokers.seen_by(1, "orders", 1).leader, brokers.seen_by(1, "orders", 2).leader) == (-1, 1)
    brokers.settle(brokers.start(3))
    assert brokers.states("orders") == [(1, 1, (1,)), (3, 0, (3,)), (1, 0, (1,))]
    assert brokers.seen_by(2, "orders", 1).leader == 3


def test_a_log_directory_that_failed_is_found_out_through_its_notification(brokers: Brokers) -> None:
    brokers.settle(brokers.create_all("orders", [(3, 2)] * 3))

    async def work() -> None:
        await brokers.person.create(LOG_DIR_EVENT_PREFIX, encode_log_dir_failure(3), sequential=True)
        await brokers.person.create(LOG_DIR_EVENT_PREFIX, b"{", sequential=True)

    brokers.all[3].broken.add(TopicPartition("orders", 1))
    brokers.settle(work())
    assert brokers.states("orders") == [(3, 0, (3, 2)), (2, 1, (2,)), (3, 0, (3, 2))]
    brokers.all[3].broken.add(TopicPartition("orders", 2))
    brokers.settle(work())
    assert brokers.states("orders") == [(3, 0, (3, 2)), (2, 1, (2,)), (2, 1, (2,))]
    assert brokers.run(brokers.person.children("/log_dir_event_notification"))[0] == []


@pytest.mark.parametrize("alone", [False, True])
def test_a_replica_that_has_room_again_is_found_out_through_a_notification(brokers: Brokers, alone: bool) -> None:
    """A broker that could make no log says so by the tree, as often as it looks; nobody leads meanwhile, or another."""
    tp = TopicPartition("late", 0)
    replicas = (3,) if alone else (3, 2)
    brokers.settle(brokers.create("late", *replicas))

    async def notify() -> None:
        await brokers.person.create(LOG_DIR_EVENT_PREFIX, encode_log_dir_failure(3), sequential=True)
        await brokers.settled()

    brokers.all[3].no_room.add(tp)
    brokers.run(notify())
    assert brokers.state("late") == ((-1, 1, (3,)) if alone else (2, 1, (2,)))
    del brokers.all[3].roles[tp]
    brokers.run(notify())
    assert tp not in brokers.all[3].roles
    brokers.all[3].no_room.clear()
    brokers.run(notify())
    assert brokers.state("late") == ((3, 2, (3,)) if alone else (2, 1, (2,)))
    assert brokers.all[3].roles[tp].leader == (3 if alone else 2)
    assert brokers.seen_by(1, "late").offline_replicas == ()


def test_a_replica_that_has_room_again_while_another_leader_is_elected_is_back(brokers: Brokers) -> None:
    """What it answers is of the state that it was given, and it has no role in later ones before it is back."""
    tp = TopicPartition("late", 0)
    brokers.settle(brokers.create("late", 2, 3, 1))
    broker = brokers.all[3]
    broker.no_room.add(tp)
    brokers.settle(brokers.person.create(LOG_DIR_EVENT_PREFIX, encode_log_dir_failure(3), sequential=True))
    assert brokers.state("late") == (2, 1, (2, 1))
    del broker.roles[tp]
    broker.no_room.clear()
    broker.hangs_in = "leader_and_isr"

    async def work() -> None:
        before = len(broker.calls)
        await brokers.person.create(LOG_DIR_EVENT_PREFIX, encode_log_dir_failure(3), sequential=True)
        await until(lambda: "leader_and_isr" in broker.calls[before:])
        await brokers.die(2)
        await until(lambda: brokers.state("late")[0] == 1)
        broker.hangs_in = None
        broker.go_on()

    brokers.settle(work())
    assert brokers.state("late") == (1, 2, (1,))
    assert (broker.roles[tp].leader, broker.roles[tp].leader_epoch) == (1, 2)
    assert brokers.seen_by(1, "late").offline_replicas == (2,)


def test_a_failed_replica_leaves_the_isr_of_another_leader(brokers: Brokers) -> None:
    brokers.settle(brokers.create("orders", 2, 3))
    failed = [TopicPartition("orders", 0)]
    assert brokers.settle(brokers.controller.replicas_failed(ids(3)[0], failed)) is ErrorCode.NONE
    assert brokers.state("orders") == (2, 1, (2,))
    assert brokers.settle(brokers.change_isr("orders", 2, 3)).error is ErrorCode.INELIGIBLE_REPLICA


def test_a_replica_that_fails_while_its_topic_is_deleted_revives_nothing(brokers: Brokers) -> None:
    """A leader elected now would be given a role, and a role takes out the order to delete that waits."""
    brokers.settle(brokers.create("orders", 1, 3))
    slow = brokers.all[3]
    slow.hangs_in = "metadata"
    slow.calls.clear()

    async def work() -> None:
        deleting = asyncio.ensure_future(brokers.controller.delete_topics([TopicRef("orders")]))
        await until(lambda: slow.calls)
        failed = [TopicPartition("orders", 0)]
        assert await brokers.controller.replicas_failed(ids(1)[0], failed) is ErrorCode.NONE
        slow.hangs_in = None
        slow.go_on()
        (deleted,) = await deleting
        assert deleted.error is ErrorCode.NONE

    brokers.settle(work())
    assert not slow.roles
    assert not brokers.exists("/brokers/topics/orders")
    assert not brokers.exists("/admin/delete_topics/orders")


def test_one_that_is_slow_or_hangs_holds_up_no_election(brokers: Brokers) -> None:
    brokers.settle(brokers.create("orders", 3, 2))
    brokers.all[1].hangs_in = "metadata"

    async def work() -> None:
        await brokers.die(3)
        await until(lambda: brokers.seen_by(2, "orders").leader == 2)
        (made,) = await brokers.controller.create_topics(
            [TopicToCreate("more", assignments=((0, ids(2)),))], timeout_ms=1000
        )
        # The controller's own broker is not asked to be quick.
        assert made.error is ErrorCode.REQUEST_TIMED_OUT
        brokers.all[1].hangs_in = None
        brokers.all[1].go_on()

    brokers.settle(work())
    assert brokers.seen_by(1, "more").leader == 2
