"""A flow as a streaming query, on three brokers of which leaders are killed, the source's and the copy's.

One cluster is both sides, under two names: what moves are the leaders of two topics, whichever cluster they are of.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.mirror.flows import SECONDS_MAX, Clusters, contents, records_of
from tests.mirror.test_kills import end_of, producing, until_end

import ottla.spark
import ottla.testing
from ottla.client.admin.admin import Admin
from ottla.model import TopicPartition
from ottla.testing import Cluster

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("spark"), pytest.mark.timeout(600)]

TP = TopicPartition("led", 0)
COPY = "A.led"
#: Of what is copied before a leader is killed, and after it.
RECORDS = 200


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    with ottla.testing.cluster(3, properties={"min.insync.replicas": "2"}) as made:
        made.create_topic(TP.topic, partitions=1, replication_factor=3)
        yield made


def test_every_record_once_while_leaders_are_killed(spark: Any, cluster: Cluster, tmp_path: Path) -> None:
    clusters = Clusters(cluster.bootstrap, cluster.bootstrap)
    properties = clusters.properties(topics=TP.topic, replication_factor="3")
    frame = ottla.spark.mirror(spark, properties)
    writing = frame.writeStream.format("noop").option("checkpointLocation", str(tmp_path / "checkpoint"))

    async def copied_while_killed() -> None:
        query = writing.start()
        try:
            async with producing(clusters.source, TP.topic, 10**9), Admin(bootstrap_servers=cluster.bootstrap) as admin:
                await until_copied(admin, query)
                for topic in (COPY, TP.topic):
                    await asyncio.to_thread(cluster.kill_leader, topic, 0)  # it comes back by itself
                    await until_end(admin, COPY, await end_of(admin, COPY) + RECORDS)
                    assert query.isActive, query.exception()
        finally:
            query.stop()

    asyncio.run(copied_while_killed())
    writing.trigger(availableNow=True).start().awaitTermination()
    original = asyncio.run(records_of(clusters.source, TP.topic))
    assert contents(asyncio.run(records_of(clusters.target, COPY))) == contents(original)
    assert [int(one.value[:8]) for one in original] == list(range(len(original)))


async def until_copied(admin: Admin, query: Any) -> None:
    """The flow has made its topic, and copied something."""
    async with asyncio.timeout(SECONDS_MAX):
        while COPY not in await admin.list_topics():
            assert query.isActive, query.exception()
            await asyncio.sleep(0.1)
    await until_end(admin, COPY, RECORDS)
