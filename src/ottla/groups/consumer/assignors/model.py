"""What an assignor is given and what it gives back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from ottla.groups.consumer.member import NO_PARTITIONS, Partitions
from ottla.model import TopicId


class Candidate(NamedTuple):
    """A member, as assignors see it."""

    id: str
    instance_id: str | None
    #: Only topics that exist.
    topics: frozenset[TopicId]
    #: What it should have had until now.
    before: Partitions = NO_PARTITIONS


class Demand(NamedTuple):
    """How many partitions each topic has, and who wants some."""

    candidates: Sequence[Candidate]
    #: Of all topics that a candidate names; at least 0.
    counts: Mapping[TopicId, int]


#: What each candidate should have; those who get nothing may be missing.
Targets = dict[str, dict[TopicId, frozenset[int]]]
