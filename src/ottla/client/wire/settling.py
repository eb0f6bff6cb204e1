"""The end of a question to several brokers: what was heard, and the error of what was not."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Hashable, Iterable, Mapping
from typing import TypeVar

from ottla.client.errors import ClientClosed, KafkaError, all_settled
from ottla.client.wire.cluster import Cluster

Key = TypeVar("Key", bound=Hashable)
Result = TypeVar("Result")


async def asked_until_settled(
    cluster: Cluster,
    attempt: Callable[[], Awaitable[None]],
    timeout_ms: int | None,
    wanted: Iterable[Key],
    results: Mapping[Key, Result],
    errors: Mapping[Key, KafkaError],
) -> dict[Key, Result]:
    """Tries until the time is up; `attempt` fills in results and errors. What ends it is the error of what nothing was
    heard of."""
    unheard: KafkaError | None = None
    try:
        await cluster.retrying(attempt, timeout_ms)
    except ClientClosed:
        raise
    except KafkaError as error:
        unheard = error
    return all_settled(wanted, results, errors, unheard)
