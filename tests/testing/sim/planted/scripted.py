"""Histories in which a bug that random schedules hardly ever meet does harm, written out over real frames.

Each is a scenario of brokers whose roles are given (`GivenRoles`), with all invariants watching: it is sound as the
broker is, and with the bug planted the named invariant breaks. What makes each of them rare is said where it stands.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import pytest
from tests.replication.fetching.fetching_world import TP, FetchingWorld
from tests.testing.sim.planted import replication, transactions

from ottla.metadata import PartitionState
from ottla.model import ErrorCode, TopicPartition
from ottla.protocol.generated.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from ottla.protocol.generated.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
)
from ottla.records.record import Record, encode_batch
from ottla.testing.sim import Simulation
from ottla.testing.sim.given_roles import CONTROLLER_EPOCH
from ottla.testing.sim.invariants import Cluster, InvariantBroken, TreeChange, TreeState, every_invariant
from ottla.testing.sim.observation import Observer

A, B, C = 1, 2, 3
#: What followers vouch for is in the system's memory.
BUFFERED: Final = {"log.flush.interval.messages": "9223372036854775807"}
#: Nobody coordinates transactions here.
UNVERIFIED: Final = {"transaction.partition.verification.enable": "false"}
_CONTROLLERS_SESSION: Final = 1
#: A fetcher without partitions keeps its connection for two seconds: what happens between is shorter.
_A_WHILE_S: Final = 0.2
#: A leader has answered by then what it kept (`replica.fetch.wait.max.ms`).
_KEPT_S: Final = 0.6
#: Sent out of the file, and more than a connection in memory takes at once.
_LARGE: Final = 60_000


class WatchedWorld(FetchingWorld):
    """With the invariants, for which what a test gives is what the tree says."""

    def __init__(self, simulation: Simulation) -> None:
        super().__init__(simulation, 3, {**BUFFERED, **UNVERIFIED})
        self.cluster = Cluster(every_invariant())
        self.observer = Observer(simulation, self.cluster)

    async def give(self, states: Sequence[PartitionState], *, to: Iterable[int] | None = None) -> None:
        for state in states:
            partition = self.cluster.partition(TopicPartition(state.topic, state.partition), bytes(state.topic_id))
            after = TreeState(
                state.leader, state.leader_epoch, state.isr, state.partition_epoch, int(state.controller_epoch)
            )
            self.cluster.tree_changed(
                TreeChange(
                    *(partition, partition.tree, after),
                    session=_CONTROLLERS_SESSION,
                    controller_session=_CONTROLLERS_SESSION,
                    controller_epoch=CONTROLLER_EPOCH,
                )
            )
        await super().give(states, to=to)

    def name(self, broker: int) -> str:
        return self.brokers[broker].name

    def cut(self, one: int, other: int, *, one_way: bool = False) -> None:
        self.simulation.world.fabric.cut(self.name(one), self.name(other), one_way=one_way)

    def heal(self, one: int, other: int) -> None:
        self.simulation.world.fabric.heal(self.name(one), self.name(other))

    async def write_alone(self, leader: int, value: bytes, offset: int, tp: TopicPartition = TP) -> None:
        """Nobody is promised anything."""
        assert await self.try_produce(value, to=leader, acks=1, tp=tp) == (ErrorCode.NONE, offset)

    async def write_in_a_transaction(self, leader: int, producer_id: int) -> None:
        data = encode_batch(
            [Record(0, 1_000, None, b"x")],
            producer_id=producer_id,
            producer_epoch=0,
            base_sequence=0,
            transactional=True,
        )
        topic = TopicProduceData(name=TP.topic, partition_data=[PartitionProduceData(index=TP.partition, records=data)])
        request = ProduceRequest(transactional_id="any", acks=1, timeout_ms=2_000, topic_data=[topic])
        answer = await self.client(leader).ask(request, 9)
        assert answer.responses[0].partition_responses[0].error_code == ErrorCode.NONE

    async def mark(self, leader: int, producer_id: int, coordinator_epoch: int) -> ErrorCode:
        """As a coordinator does whose leader epoch that is."""
        marker = WritableTxnMarker(
            producer_id=producer_id,
            producer_epoch=0,
            transaction_result=True,
            topics=[WritableTxnMarkerTopic(name=TP.topic, partition_indexes=[TP.partition])],
            coordinator_epoch=coordinator_epoch,
        )
        answer = await self.client(leader).ask(WriteTxnMarkersRequest(markers=[marker]), 1)
        return ErrorCode(answer.markers[0].topics[0].partitions[0].error_code)

    async def until_ends(self, *ends: int, tp: TopicPartition = TP) -> None:
        """The logs' ends of A, B and C."""
        wanted = dict(zip((A, B, C), ends, strict=True))
        await self.until(lambda: self.ends(tp) == wanted, tp)


