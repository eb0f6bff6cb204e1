"""The transaction coordinator, made when it is first needed: a broker without transactions starts without its code."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ottla.transactions.coordinator import TransactionCoordinator


class TransactionsOnDemand:
    def __init__(self, make: Callable[[], TransactionCoordinator]) -> None:
        self._make = make
        #: None while nobody has asked for it: there are no transactions.
        self.made: TransactionCoordinator | None = None

    def get(self) -> TransactionCoordinator:
        if self.made is None:
            self.made = self._make()
        return self.made
