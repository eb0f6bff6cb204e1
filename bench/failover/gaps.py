"""How long acks=all producers go without an acknowledgement when something dies, against the goals.

Each time: all replicas in sync and every preferred leader leading; a fresh client of librdkafka with its defaults (one
that has seen the last kill keeps away from the broker that died then for up to ten seconds), beside the probe; the
fault; and the longest time between two acknowledgements of each from then on.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import Final, NamedTuple

from bench.failover.cycles import keep_log, tell
from bench.failover.java_writer import JavaWriter
from bench.failover.load import Writer
from bench.failover.probe import Probe
from ottla.client.admin.results import NewTopic
from ottla.client.errors import KafkaError
from ottla.client.sync import Admin
from ottla.testing.histories import ClientHistory
from ottla.testing.processes import TREE, Cluster

BROKERS: Final = 3
#: Before each fault both clients have written for so long.
STEADY_S: Final = 1.5
#: Behind a fault: until both write again, and then some.
AFTER_S: Final = 1.5
GAP_S_MAX: Final = 60.0
#: A client's start; Java's takes its time where others compute.
BEGIN_S_MAX: Final = 60.0
#: How long a paused or cut off leader stays so.
AWAY_S: Final = 6.0

#: librdkafka as it comes, but for acks and idempotence; quiet on the terminal.
DEFAULTS: Final = {
    "reconnect.backoff.ms": 100,
    "reconnect.backoff.max.ms": 10_000,
    "topic.metadata.refresh.fast.interval.ms": 100,
}
#: A client that waits for an answer for a second only: its defaults have it wait for 30 s where a leader is silent.
IMPATIENT: Final = {**DEFAULTS, "request.timeout.ms": 1_000, "socket.timeout.ms": 1_000}


class Goals(NamedTuple):
    """Seconds: p50 and p99, of the probe and of librdkafka. None: no goal."""

    probe: tuple[float | None, float]
    client: tuple[float | None, float]


KILLS: Final = Goals((0.6, 1.2), (1.0, 2.0))
SILENCE: Final = Goals((None, 3.0), (None, 4.0))
PLANNED: Final = Goals((None, 0.2), (None, 0.2))


class Row(NamedTuple):
    name: str
    goals: Goals
    probe: list[float]
    client: list[float]
    #: What clients were answered besides acknowledgements.
    errors: dict[str, int]
    #: How often a leader moved, where none should.
    moves: int | None = None
    #: Of Kafka's own producer, where it was asked for.
    java: Sequence[float] = ()

    def lines(self) -> list[str]:
        found = [_line(self.name, "probe", self.probe, self.goals.probe)]
        found.append(_line("", "librdkafka", self.client, self.goals.client))
        if self.java:
            found.append(_line("", "Java", self.java, self.goals.client))
        if self.errors:
            found.append(f"  errors: {self.errors}")
        if self.moves is not None:
            found.append(f"  leaders moved: {self.moves}")
        return found


def percentile(values: Sequence[float], share: float) -> float:
    """The smallest that so many are at or below."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, max(0, -int(-share * len(ordered) // 1) - 1))]


def _line(name: str, who: str, gaps: Sequence[float], goal: tuple[float | None, float]) -> str:
    p50, p99 = median(gaps), percentile(gaps, 0.99)
    enough = (goal[0] is None or p50 <= goal[0]) and p99 <= goal[1]
    wanted = (f"p50 {goal[0]:g}, " if goal[0] is not None else "") + f"p99 {goal[1]:g}"
    verdict = "ok" if enough else "MISS"
    return (
        f"{name:32} {who:11} {len(gaps):3}  p50 {p50:6.3f}  p90 {percentile(gaps, 0.9):6.3f}  p99 {p99:6.3f}  "
        f"goal {wanted}: {verdict}"
    )


