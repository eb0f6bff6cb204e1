"""OffsetCommit, OffsetFetch and OffsetDelete in all their versions, by names and by ids, with what does not exist."""

from __future__ import annotations

import itertools

import pytest
from tests.handlers.groups import NONE, commit, fetch
from tests.server.conftest import BrokerThread, Peer

from ottla.controller.interface import TopicRef
from ottla.model import OFFSETS_TOPIC, ErrorCode
from ottla.protocol.generated.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)
from ottla.protocol.generated.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
    OffsetDeleteResponse,
)
from ottla.protocol.generated.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
)

UNKNOWN_TOPIC, UNKNOWN_ID = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.UNKNOWN_TOPIC_ID
STRANGE_ID = b"\x07" * 16

_numbers = itertools.count()


@pytest.fixture
def group() -> str:
    return f"offsets-{next(_numbers)}"


def topic_id(broker: BrokerThread, name: str) -> bytes:
    def look(b: object) -> bytes:
        found = broker.broker.metadata.topic(name)
        assert found is not None
        return found.id

    return broker.look(look)


@pytest.mark.parametrize("version", range(2, 10))
def test_commits_by_name(client: Peer, group: str, version: int) -> None:
    answer = commit(client, group, {("t", 0): 5, ("t", 1): 6, ("u", 0): 7}, version=version)
    assert answer == {("t", 0): NONE, ("t", 1): NONE, ("u", 0): NONE}
    assert fetch(client, group, None) == {("t", 0): 5, ("t", 1): 6, ("u", 0): 7}


@pytest.mark.parametrize("version", range(2, 10))
def test_the_answer_to_a_repeated_commit(client: Peer, group: str, version: int) -> None:
    """It has its own correlation id, and no topics or partitions but its own."""
    for offsets in ({("t", 0): 1}, {("t", 1): 2}, {("u", 0): 3}, {("t", 0): 4, ("t", 1): 5}) * 2:
        assert commit(client, group, offsets, version=version) == dict.fromkeys(offsets, NONE)
        assert client.last_correlation == client.correlation
    assert fetch(client, group, None) == {("t", 0): 4, ("t", 1): 5, ("u", 0): 3}


@pytest.mark.parametrize("version", [2, 8, 9])
def test_commits_that_follow_one_another(client: Peer, group: str, version: int) -> None:
    """A client need not wait for an answer before it commits again; each has its own, in their order."""
    frames, first = b"", client.correlation
    for offset in range(60):
        parts = [OffsetCommitRequestPartition(partition_index=0, committed_offset=offset)]
        request = OffsetCommitRequest(group_id=group, topics=[OffsetCommitRequestTopic(name="t", partitions=parts)])
        frames += client.frame(request, version)
    client.send(frames)
    for number in range(1, 61):
        answer = client.answer(OffsetCommitResponse, version)
        assert answer.topics[0].partitions[0].error_code == NONE
        assert client.last_correlation == first + number
    assert fetch(client, group, None) == {("t", 0): 59}


@pytest.mark.parametrize("version", range(2, 10))
def test_a_commit_tells_what_does_not_exist_and_keeps_the_rest(client: Peer, group: str, version: int) -> None:
    answer = commit(client, group, {("t", 0): 5, ("t", 9): 6, ("none", 0): 7, ("t", -1): 8}, version=version)
    assert answer == {("t", 0): NONE, ("t", 9): UNKNOWN_TOPIC, ("none", 0): UNKNOWN_TOPIC, ("t", -1): UNKNOWN_TOPIC}
    assert fetch(client, group, None) == {("t", 0): 5}


def test_a_commit_of_nothing_that_exists(client: Peer, group: str) -> None:
    assert commit(client, group, {("none", 0): 7}) == {("none", 0): UNKNOWN_TOPIC}
    assert commit(client, group, {}) == {}


