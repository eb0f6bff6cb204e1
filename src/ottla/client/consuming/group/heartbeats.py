"""Heartbeats: in the background, so that a member lives however long its caller works on what it polled."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

from ottla.client.consuming.group.membership import Membership, MembershipState
from ottla.client.errors import ClientClosed, KafkaError, error_of
from ottla.client.settings import ConsumerSettings
from ottla.client.wire.backoff import Backoff
from ottla.client.wire.coordinator import Coordinator
from ottla.model import ErrorCode
from ottla.protocol.generated.heartbeat import HeartbeatRequest, HeartbeatResponse

#: Static members have been known to Heartbeat since.
STATIC_SINCE: Final = 3


class Heartbeats:
    def __init__(
        self,
        settings: ConsumerSettings,
        coordinator: Coordinator,
        membership: Membership,
        backoff: Backoff,
        on_refused: Callable[[KafkaError], None],
        on_news: Callable[[], None],
    ) -> None:
        self._settings = settings
        self._coordinator = coordinator
        self._membership = membership
        self._backoff = backoff
        #: Called with the fault that ends the membership.
        self._on_refused = on_refused
        #: Called when the group is to be joined again.
        self._on_news = on_news
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        if self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._beat())

    def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            self._task = None

    async def _beat(self) -> None:
        failures = 0
        loop = asyncio.get_running_loop()
        next_at = loop.time() + self._settings.heartbeat_interval_ms / 1000
        while True:
            await asyncio.sleep(max(0.0, next_at - loop.time()))
            next_at = loop.time() + self._settings.heartbeat_interval_ms / 1000
            if not self._membership.heartbeats:
                continue
            try:
                await self._one()
                failures = 0
            except ClientClosed:
                return
            except KafkaError as error:
                failures += 1
                self._coordinator.blame(error)
                if not error.retriable:
                    self._task = None
                    self._on_refused(error)
                    return
                next_at = min(next_at, loop.time() + self._backoff.pause_ms(failures) / 1000)

    async def _one(self) -> None:
        membership = self._membership
        connection = await self._coordinator.connection()
        if not membership.heartbeats:
            return
        generation = membership.generation
        answer = await connection.ask(
            HeartbeatRequest(
                group_id=membership.group_id,
                generation_id=generation,
                member_id=membership.member_id,
                group_instance_id=membership.instance_id,
            ),
            HeartbeatResponse,
            # Later than that the coordinator has given this member up: better to look for it anew.
            timeout_ms=min(self._settings.request_timeout_ms, self._settings.session_timeout_ms),
            at_least=STATIC_SINCE if membership.instance_id is not None else 0,
        )
        if not answer.error_code or membership.generation != generation:
            return
        error = error_of(answer.error_code, about=f"group {membership.group_id}")
        if error.code is ErrorCode.REBALANCE_IN_PROGRESS:
            if membership.state is MembershipState.STABLE:
                membership.want("the group is rebalancing")
                self._on_news()
            return
        raise error
