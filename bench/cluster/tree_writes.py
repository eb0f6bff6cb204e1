"""A controller's states of 2,000 partitions, written to a real ZooKeeper ensemble of three.

One behind the answer to the other, as Kafka's controller did before 1.1; ahead of their answers; and in the multis that
ours sends.

Each way is a turn of its own over the same nodes, so that a slow disk is slow for all three. *Ahead* is as many as
`zookeeper.max.in.flight.requests` allows: ten.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from tools.kafka_jars import JarsUnavailable
from tools.zookeeper_server import ZooKeeperEnsemble

from bench.cluster.brokers import ClusterContext
from bench.results import Figures, Goal, Measure, Results
from bench.servers import OTTLA
from ottla.config import Config
from ottla.controller.writing import ControllerWrites
from ottla.coordination.interface import Coordination, Create, SetData
from ottla.coordination.znodes import CONTROLLER_EPOCH, LeaderAndIsr, encode_state, state_path
from ottla.coordination.zookeeper.client import open_remote
from ottla.model import BrokerId, Epoch
from ottla.ports.real import real_ports

STATES: Final = 2_000
#: Of ZooKeeper's default, which sessions' and elections' times follow.
_TICK_MS: Final = 2_000
_TOPIC: Final = "many"


@dataclass(frozen=True, kw_only=True)
class TreeWrites:
    name: str = "tree-writes"
    title: str = "2,000 partition states into a real ensemble of three"
    measures: Sequence[Measure] = (
        Measure(name="alone", label="one behind the answer to the other", unit="s", digits=3),
        Measure(name="ahead", label="ahead of their answers", unit="s", digits=3),
        Measure(name="multis", label="in the controller's multis", unit="s", digits=3),
        Measure(name="ahead_times", label="ahead of their answers", unit="times as fast", digits=1),
        Measure(name="multis_times", label="in multis", unit="times as fast", digits=1),
    )
    goals: Sequence[Goal] = (Goal(measure="multis_times", at_least=10),)

    def run(self, context: ClusterContext) -> Results:
        results = Results(title=self.title, measures=self.measures, goals=self.goals)
        try:
            servers = ZooKeeperEnsemble(context.places.scratch / self.name, tick_ms=_TICK_MS)
        except JarsUnavailable as missing:
            results.failures[OTTLA] = str(missing)
            return results
        with servers as ensemble:
            rounds = iter(range(context.effort.rounds))

            def take(_: str) -> Figures:
                return asyncio.run(_measured(f"{ensemble.connect}/round-{next(rounds)}"))

            context.measure_in_turns(results, [OTTLA], take, lambda _: context.effort.rounds)
        return results


async def _measured(connect: str) -> Figures:
    config = Config.parse({"zookeeper.connect": connect, "zookeeper.session.timeout.ms": "6000"}).coordination
    tree = await open_remote(config, real_ports())
    try:
        await _prepare(tree)
        seconds = {name: await _timed(write, tree) for name, write in _WAYS.items()}
    finally:
        await tree.close()
    alone = seconds["alone"]
    return {**seconds, "ahead_times": alone / seconds["ahead"], "multis_times": alone / seconds["multis"]}


async def _timed(write: Callable[[Coordination], Awaitable[None]], tree: Coordination) -> float:
    began = time.monotonic()
    await write(tree)
    return time.monotonic() - began


def _paths() -> list[str]:
    return [state_path(_TOPIC, number) for number in range(STATES)]


def _state(leader_epoch: int) -> bytes:
    replicas = (BrokerId(1), BrokerId(2), BrokerId(3))
    return encode_state(LeaderAndIsr(Epoch(1), replicas[0], Epoch(leader_epoch), replicas))


async def _prepare(tree: Coordination) -> None:
    await tree.create(CONTROLLER_EPOCH, b"1")
    made: set[str] = set()
    for path in _paths():
        names = path.split("/")[1:]
        above = ["/" + "/".join(names[:depth]) for depth in range(1, len(names))]
        nodes = [Create(node) for node in above if node not in made] + [Create(path, _state(0))]
        made.update(above)
        await tree.multi(nodes)


async def _alone(tree: Coordination) -> None:
    for path in _paths():
        await tree.set(path, _state(1), 0)


async def _ahead(tree: Coordination) -> None:
    await asyncio.gather(*(tree.set(path, _state(2), 1) for path in _paths()))


async def _in_multis(tree: Coordination) -> None:
    outcomes = await ControllerWrites(tree, 0).write([[SetData(path, _state(3), 2)] for path in _paths()])
    assert not any(outcomes), outcomes


_WAYS: Final[Mapping[str, Callable[[Coordination], Awaitable[None]]]] = {
    "alone": _alone,
    "ahead": _ahead,
    "multis": _in_multis,
}


def scenarios() -> list[TreeWrites]:
    return [TreeWrites()]
