"""SIGKILL under groups: what was acknowledged is committed after the restart, and members find each other again.

Several threads commit for groups of their own without a pause while the broker is killed and started again, on the same
port and the same data. Offsets only rise, so what is found must lie between the last one that was acknowledged and the
last one that was sent. And a group's members live through kills in the midst of their rebalances.
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient

from ottla.client.sync import Admin
from ottla.model import ErrorCode
from ottla.protocol.generated.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from tests.conftest import WatchServer
from tests.interop.broker import Broker
from tests.interop.clients import SECONDS_MAX, eventually
from tests.interop.conftest import GROUP_PROPERTIES, create_topic, new_broker
from tests.interop.group_members import Member, OttlaMember, partitions_of, shares, wait_for
from tests.interop.group_wire import ConnectionEnded, Peer, wait_for_coordinator
from tests.interop.group_writing import produce
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


@pytest.fixture
def own_group_broker(tmp_path: Path, watch_server: WatchServer) -> Iterator[Broker]:
    own = new_broker(tmp_path / "own-broker", GROUP_PROPERTIES)
    with watch_server(own.server), own.server:
        yield own


def test_members_outlive_their_coordinator(own_group_broker: Broker) -> None:
    """It is killed whenever somebody has just begun to join or to leave; each record is read, however often."""
    bootstrap, server = own_group_broker.bootstrap, own_group_broker.server
    chance = random.Random(seed := random.randrange(1 << 32))
    print(f"seed {seed}")
    create_topic(AdminClient({"bootstrap.servers": bootstrap, "log_level": 0}), "orders", partitions=6)
    partitions = partitions_of("orders", 6)
    members: list[Member] = []
    written: set[bytes] = set()

    def killed_in_between() -> None:
        time.sleep(chance.uniform(0, 0.1))  # anywhere in joining, syncing, fetching offsets
        server.kill()
        server.start()

    def all_read(present: list[Member]) -> None:
        wait_for(lambda: shares(present, partitions) and all(member.assigned for member in present), members)
        values = {b"%d" % number for number in range(len(written), len(written) + 12)}
        produce(bootstrap, "orders", 6, sorted(values))
        written.update(values)
        wait_for(lambda: {value for member in members for value in member.values} == written, members)

    # Who left just before the kill is a member again behind it, as it is with Kafka, until its session ends.
    for settings in ({"session_timeout_ms": 1000}, {}):
        members.append(OttlaMember(f"member-{len(members)}", bootstrap, "billing", ["orders"], **settings))
        killed_in_between()
        all_read(members)
    leaving = threading.Thread(target=members[0].leave)
    leaving.start()
    killed_in_between()
    leaving.join()
    all_read(members[1:])
    members[1].leave()
    offsets = committed_of(bootstrap)
    assert sum(offsets.values()) == len(written), offsets


def committed_of(bootstrap: str) -> dict[int, int]:
    with Admin(bootstrap_servers=bootstrap) as admin:
        return {tp.partition: one.offset for tp, one in admin.list_group_offsets("billing").items()}