def test_the_empty_group_id_may_commit(client: Peer) -> None:
    assert commit(client, "", {("t", 0): 3}) == {("t", 0): NONE}
    assert fetch(client, "", {"t": [0]}) == {("t", 0): 3}


def test_commits_and_fetches_by_id(client: Peer, grouped: BrokerThread, group: str) -> None:
    known = topic_id(grouped, "t")
    parts = [OffsetCommitRequestPartition(partition_index=n, committed_offset=40 + n) for n in (0, 1, 2)]
    topics = [OffsetCommitRequestTopic(topic_id=each, partitions=parts) for each in (known, STRANGE_ID)]
    answer = client.ask(OffsetCommitRequest(group_id=group, topics=topics), 10, OffsetCommitResponse)
    errors = {(t.topic_id, p.partition_index): p.error_code for t in answer.topics for p in t.partitions}
    assert errors == {
        **{(known, n): (NONE, NONE, UNKNOWN_TOPIC)[n] for n in range(3)},
        **{(STRANGE_ID, n): UNKNOWN_ID for n in range(3)},
    }
    asked = [OffsetFetchRequestTopics(topic_id=each, partition_indexes=[0, 1]) for each in (known, STRANGE_ID)]
    groups = [
        OffsetFetchRequestGroup(group_id=group, topics=asked),
        OffsetFetchRequestGroup(group_id=group, topics=None),
        OffsetFetchRequestGroup(group_id="nobody", topics=None),
    ]
    answered = client.ask(OffsetFetchRequest(groups=groups), 10, OffsetFetchResponse).groups
    found = [
        {(t.topic_id, p.partition_index): (p.committed_offset, p.error_code) for t in g.topics for p in t.partitions}
        for g in answered
    ]
    assert [g.group_id for g in answered] == [group, group, "nobody"]
    ours = {(known, 0): (40, NONE), (known, 1): (41, NONE)}
    assert found == [{**ours, **{(STRANGE_ID, n): (-1, UNKNOWN_ID) for n in (0, 1)}}, ours, {}]


@pytest.mark.parametrize("version", range(1, 8))
def test_one_groups_offsets_in_the_older_layout(client: Peer, group: str, version: int) -> None:
    commit(client, group, {("t", 0): 5}, metadata="note")
    topics = [OffsetFetchRequestTopic(name="t", partition_indexes=[0, 1]), OffsetFetchRequestTopic(name="none")]
    topics[1].partition_indexes = [3]
    answer = client.ask(OffsetFetchRequest(group_id=group, topics=topics), version, OffsetFetchResponse)
    assert answer.error_code == NONE
    found = {
        (t.name, p.partition_index): (p.committed_offset, p.metadata, p.error_code)
        for t in answer.topics
        for p in t.partitions
    }
    assert found == {("t", 0): (5, "note", NONE), ("t", 1): (-1, "", NONE), ("none", 3): (-1, "", NONE)}


@pytest.mark.parametrize("version", range(2, 8))
def test_all_of_a_groups_offsets_in_the_older_layout(client: Peer, group: str, version: int) -> None:
    commit(client, group, {("t", 1): 5})
    answer = client.ask(OffsetFetchRequest(group_id=group, topics=None), version, OffsetFetchResponse)
    assert [(t.name, p.partition_index, p.committed_offset) for t in answer.topics for p in t.partitions] == [
        ("t", 1, 5)
    ]


@pytest.mark.parametrize("version", [8, 9])
def test_several_groups_offsets(client: Peer, group: str, version: int) -> None:
    commit(client, group, {("t", 0): 5})
    commit(client, group + "b", {("u", 0): 6})
    groups = [
        OffsetFetchRequestGroup(group_id=group, topics=None),
        OffsetFetchRequestGroup(
            group_id=group + "b", topics=[OffsetFetchRequestTopics(name="u", partition_indexes=[0])]
        ),
        OffsetFetchRequestGroup(group_id=group + "c", topics=[]),
    ]
    answered = client.ask(OffsetFetchRequest(groups=groups), version, OffsetFetchResponse).groups
    assert [
        (g.group_id, [(t.name, p.partition_index, p.committed_offset) for t in g.topics for p in t.partitions])
        for g in answered
    ] == [(group, [("t", 0, 5)]), (group + "b", [("u", 0, 6)]), (group + "c", [])]
    assert client.ask(OffsetFetchRequest(groups=[]), version, OffsetFetchResponse).groups == []


