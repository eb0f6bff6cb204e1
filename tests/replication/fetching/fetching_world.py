"""Three simulated brokers whose roles a test gives, and a client that produces to whichever leads."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterable, Mapping
from typing import Any

from ottla.config.dynamic import with_dynamic
from ottla.model import ErrorCode, TopicPartition
from ottla.protocol.generated.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from ottla.records.batch import iterate
from ottla.records.record import Record, decode_batch, encode_batch
from ottla.replication.fetching.fetchers import Fetchers
from ottla.replication.fetching.partition import FetchedPartition
from ottla.testing.sim import Simulation
from ottla.testing.sim.given_roles import GivenRoles
from ottla.testing.sim.wire import Client
from ottla.testing.sim.world import PORT

TP = TopicPartition("t", 0)
#: How long followers may take for anything, in the world's time.
SETTLED_S = 10.0


class FetchingWorld(GivenRoles):
    def __init__(self, simulation: Simulation, brokers: int, properties: Mapping[str, str] | None) -> None:
        super().__init__(simulation, brokers, properties)
        self.loop = simulation.loop
        self._clients: dict[tuple[int, str], Client] = {}

    # -- roles of the one partition that most tests have

    async def lead_one(
        self, leader: int, epoch: int, isr: Iterable[int] | None = None, to: Iterable[int] | None = None
    ) -> None:
        await self.lead(TP, leader, epoch, self.alive if isr is None else isr, to=to)

    # -- a client

    def client(self, broker: int, lane: str = "client") -> Client:
        """A connection: its requests are served one after the other."""
        found = self._clients.get((broker, lane))
        if found is None:
            network = self.simulation.world.machine("clients").network
            found = self._clients[broker, lane] = Client(network, lane, self.brokers[broker].name, PORT)
        return found

    async def try_produce(
        self, *values: bytes, to: int, acks: int = -1, tp: TopicPartition = TP, lane: str = "client"
    ) -> tuple[int, int]:
        """The error and the first offset."""
        data = encode_batch([Record(index, 1_000, None, value) for index, value in enumerate(values)])
        partition = PartitionProduceData(index=tp.partition, records=bytes(data))
        topic = TopicProduceData(name=tp.topic, partition_data=[partition])
        request = ProduceRequest(acks=acks, timeout_ms=2_000, topic_data=[topic])
        answer = await self.client(to, lane).ask(request, 9)
        found = answer.responses[0].partition_responses[0]
        return found.error_code, found.base_offset

    async def produce(self, *values: bytes, acks: int = -1, tp: TopicPartition = TP) -> int:
        """To its leader; the first offset."""
        error, offset = await self.try_produce(*values, to=self.states[tp].leader, acks=acks, tp=tp)
        assert error == ErrorCode.NONE, ErrorCode(error).name
        return offset

    def reconfigure(self, broker: int, settings: Mapping[str, str]) -> None:
        """Dynamic settings of one broker, as the controller announces them."""
        life = self.brokers[broker].broker
        assert life is not None
        assert life.services is not None
        assert life.fetchers is not None
        live = life.services.live
        live.current = with_dynamic(live.current, {}, settings)
        self.brokers[broker].process.context().run(life.fetchers.reconfigure)

    # -- followers

    def fetchers(self, broker: int) -> Fetchers:
        life = self.brokers[broker].broker
        assert life is not None
        assert life.fetchers is not None
        return life.fetchers

    def fetched(self, broker: int, tp: TopicPartition = TP) -> FetchedPartition:
        return next(one for _, one in self.fetchers(broker).partitions() if one.tp == tp)

    async def settled(self, tp: TopicPartition = TP) -> None:
        """Returns when all that are alive have the leader's log and know what is committed."""
        leader = self.states[tp].leader

        def is_level() -> bool:
            roles = [self.leader(leader, tp), *(self.follower(each, tp) for each in self.alive if each != leader)]
            return (
                len({role.log.end_offset for role in roles}) == 1
                and len({role.high_watermark for role in roles}) == 1
                and len({role.log.start_offset for role in roles}) == 1
            )

        await self.until(is_level, tp)

    async def until(self, is_so: Callable[[], bool], tp: TopicPartition = TP, within_s: float = SETTLED_S) -> None:
        ends = self.loop.time() + within_s
        while not is_so():
            assert self.loop.time() < ends, f"not within {within_s} s: {self.ends(tp)}"
            await asyncio.sleep(0.005)

    def ends(self, tp: TopicPartition = TP) -> dict[int, int]:
        return {each: self.log(each, tp).end_offset for each in self.alive}

    def high_watermarks(self, tp: TopicPartition = TP) -> dict[int, int]:
        leader = self.states[tp].leader
        return {
            each: (self.leader(each, tp) if each == leader else self.follower(each, tp)).high_watermark
            for each in self.alive
        }

    def logs(self, tp: TopicPartition = TP) -> set[bytes]:
        """Of all that are alive: one element where they are equal."""
        return {self.bytes_of(each, tp) for each in self.alive}

    def values(self, broker: int, tp: TopicPartition = TP) -> list[bytes | None]:
        data = self.bytes_of(broker, tp)
        found: list[bytes | None] = []
        for at, header in iterate(data, 0, len(data)):
            found += [record.value for record in decode_batch(data[at : at + header.size])]
        return found

    def said(self, *words: str) -> list[str]:
        return [line for line in self.simulation.trace.lines if all(word in line for word in words)]


def in_world(
    brokers: int = 3, seed: int = 1, properties: Mapping[str, str] | None = None, *, started: bool = True
) -> Callable[[Callable[[FetchingWorld], Coroutine[Any, Any, None]]], Callable[[], None]]:
    """A test that is a coroutine in such a world."""

    def decorated(scenario: Callable[[FetchingWorld], Coroutine[Any, Any, None]]) -> Callable[[], None]:
        def test() -> None:
            run_in_world(scenario, brokers, seed, properties, started=started)

        test.__name__ = scenario.__name__
        test.__doc__ = scenario.__doc__
        return test

    return decorated


def run_in_world(
    scenario: Callable[[FetchingWorld], Coroutine[Any, Any, None]],
    brokers: int = 3,
    seed: int = 1,
    properties: Mapping[str, str] | None = None,
    *,
    started: bool = True,
) -> None:
    with Simulation(seed) as simulation:
        world = FetchingWorld(simulation, brokers, properties)

        async def whole() -> None:
            if started:
                await world.start()
            await scenario(world)

        try:
            simulation.run(whole())
        except Exception as error:
            raise AssertionError(f"seed {seed}: {error!r}\n{simulation.trace.tail()}") from error
