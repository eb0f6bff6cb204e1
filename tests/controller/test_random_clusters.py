"""Clusters to which everything happens at random: afterwards the tree is whole, and brokers know what stands in it.

A failure names its seed.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from random import Random

import pytest
from tests.controller.several import Brokers, ids
from tests.searches import seeds

from ottla.controller.interface import (
    ElectionKind,
    IsrChange,
    NewPartitions,
    Reassignment,
    TopicRef,
    TopicToCreate,
)
from ottla.coordination.errors import CoordinationError
from ottla.coordination.notifications import encode_partitions, encode_reassignments
from ottla.coordination.znodes import decode_state, decode_topic
from ottla.model import NO_BROKER, BrokerId, TopicId, TopicPartition

NAMES = "abc"
ACTIONS = 60


class Life:
    """What happens to one cluster."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.brokers = Brokers(4, seed=seed, auto_leader_rebalance=False)
        self.live = {1, 2, 3, 4}
        #: Of each partition and leader epoch who led it, by the tree.
        self.leaders: dict[tuple[TopicId, int, int], int] = {}
        self.epochs: dict[tuple[TopicId, int], int] = {}
        self.asked: list[asyncio.Future[object]] = []

    async def run(self) -> None:
        await self.brokers.begin()
        for _ in range(ACTIONS):
            action = self.random.choice(
                [self.create, self.grow, self.delete, self.kill, self.start, self.bounce, self.stop_cleanly]
                + [self.catch_up] * 3
                + [self.lag, self.move, self.call_off, self.elect, self.take_node_away, self.doubt, self.tool]
            )
            with suppress(CoordinationError):  # somebody was quicker
                await action()
            if self.random.random() < 0.6:
                await asyncio.sleep(self.random.choice([0, 0, 0.001, 0.01, 1]))
            self.check_states()
        # Nobody catches up any more: what the last death leaves is what the controller makes of it.
        await self.rest()
        await self.kill()
        await self.rest()
        self.check_as_it_is()
        await self.heal()

    # Actions. What is asked for is not waited for.

    def ask(self, work: object) -> None:
        self.asked.append(asyncio.ensure_future(work))  # type: ignore[arg-type]

    def some_topic(self) -> str:
        return self.random.choice(NAMES)

    def some_brokers(self) -> tuple[BrokerId, ...]:
        return ids(*self.random.sample([1, 2, 3, 4], self.random.choice([1, 2, 3])))

    async def create(self) -> None:
        replicas = self.some_brokers()
        placed = tuple(
            (number, replicas[number % len(replicas) :] + replicas[: number % len(replicas)]) for number in range(3)
        )
        for controller in list(self.brokers.controllers.values()):
            self.ask(controller.create_topics([TopicToCreate(self.some_topic(), assignments=placed)], timeout_ms=3000))

    async def grow(self) -> None:
        for controller in list(self.brokers.controllers.values()):
            self.ask(controller.create_partitions([NewPartitions(self.some_topic(), 5)], timeout_ms=3000))

    async def delete(self) -> None:
        if self.random.random() < 0.5:
            await self.brokers.person.create(f"/admin/delete_topics/{self.some_topic()}")
        else:
            for controller in list(self.brokers.controllers.values()):
                self.ask(controller.delete_topics([TopicRef(self.some_topic())], timeout_ms=3000))

    async def kill(self) -> None:
        if len(self.live) > 1:
            number = self.random.choice(sorted(self.live))
            self.live.discard(number)
            await self.brokers.die(number)

    async def start(self) -> None:
        dead = sorted({1, 2, 3, 4} - self.live)
        if dead:
            number = self.random.choice(dead)
            self.live.add(number)
            await self.brokers.start(number)

    async def bounce(self) -> None:
        number = self.random.choice(sorted(self.live))
        await self.brokers.die(number)
        await self.brokers.start(number)

    async def stop_cleanly(self) -> None:
        number = self.random.choice(sorted(self.live))
        for controller in list(self.brokers.controllers.values()):
            self.ask(controller.shut_down(BrokerId(number), -1))

    def partitions(self) -> list[tuple[str, int]]:
        nodes = self.brokers.person.store._tree.nodes
        return [
            (name, number)
            for name in NAMES
            if (node := nodes.get(f"/brokers/topics/{name}")) is not None
            for number in decode_topic("", node.data).replicas
            if f"/brokers/topics/{name}/partitions/{number}/state" in nodes
        ]

    async def catch_up(self, *, lag: bool = False) -> None:
        """As leaders ask: from what they know, which may be old."""
        active = self.brokers.active()
        if active is None:
            return
        nodes = self.brokers.person.store._tree.nodes
        for name, number in self.partitions():
            node = nodes[f"/brokers/topics/{name}/partitions/{number}/state"]
            state = decode_state("", node.data)
            replicas = decode_topic("", nodes[f"/brokers/topics/{name}"].data).replicas[number]
            if state.leader == NO_BROKER or (self.random.random() < 0.3 and not lag):
                continue
            isr = (state.leader,) if lag else tuple(b for b in replicas if b == state.leader or b in self.live)
            epochs = tuple(
                active.context.brokers[member].epoch if member in active.context.brokers else -1 for member in isr
            )
            change = IsrChange(TopicPartition(name, number), state.leader_epoch, node.version, isr, epochs)
            self.ask(active.alter_isr(state.leader, [change]))

    async def lag(self) -> None:
        await self.catch_up(lag=True)

    async def move(self) -> None:
        partitions = self.partitions()
        if partitions:
            change = Reassignment(TopicPartition(*self.random.choice(partitions)), self.some_brokers())
            for controller in list(self.brokers.controllers.values()):
                self.ask(controller.alter_reassignments([change], timeout_ms=3000))

    async def call_off(self) -> None:
        for controller in list(self.brokers.controllers.values()):
            for name, number in self.partitions():
                self.ask(controller.alter_reassignments([Reassignment(TopicPartition(name, number), None)]))

    async def elect(self) -> None:
        for controller in list(self.brokers.controllers.values()):
            self.ask(controller.elect_leaders(ElectionKind.PREFERRED, None, timeout_ms=3000))

    async def take_node_away(self) -> None:
        await self.brokers.person.delete("/controller")

    async def doubt(self) -> None:
        active = self.brokers.active()
        if active is not None:
            active.tenure.core.stale = True

    async def tool(self) -> None:
        person, name = self.brokers.person, self.some_topic()
        tps = [TopicPartition(*found) for found in self.partitions()]
        kind = self.random.randrange(3)
        if kind == 0:
            await person.create("/admin/preferred_replica_election", encode_partitions(tps))
        elif kind == 1:
            wanted = {tp: self.some_brokers() for tp in tps[:3]}
            await person.create("/admin/reassign_partitions", encode_reassignments(wanted))
        else:
            await person.create(f"/brokers/topics/{name}", b'{"version":1,"partitions":{"0":[1,2],"1":[2,3]}}')

    # What holds.

    def check_states(self) -> None:
        """One leader an epoch, which is in sync; epochs rise."""
        nodes = self.brokers.person.store._tree.nodes
        for name, number in self.partitions():
            topic_id = decode_topic("", nodes[f"/brokers/topics/{name}"].data).topic_id
            state = decode_state("", nodes[f"/brokers/topics/{name}/partitions/{number}/state"].data)
            assert state.isr
            assert len(set(state.isr)) == len(state.isr)
            assert state.leader == NO_BROKER or state.leader in state.isr
            if topic_id != bytes(16):
                assert self.leaders.setdefault((topic_id, number, state.leader_epoch), state.leader) == state.leader
                before = self.epochs.get((topic_id, number), -1)
                assert state.leader_epoch >= before
                self.epochs[topic_id, number] = state.leader_epoch

    async def rest(self) -> None:
        """Until all that was asked for has ended, and what failed was tried again."""
        await self.brokers.settled()
        if self.asked:
            await asyncio.wait(self.asked)
        await asyncio.sleep(12)
        await self.brokers.settled()

    def check_as_it_is(self) -> None:
        """Before anything is healed: what is dead leads nothing and is in sync with nobody, and the others know all."""
        self.check_states()
        nodes = self.brokers.person.store._tree.nodes
        context = self.brokers.controller.context
        assert set(context.brokers) == self.live
        assert not [name for name in context.deleting if name not in context.topics]
        for topic in context.served_topics():
            assignment = decode_topic("", nodes[f"/brokers/topics/{topic.name}"].data)
            assert assignment == topic.assignment
            for number, replicas in assignment.replicas.items():
                node = nodes.get(f"/brokers/topics/{topic.name}/partitions/{number}/state")
                if node is None:
                    assert not self.live & set(replicas) - context.shutting_down
                    continue
                state = decode_state("", node.data)
                if state.leader == NO_BROKER:
                    assert not self.live & set(state.isr) - context.shutting_down
                else:
                    assert set(state.isr) <= self.live
                    target = set(replicas) - set(assignment.removing.get(number, ()))
                    moves = number in assignment.adding or number in assignment.removing
                    assert not moves or not target <= set(state.isr)
                self.check_known(TopicPartition(topic.name, number), replicas, state.leader, state.leader_epoch)

    def check_known(self, tp: TopicPartition, replicas: tuple[BrokerId, ...], leader: int, epoch: int) -> None:
        for number in self.live:
            broker = self.brokers.all[number]
            seen = broker.cache.partition(*tp)
            assert seen is not None
            assert (seen.leader, seen.leader_epoch, seen.replicas) == (leader, epoch, replicas)
            # A controller that goes right behind the end of a move leaves what was moved away from where it is.
            if number in replicas:
                assert (broker.roles[tp].leader, broker.roles[tp].leader_epoch) == (leader, epoch)

    async def heal(self) -> None:
        for number in sorted({1, 2, 3, 4} - self.live):
            await self.brokers.start(number)
        self.live = {1, 2, 3, 4}
        # Whoever wanted to stop has stopped, and started again.
        for number in (1, 2, 3, 4):
            await self.brokers.die(number)
            await self.brokers.start(number)
        await self.brokers.settled()
        await asyncio.wait(self.asked)
        # Those that have seen that nobody has done it find no leader: all are live, so all can lead.
        for _ in range(3):
            await self.all_catch_up()
            await asyncio.sleep(6)  # what failed is tried again by then
            await self.brokers.settled()
        self.check_whole()

    async def all_catch_up(self) -> None:
        self.asked.clear()
        rolled, self.random = self.random, _Never()
        await self.catch_up()
        self.random = rolled
        if self.asked:
            await asyncio.wait(self.asked)
        await self.brokers.settled()

    def check_whole(self) -> None:
        self.check_states()
        brokers, nodes = self.brokers, self.brokers.person.store._tree.nodes
        assert [path for path in nodes if path.startswith("/admin/")] == ["/admin/delete_topics"]
        names = [name for name in NAMES if f"/brokers/topics/{name}" in nodes]
        for broker in brokers.all.values():
            assert sorted(broker.cache.topics) == names
            assert broker.cache.controller_id == brokers.active_number()
        logs: dict[TopicPartition, set[int]] = {}
        for name in names:
            assignment = decode_topic("", nodes[f"/brokers/topics/{name}"].data)
            assert not assignment.adding
            assert not assignment.removing
            for number, replicas in assignment.replicas.items():
                node = nodes[f"/brokers/topics/{name}/partitions/{number}/state"]
                state = decode_state("", node.data)
                assert set(state.isr) == set(replicas)
                assert state.leader in replicas
                logs[TopicPartition(name, number)] = set(replicas)
                for broker in brokers.all.values():
                    seen = broker.cache.partition(name, number)
                    assert seen is not None
                    assert (seen.leader, seen.leader_epoch, seen.isr, seen.replicas, seen.partition_epoch) == (
                        *state[1:],
                        replicas,
                        node.version,
                    )
                    assert not seen.offline_replicas
                    if broker.id in replicas:
                        role = broker.roles[TopicPartition(name, number)]
                        assert (role.leader, role.leader_epoch) == (state.leader, state.leader_epoch)
                        assert role.topic_id == assignment.topic_id


class _Never(Random):
    """Passes nothing over."""

    def random(self) -> float:
        return 1.0


@pytest.mark.parametrize("seed", seeds(8, 20))
def test_whatever_happens_the_tree_is_whole_and_brokers_know_it(seed: int) -> None:
    life = Life(seed)
    try:
        life.brokers.run(life.run())
    finally:
        life.brokers.close()
