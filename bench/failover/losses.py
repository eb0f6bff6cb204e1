"""What each setting may lose: acks 0, 1 and all, with and without unclean elections, a minimum of one and two in sync,
all in one cluster under the same faults.

    python -m bench.failover losses --times 40

Half of the faults kill one broker. The others take two away for longer than their sessions last, so that the third
remains alone in its ISRs, kill that one, and give the two back: the case in which settings differ. What is lost is
counted; that no setting loses what it must not is the verdict.
"""

from __future__ import annotations

import random
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final, NamedTuple

from bench.failover.cycles import BROKERS, WHOLE_S_MAX, keep_log, tell
from bench.failover.load import Reader, Writer, read_all
from ottla.client.errors import KafkaError
from ottla.testing.histories import ClientHistory, FaultKind, HistoryFault, counted
from ottla.testing.processes import Cluster

PARTITIONS: Final = 3
PAUSE_S: Final = 0.02
#: Longer than a session with the tree lasts.
AWAY_S: Final = 2.5

#: What an election outside of the ISR may do to anybody: the log of another one takes the place of what was committed.
_UNCLEAN: Final = frozenset(FaultKind) - {FaultKind.UNWRITTEN}
#: What a leader takes with it that alone had it when it acknowledged.
_ALONE: Final = frozenset({FaultKind.LOST})


class Setting(NamedTuple):
    acks: str
    unclean: bool
    minimum: int

    @property
    def topic(self) -> str:
        return f"acks-{self.acks}-{'unclean' if self.unclean else 'clean'}-{self.minimum}"

    @property
    def permitted(self) -> frozenset[FaultKind]:
        if self.unclean:
            return _UNCLEAN
        return frozenset() if self.acks == "all" else _ALONE


SETTINGS: Final = tuple(
    Setting(acks, unclean, minimum) for acks in ("0", "1", "all") for unclean in (False, True) for minimum in (1, 2)
)


class Losses(NamedTuple):
    setting: Setting
    history: ClientHistory
    faults: list[HistoryFault]
    refused: int

    @property
    def not_permitted(self) -> list[HistoryFault]:
        return [fault for fault in self.faults if fault.kind not in self.setting.permitted]

    def line(self) -> str:
        setting, counts = self.setting, counted(self.faults)
        others = ", ".join(f"{kind.value} {n}" for kind, n in counts.items() if kind is not FaultKind.LOST) or "-"
        return (
            f"| {setting.acks} | {'yes' if setting.unclean else 'no'} | {setting.minimum} | "
            f"{self.history.acknowledged_count:,} | {self.refused:,} | {counts.get(FaultKind.LOST, 0):,} | {others} | "
            f"{'BUG' if self.not_permitted else 'permitted' if self.faults else 'nothing'} |"
        )


HEADINGS: Final = (
    "| acks | unclean elections | min.insync.replicas | acknowledged | given up | lost | other faults | verdict |\n"
    "|---|---|--:|--:|--:|--:|---|---|"
)


def run(times: int, seed: int, keep: Path | None) -> list[Losses]:
    chance = random.Random(seed)
    with Cluster(BROKERS, links=False) as cluster:
        histories: dict[Setting, ClientHistory] = {}
        writers: dict[Setting, Writer] = {}
        readers = []
        for setting in SETTINGS:
            unclean = str(setting.unclean).lower()
            configs = {"unclean.leader.election.enable": unclean, "min.insync.replicas": str(setting.minimum)}
            cluster.create_topic(setting.topic, PARTITIONS, configs=configs)
            history = histories[setting] = ClientHistory()
            partitions = _partitions(setting)
            # An idempotent producer ends for good when an unclean election has lost what it knows to be written.
            client = {"acks": setting.acks, "enable.idempotence": False, "delivery.timeout.ms": 20_000}
            writers[setting] = Writer("w", cluster.bootstrap, partitions, history, client, PAUSE_S)
            readers.append(Reader(f"r-{setting.topic}", cluster.bootstrap, partitions, history))
        for writer in writers.values():
            writer.start()
        for reader in readers:
            reader.start()
        for number in range(times):
            what = _fault(cluster, chance)
            cluster.until(lambda: _is_whole(cluster), WHOLE_S_MAX)
            tell(f"{number + 1}: {what}")
        for writer in writers.values():
            writer.stop()
        time.sleep(2)
        for reader in readers:
            reader.stop()
        found = []
        for setting, history in histories.items():
            read_all(cluster.bootstrap, _partitions(setting), history)
            faults = history.faults(idempotent=False)
            found.append(Losses(setting, history, faults, sum(writers[setting].errors.values())))
        keep_log(cluster, keep, f"losses-{seed}")
    return found


def _partitions(setting: Setting) -> Sequence[tuple[str, int]]:
    return [(setting.topic, number) for number in range(PARTITIONS)]


def _fault(cluster: Cluster, chance: random.Random) -> str:
    brokers = list(cluster.addresses)
    last = chance.choice(brokers)
    if chance.randrange(2):
        cluster.kill(last)
        time.sleep(chance.uniform(0.5, 2))
        return f"broker {last} killed"
    others = [broker for broker in brokers if broker != last]
    for broker in others:
        cluster.pause(broker)
        time.sleep(chance.uniform(0, 0.3))
    time.sleep(AWAY_S)
    cluster.kill(last)
    for broker in others:
        cluster.resume(broker)
    time.sleep(2)
    return f"broker {last} killed, which was alone"


def _is_whole(cluster: Cluster) -> bool:
    try:
        return all(len(isr) == BROKERS for setting in SETTINGS for isr in cluster.isrs(setting.topic))
    except (KafkaError, TimeoutError, OSError):
        return False
