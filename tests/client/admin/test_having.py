"""A topic that is to be there: made once, however the answers get lost."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from tests.client.proxy import Action, Pass, Proxy, Request

from ottla.client.admin.admin import Admin
from ottla.client.admin.having import have_topic, have_topic_sync
from ottla.client.admin.results import NewTopic
from ottla.client.errors import InvalidReplicationFactor
from ottla.client.sync import Admin as SyncAdmin
from ottla.model import ErrorCode
from ottla.protocol.apis import ApiKey


def left_open(proxy: Proxy) -> None:
    """The first CreateTopics is carried out, and its answer says that nobody knows."""

    def unknown(answer: Any) -> None:
        answer.topics[0].error_code = ErrorCode.REQUEST_TIMED_OUT

    def rule(request: Request) -> Action:
        first = request.key == ApiKey.CREATE_TOPICS and proxy.count(ApiKey.CREATE_TOPICS) == 1
        return Pass(change=unknown) if first else Pass()

    proxy.rule = rule


async def test_one_of_which_nobody_knows_whether_it_was_made_is_there(bootstrap: str, new_name: str) -> None:
    async with Proxy(bootstrap) as proxy:
        left_open(proxy)
        async with Admin(bootstrap_servers=proxy.bootstrap) as admin:
            assert await have_topic(admin, NewTopic(new_name, 2, 1)) is False
            assert len((await admin.describe_topic(new_name)).partitions) == 2
        assert proxy.count(ApiKey.CREATE_TOPICS) == 2


async def test_the_same_for_a_thread_that_may_wait(bootstrap: str, new_name: str) -> None:
    def made(address: str) -> list[bool]:
        with SyncAdmin(bootstrap_servers=address) as admin:
            return [have_topic_sync(admin, NewTopic(name, 1, 1)) for name in (new_name, f"{new_name}-2")]

    async with Proxy(bootstrap) as proxy:
        left_open(proxy)
        assert await asyncio.to_thread(made, proxy.bootstrap) == [False, True]


async def test_what_cannot_be_is_said_at_once(bootstrap: str, new_name: str) -> None:
    async with Proxy(bootstrap) as proxy, Admin(bootstrap_servers=proxy.bootstrap) as admin:
        with pytest.raises(InvalidReplicationFactor):
            await have_topic(admin, NewTopic(new_name, 1, 99))
        assert proxy.count(ApiKey.CREATE_TOPICS) == 1
