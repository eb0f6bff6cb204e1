"""The tree is away once, at each request of a turn in its turn: whichever it was, tree and brokers agree in the end."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Sequence
from itertools import count
from typing import Any

import pytest
from tests.controller.several import Brokers, ids

from ottla.controller.interface import (
    ConfigOverrides,
    ConfigTarget,
    ConfigTargetType,
    ElectionKind,
    NewPartitions,
    Reassignment,
    TopicRef,
    TopicToCreate,
)
from ottla.coordination.errors import ConnectionLoss
from ottla.coordination.interface import Op, OpResult, Stat, Watch
from ottla.coordination.local import LocalSession
from ottla.coordination.notifications import (
    ISR_CHANGE_PREFIX,
    LOG_DIR_EVENT_PREFIX,
    encode_log_dir_failure,
    encode_partitions,
    encode_reassignments,
)
from ottla.coordination.znodes import decode_config, decode_topic, encode_config
from ottla.model import NO_BROKER, BrokerId, TopicPartition

TP = TopicPartition("orders", 0)
#: What older tools, and brokers, leave for the controller; each goes when it is seen to.
ASKED = (
    "/admin/delete_topics/",
    "/admin/reassign_partitions",
    "/admin/preferred_replica_election",
    "/isr_change_notification/",
    "/log_dir_event_notification/",
)


class Away(LocalSession):
    """Loses its connection under one of its requests: a write that was done or was not, or a read."""

    asked = -1

    def lose(self, at: int, what: str) -> None:
        self.asked, self.at, self.what = 0, at, what

    @property
    def was_lost(self) -> bool:
        return self.asked > self.at

    def _is_lost(self) -> bool:
        if self.asked < 0:
            return False
        self.asked += 1
        return self.asked - 1 == self.at

    async def multi(self, ops: Sequence[Op]) -> list[OpResult]:
        if self.what != "read" and self._is_lost():
            if self.what == "done":
                await super().multi(ops)
            raise ConnectionLoss("planted")
        return await super().multi(ops)

    def _read(self) -> None:
        if self.what == "read" and self._is_lost():
            raise ConnectionLoss("planted")

    async def get(self, path: str, watch: Watch | None = None) -> tuple[bytes, Stat]:
        self._read()
        return await super().get(path, watch)

    async def get_many(self, paths: Sequence[str]) -> list[Any]:
        self._read()
        return await super().get_many(paths)

    async def children(self, path: str, watch: Watch | None = None) -> tuple[list[str], Stat]:
        self._read()
        return await super().children(path, watch)


Change = Callable[[Brokers], Awaitable[object]]


async def create(brokers: Brokers) -> None:
    topic = TopicToCreate("late", assignments=((0, ids(2, 3)), (1, ids(3, 1))))
    await brokers.controller.create_topics([topic], timeout_ms=5_000)


async def delete(brokers: Brokers) -> None:
    await brokers.controller.delete_topics([TopicRef("orders")], timeout_ms=5_000)


async def grow(brokers: Brokers) -> None:
    await brokers.controller.create_partitions([NewPartitions("orders", 3, None)], timeout_ms=5_000)


async def shut_down(brokers: Brokers) -> None:
    await brokers.controller.shut_down(BrokerId(2), -1)


async def elect(brokers: Brokers) -> None:
    await brokers.controller.elect_leaders(ElectionKind.PREFERRED, [TopicPartition("moved", 0)], timeout_ms=5_000)


async def configure(brokers: Brokers) -> None:
    target = ConfigTarget(ConfigTargetType.TOPIC, "orders")
    await brokers.controller.alter_configs([ConfigOverrides(target, {"retention.ms": "7"})])


async def reassign(brokers: Brokers) -> None:
    """Nobody has to catch up."""
    await brokers.controller.alter_reassignments([Reassignment(TP, ids(3, 2))])


async def die(brokers: Brokers) -> None:
    await brokers.die(2)


async def bounce(brokers: Brokers) -> None:
    await brokers.die(2)
    await brokers.start(2)


async def put_into_the_tree(brokers: Brokers) -> None:
    await brokers.person.create("/config/topics/late", encode_config({"retention.ms": "7"}))
    await brokers.person.create("/brokers/topics/late", b'{"version":1,"partitions":{"0":[2,3],"1":[3,1]}}')


async def marked_in_the_tree(brokers: Brokers) -> None:
    await brokers.person.create("/admin/delete_topics/orders")


async def moved_in_the_tree(brokers: Brokers) -> None:
    await brokers.person.create("/admin/reassign_partitions", encode_reassignments({TP: ids(3, 2)}))


async def elected_in_the_tree(brokers: Brokers) -> None:
    partitions = encode_partitions([TopicPartition("moved", 0)])
    await brokers.person.create("/admin/preferred_replica_election", partitions)


async def written_by_an_older_broker(brokers: Brokers) -> None:
    await brokers.write_state("orders", 2, 0, 2)
    await brokers.person.create(ISR_CHANGE_PREFIX, encode_partitions([TP]), sequential=True)


async def failed_directory(brokers: Brokers) -> None:
    brokers.all[2].no_room.add(TP)
    await brokers.person.create(LOG_DIR_EVENT_PREFIX, encode_log_dir_failure(2), sequential=True)


async def room_again(brokers: Brokers) -> None:
    tp = TopicPartition("full", 0)
    brokers.all[3].no_room.clear()
    brokers.all[3].roles.pop(tp, None)
    await brokers.person.create(LOG_DIR_EVENT_PREFIX, encode_log_dir_failure(3), sequential=True)


#: Somebody waits for these, and may be told that they were not done.
ASKED_FOR: list[Change] = [create, delete, grow, shut_down, elect, configure, reassign]
#: Of these nobody is told anything.
FOUND: list[Change] = [
    *(die, bounce, put_into_the_tree, marked_in_the_tree, moved_in_the_tree, elected_in_the_tree),
    *(written_by_an_older_broker, failed_directory, room_again),
]


async def prepare(brokers: Brokers) -> None:
    """One topic as any other, one that its preferred leader does not lead, and one with a replica that has no room."""
    await brokers.begin()
    await brokers.create("orders", 2, 3)
    await brokers.create("moved", 2, 3)
    await brokers.controller.alter_reassignments([Reassignment(TopicPartition("moved", 0), ids(3, 2))])
    await brokers.settled()
    await brokers.create("full", 3, 2)
    await brokers.settled()
    brokers.all[3].no_room.add(TopicPartition("full", 0))
    await brokers.person.create(LOG_DIR_EVENT_PREFIX, encode_log_dir_failure(3), sequential=True)


def disagreements(brokers: Brokers) -> Iterator[str]:
    nodes = brokers.person.store._tree.nodes
    yield from (f"left in the tree: {path}" for path in nodes if path.startswith(ASKED))
    topics = {path.rpartition("/")[2] for path in nodes if path.startswith("/brokers/topics/") and path.count("/") == 3}
    live = {number: brokers.all[number] for number in brokers.controller.context.brokers}
    for number, broker in live.items():
        gone = (set(broker.cache.topics) | {tp.topic for tp in broker.roles}) - topics
        yield from (f"{number} knows of {topic}" for topic in gone)
    for name in topics:
        assigned = decode_topic("", nodes[f"/brokers/topics/{name}"].data)
        states = brokers.states(name)
        if len(states) != len(assigned.replicas) or assigned.adding or assigned.removing:
            yield f"{name} has {states} of {assigned}"
        for partition, (leader, epoch, isr) in enumerate(states):
            tp, replicas = TopicPartition(name, partition), assigned.replicas[partition]
            if leader != NO_BROKER and not live.keys() >= {leader, *isr}:
                yield f"{tp} counts on the dead: {leader} {isr}"
            for number, broker in live.items():
                seen, role = broker.cache.partition(*tp), broker.roles.get(tp)
                if seen is None or (seen.leader, seen.leader_epoch, seen.isr) != (leader, epoch, isr):
                    yield f"{number} sees {seen} of {tp}"
                if number not in replicas or tp in broker.no_room:
                    continue
                if role is None or (role.leader, role.leader_epoch) != (leader, epoch):
                    yield f"{number} has the role {role} in {tp}"
        config = nodes.get(f"/config/topics/{name}")
        overrides = {} if config is None else decode_config("", config.data)
        yield from (
            f"{n}: settings of {name}" for n, broker in live.items() if broker.cache.topic_config(name) != overrides
        )


def outcome(brokers: Brokers) -> dict[str, object]:
    """Replicas, leaders and in-sync sets."""
    prefix = "/brokers/topics/"
    nodes = brokers.person.store._tree.nodes
    return {
        path: (
            decode_topic("", node.data).replicas,
            [(leader, isr) for leader, _, isr in brokers.states(path[len(prefix) :])],
        )
        for path, node in nodes.items()
        if path.startswith(prefix) and path.count("/") == 3
    }


@pytest.mark.parametrize("what", ["read", "done", "not done"])
@pytest.mark.parametrize("change", [*ASKED_FOR, *FOUND], ids=lambda change: change.__name__)
def test_tree_and_brokers_agree_in_the_end(change: Change, what: str) -> None:
    outcomes: list[object] = []
    for at in count():
        # No other turn comes by itself.
        brokers = Brokers(auto_leader_rebalance=False)
        brokers.settle(prepare(brokers))
        session: Any = brokers.sessions[1]
        session.__class__ = Away
        session.lose(at, what)
        brokers.settle(change(brokers))
        brokers.settle(asyncio.sleep(30))
        found = list(disagreements(brokers))
        outcomes.append(outcome(brokers))
        brokers.close()
        assert not found, (at, found)
        if not session.was_lost:
            break
    if change in FOUND:
        # As without any fault, which is the last.
        assert outcomes == [outcomes[-1]] * len(outcomes)
