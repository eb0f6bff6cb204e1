"""A loop that consumes, transforms and produces, exactly once: what it makes of a record and where it goes on are one
transaction. After each fault it begins again from the position that was committed last.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from random import Random
from typing import Any, Final

from ottla.model import ErrorCode, TopicPartition
from ottla.protocol.generated.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from ottla.testing.sim.history import Row
from ottla.testing.sim.members import GroupRefusal, coordinator_of
from ottla.testing.sim.reader import CommittedRows, ReadFault, fetch_committed
from ottla.testing.sim.routing import ClusterClient
from ottla.testing.sim.transaction_history import (
    ALL_OR_NOTHING,
    NOTHING_TWICE,
    PENDING_OFFSETS_WAIT,
    SentTransaction,
    TransactionHistory,
    broken,
)
from ottla.testing.sim.transactional import TransactionalClient, TransactionLost
from ottla.testing.sim.wire import Unreachable

GROUP: Final = "loop"
#: Of one partition, for one transaction.
_BYTES_MAX: Final = 400
_DIES: Final = 0.08
_ABORTS: Final = 0.1
#: How often somebody asks for a position while its transaction is open.
_PEEKS: Final = 0.3

#: Whether a broker, as this group's coordinator, was replaced and has not heard of it.
IsReplaced = Callable[[str, int], bool]
Positions = dict[TopicPartition, int]


class TransformLoop:
    def __init__(
        self,
        client: ClusterClient,
        producer: TransactionalClient,
        history: TransactionHistory,
        random: Random,
        inputs: Sequence[TopicPartition],
        outputs: Sequence[TopicPartition],
        is_fed: Callable[[], bool],
        is_replaced: IsReplaced,
    ) -> None:
        self._client = client
        self._producer = producer
        self._history = history
        self._random = random
        self._inputs = list(inputs)
        self._outputs = list(outputs)
        #: Whether more will come.
        self._is_fed = is_fed
        self._is_replaced = is_replaced
        self._positions: Positions = {}
        self._made = 0
        #: In order.
        self._transactions: list[SentTransaction] = []
        self.events: Counter[str] = Counter()

    async def run(self) -> None:
        """Ends when everything is consumed, and no more comes."""
        producer = self._producer
        while True:
            try:
                if not producer.is_alive:
                    await producer.init()
                    self._positions = {}
                if not self._positions:
                    self._positions = await self.committed()
                if await self._turn():
                    return
                continue
            except TransactionLost:
                self.events["loop begins again"] += 1
                producer.die()
            except (Unreachable, ReadFault, GroupRefusal):
                pass  # nothing of a transaction: all requests in one are repeated
            await asyncio.sleep(self._random.uniform(0.05, 0.3))

    async def _turn(self) -> bool:
        """Whether all is done."""
        found: dict[TopicPartition, CommittedRows] = {}
        for tp in self._inputs:
            began, first = self._history.now(), self._positions[tp]
            read = found[tp] = await fetch_committed(self._client, tp, first, bytes_max=_BYTES_MAX)
            self._history.read(self._producer.id, began, tp, first, read.next_offset, read.rows)
        ahead = {tp: read.next_offset for tp, read in found.items() if read.next_offset > self._positions[tp]}
        if not any(read.rows for read in found.values()):
            self._positions.update(ahead)
            if not ahead:
                behind = any(self._positions[tp] < read.high_watermark for tp, read in found.items())
                if not (self._is_fed() or behind):
                    return True
                await asyncio.sleep(self._random.uniform(0.1, 0.4))
            return False
        await self._transform({tp: read.rows for tp, read in found.items()}, ahead)
        return False

    async def _transform(self, rows: Mapping[TopicPartition, Sequence[Row]], ahead: Positions) -> None:
        producer, random = self._producer, self._random
        self._made += 1
        self._transactions.append(producer.begin(str(self._made)))
        output = random.choice(self._outputs)
        for tp, read in rows.items():
            if read:
                await producer.write(output, [_made_of(tp, offset, self._made) for offset, _ in read])
                output = random.choice([each for each in self._outputs if each != output])
        await producer.send_offsets(GROUP, ahead)
        if random.random() < _PEEKS:
            await self._peek(ahead)
        if random.random() < _DIES:
            raise TransactionLost("the loop dies")
        commits = random.random() >= _ABORTS
        await producer.end(commits=commits)
        if commits:
            self.events["loop commits"] += 1
            self._positions.update(ahead)

    # Positions

    async def committed(self) -> Positions:
        """Raises Unreachable and GroupRefusal, also while some are of an open transaction."""
        began = self._history.now()
        positions = {tp: max(0, found) for tp, found in (await self.stored_of(GROUP)).items()}
        self._history.tell(self._producer.id, began, positions)
        return positions

    async def stored_of(self, group: str, *, require_stable: bool = True) -> Positions:
        """-1 where there is none."""
        coordinator = await coordinator_of(self._client, group)
        topic = OffsetFetchRequestTopics(
            name=self._inputs[0].topic, partition_indexes=[tp.partition for tp in self._inputs]
        )
        request = OffsetFetchRequest(
            groups=[OffsetFetchRequestGroup(group_id=group, topics=[topic])], require_stable=require_stable
        )
        answer: Any = await self._client.broker(coordinator).ask(request, 8)
        (said,) = answer.groups
        partitions = [each for topic in said.topics for each in topic.partitions]
        for code in (said.error_code, *(each.error_code for each in partitions)):
            if code:
                raise GroupRefusal(f"fetch the offsets of {group}", ErrorCode(code))
        if self._is_replaced(group, coordinator):
            # It may say what it knew when another one was elected in its place.
            raise Unreachable(f"broker {coordinator} does not know yet who coordinates the group")
        return {TopicPartition(topic.name, each.partition_index): each.committed_offset for each in partitions}

    async def _peek(self, pending: Positions) -> None:
        """What others are answered meanwhile."""
        try:
            told = await self.stored_of(GROUP, require_stable=False)
        except (Unreachable, GroupRefusal):
            return
        self.events["positions looked at"] += 1
        for tp, position in told.items():
            if tp in pending and position >= pending[tp]:
                broken(PENDING_OFFSETS_WAIT, f"{GROUP} {tp}: {position} was told, which is of an open transaction")

    # The end

    def check(self, consumed: Mapping[TopicPartition, Sequence[Row]], positions: Positions) -> None:
        """After the history's own. `consumed`: what is committed of the inputs, from their starts."""
        there = [each for each in self._transactions if self._history.is_there(each)]
        expected = dict.fromkeys(self._inputs, 0)
        for each in there:
            expected.update(each.positions)
        if positions != expected:
            what = f"the positions are {positions}, and what the loop has written says {expected}"
            broken(ALL_OR_NOTHING, what)
        made = Counter(_made_from(value) for each in there for values in each.values.values() for value in values)
        for source, times in made.items():
            if times > 1:
                broken(NOTHING_TWICE, f"{source} was consumed {times} times")
        wanted = {_source(tp, offset) for tp, rows in consumed.items() for offset, _ in rows if offset < positions[tp]}
        if wanted != made.keys():
            what = f"not made: {sorted(wanted - made.keys())[:3]}, made of nothing: {sorted(made.keys() - wanted)[:3]}"
            broken(ALL_OR_NOTHING, f"the loop has consumed to {positions}; {what}")


def _source(tp: TopicPartition, offset: int) -> str:
    return f"{tp.partition}/{offset}"


def _made_of(tp: TopicPartition, offset: int, number: int) -> bytes:
    """No two attempts are the same."""
    return f"made:{number}:{_source(tp, offset)}".encode()


def _made_from(value: bytes) -> str:
    return value.decode().rsplit(":", 1)[1]
