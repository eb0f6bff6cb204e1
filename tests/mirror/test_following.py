"""New topics, partitions and settings reach the copy, and loops do not."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from ottla.client.admin.admin import Admin
from ottla.client.admin.results import ConfigChange, ConfigOperation, ConfigResource, ConfigSource
from ottla.client.errors import PolicyViolation, RequestTimedOut
from ottla.mirror.partition import PartitionCopy
from ottla.model import ErrorCode, TopicPartition
from ottla.protocol.apis import ApiKey
from tests.client.proxy import Action, Pass, Proxy, Request
from tests.mirror.flows import Clusters, create, is_there, limits, mirror, mirroring, produce, records_of, until

EVERY_SECOND = {"refresh_topics_interval_seconds": "1", "sync_topic_configs_interval_seconds": "1"}


async def own_settings(bootstrap: str, topic: str) -> dict[str, str | None]:
    async with Admin(bootstrap_servers=bootstrap) as admin:
        (entries,) = (await admin.describe_configs([ConfigResource.topic(topic)])).values()
        return {one.name: one.value for one in entries.values() if one.source is ConfigSource.TOPIC_CONFIG}


async def change(bootstrap: str, topic: str, *changes: ConfigChange) -> None:
    async with Admin(bootstrap_servers=bootstrap) as admin:
        await admin.incremental_alter_configs({ConfigResource.topic(topic): changes})


async def test_a_mirror_begins_though_nobody_knows_whether_its_topics_were_made(clusters: Clusters) -> None:
    """A controller that is replaced while it makes a topic says so: the mirror asks again."""
    await create(clusters.source, "begun")
    await produce(clusters.source, "begun", [b"a"] * 5)
    asked: Counter[str] = Counter()

    def unknown(answer: Any) -> None:
        answer.topics[0].error_code = ErrorCode.REQUEST_TIMED_OUT

    def rule(request: Request) -> Action:
        if request.key != ApiKey.CREATE_TOPICS:
            return Pass()
        (topic,) = request.decoded().topics
        asked[topic.name] += 1
        return Pass(change=unknown) if asked[topic.name] == 1 and topic.name.endswith("internal") else Pass()

    async with Proxy(clusters.target, rule) as proxy:
        await mirror(Clusters(clusters.source, proxy.bootstrap), topics="begun")
    assert await limits(clusters.target, "A.begun") == (0, 5)
    assert sorted(asked.values()) == [1, 2, 2], asked


async def test_topics_and_partitions_that_come_later_are_copied(clusters: Clusters) -> None:
    await create(clusters.source, "grow-1")
    async with mirroring(clusters, topics="grow-.*", **EVERY_SECOND) as flow:
        first = TopicPartition("grow-1", 0)
        await until(lambda: first in flow.copies, "the first topic is read")
        await create(clusters.source, "grow-2", 2)
        async with Admin(bootstrap_servers=clusters.source) as admin:
            await admin.create_partitions({"grow-1": 3})
        await produce(clusters.source, "grow-1", [b"a"] * 5, partition=2)
        await produce(clusters.source, "grow-2", [b"b"] * 6, partition=1)
        new = {TopicPartition("grow-1", 2): 5, TopicPartition("grow-2", 1): 6}
        await until(lambda: all(tp in flow.copies and flow.copies[tp].end == end for tp, end in new.items()), "copied")
    assert await limits(clusters.target, "A.grow-1", 2) == (0, 5)
    assert await limits(clusters.target, "A.grow-2", 1) == (0, 6)


async def test_settings_of_a_topic_are_those_of_its_original(clusters: Clusters) -> None:
    await create(clusters.source, "set", retention_ms="86400000", segment_bytes="2000000", min_insync_replicas="1")
    await mirror(clusters, topics="set")
    assert await own_settings(clusters.target, "A.set") == {"retention.ms": "86400000", "segment.bytes": "2000000"}

    await change(
        clusters.source,
        "set",
        ConfigChange("segment.bytes", None, ConfigOperation.DELETE),
        ConfigChange("retention.ms", "172800000"),
        ConfigChange("cleanup.policy", "compact,delete"),
    )
    await change(clusters.target, "A.set", ConfigChange("min.insync.replicas", "1"))
    await mirror(clusters, topics="set")
    assert await own_settings(clusters.target, "A.set") == {
        "retention.ms": "172800000",
        "cleanup.policy": "compact,delete",
        "min.insync.replicas": "1",
    }, "what is excluded stays what it is"


async def test_settings_stay_each_clusters_own_where_that_is_wanted(clusters: Clusters) -> None:
    await create(clusters.source, "unset", retention_ms="86400000")
    await mirror(clusters, topics="unset", sync_topic_configs_enabled="false")
    assert await own_settings(clusters.target, "A.unset") == {}


async def test_what_was_copied_is_not_copied_back(clusters: Clusters) -> None:
    await create(clusters.source, "loop")
    await produce(clusters.source, "loop", [b"x"] * 3)
    await mirror(clusters, topics=".*loop")
    back = Clusters(clusters.target, clusters.source)
    properties = {
        "A_bootstrap_servers": clusters.source,
        "B_bootstrap_servers": clusters.target,
        "A->B_enabled": "false",
        "B->A_enabled": "true",
    }
    await mirror(back, topics=".*loop", **properties)
    assert not await is_there(clusters.source, "B.A.loop")
    assert await limits(clusters.source, "loop") == (0, 3)


async def test_by_the_identity_policy_the_copy_has_the_same_name(clusters: Clusters) -> None:
    await create(clusters.source, "same")
    await produce(clusters.source, "same", [b"x"] * 3)
    await mirror(clusters, topics="same", replication_policy_class="IdentityReplicationPolicy")
    assert await limits(clusters.target, "same") == (0, 3)


async def test_a_topic_is_copied_from_its_end_on_where_that_is_asked_for(clusters: Clusters) -> None:
    await create(clusters.source, "end")
    await produce(clusters.source, "end", [b"old"] * 3)
    tp = TopicPartition("end", 0)
    async with mirroring(clusters, topics="end", A_consumer_auto_offset_reset="latest") as flow:
        await until(lambda: tp in flow.copies and flow.copies[tp].copied == 3, "placed at the end")
        await produce(clusters.source, "end", [b"new"] * 2)
        await until(lambda: flow.copies[tp].end == 2, "copied")
    assert await limits(clusters.target, "A.end") == (0, 2)


async def test_a_copy_that_began_at_the_end_begins_there_again_when_it_was_deleted(clusters: Clusters) -> None:
    """And not at the end of that day, which would pass over all that the copy had."""
    await create(clusters.source, "end-again")
    await produce(clusters.source, "end-again", [b"old"] * 3)
    latest = {"topics": "end-again", "A_consumer_auto_offset_reset": "latest"}
    await mirror(clusters, **latest)
    await produce(clusters.source, "end-again", [b"%d" % n for n in range(10)])
    await mirror(clusters, **latest)
    async with Admin(bootstrap_servers=clusters.target) as admin:
        await admin.delete_topic("A.end-again")
    assert (await mirror(clusters, **latest)).stopped == []
    assert [one.value for one in await records_of(clusters.target, "A.end-again")] == [b"%d" % n for n in range(10)]


async def test_a_topic_that_was_made_again_is_copied_from_its_beginning_when_its_copy_was_deleted(
    clusters: Clusters,
) -> None:
    latest = {"topics": "made-again", "A_consumer_auto_offset_reset": "latest"}
    await create(clusters.source, "made-again")
    await mirror(clusters, **latest)
    for bootstrap, topic in ((clusters.source, "made-again"), (clusters.target, "A.made-again")):
        async with Admin(bootstrap_servers=bootstrap) as admin:
            await admin.delete_topic(topic)
    await create(clusters.source, "made-again")
    await produce(clusters.source, "made-again", [b"new"] * 4)
    assert (await mirror(clusters, **latest)).stopped == []
    assert await limits(clusters.target, "A.made-again") == (0, 4)


async def test_a_copy_that_is_deleted_while_the_mirror_runs_is_made_again(
    clusters: Clusters, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where it takes a while until the new one can be placed: until then there is nothing to record of it."""
    await create(clusters.source, "deleted-while")
    await produce(clusters.source, "deleted-while", [b"x"] * 3)
    tp, fails = TopicPartition("deleted-while", 0), [False]
    limits_of_target = PartitionCopy._limits_of_target

    async def perhaps(copy: PartitionCopy) -> tuple[int, int]:
        if fails[0]:
            raise RequestTimedOut("the target says nothing")
        return await limits_of_target(copy)

    monkeypatch.setattr(PartitionCopy, "_limits_of_target", perhaps)
    async with mirroring(clusters, topics="deleted-while") as flow:
        await until(lambda: tp in flow.copies and flow.copies[tp].copied == 3, "copied")
        fails[0] = True
        async with Admin(bootstrap_servers=clusters.target) as admin:
            await admin.delete_topic("A.deleted-while")
        await produce(clusters.source, "deleted-while", [b"x"] * 2)
        await until(lambda: not flow.copies[tp].pairs, "the old pairs are thrown away")
        await flow._note()
        assert flow.copies[tp].copied < 0, "nothing is copied to the new topic yet"
        fails[0] = False
        await until(lambda: flow.copies[tp].copied == 5, "copied again")
        await flow._note()
    assert await limits(clusters.target, "A.deleted-while") == (0, 5)


