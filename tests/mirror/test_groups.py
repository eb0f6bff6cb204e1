"""Groups' offsets on the other side: exact for every offset, with gaps in the source as well."""

from __future__ import annotations

import asyncio
import struct
from collections.abc import Mapping
from typing import Any

import pytest

from ottla.client.admin.admin import Admin
from ottla.client.consuming.consumer import Consumer
from ottla.client.errors import KafkaError, SomeFailed
from ottla.model import ErrorCode, TopicPartition
from ottla.protocol.apis import ApiKey
from ottla.spark.mirroring.planning import FlowPlanner
from tests.client.proxy import Action, Pass, Proxy, Request
from tests.mirror.flows import Clusters, create, mirror, mirroring, produce, records_of, until

CHECKPOINTS = "A.checkpoints.internal"
SYNCS = "mm2-offset-syncs.B.internal"


async def commit(bootstrap: str, group: str, tp: TopicPartition, offset: int) -> None:
    async with Admin(bootstrap_servers=bootstrap) as admin:
        await admin.alter_group_offsets(group, {tp: offset})


async def committed(bootstrap: str, group: str) -> dict[TopicPartition, int]:
    async with Admin(bootstrap_servers=bootstrap) as admin:
        return {tp: one.offset for tp, one in (await admin.list_group_offsets(group)).items()}


async def checkpoints(bootstrap: str, group: str) -> list[tuple[str, int, int, int]]:
    """Topic, partition, offset upstream and downstream, read apart from the code that wrote them."""
    found = []
    for record in await records_of(bootstrap, CHECKPOINTS):
        (length,) = struct.unpack_from(">h", record.key)
        if record.key[2 : 2 + length].decode() != group:
            continue
        (name_length,) = struct.unpack_from(">h", record.key, 2 + length)
        name = record.key[4 + length : 4 + length + name_length].decode()
        (partition,) = struct.unpack_from(">i", record.key, 4 + length + name_length)
        found.append((name, partition, *struct.unpack_from(">qq", record.value, 2)))
    return found


async def test_a_group_goes_on_where_it_was(clusters: Clusters) -> None:
    await create(clusters.source, "read")
    await produce(clusters.source, "read", [b"%d" % n for n in range(50)])
    tp, copy = TopicPartition("read", 0), TopicPartition("A.read", 0)
    await commit(clusters.source, "readers", tp, 20)
    wanted = {"topics": "read", "groups": "readers", "sync_group_offsets_enabled": "true"}
    await mirror(clusters, **wanted)
    assert await committed(clusters.target, "readers") == {copy: 20}
    assert await checkpoints(clusters.target, "readers") == [("A.read", 0, 20, 20)]

    await commit(clusters.target, "readers", copy, 30)
    await commit(clusters.source, "readers", tp, 25)
    await mirror(clusters, **wanted)
    assert await committed(clusters.target, "readers") == {copy: 30}, "no group is moved back"


async def test_a_group_whose_place_there_cannot_be_told_holds_up_no_other(
    clusters: Clusters, monkeypatch: pytest.MonkeyPatch
) -> None:
    await create(clusters.source, "apart")
    await produce(clusters.source, "apart", [b"%d" % n for n in range(10)])
    tp, copy = TopicPartition("apart", 0), TopicPartition("A.apart", 0)
    wanted = {"topics": "apart", "groups": "apart-.*", "sync_group_offsets_enabled": "true"}
    await mirror(clusters, **wanted)
    for group in ("apart-1", "apart-2"):
        await commit(clusters.source, group, tp, 5)
    await commit(clusters.target, "apart-1", copy, 8)
    really = Admin.list_groups_offsets

    async def listed(admin: Admin, groups: Any, **options: Any) -> Any:
        found = await really(admin, groups, **options)
        if isinstance(groups, Mapping) and "apart-1" in groups:  # the mirror's look at the target
            raise SomeFailed({"apart-1": KafkaError("is loaded just now")}, {"apart-2": found["apart-2"]})
        return found

    with monkeypatch.context() as patch:
        patch.setattr(Admin, "list_groups_offsets", listed)
        await mirror(clusters, **wanted)
    assert await committed(clusters.target, "apart-2") == {copy: 5}
    assert await committed(clusters.target, "apart-1") == {copy: 8}


