"""The metadata cache: one way in, nothing from a controller that was replaced, and nothing handed out ever changes."""

from __future__ import annotations

from collections.abc import Iterator

from ottla.metadata import BrokerEndpoints, Endpoint, MetadataCache, MetadataUpdate, PartitionState
from ottla.metadata.cache import TopicMetadata
from ottla.metadata.updates import DEFAULT_BROKER
from ottla.model import NO_BROKER, OFFSETS_TOPIC, ZERO_TOPIC_ID, BrokerId, Epoch, TopicId, TopicPartition

ID_A, ID_B = TopicId(b"a" * 16), TopicId(b"b" * 16)
ONE = (BrokerId(1),)


def state(topic: str, partition: int, *, topic_id: TopicId = ID_A, leader: int = 1, epoch: int = 0) -> PartitionState:
    return PartitionState(topic, partition, topic_id, Epoch(1), BrokerId(leader), Epoch(epoch), ONE, ONE, epoch)


def update(*states: PartitionState, epoch: int = 1, **more: object) -> MetadataUpdate:
    return MetadataUpdate(controller_epoch=Epoch(epoch), partitions=states, **more)  # type: ignore[arg-type]


def test_an_empty_cache_knows_nothing() -> None:
    cache = MetadataCache()
    assert cache.topic("a") is cache.topic_by_id(ID_A) is None
    assert cache.partition("a", 0) is None
    assert (cache.cluster_id, cache.controller_id, dict(cache.brokers), dict(cache.topics)) == (None, NO_BROKER, {}, {})
    assert cache.topic_config("a") == {}


def test_partitions_come_in_order_and_change_one_by_one() -> None:
    cache = MetadataCache()
    assert cache.apply(update(state("a", 1), state("a", 0), state("b", 0, topic_id=ID_B)))
    before = cache.topic("a")
    assert before is not None
    assert [found.partition for found in before.partitions] == [0, 1]
    assert cache.topic_by_id(ID_B) is cache.topic("b")
    assert cache.topic_name(ID_A) == "a"
    untouched = cache.topic("b")
    assert cache.apply(update(state("a", 1, leader=-1, epoch=1), state("a", 2)))
    after = cache.topic("a")
    assert after is not None
    assert [found.leader for found in after.partitions] == [1, NO_BROKER, 1]
    # A partition without a leader stays, and what was handed out before is as it was.
    assert [found.leader for found in before.partitions] == [1, 1]
    assert cache.topic("b") is untouched
    assert cache.partition("a", 1) == state("a", 1, leader=-1, epoch=1)
    assert cache.partition("a", 3) is cache.partition("a", -1) is None


def test_a_topic_that_is_known_in_part_is_found_by_number() -> None:
    cache = MetadataCache()
    cache.apply(update(state("a", 5)))
    assert cache.partition("a", 5) is not None
    assert cache.partition("a", 0) is None


class OnceThrough(tuple[PartitionState, ...]):
    """Nobody goes through all of it."""

    def __iter__(self) -> Iterator[PartitionState]:
        raise AssertionError("ten thousand partitions, for each of a hundred thousand that a request may name")


def test_a_partition_that_is_not_there_is_not_looked_for_one_by_one() -> None:
    whole = TopicMetadata("a", ID_A, OnceThrough(state("a", number) for number in range(8)))
    assert [whole.partition(number) for number in (-1, 8, 2**31 - 1)] == [None] * 3
    in_part = TopicMetadata("a", ID_A, OnceThrough(state("a", number) for number in (3, 5, 9)))
    found = [in_part.partition(number) for number in range(11)]
    assert [each.partition for each in found if each is not None] == [3, 5, 9]


def test_each_update_raises_the_generation_and_is_told() -> None:
    cache = MetadataCache()
    told: list[tuple[MetadataUpdate, int]] = []
    cache.listen(lambda got: told.append((got, cache.generation)))
    first, second = update(state("a", 0)), update(topic_configs={"a": {"x": "1"}})
    cache.apply(first)
    cache.apply(second)
    assert told == [(first, 1), (second, 2)]


def test_a_replaced_controller_changes_nothing() -> None:
    cache = MetadataCache()
    cache.apply(update(state("a", 0), epoch=5))
    told: list[MetadataUpdate] = []
    cache.listen(told.append)
    assert not cache.apply(update(state("a", 0, epoch=9), epoch=4, topics_deleted=["a"]))
    assert cache.partition("a", 0) == state("a", 0)
    assert (cache.generation, cache.controller_epoch, told) == (1, 5, [])
    assert cache.apply(update(state("a", 0, epoch=9), epoch=6))