async def test_a_copy_that_is_deleted_is_made_again_though_nothing_comes_any_more(clusters: Clusters) -> None:
    await create(clusters.source, "deleted-idle")
    await produce(clusters.source, "deleted-idle", [b"x"] * 3)
    tp = TopicPartition("deleted-idle", 0)
    async with mirroring(clusters, topics="deleted-idle", B_admin_metadata_max_age_ms="300") as flow:
        await until(lambda: tp in flow.copies and flow.copies[tp].copied == 3, "copied")
        former = flow.copies[tp].target_id
        async with Admin(bootstrap_servers=clusters.target) as admin:
            await admin.delete_topic("A.deleted-idle")
        copy = flow.copies[tp]
        await until(lambda: copy.target_id != former and copy.copied == copy.end == 3, "copied again")
    assert await limits(clusters.target, "A.deleted-idle") == (0, 3)


async def test_topics_that_are_gone_are_not_asked_about(clusters: Clusters) -> None:
    for number in range(2):
        await create(clusters.source, f"gone-{number}")
    async with mirroring(clusters, topics="gone-[01]") as flow:
        await until(lambda: len(flow.copies) == 2, "placed")
        async with Admin(bootstrap_servers=clusters.source) as admin:
            await admin.delete_topic("gone-1")
        await flow._refresh_topics()
        assert flow._follower._there == {"gone-0": 1}
        await until(lambda: "gone-1" not in flow.source.cluster.wanted, "its metadata is not asked for any more")


