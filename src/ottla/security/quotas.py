"""How long is a client to be held back? Handlers report what a request used, and put the answer into theirs."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import Protocol

from ottla.security.principal import Principal


class Use(Enum):
    PRODUCED_BYTES = "produce"
    FETCHED_BYTES = "fetch"
    REQUEST_TIME = "request"
    PARTITION_CHANGES = "controller_mutation"


class Quotas(Protocol):
    @property
    def unlimited(self) -> bool:
        """True where nobody is held back, so that handlers need not report. It never changes."""
        ...

    @property
    def announces(self) -> bool:
        """Whether they call what `listen` was given before an answer of `counts` changes; it never changes itself.

        Requests of clients whose use is not counted are recognised by their bytes alone then, until they call.
        """
        ...

    def listen(self, changed: Callable[[], None]) -> None: ...

    def counts(self, principal: Principal, client_id: str | None) -> bool:
        """Whether any use of this client has a bound."""
        ...

    def throttle_ms(self, principal: Principal, client_id: str | None, use: Use, amount: float, now_ms: int) -> int: ...


class NoQuotas:
    unlimited = announces = True

    def listen(self, changed: Callable[[], None]) -> None:
        """They never change."""

    def counts(self, principal: Principal, client_id: str | None) -> bool:
        return False

    def throttle_ms(self, principal: Principal, client_id: str | None, use: Use, amount: float, now_ms: int) -> int:
        return 0
