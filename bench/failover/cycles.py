"""The long runs: one fault after the other under load, and at the end whether every acknowledged record is there, once,
in order, and whether every reader saw what it should.

    python -m bench.failover cycles --kills 200 --pauses 50 --cuts 50

A cycle is a fault at a process drawn by the seed, some time, and the return: the next one begins when every partition
has all its replicas in sync again. A cluster that does not come to that within a minute has failed as well.
"""

from __future__ import annotations

import random
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final, NamedTuple

from bench.failover.load import Reader, Writer, read_all
from ottla.client.errors import KafkaError
from ottla.testing.histories import ClientHistory, HistoryFault, summary
from ottla.testing.processes import TREE, Cluster

TOPIC: Final = "cycles"
PARTITIONS: Final = 3
BROKERS: Final = 3
#: How long the return may take.
WHOLE_S_MAX: Final = 60.0
#: One kill in so many is the tree's.
_TREE_EVERY: Final = 10
#: Of the processes' logs: the last ones.
_LOG_LINES_KEPT: Final = 20_000


class Outcome(NamedTuple):
    cycles: Counter[str]
    history: ClientHistory
    faults: list[HistoryFault]
    #: Records that their producers gave up, and errors of readers, by name.
    errors: Counter[str]
    seconds: float
    #: The longest that a return took.
    longest_return_s: float


def tell(what: str) -> None:
    print(f"{time.strftime('%H:%M:%S')} {what}", file=sys.stderr, flush=True)


class Cycles:
    def __init__(self, cluster: Cluster, seed: int) -> None:
        self._cluster = cluster
        self._random = random.Random(seed)
        self._kinds: dict[str, Callable[[], str]] = {"kill": self._kill, "pause": self._pause, "cut": self._cut}
        self.done: Counter[str] = Counter()
        self.longest_return_s = 0.0

    def one(self, kind: str) -> None:
        what = self._kinds[kind]()
        began = time.monotonic()
        self._cluster.until(self.is_whole, WHOLE_S_MAX)
        took = time.monotonic() - began
        self.longest_return_s = max(self.longest_return_s, took)
        self.done[kind] += 1
        if sum(self.done.values()) % 10 == 0:
            tell(f"{sum(self.done.values())} cycles; the last was {what}; whole again after {took:.1f} s")

    def is_whole(self) -> bool:
        try:
            return all(len(isr) == BROKERS for isr in self._cluster.isrs(TOPIC))
        except (KafkaError, TimeoutError, OSError):
            return False

    def _kill(self) -> str:
        if self._random.randrange(_TREE_EVERY) == 0:
            self._cluster.kill_tree()
            what = "the tree killed"
        else:
            broker = self._broker()
            self._cluster.kill(broker)
            what = f"broker {broker} killed"
        time.sleep(self._random.uniform(0.3, 2.0))
        return what

    def _pause(self) -> str:
        broker = self._broker()
        seconds = self._random.uniform(0.2, 4.0)
        self._cluster.pause(broker)
        time.sleep(seconds)
        self._cluster.resume(broker)
        time.sleep(0.5)
        return f"broker {broker} paused for {seconds:.1f} s"

    def _cut(self) -> str:
        """One link, or all of one broker."""
        broker = self._broker()
        others: list[int | str] = [TREE, *(other for other in self._cluster.addresses if other != broker)]
        cut = others if self._random.randrange(3) == 0 else [self._random.choice(others)]
        for other in cut:
            self._cluster.cut(broker, other)
        seconds = self._random.uniform(0.5, 5.0)
        time.sleep(seconds)
        self._cluster.heal()
        time.sleep(0.5)
        return f"broker {broker} cut off from {cut} for {seconds:.1f} s"

    def _broker(self) -> int:
        return self._random.choice(list(self._cluster.addresses))


def kinds_of(kills: int, pauses: int, cuts: int, seed: int) -> Iterator[str]:
    kinds = ["kill"] * kills + ["pause"] * pauses + ["cut"] * cuts
    random.Random(seed).shuffle(kinds)
    yield from kinds


def run(kills: int, pauses: int, cuts: int, seed: int, keep: Path | None = None) -> Outcome:
    """`keep` is a folder that gets the processes' logs."""
    history = ClientHistory()
    partitions = [(TOPIC, number) for number in range(PARTITIONS)]
    began = time.monotonic()
    with Cluster(BROKERS) as cluster:
        cluster.create_topic(TOPIC, PARTITIONS)
        writers = [Writer(f"w{number}", cluster.bootstrap, partitions, history) for number in range(2)]
        readers = [
            Reader("by-hand", cluster.bootstrap, partitions, history),
            Reader("in-a-group", cluster.bootstrap, partitions, history, group=True),
        ]
        cycles = Cycles(cluster, seed)
        try:
            for writer in writers:
                writer.start()
            for reader in readers:
                reader.start()
            for kind in kinds_of(kills, pauses, cuts, seed):
                cycles.one(kind)
            for writer in writers:
                writer.stop()
            time.sleep(3)
            for reader in readers:
                reader.stop()
            read_all(cluster.bootstrap, partitions, history)
            faults = history.faults()
        except BaseException:
            keep_log(cluster, keep, f"cycles-{seed}")
            raise
        keep_log(cluster, keep, f"cycles-{seed}")
        errors = Counter[str]()
        tasks: list[Writer | Reader] = [*writers, *readers]
        for task in tasks:
            errors.update({f"{task.name} {name}": count for name, count in task.errors.items()})
    return Outcome(cycles.done, history, faults, errors, time.monotonic() - began, cycles.longest_return_s)


def keep_log(cluster: Cluster, folder: Path | None, name: str) -> None:
    if folder is not None:
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"{name}.log"
        path.write_text("\n".join(cluster.log[-_LOG_LINES_KEPT:]), "utf-8")
        tell(f"what the processes wrote is in {path}")


def report(outcome: Outcome, seed: int) -> str:
    history, done = outcome.history, outcome.cycles
    return "\n".join(
        [
            f"seed {seed}: {done['kill']} kills, {done['pause']} pauses, {done['cut']} cuts in {outcome.seconds:.0f} s",
            f"whole again after {outcome.longest_return_s:.1f} s at most",
            f"{history.sent_count} records sent, {history.acknowledged_count} acknowledged",
            f"{history.polled_count} readings on the way",
            f"errors of clients: {dict(outcome.errors) or 'none'}",
            summary(outcome.faults),
        ]
    )
