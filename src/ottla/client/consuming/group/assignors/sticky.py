"""Sticky: balance first, then stay. Members give everything up before they join, and say what they had."""

from __future__ import annotations

from collections.abc import Mapping

from ottla.client.consuming.group.assignors.assignor import Assignor, Topics
from ottla.client.consuming.group.assignors.claims import Claim, owners
from ottla.client.consuming.group.assignors.stickiness import assign_sticky
from ottla.client.consuming.group.assignors.user_data import decode_previous, encode_previous
from ottla.client.consuming.group.wire import NO_GENERATION, Assignment, Subscription
from ottla.model import TopicPartition


class StickyAssignor(Assignor):
    name = "sticky"

    def __init__(self) -> None:
        #: What this member got last, if anything.
        self._last: tuple[TopicPartition, ...] | None = None
        self._generation = NO_GENERATION

    def user_data(self, topics: frozenset[str]) -> bytes | None:
        return None if self._last is None else encode_previous(self._last, self._generation)

    def assigned(self, assignment: Assignment, generation: int) -> None:
        self._last = assignment.partitions
        self._generation = generation

    def assign(self, topics: Topics, members: Mapping[str, Subscription]) -> dict[str, list[TopicPartition]]:
        claims = {member: Claim(*decode_previous(one.user_data)) for member, one in members.items()}
        wants = {member: one.topics for member, one in members.items()}
        return assign_sticky(topics.counts, wants, owners(claims).by_partition)
