"""Topics of the source that are deleted before they were copied to where they were to be: nobody waits for them."""

from __future__ import annotations

import asyncio

import pytest

from ottla.client.admin.admin import Admin
from ottla.mirror import flow as flows
from ottla.mirror.flow import Flow
from ottla.mirror.ranges import copy_ranges
from ottla.model import TopicPartition
from tests.mirror.flows import SECONDS_MAX, Clusters, create, produce
from tests.mirror.test_ranges import clients


async def delete(bootstrap: str, topic: str) -> None:
    async with Admin(bootstrap_servers=bootstrap) as admin:
        await admin.delete_topic(topic)


@pytest.mark.parametrize("copied", [False, True], ids=["never copied", "copied in part"])
async def test_a_piece_of_a_topic_that_was_deleted_ends_and_says_so(clusters: Clusters, copied: bool) -> None:
    topic = f"gone-{copied}"
    await create(clusters.source, topic)
    await create(clusters.source, f"{topic}-not")
    gone, there = TopicPartition(topic, 0), TopicPartition(f"{topic}-not", 0)
    await produce(clusters.source, topic, [b"x"] * 5)
    await produce(clusters.source, f"{topic}-not", [b"y"] * 5)
    async with clients(clusters, f"{topic}.*") as opened:
        if copied:
            await copy_ranges(opened, {gone: 5})
        await delete(clusters.source, topic)
        async with asyncio.timeout(SECONDS_MAX):
            first, second = await copy_ranges(opened, {gone: 10, there: 5})
    assert first.stopped == f"{topic}-0: the source's topic was deleted before it was copied up to 10"
    assert (second.copied, second.stopped) == (5, None)


async def test_a_run_to_the_end_does_not_wait_for_a_topic_that_was_deleted(
    clusters: Clusters, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(flows, "ASK_SECONDS", 0.2)
    for topic in ("ended", "ended-not"):
        await create(clusters.source, topic)
        await produce(clusters.source, topic, [b"x"] * 5)
    flow = Flow(clusters.flow(topics="ended.*"))
    look_up_ends = flow._look_up_ends

    async def look_up_ends_and_delete() -> None:
        await look_up_ends()
        await delete(clusters.source, "ended")

    flow._look_up_ends = look_up_ends_and_delete  # type: ignore[method-assign]
    async with asyncio.timeout(SECONDS_MAX):
        await flow.run(exit_at_end=True)
    assert flow.stopped == ["ended-0: the source's topic was deleted before it was copied up to 5"]
