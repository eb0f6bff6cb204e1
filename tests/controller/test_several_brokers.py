"""One controller and three brokers, of which one is slow, fails, dies, or comes back: the others go on."""

from __future__ import annotations

import asyncio
import errno
from collections.abc import Awaitable, Iterator
from dataclasses import replace
from typing import Any, TypeVar

import pytest
from tests.controller.cluster import ENDPOINT, SETTINGS, Broker, Cluster
from tests.coordination.contract import until

from ottla.broker.memory import BrokerMemory
from ottla.controller.controller import ClusterController
from ottla.controller.identity import make_persistent_paths
from ottla.controller.interface import ConfigOverrides, ConfigTarget, ConfigTargetType, TopicRef, TopicToCreate
from ottla.controller.registration import register_broker
from ottla.coordination.local import LocalSession
from ottla.coordination.znodes import BrokerRegistration
from ottla.model import BrokerId, ErrorCode, TopicPartition

T = TypeVar("T")


class Brokers(Cluster):
    """Broker 1 is the controller's own; 2 and 3 are others, each with a session and a process of its own."""

    def __init__(self) -> None:
        super().__init__()
        self.all = {number: Broker(number) for number in (1, 2, 3)}
        self.sessions: dict[int, LocalSession] = {}

    async def begin(self) -> None:
        session = await self.open()
        await make_persistent_paths(session)
        await register_broker(session, BrokerId(1), BrokerRegistration((ENDPOINT,), None, 0))
        for number in (2, 3):
            await self.register(number)
        self.controller = self.new_controller(session)
        await self.controller.stand()

    def new_controller(self, session: LocalSession, broker: int = 1) -> ClusterController:
        ports = self.world.machine("m")
        settings = replace(SETTINGS, broker_id=BrokerId(broker))
        memory = BrokerMemory(self.all[broker].cache)
        return ClusterController(
            session, ports.clock, ports.entropy, lambda found: self.all[found.id], settings, memory
        )

    async def register(self, number: int) -> None:
        store = self.session.store
        session = self.sessions[number] = LocalSession(store, await store.sessions.open(6000))
        await register_broker(session, BrokerId(number), BrokerRegistration((ENDPOINT,), None, 0))

    async def create(self, name: str, *replicas: int, **options: Any) -> ErrorCode:
        """A topic of one partition."""
        placed = ((0, tuple(map(BrokerId, replicas))),)
        (made,) = await self.controller.create_topics([TopicToCreate(name, assignments=placed)], **options)
        return made.error

    def leader(self, topic: str, seen_by: int = 1) -> int | None:
        state = self.all[seen_by].cache.partition(topic, 0)
        return None if state is None else state.leader


@pytest.fixture
def brokers() -> Iterator[Brokers]:
    made = Brokers()
    made.run(made.begin())
    yield made
    made.close()


def ask(request: Awaitable[T]) -> asyncio.Future[T]:
    return asyncio.ensure_future(request)


def test_all_brokers_hear_of_a_topic_and_those_with_a_replica_have_a_role(brokers: Brokers) -> None:
    assert brokers.settle(brokers.create("orders", 2, 3)) is ErrorCode.NONE
    assert [brokers.leader("orders", number) for number in (1, 2, 3)] == [2, 2, 2]
    assert [len(brokers.all[number].roles) for number in (1, 2, 3)] == [0, 1, 1]
    brokers.settle(brokers.controller.delete_topics([TopicRef("orders")]))
    assert [len(brokers.all[number].roles) for number in (1, 2, 3)] == [0, 0, 0]
    assert brokers.run(brokers.session.exists("/brokers/topics/orders")) is None


@pytest.mark.parametrize("where", ["leader_and_isr", "metadata"])
def test_a_broker_that_does_not_answer_holds_up_nobody_else(brokers: Brokers, where: str) -> None:
    slow = brokers.all[3]
    slow.hangs_in = where

    async def work() -> None:
        held = ask(brokers.create("on-the-slow-one", 3))
        late = ask(brokers.create("too-late", 3, timeout_ms=1000))
        for number in range(20):
            assert await brokers.create(f"t{number}", 1 + number % 2, 3) is ErrorCode.NONE
        change = ConfigOverrides(ConfigTarget(ConfigTargetType.TOPIC, "t0"), {"retention.ms": "7"})
        (changed,) = await brokers.controller.alter_configs([change])
        assert changed.error is ErrorCode.NONE
        # Its request has an end; the topic is made when the broker goes on, and until then nobody sees it.
        assert await late is ErrorCode.REQUEST_TIMED_OUT
        assert not held.done()
        assert "too-late" not in brokers.all[1].cache.topics
        slow.hangs_in = None
        slow.go_on()
        assert await held is ErrorCode.NONE
        await until(lambda: "too-late" in brokers.all[1].cache.topics)

    brokers.settle(work())
    assert {leader for name in slow.cache.topics if (leader := brokers.leader(name, 3))} == {1, 2, 3}
    assert slow.cache.topic_config("t0") == {"retention.ms": "7"}
    assert len(slow.roles) == 22


