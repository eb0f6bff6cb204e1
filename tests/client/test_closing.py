"""A client that is closed while others wait for it: they hear that it is closed, at once and as an error."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from ottla.client import Admin, Consumer, Producer
from ottla.client.errors import ClientClosed
from ottla.model import TopicPartition
from ottla.protocol.apis import ApiKey
from tests.client.proxy import Action, Pass, Proxy, Request, Silence

TP = TopicPartition("orders", 0)
WAITS: dict[str, tuple[type, Callable[[Any], Awaitable[object]]]] = {
    "send": (Producer, lambda client: client.send("orders", b"x")),
    "poll": (Consumer, lambda client: client.poll()),
    "partitions": (Consumer, lambda client: client.partitions_for("orders")),
    "position": (Consumer, lambda client: client.position(TP)),
    "offsets": (Consumer, lambda client: client.end_offsets([TP])),
    "commit": (Consumer, lambda client: client.commit({TP: 1})),
    "committed": (Consumer, lambda client: client.committed([TP])),
    "topics": (Admin, lambda client: client.list_topics()),
    "cluster": (Admin, lambda client: client.describe_cluster()),
    "groups": (Admin, lambda client: client.list_groups()),
    "group": (Admin, lambda client: client.describe_group("billing")),
}


@pytest.mark.parametrize("shakes_hands", [False, True], ids=["silent", "without-metadata"])
@pytest.mark.parametrize("what", WAITS)
async def test_whoever_waits_hears_of_it(bootstrap: str, what: str, shakes_hands: bool) -> None:
    kind, wait = WAITS[what]
    answered = {ApiKey.API_VERSIONS} if shakes_hands else set()
    unanswered = asyncio.Event()

    def rule(one: Request) -> Action:
        if one.key in answered:
            return Pass()
        unanswered.set()
        return Silence()

    async with Proxy(bootstrap, rule) as proxy:
        client = kind(bootstrap_servers=proxy.bootstrap, **({"group_id": "billing"} if kind is Consumer else {}))
        if kind is Consumer:
            client.assign([TP])
        waiting = asyncio.ensure_future(wait(client))
        await unanswered.wait()
        await client.close()
        with pytest.raises(ClientClosed):
            await asyncio.wait_for(waiting, 60)
