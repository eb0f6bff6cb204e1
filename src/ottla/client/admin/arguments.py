"""What an admin client is given, checked before anything is asked: an error names the argument.

A lone string where several names are wanted is refused, since Python would go through its letters:
`delete_topics("ab")` would delete the topics "a" and "b".
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ottla.client.admin.group_results import CommittedOffset
from ottla.client.admin.results import ConfigChange, ConfigResource, ElectionKind, FeatureChange, NewTopic
from ottla.client.arguments import (
    INT16_MAX,
    INT32_MAX,
    INT64_MAX,
    a_kind_of,
    check_value,
    check_values,
    checked_integer,
    checked_items,
    checked_offset,
    checked_partitions,
    checked_text,
    checked_topic,
)
from ottla.client.errors import BadArgument
from ottla.client.wire.offsets import READ_COMMITTED, READ_UNCOMMITTED
from ottla.model import TopicPartition


def checked_names(given: Any, what: str) -> list[str]:
    if isinstance(given, str):
        raise BadArgument(f"{what} must be a list of names: [{given!r}], not {given!r}")
    if isinstance(given, bytes) or not isinstance(given, Iterable):
        raise BadArgument(f"{what} must be a list of names, not {a_kind_of(given)}")
    names = list(given)
    for number, name in enumerate(names):
        checked_text(name, f"{what}[{number}]")
    return names


def checked_new_topics(given: Any) -> list[NewTopic]:
    topics = _all_of(given, NewTopic, "topics")
    for topic in topics:
        checked_topic(topic.name)
        checked_integer(topic.partitions, "partitions", INT32_MAX, least=-1)
        checked_integer(topic.replication_factor, "replication_factor", INT32_MAX, least=-1)
        check_values(topic.configs)
        _check_assignments(topic)
    return topics


def _check_assignments(topic: NewTopic) -> None:
    for partition, brokers in checked_items(
        topic.assignments, f"the assignments of {topic.name!r} must be a mapping of partitions to brokers"
    ):
        number = checked_integer(partition, f"the assignments of {topic.name!r}: the partition", INT32_MAX)
        checked_brokers(brokers, f"the brokers of {topic.name}-{number}")


def checked_new_partitions(given: Any) -> dict[str, list[list[int]]]:
    """The brokers of each new partition, by topic."""
    found: dict[str, list[list[int]]] = {}
    for topic, rows in checked_items(given, "assignments must be a mapping of topics to lists of brokers"):
        what = f"the assignments of {checked_topic(topic)!r}"
        if isinstance(rows, str | bytes) or not isinstance(rows, Iterable):
            raise BadArgument(f"{what} must be a list with the brokers of each new partition, not {a_kind_of(rows)}")
        found[topic] = [checked_brokers(row, f"{what}[{at}]") for at, row in enumerate(rows)]
    return found


def checked_isolation(given: Any) -> int:
    """0 or 1; the consumer's words for them are not taken, since other calls here take numbers too."""
    if isinstance(given, bool) or given not in (READ_UNCOMMITTED, READ_COMMITTED):
        raise BadArgument(
            f"isolation_level must be {READ_UNCOMMITTED} (read_uncommitted) or {READ_COMMITTED} (read_committed), "
            f"not {given!r:.80}"
        )
    return int(given)


def check_counts(given: Any) -> None:
    for topic, count in checked_items(given, "counts must be a mapping of topics to counts"):
        checked_topic(topic)
        checked_integer(count, f"the count of {topic!r}", INT32_MAX)


def checked_levels(given: Any) -> dict[str, int]:
    levels: dict[str, int] = {}
    for name, level in checked_items(given, "levels must be a mapping of features to levels"):
        levels[checked_text(name, "the feature")] = checked_integer(level, f"the level of {name!r}", INT16_MAX)
    return levels


def checked_change(given: Any) -> FeatureChange:
    if not isinstance(given, FeatureChange):
        raise BadArgument(f"change must be a FeatureChange, not {a_kind_of(given)}")
    return given


def checked_resources(given: Any) -> list[ConfigResource]:
    resources: list[ConfigResource] = _all_of(given, ConfigResource, "resources")
    for number, resource in enumerate(resources):
        checked_text(resource.name, f"resources[{number}]: the name")
    return resources


