"""Histories that lost or parted records in earlier Kafka, step by step over the cores of leader and follower.

The names are those of the TLA+ models in which they were found: truncation to the watermark, Kip101, Kip279, and the
first try of Kip320.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.replication.roles_world import TP, RolesWorld
from tests.storage.at_once import cut_to_leader
from tests.storage.log_world import batch, read_all, read_first

from ottla.model import ErrorCode
from ottla.replication.follower import Follower
from ottla.replication.leader import Leader
from ottla.storage.log.log import Log

A, B, C = 1, 2, 3
NOW = 1_800_000_000_000


class Cluster:
    """Brokers with one partition, whose roles a test gives, and whose followers fetch when it says so."""

    def __init__(self, *ids: int) -> None:
        self.ids = ids
        self.epoch = 0
        self.isr = ids
        self.partition_epoch = 0
        self.brokers: dict[int, RolesWorld] = {}
        for each in ids:
            world = type("Broker", (RolesWorld,), {"us": each})
            self.brokers[each] = world()

    def elect(self, leader: int, *, isr: tuple[int, ...], heard_by: tuple[int, ...] | None = None) -> None:
        self.epoch += 1
        self.partition_epoch += 1
        self.isr = isr
        for each in heard_by or self.ids:
            self.tell(each, leader)

    def tell(self, broker: int, leader: int) -> None:
        error = self.brokers[broker].role(
            self.epoch, leader, replicas=self.ids, isr=self.isr, partition_epoch=self.partition_epoch
        )
        assert error == ErrorCode.NONE

    def leader(self, broker: int) -> Leader:
        return self.brokers[broker].leader

    def follower(self, broker: int) -> Follower:
        return self.brokers[broker].follower

    def log(self, broker: int) -> Log:
        found = self.brokers[broker].replicas.directories.get(TP)
        assert found is not None
        return found

    def write(self, broker: int, *values: bytes) -> None:
        leader = self.leader(broker)
        read_first(leader.log)
        for value in values:
            leader.append(batch(value), NOW)
            leader.log.write_staged()
        leader.advance()

    def fetch(self, follower: int, leader: int) -> ErrorCode:
        """One fetch with a diverging epoch or records, as `handlers/fetch/reading.py` answers it."""
        role, source = self.follower(follower), self.leader(leader)
        if (error := source.fencing(role.epoch)) != ErrorCode.NONE:
            return error
        end, last_epoch = role.log.end_offset, role.log.epochs.latest
        found = source.log.epochs.end_offset_for(last_epoch, source.log.end_offset) if last_epoch >= 0 else None
        if found is not None and (found[0] < last_epoch or found[1] < end):
            cut_to_leader(role, *found)
            return ErrorCode.NONE
        source.follower_fetched(follower, end, NOW)
        data = source.log.read(end, 1 << 20, source.log.end_offset).read()
        role.append(memoryview(bytearray(data)), source.high_watermark, source.log.start_offset)
        return ErrorCode.NONE

    def catch_up(self, follower: int, leader: int) -> None:
        for _ in range(10):
            assert self.fetch(follower, leader) == ErrorCode.NONE

    def crash(self, broker: int) -> None:
        """The process ends and begins again; what the system's memory has is still there."""
        self.brokers[broker].stop()
        self.brokers[broker].start()

    def contents(self, broker: int) -> list[bytes]:
        return [value for _, value in read_all(self.log(broker))]


def test_truncation_to_the_watermark() -> None:
    """A follower that cut its log at its own watermark after a restart lost what was committed, once it led."""
    cluster = Cluster(A, B)
    cluster.elect(A, isr=(A, B))
    cluster.write(A, b"m1", b"m2")
    cluster.fetch(B, A)
    cluster.fetch(B, A)
    assert (cluster.leader(A).high_watermark, cluster.follower(B).high_watermark) == (2, 2)
    cluster.write(A, b"m3")
    cluster.fetch(B, A)
    # It has the record, and not yet the news that it is committed.
    cluster.leader(A).follower_fetched(B, 3, NOW)
    assert (cluster.leader(A).high_watermark, cluster.follower(B).high_watermark) == (3, 2)
    cluster.crash(B)
    cluster.tell(B, A)
    assert cluster.follower(B).log.end_offset == 3
    cluster.elect(B, isr=(B,), heard_by=(B,))
    assert cluster.contents(B) == [b"m1", b"m2", b"m3"]
    assert cluster.leader(B).high_watermark == 3