async def test_a_copy_that_cannot_record_how_far_it_came_keeps_no_other_from_it(
    clusters: Clusters, monkeypatch: pytest.MonkeyPatch
) -> None:
    await create(clusters.source, "noted", 2)
    recorded: list[TopicPartition] = []

    async def note_reached(copy: PartitionCopy) -> None:
        recorded.append(copy.tp)
        raise RequestTimedOut("the journal says nothing")

    async with mirroring(clusters, topics="noted") as flow:
        await until(lambda: len(flow.copies) == 2, "both are copied")
        with monkeypatch.context() as context:
            context.setattr(PartitionCopy, "note_reached", note_reached)
            await flow._note()
    assert sorted(recorded) == [TopicPartition("noted", 0), TopicPartition("noted", 1)]


async def test_a_run_that_ends_names_the_topics_that_the_target_does_not_take(clusters: Clusters) -> None:
    await create(clusters.source, "refused", 2)
    await produce(clusters.source, "refused", [b"x"])
    flow = await mirror(clusters, topics="refused", replication_factor="2")
    assert not await is_there(clusters.target, "A.refused")
    assert [one.partition(": ")[0] for one in flow.stopped] == ["refused-0", "refused-1"]
    assert "the target does not take it, as A.refused: " in flow.stopped[0]


async def test_partitions_that_the_target_does_not_take_keep_no_others_from_being_copied(
    clusters: Clusters, monkeypatch: pytest.MonkeyPatch
) -> None:
    await create(clusters.source, "grown")
    await mirror(clusters, topics="grown")
    async with Admin(bootstrap_servers=clusters.source) as admin:
        await admin.create_partitions({"grown": 2})
    await produce(clusters.source, "grown", [b"x"] * 3)

    async def refuse(_admin: Admin, _counts: object) -> None:
        raise PolicyViolation("one is enough")

    with monkeypatch.context() as context:
        context.setattr(Admin, "create_partitions", refuse)
        flow = await mirror(clusters, topics="grown")
    assert await limits(clusters.target, "A.grown") == (0, 3)
    assert flow.stopped == ["grown-1: the target does not take it, as A.grown: one is enough"]
    assert not (await mirror(clusters, topics="grown")).stopped
    assert await limits(clusters.target, "A.grown", 1) == (0, 0)