def test_a_stop_waits_for_no_other_broker(brokers: Brokers) -> None:
    """It may be gone as well, and nobody else can be the controller meanwhile."""
    brokers.all[3].hangs_in = "leader_and_isr"
    now_ms = brokers.world.machine("m").clock.monotonic_ms

    async def work() -> int:
        held = ask(brokers.create("on-the-one-that-hangs", 3))
        await until(lambda: "leader_and_isr" in brokers.all[3].calls)
        began_ms = now_ms()
        await brokers.controller.stop()
        assert await held is ErrorCode.REQUEST_TIMED_OUT
        return now_ms() - began_ms

    assert brokers.run(work()) < 1000


def test_a_stop_waits_for_what_this_broker_itself_is_doing(brokers: Brokers) -> None:
    own = brokers.all[1]
    own.hangs_in = "leader_and_isr"

    async def work() -> bool:
        held = ask(brokers.create("here", 1))
        await until(lambda: "leader_and_isr" in own.calls)
        stopped = ask(brokers.controller.stop())
        await asyncio.sleep(5)
        waits = not stopped.done()
        own.go_on()
        await stopped
        assert await held is ErrorCode.REQUEST_TIMED_OUT
        return waits

    assert brokers.run(work())


def test_what_a_slow_broker_has_missed_it_hears_once(brokers: Brokers) -> None:
    slow = brokers.all[3]
    brokers.settle(brokers.create("t", 1, 3))

    async def work() -> None:
        slow.hangs_in = "metadata"
        topic = ConfigTarget(ConfigTargetType.TOPIC, "t")
        for number in range(50):
            await brokers.controller.alter_configs([ConfigOverrides(topic, {"retention.ms": str(number)})])
            assert await brokers.create(f"gone{number}", 1) is ErrorCode.NONE
            await brokers.controller.delete_topics([TopicRef(f"gone{number}")])
        slow.hangs_in = None
        slow.calls.clear()
        slow.go_on()

    brokers.settle(work())
    # One call of what the first one was not, and no partitions that are gone already.
    assert slow.calls == ["metadata"]
    assert slow.cache.topic_config("t") == {"retention.ms": "49"}
    assert set(slow.cache.topics) == {"t"}


@pytest.mark.parametrize("fault", [OSError("unreachable"), ValueError("a fault of ours"), asyncio.CancelledError()])
def test_an_announcement_that_raises_comes_again(brokers: Brokers, fault: BaseException) -> None:
    for broker in brokers.all.values():
        broker.faults = [fault] * 3

    assert brokers.settle(brokers.create("orders", 2, 1, 3)) is ErrorCode.NONE
    assert [brokers.leader("orders", number) for number in (1, 2, 3)] == [2, 2, 2]
    assert all(len(broker.roles) == 1 and not broker.faults for broker in brokers.all.values())


def test_where_a_role_cannot_be_taken_on_another_replica_leads(brokers: Brokers) -> None:
    brokers.all[2].broken.add(TopicPartition("orders", 0))
    assert brokers.settle(brokers.create("orders", 2, 3)) is ErrorCode.NONE
    assert [brokers.leader("orders", number) for number in (1, 2, 3)] == [3, 3, 3]
    state = brokers.all[1].cache.topics["orders"].partitions[0]
    assert (state.isr, state.leader_epoch, state.offline_replicas) == ((3,), 1, (2,))
    assert brokers.all[3].roles[TopicPartition("orders", 0)].leader == 3


def test_what_cannot_be_written_of_a_failed_role_is_written_when_there_is_room(brokers: Brokers) -> None:
    failing = brokers.all[2]
    failing.broken.add(TopicPartition("orders", 0))
    failing.on_no_room = lambda: brokers.disk.fail("append", "*journal*", errno.ENOSPC)

    async def work() -> None:
        # Whoever asked is answered; nobody asks again, and still it is seen to.
        assert await brokers.create("orders", 2, 3) is ErrorCode.KAFKA_STORAGE_ERROR
        await asyncio.sleep(20)
        brokers.disk.stop_failing()
        failing.on_no_room = lambda: None
        await until(lambda: brokers.leader("orders", 2) == 3)

    brokers.settle(work())
    assert [brokers.leader("orders", number) for number in (1, 2, 3)] == [3, 3, 3]


def test_a_start_whose_own_broker_cannot_be_announced_to_fails_with_its_fault() -> None:
    made = Brokers()
    made.all[1].faults = [ValueError("planted")]
    with pytest.raises(ValueError, match="planted"):
        made.run(made.begin())
    made.run(made.controller.stop())
    made.close()