def test_metadata_at_and_over_its_limit(client: Peer, group: str) -> None:
    assert commit(client, group, {("t", 0): 5}, metadata="x" * 4096) == {("t", 0): NONE}
    too_large = commit(client, group, {("t", 0): 6, ("t", 1): 6}, metadata="x" * 4097)
    assert set(too_large.values()) == {ErrorCode.OFFSET_METADATA_TOO_LARGE}
    assert fetch(client, group, {"t": [0]}) == {("t", 0): 5}


def test_a_commit_of_more_than_a_batch_takes_is_refused_whole(client: Peer, grouped: BrokerThread, group: str) -> None:
    if grouped.look(lambda b: b.metadata.topic("wide")) is None:
        grouped.create_topic("wide", 400)
    offsets = {("wide", number): 1 for number in range(400)}
    answer = commit(client, group, offsets, metadata="x" * 4000)
    assert set(answer.values()) == {ErrorCode.UNKNOWN_SERVER_ERROR}
    assert set(fetch(client, group, {"wide": [0, 399]}).values()) == {-1}
    assert set(commit(client, group, offsets, metadata="x").values()) == {NONE}


def delete(peer: Peer, group: str, *topics: tuple[str, list[int]]) -> OffsetDeleteResponse:
    asked = [
        OffsetDeleteRequestTopic(
            name=name, partitions=[OffsetDeleteRequestPartition(partition_index=number) for number in numbers]
        )
        for name, numbers in topics
    ]
    answer = peer.ask(OffsetDeleteRequest(group_id=group, topics=asked), 0, OffsetDeleteResponse)
    assert isinstance(answer, OffsetDeleteResponse)
    return answer


def test_offsets_are_deleted(client: Peer, group: str) -> None:
    commit(client, group, {("t", 0): 5, ("t", 1): 6})
    answer = delete(client, group, ("t", [0]), ("none", [1]))
    assert answer.error_code == NONE
    assert {(t.name, p.partition_index): p.error_code for t in answer.topics for p in t.partitions} == {
        ("t", 0): NONE,
        ("none", 1): UNKNOWN_TOPIC,
    }
    assert fetch(client, group, None) == {("t", 1): 6}


def test_offsets_of_a_group_that_is_not_there_cannot_be_deleted(client: Peer) -> None:
    answer = delete(client, "nobody", ("t", [0]))
    assert (answer.error_code, answer.topics) == (ErrorCode.GROUP_ID_NOT_FOUND, [])
    assert delete(client, "nobody", ("none", [0])).error_code == ErrorCode.GROUP_ID_NOT_FOUND
    assert delete(client, "", ("t", [0])).error_code == ErrorCode.INVALID_GROUP_ID


def test_offsets_go_with_their_topic(client: Peer, grouped: BrokerThread, group: str) -> None:
    grouped.create_topic("short", 1)
    commit(client, group, {("short", 0): 5, ("t", 0): 6})
    services = grouped.broker.services
    assert services is not None
    grouped.run(services.controller.delete_topics([TopicRef("short")]))
    assert fetch(client, group, None) == {("t", 0): 6}
    grouped.create_topic("short", 1)
    assert fetch(client, group, {"short": [0]}) == {("short", 0): -1}


def test_the_offsets_topic_itself_may_be_consumed_in_a_group(client: Peer, group: str) -> None:
    assert commit(client, group, {(OFFSETS_TOPIC, 0): 1}) == {(OFFSETS_TOPIC, 0): NONE}
