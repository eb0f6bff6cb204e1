"""Questions about groups, which only their coordinators can answer: looked up, and put again where one has moved.

A coordinator that has just taken over still reads what it is to answer from, and one that has lost its partition says
so: both end by themselves. Such groups are looked up and asked again until `default.api.timeout.ms` is over.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Final, TypeVar

from ottla.client.errors import KafkaError, error_of, settled
from ottla.client.wire.cluster import Cluster
from ottla.model import ErrorCode
from ottla.protocol.apis import ApiKey
from ottla.protocol.generated.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse

Result = TypeVar("Result")

#: Asks one coordinator about its groups: fills in results and errors.
AskCoordinator = Callable[[int, Sequence[str], dict[str, Result], dict[str, KafkaError]], Awaitable[None]]

#: What FindCoordinator's key is.
_GROUP: Final = 0
#: FindCoordinator takes several keys since.
_SEVERAL: Final = 4
#: An old FindCoordinator takes one key; so many of them are under way at once.
_SINGLE_AT_ONCE_MAX: Final = 32

#: What passes by itself. Others that count as retriable elsewhere (an unknown topic) are answers here.
PASSING: Final = frozenset(
    {
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.UNSTABLE_OFFSET_COMMIT,
        ErrorCode.NETWORK_EXCEPTION,
        ErrorCode.REQUEST_TIMED_OUT,
        ErrorCode.BROKER_NOT_AVAILABLE,
    }
)


async def ask_coordinators(
    cluster: Cluster, group_ids: Iterable[str], ask: AskCoordinator[Result], timeout_ms: int | None = None
) -> dict[str, Result]:
    """All groups' results, asked for until none has an error left that passes."""
    results: dict[str, Result] = {}
    final: dict[str, KafkaError] = {}
    open_ = list(dict.fromkeys(group_ids))

    async def attempt() -> None:
        nonlocal open_
        by_node, errors = await coordinators(cluster, open_)
        await asyncio.gather(*(_one(node, groups, errors) for node, groups in by_node.items()))
        open_ = []
        for group, error in errors.items():
            if error.code in PASSING:
                open_.append(group)
            else:
                final[group] = error
        if open_:
            raise _retriable(errors[open_[0]])

    async def _one(node: int, groups: Sequence[str], errors: dict[str, KafkaError]) -> None:
        try:
            await ask(node, groups, results, errors)
        except KafkaError as error:
            if error.code not in PASSING:
                raise
            for group in groups:
                errors[group] = error

    if open_:
        await cluster.retrying(attempt, timeout_ms)
    return settled({group: results[group] for group in dict.fromkeys(group_ids) if group in results}, final)


def _retriable(error: KafkaError) -> KafkaError:
    """A broker that has gone from the cluster is no end: somebody else coordinates its groups now."""
    return error if error.retriable else error_of(ErrorCode.COORDINATOR_NOT_AVAILABLE, str(error))


async def coordinators(
    cluster: Cluster, group_ids: Sequence[str]
) -> tuple[dict[int, list[str]], dict[str, KafkaError]]:
    """Groups by the broker that coordinates them, and what keeps others from having one."""
    connection = await cluster.any_connection()
    timeout_ms = cluster.settings.request_timeout_ms
    found: dict[int, list[str]] = {}
    errors: dict[str, KafkaError] = {}

    def take(group: str, node_id: int, code: int, message: str | None) -> None:
        if code:
            errors[group] = error_of(code, message, about=group)
        else:
            found.setdefault(node_id, []).append(group)

    if connection.serves(ApiKey.FIND_COORDINATOR, _SEVERAL):
        request = FindCoordinatorRequest(key_type=_GROUP, coordinator_keys=list(group_ids))
        answer = await connection.ask(request, FindCoordinatorResponse, timeout_ms=timeout_ms)
        for one in answer.coordinators:
            take(one.key, one.node_id, one.error_code, one.error_message)
        return found, errors

    async def single(group: str) -> None:
        async with turns:
            request = FindCoordinatorRequest(key=group, key_type=_GROUP)
            answer = await connection.ask(request, FindCoordinatorResponse, timeout_ms=timeout_ms, at_most=_SEVERAL - 1)
        take(group, answer.node_id, answer.error_code, answer.error_message)

    turns = asyncio.Semaphore(_SINGLE_AT_ONCE_MAX)
    await asyncio.gather(*map(single, group_ids))
    return found, errors