def test_the_dead_lead_no_more_and_nobody_waits_for_them(brokers: Brokers) -> None:
    brokers.settle(brokers.create("orders", 3, 2))
    brokers.settle(brokers.create("gone", 3, 1))
    dead = brokers.all[3]
    dead.hangs_in = "leader_and_isr"

    async def work() -> None:
        making = [ask(brokers.create("with-another", 3, 1)), ask(brokers.create("alone", 3))]
        await until(lambda: "leader_and_isr" in dead.calls[2:])
        dead.hangs_in = "stop_replicas"
        deleting = ask(brokers.controller.delete_topics([TopicRef("gone")]))
        await asyncio.sleep(1)
        assert not any(one.done() for one in making)
        await brokers.sessions[3].expire()
        assert await making[0] is ErrorCode.NONE
        # Nobody leads it, and it is there.
        assert await making[1] is ErrorCode.NONE
        (deleted,) = await deleting
        assert deleted.error is ErrorCode.NONE

    brokers.settle(work())
    leaders = {name: brokers.leader(name, 2) for name in brokers.all[2].cache.topics}
    assert leaders == {"orders": 2, "with-another": 1, "alone": -1}
    assert set(brokers.all[2].cache.brokers) == {1, 2}
    # Its replica there goes when the broker is back, and the topic's nodes after it.
    assert brokers.run(brokers.session.exists("/brokers/topics/gone")) is not None
    assert "gone" not in brokers.all[2].cache.topics
    brokers.all[3] = Broker(3)
    brokers.all[3].roles = {tp: state for tp, state in dead.roles.items() if tp.topic == "gone"}
    brokers.settle(brokers.register(3))
    assert brokers.run(brokers.session.exists("/brokers/topics/gone")) is None
    assert not any(tp.topic == "gone" for tp in brokers.all[3].roles)


def test_a_broker_that_comes_back_is_announced_everything(brokers: Brokers) -> None:
    brokers.settle(brokers.create("orders", 3))
    brokers.settle(brokers.create("other", 3, 2))

    async def dies() -> None:
        await brokers.sessions[3].expire()
        await until(lambda: 3 not in brokers.controller.context.brokers)

    brokers.settle(dies())
    assert (brokers.leader("orders"), brokers.leader("other")) == (-1, 2)
    brokers.all[3] = Broker(3)

    async def comes_back() -> None:
        await brokers.register(3)
        await until(lambda: 3 in brokers.controller.context.brokers)

    brokers.settle(comes_back())
    assert (brokers.leader("orders"), brokers.leader("other")) == (3, 2)
    assert set(brokers.all[3].cache.brokers) == {1, 2, 3}
    assert {tp.topic: state.leader for tp, state in brokers.all[3].roles.items()} == {"orders": 3, "other": 2}


def test_a_new_controller_goes_on_where_the_last_one_was_cut_off(brokers: Brokers) -> None:
    brokers.settle(brokers.create("going", 3))
    slow = brokers.all[3]

    async def work() -> None:
        slow.hangs_in = "stop_replicas"
        deleting = ask(brokers.controller.delete_topics([TopicRef("going")]))
        await until(lambda: "stop_replicas" in slow.calls)
        coming = ask(brokers.create("coming", 2, 3))
        alone = ask(brokers.create("alone", 3))
        assert await coming is ErrorCode.NONE
        await brokers.session.expire()
        # Those who wait are answered, by a controller that announces nothing more. What they asked for is in the tree,
        # and goes on: asked for again at the next controller, it would be refused, or done to a later topic.
        (deleted,) = await deleting
        assert deleted.error is await alone is ErrorCode.REQUEST_TIMED_OUT
        calls = [list(broker.calls) for broker in brokers.all.values()]
        assert await brokers.create("refused", 2) is ErrorCode.NOT_CONTROLLER
        await asyncio.sleep(60)
        assert [list(broker.calls) for broker in brokers.all.values()] == calls
        slow.hangs_in = None
        slow.go_on()
        store = brokers.session.store
        session = LocalSession(store, await store.sessions.open(6000))
        await brokers.sessions[2].expire()
        await register_broker(session, BrokerId(2), BrokerRegistration((ENDPOINT,), None, 0))
        brokers.controller = brokers.new_controller(session, 2)
        await brokers.controller.stand()

    brokers.settle(work())
    # Broker 2 has registered again meanwhile, and nobody was there who could have seen that.
    assert {name: brokers.leader(name, 2) for name in brokers.all[2].cache.topics} == {"coming": 3, "alone": 3}
    assert brokers.all[2].cache.controller_id == 2
    assert set(slow.roles) == {("coming", 0), ("alone", 0)}
    assert brokers.run(brokers.session.store.read(0, lambda tree: "/brokers/topics/going" in tree.nodes)) is False
