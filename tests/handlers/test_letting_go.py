"""What a long message is made of is freed some at a time, and what others hold of it stays."""

from __future__ import annotations

from itertools import pairwise

from ottla.handlers.calls.letting_go import Parts
from ottla.protocol.generated.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
    OffsetFetchResponseGroup,
)
from ottla.steps import at_once

MANY = 5_000


class Group(OffsetFetchRequestGroup):
    __slots__ = ()
    freed = 0

    def __del__(self) -> None:
        Group.freed += 1


class Topic(OffsetFetchRequestTopics):
    __slots__ = ()
    freed = 0

    def __del__(self) -> None:
        Topic.freed += 1


Group.__slots__ = OffsetFetchRequestGroup.__slots__
Topic.__slots__ = OffsetFetchRequestTopics.__slots__


def request(count: int = MANY) -> OffsetFetchRequest:
    return OffsetFetchRequest(
        groups=[
            Group(
                group_id=f"group-{number}",
                topics=[Topic(name=f"topic-{number}", partition_indexes=[number])],
            )
            for number in range(count)
        ]
    )


def test_a_message_is_freed_some_at_a_time() -> None:
    Group.freed = Topic.freed = 0
    message = request()
    parts = Parts(message)
    assert sum(1 for _ in parts.found()) >= MANY // 64
    del message
    assert Group.freed == Topic.freed == 0
    freed = [0, *(Group.freed + Topic.freed for _ in parts.let_go())]
    assert max(after - before for before, after in pairwise(freed)) <= 256
    assert freed[-1] == 2 * MANY


def test_what_others_hold_stays_whole() -> None:
    message = request(100)
    parts = Parts(message)
    at_once(parts.found())
    at_once(parts.let_go())
    assert message == request(100)


def test_elements_of_arrays_of_numbers_and_names_are_freed_some_at_a_time() -> None:
    numbers = list(range(1_000_000, 1_000_000 + MANY))
    parts = Parts(OffsetFetchRequestTopics(name="t", partition_indexes=numbers))
    assert sum(1 for _ in parts.found()) >= MANY // 256 - 1
    assert sum(1 for _ in parts.let_go()) >= MANY // 256


def test_one_element_that_is_said_many_times_is_looked_into_once() -> None:
    class Counted(OffsetFetchResponseGroup):
        looks = 0

        def __getattribute__(self, name: str) -> object:
            Counted.looks += name == "topics"
            return super().__getattribute__(name)

    Counted.__slots__ = OffsetFetchResponseGroup.__slots__
    message = OffsetFetchRequest(groups=[Counted(group_id="g")] * MANY)  # type: ignore[list-item]
    at_once(Parts(message).found())
    assert Counted.looks == 1
