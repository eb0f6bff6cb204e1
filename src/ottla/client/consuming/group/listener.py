"""What an application gives to be called at a rebalance, and how it is called."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any, Final

from ottla.client.arguments import a_kind_of
from ottla.client.errors import BadArgument
from ottla.model import TopicPartition

ASSIGNED: Final = "on_assigned"
REVOKED: Final = "on_revoked"
LOST: Final = "on_lost"


class RebalanceListener:
    """Derive from it, or give `subscribe` anything that has some of these methods, plain ones or coroutines.

    They are called while `poll` (or `unsubscribe`, or `close`) is under way, never in between.
    """

    def on_assigned(self, partitions: Sequence[TopicPartition]) -> Any:
        """These are new: a place to seek. Called after each rebalance, with nothing if nothing is new."""

    def on_revoked(self, partitions: Sequence[TopicPartition]) -> Any:
        """These go to somebody else, who waits until this returns: a place to commit."""

    def on_lost(self, partitions: Sequence[TopicPartition]) -> Any:
        """These may be somebody else's already, since this member was taken for dead: what it commits is refused.

        Unless it is written anew, the same as when they are revoked.
        """
        return self.on_revoked(partitions)


def method_of(listener: object, what: str) -> Callable[[list[TopicPartition]], Any] | None:
    """The listener's method, if it has it; one that has no `on_lost` hears of it as revoked."""
    found = getattr(listener, what, None)
    if found is None and what == LOST:
        found = getattr(listener, REVOKED, None)
    return found


def check_listener(listener: object) -> None:
    """Raises BadArgument for one that would never be called, as another client's with methods of other names."""
    if listener is not None and not any(callable(getattr(listener, what, None)) for what in (ASSIGNED, REVOKED, LOST)):
        raise BadArgument(
            f"listener must have one of the methods {ASSIGNED}, {REVOKED} and {LOST}: {a_kind_of(listener)} has none"
        )


async def call_listener(listener: object, what: str, partitions: Sequence[TopicPartition]) -> None:
    method = method_of(listener, what)
    if method is None:
        return
    result = method(list(partitions))
    if inspect.isawaitable(result):
        await result
