"""Waits until a group has read what there is."""

from __future__ import annotations

import asyncio
from typing import Final

from ottla.client.admin.admin import Admin
from ottla.client.admin.group_lag import PartitionLag, ends_of, group_lags
from ottla.client.arguments import INT64_MAX, checked_integer, checked_number, checked_text
from ottla.client.errors import BadArgument, KafkaError
from ottla.client.wire.listed_offset import EARLIEST
from ottla.model import ErrorCode

#: Between two looks.
_PAUSE_SECONDS: Final = 0.02
#: Partitions that a message names.
_NAMED_MAX: Final = 10


class StillBehind(TimeoutError):
    """The time was up before the group had caught up: says how far behind it is, and where."""


async def wait_for_lag(bootstrap: str, group: str, lag: int = 0, *, timeout_s: float = 30.0) -> None:
    """Until the group's committed offsets lie at most `lag` behind the ends of its partitions, taken together.

    A group that is not there yet, or has neither committed nor been assigned anything, is waited for. A partition that
    it has and has not committed yet counts with all of its records. Raises StillBehind.
    """
    checked_text(group, "group")
    checked_integer(lag, "lag", INT64_MAX)
    given_s = checked_number(timeout_s, "timeout")
    if given_s is None:
        raise BadArgument("timeout must be a number, not None")
    found = "nobody was asked yet"
    async with Admin(bootstrap_servers=bootstrap, client_id="ottla-testing") as admin:
        try:
            async with asyncio.timeout(given_s):
                while True:
                    behind, found = await _behind(admin, group)
                    if behind is not None and behind <= lag:
                        return
                    await asyncio.sleep(_PAUSE_SECONDS)
        except TimeoutError:
            raise StillBehind(f"group {group} did not come within {lag} in {given_s:g} s: {found}") from None


async def _behind(admin: Admin, group: str) -> tuple[int | None, str]:
    """How far behind, if that is known, and the same in words."""
    try:
        described = await admin.describe_groups([group])
    except KafkaError as error:
        if error.code != ErrorCode.GROUP_ID_NOT_FOUND:
            raise
        return None, "there is no such group"
    committed = await admin.list_groups_offsets([group])
    partitions = (await group_lags(admin.cluster, described, committed))[group]
    if not partitions:
        return None, f"it is {described[group].state}, has committed nothing and has no partitions"
    starts = await ends_of(admin.cluster, [one.partition for one in partitions if one.committed is None], EARLIEST)
    leaderless = [str(one.partition) for one in partitions if one.end is None and not one.gone]
    if leaderless:
        named = ", ".join(leaderless[:_NAMED_MAX])
        return None, f"it is {described[group].state}, and nobody says where these end, which have no leader: {named}"
    lags = {one: _lag(one, starts.get(one.partition)) for one in partitions}
    said = ", ".join(f"{one.partition} by {lag}" for one, lag in list(lags.items())[:_NAMED_MAX] if lag)
    # A topic that was deleted has no end to be behind of.
    return sum(lags.values()), f"it is {described[group].state} and behind in {said}"


def _lag(one: PartitionLag, start: int | None) -> int:
    if one.lag is not None:
        return max(0, one.lag)
    return one.end - start if one.end is not None and start is not None else 0
