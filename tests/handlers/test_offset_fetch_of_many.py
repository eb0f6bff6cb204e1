"""OffsetFetch of very many groups: answers are bytes as soon as they are known, and what is in doubt is refused."""

from __future__ import annotations

import gc
import time
from array import array
from collections.abc import Callable, Mapping
from typing import TypeVar

import pytest
from tests.handlers.groups import NONE, commit, find
from tests.server.conftest import BrokerThread, Peer

from ottla.groups.offsets import fetching
from ottla.groups.offsets.fetching import fetch_refused
from ottla.handlers import offset_fetch, offset_fetch_answer
from ottla.handlers.calls.call import Call
from ottla.handlers.calls.group_calls import Refusals
from ottla.handlers.calls.later import Later
from ottla.handlers.offset_fetch_answer import GroupsAnswer
from ottla.model import ErrorCode
from ottla.protocol.fields import LENGTH_BYTES
from ottla.protocol.generated.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartition,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopic,
    OffsetFetchResponseTopics,
)
from ottla.protocol.header import decode_response_header, encode_response
from ottla.security.principal import ANONYMOUS
from ottla.steps import PIECE, Steps, at_once

T = TypeVar("T")
KEY = OffsetFetchRequest.API_KEY
MANY = 2_000
CORRELATION = 77


def called(broker: BrokerThread, version: int, work: Callable[[Call], T]) -> T:
    """Does something on the broker's loop that needs a call."""

    def look(running: object) -> T:
        services = broker.broker.services
        assert services is not None
        return work(Call(services, version, CORRELATION, "me", ANONYMOUS, "127.0.0.1", "PLAINTEXT", 0))

    return broker.look(look)


def found_groups(count: int) -> list[OffsetFetchResponseGroup]:
    """Of different lengths."""
    return [
        OffsetFetchResponseGroup(
            group_id=f"group-{number}",
            topics=[
                OffsetFetchResponseTopics(
                    name=f"topic-{number}",
                    topic_id=bytes(16),
                    partitions=[
                        OffsetFetchResponsePartitions(partition_index=index, committed_offset=index, metadata="m")
                        for index in range(number % 7)
                    ],
                )
            ],
        )
        for number in range(count)
    ]


def frame_of(broker: BrokerThread, version: int, of: list[int], errors: Mapping[int, ErrorCode]) -> bytes:
    """What is answered about so many groups, where these are the partitions that keep them."""

    def make(call: Call) -> bytes:
        answer = GroupsAnswer(call, len(of))
        for group in found_groups(len(of)):
            at_once(answer.add(group))
        return bytes(at_once(answer.finished(Refusals(array("i", of), errors))))

    return called(broker, version, make)


@pytest.mark.parametrize("version", [8, 9, 10])
@pytest.mark.parametrize("count", [0, 1, 126, 127, 300])
def test_the_frame_is_that_of_the_whole_message(grouped: BrokerThread, version: int, count: int) -> None:
    expected = found_groups(count)
    if version >= 10:
        for group in expected:
            for topic in group.topics:
                topic.name = ""
    frame = frame_of(grouped, version, [0] * count, {})
    assert frame == encode_response(KEY, version, CORRELATION, OffsetFetchResponse(groups=expected))


def test_groups_whose_offsets_are_in_doubt_are_refused(grouped: BrokerThread, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(offset_fetch_answer, "_COPIED_BYTES", 500)
    of = [number % 5 - 1 for number in range(300)]
    errors = {2: ErrorCode.NOT_COORDINATOR, 3: ErrorCode.COORDINATOR_NOT_AVAILABLE}
    expected = [
        fetch_refused(group.group_id, errors[partition]) if partition in errors else group
        for partition, group in zip(of, found_groups(300), strict=True)
    ]
    frame = frame_of(grouped, 8, of, errors)
    assert frame == encode_response(KEY, 8, CORRELATION, OffsetFetchResponse(groups=expected))


def wait_for_load(broker: BrokerThread) -> None:
    while called(broker, 9, lambda call: call.services.groups.led.some_are_loaded):
        time.sleep(0.01)


@pytest.mark.parametrize("is_loaded_again", [False, True])
def test_a_group_whose_shard_is_given_up_while_others_are_read_is_refused(
    grouped: BrokerThread, client: Peer, is_loaded_again: bool
) -> None:
    """Nobody knows whether what was read of it is committed: not the next shard of that partition either."""
    assert commit(client, "first", {("t", 0): 5}) == {("t", 0): NONE}
    names = ["first", *(f"other-{number}" for number in range(20))]
    request = OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id=name, topics=None) for name in names])
    steps: list[Steps[Later]] = []

    def begin(call: Call) -> None:
        steps.append(offset_fetch.handle(call, request))
        for _ in range(20):
            next(steps[0])
        groups = call.services.groups
        groups.led.journal_failed(groups.partition_for("first"))

    def answered(call: Call) -> OffsetFetchResponse:
        if not steps:
            begin(call)
        frame = bytes(at_once(at_once(steps[0]).response))
        _, _, at = decode_response_header(frame, KEY, 9, LENGTH_BYTES)
        return OffsetFetchResponse.decode(frame, 9, at)[0]

    if is_loaded_again:
        called(grouped, 9, begin)
        wait_for_load(grouped)
    response = called(grouped, 9, answered)
    wait_for_load(grouped)
    assert response.groups[0].error_code == ErrorCode.NOT_COORDINATOR
    assert [group.group_id for group in response.groups] == names


