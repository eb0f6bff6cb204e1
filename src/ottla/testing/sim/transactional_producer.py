"""A producer that writes in transactions to several partitions: commits, aborts, dies, is replaced, falls silent."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Sequence
from random import Random
from typing import Final

from ottla.model import TopicPartition
from ottla.testing.sim.transaction_history import FENCED_COMMIT_NO_OFFSETS, FENCED_WRITE_NOTHING, broken
from ottla.testing.sim.transactional import TransactionalClient, TransactionLost

#: What becomes of a transaction, and how often.
_FATES: Final = {"commits": 0.6, "aborts": 0.2, "dies": 0.12, "falls silent": 0.08}
#: How often a request of a producer that is replaced comes behind that.
_HAUNTS: Final = 0.5
_LATE: Final = 0.2
#: How often what is left of it commits offsets before.
_COMMITS_LATE: Final = 0.5
#: The group for which it does: nobody else commits any for that.
HAUNTED: Final = "haunted"
_PAUSE_S_MAX: Final = 5.0
#: Transactions that are written after the healing.
_LEFT_WHEN_HURRIED: Final = 3


class TransactionalProducer:
    def __init__(
        self,
        client: TransactionalClient,
        random: Random,
        partitions: Sequence[TopicPartition],
        count: int,
        *,
        pause_s: float,
        offsets_random: Random,
    ) -> None:
        """`offsets_random` decides about late offsets alone."""
        self._client = client
        self._random = random
        self._offsets_random = offsets_random
        self._partitions = list(partitions)
        self._left = count
        self._made = 0
        #: Between two transactions, on the average.
        self._pause_s = pause_s
        self._is_hurried = False
        #: What is left of a producer whose epoch is over; and whether it writes then, or commits.
        self._zombie: TransactionalClient | None = None
        self._zombie_writes = False
        self.is_done = False
        self.events: Counter[str] = Counter()

    def hurry(self) -> None:
        """What is left is little, and done at once."""
        self._is_hurried = True
        self._pause_s = 0.01
        self._left = min(self._left, _LEFT_WHEN_HURRIED)

    async def run(self) -> None:
        client = self._client
        while self._left > 0:
            try:
                if not client.is_alive:
                    await client.init()
                self._left -= 1
                await self._one()
            except TransactionLost:
                self.events["transactions lost"] += 1
                client.die()
            await asyncio.sleep(min(self._random.expovariate(1 / self._pause_s), _PAUSE_S_MAX))
        # The last one may be left open: nobody but its time-out ends it.
        self.is_done = True

    async def _one(self) -> None:
        client, random = self._client, self._random
        self._made += 1
        client.begin(str(self._made))
        for tp in random.sample(self._partitions, random.randint(1, len(self._partitions))):
            await client.write(tp, self._values(tp, random.randint(1, 3)))
            # Whatever came before it has ended by now, markers included.
            await self._haunt()
            if random.random() < 0.3:
                await asyncio.sleep(random.expovariate(1 / 0.1))
        fate = random.choices(list(_FATES), list(_FATES.values()))[0]
        self.events[f"a producer {fate}"] += 1
        if fate in ("commits", "aborts"):
            if client.versions.newer and random.random() < _LATE:
                self._zombie, self._zombie_writes = client.copy(), True
            await client.end(commits=fate == "commits")
            return
        if random.random() < _HAUNTS:
            self._zombie, self._zombie_writes = client.copy(), random.random() < 0.7
        client.die()
        if fate == "falls silent" and not self._is_hurried:
            await asyncio.sleep(client.timeout_ms * random.uniform(0.8, 1.5) / 1_000)

    def _values(self, tp: TopicPartition, count: int) -> list[bytes]:
        return [f"{self._client.id}:{self._made}:{tp.topic}{tp.partition}:{place}".encode() for place in range(count)]

    async def _haunt(self) -> None:
        """A later producer is there, or the next transaction: nothing of what the one before sends now may be taken."""
        zombie, self._zombie = self._zombie, None
        if zombie is None:
            return
        tp = self._random.choice(self._partitions)
        self.events["requests of fenced producers"] += 1
        if self._offsets_random.random() < _COMMITS_LATE:
            await self._commit_late(zombie, tp)
        try:
            if self._zombie_writes:
                self._made += 1
                await zombie.write(tp, self._values(tp, 1))
            else:
                await zombie.end(commits=True)
        except TransactionLost:
            return
        what = f"writes to {tp}" if self._zombie_writes else "commits"
        broken(FENCED_WRITE_NOTHING, f"{zombie.id}, in an epoch that is over, {what}, and is answered that it has")

    async def _commit_late(self, zombie: TransactionalClient, tp: TopicPartition) -> None:
        self.events["offsets of fenced producers"] += 1
        try:
            await zombie.commit_offsets(HAUNTED, {tp: self._offsets_random.randint(1, 1 << 20)})
        except TransactionLost:
            return
        broken(FENCED_COMMIT_NO_OFFSETS, f"{zombie.id}, in an epoch that is over, commits offsets, and is answered so")
