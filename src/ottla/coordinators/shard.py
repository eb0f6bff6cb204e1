"""One partition of a coordinator's topic, as the code sees it that loads it and gives it up."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Protocol

from ottla.coordinators.caller import Now
from ottla.coordinators.timers import Timers
from ottla.model import ErrorCode
from ottla.steps import Steps


class Shard(Protocol):
    """Synchronous. Its owner calls `replay` for each record, then `loaded`, and in the end `unload`."""

    timers: Timers

    @property
    def topic(self) -> str: ...

    @property
    def partition(self) -> int: ...

    def replay(self, key: bytes | None, value: bytes | None, offset: int, producer_id: int) -> None:
        """Applies the stored record at `offset`; `producer_id` is -1 outside of transactions."""
        ...

    def replay_long(self, key: bytes | None, value: bytes, offset: int) -> Steps[None]:
        """The same, step by step, for a long record outside of transactions."""
        ...

    def end_transaction(self, producer_id: int, *, committed: bool) -> None:
        """The marker of a transaction was read."""
        ...

    def loaded(self, now: Now) -> Iterator[None]:
        """All records were replayed. To be exhausted; a pause is welcome wherever it yields."""
        ...

    def held(self) -> Mapping[str, int]:
        """What was loaded, in numbers for the log."""
        ...

    def topics_deleted(self, names: Iterable[str], now: Now, known_ms: Mapping[str, int]) -> None:
        """`known_ms`: those that a shard before this one has heard of already, and when, by the wall clock."""
        ...

    @property
    def unsettled_deletions(self) -> Mapping[str, int]:
        """Topics of `topics_deleted` of which a write that is lost may be a part, and when they were deleted. Another
        shard has to hear of them."""
        ...

    def unload(self, error: ErrorCode, now: Now) -> None:
        """Answers all requests that wait. The shard is not used any more, whatever its journal still calls."""
        ...
