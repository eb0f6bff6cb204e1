"""SIGKILL under commits: what was acknowledged is committed after the restart.

Several threads commit for groups of their own without a pause while the broker is killed and started again, on the same
port and the same data. Offsets only rise, so what is found must lie between the last one that was acknowledged and the
last one that was sent.
"""

from __future__ import annotations

import random
import threading
import time

import pytest
from confluent_kafka.admin import AdminClient

from ottla.model import ErrorCode
from ottla.protocol.generated.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from tests.interop.broker import Broker
from tests.interop.clients import SECONDS_MAX, eventually
from tests.interop.conftest import create_topic
from tests.interop.group_wire import ConnectionEnded, Peer, wait_for_coordinator
from tests.interop.test_groups_directories import found

TOPIC = "handed-over"
THREADS = 4
GROUPS_A_THREAD = 5
PARTITIONS = 2
#: Commits between which the broker is killed.
ACKED_A_ROUND = (50, 500)

#: Before the coordinator has loaded, and before the topic is there.
NOT_YET = {
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_COORDINATOR,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode.REQUEST_TIMED_OUT,
}


class Committer:
    def __init__(self, bootstrap: str, number: int) -> None:
        self.groups = [f"group-{number}-{each}" for each in range(GROUPS_A_THREAD)]
        self.sent = dict.fromkeys(self.groups, 0)
        self.acknowledged = dict.fromkeys(self.groups, 0)
        self.count = 0
        self.failure: str | None = None
        self._bootstrap = bootstrap
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"committer-{number}", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        peer: Peer | None = None
        while not self._ending.is_set():
            try:
                if peer is None:
                    peer = Peer(self._bootstrap, "committer")
                    wait_for_coordinator(peer, self.groups[0])
                for group in self.groups:
                    self._commit(peer, group)
            except (OSError, ConnectionEnded):
                peer = None
                time.sleep(0.005)
            except AssertionError as wrong:
                self.failure = str(wrong)
                return

    def _commit(self, peer: Peer, group: str) -> None:
        self.sent[group] += 1
        offset = self.sent[group]
        partitions = [
            OffsetCommitRequestPartition(partition_index=number, committed_offset=offset, committed_metadata=group)
            for number in range(PARTITIONS)
        ]
        request = OffsetCommitRequest(
            group_id=group, topics=[OffsetCommitRequestTopic(name=TOPIC, partitions=partitions)]
        )
        answer = peer.ask(request, 9)
        errors = {ErrorCode(partition.error_code) for partition in answer.topics[0].partitions}
        assert errors <= {ErrorCode.NONE, *NOT_YET}, errors
        if errors == {ErrorCode.NONE}:
            self.acknowledged[group] = offset
            self.count += 1
        else:
            time.sleep(0.005)

    def end(self) -> None:
        self._ending.set()
        self._thread.join(SECONDS_MAX)


def check(broker: Broker, rounds: int, seed: int) -> None:
    began = time.monotonic()
    chance = random.Random(seed)
    broker.server.start()
    create_topic(AdminClient({"bootstrap.servers": broker.bootstrap, "log_level": 0}), TOPIC, partitions=PARTITIONS)
    committers = [Committer(broker.bootstrap, number) for number in range(THREADS)]

    def total() -> int:
        assert not any(each.failure for each in committers), [each.failure for each in committers]
        return sum(each.count for each in committers)

    for _ in range(rounds):
        wanted = total() + chance.randint(*ACKED_A_ROUND)
        eventually(lambda wanted=wanted: total() >= wanted)  # type: ignore[misc]
        broker.server.kill()
        broker.server.start()
        # Before new commits cover what the kill may have lost, each thread's word is held against the broker's.
        verify(broker, committers)
    for each in committers:
        each.end()
    verify(broker, committers)
    broker.server.stop(SECONDS_MAX)
    print(
        f"\nSIGKILL under commits: {rounds} rounds, seed {seed}, {THREADS * GROUPS_A_THREAD} groups, {total()} commits "
        f"acknowledged: none lost, none torn; {time.monotonic() - began:.0f} s"
    )


def verify(broker: Broker, committers: list[Committer]) -> None:
    for each in committers:
        for group in each.groups:
            least = each.acknowledged[group]
            eventually(lambda group=group: isinstance(found(broker.bootstrap, group), dict))  # type: ignore[misc]
            offsets = found(broker.bootstrap, group)
            assert isinstance(offsets, dict)
            most = each.sent[group]
            values = {offset for offset, _ in offsets.values()} or {0}
            assert len(values) == 1, f"{group}: a part of a commit: {offsets}"
            assert least <= values.pop() <= most, f"{group}: {offsets}, acknowledged {least}, sent {most}"


def test_acknowledged_commits_survive_a_few_kills(own_broker: Broker) -> None:
    check(own_broker, rounds=3, seed=random.randrange(1 << 32))


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_acknowledged_commits_survive_fifty_kills(own_broker: Broker) -> None:
    check(own_broker, rounds=50, seed=random.randrange(1 << 32))
