"""What an admin client is given: a lone string is no list, and what no request can say is an error of ours."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from ottla.client.admin.admin import Admin
from ottla.client.admin.results import ConfigChange, ConfigResource, NewTopic
from ottla.client.errors import BadArgument
from ottla.client.sync import Admin as SyncAdmin
from tests.client.conftest import make_topic

Asked = Callable[[Any], Any]
TOPIC = ConfigResource.topic("orders")

#: A single name where several are asked for would be taken for its letters: "ab" for the topics "a" and "b".
LONE: list[tuple[Asked, str]] = [
    (lambda admin: admin.delete_topics("ab"), r"topics must be a list of names: \['ab'\], not 'ab'"),
    (lambda admin: admin.describe_topics("ab"), r"topics must be a list of names: \['ab'\]"),
    (lambda admin: admin.delete_groups("ab"), r"groups must be a list of names: \['ab'\]"),
    (lambda admin: admin.describe_groups("ab"), r"groups must be a list of names"),
    (lambda admin: admin.list_groups_offsets("ab"), r"groups must be a list of names"),
    (lambda admin: admin.list_groups(states="Empty"), r"states must be a list of names: \['Empty'\]"),
    (lambda admin: admin.list_groups(types="classic"), r"types must be a list of names"),
    (lambda admin: admin.describe_configs([TOPIC], names="segment.ms"), r"names must be a list of names"),
]
BAD: list[tuple[Asked, str]] = [
    (lambda admin: admin.create_topic(None), "topic must be a str, not None"),
    (lambda admin: admin.create_topic(b"x"), "topic must be a str, not bytes"),
    (lambda admin: admin.create_topics(["x"]), r"topics\[0\] must be a NewTopic, not a str"),
    (lambda admin: admin.create_topic("x", partitions="3"), "partitions must be an int, not a str"),
    (lambda admin: admin.create_topic("x", replication_factor=1.0), "replication_factor must be an int, not a float"),
    (
        lambda admin: admin.create_topic("x", configs={"retention.ms": 5}),
        "the value of retention.ms must be a str or None, not an int",
    ),
    (lambda admin: admin.create_topic("x", configs=["a"]), "configs must be a mapping of names to values, not a list"),
    (lambda admin: admin.delete_topic(None), "topic must be a str, not None"),
    (lambda admin: admin.describe_topic(None), "topic must be a str, not None"),
    (lambda admin: admin.delete_topics(7), "topics must be a list of names, not an int"),
    (lambda admin: admin.delete_topics(["a", 7]), r"topics\[1\] must be a str, not an int"),
    (lambda admin: admin.create_partitions({"x": "3"}), "the count of 'x' must be an int, not a str"),
    (lambda admin: admin.create_partitions([("x", 3)]), "counts must be a mapping of topics to counts, not a list"),
    (
        lambda admin: admin.create_partitions({"x": 3}, assignments=5),
        "assignments must be a mapping of topics to lists",
    ),
    (
        lambda admin: admin.create_partitions({"x": 3}, assignments={"x": 5}),
        "the assignments of 'x' must be a list with the brokers of each new partition, not an int",
    ),
    (
        lambda admin: admin.create_partitions({"x": 3}, assignments={"x": [1]}),
        r"the assignments of 'x'\[0\] must be a list of ids, not an int",
    ),
    (
        lambda admin: admin.create_partitions({"x": 3}, assignments={"x": ["12"]}),
        r"the assignments of 'x'\[0\] must be a list of ids, not a str",
    ),
    (
        lambda admin: admin.create_topics([NewTopic("x", assignments=[[1]])]),  # type: ignore[arg-type]
        "the assignments of 'x' must be a mapping of partitions to brokers, not a list",
    ),
    (
        lambda admin: admin.create_topics([NewTopic("x", assignments={0: 1})]),  # type: ignore[dict-item]
        "the brokers of x-0 must be a list of ids, not an int",
    ),
    (
        lambda admin: admin.create_topics([NewTopic("x", assignments={0: "12"})]),  # type: ignore[dict-item]
        "the brokers of x-0 must be a list of ids, not a str",
    ),
    (
        lambda admin: admin.list_offsets({("x", 0): -1}, isolation_level="read_committed"),
        r"isolation_level must be 0 \(read_uncommitted\) or 1 \(read_committed\), not 'read_committed'",
    ),
    (lambda admin: admin.list_offsets({("x", 0): -1}, isolation_level=2), "isolation_level must be 0 .*, not 2"),
    (lambda admin: admin.list_offsets({("x", 0): "latest"}), "the time of x-0 must be an int, not a str"),
    (lambda admin: admin.list_offsets({"x": 1}), r"partitions\[0\] must be \(topic, partition\), not a str"),
    (lambda admin: admin.delete_records({("x", 0): "5"}), "the offset of x-0 must be an int, not a str"),
    (lambda admin: admin.describe_configs(["x"]), r"resources\[0\] must be a ConfigResource, not a str"),
    (lambda admin: admin.describe_configs(TOPIC), r"resources\[0\] must be a ConfigResource, not an? "),
    (lambda admin: admin.incremental_alter_configs({"x": {"a": "5"}}), r"resources\[0\] must be a ConfigResource"),
    (
        lambda admin: admin.incremental_alter_configs({TOPIC: [ConfigChange("segment.ms", 5)]}),  # type: ignore[arg-type]
        "the value of segment.ms must be a str or None, not an int",
    ),
    (lambda admin: admin.incremental_alter_configs({TOPIC: {"a": "5"}}), "must be a list of ConfigChange"),
    (
        lambda admin: admin.alter_configs({TOPIC: {"segment.ms": 5}}),
        "the value of segment.ms must be a str or None, not an int",
    ),
    (lambda admin: admin.describe_group(None), r"groups\[0\] must be a str, not None"),
    (lambda admin: admin.alter_group_offsets("g", {("x", 0): "1"}), "the offset must be an int, not a str"),
    (lambda admin: admin.alter_group_offsets(None, {("x", 0): 1}), "group must be a str, not None"),
    (lambda admin: admin.delete_group_offsets("g", ["x"]), r"partitions\[0\] must be \(topic, partition\), not a str"),
    (lambda admin: admin.describe_producers(["x"]), r"partitions\[0\] must be \(topic, partition\), not a str"),
    (lambda admin: admin.describe_log_dirs(1), "brokers must be a list of ids, not an int"),
    (lambda admin: admin.describe_log_dirs(["1"]), r"brokers\[0\] must be an int, not a str"),
    (lambda admin: admin.alter_replica_log_dirs({"1": {}}), r"brokers\[0\] must be an int, not a str"),
    (lambda admin: admin.alter_replica_log_dirs([]), "moves must be a mapping of brokers to partitions, not a list"),
    (lambda admin: admin.alter_replica_log_dirs({1: 5}), "the moves of broker 1 must be a mapping of partitions to"),
    (lambda admin: admin.alter_replica_log_dirs({1: {("x", 0): 5}}), "the directory of x-0 must be a str, not an int"),
    (lambda admin: admin.describe_log_dirs(topics="x"), "topics must be a mapping of topics to partitions, not a str"),
    (lambda admin: admin.describe_log_dirs(topics={"x": None}), "the partitions of 'x' must be a list of numbers, not"),
    (
        lambda admin: admin.describe_log_dirs(topics={"x": ["0"]}),
        r"the partitions of 'x'\[0\] must be an int, not a str",
    ),
    (lambda admin: admin.alter_configs(""), "configs must be a mapping of resources to configurations, not a str"),
    (
        lambda admin: admin.incremental_alter_configs([]),
        "changes must be a mapping of resources to changes, not a list",
    ),
    (lambda admin: admin.alter_partition_reassignments([]), "replicas must be a mapping of partitions to brokers, not"),
    (lambda admin: admin.alter_partition_reassignments({("x", 0): 1}), "brokers must be a list of ids, not an int"),
    (lambda admin: admin.update_features({"f": "2"}), "the level of 'f' must be an int, not a str"),
    (lambda admin: admin.update_features({"f": 2}, "up"), "change must be a FeatureChange, not a str"),
    (lambda admin: admin.elect_leaders("clean"), "kind must be an ElectionKind, not 'clean'"),
    (lambda admin: admin.elect_leaders(timeout_ms="1"), "timeout_ms must be an int, not a str"),
    (
        lambda admin: admin.list_partition_reassignments(timeout_ms=-1),
        "timeout_ms must be from 0 to 2147483647, not -1",
    ),
    (
        lambda admin: admin.list_groups_offsets({"g": 1}),
        r"partitions must be a list of \(topic, partition\), not an int",
    ),
    (lambda admin: admin.list_groups_offsets({1: None}), r"groups\[0\] must be a str, not an int"),
    (lambda admin: admin.describe_group("\ud800"), r"groups\[0\] '\\ud800' is no text that UTF-8 can write"),
    (lambda admin: admin.fence_producers(["x" * 40_000]), r"transactional_ids\[0\] has 40000 bytes: 32767 at most"),
    (
        lambda admin: admin.create_topic("x", configs={"retention.ms": "\ud800"}),
        r"the value of retention.ms '\\ud800' is no text",
    ),
    (
        lambda admin: admin.describe_configs([ConfigResource.topic("x" * 40_000)]),
        r"resources\[0\]: the name has 40000 bytes",
    ),
]


@pytest.mark.parametrize(("ask", "said"), [*LONE, *BAD])
async def test_it_is_refused(bootstrap: str, ask: Asked, said: str) -> None:
    async with Admin(bootstrap_servers=bootstrap) as admin:
        with pytest.raises(BadArgument, match=said.replace(".ms", r"\.ms")):
            await ask(admin)


def test_the_synchronous_face(bootstrap: str) -> None:
    with SyncAdmin(bootstrap_servers=bootstrap) as admin:
        for ask, said in [*LONE, *BAD]:
            with pytest.raises(BadArgument, match=said.replace(".ms", r"\.ms")):
                ask(admin)


async def test_topics_of_one_letter_survive(bootstrap: str) -> None:
    """`delete_topics("ab")` once deleted the topics "a" and "b"."""
    await make_topic(bootstrap, "q")
    async with Admin(bootstrap_servers=bootstrap) as admin:
        with pytest.raises(BadArgument):
            await admin.delete_topics("q")
        assert "q" in await admin.list_topics()
        await admin.delete_topics(["q"])


async def test_pairs_are_partitions_too(bootstrap: str, topic: str) -> None:
    pair: Any = (topic, 0)
    async with Admin(bootstrap_servers=bootstrap) as admin:
        assert (await admin.list_offsets({pair: -1}))[pair].offset == 0
        assert (await admin.delete_records({pair: 0}))[pair] == 0
        assert await admin.describe_producers([pair]) == {pair: []}
        await admin.alter_group_offsets(topic, {pair: 0})
        assert (await admin.list_group_offsets(topic, [pair]))[pair].offset == 0
        await admin.delete_group_offsets(topic, [pair])