class Gaps:
    def __init__(self, cluster: Cluster, *, with_java: bool = False) -> None:
        self._cluster = cluster
        self._with_java = with_java
        self._topics = {broker: f"led-by-{broker}" for broker in cluster.addresses}
        brokers = list(cluster.addresses)
        with self._admin() as admin:
            new = []
            for place, topic in enumerate(self._topics.values()):
                replicas = [*brokers[place:], *brokers[:place]]
                new.append(NewTopic(topic, assignments={0: replicas}))
            admin.create_topics(new)

    def _admin(self) -> Admin:
        return Admin(bootstrap_servers=self._cluster.bootstrap)

    @property
    def controller(self) -> int:
        with self._admin() as admin:
            found = admin.describe_cluster().controller_id
        assert found is not None
        return found

    def row(
        self,
        name: str,
        goals: Goals,
        times: int,
        fault: Callable[[int], Callable[[], None] | None],
        *,
        led_by: Callable[[int], int],
        settings: dict[str, int] | None = None,
        counts_moves: bool = False,
    ) -> Row:
        """`led_by` says which broker is to lead what is produced, given the controller; `fault` is given that leader
        and may return what ends it."""
        probes, clients, javas, errors, moves = [], [], [], dict[str, int](), 0
        for number in range(times):
            self._settle()
            leader = led_by(self.controller)
            topic = self._topics[leader]
            probe = Probe(self._cluster.addresses, topic)
            writer = Writer("w", self._cluster.bootstrap, [(topic, 0)], ClientHistory(), settings or DEFAULTS)
            java = [JavaWriter(self._cluster.bootstrap, topic)] if self._with_java else []
            all_clients: list[Probe | Writer | JavaWriter] = [probe, writer, *java]
            for client in all_clients:
                client.start()
            try:
                self._cluster.until(
                    lambda a=all_clients: all(len(each.acknowledged_at) > 50 for each in a),  # type: ignore[misc]
                    BEGIN_S_MAX,
                )
                time.sleep(STEADY_S)
                began = time.monotonic()
                end = fault(leader)
                if end is not None:
                    time.sleep(AWAY_S)
                    end()
                self._until_all_write(began, all_clients)
            finally:
                for client in reversed(all_clients):
                    client.stop()
            moves += self._cluster.leader(topic) != leader
            probes.append(longest_gap(probe.acknowledged_at, began))
            clients.append(longest_gap(writer.acknowledged_at, began))
            javas += [longest_gap(each.acknowledged_at, began) for each in java]
            for found in (writer.errors, *(each.errors for each in java)):
                for error, count in found.items():
                    errors[error] = errors.get(error, 0) + count
            said = f"probe {probes[-1]:.3f} s, librdkafka {clients[-1]:.3f} s"
            tell(f"{name} {number + 1}: {said}" + (f", Java {javas[-1]:.3f} s" if javas else ""))
        return Row(name, goals, probes, clients, errors, moves if counts_moves else None, javas)

    @staticmethod
    def _until_all_write(began: float, clients: Sequence[Probe | Writer | JavaWriter]) -> None:
        time.sleep(AFTER_S)
        ends = began + GAP_S_MAX
        while time.monotonic() < ends:
            newest = min(each.acknowledged_at[-1] for each in clients)
            if newest > max(began, time.monotonic() - 0.2):
                break
            time.sleep(0.05)
        time.sleep(AFTER_S)

    def _settle(self) -> None:
        def settled() -> bool:
            try:
                with self._admin() as admin:
                    described = admin.describe_topics(self._topics.values()).values()
                    if any(len(each.partitions[0].isr) < BROKERS for each in described):
                        return False
                    if any(each.partitions[0].leader != each.partitions[0].replicas[0] for each in described):
                        admin.elect_leaders()
                        return False
                    return True
            except (KafkaError, OSError, TimeoutError):
                return False

        self._cluster.until(settled, 60)

    # -- the rows

    def rows(self, times: int, only: Sequence[str]) -> list[Row]:
        found = []
        for name, make in self._all(times).items():
            if name in only:
                found.append(make())
        return found

    def _all(self, times: int) -> dict[str, Callable[[], Row]]:
        cluster = self._cluster
        brokers = list(cluster.addresses)

        def other_than(broker: int) -> int:
            return brokers[(brokers.index(broker) + 1) % len(brokers)]

        def silent(leader: int) -> Callable[[], None]:
            cluster.pause(leader)
            return lambda: cluster.resume(leader)

        def cut_off(leader: int) -> Callable[[], None]:
            others: list[int | str] = [TREE, *(broker for broker in brokers if broker != leader)]
            for other in others:
                cluster.cut(leader, other)
            return cluster.heal

        def rolling(_: int) -> None:
            for broker in brokers:
                cluster.restart(broker)
                cluster.until(lambda: all(len(isr) == BROKERS for isr in self._isrs()), 60)

        few = max(1, times // 3)
        return {
            "leader": lambda: self.row("leader killed", KILLS, times, cluster.kill, led_by=other_than),
            "both": lambda: self.row("leader and controller killed", KILLS, times, cluster.kill, led_by=lambda c: c),
            "follower": lambda: self.row(
                "follower killed", KILLS, times, lambda leader: cluster.kill(other_than(leader)), led_by=other_than
            ),
            "silent": lambda: self.row("leader paused", SILENCE, few, silent, led_by=other_than, settings=IMPATIENT),
            "cut": lambda: self.row("leader cut off", SILENCE, few, cut_off, led_by=other_than, settings=IMPATIENT),
            "stop": lambda: self.row("leader stopped cleanly", PLANNED, few, cluster.restart, led_by=other_than),
            "stop-both": lambda: self.row(
                "leader and controller stopped", PLANNED, few, cluster.restart, led_by=lambda c: c
            ),
            "rolling": lambda: self.row("rolling restart", PLANNED, max(1, few // 3), rolling, led_by=other_than),
            "tree": lambda: self.row(
                "tree killed", PLANNED, few, lambda _: cluster.kill_tree(), led_by=other_than, counts_moves=True
            ),
        }

    def _isrs(self) -> list[tuple[int, ...]]:
        return [isr for topic in self._topics.values() for isr in self._cluster.isrs(topic)]


def longest_gap(times: Sequence[float], began: float) -> float:
    """Between two acknowledgements from `began` on; none at all is the longest."""
    after = [began, *(at for at in times if at >= began)]
    if len(after) == 1:
        return GAP_S_MAX
    return max(later - before for before, later in pairwise(after))


#: Rows for which links are cut, in a cluster that has some; they cost others a little.
_CUTTING: Final = ("cut",)
ROWS: Final = ("leader", "both", "follower", "silent", *_CUTTING, "stop", "stop-both", "rolling", "tree")


def run(times: int, only: Sequence[str], keep: Path | None = None, *, with_java: bool = False) -> list[Row]:
    found = []
    for links in (False, True):
        wanted = [row for row in only or ROWS if (row in _CUTTING) is links]
        if wanted:
            with Cluster(BROKERS, links=links) as cluster:
                found += Gaps(cluster, with_java=with_java).rows(times, wanted)
                keep_log(cluster, keep, "gaps-with-links" if links else "gaps")
    return found
