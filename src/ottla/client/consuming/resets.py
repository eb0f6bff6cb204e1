"""Where reading begins that nobody has sought: `auto.offset.reset`, looked up with ListOffsets.

Each leader is asked by itself and once at a time. What it knows is a position at once; what it does not is asked for
again after a pause, of whoever leads then.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Mapping
from typing import Final

from ottla.client.consuming.assignment import AssignedPartition
from ottla.client.errors import (
    ClientClosed,
    KafkaError,
    NotLeaderOrFollower,
    SettingsError,
    UnknownBroker,
    error_of,
)
from ottla.client.wire.backoff import Backoff
from ottla.client.wire.cluster import Cluster
from ottla.client.wire.listed_offset import EARLIEST, LATEST
from ottla.client.wire.offsets import list_offsets_of_leader
from ottla.model import NO_BROKER, ErrorCode, TopicPartition
from ottla.ports.clock import Clock

_DURATION: Final = re.compile(r"P(?:(\d+)D)?(?:T(?:(\d+)H)?(?:(\d+)M)?(?:(\d+(?:\.\d+)?)S)?)?", re.IGNORECASE)


class Resets:
    def __init__(self, policy: str, cluster: Cluster, clock: Clock, backoff: Backoff, isolation_level: int) -> None:
        self._back_ms = None
        self._fixed: int | None = None
        named = policy.strip().lower()
        if named.startswith("by_duration:"):
            self._back_ms = duration_ms(policy.strip()[len("by_duration:") :])
        elif named in {"earliest", "latest", "none"}:
            self._fixed = {"earliest": EARLIEST, "latest": LATEST}.get(named)
        else:
            from ottla.client.other_names import OFFSET_RESETS

            hint = f": it is called {OFFSET_RESETS[named]} here" if named in OFFSET_RESETS else ""
            raise SettingsError(
                f"auto.offset.reset must be earliest, latest, none or by_duration:PnDTnHnMnS, not {policy!r}{hint}"
            )
        self._cluster = cluster
        self._clock = clock
        self._backoff = backoff
        self._isolation_level = isolation_level
        #: The look-ups under way, by the leader that is asked; by NO_BROKER the one for leaders.
        self._tasks: dict[int, asyncio.Task[None]] = {}
        #: Rounds of metadata, one after the other, that have left a partition without a leader.
        self._leaderless_rounds = 0

    def strategy(self) -> int | None:
        """What ListOffsets is asked where nobody sought; None where that is an error."""
        return self._fixed if self._back_ms is None else max(0, self._clock.wall_ms() - self._back_ms)

    def begin(self, assigned: Mapping[TopicPartition, AssignedPartition], then: Callable[[], None]) -> None:
        """Looks up all positions that are wanted and whose buffers are empty, of each leader by itself: one that does
        not answer, or a partition without one, keeps nobody else waiting. `then` is called after each look-up."""
        loop, metadata = asyncio.get_running_loop(), self._cluster.metadata
        leaderless: list[AssignedPartition] = []
        by_leader: dict[int, list[AssignedPartition]] = {}
        for one in assigned.values():
            if one.reset is None or one.has_records or one.error is not None:
                continue
            leader = metadata.leader(*one.tp)
            if leader is not None:
                by_leader.setdefault(leader.leader, []).append(one)
                continue
            if not self.refused(one, then):
                leaderless.append(one)
        if not leaderless:
            self._leaderless_rounds = 0
        elif NO_BROKER not in self._tasks:
            self._leaderless_rounds += 1
            self._tasks[NO_BROKER] = loop.create_task(self._look_for_leaders(leaderless, then))
        for node, wanted in by_leader.items():
            if node not in self._tasks:
                self._tasks[node] = loop.create_task(self._look_up(node, wanted, then))

    def refused(self, one: AssignedPartition, then: Callable[[], None]) -> bool:
        """Whether its topic is kept from us for a reason that does not pass by itself. That is an error once for each
        round of metadata, as it may have been allowed since; `then` is called when there is one."""
        metadata = self._cluster.metadata
        code = metadata.errors.get(one.tp.topic, ErrorCode.LEADER_NOT_AVAILABLE)
        refusal = error_of(code, about=one.tp.topic)
        if refusal.retriable:
            return False
        if one.refused_by is metadata:
            self._cluster.request_update()
        else:
            one.refused_by, one.error = metadata, refusal
            asyncio.get_running_loop().call_soon(then)
        return True

    async def _look_for_leaders(self, wanted: list[AssignedPartition], then: Callable[[], None]) -> None:
        """One round of metadata; those that it brings leaders for are looked up without the pause behind it."""
        try:
            try:
                await self._cluster.updated()
            except ClientClosed:
                return
            except KafkaError as error:
                if not error.retriable:
                    for one in wanted:
                        one.error = one.error or error
                    then()
            await asyncio.sleep(self._backoff.pause_ms(max(1, self._leaderless_rounds)) / 1000)
        finally:
            del self._tasks[NO_BROKER]
            then()

    async def _look_up(self, leader: int, wanted: list[AssignedPartition], then: Callable[[], None]) -> None:
        asked = {one.tp: one.reset for one in wanted if one.reset is not None}
        wanted = [one for one in wanted if one.tp in asked]  # the caller may have sought since
        generations = {one.tp: one.generation for one in wanted}
        try:
            found, errors = await self._ask(leader, asked) if asked else ({}, {})
            failures = 0
            for one in wanted:
                if one.generation != generations[one.tp] or one.reset is None:
                    continue
                if one.tp in found:
                    one.seek(found[one.tp])
                    continue
                error = errors[one.tp]
                if not error.retriable:
                    one.error = error
                one.failures += 1
                failures = max(failures, one.failures)
            if failures:
                then()  # those that were found need not wait for the others
                self._cluster.request_update()
                await asyncio.sleep(self._backoff.pause_ms(failures) / 1000)
        except ClientClosed:
            return
        finally:
            del self._tasks[leader]
            then()

    async def _ask(
        self, leader: int, asked: Mapping[TopicPartition, int]
    ) -> tuple[dict[TopicPartition, int], dict[TopicPartition, KafkaError]]:
        """The offset of each partition, or why there is none."""

        async def ask(timestamps: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
            listed, failed = await list_offsets_of_leader(
                self._cluster, leader, timestamps, isolation_level=self._isolation_level
            )
            errors.update(failed)
            return {tp: one.offset for tp, one in listed.items()}

        errors: dict[TopicPartition, KafkaError] = {}
        try:
            found = await ask(asked)
            young = [tp for tp, offset in found.items() if offset < 0]
            if young:  # nothing is as young as that: what comes next is
                found = {tp: offset for tp, offset in found.items() if offset >= 0}
                found |= await ask(dict.fromkeys(young, LATEST))
        except ClientClosed:
            raise
        except UnknownBroker as error:  # it has left the cluster meanwhile: somebody else leads, or will
            return {}, {tp: NotLeaderOrFollower(f"{tp}: {error}") for tp in asked}
        except KafkaError as error:
            return {}, dict.fromkeys(asked, error)
        return found, errors

    async def close(self) -> None:
        tasks = list(self._tasks.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def duration_ms(text: str) -> int:
    """An ISO 8601 duration of days and below, as Java writes it: PT1H30M."""
    found = _DURATION.fullmatch(text)
    if found is None or not any(found.groups()):
        raise SettingsError(f"auto.offset.reset: {text!r} is no duration like P1DT2H3M4S")
    days, hours, minutes, seconds = (float(part or 0) for part in found.groups())
    return round((((days * 24 + hours) * 60 + minutes) * 60 + seconds) * 1000)