def check_changes(given: Mapping[ConfigResource, Sequence[ConfigChange]]) -> None:
    checked_items(given, "changes must be a mapping of resources to changes")
    checked_resources(given)
    for resource, changes in given.items():
        if not isinstance(changes, Sequence) or not all(isinstance(one, ConfigChange) for one in changes):
            raise BadArgument(f"the changes of {resource.name!r} must be a list of ConfigChange")
        for change in changes:
            check_value(change.name, change.value)


def check_configs(given: Mapping[ConfigResource, Mapping[str, str | None]]) -> None:
    checked_items(given, "configs must be a mapping of resources to configurations")
    checked_resources(given)
    for configs in given.values():
        check_values(configs)


def checked_by_partition(given: Any, what: str, least: int) -> dict[TopicPartition, int]:
    """Numbers by partition: times, or offsets."""
    pairs = checked_items(given, f"what is asked must be a mapping of partitions to {what}s")
    partitions = checked_partitions(given)
    return {
        tp: checked_integer(number, f"the {what} of {tp}", INT64_MAX, least=least)
        for tp, (_, number) in zip(partitions, pairs, strict=True)
    }


def checked_commits(given: Any) -> dict[TopicPartition, CommittedOffset]:
    pairs = checked_items(given, "offsets must be a mapping of partitions to offsets")
    partitions = checked_partitions(given)
    return {
        tp: one if isinstance(one, CommittedOffset) else CommittedOffset(checked_offset(one, f"{tp}: the offset"))
        for tp, (_, one) in zip(partitions, pairs, strict=True)
    }


def checked_replicas(given: Any) -> dict[TopicPartition, list[int] | None]:
    pairs = checked_items(given, "replicas must be a mapping of partitions to brokers")
    return {
        tp: None if brokers is None else checked_brokers(brokers)
        for tp, (_, brokers) in zip(checked_partitions(given), pairs, strict=True)
    }


def check_moves(given: Any) -> None:
    pairs = checked_items(given, "moves must be a mapping of brokers to partitions")
    checked_brokers(given)
    for broker, moves in pairs:
        paths = checked_items(moves, f"the moves of broker {broker} must be a mapping of partitions to directories")
        for tp, (_, path) in zip(checked_partitions(moves), paths, strict=True):
            checked_text(path, f"the directory of {tp}")


def checked_numbers(given: Any) -> dict[str, list[int]]:
    """Partitions by topic."""
    found: dict[str, list[int]] = {}
    for topic, numbers in checked_items(given, "topics must be a mapping of topics to partitions"):
        what = f"the partitions of {checked_topic(topic)!r}"
        if isinstance(numbers, str | bytes) or not isinstance(numbers, Iterable):
            raise BadArgument(f"{what} must be a list of numbers, not {a_kind_of(numbers)}")
        found[topic] = [checked_integer(one, f"{what}[{at}]", INT32_MAX) for at, one in enumerate(numbers)]
    return found


def checked_groups(given: Any) -> dict[str, list[TopicPartition] | None]:
    """Groups, each with the partitions that are meant, or None for all."""
    if not isinstance(given, Mapping):
        return dict.fromkeys(checked_names(given, "groups"))
    names = checked_names(given, "groups")
    return {name: None if given[name] is None else checked_partitions(given[name]) for name in names}


def checked_kind(given: Any) -> ElectionKind:
    try:
        return ElectionKind(given)
    except ValueError:
        raise BadArgument(f"kind must be an ElectionKind, not {given!r:.80}") from None


def checked_brokers(given: Any, what: str = "brokers") -> list[int]:
    if isinstance(given, str | bytes) or not isinstance(given, Iterable):
        raise BadArgument(f"{what} must be a list of ids, not {a_kind_of(given)}")
    return [checked_integer(one, f"{what}[{number}]", INT32_MAX) for number, one in enumerate(given)]


def checked_producers(given: Any) -> list[int]:
    if isinstance(given, str | bytes) or not isinstance(given, Iterable):
        raise BadArgument(f"producer_ids must be a list of ids, not {a_kind_of(given)}")
    return [checked_integer(one, f"producer_ids[{number}]", INT64_MAX) for number, one in enumerate(given)]


def _all_of(given: Any, kind: type[Any], what: str) -> list[Any]:
    if isinstance(given, kind) or not isinstance(given, Iterable):
        raise BadArgument(f"{what}[0] must be a {kind.__name__}, not {a_kind_of(given)}: give a list of them")
    found = list(given)
    for number, one in enumerate(found):
        if not isinstance(one, kind):
            raise BadArgument(f"{what}[{number}] must be a {kind.__name__}, not {a_kind_of(one)}")
    return found
