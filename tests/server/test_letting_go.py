"""What a long message is made of is freed some at a time, and what others hold of it stays."""

from __future__ import annotations

import gc
from itertools import pairwise

from ottla.protocol.generated.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
    OffsetFetchResponseGroup,
)
from ottla.protocol.message import Structure
from ottla.server.letting_go import Parts
from ottla.steps import at_once

MANY = 5_000


def alive(kind: type[Structure]) -> int:
    return sum(type(each) is kind for each in gc.get_objects())


def request(count: int = MANY) -> OffsetFetchRequest:
    return OffsetFetchRequest(
        groups=[
            OffsetFetchRequestGroup(
                group_id=f"group-{number}",
                topics=[OffsetFetchRequestTopics(name=f"topic-{number}", partition_indexes=[number])],
            )
            for number in range(count)
        ]
    )


def test_a_message_is_freed_some_at_a_time() -> None:
    before = [alive(OffsetFetchRequestGroup), alive(OffsetFetchRequestTopics)]
    message = request()
    parts = Parts(message)
    assert sum(1 for _ in parts.found()) >= MANY // 64
    del message
    lives = [alive(OffsetFetchRequestGroup) + alive(OffsetFetchRequestTopics)]
    assert lives[0] == sum(before) + 2 * MANY
    lives += [alive(OffsetFetchRequestGroup) + alive(OffsetFetchRequestTopics) for _ in parts.let_go()]
    assert max(one - next_one for one, next_one in pairwise(lives)) <= 256
    assert lives[-1] == sum(before)


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
