"""A shard of the transaction coordinator with everything around it in memory, in a time that the test moves."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator

from tests.groups.journal import MemoryJournal
from tests.groups.world import WALL_START_MS, Answer

from ottla.config.broker import Config
from ottla.coordinators.caller import Now
from ottla.coordinators.loading import load
from ottla.model import ErrorCode, TopicPartition
from ottla.steps import Steps, at_once
from ottla.transactions.asked import EndAsked, ProducerAnswer, ProducerInit, ProducerPartitions
from ottla.transactions.markers import TransactionEnd
from ottla.transactions.shard import ShardContext, TransactionShard
from ottla.transactions.state import Counts
from ottla.transactions.states import TransactionStatus
from ottla.transactions.transaction import EPOCH_A_TRANSACTION, Transaction

ID = "orders"
A, B, C = TopicPartition("a", 0), TopicPartition("a", 1), TopicPartition("b", 0)
TIMEOUT_MS = 60_000


class Clock:
    def __init__(self) -> None:
        self.ms = 0
        #: How far the wall clock was set.
        self.set_by_ms = 0

    def wall_ms(self) -> int:
        return WALL_START_MS + self.ms + self.set_by_ms

    def monotonic_ms(self) -> int:
        return self.ms


class Sent:
    """Stands for the lines of markers: what was sent waits until the test has it written."""

    def __init__(self, now: Callable[[], Now]) -> None:
        self._now = now
        self.waiting: list[tuple[object, TransactionEnd, Callable[[Now], None]]] = []
        self.ends: list[TransactionEnd] = []

    def send(self, owner: object, end: TransactionEnd, done: Callable[[Now], None]) -> None:
        self.ends.append(end)
        self.waiting.append((owner, end, done))

    def forget(self, owner: object) -> None:
        self.waiting = [each for each in self.waiting if each[0] is not owner]

    def written(self) -> None:
        waiting, self.waiting = self.waiting, []
        for _, _, done in waiting:
            done(self._now())


class World:
    def __init__(self, journal: MemoryJournal | None = None, **properties: str) -> None:
        named = {name.replace("_", "."): value for name, value in properties.items()}
        self.config = Config.parse(named)
        self.clock = Clock()
        self.journal = journal or MemoryJournal()
        self.sent = Sent(self.now)
        self.counts = Counts()
        self.version = EPOCH_A_TRANSACTION
        #: Producer ids that are given at once; an error is given in the place of one.
        self.fresh: Iterator[int | ErrorCode] = iter(range(1_000, 9_000))
        #: While set, callers that want one wait here.
        self.holds_ids = False
        self.wanting: list[Callable[[int | ErrorCode], None]] = []
        #: While set, long writes wait in `long`.
        self.holds_long = False
        self.long: list[Steps[None]] = []
        #: While set, work that others do not wait for waits in `left_beside`.
        self.holds_beside = False
        self.left_beside: list[Steps[None]] = []
        self.shard = self.load()

    def one_by_one(self, steps: Steps[None]) -> None:
        if self.holds_long:
            self.long.append(steps)
        else:
            at_once(steps)

    def beside(self, steps: Steps[None]) -> None:
        if self.holds_beside:
            self.left_beside.append(steps)
        else:
            at_once(steps)

    def now(self) -> Now:
        return Now(self.clock.wall_ms(), self.clock.monotonic_ms())

    def load(self) -> TransactionShard:
        """Another coordinator of the same partition: with what the journal has, and nothing else."""
        shared = ShardContext(
            *(self.counts, self._fresh_id, self.sent, lambda: self.version),  # type: ignore[arg-type]
            beside=self.beside,
            one_by_one=self.one_by_one,
        )
        shard = TransactionShard(0, self.journal, lambda: self.config.transactions, shared)
        asyncio.run(load(self.journal, shard, self.clock))
        self.shard = shard
        return shard

    def move_over(self) -> TransactionShard:
        """The partition is given up and led again."""
        self.shard.unload(ErrorCode.NOT_COORDINATOR, self.now())
        return self.load()

    def _fresh_id(self, call: Callable[[int | ErrorCode], None]) -> None:
        if self.holds_ids:
            self.wanting.append(call)
        else:
            call(next(self.fresh))

    def advance(self, ms: int) -> None:
        """Moves the time on, and does what is due on the way."""
        ends_ms = self.clock.ms + ms
        while (deadline_ms := self.shard.timers.next_deadline_ms()) is not None and deadline_ms <= ends_ms:
            self.clock.ms = max(self.clock.ms, deadline_ms)
            self.shard.timers.expire(self.now())
        self.clock.ms = ends_ms

    # Requests.

    def init(
        self, producer: tuple[int, int] = (-1, -1), name: str = ID, timeout_ms: int = TIMEOUT_MS
    ) -> ProducerAnswer:
        answer = self.asks_init(producer, name, timeout_ms)
        return answer.value

    def asks_init(
        self, producer: tuple[int, int] = (-1, -1), name: str = ID, timeout_ms: int = TIMEOUT_MS
    ) -> Answer[ProducerAnswer]:
        answer = Answer[ProducerAnswer]()
        self.shard.init_producer_id(self.now(), ProducerInit(name, timeout_ms, *producer), answer)
        return answer

    def add(
        self, producer: tuple[int, int], *partitions: TopicPartition, version: int = 0, name: str = ID
    ) -> ErrorCode:
        return self.asks_add(producer, *partitions, version=version, name=name).value

    def asks_add(
        self, producer: tuple[int, int], *partitions: TopicPartition, version: int = 0, name: str = ID
    ) -> Answer[ErrorCode]:
        answer = Answer[ErrorCode]()
        asked = ProducerPartitions(name, *producer, frozenset(partitions))
        self.shard.add_partitions(self.now(), asked, version, answer)
        return answer

    def verify(self, producer: tuple[int, int], *partitions: TopicPartition, name: str = ID) -> list[ErrorCode]:
        found = self.shard.verify_partitions(ProducerPartitions(name, *producer, frozenset(partitions)))
        return [found[partition] for partition in partitions]

    def end(
        self, producer: tuple[int, int], *, commit: bool = True, version: int = 0, name: str = ID
    ) -> ProducerAnswer:
        return self.asks_end(producer, commit=commit, version=version, name=name).value

    def asks_end(
        self, producer: tuple[int, int], *, commit: bool = True, version: int = 0, name: str = ID
    ) -> Answer[ProducerAnswer]:
        answer = Answer[ProducerAnswer]()
        self.shard.end(self.now(), EndAsked(name, *producer, commit, version), answer)
        return answer

    def transaction(self, name: str = ID) -> Transaction:
        found = self.shard.committed(name)
        assert found is not None
        return found

    @property
    def status(self) -> TransactionStatus:
        return self.transaction().status


def producer_of(answer: ProducerAnswer) -> tuple[int, int]:
    assert answer.error is ErrorCode.NONE, answer
    return answer.producer_id, answer.producer_epoch


def ongoing(world: World, version: int = 0) -> tuple[int, int]:
    producer = producer_of(world.init())
    assert world.add(producer, A, C, version=version) is ErrorCode.NONE
    return producer
