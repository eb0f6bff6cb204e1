"""What is done to several groups, one after the other: one that fails does not keep the others from it."""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Callable, Iterable

from ottla.client.errors import ConnectionLost, KafkaError, NoBrokerReached, RequestTimedOut
from ottla.client.errors.own import settled

#: Whoever does not answer would not do so for the groups behind either, and each would wait as long.
_NOBODY_THERE = (NoBrokerReached, ConnectionLost, RequestTimedOut)


async def for_each(groups: Iterable[str], act: Callable[[str], Awaitable[None]]) -> None:
    """Raises what failed, once standard error has named the groups for which it is done."""
    done: dict[str, None] = {}
    errors: dict[str, KafkaError] = {}
    try:
        for group in groups:
            try:
                await act(group)
            except _NOBODY_THERE:
                raise
            except KafkaError as error:
                errors[group] = error
            else:
                done[group] = None
        settled(done, errors)
    except KafkaError:
        if done:
            print(f"ottla: done for {', '.join(done)}", file=sys.stderr)
        raise
