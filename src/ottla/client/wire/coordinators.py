"""Questions about groups and transactions, which only coordinators can answer: put again where one has moved.

A coordinator that has just taken over still reads what it is to answer from, and one that has lost its partition says
so: both end by themselves. Such groups are looked up and asked again until `default.api.timeout.ms` is over.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Final, TypeVar

from ottla.client.errors import BadAnswer, ClientClosed, KafkaError, error_of
from ottla.client.wire.cluster import Cluster
from ottla.client.wire.settling import asked_until_settled
from ottla.model import ErrorCode
from ottla.protocol.apis import ApiKey
from ottla.protocol.generated.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse

Result = TypeVar("Result")

#: Asks one coordinator about its groups: fills in results and errors.
AskCoordinator = Callable[[int, Sequence[str], dict[str, Result], dict[str, KafkaError]], Awaitable[None]]

#: What FindCoordinator's key is: a group's id, or a transactional one.
GROUP: Final = 0
TRANSACTION: Final = 1
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
        ErrorCode.CONCURRENT_TRANSACTIONS,
        ErrorCode.NETWORK_EXCEPTION,
        ErrorCode.REQUEST_TIMED_OUT,
        ErrorCode.BROKER_NOT_AVAILABLE,
    }
)


async def ask_coordinators(
    cluster: Cluster,
    keys: Iterable[str],
    ask: AskCoordinator[Result],
    timeout_ms: int | None = None,
    *,
    key_type: int = GROUP,
) -> dict[str, Result]:
    """The results of all groups, or of all transactional ids, asked for until none has an error left that passes. What
    one coordinator says, or leaves unsaid until the time is up, hides nothing of what others said."""
    results: dict[str, Result] = {}
    errors: dict[str, KafkaError] = {}
    wanted = list(dict.fromkeys(keys))
    open_ = wanted

    async def attempt() -> None:
        nonlocal open_
        by_node, not_found = await coordinators(cluster, open_, key_type)
        errors.update(not_found)
        await asyncio.gather(*(_one(node, groups) for node, groups in by_node.items()))
        open_ = [key for key in open_ if key not in results and errors[key].code in PASSING]
        if open_:
            raise _retriable(errors[open_[0]])

    async def _one(node: int, groups: Sequence[str]) -> None:
        refused: dict[str, KafkaError] = {}
        missing: KafkaError = BadAnswer(f"broker {node} says nothing about all that it was asked")
        try:
            await ask(node, groups, results, refused)
        except ClientClosed:
            raise
        except KafkaError as error:
            missing = error
        errors.update({group: refused.get(group, missing) for group in groups if group not in results})

    if not wanted:
        return results
    return await asked_until_settled(cluster, attempt, timeout_ms, wanted, results, errors)


def _retriable(error: KafkaError) -> KafkaError:
    """A broker that has gone from the cluster is no end: somebody else coordinates its groups now."""
    return error if error.retriable else error_of(ErrorCode.COORDINATOR_NOT_AVAILABLE, str(error))


async def coordinators(
    cluster: Cluster, keys: Sequence[str], key_type: int = GROUP
) -> tuple[dict[int, list[str]], dict[str, KafkaError]]:
    """Groups, or transactional ids, by the broker that coordinates them, and what keeps others from having one."""
    connection = await cluster.any_connection()
    timeout_ms = cluster.settings.request_timeout_ms
    found: dict[int, list[str]] = {}
    errors: dict[str, KafkaError] = {}

    def take(key: str, node_id: int, code: int, message: str | None) -> None:
        if code:
            errors[key] = error_of(code, message, about=key)
            if code == ErrorCode.COORDINATOR_NOT_AVAILABLE:
                cluster.knew_nobody(connection)
        else:
            found.setdefault(node_id, []).append(key)

    if connection.serves(ApiKey.FIND_COORDINATOR, _SEVERAL):
        request = FindCoordinatorRequest(key_type=key_type, coordinator_keys=list(keys))
        answer = await connection.ask(request, FindCoordinatorResponse, timeout_ms=timeout_ms)
        answered = {one.key: one for one in answer.coordinators}
        for key in keys:
            if (one := answered.get(key)) is not None:
                take(key, one.node_id, one.error_code, one.error_message)
            else:
                errors[key] = BadAnswer(f"{connection.peer} was asked who coordinates {key}, and says nothing about it")
        return found, errors

    async def single(key: str) -> None:
        async with turns:
            request = FindCoordinatorRequest(key=key, key_type=key_type)
            answer = await connection.ask(request, FindCoordinatorResponse, timeout_ms=timeout_ms, at_most=_SEVERAL - 1)
        take(key, answer.node_id, answer.error_code, answer.error_message)

    turns = asyncio.Semaphore(_SINGLE_AT_ONCE_MAX)
    await asyncio.gather(*map(single, keys))
    return found, errors
