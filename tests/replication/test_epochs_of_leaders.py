"""A leader's epoch is known from its beginning on, whether or not anything is written in it (Kafka's makeLeader)."""

from __future__ import annotations

from tests.replication.roles_world import DIRECTORIES, TP, RolesWorld
from tests.storage.log_world import append

FILE = f"{DIRECTORIES[0]}/{TP.topic}-{TP.partition}/leader-epoch-checkpoint"


def test_a_new_leader_knows_its_epoch() -> None:
    world = RolesWorld()
    world.role(epoch=0)
    assert world.leader.log.epochs.entries() == [(0, 0)]
    append(world.leader.log, b"a", b"b", epoch=0)
    world.role(epoch=3)
    assert world.leader.log.epochs.entries() == [(0, 0), (3, 2)]
    world.role(epoch=4)
    assert world.leader.log.epochs.entries() == [(0, 0), (4, 2)]
    append(world.leader.log, b"c", epoch=4)
    world.stop()
    assert world.ports.disk.read_file(FILE) == b"0\n2\n0 0\n4 2\n"


def test_an_epoch_without_records_is_known_after_each_start_and_writes_nothing() -> None:
    world = RolesWorld()
    world.role(epoch=0)
    world.stop()
    for epoch in (0, 1, 1):
        world.start()
        world.role(epoch=epoch, is_new=False)
        assert world.leader.log.epochs.entries() == [(epoch, 0)]
        world.stop()
        assert not world.ports.disk.exists(FILE)


def test_a_role_reads_no_epochs_since_the_opening_did() -> None:
    world = RolesWorld()
    world.role(epoch=0)
    append(world.leader.log, b"a", epoch=0)
    world.stop()
    world.start()
    reads = []
    read_file = world.ports.disk.read_file
    world.ports.disk.read_file = lambda path: (reads.append(path), read_file(path))[1]  # type: ignore[method-assign]
    world.role(epoch=2, is_new=False)
    append(world.leader.log, b"b", epoch=2)
    assert world.leader.log.epochs.entries() == [(0, 0), (2, 1)]
    assert reads.count(FILE) == 0


def test_an_epoch_without_records_stands_in_the_file_beside_others() -> None:
    """The file names the leader epoch that has no records as well, where a flush has another reason to write it."""
    world = RolesWorld()
    world.role(epoch=0)
    append(world.leader.log, b"a", epoch=0)
    world.role(epoch=1)
    world.stop()
    assert world.ports.disk.read_file(FILE) == b"0\n2\n0 0\n1 1\n"
    world.start()
    world.role(epoch=1, is_new=False)
    assert world.leader.log.epochs.entries() == [(0, 0), (1, 1)]
    assert not world.leader.log.leader_epochs.are_new