def alive(kind: type) -> int:
    return sum(type(each) is kind for each in gc.get_objects())


def test_no_more_than_a_few_answers_are_objects_at_once(grouped: BrokerThread, client: Peer) -> None:
    find(client)
    names = [f"few-{number}" for number in range(MANY)]
    request = OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id=name, topics=None) for name in names])

    def work(call: Call) -> tuple[int, int]:
        most, count = 0, 0
        steps = offset_fetch.handle(call, request)
        for count, _ in enumerate(steps, 1):
            if count % 500 == 0:
                most = max(most, alive(OffsetFetchResponseGroup))
        return most, count

    most, count = called(grouped, 9, work)
    assert count >= MANY
    assert most <= 2 * PIECE
    assert not request.groups


def finished(steps: Steps[T]) -> tuple[int, T]:
    """How many steps it took, and the result."""
    count = 0
    while True:
        try:
            next(steps)
        except StopIteration as end:
            result: T = end.value
            return count, result
        count += 1


@pytest.mark.parametrize("topics", [1, MANY])
def test_an_old_request_that_is_refused_is_answered_in_steps(topics: int) -> None:
    """Before version 2 there is no place for the error of the group."""
    error = ErrorCode.NOT_COORDINATOR
    asked = [
        OffsetFetchRequestTopics(name=f"t{number}", partition_indexes=list(range(MANY // topics)))
        for number in range(topics)
    ]
    count, found = finished(offset_fetch._refused_one_by_one(asked, error))
    assert count >= MANY // 64
    assert [each.error_code for topic in found for each in topic.partitions] == [error] * MANY
    answered = [
        OffsetFetchResponseTopic(
            name=f"t{number}",
            partitions=[
                OffsetFetchResponsePartition(partition_index=index, committed_offset=5, metadata="m")
                for index in range(MANY // topics)
            ],
        )
        for number in range(topics)
    ]
    again = [OffsetFetchResponseTopic(name=topic.name, partitions=topic.partitions) for topic in found]
    count, _ = finished(offset_fetch._refuse_all(answered, error))
    assert count >= MANY // 64
    assert answered == again


def test_records_of_a_group_that_are_too_much_for_one_answer(
    grouped: BrokerThread, client: Peer, monkeypatch: pytest.MonkeyPatch
) -> None:
    grouped.create_topic("metadata", 4)
    find(client)
    metadata = "m" * 1000
    assert set(commit(client, "much", {("metadata", 0): 1, ("metadata", 1): 1}, metadata=metadata).values()) == {NONE}
    topics = [OffsetFetchRequestTopics(name="metadata", partition_indexes=[0, 1])]
    groups = [
        OffsetFetchRequestGroup(group_id="much", topics=None),
        OffsetFetchRequestGroup(group_id="much", topics=topics),
    ]

    def errors() -> list[int]:
        return [
            group.error_code for group in client.ask(OffsetFetchRequest(groups=groups), 8, OffsetFetchResponse).groups
        ]

    assert errors() == [NONE, NONE]
    monkeypatch.setattr(offset_fetch_answer, "ANSWER_BYTES_MAX", 3_000)
    assert errors() == [NONE, ErrorCode.INVALID_REQUEST]
    monkeypatch.setattr(fetching, "READ_BYTES_MAX", 1_500)
    assert errors() == [ErrorCode.INVALID_REQUEST] * 2
