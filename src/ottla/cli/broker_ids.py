"""Brokers as the command line names them: by their ids."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from ottla.cli.faults import NOT_FOUND, CommandFault, UsageFault

if TYPE_CHECKING:
    from ottla.client.admin.results import ClusterDescription

BROKER_ID_MAX: Final = 2**31 - 1
#: Of BROKER_ID_MAX.
_DIGITS_MAX: Final = 10


def broker_ids(option: str, text: str) -> list[int]:
    """`1,2,3`, without repetitions."""
    ids = [one.strip() for one in text.split(",")]
    if not all(one.isascii() and one.isdigit() and len(one) <= _DIGITS_MAX for one in ids):
        raise UsageFault(f"{option}: '{text[:60]}' is not made of brokers' ids, such as 1,2")
    return list(dict.fromkeys(map(int, ids)))


def check_brokers(cluster: ClusterDescription, brokers: Iterable[int]) -> None:
    """Raises where one of them is not there."""
    known = [node.id for node in cluster.brokers]
    missing = [str(one) for one in dict.fromkeys(brokers) if one not in known]
    if missing:
        there = ", ".join(map(str, known))
        raise CommandFault(f"there is no broker {', '.join(missing)} now; there are: {there}", NOT_FOUND)
