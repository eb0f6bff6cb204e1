"""What is asked of the controller, wherever it is now."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Sequence
from typing import Final, Protocol, TypeVar

from ottla.client.errors import KafkaError, error_of, said_nothing
from ottla.client.wire.cluster import Cluster
from ottla.client.wire.settling import asked_until_settled
from ottla.model import ErrorCode

Result = TypeVar("Result")

#: What a broker says that is no controller (any more).
_ELSEWHERE: Final = frozenset({ErrorCode.NOT_CONTROLLER})


class Told(Protocol):
    """What an answer says of one topic."""

    @property
    def name(self) -> str | None: ...
    @property
    def error_code(self) -> int: ...
    @property
    def error_message(self) -> str | None: ...


Row = TypeVar("Row", bound=Told)


async def at_controller(cluster: Cluster, attempt: Callable[[int], Awaitable[Result]]) -> Result:
    """Asks the controller; another one where it has moved meanwhile."""

    async def once() -> Result:
        return await attempt(await cluster.controller_id())

    return await cluster.retrying(once)


def refuse_elsewhere(codes: Sequence[int]) -> None:
    """Raises NOT_CONTROLLER if that is what the answer says, so that the question is put again."""
    for code in codes:
        if code in _ELSEWHERE:
            raise error_of(code)


async def told_of_topics(
    cluster: Cluster,
    names: Collection[str],
    ask: Callable[[int, Sequence[str]], Awaitable[Sequence[Row]]],
    result_of: Callable[[Row], Result],
) -> dict[str, Result]:
    """What the controller says of each. It is asked again about those that a quota of its does not let through yet, and
    about them alone: the others are done."""
    results: dict[str, Result] = {}
    errors: dict[str, KafkaError] = {}

    async def attempt() -> None:
        left = [name for name in names if name not in results and name not in errors]
        rows = {row.name: row for row in await ask(await cluster.controller_id(), left)}
        refuse_elsewhere([row.error_code for row in rows.values()])
        throttled: KafkaError | None = None
        for name in left:
            row = rows.get(name)
            if row is None:
                errors[name] = said_nothing(name)
            elif row.error_code == ErrorCode.THROTTLING_QUOTA_EXCEEDED:
                throttled = error_of(row.error_code, row.error_message, about=name)
            elif row.error_code:
                errors[name] = error_of(row.error_code, row.error_message, about=name)
            else:
                results[name] = result_of(row)
        if throttled is not None:
            raise throttled  # the connection rests for as long as the answer says

    return await asked_until_settled(cluster, attempt, None, names, results, errors)


def longer(cluster: Cluster, timeout_ms: int) -> int:
    """The broker may use all of the operation's time: only then is its answer late."""
    return max(cluster.settings.request_timeout_ms, timeout_ms + 5_000)
