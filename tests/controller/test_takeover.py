"""A new controller goes on from the tree alone, and quickly."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

import pytest
from tests.controller.several import Brokers, ids
from tests.coordination.contract import until

from ottla.controller.interface import Reassignment, TopicRef, TopicToCreate
from ottla.controller.loading import READ_AT_ONCE
from ottla.coordination.interface import Op, OpResult, Stat, Watch
from ottla.coordination.local import LocalSession
from ottla.coordination.notifications import encode_partitions
from ottla.model import ErrorCode, TopicPartition

PARTITIONS = 2_000


class Counted(LocalSession):
    """Counts what goes to the tree."""

    counts: Counter[str]

    async def get(self, path: str, watch: Watch | None = None) -> tuple[bytes, Stat]:
        self.counts["get"] += 1
        return await super().get(path, watch)

    async def get_many(self, paths: Sequence[str]) -> list[Any]:
        self.counts["get_many"] += 1
        return await super().get_many(paths)

    async def children(self, path: str, watch: Watch | None = None) -> tuple[list[str], Stat]:
        self.counts["children"] += 1
        return await super().children(path, watch)

    async def exists(self, path: str, watch: Watch | None = None) -> Stat | None:
        self.counts["exists"] += 1
        return await super().exists(path, watch)

    async def multi(self, ops: Sequence[Op]) -> list[OpResult]:
        self.counts["multi"] += 1
        return await super().multi(ops)


@pytest.fixture
def brokers() -> Iterator[Brokers]:
    made = Brokers()
    made.settle(made.begin())
    yield made
    made.close()


def test_two_thousand_partitions_are_led_anew_with_a_few_calls(brokers: Brokers) -> None:
    names = [f"t{number}" for number in range(20)]
    for name in names:
        brokers.settle(brokers.create_all(name, [(1, 2, 3), (2, 3, 1), (3, 1, 2), (1, 3, 2)] * (PARTITIONS // 80)))
    for number in (2, 3):
        session = brokers.sessions[number]
        session.__class__ = Counted
        assert isinstance(session, Counted)
        session.counts = Counter()
    calls = {number: len(brokers.all[number].calls) for number in (2, 3)}
    brokers.settle(brokers.die(1))
    for name in names:
        states = brokers.states(name)
        assert len(states) == PARTITIONS // 20
        assert all(leader in (2, 3) and 1 not in isr for leader, _, isr in states)
        assert all(brokers.seen_by(3, name, number).leader == state[0] for number, state in enumerate(states))
    winner = brokers.sessions[brokers.active_number() or 0]
    assert isinstance(winner, Counted)
    # States some hundreds at a time, topics and brokers with their watches, the elections in one multi: not one by one.
    assert winner.counts["get_many"] <= 12 + PARTITIONS // READ_AT_ONCE
    assert winner.counts["get"] <= 20 + 10
    assert winner.counts["children"] + winner.counts["exists"] <= 25
    assert winner.counts["multi"] <= 4
    # Brokers hear of all of it at once.
    for number in (2, 3):
        assert len(brokers.all[number].calls) - calls[number] <= 6


def test_a_half_done_deletion_goes_on(brokers: Brokers) -> None:
    brokers.settle(brokers.create("orders", 2, 3))
    brokers.all[3].hangs_in = "stop_replicas"

    async def work() -> None:
        deleting = asyncio.ensure_future(brokers.controllers[1].delete_topics([TopicRef("orders")]))
        await until(lambda: "stop_replicas" in brokers.all[3].calls)
        await brokers.die(1)
        (deleted,) = await deleting
        assert deleted.error is ErrorCode.REQUEST_TIMED_OUT
        brokers.all[3].hangs_in = None
        brokers.all[3].go_on()

    brokers.settle(work())
    assert not brokers.exists("/brokers/topics/orders")
    assert not brokers.exists("/admin/delete_topics/orders")
    assert not brokers.all[2].roles
    assert not brokers.all[3].roles


def test_a_deletion_that_waits_for_a_broker_outlives_its_controller(brokers: Brokers) -> None:
    brokers.settle(brokers.create("orders", 2, 3))
    brokers.settle(brokers.die(3))
    (deleted,) = brokers.settle(brokers.controller.delete_topics([TopicRef("orders")]))  # type: ignore[misc]
    # Whoever asked does not wait for the dead.
    assert deleted.error is ErrorCode.NONE
    assert "orders" not in brokers.all[2].cache.topics
    assert not brokers.all[2].roles
    # The name is taken until the broker is back.
    (made,) = brokers.settle(brokers.controller.create_topics([TopicToCreate("orders", 1, 1)]))  # type: ignore[misc]
    assert made.error is ErrorCode.TOPIC_ALREADY_EXISTS
    brokers.settle(brokers.die(1))
    assert brokers.exists("/admin/delete_topics/orders")
    brokers.settle(brokers.start(3))
    assert not brokers.exists("/brokers/topics/orders")
    assert not brokers.exists("/admin/delete_topics/orders")
    assert not brokers.all[3].roles
    brokers.settle(brokers.create("orders", 2, 3))


def test_a_broker_that_could_not_delete_its_logs_does_so_when_it_starts_again(brokers: Brokers) -> None:
    brokers.settle(brokers.create("orders", 2, 3))
    brokers.all[3].broken.add(TopicPartition("orders", 0))
    (deleted,) = brokers.settle(brokers.controller.delete_topics([TopicRef("orders")]))  # type: ignore[misc]
    assert deleted.error is ErrorCode.NONE
    assert brokers.exists("/admin/delete_topics/orders")
    brokers.settle(brokers.die(3))
    assert brokers.exists("/admin/delete_topics/orders")
    # With the directory well again, under the same controller.
    brokers.settle(brokers.start(3))
    assert not brokers.exists("/admin/delete_topics/orders")
    assert not brokers.exists("/brokers/topics/orders")


def test_a_replica_that_was_moved_away_is_not_the_whole_of_a_deletion(brokers: Brokers) -> None:
    brokers.settle(brokers.create_all("orders", [(2, 3), (3, 1)]))
    moved, held = brokers.all[3], TopicPartition("orders", 1)
    moved.hangs_in = "stop_replicas"

    async def work() -> None:
        await brokers.controller.alter_reassignments([Reassignment(TopicPartition("orders", 0), ids(2))])
        await until(lambda: "stop_replicas" in moved.calls)
        deleting = asyncio.ensure_future(brokers.controller.delete_topics([TopicRef("orders")]))
        await asyncio.sleep(1)
        moved.go_on()
        moved._hanging = asyncio.Event()
        # The first call was about the partition that had moved. The other one's log is there still.
        await until(lambda: moved.calls.count("stop_replicas") == 2)
        await asyncio.sleep(1)
        assert held in moved.roles
        assert brokers.exists("/brokers/topics/orders")
        assert not deleting.done()
        moved.go_on()
        assert (await deleting)[0].error is ErrorCode.NONE

    brokers.settle(work())
    assert not brokers.exists("/brokers/topics/orders")
    assert not moved.roles


def test_a_topic_of_which_the_last_controller_wrote_a_part_is_completed(brokers: Brokers) -> None:
    async def work() -> None:
        held = asyncio.Event()
        turn = asyncio.ensure_future(brokers.controllers[1].tenure.run(held.wait))
        await asyncio.sleep(0)
        data = b'{"partitions":{"0":[2,3],"1":[3,2]},"adding_replicas":{},"removing_replicas":{},"version":3}'
        await brokers.person.create("/brokers/topics/orders", data)
        await brokers.person.create("/brokers/topics/orders/partitions")
        await brokers.person.create("/brokers/topics/orders/partitions/0")
        await brokers.die(1)
        held.set()
        await asyncio.wait([turn])

    brokers.settle(work())
    assert brokers.states("orders") == [(2, 0, (2, 3)), (3, 0, (3, 2))]
    assert brokers.seen_by(3, "orders", 1).leader == 3


def test_a_half_done_election_goes_on(brokers: Brokers) -> None:
    brokers.settle(brokers.create_all("orders", [(3, 2)] * 4))
    brokers.settle(brokers.die(3))
    brokers.settle(brokers.start(3))
    for partition in range(4):
        brokers.settle(brokers.change_isr("orders", 2, 3, partition=partition))
    # The controller goes while its elections are asked for, and before it has looked.

    async def work() -> None:
        held = asyncio.Event()
        turn = asyncio.ensure_future(brokers.controller.tenure.run(held.wait))
        await asyncio.sleep(0)
        node = encode_partitions(TopicPartition("orders", number) for number in range(4))
        await brokers.person.create("/admin/preferred_replica_election", node)
        await brokers.write_state("orders", 3, 2, 2, 3, partition=1)
        await brokers.person.delete("/controller")
        held.set()
        await asyncio.wait([turn])

    brokers.settle(work())
    assert [state[0] for state in brokers.states("orders")] == [3, 3, 3, 3]
    assert not brokers.exists("/admin/preferred_replica_election")


def test_a_controller_that_cannot_read_the_tree_at_first_tries_again(brokers: Brokers) -> None:
    brokers.settle(brokers.create("orders", 1, 2))

    async def work() -> None:
        await brokers.person.set("/controller_epoch", b"one")
        await brokers.die(1)
        await asyncio.sleep(5)
        assert brokers.active() is None
        await brokers.person.set("/controller_epoch", b"1")
        await until(lambda: brokers.active() is not None and brokers.controller.active)

    brokers.settle(work())
    assert brokers.state("orders") == (2, 1, (2,))


def test_brokers_that_are_slow_hold_no_new_controller_up(brokers: Brokers) -> None:
    brokers.settle(brokers.create_all("orders", [(1, 2), (1, 3)]))
    brokers.all[3].hangs_in = "leader_and_isr"

    async def work() -> None:
        await brokers.die(1)
        await until(lambda: 2 in brokers.all[2].cache.brokers and brokers.seen_by(2, "orders").leader == 2)
        made = brokers.controller.create_topics([TopicToCreate("more", assignments=((0, ids(2)),))], timeout_ms=5000)
        if brokers.active_number() == 2:
            assert (await made)[0].error is ErrorCode.NONE
        else:
            made.close()
        brokers.all[3].hangs_in = None
        brokers.all[3].go_on()

    brokers.settle(work())
    assert brokers.seen_by(3, "orders", 1).leader == 3


@pytest.mark.parametrize("bounced", [2, 3], ids=["leader", "follower"])
def test_a_bounce_that_no_controller_saw_is_a_death_and_a_birth(brokers: Brokers, bounced: int) -> None:
    """It may have lost its disk meanwhile: an empty machine under an old number, while the controller was away too."""
    brokers.settle(brokers.create("t", 2, 1, 3))
    assert brokers.state("t") == (2, 0, (2, 1, 3))

    async def unseen() -> None:
        for controller in brokers.controllers.values():
            await controller.stop()
        await brokers.die(bounced)
        await brokers.register(bounced)
        brokers.controllers = {1: brokers.new_controller(1)}
        await brokers.controllers[1].stand()

    brokers.settle(unseen())
    others = tuple(broker for broker in (2, 1, 3) if broker != bounced)
    assert brokers.state("t") == (others[0], 1, others)


def test_where_every_member_bounced_all_stay(brokers: Brokers) -> None:
    """As after a power cut of all: nobody knows more than another."""
    brokers.settle(brokers.create("t", 2, 1, 3))

    async def unseen() -> None:
        for controller in brokers.controllers.values():
            await controller.stop()
        for number in (1, 2, 3):
            await brokers.die(number)
            await brokers.register(number)
        brokers.controllers = {1: brokers.new_controller(1)}
        await brokers.controllers[1].stand()

    brokers.settle(unseen())
    leader, _, isr = brokers.state("t")
    assert (leader, isr) == (2, (2, 1, 3))


def test_who_joined_after_its_registration_is_no_bounce(brokers: Brokers) -> None:
    brokers.settle(brokers.create("t", 2, 1, 3))
    brokers.settle(brokers.die(3))
    brokers.settle(brokers.start(3))
    assert brokers.settle(brokers.change_isr("t", 2, 1, 3)).error is ErrorCode.NONE
    before = brokers.state("t")
    brokers.settle(brokers.die(brokers.active_number() or 0))
    leader, epoch, isr = brokers.state("t")
    gone = ({1, 2, 3} - {*isr}).pop() if len(isr) < 3 else None
    assert 3 in isr or gone == 3
    assert len(isr) == 2, (before, leader, epoch, isr)