def test_kip_101() -> None:
    """Both restart, the one that lacks a record leads and writes another in its place: the logs do not part."""
    cluster = Cluster(A, B)
    cluster.elect(A, isr=(A, B))
    cluster.write(A, b"m1")
    cluster.catch_up(B, A)
    cluster.write(A, b"lost")
    cluster.crash(A)
    cluster.crash(B)
    cluster.elect(B, isr=(B,), heard_by=(B,))
    cluster.write(B, b"m2", b"m3")
    cluster.tell(A, B)
    cluster.catch_up(A, B)
    assert cluster.contents(A) == cluster.contents(B) == [b"m1", b"m2", b"m3"]
    assert cluster.log(A).epochs.entries() == cluster.log(B).epochs.entries()


def test_kip_279() -> None:
    """Two fast failovers: the leader does not know the follower's last leader epoch, and has more of the one before."""
    cluster = Cluster(A, B, C)
    cluster.elect(A, isr=(A, B, C))
    cluster.write(A, b"0")
    cluster.catch_up(B, A)
    cluster.catch_up(C, A)
    cluster.write(A, b"a", b"a")
    cluster.catch_up(C, A)
    # B leads without having heard of these, writes, and nobody fetches that.
    cluster.elect(B, isr=(A, B, C), heard_by=(B,))
    cluster.write(B, b"b", b"b")
    # C leads: of the first leader epoch it has three records, of the second none.
    cluster.elect(C, isr=(A, B, C))
    assert cluster.log(B).epochs.latest == 2
    assert cluster.leader(C).log.epochs.end_offset_for(2, 3) == (1, 3)
    cluster.catch_up(B, C)
    assert cluster.contents(B) == cluster.contents(C) == [b"0", b"a", b"a"]
    cluster.write(C, b"c")
    for each in (A, B):
        cluster.catch_up(each, C)
        assert cluster.contents(each) == cluster.contents(C)
    assert cluster.leader(C).high_watermark == 4


def test_kip_320_first_try_a_look_up_at_a_leader_that_was() -> None:
    """A follower of the next leader epoch is not answered by the leader before it, and cuts nothing because of it."""
    cluster = Cluster(A, B, C)
    cluster.elect(A, isr=(A, B, C))
    cluster.write(A, b"1")
    cluster.catch_up(B, A)
    cluster.catch_up(C, A)
    cluster.elect(B, isr=(B, C), heard_by=(B, C))
    cluster.write(B, b"2")
    cluster.catch_up(C, B)
    before = cluster.leader(A).isr.followers[C].end
    assert cluster.fetch(C, A) == ErrorCode.UNKNOWN_LEADER_EPOCH
    assert cluster.leader(A).isr.followers[C].end == before
    assert cluster.contents(C) == [b"1", b"2"]


def test_kip_320_first_try_a_fetch_of_a_follower_that_has_not_heard() -> None:
    """One that follows in an earlier leader epoch commits nothing: its next cut may take what it showed."""
    cluster = Cluster(A, B)
    cluster.elect(A, isr=(A, B))
    cluster.write(A, b"1")
    cluster.catch_up(B, A)
    cluster.elect(A, isr=(A, B), heard_by=(A,))
    cluster.write(A, b"2")
    assert cluster.fetch(B, A) == ErrorCode.FENCED_LEADER_EPOCH
    assert cluster.leader(A).high_watermark == 1
    cluster.tell(B, A)
    cluster.catch_up(B, A)
    assert cluster.leader(A).high_watermark == 2


def test_what_comes_for_a_leader_epoch_that_is_over_is_known_by_its_object() -> None:
    cluster = Cluster(A, B)
    cluster.elect(A, isr=(A, B))
    former = cluster.follower(B)
    cluster.elect(A, isr=(A, B))
    assert not former.active
    assert cluster.follower(B) is not former


@pytest.mark.parametrize("order", [(A, B), (B, A), (A, C), (C, B), (B, C)])
def test_an_isr_of_three_outlives_two_deaths_in_a_row(order: tuple[int, int]) -> None:
    """A majority of three outlives one: this is what an in-sync set buys with its wait for all of its members."""
    cluster = Cluster(A, B, C)
    cluster.elect(A, isr=(A, B, C))
    leads, alive = A, [A, B, C]
    acknowledged: list[bytes] = []

    def written(value: bytes) -> None:
        cluster.write(leads, value)
        for each in alive:
            if each != leads:
                cluster.catch_up(each, leads)
        if cluster.leader(leads).high_watermark == cluster.leader(leads).log.end_offset:
            acknowledged.append(value)

    steps: list[Callable[[], None]] = [lambda: written(b"1"), lambda: written(b"2")]
    for each in steps:
        each()
    for dead in order:
        alive.remove(dead)
        leads = leads if leads in alive else alive[0]
        cluster.elect(leads, isr=tuple(alive), heard_by=tuple(alive))
        written(b"after %d" % dead)
    assert len(acknowledged) == 4
    assert cluster.contents(leads) == acknowledged
