"""TxnOffsetCommit: offsets that wait for the end of a transaction, and who may commit them."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import pytest
from tests.handlers.groups import commit, join, sync, wait_loaded
from tests.handlers.transactional import TransactionalClient, mark, until
from tests.handlers.transactions.conftest import transactional_broker
from tests.server.conftest import BrokerThread, Peer

from ottla.model import OFFSETS_TOPIC, ErrorCode
from ottla.protocol.generated.delete_groups import DeleteGroupsRequest, DeleteGroupsResponse
from ottla.protocol.generated.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
)

Begun = Callable[..., TransactionalClient]
NONE = ErrorCode.NONE
UNSTABLE = ErrorCode.UNSTABLE_OFFSET_COMMIT
_numbers = itertools.count()


@pytest.fixture
def group() -> str:
    return f"pending-{next(_numbers)}"


def offset(peer: Peer, group: str, topic: str, *, stable: bool = False, partition: int = 0) -> tuple[int, int]:
    """Error and offset of one partition."""
    asked = OffsetFetchRequestGroup(
        group_id=group, topics=[OffsetFetchRequestTopics(name=topic, partition_indexes=[partition])]
    )
    answer = peer.ask(OffsetFetchRequest(groups=[asked], require_stable=stable), 8, OffsetFetchResponse).groups[0]
    assert not answer.error_code
    found = answer.topics[0].partitions[0]
    return found.error_code, found.committed_offset


def settled(peer: Peer, group: str, topic: str) -> int:
    """Once no transaction is open."""
    until(lambda: offset(peer, group, topic, stable=True)[0] != UNSTABLE)
    error, found = offset(peer, group, topic, stable=True)
    assert not error
    return found


@pytest.mark.parametrize("version", range(6))
def test_offsets_are_seen_when_their_transaction_is_committed(
    peer: Peer, topic: str, group: str, begun: Begun, version: int
) -> None:
    client = begun(2 if version == 5 else 0)
    client.find(group)
    if version < 5:
        assert client.add_offsets(group) == NONE
    assert client.commit_offsets(group, {(topic, 0): 7, (topic, 1): 8}, version) == {(topic, 0): NONE, (topic, 1): NONE}
    assert offset(peer, group, topic) == (NONE, -1)
    assert offset(peer, group, topic, stable=True)[0] == UNSTABLE
    assert client.end(commits=True) == NONE
    assert settled(peer, group, topic) == 7
    assert offset(peer, group, topic, partition=1) == (NONE, 8)


def test_offsets_of_an_aborted_transaction_were_never_there(peer: Peer, topic: str, group: str, begun: Begun) -> None:
    client = begun()
    client.find(group)
    assert commit(peer, group, {(topic, 0): 3}) == {(topic, 0): NONE}
    client.add_offsets(group)
    client.commit_offsets(group, {(topic, 0): 7})
    assert offset(peer, group, topic) == (NONE, 3)
    assert client.end(commits=False) == NONE
    assert settled(peer, group, topic) == 3


def test_offsets_outside_of_a_transaction(peer: Peer, topic: str, group: str, begun: Begun) -> None:
    """The group's partition was not added to it; and a late one finds that it has ended."""
    client = begun()
    client.find(group)
    for version, error in ((3, ErrorCode.INVALID_TXN_STATE), (4, ErrorCode.TRANSACTION_ABORTABLE)):
        assert client.commit_offsets(group, {(topic, 0): 7}, version) == {(topic, 0): error}
    client.add_offsets(group)
    assert client.commit_offsets(group, {(topic, 0): 7}) == {(topic, 0): NONE}
    client.end(commits=True)
    assert settled(peer, group, topic) == 7
    assert client.commit_offsets(group, {(topic, 0): 9}, 3) == {(topic, 0): ErrorCode.INVALID_TXN_STATE}
    assert settled(peer, group, topic) == 7


def test_a_producer_that_was_replaced(peer: Peer, topic: str, group: str, begun: Begun) -> None:
    old = begun()
    old.find(group)
    old.add_offsets(group)
    assert old.commit_offsets(group, {(topic, 0): 7}) == {(topic, 0): NONE}
    new = begun()  # which aborts the transaction of the old one
    assert new.epoch > old.epoch
    late = old.commit_offsets(group, {(topic, 0): 9})
    assert late == {(topic, 0): ErrorCode.INVALID_PRODUCER_EPOCH}
    assert settled(peer, group, topic) == -1


