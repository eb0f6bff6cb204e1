"""Topics copied between two brokers: the copy is the original, partition for partition."""

from __future__ import annotations

import pytest

from tests.mirror.flows import Clusters, contents, create, limits, mirror, produce, records_of


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
async def test_a_topic_is_copied_under_any_codec(clusters: Clusters, codec: str) -> None:
    topic = f"copied-{codec}"
    await create(clusters.source, topic, 2)
    await produce(clusters.source, topic, [b"value %d" % n for n in range(200)], 0, codec)
    await produce(clusters.source, topic, [b"other %d" % n for n in range(7)], 1, codec)

    flow = await mirror(clusters, topics=topic)

    assert flow.stopped == []
    for partition in (0, 1):
        original = await records_of(clusters.source, topic, partition)
        copy = await records_of(clusters.target, f"A.{topic}", partition)
        assert contents(copy) == contents(original)
        assert [one.offset for one in copy] == [one.offset for one in original]


async def test_what_comes_later_is_copied_by_the_next_run_and_nothing_twice(clusters: Clusters) -> None:
    await create(clusters.source, "twice")
    for run in range(3):
        await produce(clusters.source, "twice", [b"%d of %d" % (n, run) for n in range(50)])
        await mirror(clusters, topics="twice")
    await mirror(clusters, topics="twice")
    original = await records_of(clusters.source, "twice")
    assert contents(await records_of(clusters.target, "A.twice")) == contents(original)
    assert await limits(clusters.target, "A.twice") == (0, 150)
