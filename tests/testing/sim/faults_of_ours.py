"""One broker under load in whose own code a step of a round raises, again and again: `FaultsOfOurs(seed).run()`.

python -m tests.testing.sim.faults_of_ours SEED [SEED]    prints a run's trace, or only the digests of a range
"""

from __future__ import annotations

import asyncio
import sys
from collections import Counter
from collections.abc import Coroutine
from random import Random
from typing import Any, Final

import pytest
from tests.server.planted import SITES, Plant
from tests.testing.sim.one_broker import OneBroker

from ottla.model import ErrorCode, TopicPartition
from ottla.protocol.generated.find_coordinator import FindCoordinatorRequest
from ottla.protocol.generated.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from ottla.protocol.generated.offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup
from ottla.testing.sim.history import HistoryFault
from ottla.testing.sim.producer import IdempotentProducer
from ottla.testing.sim.reader import ReadFault, read_all
from ottla.testing.sim.wire import Client, Unreachable

CONFIGS: Final[tuple[dict[str, str], ...]] = (
    {},
    {"index.interval.bytes": "0", "segment.index.bytes": "64"},
    {"flush.messages": "1", "segment.ms": "300"},
)
GROUPS: Final = 3
#: Virtual seconds after the last fault until everything must be done.
LIVENESS_S: Final = 300.0


