"""What the flow's group has committed is where the copies are, also after a commit that failed."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import suppress

import pytest

from ottla.client.admin.admin import Admin
from ottla.client.errors import CommitFailed, KafkaError, RequestTimedOut
from ottla.mirror.flow import Flow
from ottla.model import TopicPartition
from tests.mirror.flows import SECONDS_MAX, Clusters, create, mirroring, produce, until


def refusing(flow: Flow, error: KafkaError, times: int) -> list[Mapping[TopicPartition, int]]:
    """Has the next commits fail that say that something was copied; returns those, as they come."""
    refused: list[Mapping[TopicPartition, int]] = []
    commit = flow.reader.commit

    async def refuse(places: Mapping[TopicPartition, int]) -> None:
        if any(places.values()) and len(refused) < times:
            refused.append(places)
            raise error
        await commit(places)

    flow.reader.commit = refuse  # type: ignore[method-assign,assignment]
    return refused


@pytest.mark.parametrize("error", [RequestTimedOut("too slow"), CommitFailed("not now")], ids=["error", "refused"])
async def test_a_commit_that_failed_is_repeated_though_nothing_comes_any_more(
    clusters: Clusters, error: KafkaError
) -> None:
    topic = f"once-{type(error).__name__}"
    await create(clusters.source, topic)
    tp = TopicPartition(topic, 0)
    async with mirroring(clusters, topics=topic) as flow, Admin(bootstrap_servers=clusters.source) as admin:
        await until(lambda: flow.started, "the flow has its clients")
        refused = refusing(flow, error, 1)
        await produce(clusters.source, topic, [b"x"] * 3)
        async with asyncio.timeout(SECONDS_MAX / 2):
            while (place := (await admin.list_group_offsets(flow.group)).get(tp)) is None or place.offset < 3:  # noqa: ASYNC110
                await asyncio.sleep(0.05)
    assert refused == [{tp: 3}]


async def test_a_partition_that_comes_back_is_copied_though_its_last_commit_failed(clusters: Clusters) -> None:
    await create(clusters.source, "back")
    tp = TopicPartition("back", 0)
    async with mirroring(clusters, topics="back") as flow:
        await until(lambda: flow.started, "the flow has its clients")
        refusing(flow, RequestTimedOut("too slow"), 1_000)
        await produce(clusters.source, "back", [b"x"] * 3)
        await until(lambda: tp in flow.copies and flow.copies[tp].end == 3, "copied")
        with suppress(KafkaError):
            await flow.end([tp])
        flow.begin([tp])
        await produce(clusters.source, "back", [b"y"] * 2)
        await until(lambda: tp in flow.copies and flow.copies[tp].end == 5, "copied on")
