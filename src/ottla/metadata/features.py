"""The cluster's feature levels: what brokers may do only when all of a cluster can, as Kafka numbers it.

One of them can be set, `transaction.version`. Its level stands in the coordination tree (`/feature`), which each broker
reads at its start and whenever it changes. A tree that names no level has never been asked for one: the newest holds.

    0   transactions as before KIP-890
    1   the same, with records that later levels can add fields to
    2   an epoch for each transaction (KIP-890)
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

TRANSACTION_VERSION: Final = "transaction.version"
TRANSACTION_LEVEL_MAX: Final = 2
GROUP_VERSION: Final = "group.version"
GROUP_LEVEL_MAX: Final = 1


class UnknownLevel(ValueError):
    """A level that this program does not know, from a newer one."""


def transaction_level(levels: Mapping[str, int]) -> int:
    """Of the levels that the tree names. Raises UnknownLevel."""
    level = levels.get(TRANSACTION_VERSION, TRANSACTION_LEVEL_MAX)
    if not 0 <= level <= TRANSACTION_LEVEL_MAX:
        raise UnknownLevel(f"{TRANSACTION_VERSION} is {level}, and this broker knows 0 to {TRANSACTION_LEVEL_MAX}")
    return level


class FinalizedFeatures:
    """The levels as this broker knows them."""

    def __init__(self) -> None:
        self.transaction_version = TRANSACTION_LEVEL_MAX
        #: How often they were changed; clients believe the answer with the highest one.
        self.epoch = 0
