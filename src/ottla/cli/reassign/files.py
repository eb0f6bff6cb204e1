"""The file that says where partitions shall be: the JSON that kafka-reassign-partitions reads and writes as well."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from ottla.cli.faults import CommandFault
from ottla.model import TopicPartition

_VERSION = 1


def written(placement: Mapping[TopicPartition, Sequence[int]]) -> str:
    partitions = [
        {"topic": tp.topic, "partition": tp.partition, "replicas": list(replicas)}
        for tp, replicas in sorted(placement.items())
    ]
    return json.dumps({"version": _VERSION, "partitions": partitions})


def read(path: str) -> dict[TopicPartition, list[int]]:
    try:
        with open(path, encoding="utf-8") as file:
            return _parsed(json.load(file))
    except OSError as error:
        raise CommandFault(f"{path}: {error.strerror or error}") from error
    except (ValueError, TypeError, KeyError) as error:
        said = f"it lacks {error}" if isinstance(error, KeyError) else str(error)
        raise CommandFault(f"{path} is not what `ottla reassign plan` writes: {said}") from error


def _parsed(value: object) -> dict[TopicPartition, list[int]]:
    if not isinstance(value, dict) or value.get("version") != _VERSION:
        raise ValueError('it must be {"version": 1, "partitions": [...]}')
    found: dict[TopicPartition, list[int]] = {}
    for one in value["partitions"]:
        topic, number, replicas = one["topic"], one["partition"], one["replicas"]
        if not isinstance(topic, str) or type(number) is not int or not isinstance(replicas, list):
            raise TypeError(f"{one} is not a topic, a partition and its replicas")
        if not replicas or any(type(broker) is not int for broker in replicas) or len({*replicas}) != len(replicas):
            raise ValueError(f"the replicas of {topic}-{number} must be different brokers: {replicas}")
        tp = TopicPartition(topic, number)
        if tp in found:
            raise ValueError(f"{tp} stands there twice")
        found[tp] = replicas
    if not found:
        raise ValueError("it names no partition")
    return found
