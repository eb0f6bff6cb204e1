"""The file that says where partitions shall be: the JSON that kafka-reassign-partitions reads and writes as well."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from ottla.cli.broker_ids import BROKER_ID_MAX
from ottla.cli.faults import CommandFault
from ottla.cli.group.partitions import PARTITION_MAX
from ottla.cli.json_file import read_json
from ottla.cli.options import check_name
from ottla.model import TopicPartition

_VERSION = 1
#: In Kafka's files: whichever log directory the broker chooses.
_ANY_DIRECTORY = "any"


def written(placement: Mapping[TopicPartition, Sequence[int]]) -> str:
    partitions = [
        {"topic": tp.topic, "partition": tp.partition, "replicas": list(replicas)}
        for tp, replicas in sorted(placement.items())
    ]
    return json.dumps({"version": _VERSION, "partitions": partitions})


def read(path: str) -> dict[TopicPartition, list[int]]:
    """Nothing where a plan had nothing to move. Raises CommandFault."""
    try:
        return _parsed(read_json(path))
    except (ValueError, TypeError, KeyError) as error:
        said = f"it lacks {error}" if isinstance(error, KeyError) else str(error)
        raise CommandFault(f"{path} is not what `ottla reassign plan` writes: {said}") from error


def _parsed(value: object) -> dict[TopicPartition, list[int]]:
    if not isinstance(value, dict) or value.get("version") != _VERSION or not isinstance(value["partitions"], list):
        raise ValueError('it must be {"version": 1, "partitions": [...]}')
    found: dict[TopicPartition, list[int]] = {}
    for one in value["partitions"]:
        tp, replicas = _placed(one)
        if tp in found:
            raise ValueError(f"{tp} stands there twice")
        found[tp] = replicas
    return found


def _placed(one: object) -> tuple[TopicPartition, list[int]]:
    if not isinstance(one, dict):
        raise TypeError(f"{one!r:.60} is not a topic, a partition and its replicas")
    topic, number, replicas = one["topic"], one["partition"], one["replicas"]
    if not isinstance(topic, str) or not _is_id(number, PARTITION_MAX) or not isinstance(replicas, list):
        raise TypeError(f"{one!r:.200} is not a topic, a partition and its replicas")
    check_name(topic)
    if not replicas or not all(_is_id(broker, BROKER_ID_MAX) for broker in replicas) or _repeats(replicas):
        raise ValueError(f"the replicas of {topic}-{number} must be different brokers: {replicas}")
    if any(where != _ANY_DIRECTORY for where in one.get("log_dirs") or ()):
        raise ValueError(
            f"it names log directories for {topic}-{number}, which are chosen by the brokers: leave log_dirs out, or "
            f'have "{_ANY_DIRECTORY}" there'
        )
    return TopicPartition(topic, number), replicas


def _is_id(value: object, most: int) -> bool:
    return type(value) is int and 0 <= value <= most


def _repeats(replicas: list[int]) -> bool:
    return len({*replicas}) != len(replicas)
