"""What a broker remembers of partitions, and what it forgets first."""

from __future__ import annotations

from ottla.metadata import MetadataCache, MetadataUpdate, PartitionState
from ottla.metadata.history import BEFORE, CHANGES_MAX, PartitionHistory
from ottla.model import BrokerId, Epoch, TopicId


def state(leader: int, epoch: int, *isr: int, topic: str = "t", topic_id: bytes = b"t" * 16) -> PartitionState:
    members = tuple(BrokerId(one) for one in isr)
    return PartitionState(
        topic, 0, TopicId(topic_id), Epoch(1), BrokerId(leader), Epoch(epoch), members, members, partition_epoch=epoch
    )


class Looked:
    def __init__(self, total_max: int = 1000) -> None:
        self.now_ms = 0
        self.cache = MetadataCache()
        self.history = self.cache.history = PartitionHistory(lambda: self.now_ms, total_max)

    def hear(self, *states: PartitionState, whole: bool = False) -> None:
        self.now_ms += 1
        self.cache.apply(MetadataUpdate(controller_epoch=Epoch(1), partitions=states, whole=whole))

    def seen(self, topic: str = "t") -> list[tuple[int, int, int, tuple[int, ...]]]:
        found = self.history.of(topic, 0)
        return [(one.time_ms, one.state.leader, one.state.leader_epoch, one.state.isr) for one in found]


def test_changes_are_kept_in_order_with_what_was_before() -> None:
    looked = Looked()
    looked.hear(state(1, 0, 1, 2))
    assert looked.seen() == []  # since when it is so nobody knows
    looked.hear(state(1, 0, 1, 2))
    assert looked.seen() == []
    looked.hear(state(1, 0, 1))
    looked.hear(state(2, 1, 2), whole=True)
    assert looked.seen() == [(BEFORE, 1, 0, (1, 2)), (3, 1, 0, (1,)), (4, 2, 1, (2,))]
    assert looked.history.of("t", 1) == looked.history.of("u", 0) == ()


def test_a_topic_that_is_made_anew_begins_anew() -> None:
    looked = Looked()
    looked.hear(state(1, 0, 1, 2))
    looked.hear(state(1, 0, 1))
    looked.hear(state(2, 0, 2, 1, topic_id=b"u" * 16))
    looked.hear(state(2, 0, 2, topic_id=b"u" * 16))
    assert [one.state.topic_id for one in looked.history.of("t", 0)] == [b"t" * 16, b"u" * 16, b"u" * 16][1:]


def test_both_bounds_hold() -> None:
    looked = Looked(total_max=100)
    for name in ("a", "b", "c"):
        looked.hear(state(1, 0, 1, topic=name))
    looked.hear(state(1, 1, 1, topic="a"))
    for epoch in range(1, 60):
        looked.hear(state(1, epoch, 1, topic="b"))
    assert [one[2] for one in looked.seen("b")] == list(range(60 - CHANGES_MAX, 60))
    assert [one[2] for one in looked.seen("a")] == [0, 1]
    # The partition that has been quiet for longest goes first.
    for name in map(str, range(40)):
        looked.hear(state(1, 0, 1, topic=name))
        looked.hear(state(1, 1, 1, topic=name))
    assert looked.seen("a") == []
    assert len(looked.seen("39")) == 2
    assert sum(len(looked.history.of(name, 0)) for name in ["a", "b", *map(str, range(40))]) <= 100
