"""How long is a client to be held back? Handlers report what a request used, and put the answer into theirs."""

from __future__ import annotations

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
        """True where nothing is ever held back, so that the hot path need not report.

        It never changes: requests are then recognised by their bytes alone. Quotas that may be given bounds say False.
        """
        ...

    def throttle_ms(self, principal: Principal, client_id: str | None, use: Use, amount: float, now_ms: int) -> int: ...


class NoQuotas:
    unlimited = True

    def throttle_ms(self, principal: Principal, client_id: str | None, use: Use, amount: float, now_ms: int) -> int:
        return 0
