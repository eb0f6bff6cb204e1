"""What the death of the tree costs those who produce and those who change something.

Of our own process of it, and of a member of a real ZooKeeper ensemble:

    python -m bench.failover trees --times 10 --ensemble

The probe produces throughout. *Before* and *behind* are the p99 of its requests in the seconds on both sides of the
kill; *a change* is how long it took until a topic could be made, asked for from the kill on. With a real ensemble a
leading broker is killed as well: its session ends a tick after its time-out at the latest.
"""

from __future__ import annotations

import contextlib
import itertools
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median
from typing import Final, NamedTuple

from tools.zookeeper_server import ZooKeeperEnsemble, ZooKeeperServer

from bench.failover.cycles import BROKERS, tell
from bench.failover.gaps import longest_gap, percentile
from bench.failover.probe import Probe
from ottla.client.admin.results import NewTopic
from ottla.client.errors import KafkaError
from ottla.client.sync import Admin
from ottla.local_cluster.member import LONG_LIFE_S
from ottla.testing.processes import Cluster

TOPIC: Final = "produced"
#: On each side of a kill.
LOOK_S: Final = 4.0
#: A change is asked for again after so long without an answer.
ASKED_MS: Final = 5_000
CHANGE_S_MAX: Final = 60.0
GAP_S_MAX: Final = 60.0
#: ZooKeeper's default, and what a broker asks of a real ensemble.
TICK_MS: Final = 2_000
SESSION_MS: Final = 6_000
P99_TIMES: Final = 2.0
CHANGE_GOAL_S: Final = {"own": 1.0, "ensemble": 4.0}
LEADER_GOAL_S: Final = (SESSION_MS + TICK_MS) / 1_000 + 1


class Kills(NamedTuple):
    """Of a tree, or of a member of it."""

    name: str
    #: Seconds that the probe's requests took, of all times together.
    before: list[float]
    behind: list[float]
    #: Until a change was made, of each time.
    changes: list[float]
    #: How often another leader was named, where none should be.
    moves: int
    change_goal_s: float

    def lines(self) -> list[str]:
        p99s = [percentile(found, 0.99) for found in (self.before, self.behind)]
        times = p99s[1] / p99s[0]
        verdict = "ok" if times <= P99_TIMES and not self.moves else "MISS"
        longest = max(self.changes)
        took = f"{p99s[0] * 1e3:7.2f} ms, behind {p99s[1] * 1e3:7.2f} ms: {times:.2f} times"
        changes = f"a change p50 {median(self.changes):6.3f}  longest {longest:6.3f}"
        in_time = "ok" if longest <= self.change_goal_s else "MISS"
        return [
            f"{self.name:32} {len(self.changes):3}  produce p99 before {took}  goal {P99_TIMES:g}: {verdict}",
            f"{'':36} {self.moves} leaders moved; {changes}  goal {self.change_goal_s:g}: {in_time}",
        ]


class Gaps(NamedTuple):
    """Of leaders that die under a real ensemble."""

    seconds: list[float]

    def lines(self) -> list[str]:
        longest = max(self.seconds)
        took = f"p50 {median(self.seconds):6.3f}  longest {longest:6.3f}"
        in_time = "ok" if longest <= LEADER_GOAL_S else "MISS"
        name = "leader killed, real ensemble"
        return [f"{name:32} {len(self.seconds):3}  {took}  goal {LEADER_GOAL_S:g}: {in_time}"]


