"""Every version of every API that a member uses, down to the oldest, by a broker that claims to know no newer."""

from __future__ import annotations

import pytest

from ottla.client.admin.group_results import CommittedOffset
from ottla.client.errors import UnsupportedVersion
from ottla.model import TopicPartition
from ottla.protocol.apis import ApiKey
from tests.client.group.members import Member, close, poll_on, shares, until, write
from tests.client.wire.test_older_brokers import older

ASKED = {
    ApiKey.FIND_COORDINATOR,
    ApiKey.JOIN_GROUP,
    ApiKey.SYNC_GROUP,
    ApiKey.HEARTBEAT,
    ApiKey.LEAVE_GROUP,
    ApiKey.OFFSET_COMMIT,
    ApiKey.OFFSET_FETCH,
}


@pytest.mark.parametrize("steps", range(11))
async def test_a_members_life(bootstrap: str, wide_topic: str, group: str, steps: int) -> None:
    tp = TopicPartition(wide_topic, 2)
    await write(bootstrap, wide_topic, [b"%d" % n for n in range(8)], 4)
    async with older(bootstrap, steps) as proxy:
        first = Member(proxy.bootstrap, group).subscribe(wide_topic)
        await until(lambda: len(first.records) == 8, first)
        second = Member(proxy.bootstrap, group).subscribe(wide_topic)
        await until(shares(4, first, second), first, second)
        holder = first if 2 in first.has else second
        await holder.consumer.commit({tp: (1, "half")})
        assert await holder.consumer.committed([tp]) == {tp: CommittedOffset(1, "half")}
        await until(lambda: proxy.count(ApiKey.HEARTBEAT) > 0, first, second)
        await close(second)
        await until(shares(4, first), first)
        assert first.records[8:] == [] or holder is second
        await close(first)
        used = {(request.key, request.version) for request in proxy.requests if request.key in ASKED}
    assert {key for key, _ in used} == ASKED
    assert len(used) == len(ASKED)


async def test_static_members_need_a_broker_that_knows_them(bootstrap: str, topic: str, group: str) -> None:
    async with older(bootstrap, 2) as proxy:
        member = Member(proxy.bootstrap, group, group_instance_id="one").subscribe(topic)
        with pytest.raises(UnsupportedVersion, match="serves JoinGroup 0 to 2; needed is one of 5"):
            await poll_on(member)
        await close(member)
