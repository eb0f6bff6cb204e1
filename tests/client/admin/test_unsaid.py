"""Rows that an answer leaves out: nobody knows what became of them, so they are neither done nor empty."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from tests.client.proxy import Action, Pass, Proxy, Reply, Request

from ottla.client.admin.admin import Admin
from ottla.client.admin.history import leader_epochs
from ottla.client.admin.results import ConfigChange, ConfigResource
from ottla.client.errors import BadAnswer, SomeFailed
from ottla.model import TopicPartition
from ottla.protocol.apis import ApiKey
from ottla.protocol.generated.alter_replica_log_dirs import (
    AlterReplicaLogDirPartitionResult,
    AlterReplicaLogDirsResponse,
    AlterReplicaLogDirTopicResult,
)


def shortened(key: ApiKey, rows: Callable[[Any], list[Any]], *, times: int = 1_000) -> Callable[[Request], Action]:
    """The last row is missing in the first answers of this kind."""
    left = times

    def rule(request: Request) -> Action:
        nonlocal left
        if request.key != key or not left:
            return Pass()
        left -= 1
        return Pass(lambda answer: rows(answer).pop())

    return rule


@pytest.mark.parametrize(
    ("key", "ask"),
    [
        (ApiKey.DESCRIBE_CONFIGS, lambda admin, both: admin.describe_configs(both)),
        (
            ApiKey.INCREMENTAL_ALTER_CONFIGS,
            lambda admin, both: admin.incremental_alter_configs(
                {one: [ConfigChange("retention.ms", "1000")] for one in both}
            ),
        ),
        (
            ApiKey.ALTER_CONFIGS,
            lambda admin, both: admin.alter_configs({one: {"retention.ms": "1000"} for one in both}),
        ),
    ],
)
async def test_configurations(
    bootstrap: str, new_name: str, key: ApiKey, ask: Callable[[Admin, list[ConfigResource]], Any]
) -> None:
    rows = "results" if key is ApiKey.DESCRIBE_CONFIGS else "responses"
    rule = shortened(key, lambda answer: getattr(answer, rows))
    async with Proxy(bootstrap, rule) as proxy, Admin(bootstrap_servers=proxy.bootstrap) as admin:
        both = [ConfigResource.topic(f"{new_name}-{number}") for number in range(2)]
        for one in both:
            await admin.create_topic(one.name)
        with pytest.raises(SomeFailed) as caught:
            await ask(admin, both)
    assert len(caught.value.results) == 1
    (error,) = caught.value.errors.values()
    assert isinstance(error, BadAnswer)
    assert "says nothing of it" in str(error)


async def test_replicas_that_are_to_change_their_folder(bootstrap: str) -> None:
    one, two = (TopicPartition("one", number) for number in range(2))
    rows = [AlterReplicaLogDirPartitionResult(partition_index=0)]

    def rule(request: Request) -> Action:
        answered = AlterReplicaLogDirTopicResult(topic_name="one", partitions=rows)
        is_it = request.key == ApiKey.ALTER_REPLICA_LOG_DIRS
        return Reply(AlterReplicaLogDirsResponse(results=[answered])) if is_it else Pass()

    async with Proxy(bootstrap, rule) as proxy, Admin(bootstrap_servers=proxy.bootstrap) as admin:
        broker = (await admin.describe_cluster()).brokers[0].id
        with pytest.raises(SomeFailed) as caught:
            await admin.alter_replica_log_dirs({broker: {one: "/a", two: "/a"}})
    assert list(caught.value.results) == [(broker, one)]
    assert isinstance(caught.value.errors[broker, two], BadAnswer)


async def test_positions_of_a_group_are_asked_for_again(bootstrap: str, new_name: str) -> None:
    group = f"group-of-{new_name}"
    wanted = {TopicPartition(new_name, number): 5 for number in range(2)}

    def partitions(answer: Any) -> list[Any]:
        return answer.topics[0].partitions

    async with Proxy(bootstrap) as proxy, Admin(bootstrap_servers=proxy.bootstrap, retry_backoff_ms=1) as admin:
        await admin.create_topic(new_name, partitions=2)
        proxy.rule = shortened(ApiKey.OFFSET_COMMIT, partitions, times=1)
        await admin.alter_group_offsets(group, wanted)
        assert proxy.count(ApiKey.OFFSET_COMMIT) == 2
        proxy.rule = shortened(ApiKey.OFFSET_FETCH, lambda answer: partitions(answer.groups[0]), times=1)
        found = (await admin.list_groups_offsets({group: list(wanted)}))[group]
        assert {tp: one.offset for tp, one in found.items()} == wanted
        assert proxy.count(ApiKey.OFFSET_FETCH) == 2
        proxy.rule = shortened(ApiKey.OFFSET_DELETE, partitions, times=1)
        await admin.delete_group_offsets(group, wanted)
        assert proxy.count(ApiKey.OFFSET_DELETE) == 2


async def test_where_a_leadership_began(bootstrap: str, topic: str) -> None:
    rule = shortened(ApiKey.OFFSET_FOR_LEADER_EPOCH, lambda answer: answer.topics)
    async with Proxy(bootstrap, rule) as proxy, Admin(bootstrap_servers=proxy.bootstrap) as admin:
        broker = (await admin.describe_cluster()).brokers[0].id
        with pytest.raises(BadAnswer, match=f"{topic}-0: the answer says nothing of it"):
            await leader_epochs(admin.cluster, broker, topic, 0, 0, 30_000)