def test_groups_and_topics_that_there_are_not(peer: Peer, topic: str, begun: Begun) -> None:
    client = begun()
    client.find("g")
    client.add_offsets("g")
    unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    asked = {(topic, 0): 1, (topic, 9): 1, ("nowhere", 0): 1}
    assert client.commit_offsets("g", asked) == {(topic, 0): NONE, (topic, 9): unknown, ("nowhere", 0): unknown}
    assert client.commit_offsets("", {(topic, 0): 1}) == {(topic, 0): ErrorCode.INVALID_GROUP_ID}
    generation = {"generation_id": 5, "member_id": "m"}
    answer = client.commit_offsets("another", {(topic, 0): 1}, **generation)
    # Its partition may be the one that was added, or the other.
    assert answer[topic, 0] in {ErrorCode.ILLEGAL_GENERATION, ErrorCode.TRANSACTION_ABORTABLE}
    client.end(commits=False)


def test_a_member_commits_in_its_own_generation_only(
    peer: Peer, running: BrokerThread, topic: str, group: str, begun: Begun
) -> None:
    client = begun()
    client.find(group)
    joined = join(peer, group)
    assert sync(peer, group, joined).error_code == NONE
    client.add_offsets(group)
    fits = {"member_id": joined.member_id, "generation_id": joined.generation_id}
    assert client.commit_offsets(group, {(topic, 0): 1}, **fits) == {(topic, 0): NONE}
    for wrong, error in (
        ({"generation_id": joined.generation_id + 1}, ErrorCode.ILLEGAL_GENERATION),
        ({"member_id": "nobody"}, ErrorCode.UNKNOWN_MEMBER_ID),
    ):
        assert client.commit_offsets(group, {(topic, 0): 9}, **{**fits, **wrong}) == {(topic, 0): error}
    # Who names no member is no fencing asked of, in a group that has some.
    assert client.commit_offsets(group, {(topic, 0): 2}) == {(topic, 0): NONE}
    assert client.end(commits=True) == NONE
    assert settled(peer, group, topic) == 2


def test_a_group_is_deleted_with_what_waits(peer: Peer, topic: str, group: str, begun: Begun) -> None:
    client = begun()
    client.find(group)
    client.add_offsets(group)
    client.commit_offsets(group, {(topic, 0): 7})
    deleted = peer.ask(DeleteGroupsRequest(groups_names=[group]), 2, DeleteGroupsResponse)
    assert [each.error_code for each in deleted.results] == [NONE]
    assert client.end(commits=True) == NONE
    assert settled(peer, group, topic) == -1


@pytest.mark.parametrize("commits", [True, False])
def test_what_waits_is_found_again_after_a_restart(tmp_path: Any, commits: bool) -> None:
    """From the topic alone; and the markers that come then end it."""
    for life in range(3):
        with transactional_broker(tmp_path) as running, running.connect() as peer:
            if life == 0:
                running.create_topic("t")
                client = TransactionalClient(peer)
                client.init()
                client.find("g")
                client.add_offsets("g")
                assert client.commit_offsets("g", {("t", 0): 7}) == {("t", 0): NONE}
                continue
            client.peer = peer
            client.find("g")
            if life == 1:
                wait_loaded(peer, "g")
                assert offset(peer, "g", "t", stable=True)[0] == UNSTABLE
                if commits:
                    assert client.commit_offsets("g", {("t", 0): 8}) == {("t", 0): NONE}
                assert client.end(commits=commits) == NONE
                assert settled(peer, "g", "t") == (8 if commits else -1)
            else:
                wait_loaded(peer, "g")
                assert offset(peer, "g", "t", stable=True) == (NONE, 8 if commits else -1)


def test_a_marker_ends_it_without_the_coordinators_word(peer: Peer, topic: str, group: str, begun: Begun) -> None:
    """As `kafka-transactions abort` does it; one of an older coordinator does not."""
    client = begun()
    client.find(group)
    client.add_offsets(group)
    client.commit_offsets(group, {(topic, 0): 7})
    places = [(OFFSETS_TOPIC, 0), (OFFSETS_TOPIC, 1)]
    assert mark(peer, client, *places, coordinator_epoch=9) == [NONE, NONE]
    assert offset(peer, group, topic, stable=True) == (NONE, -1)
    assert mark(peer, client, *places, coordinator_epoch=8) == [ErrorCode.TRANSACTION_COORDINATOR_FENCED] * 2