class Trees:
    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._names = (f"made-{number}" for number in itertools.count())
        with Admin(bootstrap_servers=cluster.bootstrap) as admin:
            admin.create_topics([NewTopic(TOPIC, assignments={0: list(cluster.addresses)})])

    def kills(self, name: str, times: int, kill: Callable[[], None], whole: Callable[[], None], goal_s: float) -> Kills:
        """`whole` returns when what was killed is there again."""
        found = Kills(name, [], [], [], 0, goal_s)
        for number in range(times):
            whole()
            self._until_whole()
            led = self._cluster.until_led(TOPIC)
            with self._probing() as probe:
                time.sleep(LOOK_S)
                began = time.monotonic()
                kill()
                found.changes.append(self._until_changed() - began)
                time.sleep(max(0.0, began + LOOK_S - time.monotonic()))
            found.before.extend(took for at, took in probe.acknowledged if began - LOOK_S < at <= began)
            found.behind.extend(took for at, took in probe.acknowledged if began < at <= began + LOOK_S)
            found = found._replace(moves=found.moves + (self._cluster.until_led(TOPIC) != led))
            tell(f"{name} {number + 1}: a change after {found.changes[-1]:.3f} s")
        return found

    def leaders(self, times: int) -> Gaps:
        seconds = []
        for number in range(times):
            self._until_whole()
            with self._probing() as probe:
                time.sleep(LOOK_S / 2)
                began = time.monotonic()
                self._cluster.kill_leader(TOPIC)
                self._cluster.until(lambda p=probe, b=began: _writes_again(p, b), GAP_S_MAX)  # type: ignore[misc]
            seconds.append(longest_gap(probe.acknowledged_at, began))
            tell(f"leader killed, real ensemble {number + 1}: {seconds[-1]:.3f} s")
        return Gaps(seconds)

    @contextlib.contextmanager
    def _probing(self) -> Iterator[Probe]:
        probe = Probe(self._cluster.addresses, TOPIC)
        probe.start()
        try:
            self._cluster.until(lambda: len(probe.acknowledged) > 50, GAP_S_MAX)
            yield probe
        finally:
            probe.stop()

    def _until_whole(self) -> None:
        def is_whole() -> bool:
            with contextlib.suppress(KafkaError, OSError, TimeoutError):
                return all(len(isr) == BROKERS for isr in self._cluster.isrs(TOPIC))
            return False

        self._cluster.until(is_whole, GAP_S_MAX)

    def _until_changed(self) -> float:
        """When a topic was made."""
        ends = time.monotonic() + CHANGE_S_MAX
        with Admin(bootstrap_servers=self._cluster.bootstrap, default_api_timeout_ms=ASKED_MS) as admin:
            while time.monotonic() < ends:
                with contextlib.suppress(KafkaError, OSError, TimeoutError):
                    admin.create_topic(next(self._names), partitions=1)
                    return time.monotonic()
                time.sleep(0.02)
        raise TimeoutError(f"no topic could be made for {CHANGE_S_MAX:g} s")


def _writes_again(probe: Probe, began: float) -> bool:
    """Some requests behind one another: acknowledgements that were on their way at the kill are none."""
    times = [at for at in probe.acknowledged_at if at > began + 0.2]
    return len(times) > 20


def run(times: int, *, ensemble: bool) -> list[Kills | Gaps]:
    with Cluster(BROKERS, links=False) as cluster:
        found: list[Kills | Gaps] = [
            Trees(cluster).kills("the tree killed", times, cluster.kill_tree, _long_life, CHANGE_GOAL_S["own"])
        ]
    if not ensemble:
        return found
    with (
        tempfile.TemporaryDirectory(prefix="ottla-ensemble-") as folder,
        ZooKeeperEnsemble(Path(folder), tick_ms=TICK_MS) as servers,
        Cluster(BROKERS, links=False, zookeeper=f"{servers.connect}/bench") as cluster,
    ):
        trees = Trees(cluster)
        for name, kill in (
            ("a member of the ensemble killed", lambda: _other(servers).kill()),
            ("the ensemble's leader killed", lambda: servers.leader().kill()),
        ):
            found.append(trees.kills(name, times, kill, servers.start, CHANGE_GOAL_S["ensemble"]))
        servers.start()
        found.append(trees.leaders(times))
    return found


def _other(servers: ZooKeeperEnsemble) -> ZooKeeperServer:
    led = servers.leader()
    return next(server for server in servers.servers if server is not led)


def _long_life() -> None:
    """A tree of ours is started again by whoever started it: at once where it has lived for a while, otherwise behind
    pauses that grow."""
    time.sleep(LONG_LIFE_S)
