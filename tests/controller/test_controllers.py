"""Which of several brokers is the controller: elections, resignations, and those that come too late."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest
from tests.controller.cluster import ENDPOINT
from tests.controller.several import Brokers
from tests.coordination.contract import until

from ottla.controller import controller, writing
from ottla.controller.electing.controllership import ControllerClaim, compete
from ottla.controller.interface import ElectionKind, IsrChange, Reassignment, TopicRef, TopicToCreate
from ottla.controller.registration import BrokerIdInUse, register_broker
from ottla.coordination.errors import ConnectionLoss, MultiFailed, NotAuthorized, SessionExpired
from ottla.coordination.interface import Op, OpResult, SessionEvent
from ottla.coordination.local import LocalSession
from ottla.coordination.znodes import BrokerRegistration, decode_controller
from ottla.model import BrokerId, Epoch, ErrorCode, TopicPartition


@pytest.fixture
def brokers() -> Iterator[Brokers]:
    made = Brokers()
    made.settle(made.begin())
    yield made
    made.close()


def controller_node(brokers: Brokers) -> int:
    return decode_controller("", brokers.person.store._tree.nodes["/controller"].data).broker_id


def epoch_node(brokers: Brokers) -> bytes:
    return brokers.person.store._tree.nodes["/controller_epoch"].data


def test_the_first_is_the_controller_and_all_know_it(brokers: Brokers) -> None:
    assert brokers.active_number() == controller_node(brokers) == 1
    assert epoch_node(brokers) == b"1"
    assert [broker.cache.controller_id for broker in brokers.all.values()] == [1, 1, 1]
    assert all(set(broker.cache.brokers) == {1, 2, 3} for broker in brokers.all.values())


def test_of_many_that_stand_at_once_one_is_elected() -> None:
    made = Brokers(5)

    async def work() -> None:
        made.numbers = range(0)
        await made.begin()
        await asyncio.gather(*(made.start(number) for number in range(1, 6)))

    made.settle(work())
    winner = made.active_number()
    assert winner == controller_node(made)
    assert epoch_node(made) == b"1"
    assert {broker.cache.controller_id for broker in made.all.values()} == {winner}
    made.close()


def test_when_the_controller_dies_another_one_goes_on(brokers: Brokers) -> None:
    brokers.settle(brokers.create("orders", 1, 2, 3))
    brokers.settle(brokers.die(1))
    active = brokers.active_number()
    assert active in (2, 3)
    assert epoch_node(brokers) == b"2"
    # The dead lead no more, and have left the ISR, in what the new one has written and announced.
    assert brokers.state("orders") == (2, 1, (2, 3))
    assert [brokers.seen_by(number, "orders").leader for number in (2, 3)] == [2, 2]
    assert {brokers.all[number].cache.controller_id for number in (2, 3)} == {active}
    brokers.settle(brokers.create("more", 2, 3))


def test_controllers_die_one_after_the_other(brokers: Brokers) -> None:
    brokers.settle(brokers.create("orders", 1, 2, 3))
    for round_ in range(6):
        active = brokers.active_number()
        assert active is not None
        brokers.settle(brokers.die(active))
        assert brokers.active_number() not in (None, active)
        brokers.settle(brokers.start(active))
        brokers.settle(brokers.create(f"t{round_}", active))
    assert epoch_node(brokers) == b"7"


def test_one_that_is_not_the_controller_says_so(brokers: Brokers) -> None:
    idle = brokers.controllers[2]
    tp = TopicPartition("t", 0)

    async def work() -> list[ErrorCode]:
        (made,) = await idle.create_topics([TopicToCreate("t")])
        (gone,) = await idle.delete_topics([TopicRef("t")])
        (isr,) = await idle.alter_isr(BrokerId(2), [IsrChange(tp, Epoch(0), 0, ())])
        elected, _ = await idle.elect_leaders(ElectionKind.PREFERRED, None)
        moved, _ = await idle.alter_reassignments([Reassignment(tp, None)])
        listed, _ = await idle.reassignments(None)
        return [
            made.error,
            gone.error,
            isr.error,
            elected,
            moved,
            listed,
            (await idle.shut_down(BrokerId(2), -1)).error,
            (await idle.allocate_producer_ids(BrokerId(2))).error,
            await idle.replicas_failed(BrokerId(2), [tp]),
        ]

    assert set(brokers.run(work())) == {ErrorCode.NOT_CONTROLLER}


def test_one_whose_session_is_over_stands_again_with_a_new_one(brokers: Brokers) -> None:
    async def work() -> None:
        await brokers.die(1)
        await until(lambda: brokers.active_number() in (2, 3))
        # The broker lives on: it registers, and stands.
        await brokers.register(1)
        await brokers.controllers[1].stand(brokers.sessions[1])
        assert brokers.active_number() != 1
        for number in (2, 3):
            await brokers.die(number)
        await until(lambda: brokers.active_number() == 1)

    brokers.settle(work())
    assert controller_node(brokers) == 1
    assert epoch_node(brokers) in (b"3", b"4")
    brokers.settle(brokers.create("orders", 1))


def test_where_the_node_is_taken_away_by_hand_another_controller_is_elected(brokers: Brokers) -> None:
    for expected in range(2, 6):
        before = brokers.controller.tenure
        brokers.settle(brokers.person.delete("/controller"))
        assert before.lost is not None
        assert epoch_node(brokers) == str(expected).encode()
        brokers.settle(brokers.create(f"t{expected}", 1, 2))


def test_a_controller_that_finds_another_epoch_resigns_and_stands_again(brokers: Brokers) -> None:
    brokers.run(brokers.person.set("/controller_epoch", b"7"))

    async def work() -> ErrorCode:
        (made,) = await brokers.controllers[1].create_topics([TopicToCreate("late")])
        return made.error

    assert brokers.run(work()) is ErrorCode.NOT_CONTROLLER
    brokers.settle()
    # Its node was its own still: it did not stay without a controller for that.
    assert epoch_node(brokers) == b"8"
    assert not brokers.exists("/brokers/topics/late")
    brokers.settle(brokers.create("orders", 2, 3))


def test_a_stale_controller_changes_nothing_and_nobody_obeys_it(brokers: Brokers) -> None:
    """It was replaced, and does not know: no watch was called, and its session lives."""
    brokers.settle(brokers.create("orders", 1, 2, 3))
    stale = brokers.controllers.pop(1)
    slow = brokers.all[3]
    slow.hangs_in = "metadata"

    async def work() -> None:
        # A call of the old one is on its way when the new one begins.
        await stale.create_topics([TopicToCreate("before", assignments=((0, (BrokerId(2),)),))])
        assert stale._standing is not None
        stale._standing.cancel()
        await brokers.person.delete("/controller")
        await until(lambda: brokers.active_number() in (2, 3))
        slow.hangs_in = None
        slow.go_on()
        await brokers.settled()
        assert stale.tenure.lost is None
        before = sorted(brokers.person.store._tree.nodes)
        (made,) = await stale.create_topics([TopicToCreate("stale")])
        assert made.error is ErrorCode.NOT_CONTROLLER
        assert sorted(brokers.person.store._tree.nodes) == before
        assert stale.tenure.lost is not None

    brokers.settle(work())
    epochs = {broker.controller_epoch for broker in brokers.all.values()}
    assert epochs == {2}
    assert all("stale" not in broker.cache.topics for broker in brokers.all.values())


@pytest.mark.parametrize("wrote", [0, 1])
def test_a_request_of_which_a_part_is_written_is_not_said_to_be_nobodys(
    brokers: Brokers, monkeypatch: pytest.MonkeyPatch, wrote: int
) -> None:
    """NOT_CONTROLLER has it asked again, of a controller that has completed it and would call it a repetition."""
    monkeypatch.setattr(writing, "_OPS_MAX", 9)

    class Ending(LocalSession):
        """Ends behind so many pieces of a creation that is too large for one multi."""

        pieces = 0

        async def multi(self, ops: list[Op]) -> list[OpResult]:  # type: ignore[override]
            if len(ops) > 5:
                if self.pieces == wrote:
                    await self.expire()
                    raise SessionExpired("planted")
                self.pieces += 1
            return await super().multi(ops)

    brokers.sessions[1].__class__ = Ending
    placed = tuple((number, (BrokerId(2), BrokerId(3))) for number in range(20))

    async def work() -> None:
        (made,) = await brokers.controllers[1].create_topics([TopicToCreate("large", assignments=placed)])
        assert made.error is (ErrorCode.REQUEST_TIMED_OUT if wrote else ErrorCode.NOT_CONTROLLER)

    brokers.settle(work())
    assert brokers.active_number() != 1
    # The next one has completed it, or has never heard of it.
    assert len(brokers.states("large")) == (20 if wrote else 0)


def test_one_that_stood_still_does_not_answer_for_the_tree(brokers: Brokers) -> None:
    """Its session is over by its own clock, and nothing has told it yet: what it knows of topics may be old."""

    class StoodStill(LocalSession):
        may_live = False

    stale = brokers.controllers.pop(1)

    async def work() -> None:
        assert stale._standing is not None
        stale._standing.cancel()
        await brokers.person.delete("/controller")
        await until(lambda: brokers.active_number() in (2, 3))
        await brokers.settled()
        assert stale.tenure.lost is None
        (gone,) = await stale.delete_topics([TopicRef("not-heard-of")])
        assert gone.error is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        stale._coordination.__class__ = StoodStill
        (gone,) = await stale.delete_topics([TopicRef("not-heard-of")])
        assert gone.error is ErrorCode.NOT_CONTROLLER

    brokers.settle(work())


def test_a_claim_whose_answer_is_lost_is_made_again(brokers: Brokers) -> None:
    class Lossy(LocalSession):
        lost = 0

        async def multi(self, ops: list[Op]) -> list[OpResult]:  # type: ignore[override]
            results = await super().multi(ops)
            if ops and ops[0].path == "/controller" and not self.lost:
                self.lost += 1
                raise ConnectionLoss("planted")
            return results

    async def work() -> None:
        for number in (2, 3):
            await brokers.die(number)
        store = brokers.person.store
        session = brokers.sessions[2] = Lossy(store, await store.sessions.open(6000))
        await register_broker(session, BrokerId(2), BrokerRegistration((ENDPOINT,)))
        await brokers.controllers[2].stand(session)
        await brokers.die(1)
        await until(lambda: brokers.active_number() == 2)
        assert session.lost == 1

    brokers.settle(work())
    brokers.settle(brokers.create("orders", 2))


@pytest.mark.parametrize("fault", [RuntimeError("planted"), asyncio.CancelledError()], ids=repr)
def test_a_look_that_a_fault_of_ours_ends_is_not_the_last(
    brokers: Brokers, fault: BaseException, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in (2, 3):
        brokers.settle(brokers.die(number))
    faults = [fault]

    async def planted(*given: Any) -> ControllerClaim | None:
        if faults:
            raise faults.pop()
        return await compete(*given)

    monkeypatch.setattr(controller, "compete", planted)
    brokers.settle(brokers.person.delete("/controller"))
    assert faults == []
    assert brokers.active_number() == 1


def test_a_claim_that_the_tree_does_not_allow_is_not_made_again_and_again(brokers: Brokers) -> None:
    class Locked(LocalSession):
        tries = 0

        async def multi(self, ops: list[Op]) -> list[OpResult]:  # type: ignore[override]
            self.tries += 1
            assert self.tries == 1
            raise MultiFailed(0, NotAuthorized("/controller"))

    async def work() -> None:
        for number in (1, 2, 3):
            await brokers.controllers[number].stop()
        await brokers.person.delete("/controller")
        session = await brokers.session()
        session.__class__ = Locked
        with pytest.raises(NotAuthorized):
            await compete(session, BrokerId(1), 0, lambda _: None)

    brokers.run(work())


def test_a_session_that_ends_while_an_id_is_waited_for_ends_the_wait(brokers: Brokers) -> None:
    """No watch of it is called any more, and nothing could be registered."""

    async def work() -> None:
        loop = asyncio.get_running_loop()
        session = await brokers.session()
        waiting = loop.create_task(register_broker(session, BrokerId(2), BrokerRegistration((ENDPOINT,))))
        await asyncio.sleep(1)
        began = loop.time()
        await brokers.person.store.sessions.end(session.session.id, SessionEvent.EXPIRED)
        with pytest.raises(SessionExpired):
            await waiting
        assert loop.time() - began < 1

    brokers.settle(work())


def test_a_registered_id_is_waited_for_as_long_as_its_session_can_last(brokers: Brokers) -> None:
    async def work() -> None:
        loop = asyncio.get_running_loop()
        session = await brokers.session()
        began = loop.time()
        with pytest.raises(BrokerIdInUse, match=r"registered as 2 already: give this one another broker\.id"):
            await register_broker(session, BrokerId(2), BrokerRegistration((ENDPOINT,)))
        # The longest session that an ensemble grants, which may be another program's.
        assert 40 < loop.time() - began < 50
        # A broker that starts again finds its earlier life, whose session runs out.
        waiting = asyncio.ensure_future(register_broker(session, BrokerId(2), BrokerRegistration((ENDPOINT,))))
        await asyncio.sleep(3)
        assert not waiting.done()
        await brokers.die(2)
        epoch = await waiting
        stat = await session.exists("/brokers/ids/2")
        assert stat is not None
        assert (stat.czxid, stat.ephemeral_owner) == (epoch, session.session.id)
        # Again for the same session: fine, and the same epoch.
        assert await register_broker(session, BrokerId(2), BrokerRegistration((ENDPOINT,))) == epoch

    brokers.run(work())


def test_a_longer_session_of_its_earlier_life_is_waited_for(brokers: Brokers) -> None:
    """A broker of Kafka 3.9 was killed, whose session lasts for 18 s, and this one takes its place at once with 6 s."""

    async def work() -> None:
        await brokers.die(2)
        store = brokers.person.store
        of_kafka = LocalSession(store, await store.sessions.open(18_000))
        await register_broker(of_kafka, BrokerId(2), BrokerRegistration((ENDPOINT,)))
        session = await brokers.session()
        assert session.session.timeout_ms < 10_000
        waiting = asyncio.ensure_future(register_broker(session, BrokerId(2), BrokerRegistration((ENDPOINT,))))
        await asyncio.sleep(20)
        await of_kafka.close()
        epoch = await waiting
        stat = await session.exists("/brokers/ids/2")
        assert stat is not None
        assert (stat.czxid, stat.ephemeral_owner) == (epoch, session.session.id)

    brokers.run(work())