class FaultsOfOurs:
    def __init__(self, seed: int) -> None:
        self.seed = seed
        properties = {
            "log.dirs": "/data/a,/data/b",
            "offsets.topic.num.partitions": "2",
            "offsets.topic.replication.factor": "1",
        }
        self.one = OneBroker(seed, properties)
        self.random: Random = self.one.simulation.random
        self.partitions: list[TopicPartition] = []
        self.plants = [Plant(*site, behind=behind) for site in SITES for behind in (False, True)]
        #: The newest offset that was acknowledged for each group, and the newest that was sent.
        self.committed: dict[str, int] = {}
        self.sent: dict[str, int] = {}
        #: How often the broker's directories failed of it, it gave up, or raised what was planted.
        self.met: Counter[str] = Counter()

    def run(self) -> None:
        with pytest.MonkeyPatch.context() as patch:
            # The memory's sockets have no descriptors, so that lanes are found by the tests with real ones.
            for plant in self.plants:
                plant.put_in(patch)
            with self.one as one:
                one.run(self._scenario())

    async def _scenario(self) -> None:
        one = self.one
        await one.broker.started()
        for number in range(2):
            assert await one.create(f"t{number}", 2, self.random.choice(CONFIGS)) == ErrorCode.NONE
            self.partitions += [TopicPartition(f"t{number}", partition) for partition in range(2)]
        load = [asyncio.create_task(each) for each in self._load()]
        for _ in range(self.random.randint(3, 12)):
            await self._fault()
        for plant in self.plants:
            self.met[plant.name] += plant.met
        await self._heal()
        done, pending = await asyncio.wait(load, timeout=LIVENESS_S)
        for task in done:
            task.result()
        if pending:
            raise HistoryFault(f"not done after {LIVENESS_S} s: {len(pending)} clients")
        await self._check()
        await one.restart()
        await self._check()

    def _load(self) -> list[Coroutine[Any, Any, None]]:
        clock = self.one.broker.ports.clock
        producers = [
            IdempotentProducer(
                self.one.new_client(f"p{number}"),
                clock,
                self.one.history,
                Random(self.random.getrandbits(64)),
                self.random.sample(self.partitions, self.random.randint(1, 4)),
                self.random.randint(20, 120),
                acks=self.random.choice((1, -1)),
                padding=self.random.choice((0, 300)),
                # A fault before the broker knows the producer refuses its first batch, and takes one that was on its
                # way behind it: of a producer that it does not know Kafka takes any sequence, too.
                gives_up=True,
            ).run()
            for number in range(self.random.randint(2, 4))
        ]
        readers = [self._read(self.one.new_client(f"r{number}")) for number in range(2)]
        return [*producers, *readers, *(self._commit(f"g{number}") for number in range(GROUPS))]

    async def _read(self, client: Client) -> None:
        for _ in range(30):
            tp = self.random.choice(self.partitions)
            try:
                self.one.history.see(tp, await read_all(client, tp))
            except (Unreachable, ReadFault) as fault:
                self.met[type(fault).__name__] += 1
            await asyncio.sleep(self.random.expovariate(1 / 0.05))

    async def _commit(self, group: str) -> None:
        """Commits offsets that grow, each until it is acknowledged."""
        client = self.one.new_client(group)
        for offset in range(1, 40):
            self.sent[group] = offset
            while not await self._is_committed(client, group, offset):  # noqa: ASYNC110 - a client that backs off
                await asyncio.sleep(self.random.uniform(0.01, 0.3))
            self.committed[group] = offset
            await asyncio.sleep(self.random.expovariate(1 / 0.05))

    async def _is_committed(self, client: Client, group: str, offset: int) -> bool:
        partition = OffsetCommitRequestPartition(partition_index=0, committed_offset=offset)
        topics = [OffsetCommitRequestTopic(name="t0", partitions=[partition])]
        request = OffsetCommitRequest(group_id=group, generation_id_or_member_epoch=-1, member_id="", topics=topics)
        try:
            answer = await client.ask(request, 7)
            error = answer.topics[0].partitions[0].error_code
            if error in {ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_NOT_AVAILABLE}:
                await client.ask(FindCoordinatorRequest(key=group), 3)
        except Unreachable:
            return False
        return bool(error == ErrorCode.NONE)

    # Faults

    async def _fault(self) -> None:
        random = self.random
        await asyncio.sleep(random.expovariate(1 / 0.2))
        for plant in random.sample(self.plants, random.choice((1, 1, 1, 2, 4))):
            plant.calls_left = random.choice((0, 0, 1, 3, 10))
        await asyncio.sleep(random.expovariate(1 / 0.3))
        if random.random() < 0.6:
            await self._heal()

    async def _heal(self) -> None:
        """Nothing is planted any more; a broker that has lost a directory is started again, as its operator would."""
        broker = self.one.broker
        for plant in self.plants:
            plant.calls_left = None
        if broker.gave_up is not None:
            self.met["gave up"] += 1
            await broker.ended.wait()
        elif broker.broker is not None and self._lost_something():
            self.met["directory failed"] += 1
            if self.random.random() < 0.5:
                await broker.stop()
            else:
                broker.kill()
        else:
            return
        self.one.client.close()
        await broker.started()

    def _lost_something(self) -> bool:
        """Whether a directory went offline in this life."""
        lines = self.one.simulation.trace.lines
        begun = max(number for number, line in enumerate(lines) if "begins" in line)
        return any("is offline" in line for line in lines[begun:])

    async def _check(self) -> None:
        await self.one.check(self.partitions)
        groups = [OffsetFetchRequestGroup(group_id=group, topics=None) for group in sorted(self.committed)]
        while True:
            answer = await self.one.client.ask(OffsetFetchRequest(groups=groups), 8)
            if not any(group.error_code for group in answer.groups):
                break
            await asyncio.sleep(0.1)  # it is being loaded
        for group in answer.groups:
            found = group.topics[0].partitions[0].committed_offset
            if not self.committed[group.group_id] <= found <= self.sent[group.group_id]:
                raise HistoryFault(
                    f"{group.group_id}: {self.committed[group.group_id]} was committed, {found} is found"
                )


def main(arguments: list[str]) -> None:
    seeds = [int(each) for each in arguments]
    for seed in range(seeds[0], seeds[-1] + 1):
        faults = FaultsOfOurs(seed)
        try:
            faults.run()
        finally:
            trace = faults.one.simulation.trace
            print(trace.digest() if len(seeds) > 1 else "\n".join(trace.lines))


if __name__ == "__main__":
    main(sys.argv[1:])
