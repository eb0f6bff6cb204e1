"""What a leader has found for a follower is sent while it leads: afterwards its log may be cut, and have another
leader's records at the same place (`tests/testing/sim/test_scripted_bugs.py` has what came of that)."""

from __future__ import annotations

import pytest
from tests.replication.roles_world import NOW, OTHER, US, RolesWorld
from tests.storage.log_world import batch

from ottla.handlers.calls.peer import FilePiece
from ottla.handlers.fetch.asked import AskedPartition
from ottla.handlers.fetch.reading import PartitionRead
from ottla.model import ErrorCode


@pytest.fixture
def broker() -> RolesWorld:
    broker = RolesWorld()
    assert broker.role(1, US, replicas=(US, OTHER), isr=(US, OTHER), partition_epoch=0) == ErrorCode.NONE
    broker.leader.append(batch(b"above the watermark"), NOW)
    broker.leader.log.write_staged()
    return broker


def found(broker: RolesWorld) -> PartitionRead:
    """As for a follower that asks from the beginning, before its records are copied."""
    leader = broker.leader
    read = PartitionRead(AskedPartition("t", 0, 1, 0, -1, 0, 1 << 20))
    read.leader = read.of_leader = leader
    read.slice = leader.log.read(0, 1 << 20, leader.log.end_offset)
    read.is_copied = True
    return read


@pytest.mark.parametrize("epoch", [2, 3])
def test_what_another_leads_by_now_is_not_copied(broker: RolesWorld, epoch: int) -> None:
    read = found(broker)
    broker.role(epoch, OTHER, replicas=(US, OTHER), isr=(US, OTHER), partition_epoch=1)
    read.load()
    assert (read.error, read.records, read.size) == (ErrorCode.NOT_LEADER_OR_FOLLOWER, b"", 0)


@pytest.mark.parametrize("epoch", [2, 3])
def test_who_leads_on_has_its_records_still(broker: RolesWorld, epoch: int) -> None:
    read = found(broker)
    broker.role(epoch, US, replicas=(US, OTHER), isr=(US, OTHER), partition_epoch=1)
    read.load()
    assert read.error == ErrorCode.NONE
    assert len(read.records) == read.size > 0


def test_what_goes_by_file_may_have_changed_once_another_leads(broker: RolesWorld) -> None:
    read = found(broker)
    assert read.slice is not None
    assert read.slice.file is not None
    to_a_follower = FilePiece(read.slice.file, 0, read.size, broker.leader)
    to_a_consumer = FilePiece(read.slice.file, 0, read.size)
    assert not to_a_follower.may_have_changed
    broker.role(2, OTHER, replicas=(US, OTHER), isr=(US, OTHER), partition_epoch=1)
    assert to_a_follower.may_have_changed
    assert not to_a_consumer.may_have_changed
    for piece in (to_a_follower, to_a_consumer):
        piece.file.release()
