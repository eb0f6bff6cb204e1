"""What members had before: whom a partition belongs to when two of them say that it is theirs.

A member that was away (asleep, cut off) may still name what others have got since: of two claims the one of the younger
generation counts. Two of the same generation cannot both be right, so that neither counts.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from ottla.model import TopicPartition


class Claim(NamedTuple):
    owned: Iterable[TopicPartition]
    generation: int


class Owners(NamedTuple):
    #: Who keeps a partition if balance allows.
    by_partition: dict[TopicPartition, str]
    #: Every member that named a partition: until all but one have let go of it, it must not be given to somebody else.
    named: dict[TopicPartition, list[str]]


def owners(claims: Mapping[str, Claim]) -> Owners:
    best: dict[TopicPartition, tuple[int, str | None]] = {}
    named: dict[TopicPartition, list[str]] = {}
    for member in sorted(claims):
        generation = claims[member].generation
        for partition in dict.fromkeys(claims[member].owned):
            named.setdefault(partition, []).append(member)
            known = best.get(partition)
            if known is None or generation > known[0]:
                best[partition] = (generation, member)
            elif generation == known[0]:
                best[partition] = (generation, None)
    return Owners({partition: owner for partition, (_, owner) in best.items() if owner is not None}, named)