def test_deletion_forgets_names_ids_and_overrides() -> None:
    cache = MetadataCache()
    cache.apply(update(state("a", 0), topic_configs={"a": {"retention.ms": "1"}}))
    cache.apply(update(topics_deleted=["a", "never-was"]))
    assert cache.topic("a") is cache.topic_by_id(ID_A) is None
    assert cache.topic_config("a") == {}


def test_a_topic_under_a_new_id_is_another_topic() -> None:
    cache = MetadataCache()
    cache.apply(update(state("a", 0), state("a", 1)))
    cache.apply(update(state("a", 0, topic_id=ID_B)))
    topic = cache.topic("a")
    assert topic is not None
    assert (topic.id, len(topic.partitions)) == (ID_B, 1)
    assert cache.topic_by_id(ID_A) is None


def test_listeners_hear_of_all_topics_that_are_gone_whatever_the_update_names() -> None:
    cache = MetadataCache()
    gone: list[list[str]] = []
    cache.listen(lambda got: gone.append(list(got.topics_deleted)))
    for each in (
        update(state("a", 0), state("b", 0, topic_id=ID_B)),
        update(state("a", 0), whole=True),
        update(state("a", 0, topic_id=ID_B)),
        update(state("a", 0, topic_id=ID_A), whole=True),
        update(topics_deleted=["a", "never-was"], whole=True),
        # Old requests say no ids.
        update(state("a", 0, topic_id=ZERO_TOPIC_ID)),
        update(state("a", 0)),
        update(state("a", 0, topic_id=ZERO_TOPIC_ID), whole=True),
    ):
        cache.apply(each)
    assert gone == [[], ["b"], ["a"], ["a"], ["a", "never-was"], [], [], []]


def test_a_whole_update_replaces_everything() -> None:
    cache = MetadataCache()
    cache.apply(
        update(
            state("a", 0),
            state("a", 1),
            state("b", 0, topic_id=ID_B),
            topic_configs={"a": {"x": "1"}, "b": {"x": "2"}},
            broker_configs={"1": {"y": "1"}, DEFAULT_BROKER: {"y": "0"}},
        )
    )
    assert (cache.broker_config(1), cache.default_broker_config(), cache.broker_config(2)) == (
        {"y": "1"},
        {"y": "0"},
        {},
    )
    cache.apply(update(state("a", 0), whole=True, topic_configs={"a": {"x": "3"}}))
    assert list(cache.topics) == ["a"]
    topic = cache.topic("a")
    assert topic is not None
    assert len(topic.partitions) == 1
    assert cache.topic_by_id(ID_B) is None
    assert (cache.topic_config("a"), cache.topic_config("b"), cache.broker_config(1)) == ({"x": "3"}, {}, {})


def test_brokers_are_replaced_as_a_whole_and_found_by_listener() -> None:
    cache = MetadataCache()
    inside, outside = Endpoint("IN", "PLAINTEXT", "a", 1), Endpoint("OUT", "SSL", "b", 2)
    two = BrokerEndpoints(BrokerId(2), (inside, outside), "r", 7)
    one = BrokerEndpoints(BrokerId(1), (inside,), None, 8)
    cache.apply(update(brokers=[two, one], cluster_id="c", controller_id=BrokerId(2)))
    assert list(cache.brokers) == [1, 2]
    assert (cache.cluster_id, cache.controller_id) == ("c", 2)
    assert two.endpoint("OUT") == outside
    assert one.endpoint("OUT") is None
    cache.apply(update(state("a", 0)))
    assert list(cache.brokers) == [1, 2]
    cache.apply(update(brokers=[one]))
    assert list(cache.brokers) == [1]


def test_internal_topics_are_marked() -> None:
    cache = MetadataCache()
    cache.apply(update(state(OFFSETS_TOPIC, 0), state("a", 0, topic_id=ID_B)))
    assert [(name, topic.is_internal) for name, topic in cache.topics.items()] == [(OFFSETS_TOPIC, True), ("a", False)]


def test_a_partition_state_is_known_by_topic_and_number() -> None:
    found = state("a", 3)
    assert TopicPartition(found.topic, found.partition) == ("a", 3)