async def hears_of_a_leader_that_is_over(world: WatchedWorld) -> None:
    """B was elected, and A again, before C had heard of it: what C says it has, in the first leader epoch, comes to A
    in the third. C hears of B then, and cuts its log by what B says: it may have promised nothing before.

    Rare: the controller's requests have to be late twice, and a fetch once.
    """
    await world.lead_one(A, epoch=1)
    await world.produce(b"0")
    await world.settled()
    world.cut(A, B)
    world.cut(C, A, one_way=True)
    await world.write_alone(A, b"1", 1)
    await world.until_ends(2, 1, 2)
    await world.lead_one(B, epoch=2, to=(B,))
    late = world.states[TP]
    await world.lead_one(A, epoch=3, isr=(A, C), to=(A,))
    world.heal(C, A)
    await asyncio.sleep(_A_WHILE_S)
    assert world.follower(C, TP).epoch == 1
    await world.say(C, [late])
    await world.until_ends(2, 1, 1)
    world.heal(A, B)
    await world.announce()
    await world.settled()


async def is_answered_two_leader_epochs_late(world: WatchedWorld) -> None:
    """A, which lacks what B and C have, leads for a moment: C is to cut its log, and the answer is long on its way.
    Meanwhile B leads, and all have the same; then A leads again, and C is answered what it had asked before.

    Rare: leaders have to go back and forth within two seconds, over a link that is slower than that.
    """
    await world.lead_one(A, epoch=1)
    await world.produce(b"0")
    await world.settled()
    await world.lead_one(B, epoch=2)
    await world.settled()
    world.cut(A, B)
    await world.write_alone(B, b"1", 1)
    await world.until_ends(1, 2, 2)
    world.cut(A, C, one_way=True)
    await world.lead_one(A, epoch=3, to=(A, C))
    await asyncio.sleep(_A_WHILE_S)
    world.heal(A, B)
    await world.lead_one(B, epoch=4)
    assert await world.produce(b"2") == 2
    await world.until(lambda: set(world.high_watermarks().values()) == {3})
    await world.lead_one(A, epoch=5)
    world.heal(A, C)
    await asyncio.sleep(_A_WHILE_S)
    await world.settled()
    assert world.ends() == {A: 3, B: 3, C: 3}


async def is_sent_what_took_the_place_of_it(world: WatchedWorld) -> None:
    """A answers C out of its log's file, and the link is full. Before the bytes have left, A follows B, cuts its log
    and has B's records at their place: C, which has heard of nothing, is sent those behind one that B never had.

    Rare: records have to be large, and as long as those that take their place.
    """
    other = TopicPartition("s", 0)
    await world.lead(other, A, 1, (A, B, C))
    await world.lead_one(A, epoch=1)
    await world.produce(b"0", tp=other)
    await world.produce(b"0")
    await world.settled()
    world.cut(A, B)
    # C's next request is held up until there is more to answer than the link takes. The other partition stands first.
    world.cut(C, A, one_way=True)
    await world.write_alone(A, b"x" * _LARGE, 1)
    await world.until_ends(2, 1, 2)
    for offset in (1, 2):
        await world.write_alone(A, b"o" * _LARGE, offset, tp=other)
    await world.write_alone(A, b"x" * _LARGE, 2)
    world.heal(C, A)
    world.cut(A, C, one_way=True)
    await asyncio.sleep(_A_WHILE_S)
    await world.lead_one(B, epoch=2, to=(B,))
    world.heal(A, B)
    await world.say(A, [world.states[TP]])
    await world.until_ends(1, 1, 2)
    await world.write_alone(B, b"y" * _LARGE, 1)
    await world.write_alone(B, b"y" * _LARGE, 2)
    await world.until_ends(3, 3, 2)
    world.heal(A, C)
    await asyncio.sleep(_A_WHILE_S)
    assert world.follower(C, TP).epoch == 1
    assert world.ends()[C] == 2
    await world.announce()
    await world.settled()
    await world.settled(other)