async def test_a_checkpoint_that_was_not_taken_is_written_again(clusters: Clusters) -> None:
    """Though the group has not moved since."""
    await create(clusters.source, "pointed")
    await produce(clusters.source, "pointed", [b"%d" % n for n in range(10)])
    tp, refuses = TopicPartition("pointed", 0), [False]
    await commit(clusters.source, "pointed-readers", tp, 5)

    def refused(answer: Any) -> None:
        answer.responses[0].partition_responses[0].error_code = ErrorCode.INVALID_RECORD

    def rule(request: Request) -> Action:
        return Pass(change=refused) if refuses[0] and request.key == ApiKey.PRODUCE else Pass()

    wanted = {"topics": "pointed", "groups": "pointed-readers", "emit_checkpoints_interval_seconds": "100000"}
    async with (
        Proxy(clusters.target, rule) as proxy,
        mirroring(Clusters(clusters.source, proxy.bootstrap), **wanted) as flow,
    ):
        await until(lambda: tp in flow.copies and flow.copies[tp].copied == 10, "copied")
        refuses[0] = True
        with pytest.raises(KafkaError):
            await flow._groups.checkpoint()
        refuses[0] = False
        assert await flow._groups.checkpoint() == 1
        assert await flow._groups.checkpoint() == 0


async def test_a_group_of_a_topic_that_was_made_again_is_not_moved_by_the_former_ones_pairs(
    clusters: Clusters,
) -> None:
    """As the driver of a query knows the copies: by what is recorded of them."""
    await create(clusters.source, "made-anew")
    await produce(clusters.source, "made-anew", [b"old %d" % n for n in range(30)])
    await mirror(clusters, topics="made-anew")
    async with Admin(bootstrap_servers=clusters.source) as admin:
        await admin.delete_topic("made-anew")
    await create(clusters.source, "made-anew")
    await produce(clusters.source, "made-anew", [b"new %d" % n for n in range(10)])
    await commit(clusters.source, "anew-readers", TopicPartition("made-anew", 0), 5)
    planner = FlowPlanner(clusters.flow(topics="made-anew", groups="anew-readers", sync_group_offsets_enabled="true"))
    try:
        await asyncio.to_thread(planner.ends)
    finally:
        await asyncio.to_thread(planner.close)
    assert await committed(clusters.target, "anew-readers") == {}
    assert await checkpoints(clusters.target, "anew-readers") == []


async def test_a_group_with_members_there_is_left_alone(clusters: Clusters) -> None:
    await create(clusters.source, "busy")
    await produce(clusters.source, "busy", [b"%d" % n for n in range(10)])
    wanted = {"topics": "busy", "groups": "busy-.*", "sync_group_offsets_enabled": "true"}
    await mirror(clusters, **wanted)
    await commit(clusters.source, "busy-readers", TopicPartition("busy", 0), 5)
    settings = {"group_id": "busy-readers", "auto_offset_reset": "earliest", "enable_auto_commit": False}
    async with Consumer(bootstrap_servers=clusters.target, **settings) as member:
        member.subscribe(["A.busy"])
        assert await member.poll()
        await mirror(clusters, **wanted)
        assert await committed(clusters.target, "busy-readers") == {}
    await mirror(clusters, **wanted)
    assert await committed(clusters.target, "busy-readers") == {TopicPartition("A.busy", 0): 5}


async def test_every_offset_of_a_source_with_gaps_is_translated(clusters: Clusters) -> None:
    """The source begins above 0, and the copy is made in pieces by several runs."""
    await create(clusters.source, "holes")
    tp = TopicPartition("holes", 0)
    removed = 0
    for run in range(3):
        await produce(clusters.source, "holes", [b"%d-%d" % (run, n) for n in range(20)])
        removed = 20 * run + 7
        async with Admin(bootstrap_servers=clusters.source) as admin:
            await admin.delete_records({tp: removed})
        await mirror(clusters, topics="holes")
    copied = [*range(7, 20), *range(27, 40), *range(47, 60)]
    copy = await records_of(clusters.target, "A.holes")
    assert [one.value for one in copy] == [b"%d-%d" % divmod(n, 20) for n in copied]
    async with mirroring(clusters, topics="holes") as flow:
        await until(lambda: tp in flow.copies and flow.copies[tp].copied == 60, "placed")
        one = flow.copies[tp]
        for offset in range(61):
            wanted = sum(source < offset for source in copied)
            assert one.pairs.target_of(offset, one.copied, one.end) == wanted, offset


async def test_the_last_sync_is_where_mirrormakers_tools_look(clusters: Clusters) -> None:
    await create(clusters.source, "synced")
    await produce(clusters.source, "synced", [b"%d" % n for n in range(30)])
    await mirror(clusters, topics="synced")
    syncs = [one for one in await records_of(clusters.source, SYNCS) if one.key == b"\0\6synced\0\0\0\0"]
    assert struct.unpack(">qq", syncs[-1].value) == (29, 29)
