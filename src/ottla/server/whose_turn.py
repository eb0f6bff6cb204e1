"""In which order connections are served that are more than a round has time for (`docs/decisions/whose-turn.md`)."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import chain
from typing import Any, Final

#: A connection that was served within this time is at work; all others come newly, or again after a rest.
AT_WORK_MS: Final = 1_000


def in_turn(ready: Mapping[Any, int], now_ms: int) -> list[tuple[Any, int]]:
    """All that are ready, by connection, in the order in which they have come; those of a control listener first.

    Of those that are at work and of those that come newly one each in its turn: a client that asks now and then does
    not wait for each of a crowd that comes all at once, and a crowd that is at work shuts out nobody. The one that has
    waited longest is the first: where a round has time for one only, it is not always one of the same kind.
    """
    since_ms = now_ms - AT_WORK_MS
    control: list[tuple[Any, int]] = []
    at_work: list[tuple[Any, int]] = []
    new: list[tuple[Any, int]] = []
    for entry in ready.items():
        connection = entry[0]
        if connection.listener.control:
            control.append(entry)
        elif since_ms < connection.last_active_ms != connection.accepted_ms:
            at_work.append(entry)
        else:
            new.append(entry)
    longest = next((entry for entry in ready.items() if not entry[0].listener.control), None)
    first, second = (new, at_work) if new and new[0] == longest else (at_work, new)
    both = min(len(first), len(second))
    pairs = zip(first, second, strict=False)
    return [*control, *chain.from_iterable(pairs), *first[both:], *second[both:]]
