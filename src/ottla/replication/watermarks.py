"""The high watermarks of all replicas here, as they are when somebody looks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ottla.model import TopicPartition
from ottla.replication.follower import Follower
from ottla.replication.leader import Leader


class CurrentWatermarks(Mapping[TopicPartition, int]):
    """For those who look at one partition after the other, over several turns; a copy would take one long one."""

    def __init__(self, leaders: Mapping[TopicPartition, Leader], followers: Mapping[TopicPartition, Follower]) -> None:
        self._leaders = leaders
        self._followers = followers

    def __getitem__(self, tp: TopicPartition) -> int:
        role = self._leaders.get(tp) or self._followers[tp]
        return role.high_watermark

    def __iter__(self) -> Iterator[TopicPartition]:
        yield from self._leaders
        yield from self._followers

    def __len__(self) -> int:
        return len(self._leaders) + len(self._followers)
