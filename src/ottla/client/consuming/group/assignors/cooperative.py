"""Cooperative sticky: as sticky, but members keep what they have while the group rebalances (KIP-429).

A member that is to get a partition that another one still has does not get it in this round. Its owner sees that it is
missing, gives it up and has the group rebalance again; then it is free. So only what moves stands still.
"""

from __future__ import annotations

from collections.abc import Mapping

from ottla.client.consuming.group.assignors.assignor import Assignor, Topics
from ottla.client.consuming.group.assignors.claims import Claim, owners
from ottla.client.consuming.group.assignors.stickiness import assign_sticky
from ottla.client.consuming.group.assignors.user_data import decode_generation, encode_generation
from ottla.client.consuming.group.wire import NO_GENERATION, Assignment, Subscription
from ottla.model import TopicPartition


class CooperativeStickyAssignor(Assignor):
    name = "cooperative-sticky"
    cooperative = True

    def __init__(self) -> None:
        self._generation = NO_GENERATION

    def user_data(self, topics: frozenset[str]) -> bytes | None:
        """For leaders that do not know the field of the subscription where it stands as well."""
        return encode_generation(self._generation)

    def assigned(self, assignment: Assignment, generation: int) -> None:
        self._generation = generation

    def assign(self, topics: Topics, members: Mapping[str, Subscription]) -> dict[str, list[TopicPartition]]:
        claims = {member: Claim(one.owned, _generation(one)) for member, one in members.items()}
        wants = {member: one.topics for member, one in members.items()}
        owned = owners(claims)
        target = assign_sticky(topics.counts, wants, owned.by_partition)
        return {
            member: [one for one in partitions if all(owner == member for owner in owned.named.get(one, ()))]
            for member, partitions in target.items()
        }


def _generation(sent: Subscription) -> int:
    return decode_generation(sent.user_data) if sent.generation == NO_GENERATION else sent.generation
