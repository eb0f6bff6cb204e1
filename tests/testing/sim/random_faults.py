"""One broker under load whose disk fails in any operation, reads and look-ups among them: `RandomFaults(seed).run()`.

python -m tests.testing.sim.random_faults SEED [SEED]    prints a run's trace, or only the digests of a range
"""

from __future__ import annotations

import asyncio
import errno
import sys
from collections import Counter
from collections.abc import Coroutine
from random import Random
from typing import Any, Final

from tests.testing.sim.one_broker import OneBroker

from ottla.model import ErrorCode, TopicPartition
from ottla.protocol.generated.create_topics import CreatableTopic, CreateTopicsRequest
from ottla.protocol.generated.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from ottla.protocol.generated.delete_topics import DeleteTopicsRequest, DeleteTopicState
from ottla.protocol.generated.describe_log_dirs import DescribeLogDirsRequest
from ottla.protocol.generated.describe_producers import DescribeProducersRequest, TopicRequest
from ottla.protocol.generated.fetch import FetchPartition, FetchRequest, FetchTopic
from ottla.protocol.generated.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from ottla.protocol.message import Message
from ottla.testing.sim.history import HistoryFault
from ottla.testing.sim.producer import IdempotentProducer
from ottla.testing.sim.reader import ReadFault, end_offset, read_all
from ottla.testing.sim.wire import Client, Unreachable

#: Every operation of the Disk port that can fail; `*` stands for all of them at once.
OPERATIONS: Final = (
    *("open", "create", "append", "write", "read", "truncate", "allocate", "sync", "size", "names", "exists"),
    *("make_directory", "rename", "remove", "remove_tree", "sync_directory", "*", "*"),
)
FILES: Final = (
    *("*", "*.log", "*index", "*.snapshot", "*checkpoint*", "*partition.metadata", "/data/b/*", "/data/b"),
    "/data/a.coordination/*",
)
CONFIGS: Final[tuple[dict[str, str], ...]] = (
    {"index.interval.bytes": "0", "segment.index.bytes": "64"},
    {"index.interval.bytes": "100", "segment.ms": "300"},
)
#: Virtual seconds after the last fault until everything must be done.
LIVENESS_S: Final = 300.0


