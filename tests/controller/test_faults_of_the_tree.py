"""The tree is away in the middle of a turn: what that leaves undone is done, also where nobody asks for it again."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence

import pytest
from tests.controller.several import Brokers, ids
from tests.coordination.contract import until

from ottla.controller.interface import TopicRef, TopicToCreate
from ottla.coordination.errors import ConnectionLoss
from ottla.coordination.interface import Op, OpResult
from ottla.coordination.local import LocalSession
from ottla.coordination.notifications import (
    LOG_DIR_EVENT_PREFIX,
    LOG_DIR_EVENTS,
    decode_reassignments,
    encode_log_dir_failure,
    encode_reassignments,
)
from ottla.coordination.znodes import decode_topic, state_path
from ottla.model import BrokerId, ErrorCode, TopicPartition

ASKED = "/admin/reassign_partitions"
TP = TopicPartition("orders", 0)
STATE = state_path(*TP)


@pytest.fixture
def brokers() -> Iterator[Brokers]:
    # No other turn comes by itself.
    made = Brokers(auto_leader_rebalance=False)
    made.settle(made.begin())
    yield made
    made.close()


class Lossy(LocalSession):
    """Loses its connection under writes of a path, or below it: they were done, or they were not."""

    def lose(self, path: str, *, done: bool, spared: int = 0, times: int = 1) -> None:
        self.path, self.done, self.spared, self.times = path, done, spared, times

    async def multi(self, ops: Sequence[Op]) -> list[OpResult]:
        if not any(op.path.startswith(self.path) for op in ops) or not self.times:
            return await super().multi(ops)
        if self.spared:
            self.spared -= 1
            return await super().multi(ops)
        self.times -= 1
        if self.done:
            await super().multi(ops)
        raise ConnectionLoss("planted")


def lossy(brokers: Brokers, path: str, *, done: bool, spared: int = 0, times: int = 1) -> Lossy:
    """The session of the active controller from now on."""
    session = brokers.controller._coordination
    session.__class__ = Lossy
    assert isinstance(session, Lossy)
    session.lose(path, done=done, spared=spared, times=times)
    return session


def replicas(brokers: Brokers) -> tuple[object, object, object]:
    path = "/brokers/topics/orders"
    found = decode_topic(path, brokers.person.store._tree.nodes[path].data)
    return found.replicas[0], found.adding.get(0), found.removing.get(0)


def test_a_leader_that_was_written_is_announced(brokers: Brokers) -> None:
    """The broker that asked may be gone by now."""
    brokers.settle(brokers.create("orders", 2, 3))
    session = lossy(brokers, STATE, done=True)

    async def work() -> None:
        answer = await brokers.controller.shut_down(BrokerId(2), -1)
        assert answer.error is ErrorCode.REQUEST_TIMED_OUT

    brokers.settle(work())
    assert session.times == 0
    assert brokers.state("orders") == (3, 1, (3,))
    brokers.settle(asyncio.sleep(10))
    assert [brokers.all[number].roles[TP].leader for number in (2, 3)] == [3, 3]
    assert [brokers.seen_by(number, "orders").leader for number in (1, 2, 3)] == [3, 3, 3]


@pytest.mark.parametrize("times", [1, 2])
@pytest.mark.parametrize("is_written_since", [False, True])
def test_a_bounce_is_a_death_and_a_birth(brokers: Brokers, is_written_since: bool, times: int) -> None:
    """Also of a state that was written once more between the birth and the look that sees it."""
    brokers.settle(brokers.create("orders", 2, 3, 1))
    brokers.settle(brokers.change_isr("orders", 2, 3))

    async def work() -> None:
        held = asyncio.Event()
        turn = asyncio.ensure_future(brokers.controller.tenure.run(held.wait))
        await asyncio.sleep(0)
        change = asyncio.ensure_future(brokers.change_isr("orders", 2, 3, 1)) if is_written_since else turn
        await asyncio.sleep(0)
        await brokers.die(3)
        await brokers.start(3)
        held.set()
        await asyncio.gather(turn, change)

    session = lossy(brokers, STATE, done=False, spared=int(is_written_since), times=times)
    brokers.settle(work())
    brokers.settle(asyncio.sleep(20))
    assert session.times == 0
    assert brokers.state("orders")[2] == ((2, 1) if is_written_since else (2,))
    # It may come back.
    result = brokers.settle(brokers.change_isr("orders", 2, 3))
    assert result is not None
    assert result.error is ErrorCode.NONE
    assert brokers.all[3].roles[TP].leader == 2


def test_a_replica_that_has_room_again_is_back(brokers: Brokers) -> None:
    brokers.settle(brokers.create("orders", 3, 2))

    async def notify() -> None:
        await brokers.person.create(LOG_DIR_EVENT_PREFIX, encode_log_dir_failure(3), sequential=True)
        await brokers.settled()

    brokers.all[3].no_room.add(TP)
    brokers.run(notify())
    assert brokers.state("orders") == (2, 1, (2,))
    del brokers.all[3].roles[TP]
    brokers.all[3].no_room.clear()
    session = lossy(brokers, LOG_DIR_EVENTS, done=True)
    brokers.run(notify())
    brokers.settle(asyncio.sleep(20))
    assert session.times == 0
    assert brokers.run(brokers.person.children(LOG_DIR_EVENTS))[0] == []
    assert brokers.all[3].roles[TP].leader == 2
    assert brokers.seen_by(1, "orders").offline_replicas == ()


# The session ends in the middle of a turn, behind its last write.


class Ending(LocalSession):
    """Ends under the answer that names a path; the caller has the answer all the same."""

    ends_at = ""

    async def multi(self, ops: Sequence[Op]) -> list[OpResult]:
        results = await super().multi(ops)
        if any(op.path == self.ends_at for op in ops):
            await self.expire()
        return results


def ends_at(brokers: Brokers, path: str) -> None:
    session = brokers.controller._coordination
    session.__class__ = Ending
    assert isinstance(session, Ending)
    session.ends_at = path


def test_who_asked_for_a_topic_is_answered(brokers: Brokers) -> None:
    """It is in the tree, and no broker tells this controller any more that it was made."""
    ends_at(brokers, "/brokers/topics/orders")

    async def work() -> None:
        topic = TopicToCreate("orders", assignments=((0, ids(2, 3)),))
        async with asyncio.timeout(60):
            (made,) = await brokers.controllers[1].create_topics([topic])
        assert made.error is ErrorCode.REQUEST_TIMED_OUT

    brokers.settle(work())
    assert brokers.active_number() != 1
    assert brokers.seen_by(3, "orders").leader == 2


def test_who_asked_for_a_deletion_is_answered(brokers: Brokers) -> None:
    brokers.settle(brokers.create("orders", 2, 3))
    ends_at(brokers, "/admin/delete_topics/orders")

    async def work() -> None:
        async with asyncio.timeout(60):
            (gone,) = await brokers.controllers[1].delete_topics([TopicRef("orders")])
        assert gone.error is ErrorCode.REQUEST_TIMED_OUT

    brokers.settle(work())
    assert not brokers.exists("/brokers/topics/orders")


def test_nobody_is_announced_to_any_more(brokers: Brokers) -> None:
    """A look at brokers goes on behind its last election, and one has come: brokers would refuse what they hear of this
    controller, and it would try again for as long as its process lives."""
    brokers.settle(brokers.create("orders", 2, 3))
    tenure = brokers.controller.tenure

    async def bounce() -> None:
        held = asyncio.Event()
        turn = asyncio.ensure_future(tenure.run(held.wait))
        await asyncio.sleep(0)
        await brokers.die(3)
        await brokers.start(3)
        held.set()
        await turn

    ends_at(brokers, STATE)
    brokers.settle(bounce())
    assert tenure.lost is not None
    assert brokers.active_number() != 1
    assert tenure.announcer.brokers == {}
    assert brokers.state("orders")[2] == (2,)


def test_a_tenure_that_ends_before_it_has_begun_is_said_of_nobody(log_lines: list[str]) -> None:
    """Nor does it look after leaders, again and again."""
    brokers = Brokers(2)
    brokers.settle(brokers.begin())
    brokers.settle(brokers.create("orders", 1, 2))
    session, controller = brokers.sessions[2], brokers.controllers[2]
    session.__class__ = Ending
    assert isinstance(session, Ending)
    session.ends_at = STATE
    standing = controller._standing
    assert standing is not None

    async def work() -> None:
        await brokers.die(1)
        await until(standing.done)

    brokers.run(work())
    assert brokers.state("orders") == (2, 1, (2,))
    assert controller.tenure.lost is not None
    assert controller.tenure._rebalance is None
    assert not any("the controller is active epoch=2" in line for line in log_lines)
    brokers.close()


# What an older tool asks for.


@pytest.mark.parametrize("done", [False, True])
def test_a_move_is_begun(brokers: Brokers, done: bool) -> None:
    brokers.settle(brokers.create("orders", 1, 2))
    session = lossy(brokers, "/brokers/topics/orders", done=done)
    brokers.settle(brokers.person.create(ASKED, encode_reassignments({TP: ids(3, 1)})))
    brokers.settle(asyncio.sleep(20))
    assert session.times == 0
    # The tool takes what is not in the node any more for moved.
    assert replicas(brokers) == ((3, 1, 2), (3,), (2,))
    assert decode_reassignments(ASKED, brokers.person.store._tree.nodes[ASKED].data) == {TP: (3, 1)}
    brokers.settle(brokers.change_isr("orders", 1, 2, 3))
    assert replicas(brokers) == ((3, 1), None, None)
    assert not brokers.exists(ASKED)


@pytest.mark.parametrize("done", [False, True])
def test_what_has_moved_is_taken_from_its_node(brokers: Brokers, done: bool) -> None:
    brokers.settle(brokers.create("orders", 1, 2))
    brokers.settle(brokers.person.create(ASKED, encode_reassignments({TP: ids(3, 1)})))
    session = lossy(brokers, ASKED, done=done)
    result = brokers.settle(brokers.change_isr("orders", 1, 2, 3))
    assert result is not None
    assert result.error is ErrorCode.REQUEST_TIMED_OUT
    brokers.settle(asyncio.sleep(20))
    assert session.times == 0
    assert replicas(brokers) == ((3, 1), None, None)
    assert not brokers.exists(ASKED)
