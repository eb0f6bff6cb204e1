"""A mirror of three brokers whose leaders are killed while it copies, the source's and the copy's: every record once.

One cluster is both sides, under two names: what moves are the leaders of two topics, whichever cluster they are of.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

import ottla.testing
from ottla.mirror.flow import Flow
from ottla.model import TopicPartition
from ottla.testing import Cluster
from tests.mirror.flows import Clusters, contents, mirror, mirroring, records_of
from tests.mirror.test_kills import producing

TP = TopicPartition("led", 0)
COPY = "A.led"
#: Of what is copied before a leader is killed, and after it.
RECORDS = 200


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    with ottla.testing.cluster(3, properties={"min.insync.replicas": "2"}) as made:
        made.create_topic(TP.topic, partitions=1, replication_factor=3)
        yield made


@pytest.mark.timeout(300)
def test_every_record_once_while_leaders_are_killed(cluster: Cluster) -> None:
    clusters = Clusters(cluster.bootstrap, cluster.bootstrap)
    more = {"topics": TP.topic, "replication.factor": "3"}

    async def copied_while_killed() -> None:
        async with mirroring(clusters, **more) as flow, producing(clusters.source, TP.topic, 10**9):
            for topic in (COPY, TP.topic):
                await copies_on(flow)
                await asyncio.to_thread(cluster.kill_leader, topic, 0)  # it comes back by itself
                await copies_on(flow)
        assert (await mirror(clusters, **more)).stopped == []
        original = await records_of(clusters.source, TP.topic)
        assert contents(await records_of(clusters.target, COPY)) == contents(original)
        assert [int(one.value[:8]) for one in original] == list(range(len(original)))

    asyncio.run(copied_while_killed())


async def copies_on(flow: Flow) -> None:
    """Waits as long as the test may take; the group may give the partition up and back meanwhile."""
    begun = flow.copies[TP].end if TP in flow.copies else 0
    while TP not in flow.copies or flow.copies[TP].end < begun + RECORDS:  # noqa: ASYNC110 - a copy tells nobody
        await asyncio.sleep(0.01)