class RandomFaults:
    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.one = OneBroker(
            seed,
            {
                "log.dirs": "/data/a,/data/b",
                "log.flush.offset.checkpoint.interval.ms": "200",
                "replica.high.watermark.checkpoint.interval.ms": "300",
                "log.retention.check.interval.ms": "400",
                "log.initial.task.delay.ms": "0",
                "log.segment.delete.delay.ms": "0",
            },
        )
        self.random: Random = self.one.simulation.random
        self.partitions: list[TopicPartition] = []
        #: Whether a sync may have failed since the last power cut: the system then shows pages that no later sync of
        #: them will bring to the medium, so the machine is to be started again and not the process alone.
        self._sync_failed = False
        #: How often the broker was refused by its disk, gave up, and went on.
        self.met: Counter[str] = Counter()

    def run(self) -> None:
        with self.one as one:
            one.run(self._scenario())

    async def _scenario(self) -> None:
        one = self.one
        await one.broker.started()
        for number in range(2):
            assert await one.create(f"t{number}", 2, self.random.choice(CONFIGS)) == ErrorCode.NONE
            self.partitions += [TopicPartition(f"t{number}", partition) for partition in range(2)]
        load = [asyncio.create_task(each) for each in self._load()]
        pokes = asyncio.create_task(self._poke())
        for _ in range(self.random.randint(2, 8)):
            await self._fault()
        await self._heal()
        if pokes.done():
            pokes.result()
        pokes.cancel()
        done, pending = await asyncio.wait(load, timeout=LIVENESS_S)
        for task in done:
            task.result()
        if pending:
            raise HistoryFault(f"not done after {LIVENESS_S} s: {len(pending)} clients")
        await one.check(self.partitions)
        await one.restart()
        await one.check(self.partitions)
        if failed := one.said("a request failed"):
            raise HistoryFault(f"a fault of the disk escaped a handler: {failed[0]}")

    def _load(self) -> list[Coroutine[Any, Any, None]]:
        clock = self.one.broker.ports.clock
        return [
            IdempotentProducer(
                self.one.new_client(f"p{number}"),
                clock,
                self.one.history,
                Random(self.random.getrandbits(64)),
                self.random.sample(self.partitions, self.random.randint(1, 4)),
                self.random.randint(20, 120),
                acks=self.random.choice((1, -1)),
                padding=self.random.choice((0, 300)),
            ).run()
            for number in range(self.random.randint(2, 4))
        ]

    # Faults

    async def _fault(self) -> None:
        disk, random = self.one.disk, self.random
        await asyncio.sleep(random.expovariate(1 / 0.2))
        for _ in range(random.randint(1, 3)):
            operation = random.choice(OPERATIONS)
            self._sync_failed |= operation in {"sync", "*"}
            disk.fail(
                operation,
                random.choice(FILES),
                random.choice((errno.ENOSPC, errno.EIO)),
                after=random.choice((0, 0, 1, 3, 10, 30)),
                times=random.choice((1, 1, 2, 5, None)),
            )
        await asyncio.sleep(random.expovariate(1 / 0.3))
        if random.random() < 0.6:
            await self._heal()

    async def _heal(self) -> None:
        """Nothing fails any more; a broker that has lost a directory is started again, as its operator would."""
        one = self.one
        broker = one.broker
        if broker.gave_up is None and self.random.random() < 0.15:
            self.met["stopped with faults"] += 1
            await broker.stop()
        one.disk.stop_failing()
        if broker.gave_up is not None:
            self.met["gave up"] += 1
            await broker.ended.wait()
        elif broker.broker is None:
            pass
        elif self._lost_something() or self.random.random() < 0.3:
            self.met["restarted"] += 1
            if self.random.random() < 0.5:
                await broker.stop()
            else:
                broker.kill()
        else:
            return
        if self._sync_failed or self.random.random() < 0.3:
            broker.lose_power()
            self._sync_failed = False
        one.client.close()
        await broker.started()

    def _lost_something(self) -> bool:
        """Whether a directory or a partition went offline in this life."""
        lines = self.one.simulation.trace.lines
        begun = max(number for number, line in enumerate(lines) if "begins" in line)
        return any("is offline" in line for line in lines[begun:])

    # Requests that look into logs beside Produce

    async def _poke(self) -> None:
        client = self.one.new_client("poking")
        while True:
            tp = self.random.choice(self.partitions)
            try:
                await self._poke_one(client, tp)
            except (Unreachable, ReadFault) as fault:
                self.met[type(fault).__name__] += 1
            await asyncio.sleep(self.random.expovariate(1 / 0.05))

    async def _poke_one(self, client: Client, tp: TopicPartition) -> None:
        kind = self.random.randrange(9)
        if kind == 0:
            await read_all(client, tp)
        elif kind == 1:
            await end_offset(client, tp, self.random.choice((-3, 0, self.one.broker.ports.clock.wall_ms() - 200)))
        else:
            message, version = _question(kind, tp, self.random)
            await client.ask(message, version)


def _question(kind: int, tp: TopicPartition, random: Random) -> tuple[Message, int]:
    if kind == 2:
        topic = OffsetForLeaderTopic(
            topic=tp.topic, partitions=[OffsetForLeaderPartition(partition=tp.partition, leader_epoch=0)]
        )
        return OffsetForLeaderEpochRequest(topics=[topic]), 4
    if kind == 3:
        return DescribeProducersRequest(topics=[TopicRequest(name=tp.topic, partition_indexes=[tp.partition])]), 0
    if kind == 4:
        return DescribeLogDirsRequest(topics=None), 4
    if kind in (6, 7):
        # Topics that come and go, so that the tree and the folders change.
        name = f"x{random.randrange(3)}"
        if kind == 6:
            created = CreatableTopic(name=name, num_partitions=2, replication_factor=1)
            return CreateTopicsRequest(topics=[created], timeout_ms=1000), 7
        return DeleteTopicsRequest(topics=[DeleteTopicState(name=name)], timeout_ms=1000), 6
    if kind == 5:
        asked = FetchPartition(partition=tp.partition, fetch_offset=0, partition_max_bytes=10_000, last_fetched_epoch=0)
        topics = [FetchTopic(topic=tp.topic, partitions=[asked])]
        return FetchRequest(max_wait_ms=50, min_bytes=1, max_bytes=10_000, isolation_level=1, topics=topics), 12
    partition = DeleteRecordsPartition(partition_index=tp.partition, offset=0)
    return DeleteRecordsRequest(topics=[DeleteRecordsTopic(name=tp.topic, partitions=[partition])], timeout_ms=1000), 2


def main(arguments: list[str]) -> None:
    seeds = [int(each) for each in arguments]
    for seed in range(seeds[0], seeds[-1] + 1):
        faults = RandomFaults(seed)
        try:
            faults.run()
        finally:
            if len(seeds) == 1:
                print(faults.one.simulation.trace.text())
        print(seed, faults.one.simulation.trace.digest(), dict(faults.met))


if __name__ == "__main__":
    main(sys.argv[1:])
