"""Whether one order explains all that clients did and saw: the check for cycles, in the way of Elle (Kingsbury and
Alvaro, 2020).

Its nodes are transactions that are committed, and reads. What comes before what:

    wrote       a transaction            ─▶ a read that was shown a record of it, or a position
    decided     a transaction            ─▶ a read that went on behind a record of it: until its end is known none may
    missed      a read                   ─▶ a transaction: it was not shown a record that it read through, or was told
                                            an older position
    then        what a client did        ─▶ what the same client did next
    real time   what was answered        ─▶ what was asked later than that

A cycle breaks NoCycle. The shortest ones are a read that was shown a record of a transaction that began later, one that
passed over a record of a transaction that was committed, and one that was told a position after a later one was
answered. Longer ones lead through several clients: what one of them saw is to be seen by whoever hears of it.

Elle has writes of two transactions in an order as well. Not so here: Kafka lets them interleave, and two partitions may
have them in two orders.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Final

from ottla.model import TopicPartition
from ottla.testing.sim.cycles import Graph

WROTE: Final = "wrote"
DECIDED: Final = "decided"
MISSED: Final = "missed"
THEN: Final = "then"
REAL_TIME: Final = "real time"


@dataclass(slots=True, eq=False)
class Operation:
    """What a client did, between two moments of one count."""

    name: str
    process: str
    began: int
    #: None: it was never answered.
    ended: int | None = None
    #: Of a transaction: what it wrote, and where its group goes on once it is committed.
    written: dict[TopicPartition, list[int]] = field(default_factory=dict)
    positions: Mapping[TopicPartition, int] = field(default_factory=dict)
    #: Of a read: where it began, where to read on, and the offsets that it was shown.
    through: dict[TopicPartition, tuple[int, int, frozenset[int]]] = field(default_factory=dict)
    #: Of a read: the group's positions, as it was answered.
    answered: Mapping[TopicPartition, int] = field(default_factory=dict)

    def __str__(self) -> str:
        return self.name


def cycle_in(transactions: Sequence[Operation], reads: Sequence[Operation]) -> str | None:
    """A short cycle in words; None where there is none. `transactions`: the committed ones and no other."""
    graph = Graph[Operation]()
    everything = sorted([*transactions, *reads], key=lambda each: each.began)
    _add_records(graph, transactions, reads)
    _add_positions(graph, transactions, reads)
    for before, after in _one_behind_the_other(everything):
        graph.add(before, THEN, after)
    for before, after in _real_time(everything):
        graph.add(before, REAL_TIME, after)
    path = graph.cycle()
    return ", ".join(f"{edge.before} -{edge.why}-> {edge.after}" for edge in path) if path else None


def _real_time(operations: Sequence[Operation]) -> Iterator[tuple[Operation, Operation]]:
    """Those pairs from which all others follow; `operations` in the order of their beginnings."""
    ends = deque(sorted((each.ended, place) for place, each in enumerate(operations) if each.ended is not None))
    #: When each ended. What ended before one of these began comes before it.
    latest: list[tuple[int, Operation]] = []
    for each in operations:
        while ends and ends[0][0] < each.began:
            ended, place = ends.popleft()
            began = operations[place].began
            latest = [*((end, other) for end, other in latest if end >= began), (ended, operations[place])]
        for _, before in latest:
            yield before, each


def _one_behind_the_other(operations: Iterable[Operation]) -> Iterator[tuple[Operation, Operation]]:
    """A client that begins anew has its last transaction ended before: what it does next comes behind that as well."""
    by_process: dict[str, list[Operation]] = {}
    for each in operations:
        by_process.setdefault(each.process, []).append(each)
    for own in by_process.values():
        yield from pairwise(own)


def _add_records(graph: Graph[Operation], transactions: Iterable[Operation], reads: Iterable[Operation]) -> None:
    at: dict[TopicPartition, list[tuple[int, Operation]]] = {}
    for each in transactions:
        for tp, offsets in each.written.items():
            at.setdefault(tp, []).extend((offset, each) for offset in offsets)
    for found in at.values():
        found.sort(key=lambda pair: pair[0])
    for read in reads:
        for tp, (first, behind, shown) in read.through.items():
            found = at.get(tp, [])
            for number in range(bisect_left(found, first, key=lambda pair: pair[0]), len(found)):
                offset, writer = found[number]
                if offset >= behind:
                    break
                if offset in shown:
                    graph.add(writer, WROTE, read)
                else:
                    graph.add(writer, DECIDED, read)
                    graph.add(read, MISSED, writer)


def _add_positions(graph: Graph[Operation], transactions: Iterable[Operation], reads: Iterable[Operation]) -> None:
    """A group's positions only grow."""
    writers = [each for each in transactions if each.positions]
    for read in reads:
        for tp, answered in read.answered.items():
            for writer in writers:
                position = writer.positions.get(tp)
                if position is None:
                    continue
                if position == answered:
                    graph.add(writer, WROTE, read)
                elif position > answered:
                    graph.add(read, MISSED, writer)