async def is_sent_what_is_of_a_leader_between(world: WatchedWorld) -> None:
    """The same, and what took the place is of a leader epoch that C knows of: nothing in the records gives it away."""
    other = TopicPartition("s", 0)
    await world.lead(other, A, 1, (A, B, C))
    await world.lead_one(A, epoch=1)
    await world.produce(b"0", tp=other)
    await world.produce(b"0")
    await world.settled()
    world.cut(A, B)
    await world.write_alone(A, b"x" * _LARGE, 1)
    await world.until_ends(2, 1, 2)
    await world.lead_one(B, epoch=2, to=(B,))
    await world.write_alone(B, b"y" * _LARGE, 1)
    await world.write_alone(B, b"y" * _LARGE, 2)
    await world.lead_one(A, epoch=3, to=(A, C))
    await asyncio.sleep(_A_WHILE_S)
    world.cut(C, A, one_way=True)
    await asyncio.sleep(_KEPT_S)
    for offset in (1, 2):
        await world.write_alone(A, b"o" * _LARGE, offset, tp=other)
    await world.write_alone(A, b"x" * _LARGE, 2)
    world.heal(C, A)
    world.cut(A, C, one_way=True)
    await asyncio.sleep(_A_WHILE_S)
    await world.lead_one(B, epoch=4, to=(B,))
    world.heal(A, B)
    await world.say(A, [world.states[TP]])
    await world.until(lambda: world.bytes_of(A, TP) == world.bytes_of(B, TP))
    world.heal(A, C)
    await asyncio.sleep(_A_WHILE_S)
    assert world.follower(C, TP).epoch == 3
    await world.announce()
    await world.settled()
    await world.settled(other)


async def is_marked_by_an_old_coordinator(world: WatchedWorld) -> None:
    """The marker of a coordinator that was replaced comes behind the next one's.

    Rare: it has to stand still between its decision and the marker, which is a millisecond.
    """
    await world.lead_one(A, epoch=1)
    await world.write_in_a_transaction(A, producer_id=7)
    assert await world.mark(A, 7, coordinator_epoch=2) == ErrorCode.NONE
    assert await world.mark(A, 7, coordinator_epoch=1) == ErrorCode.TRANSACTION_COORDINATOR_FENCED
    assert await world.mark(A, 7, coordinator_epoch=2) == ErrorCode.NONE
    await world.settled()


Script = Callable[[WatchedWorld], Coroutine[Any, Any, None]]
Plant = Callable[[pytest.MonkeyPatch], None]


@dataclass(frozen=True, slots=True)
class ScriptedBug:
    #: More than one where each by itself does no harm, since the other catches it.
    plants: tuple[Plant, ...]
    script: Script
    caught_by: str

    @property
    def name(self) -> str:
        return " and ".join(plant.__name__ for plant in self.plants)


SCRIPTED: Final = (
    ScriptedBug(
        (transactions.old_coordinators_marker_taken,), is_marked_by_an_old_coordinator, "OldCoordinatorsMarkNothing"
    ),
    ScriptedBug((replication.unfenced_fetches,), hears_of_a_leader_that_is_over, "WeakIsr"),
    ScriptedBug((replication.old_answers_taken,), is_answered_two_leader_epochs_late, "WeakIsr"),
    ScriptedBug((replication.sent_by_former_leaders,), is_sent_what_is_of_a_leader_between, "LogMatching"),
    ScriptedBug(
        (replication.later_terms_taken, replication.sent_by_former_leaders),
        is_sent_what_took_the_place_of_it,
        "LogMatching",
    ),
)


def run_script(script: Script) -> None:
    """Raises InvariantBroken, or what else the scenario finds, with the trace's end."""
    with Simulation(1) as simulation:
        world = WatchedWorld(simulation)

        async def whole() -> None:
            await world.start()
            await script(world)

        try:
            simulation.run(whole())
        except InvariantBroken:
            raise
        except Exception as error:
            raise AssertionError(f"{error!r}\n{simulation.trace.tail()}") from error
